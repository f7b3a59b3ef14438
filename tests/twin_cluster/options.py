"""Options as Ceph's monitors check and write them. The twin knows the options of `knobs/catalogue.py`, and no other.

The monitors take far more than the tuner's own ranges: a weight of 0, a limit of `nan`, `osd_max_scrubs` -5
(docs/ceph-behaviour.md); what they refuse is refused here as well.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Mapping, Optional

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, OVERRIDE, Knob
from ceph_tuner.core.knobs.releases import RELEASES, Release, Value, Version

NEEDS_OVERRIDE = tuple(
    name for name, entry in KNOBS.items() if (OVERRIDE, True) in entry.effective(RELEASES["tentacle"]).needs
)
"""Options that an OSD removes again under mClock unless the override is true."""

QUEUE = "osd_op_queue"

_WHOLE = re.compile(r"([+-]?\d+)([KMGTPE]?)B?\Z")
_DECIMAL = {"": 0, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_OWN_RANGES = {
    "osd_scrub_begin_hour": (0.0, 23.0),
    "osd_scrub_end_hour": (0.0, 23.0),
    "osd_scrub_begin_week_day": (0.0, 6.0),
    "osd_scrub_end_week_day": (0.0, 6.0),
    "osd_deep_scrub_interval_cv": (0.0, 0.4),
}
_AT_LEAST_1 = ("osd_pg_max_concurrent_snap_trims",)


def known(name: str, release: Release, version: Version) -> Optional[Knob]:
    """The option of that name; None where the release has none (a pool's properties are no options)."""
    entry = KNOBS.get(name)
    return entry if entry is not None and entry.scope != "pool" and entry.exists(release, version) else None


@cache
def stock(release: Release, version: Version) -> Mapping[str, str]:
    """Ceph's own defaults, as texts."""
    values = {name: KNOBS[name].default(release, version) for name in KNOBS if known(name, release, version)}
    return {name: KNOBS[name].format_for(value, release) for name, value in values.items() if value is not None}


def kept(entry: Knob, text: str, release: Release) -> str:
    """What the monitors keep of a text. Raises ValueError in words like theirs."""
    value = _value(entry, text, release)
    if not isinstance(value, (bool, str)):
        # a comparison with `nan` is false: it passes, as it does in Ceph
        low, high = _bounds(entry, release)
        if low is not None and value < low:
            raise ValueError(f"value '{text}' is below minimum {low:g}")
        if high is not None and value > high:
            raise ValueError(f"value '{text}' exceeds maximum {high:g}")
    return entry.format_for(value, release)


def typed(entry: Knob, text: str, release: Release) -> Value:
    """The value of a text that `kept` made."""
    in_iops = entry.kind == "fraction" and release.units == "iops"
    return int(text) if in_iops else entry.read(text)


def _value(entry: Knob, text: str, release: Release) -> Value:
    if entry.choices:
        if text not in entry.choices:
            raise ValueError(f"'{text}' is not one of the permitted values: {', '.join(entry.choices)}")
        return text
    if entry.kind == "int" or (entry.kind == "fraction" and release.units == "iops"):
        match = _WHOLE.match(text)
        if match is None:
            raise ValueError(f"strict_si_cast: '{text}' is no whole number")
        return int(match[1]) * int(10 ** _DECIMAL[match[2]])
    if "_" in text:
        # Python reads 1_000
        raise ValueError(f"'{text}' is no number")
    try:
        return entry.read(text)
    except InputError:
        raise ValueError(f"'{text}' is no {entry.kind}") from None


def _bounds(entry: Knob, release: Release) -> tuple[Optional[float], Optional[float]]:
    """Ceph's own range, where it states one."""
    if entry.kind == "fraction":
        return 0.0, 1.0 if release.units == "fraction" else None
    if entry.name in _OWN_RANGES:
        return _OWN_RANGES[entry.name]
    if entry.name in _AT_LEAST_1:
        return 1.0, None
    # unsigned options
    return (0.0 if entry.kind == "size" or entry.work in ("shares", "recovery") else None), None
