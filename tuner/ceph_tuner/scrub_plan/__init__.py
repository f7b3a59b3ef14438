"""Deep scrubs ahead: which are due, how fast they can go, when each comes, and who asks Ceph for them.

    view = read_view(cluster)                          # PGs, rules, what holds scrubs up
    rates = rates_of(windows, held_objectives)         # bytes a second that the objectives leave, by hour
    plan = schedule(view, rates, horizon)              # a date for each, and for the end of the backlog
    Drain(cluster, …).run()                            # asks for them in that order

The mathematics (`rates`, `beginning`, `schedule`, `obstacles`, `pace`) are functions over the values here.
`cluster_view`, `twin_rates` and `drain` reach out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import FrozenSet, Mapping, Optional, Tuple

from ceph_tuner.core.knobs.scrub_slots import forbidding_flag


@dataclass(frozen=True)
class ScrubPg:
    """One PG as its deep scrubs see it. Moments are seconds since the epoch."""

    pgid: str
    pool: str
    acting: Tuple[int, ...]
    raw_bytes: float
    """Of all copies, or of all shards of an erasure code: what a deep scrub reads."""
    interval_s: float
    """The pool's own deep-scrub interval, else that of the OSDs."""
    deep_scrubbed_at: float
    """0 where it never was."""
    late: bool = False
    """As `scrub.pgs_late` counts it."""
    state: FrozenSet[str] = frozenset(("active", "clean"))
    snaptrim_queue: int = 0
    scrub_s: Optional[float] = None
    """How long its last scrub took, where that was a deep one."""
    progress: float = 0.0
    """Share of its objects that the deep scrub under way is through with; 0 where none is."""
    up: Tuple[int, ...] = ()
    """OSDs that CRUSH wants it on: a backfill's target is here before it is in `acting`."""
    ahead: bool = False
    """Whether its stamp is of a clock that was ahead, so that nobody knows when it was scrubbed."""
    shallow_due_at: Optional[float] = None
    """When the pool's own `scrub_max_interval`, else that of the OSDs, ends after its last scrub of any kind."""
    shallow_late: bool = False
    """Whether that is past."""

    @property
    def due_at(self) -> float:
        """When its interval ends; as if it never was scrubbed where nobody knows when that was."""
        return (0.0 if self.ahead else self.deep_scrubbed_at) + self.interval_s

    @property
    def scrubbing(self) -> bool:
        """Whether a scrub of any kind runs."""
        return "scrubbing" in self.state

    @property
    def clean(self) -> bool:
        """Whether Ceph would scrub it at all."""
        return {"active", "clean"} <= self.state


@dataclass(frozen=True)
class ScrubRules:
    """Ceph's own rules about scrubs: options as OSDs have them, the strictest of each, and flags."""

    max_scrubs: int = 3
    hours: Tuple[int, int] = (0, 0)
    """Begin and end, in the time of the OSDs' hosts; the same for all day."""
    days: Tuple[int, int] = (0, 0)
    """Of the week, 0 is Sunday; the same for all."""
    during_recovery: bool = False
    load_threshold: float = 10.0
    """Of the load of an OSD's host, for each CPU."""
    max_interval_s: Optional[float] = None
    """`osd_scrub_max_interval`: seconds within which a PG is to have a scrub of any kind; None: no such date."""
    flags: FrozenSet[str] = frozenset()
    pool_flags: Mapping[str, FrozenSet[str]] = field(default_factory=dict)

    def forbids_deep(self, pool: str) -> bool:
        """Whether a flag keeps a pool's deep scrubs from beginning."""
        return self._forbids(True, pool)

    def forbids_shallow(self, pool: str) -> bool:
        """Whether one keeps its shallow scrubs from beginning."""
        return self._forbids(False, pool)

    def _forbids(self, deep: bool, pool: str) -> bool:
        flag = forbidding_flag(deep)
        return flag in self.flags or flag in self.pool_flags.get(pool, ())


@dataclass(frozen=True)
class ScrubView:
    """A cluster at one moment."""

    at: float
    pgs: Tuple[ScrubPg, ...]
    rules: ScrubRules
    hosts: Mapping[int, str] = field(default_factory=dict)
    """OSD -> host."""
    notes: Tuple[str, ...] = ()


@dataclass(frozen=True)
class RateRange:
    """Bytes a second that deep scrub may read, of all OSDs together, and between which ends that is believed."""

    mean: float
    low: float
    high: float
    source: str
    """Where it is from: MEASURED, OTHER_HOURS, TWIN or PAST_SCRUBS."""
    windows: int = 0
    """Of the cluster, that tell of it."""

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.mean <= self.high:
            raise ValueError(
                f"low, mean and high (={self.low}, {self.mean}, {self.high}) must be in that order, from 0"
            )


MEASURED, OTHER_HOURS, TWIN, PAST_SCRUBS = "measured", "measured at other hours", "twin", "past scrubs"
HOURS = 24
HOUR_S = 3600.0
