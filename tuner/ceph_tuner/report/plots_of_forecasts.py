"""What the twin said before each write, and what was measured after: one panel a metric, in the order of the writes."""

from __future__ import annotations

import re
from typing import Dict, List, Sequence

from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from ceph_tuner.core.changes.forecast_pairs import ForecastPair
from ceph_tuner.report.axes import WIDTH
from ceph_tuner.report.svg import BLUE, GREEN, MUTED, RED, drawing, figure, inline

MOST = 40
"""Pairs in a plot, the newest."""

_LEAST, _FAR = 1e-3, 50.0


def by_metric(pairs: Sequence[ForecastPair]) -> Dict[str, List[ForecastPair]]:
    """Metric -> its pairs, oldest first."""
    pairs_of: Dict[str, List[ForecastPair]] = {}
    for pair in pairs:
        pairs_of.setdefault(pair.metric, []).append(pair)
    return pairs_of


def coverage(metric: str, pairs: Sequence[ForecastPair]) -> str:
    """Draw each interval and its measurement as ratios to the prediction; crosses lie outside."""
    newest = [pair for pair in pairs if pair.interval.value > 0][-MOST:]
    with drawing():
        chart = figure(WIDTH, 190)
        axes = chart.subplots()
        axes.set_yscale("log")
        for number, pair in enumerate(newest, 1):
            low, high, measurement = (
                min(max(end / pair.interval.value, _LEAST), _FAR)
                for end in (pair.interval.low, pair.interval.high, pair.measured)
            )
            axes.vlines(number, low, high, color=BLUE, alpha=0.45, linewidth=4)
            colour, marker = (GREEN, "o") if pair.inside else (RED, "x")
            axes.plot([number], [measurement], linestyle="", marker=marker, color=colour, markersize=6)
        axes.axhline(1.0, color=MUTED, linewidth=1)
        axes.set_xlim(0.5, max(len(newest), 1) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("write")
        axes.set_ylabel("over the prediction")
        # a metric of a device class has braces, which are none of a name in SVG
        name = re.sub(r"[^A-Za-z0-9_-]", "-", f"forecast-{metric}")
        return inline(chart, name, f"{metric}: predicted and measured")
