"""Every knob by its name, and the questions that others ask: which may be searched, which works where.

    knob("osd_max_scrubs").parse("5")              5, or InputError
    knob("osd_scrub_cost").effective(REEF)         works False, with the reason and what to use instead
    searchable(TENTACLE)                           knobs that act at once and are honoured there

The data is in `table.py`, the behaviour of one knob in `knob.py`. A knob is in the table only with its page in
`docs/knobs/`, and a real OSD of each lab release is asked whether the data holds (`tests/test_knobs_on_cluster.py`).
"""

from __future__ import annotations

import difflib
from typing import Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.knob import Knob, KnobEffect, Since
from ceph_tuner.core.knobs.releases import CLASSES, MCLOCK_NINE, Release, Settings, Value
from ceph_tuner.core.knobs.table import TABLE
from ceph_tuner.core.knobs.table_background import OVERRIDE
from ceph_tuner.core.knobs.table_unsearched import KNOWN

__all__ = [
    "CLASSES",
    "KNOBS",
    "MCLOCK_NINE",
    "NEVER_SET",
    "OVERRIDE",
    "PROFILE",
    "WORKS",
    "Knob",
    "KnobEffect",
    "Release",
    "Settings",
    "Since",
    "Value",
    "bearing_on",
    "ever_set",
    "knob",
    "searchable",
    "unmet_needs",
    "why_not_tuned",
    "working",
]

PROFILE = "osd_mclock_profile"

NEVER_SET = tuple(work for work, _ in KNOWN)
"""Kinds of knobs that no search, profile export or recommendation sets: an operator may, by name."""

KNOBS: Dict[str, Knob] = {entry.name: entry for entry in TABLE}
"""Every knob by its name, in the order in which people read them: the nine values, then by kind of work."""

RETIRED: Dict[str, Knob] = {}
"""Knobs that earlier versions could set and this one cannot: what the journal has of them is still taken back."""


def ever_set(name: str) -> Optional[Knob]:
    """Give the knob that this version or an earlier one could set by that name."""
    return KNOBS.get(name) or RETIRED.get(name)


def knob(name: str, place: str = "knob") -> Knob:
    """Return the knob of that name. Raises InputError with the nearest names."""
    if name in KNOBS:
        return KNOBS[name]
    nearest = difflib.get_close_matches(name, KNOBS, n=3, cutoff=0.6)
    hint = f"a known knob such as {', '.join(nearest)}" if nearest else "a known knob (`ceph-tuner knobs` lists them)"
    raise InputError(place, repr(name), hint)


def unmet_needs(entry: Knob, release: Release, settings: Mapping[str, Value]) -> Dict[str, Value]:
    """Return the knobs that must be set first for this one to work, with the values that they need."""
    needs = entry.effective(release).needs
    return {name: value for name, value in needs if settings.get(name, KNOBS[name].default(release)) != value}


def working(release: Release) -> List[Knob]:
    """Knobs that the release honours under mClock."""
    return [entry for entry in KNOBS.values() if entry.effective(release).works]


def searchable(release: Release, settings: Optional[Mapping[str, Value]] = None) -> List[Knob]:
    """Knobs that the search may move on a live cluster: they act at once, and the release honours them.

    `settings` hold anyway: with `osd_mclock_override_recovery_settings` true among them,
    the knobs that need it are searchable as well.
    """
    return [
        entry
        for entry in working(release)
        if entry.searched
        and entry.change == "live"
        and entry.scope == "osd"
        and not unmet_needs(entry, release, settings or {})
    ]


_NAMED_FOR: Dict[str, Tuple[str, ...]] = {
    "client": ("bluestore_throttle", "bluestore_deferred", "bluestore_max_defer"),
    "recovery": ("recovery", "backfill", "misplaced"),
    "backfill": ("recovery", "backfill", "misplaced"),
    "scrub": ("scrub",),
    "snaptrim": ("snap_trim", "trimming"),
    "deletion": ("delete",),
}
"""Kind of work -> parts of the names of knobs that are about it alone."""

WORKS = tuple(_NAMED_FOR)
"""Kinds of work that knobs are about."""

_SCHEDULED_AS = {"deletion": "pg deletion"}


def bearing_on(work: str, release: Release) -> List[Knob]:
    """Knobs that are about a kind of `WORKS`: the shares of the class that schedules it there, and its own."""
    service_class = release.service_classes[_SCHEDULED_AS.get(work, work)]
    shares = {PROFILE, *(name for name in MCLOCK_NINE if f"_{service_class}_" in name)}
    return [
        entry
        for entry in KNOBS.values()
        if entry.name in shares
        or (entry.name not in MCLOCK_NINE and any(part in entry.name for part in _NAMED_FOR[work]))
    ]


_NOT_TUNED = {
    PROFILE: "custom is written along with the nine values, and a built-in profile is compared as a whole",
    "osd_scrub_chunk_min": "osd_scrub_chunk_max is tuned, and stays above it",
    "osd_shallow_scrub_chunk_min": "osd_shallow_scrub_chunk_max is tuned, and stays above it",
    "osd_scrub_max_preemptions": "osd_scrub_chunk_max is tuned, which also decides how many writes meet a chunk",
    "osd_scrub_load_threshold": "it goes by the load of the host, which no objective is about",
    "osd_deep_scrub_interval": "how often PGs are scrubbed is the operator's policy",
    "osd_requested_scrub_priority": "mClock goes by no priority",
    OVERRIDE: "it is set where a knob that needs it is tuned",
    "osd_recovery_max_active": "osd_recovery_max_active_ssd and _hdd are tuned; 0 leaves it to them",
    "pg_num": "a change moves data: `recommend` plans it",
}
_NOT_TUNED_OF = {
    "sleeps": "mClock sets every sleep to 0",
    "deletion": "no objective is about the deletion of PGs",
    "capacity": "it is a measured fact of the device (`ceph tuner capacity measure`)",
    "queue": "a change needs a restart of every OSD: `recommend` plans shards and threads",
    "pool": "it is a property of a pool, for the operator to set",
    "scrub schedule": "when PGs are scrubbed is the operator's policy",
    "scrub reads": "osd_scrub_chunk_max is tuned, which bounds how long a chunk takes",
    "recovery steps": "it orders the steps within a PG; recovery's share and osd_recovery_max_chunk are tuned",
    "throttle cost": "bluestore_throttle_bytes is tuned, and both decide together",
    "deferred writes": "bluestore_deferred_batch_ops_hdd is tuned; flash defers few writes",
    "balancing": "it is an option of the mgr: the tuner writes those of OSDs alone",
}


def why_not_tuned(entry: Knob) -> str:
    """Say why no search moves a knob, in any release; empty for one that is searched."""
    return "" if entry.searched else _NOT_TUNED.get(entry.name) or _NOT_TUNED_OF[entry.work]
