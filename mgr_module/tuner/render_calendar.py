"""An SLO's calendar as text: what holds now, what holds when, and the week that comes."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence

from ceph_tuner.core.goals.slo_calendar import boosts_in_words, policy_in_words
from ceph_tuner.core.hours import zone_of
from ceph_tuner.core.moments import clock

from .render_table import folded, table


def objectives(rows: Sequence[Mapping[str, Any]]) -> str:
    """Objectives, one a line."""
    cells = [[row["objective"], "hard" if row["hard"] else "soft", f"{row['priority']:g}"] for row in rows]
    return table(["OBJECTIVE", "KIND", "PRIORITY"], cells)


def in_force(policy: Optional[Mapping[str, Any]]) -> List[str]:
    """Which policy holds, and until when; nothing without a calendar."""
    if policy is None:
        return []
    return [f"policy     {policy_in_words(policy['name'], policy['until'])}", *_boosts(policy["boosts"])]


def _boosts(kinds: Optional[Sequence[str]]) -> List[str]:
    """Which boosts may run; nothing where all may."""
    words = "" if kinds is None else boosts_in_words(kinds)
    return folded(words, "  ") if words else []


def calendar(document: Mapping[str, Any]) -> List[str]:
    """The policies beside the base, and which holds; nothing where there are none."""
    if "calendar" not in document:
        return []
    lines: List[str] = []
    for policy in document["calendar"]["policies"]:
        lines += folded(f"policy {policy['name']}: {policy['hours']} ({document['calendar']['zone']})", "  ")
        if policy["objectives"]:
            lines.append(objectives(policy["objectives"]))
        lines += [f"without {metric}" for metric in policy["without"]]
        lines += _boosts(policy.get("boosts"))
    return [*lines, *in_force(document["policy"])]


def week(document: Mapping[str, Any]) -> str:
    """Which policy holds when, what it wants, when the clock is set, and how to accept it."""
    zone = zone_of(document["zone"])

    rows = [[clock(spell["start"], zone), clock(spell["end"], zone), spell["policy"]] for spell in document["spells"]]
    lines = [f"SLO {document['slo']}, by the clock of {document['zone']}", table(["FROM", "UNTIL", "POLICY"], rows)]
    lines += [
        f"{clock(each['at'], zone)}: the clock is set from UTC{each['before'] / 3600:+g} h "
        f"to UTC{each['after'] / 3600:+g} h"
        for each in document["clock_changes"]
    ]
    for entry in document["policies"]:
        lines.append(f"{entry['name']}: {entry['hours_in_force']:.4g} hours")
        lines.append(objectives(entry["objectives"]))
        lines += _boosts(entry["boosts"])
    lines += [
        "nothing is set yet: give the same command with --yes to set it",
        "what the twin says of each policy and hour, and which kept hours of the last week would have missed it:",
        "  ceph-tuner slo week FILE --cluster ceph",
    ]
    return "\n".join(lines)
