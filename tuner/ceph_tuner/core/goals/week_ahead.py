"""What an SLO's calendar does in the days ahead: to be seen before it is accepted."""

from __future__ import annotations

from typing import Any, Dict

from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.hours import WEEK_S, zone_changes

WEEK_DAYS = 7


def week_ahead(calendar: SloCalendar, start: float, seconds: float = WEEK_S) -> Dict[str, Any]:
    """Which policy holds when, what is wanted under each, and when the zone's clock is set.

    Plain data; moments are seconds since the epoch. Policies that do not hold in that time are there with 0 hours.
    """
    end = start + seconds
    spells = calendar.spells(start, end)
    seconds_of = {
        name: sum(each.end - each.start for each in spells if each.policy == name) for name in calendar.by_policy
    }
    return {
        "slo": calendar.name,
        "zone": calendar.zone,
        "from": int(start),
        "until": int(end),
        "spells": [{"start": each.start, "end": each.end, "policy": each.policy} for each in spells],
        "policies": [
            {
                "name": name,
                "hours_in_force": seconds_of[name] / 3600,
                "objectives": [objective.to_dict() for objective in slo.objectives],
                "boosts": list(calendar.boosts_by_policy[name]),
            }
            for name, slo in calendar.by_policy.items()
        ],
        "clock_changes": [
            {"at": at, "before": before, "after": after}
            for at, before, after in zone_changes(calendar.zone, start, end)
        ],
    }
