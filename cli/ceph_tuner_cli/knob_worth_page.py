"""What each knob of a recommendation is worth, as a part of its page of 80 columns."""

from __future__ import annotations

from typing import List, Optional, Sequence

from rich.console import RenderableType
from rich.text import Text

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.recommend import COVERAGE
from ceph_tuner.recommend.knob_worth import KnobWorth
from ceph_tuner.recommend.paired_effect import PairedEffect
from ceph_tuner.report.words import percent_change, shown, spoken
from ceph_tuner_cli.tables import cell_lines, columns


def knob_worths(worths: Sequence[KnobWorth]) -> List[RenderableType]:
    """Lay out what becomes of each objective where one knob stays as it is in force."""
    if not worths:
        return []
    parts: List[RenderableType] = [Text("")]
    lasting_worths = [entry for entry in worths if not entry.put_back]
    if lasting_worths:
        metrics = list(dict.fromkeys(effect.metric for entry in lasting_worths for effect in entry.without))
        table = columns("without this knob", *metrics, keep=["without this knob"], comparisons=metrics)
        for entry in lasting_worths:
            by_metric = {effect.metric: effect for effect in entry.without}
            table.add_row(cell_lines(*_name_lines(entry)), *(_cell(by_metric.get(metric)) for metric in metrics))
        note = f"Below each change: its interval ({COVERAGE:.0%}), by pairs of runs with the same PG placements."
        parts += [table, Text(note)]
    back = [f"{spoken(entry.name)} ({shown(KNOBS[entry.name], entry.value)})" for entry in worths if entry.put_back]
    if back:
        parts.append(
            Text(f"Left as they are in force, since what the search set was worth nothing: {', '.join(back)}.")
        )
    return parts


def _name_lines(entry: KnobWorth) -> List[str]:
    return [spoken(entry.name), *(f"and {spoken(name)}" for name in entry.beside)]


def _cell(effect: Optional[PairedEffect]) -> Text:
    if effect is None:
        return Text("not seen")
    if effect.ratio is None:
        return Text(amount(effect.metric, effect.after)[0])
    mean, low, high = map(percent_change, effect.ratio)
    surely = effect.ratio[1] > 1 or effect.ratio[2] < 1
    worse = (effect.ratio[0] > 1) == METRICS[effect.metric].lower_is_better
    style = ("red" if worse else "green") if surely else ""
    return Text.assemble((mean, style), (f"\n{low[:-1]} to {high}", "dim"))
