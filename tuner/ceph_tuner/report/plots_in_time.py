"""Metrics over time, with what was changed meanwhile marked by its number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, Sequence, Tuple

import matplotlib.dates
from matplotlib.axes import Axes

from ceph_tuner.core.goals.trial import IN_FORCE, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import NEVER_S, Window
from ceph_tuner.report import Findings, Mark
from ceph_tuner.report.axes import Axis, bounds_of, draw_bound
from ceph_tuner.report.svg import BLUE, GREEN, INK, MUTED, ORANGE, drawing, figure, inline
from ceph_tuner.report.unknown import LONGEST_GAP_S

_DATES: Any = matplotlib.dates
"""It has no types."""

SIZES: Dict[str, Tuple[float, float]] = {"narrow": (330.0, 190.0), "wide": (980.0, 210.0)}
"""Both are in the page, and the one that fits is shown."""

_ALSO = ("client.p95_ms", "client.iops", "client.bytes_s", "recovery.bytes_s", "scrub.bytes_s", "snaptrim.objects_s")
"""Worth a look where they were seen, whatever the objectives are."""

_MOST, _MOST_NUMBERS = 6, 30


def metrics_in_time(findings: Findings) -> List[str]:
    """Give the metrics worth drawing: those of the objectives, then others that were seen at work."""
    largest: Dict[str, float] = {}
    for window in (*findings.windows, *findings.hours):
        for name, measure in window.measures.items():
            largest[name] = max(largest.get(name, 0.0), measure.mean)
    for trial in findings.trials:
        for name, mean in trial.means.items():
            largest[name] = max(largest.get(name, 0.0), mean)
    of_objectives = [name for name in findings.metrics if name in largest]
    return list(dict.fromkeys([*of_objectives, *(name for name in _ALSO if largest.get(name))]))[:_MOST]


@dataclass(frozen=True)
class Stretch:
    """A part of the past that is drawn by itself: minutes would be lost beside days."""

    title: str
    start: float
    end: float
    trials: Tuple[Trial, ...] = ()
    windows: Tuple[Window, ...] = ()

    @property
    def name(self) -> str:
        """As a name in the page."""
        return self.title.lower().replace(" ", "-")


def stretches(findings: Findings) -> List[Stretch]:
    """Give the tuning run, the minutes and the hours, as far as there are any."""
    trials = tuple(trial for trial in findings.trials if trial.seconds > 0)
    parts = []
    if trials:
        end = max(trial.at + trial.seconds for trial in trials)
        parts.append(Stretch("The tuning run", min(trial.at for trial in trials), end, trials=trials))
    for title, windows in (("Minute by minute", findings.windows), ("Hour by hour", findings.hours)):
        if windows:
            parts.append(Stretch(title, windows[0].start, windows[-1].end, windows=windows))
    return parts


def in_time(findings: Findings, part: Stretch, metric: str, size: str) -> Optional[str]:
    """Draw a metric over time: windows as a curve with its spread, trials as bars, changes as numbered lines."""
    points = _points(part.windows, metric)
    trials = [trial for trial in part.trials if metric in trial.measures]
    if not points and not trials:
        return None
    heights = [(mean, deviation) for _, _, mean, deviation in points if mean < NEVER_S]
    heights += [(trial.measures[metric].mean, trial.measures[metric].deviation) for trial in trials]
    values = [value for mean, deviation in heights for value in (mean, mean + deviation)]
    bounds = bounds_of(findings)
    if metric in bounds:
        values.append(bounds[metric][0])
    with drawing():
        chart = figure(*SIZES[size])
        axes = chart.subplots()
        axis = Axis(axes, "y", metric, values)
        margin = 0.02 * (part.end - part.start)
        axes.set_xlim(when(part.start - margin), when(part.end + margin))
        _curve(axes, axis, points)
        for trial in trials:
            _trial(axes, axis, trial, metric)
        if metric in bounds:
            draw_bound(axes, axis, *bounds[metric], False)
        _changes(axes, findings.marks)
        time_axis(axes, size)
        axes.set_title(f"{metric} ({axis.unit})" if axis.unit else metric, loc="left", pad=16 if findings.marks else 6)
        name = f"{size}-{part.name}-{metric}".replace(".", "-")
        return inline(chart, name, f"{METRICS[metric].meaning} over time: {part.title.lower()}")


def time_axis(axes: Axes, size: str) -> None:
    """Have hours and days below it."""
    locator = ticks(size)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(_DATES.ConciseDateFormatter(locator))


def ticks(size: str) -> Any:
    """Give where the hours stand; between 3 and 5 of them matplotlib finds no step for some lengths, such as 2 h 30."""
    fewest, most = (2, 5) if size == "narrow" else (3, 10)
    return _DATES.AutoDateLocator(minticks=fewest, maxticks=most)


def _points(windows: Sequence[Window], metric: str) -> List[Tuple[float, float, float, float]]:
    """Start, end, mean and deviation of each window that saw the metric."""
    return [
        (window.start, window.end, window.measures[metric].mean, window.measures[metric].deviation)
        for window in windows
        if metric in window.measures
    ]


def _curve(axes: Axes, axis: Axis, points: Sequence[Tuple[float, float, float, float]]) -> None:
    """Draw a curve with its spread, broken where nothing was measured for long."""
    pieces: List[List[Tuple[float, float, float, float]]] = []
    for point in points:
        longest_gap = max(LONGEST_GAP_S, 2 * (point[1] - point[0]))
        if not pieces or point[0] - pieces[-1][-1][1] > longest_gap:
            pieces.append([])
        pieces[-1].append(point)
    for piece in pieces:
        at = [when((start + end) / 2) for start, end, _, _ in piece]
        low = axis.scaled([max(0.0, mean - deviation) for _, _, mean, deviation in piece])
        high = axis.scaled([mean + deviation for _, _, mean, deviation in piece])
        axes.fill_between(at, low, high, color=BLUE, alpha=0.18, linewidth=0)
        marker = "o" if len(piece) == 1 else ""
        axes.plot(at, axis.scaled([mean for _, _, mean, _ in piece]), color=BLUE, marker=marker)


def _trial(axes: Axes, axis: Axis, trial: Trial, metric: str) -> None:
    """Draw a trial from its beginning to its end, with the deviation inside of it."""
    start, end, measure = when(trial.at), when(trial.at + trial.seconds), trial.measures[metric]
    kinds = trial.run.label == IN_FORCE, set(trial.run.settings) == {PROFILE}, trial.run.kind == "check"
    colour = next((own for own, so in zip((ORANGE, BLUE, GREEN), kinds) if so), INK)
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
        if not left <= at <= right:
            continue
        axes.axvline(at, color=MUTED, linewidth=1, linestyle=(0, (1, 2)))
        if at - last > (right - left) / _MOST_NUMBERS:
            axes.text(at, 1.02, str(number), transform=axes.get_xaxis_transform(), ha="center", fontsize=9)
            last = at


def when(at: float) -> float:
    """Days, as the axis counts them."""
    return float(_DATES.date2num(datetime.fromtimestamp(at, timezone.utc)))
