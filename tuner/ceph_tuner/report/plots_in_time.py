"""Metrics over time, with what was changed meanwhile marked by its number."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any, Dict, List, Sequence, Tuple

import matplotlib.dates
from matplotlib.axes import Axes

from ceph_tuner.metrics import METRICS
from ceph_tuner.report import Findings, Mark
from ceph_tuner.report.plots import Axis, bounds_of, draw_bound
from ceph_tuner.report.svg import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, drawing, figure, inline
from ceph_tuner.report.unknown import LONGEST_GAP_S
from ceph_tuner.sample import NEVER_S, Window
from ceph_tuner.trial import Trial

_DATES: Any = matplotlib.dates
"""It has no types."""

SIZES: Dict[str, Tuple[float, float]] = {"narrow": (330.0, 190.0), "wide": (980.0, 210.0)}
"""Both are in the page, and the one that fits is shown."""

_ALSO = ("client.p95_ms", "client.iops", "client.bytes_s", "recovery.bytes_s", "scrub.bytes_s", "snaptrim.objects_s")
"""Worth a look where they were seen, whatever the objectives are."""

_MOST, _MOST_NUMBERS = 6, 30


def metrics_in_time(found: Findings) -> List[str]:
    """Give the metrics worth drawing: those of the objectives, then others that were seen at work."""
    seen: Dict[str, float] = {}
    for window in (*found.windows, *found.hours):
        for name, measure in window.measures.items():
            seen[name] = max(seen.get(name, 0.0), measure.mean)
    for trial in found.trials:
        for name, mean in trial.means.items():
            seen[name] = max(seen.get(name, 0.0), mean)
    wanted = [name for name in found.metrics if name in seen]
    return list(dict.fromkeys([*wanted, *(name for name in _ALSO if seen.get(name))]))[:_MOST]


def in_time(found: Findings, metric: str, size: str) -> str:
    """Draw a metric over time: windows as a curve with its spread, trials as bars, changes as numbered lines."""
    minutes = _points(found.windows, metric)
    # of hours only those that the minutes do not tell better
    since = found.windows[0].start if found.windows else math.inf
    hours = _points([window for window in found.hours if window.end <= since], metric)
    trials = [trial for trial in found.trials if metric in trial.measures and trial.seconds > 0]
    seen = [(mean, deviation) for _, _, mean, deviation in (*minutes, *hours) if mean < NEVER_S]
    seen += [(trial.measures[metric].mean, trial.measures[metric].deviation) for trial in trials]
    values = [value for mean, deviation in seen for value in (mean, mean + deviation)]
    bounds = bounds_of(found)
    if metric in bounds:
        values.append(bounds[metric][0])
    width, height = SIZES[size]
    with drawing():
        drawn = figure(width, height)
        axes = drawn.subplots()
        axis = Axis(axes, "y", metric, values)
        for points, colour, style in ((hours, PURPLE, "--"), (minutes, BLUE, "-")):
            _curve(axes, axis, points, colour, style)
        for trial in trials:
            _trial(axes, axis, trial, metric)
        if metric in bounds:
            draw_bound(axes, axis, *bounds[metric], False)
        _changes(axes, found.marks)
        locator = _DATES.AutoDateLocator(minticks=3, maxticks=5 if size == "narrow" else 10)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(_DATES.ConciseDateFormatter(locator))
        axes.set_title(f"{metric} ({axis.unit})" if axis.unit else metric, loc="left", pad=16 if found.marks else 6)
        return inline(drawn, f"{size}-{metric}".replace(".", "-"), f"{METRICS[metric].meaning} over time")


def _points(windows: Sequence[Window], metric: str) -> List[Tuple[float, float, float, float]]:
    """Start, end, mean and deviation of each window that saw the metric."""
    return [
        (window.start, window.end, window.measures[metric].mean, window.measures[metric].deviation)
        for window in windows
        if metric in window.measures
    ]


def _curve(
    axes: Axes, axis: Axis, points: Sequence[Tuple[float, float, float, float]], colour: str, style: str
) -> None:
    """Draw a curve with its spread, broken where nothing was measured for long."""
    stretches: List[List[Tuple[float, float, float, float]]] = []
    for point in points:
        lasting = max(LONGEST_GAP_S, 2 * (point[1] - point[0]))
        if not stretches or point[0] - stretches[-1][-1][1] > lasting:
            stretches.append([])
        stretches[-1].append(point)
    for stretch in stretches:
        at = [when((start + end) / 2) for start, end, _, _ in stretch]
        low = axis.scaled([max(0.0, mean - deviation) for _, _, mean, deviation in stretch])
        high = axis.scaled([mean + deviation for _, _, mean, deviation in stretch])
        axes.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
        marker = "o" if len(stretch) == 1 else ""
        axes.plot(at, axis.scaled([mean for _, _, mean, _ in stretch]), style, color=colour, marker=marker)


def _trial(axes: Axes, axis: Axis, trial: Trial, metric: str) -> None:
    """Draw a trial from its beginning to its end, with the deviation inside of it."""
    start, end, measure = when(trial.at), when(trial.at + trial.seconds), trial.measures[metric]
    colour = {"baseline": ORANGE, "profile": BLUE, "check": GREEN}.get(trial.run.kind, INK)
    (mean,) = axis.scaled([measure.mean])
    (reach,) = axis.scaled([measure.deviation])
    style = ":" if trial.failed is not None else "-"
    axes.plot([start, end], [mean, mean], style, color=colour, linewidth=3, solid_capstyle="butt")
    axes.vlines((start + end) / 2, max(0.0, mean - reach), mean + reach, color=colour, linewidth=1)


def _changes(axes: Axes, marks: Sequence[Mark]) -> None:
    """Mark changes by the number that they have in the page's table; not by all numbers where they would touch."""
    left, right = axes.get_xlim()
    last = -math.inf
    for number, mark in enumerate(marks, 1):
        at = when(mark.at)
        axes.axvline(at, color=MUTED, linewidth=1, linestyle=(0, (1, 2)))
        if at - last > (right - left) / _MOST_NUMBERS:
            axes.annotate(
                str(number),
                (at, 1.0),
                (0, 3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                annotation_clip=False,
            )
            last = at


def when(at: float) -> float:
    """Days, as the axis counts them."""
    return float(_DATES.date2num(datetime.fromtimestamp(at, timezone.utc)))
