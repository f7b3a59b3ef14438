"""Axes in the units that people read, bounds on them, and names that leave room for the plot."""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import scale_of
from ceph_tuner.report import Findings
from ceph_tuner.report.svg import RED

WIDTH = 330.0
"""Of a plot: a phone's."""
WIDE_RANGE = 30.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


class Axis:
    """An axis in the unit that people read a metric in; from 0 on, or logarithmic where values differ by far."""

    def __init__(self, axes: Axes, side: str, metric: str, values: Sequence[float]) -> None:
        largest = max(values, default=0.0)
        self._scale, self.unit = scale_of(metric, largest)
        self.top = largest / self._scale
        positive = [value / self._scale for value in values if value > 0]
        self.logarithmic = len(positive) == len(values) and bool(values) and self.top > WIDE_RANGE * min(positive)
        own = getattr(axes, f"{side}axis")
        if self.logarithmic:
            getattr(axes, f"set_{side}scale")("log")
            getattr(axes, f"set_{side}lim")(min(positive) / 1.4, self.top * 1.4)
            own.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if self.top < 100 * min(positive) else (1.0,)))
            own.set_minor_locator(NullLocator())
            own.set_minor_formatter(NullFormatter())
        else:
            getattr(axes, f"set_{side}lim")(0, self.top * 1.08 or 1.0)
            own.set_major_locator(MaxNLocator(nbins=5))
        own.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}".replace(",", "\u202f")))
        if side == "x":
            axes.set_xlabel(self.unit or METRICS[metric].name)

    def scaled(self, values: Sequence[float]) -> List[float]:
        """In the axis's unit."""
        return [value / self._scale for value in values]


def draw_bound(axes: Axes, axis: Axis, bound: float, upper: bool, vertical: bool) -> None:
    """Draw a bound, and shade the side where it is missed."""
    (at,) = axis.scaled([bound])
    low, high = axes.get_xlim() if vertical else axes.get_ylim()
    span = (at, max(at, high)) if upper else (min(at, low), at)
    line, shade = (axes.axvline, axes.axvspan) if vertical else (axes.axhline, axes.axhspan)
    line(at, color=RED, linestyle=(0, (4, 3)), linewidth=1.3)
    shade(*span, color=RED, alpha=0.08, linewidth=0)


def bounds_of(findings: Findings) -> Mapping[str, Tuple[float, bool]]:
    """Metric -> its hard bound, else the soft one, and whether that is an upper one."""
    bounds: Dict[str, Tuple[float, bool]] = {}
    judge = Judge(findings.slo, findings.baseline)
    for objective in sorted(judge.objectives, key=lambda entry: not entry.hard):
        bound = judge.bound(objective)
        if bound is not None:
            bounds.setdefault(objective.metric, (bound, objective.comparison == "<="))
    return bounds


def short(label: str, most: int = 26) -> str:
    """Cut what would leave no room for the plot; the table beside it has all of it."""
    return label if len(label) <= most else f"{label[: most - 1]}…"
