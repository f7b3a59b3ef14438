"""One Ceph option that the tuner knows: its unit and range, who it is for, what a change costs, and where it works.

Floats are what the monitors keep of them: six decimals (`config set … 0.5` is dumped as `0.500000`; 0.123456789 as
0.123457, and 0.0000001 as 0.000000; seen on 18.2.7 and 20.2.4). `parse` and `normal` round alike, so that what is
written can be compared with what is read back.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Release, Value, Version

KINDS = ("int", "float", "fraction", "size", "bool", "categorical")
CHANGES = ("live", "restart", "moves data")
SCOPES = ("osd", "osd and mgr", "mgr", "pool")
"""Who reads it. The tuner writes those of OSDs alone; `pool` is what `ceph osd pool set` takes."""

DECIMALS = 6
"""Ceph prints floats by `%f`, into its configuration database too."""

_SIZE = re.compile(r"^(\d+)\s*([KMGT]?)(i?B?)$")
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class KnobEffect:
    """Whether a release honours a knob under mClock, why or why not, and what does its job instead."""

    works: bool
    because: str
    instead: Tuple[str, ...] = ()
    """Knobs that do the job in this release."""
    needs: Tuple[Tuple[str, Value], ...] = ()
    """Knobs that must hold these values for this one to work."""


@dataclass(frozen=True)
class Since:
    """From this version on (up to the next entry) the default and the effect are these."""

    version: Version
    default: Optional[Value]
    """None where the option does not exist, or has no default that is a value."""
    effect: KnobEffect


@dataclass(frozen=True, eq=False)
class Knob:
    """An option. Compared by identity: there is one object each, in `knobs.KNOBS`."""

    name: str
    meaning: str
    kind: str
    unit: str
    low: float
    high: float
    """The range that the tuner accepts; Ceph itself takes far more, also what would harm."""
    history: Tuple[Since, ...]
    """By version, oldest first; the first one at or below a version counts."""
    scope: str = "osd"
    change: str = "live"
    choices: Tuple[str, ...] = ()
    zero_means: str = ""
    """What 0 stands for where it lies outside the range (`low`), and is accepted."""
    searched: bool = False
    """Whether the search may move it where it works; others are measured, a policy of the operator, or a trap."""
    log_scale: bool = False
    search_low: Optional[float] = None
    search_high: Optional[float] = None
    """The search's own ends where they are narrower than the range."""
    search_step: int = 1
    """The search takes multiples of this: of sizes that data are cut by, such as drives and stripes are aligned to."""
    work: str = ""
    """What it is about: shares, scrub, snaptrim, deletion, recovery, sleeps, device, capacity, queue or pool; or one
    of the kinds that are known and never set by the tuner (`knob_table_known.KNOWN`)."""
    under_wpq: str = ""
    """What it does where osd_op_queue is wpq; empty where nothing is known of that."""

    def __post_init__(self) -> None:
        """Hold the data to its own laws."""
        if self.kind not in KINDS or self.change not in CHANGES or self.scope not in SCOPES:
            raise ValueError(f"{self.name}: kind {self.kind!r}, change {self.change!r}, scope {self.scope!r}")
        if (self.kind == "categorical") != bool(self.choices):
            raise ValueError(f"{self.name}: choices belong to the categorical kind, got {self.choices!r}")
        if not self.low <= self.high:
            raise ValueError(f"{self.name}: low {self.low} is above high {self.high}")
        if not self.history or any(a.version >= b.version for a, b in zip(self.history, self.history[1:])):
            raise ValueError(f"{self.name}: its history must be there, oldest first")

    def exists(self, release: Release, version: Optional[Version] = None) -> bool:
        """Whether the release has the option at all."""
        return self.at(release, version).default is not None

    def at(self, release: Release, version: Optional[Version] = None) -> Since:
        """Return what holds in a release, at its newest version unless one is named."""
        at_least = version or release.newest
        state = self.history[0]
        for entry in self.history:
            if entry.version <= at_least:
                state = entry
        return state

    def default(self, release: Release, version: Optional[Version] = None) -> Optional[Value]:
        """Ceph's own default; None where the option does not exist there."""
        return self.at(release, version).default

    def effective(self, release: Release, version: Optional[Version] = None) -> KnobEffect:
        """Whether the release honours the knob under mClock."""
        return self.at(release, version).effect

    def bounds(self, release: Optional[Release] = None) -> Tuple[float, float]:
        """Return the accepted range; up to 17.2.6 reservations and limits are integers in IOPS per shard."""
        if self.kind == "fraction" and release is not None and release.units == "iops":
            return 0, release.no_limit
        return self.low, self.high

    @property
    def search_bounds(self) -> Tuple[float, float]:
        """Range of the search."""
        low, high = self.search_low, self.search_high
        return self.low if low is None else low, self.high if high is None else high

    def expected(self, release: Optional[Release] = None) -> str:
        """Say what is accepted, for an error message: `1 to 10`, `0 (none) or …`, `true or false`."""
        if self.kind == "bool":
            return "true or false"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        low, high = self.bounds(release)
        span = f"{low:g} to {high:g}" if self.kind in ("float", "fraction") else f"{low:.0f} to {high:.0f}"
        numbers = self._whole(release)
        span = f"a whole number, {span}" if numbers and self.kind == "fraction" else span
        return f"0 ({self.zero_means}) or {span}" if self.zero_means and low > 0 else span

    def _whole(self, release: Optional[Release]) -> bool:
        """Whether values are whole numbers there."""
        in_iops = self.kind == "fraction" and release is not None and release.units == "iops"
        return self.kind in ("int", "size") or in_iops

    def parse(self, text: str, release: Optional[Release] = None, place: str = "") -> Value:
        """Read a value as the operator or `config dump` writes it, and check it. Raises InputError."""
        return self.check(self.read(text, place), release, place)

    def read(self, text: str, place: str = "") -> Value:
        """Read a value as Ceph writes it without checking its range: what stands in a cluster may lie outside ours."""
        bare = text.strip()
        reader: Mapping[str, Callable[[str], Value]] = {
            "bool": _bool,
            "categorical": str,
            "size": _size,
            "int": int,
            "float": float,
            "fraction": float,
        }
        try:
            value = reader[self.kind](bare)
        except ValueError:
            raise InputError(place or self.name, repr(text), self.expected()) from None
        return self.normal(value)

    def normal(self, value: Value) -> Value:
        """Return what the monitors keep of a value."""
        return round(value, DECIMALS) if isinstance(value, float) and math.isfinite(value) else value

    def format(self, value: Value) -> str:
        """Write a value exactly as `ceph config dump` and `config show` do."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.kind in ("float", "fraction") and not isinstance(value, str):
            return f"{value:.{DECIMALS}f}"
        return str(value)

    def format_for(self, value: Value, release: Release) -> str:
        """Write a value as that release does: reservations and limits are whole IOPS up to 17.2.6."""
        if self.kind == "fraction" and release.units == "iops" and isinstance(value, (int, float)):
            return f"{value:.0f}"
        return self.format(value)

    def check(self, value: object, release: Optional[Release] = None, place: str = "") -> Value:
        """Return the value as the monitors keep it, or raise InputError naming the place and the range."""
        where, expected = place or self.name, self.expected(release)
        if self.kind == "bool" or self.choices:
            if (isinstance(value, bool) and self.kind == "bool") or (isinstance(value, str) and value in self.choices):
                return value
            raise InputError(where, repr(value), expected)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(where, repr(value), expected)
        # whole numbers are compared as such: one of 400 digits is no float
        if not isinstance(value, int) and (self._whole(release) or not math.isfinite(value)):
            raise InputError(where, repr(value), expected)
        low, high = self.bounds(release)
        if not (low <= value <= high or (value == 0 and self.zero_means)):
            raise InputError(where, f"{value!r}", expected)
        return self.normal(float(value) if self.kind in ("float", "fraction") and not self._whole(release) else value)

    def __repr__(self) -> str:
        return f"<Knob {self.name}>"


def _bool(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "1"):
        return True
    if lowered in ("false", "0"):
        return False
    raise ValueError(text)


def _size(text: str) -> int:
    """Ceph's sizes: bytes, or a whole number with K, Ki, KB … of 1024."""
    match = _SIZE.match(text)
    if match is None or (match[3].startswith("i") and not match[2]):
        raise ValueError(text)
    return int(match[1]) * _BINARY[match[2]]
