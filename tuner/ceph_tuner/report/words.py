"""How metrics, knobs and values are written for people, in every page that we make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List

from ceph_tuner.core.knobs.catalogue import Knob
from ceph_tuner.core.knobs.releases import Value

if TYPE_CHECKING:
    from ceph_tuner.search.explanation import InTheWay

Written = Callable[[str, float], str]
"""A metric and its value, as the page writes them."""

_PARTS = {"res": "reservation", "wgt": "weight", "lim": "limit"}
_STEM = "osd_mclock_scheduler_"


def percent_change(ratio: float) -> str:
    """Write a ratio as a change: `-12%`."""
    change = round(100 * (ratio - 1))
    return f"{change:+d}%" if change else "0%"


def spoken(knob: str) -> str:
    """A knob as one says it: `recovery limit` for one of the nine, its own name for any other."""
    stem, _, part = knob.rpartition("_")
    if not stem.startswith(_STEM) or part not in _PARTS:
        return knob
    return f"{stem[len(_STEM) :].replace('background_', '').replace('_', ' ')} {_PARTS[part]}"


def shown(entry: Knob, value: Value) -> str:
    """Write a value for people: sizes in binary units, fractions without needless zeros."""
    if isinstance(value, (bool, str)):
        return entry.format(value)
    if entry.kind == "size":
        for suffix, unit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value >= unit and value % unit == 0:
                return f"{int(value) // unit} {suffix}"
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else f"{value:.0f}"


def in_the_way(reason: InTheWay, write_value: Written) -> List[str]:
    """Say which objectives cannot be kept together, and what could be kept instead."""
    from ceph_tuner.search.explanation import SURE  # brings scipy, which who only writes values does not wait for

    lines = []
    for conflict in reason.conflicts:
        texts = " and ".join(objective.text for objective in conflict)
        lines.append(
            f"By all that was tried, {texts} cannot be kept together; with one of them less, they can."
            if len(conflict) > 1
            else f"By all that was tried, {texts} is out of reach by itself."
        )
    if not reason.conflicts:
        lines.append(
            f"By all that was tried some settings keep every hard objective with {reason.together:.0%}: they were not "
            "found yet. More trials may."
        )
    elif len(reason.without) > 1:
        objective, probability = reason.without[0]
        lines.append(f"Without {objective.text} the others are kept with {probability:.0%}.")
    if reason.conflicts and reason.probability >= SURE - 0.01:
        instead = ", ".join(
            f"{bound.objective.metric} {bound.objective.comparison} {write_value(bound.objective.metric, bound.bound)} "
            f"({bound.share:.0%} less strict)"
            for bound in reason.nearest
            if bound.share > 0
        )
        rest = [bound.text for bound in reason.nearest if not bound.share > 0]
        beside = f", beside {' and '.join(rest)}" if rest else ""
        lines.append(f"Nearest that is kept with {SURE:.0%}: {instead}{beside}.")
    return lines
