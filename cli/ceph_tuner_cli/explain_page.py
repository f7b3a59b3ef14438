"""What a search has learnt and what holds each class, as parts of a page of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence

from rich.console import RenderableType
from rich.text import Text

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.recommend.accounts import Account
from ceph_tuner.report.words import Written, in_the_way, shown
from ceph_tuner.report.words import spoken as spoken
from ceph_tuner.search.explanation import Explained, notable
from ceph_tuner_cli.tables import Columns, columns

if TYPE_CHECKING:
    from ceph_tuner.optimise.posterior_summary import Dependence, Importance

_FEW, _POINTS = 3, 4
_HARDLY = 0.02
"""Variation below which a metric is said to depend on nothing: of its logarithm about that share."""


def learnt(explanation: Optional[Explained], write_value: Written, whole: bool = False) -> List[RenderableType]:
    """Lay out which knobs matter for what, and which objectives are in the way; `whole`: with curves and progress."""
    if explanation is None:
        return []
    where = "over all settings" if explanation.around is None else "around the best settings"
    parts: List[RenderableType] = [Text(""), _matters(explanation.matters, where)]
    if explanation.in_the_way is not None:
        parts += [Text(""), *(Text(line) for line in in_the_way(explanation.in_the_way, write_value))]
    if whole:
        parts += [Text(""), *_curves(explanation, write_value), Text(""), *_progress(explanation)]
    return parts


def capacity(classes: Sequence[Account]) -> List[RenderableType]:
    """Lay out what each class of an OSD is sure of, needs, is owed and gets, and what holds it."""
    if not classes:
        return []
    table = columns("capacity of an OSD", ">reserved", ">limit", ">needed", ">owed", ">got", "held by")
    short = []
    for entry in classes:
        name = entry.name.replace("background_", "").replace("_", " ")
        limit = "none" if entry.limit is None else f"{entry.limit:.0%}"
        shares = [f"{share:.0%}" for share in (entry.needed, entry.owed, entry.got)]
        table.add_row(name, f"{entry.reserved:.0%}", limit, *shares, entry.held_by)
        if entry.starved:
            short.append(f"At the bounds {name} needs {shares[0]} of an OSD, and mClock owes it {shares[1]}.")
    return [Text(""), table, *(Text(line) for line in short)]


def _matters(matters: Sequence[Importance], where: str) -> Columns:
    table = columns("metric", f"depends on (share of its variation {where})")
    for entry in matters:
        shares = ", ".join(f"{spoken(one.name)} {one.total:.0%}" for one in notable(entry)[:_FEW])
        table.add_row(entry.metric, shares if shares and entry.deviation >= _HARDLY else "hardly any knob")
    return table


def _curves(explanation: Explained, write_value: Written) -> List[RenderableType]:
    influences = {(entry.metric, one.name): one for entry in explanation.matters for one in entry.influences}
    lines = ["On average over the other knobs, with each share's 90% interval:"]
    last = ""
    for curve in explanation.curves:
        low, high = influences[curve.metric, curve.name].total_interval
        lines += [curve.metric] if curve.metric != last else []
        lines += [f"  {spoken(curve.name)} ({low:.0%} to {high:.0%})", f"    {_points(curve, write_value)}"]
        last = curve.metric
    return [Text(line) for line in lines]


def _points(curve: Dependence, write_value: Written) -> str:
    """Some values from the least to the largest, with what they come with."""
    pairs = list(zip(curve.values, curve.mean))
    knob = KNOBS[curve.name]
    without_limit = [pair for pair in pairs if curve.name.endswith("_lim") and pair[0] == 0]
    with_limit = [pair for pair in pairs if pair not in without_limit]
    places = sorted({round(number * (len(with_limit) - 1) / (_POINTS - 1)) for number in range(_POINTS)})
    texts = [
        f"{shown(knob, with_limit[at][0])}: {write_value(curve.metric, with_limit[at][1])}"
        for at in places
        if with_limit
    ]
    texts += [f"none: {write_value(curve.metric, mean)}" for _, mean in without_limit]
    return ", ".join(texts)


def _progress(explanation: Explained) -> List[RenderableType]:
    table = columns("told", ">loss", ">90% interval", ">all hard kept with", ">least so far")
    for entry in explanation.progress:
        best = "-" if entry.best is None else f"{entry.best:.3f}"
        note = " (earlier run)" if entry.old else " (stopped)" if entry.failed else ""
        interval = f"{entry.low:.3f} to {entry.high:.3f}"
        table.add_row(f"{entry.number}{note}", f"{entry.mean:.3f}", interval, f"{entry.feasible:.0%}", best)
    return [Text("How the search went, by all that is known now; the loss is what is left to wish for:"), table]
