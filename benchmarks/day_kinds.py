"""What is wanted on a day of `day.py`: the same of the clients at all hours, or more in office hours."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

from day_world import BUSY_MARKER, DAY_BEGINS, HOUR_S, WORK_MARKERS, rate_at

from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.regimes.bounds import IDLE, PolicyMarker, RegimeBounds

RESULTS = Path(__file__).parent / "results"
OFFICE, OFFICE_H = "office", (8.0, 20.0)
_P95 = "client.p95_ms"


@dataclass(frozen=True, eq=False)
class Kind:
    """What the cluster is told, and what its pages are predicted for."""

    name: str
    scrubbed: int
    """Objects to be deep-scrubbed within the day, unless a day has others."""
    bounds: RegimeBounds
    wanted: SloCalendar
    page_objectives: SloCalendar
    """Of the twin, for pages: 92% of the bounds, most of the recovery of now, and scrubs within the day."""
    searched: Tuple[str, ...]
    """Regimes for which settings are: one for each marker, and what the plugin told on day 0."""
    first_reported: int
    """The first day that is reported: once somebody has looked at one to make book or pages better, a later one."""

    @property
    def rows(self) -> Path:
        """Where lives are kept."""
        return RESULTS / f"{self.name}.jsonl"

    @property
    def pages(self) -> Path:
        """What `book predict` makes."""
        return RESULTS / f"{self.name}-pages.json"

    @property
    def each(self) -> Path:
        """The answer of each regime by itself, without what regimes share."""
        return RESULTS / f"{self.name}-pages-each.json"

    def bound_ms(self, hour: float) -> float:
        """Of the clients' p95."""
        return self.bounds_ms[self.wanted.policy_at(moment(hour))]

    @property
    def bounds_ms(self) -> Dict[str, float]:
        """The same by policy."""
        objectives = {policy: slo.objectives for policy, slo in self.wanted.by_policy.items()}
        return {
            policy: next(each.bound.value for each in own if each.metric == _P95) for policy, own in objectives.items()
        }


def moment(hour: float) -> float:
    """When an hour of the day begins, seconds since the epoch."""
    return DAY_BEGINS + hour * HOUR_S


def hours_of_clients() -> List[Window]:
    """As the plugin would have kept them of a whole day."""
    return [
        Window(moment(hour), moment(hour + 1), {"client.iops": Measure(rate_at(hour), 0.0, 1)}) for hour in range(24)
    ]


def _calendar(base: List[Any], office: List[Any]) -> SloCalendar:
    begins, ends = (time.strftime("%H:%M", time.gmtime(moment(hour))) for hour in OFFICE_H)
    policy = {"name": OFFICE, "hours": f"mon-sun {begins}-{ends}", "objectives": office}
    return parse_slo_calendar({"objectives": base, **({"calendar": {"policies": [policy]}} if office else {})})


def _soft(objective: str) -> Dict[str, Any]:
    return {"objective": objective, "hard": False}


ONE_BOUND = Kind(
    "day",
    110_000,
    RegimeBounds((BUSY_MARKER, *WORK_MARKERS), 30.0),
    _calendar([f"{_P95} <= 25"], []),
    _calendar(
        [
            f"{_P95} <= 23 ms",
            "recovery.bytes_s >= 0.75 * baseline",
            _soft("scrub.objects_s >= 12"),
            _soft("snaptrim.objects_s >= 0.5 * baseline"),
        ],
        [],
    ),
    (IDLE, "busy", "recovering", "scrubbing", "trimming", "busy+scrubbing", "recovering+scrubbing"),
    14,
)
OFFICE_HOURS = Kind(
    "day-office",
    130_000,
    RegimeBounds((PolicyMarker(OFFICE, OFFICE), *WORK_MARKERS), 30.0),
    _calendar([f"{_P95} <= 60"], [f"{_P95} <= 20"]),
    _calendar(
        [
            f"{_P95} <= 55 ms",
            "recovery.bytes_s >= 0.9 * baseline",
            _soft("scrub.objects_s >= 20"),
            _soft("snaptrim.objects_s >= 0.5 * baseline"),
        ],
        [
            f"{_P95} <= 18 ms",
            "recovery.bytes_s >= 0.75 * baseline",
            _soft("scrub.objects_s >= 3"),
        ],
    ),
    (
        IDLE,
        *(f"{policy}{work}" for policy in ("", f"{OFFICE}+") for work in ("recovering", "scrubbing", "trimming")),
        OFFICE,
        "recovering+scrubbing",
        f"{OFFICE}+recovering+scrubbing",
    ),
    20,
)
KINDS = {kind.name: kind for kind in (ONE_BOUND, OFFICE_HOURS)}
