"""What a cluster did in the hours that its history keeps, held against a calendar of objectives."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.hours import zone_of
from ceph_tuner.core.measure.sample import Window

HOUR_S = 3600.0
_CLIENTS = "client.iops"


class HourAhead(NamedTuple):
    """An hour of the day, on the clock of the calendar's zone, under a policy that will hold in it."""

    hour: int
    policy: str
    client_iops: Optional[float]
    """The most that clients did in it; None where no hour is kept."""


def hours_under(
    calendar: SloCalendar, is_meant: Callable[[str], bool], windows: Sequence[Window]
) -> Tuple[Window, ...]:
    """Of the kept windows those under policies that are meant, the base among them."""
    return tuple(window for window in windows if is_meant(calendar.policy_at(_middle(window))))


def week_behind(
    calendar: SloCalendar, windows: Sequence[Window], reference: Mapping[str, float] = MappingProxyType({})
) -> Dict[str, Any]:
    """Which of the kept windows miss what the calendar wants at their time. Plain data, moments since the epoch.

    `reference`: what relative bounds refer to.
    """
    missed: List[Dict[str, Any]] = []
    for window in windows:
        at = _middle(window)
        verdicts = Judge(calendar.at(at), reference).verdicts_at_work(window.means)
        misses = [verdict for verdict in verdicts if verdict.met is False]
        if misses:
            missed.append(
                {
                    "start": window.start,
                    "end": window.end,
                    "policy": calendar.policy_at(at),
                    "objectives": [
                        {"objective": each.objective.text, "hard": each.objective.hard, "seen": each.seen}
                        for each in misses
                    ],
                }
            )
    return {
        "windows": len(windows),
        "from": windows[0].start if windows else None,
        "until": windows[-1].end if windows else None,
        "missed": missed,
    }


def hours_ahead(calendar: SloCalendar, start: float, end: float, windows: Sequence[Window]) -> List[HourAhead]:
    """Each hour of the day with each policy that holds in it in that time, and what clients did then.

    Of the kept hours at that time of the day those count that lie under the same policy, else all of them.
    """
    zone = zone_of(calendar.zone)

    def hour_of(at: float) -> int:
        return datetime.fromtimestamp(at, zone).hour

    at, pairs = start, set()
    while at < end:
        # spells begin and end at minutes: the middle of what is left of the hour decides
        later = min(end, (at // HOUR_S + 1.0) * HOUR_S)
        pairs.add((hour_of(at), calendar.policy_at((at + later) / 2.0)))
        at = later
    seen = [
        (hour_of(_middle(window)), calendar.policy_at(_middle(window)), window.means[_CLIENTS])
        for window in windows
        if _CLIENTS in window.means
    ]
    order = list(calendar.by_policy)
    rows = []
    for hour, policy in sorted(pairs, key=lambda pair: (pair[0], order.index(pair[1]))):
        same_hour = [(under, iops) for at_hour, under, iops in seen if at_hour == hour]
        same_policy = [iops for under, iops in same_hour if under == policy]
        rows.append(HourAhead(hour, policy, max(same_policy or [iops for _, iops in same_hour], default=None)))
    return rows


def _middle(window: Window) -> float:
    return (window.start + window.end) / 2.0
