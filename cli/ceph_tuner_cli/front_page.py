"""The front as `recommend` and `tune` show it: what of one metric costs how much of the other."""

from __future__ import annotations

from typing import Callable, List, Sequence

from rich.console import RenderableType
from rich.text import Text

from ceph_tuner.core.goals.front import Front, SomeTried
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner_cli.tables import cell_lines, columns

_MOST = 7
"""Settings that are shown: the ends, and what lies evenly between them."""


def front_table(
    front: Front[SomeTried], interval: Callable[[SomeTried, str], Sequence[float]], known_by: str
) -> List[RenderableType]:
    """Lay the front out. `interval`: the ends between which a metric may be, or nothing."""
    table = columns("front", front.one, front.other)
    places = sorted({round(at * (len(front.entries) - 1) / (_MOST - 1)) for at in range(_MOST)})
    for entry in (front.entries[at] for at in places):
        cells = [amount(metric, entry.means[metric], *interval(entry, metric)) for metric in (front.one, front.other)]
        table.add_row(entry.label, *(cell_lines(value, *([f"  {ends}"] if ends else [])) for value, ends in cells))
    note = f"Each keeps all hard objectives, and nothing tried beats it in both; {known_by}."
    left_out = len(front.entries) - len(places)
    note += f" {left_out} between are left out." if left_out else ""
    return [table, Text(note)]
