"""Regimes as text: which holds, what held, and by what it is told."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.moments import stamp, utc_minute
from ceph_tuner.core.regimes.telling import calendar_turn, calendar_turned

from .render import number
from .render_table import folded, table


def book(document: Mapping[str, Any]) -> str:
    """All of it."""
    bounds = document["bounds"]
    lines: List[str] = folded(f"note: {document['problem']}", "  ") if document["problem"] else []
    if not document["regimes"]:
        lines.append("no regime is told yet: it takes a sample")
    lines += held(document["regimes"])
    at_once = ", by the calendar at once" if any("policy" in marker for marker in bounds["markers"]) else ""
    lines += [timeline(document["timeline"]), f"told after {bounds['dwell_s']:g} s at the earliest{at_once}, by:"]
    rows = [_marker(marker) for marker in bounds["markers"]]
    return "\n".join([*lines, table(["MARKER", "METRIC", "ON FROM", "OFF AT", "FOR"], rows)])


def held(rows: Sequence[Mapping[str, Any]]) -> List[str]:
    """Which regime holds, since when and by what, of the cluster and of scopes."""
    lines: List[str] = []
    for row in rows:
        lines += folded(f"{row['scope'] or 'cluster'}: {row['regime']} since {utc_minute(row['since'])}", "  ")
        by = [words for words in (calendar_turned(row["by_policy"]), _evidence(row["evidence"])) if words]
        lines += folded(f"  by {'; '.join(by)}", "    ")
        if row["turns_at"] is not None:
            lines += folded(f"  {calendar_turn(row['turns_at'])}", "    ")
    return lines


def timeline(rows: Sequence[Mapping[str, Any]]) -> str:
    """What held from when on, the newest last."""
    cells = [
        [stamp(row["at"]), f"{row['kind']} {row['scope']}".rstrip(), row["name"], _evidence(row["evidence"])]
        for row in rows
    ]
    return table(["FROM", "WHAT", "HELD", "BY"], cells) if cells else "nothing changed yet"


def _marker(marker: Mapping[str, Any]) -> List[str]:
    if "policy" in marker:
        return [marker["name"], f"policy {marker['policy']}", "its begin", "its end", "-"]
    bounds = (_bound(marker, marker[side]) for side in ("enter", "leave"))
    return [marker["name"], marker["metric"], *bounds, f"{marker['hold_s']:g} s"]


def _bound(marker: Mapping[str, Any], value: float) -> str:
    return f"{100 * value:g}% of capacity" if marker["of_capacity"] else number(value, METRICS[marker["metric"]].unit)


def _evidence(values: Mapping[str, float]) -> str:
    units = {name: METRICS[name].unit if name in METRICS else "1" for name in values}
    return ", ".join(f"{name} {number(value, units[name])}" for name, value in values.items()) or "-"
