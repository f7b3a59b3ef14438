"""What a search has learnt, drawn: which knobs matter, what each does by itself, and how the search went."""

from __future__ import annotations

import math
from typing import Any, List, Sequence, Tuple

from matplotlib.ticker import FuncFormatter, MaxNLocator

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.optimise.posterior_summary import Dependence, Importance, TrialProgress
from ceph_tuner.report.axes import WIDE_RANGE, WIDTH, Axis, short
from ceph_tuner.report.svg import BLUE, GREEN, INK, MUTED, drawing, figure, inline
from ceph_tuner.report.words import shown, spoken
from ceph_tuner.search.explanation import notable

FEASIBLE = 0.5
"""Probability of keeping every hard objective from which settings count as keeping them."""


def importance(entry: Importance) -> str:
    """Draw which knobs a metric depends on, each share with its interval."""
    knobs = notable(entry)[:8]
    with drawing():
        chart = figure(WIDTH, 52 + 22 * len(knobs))
        axes = chart.subplots()
        totals = [100 * knob.total for knob in knobs]
        lows = [100 * max(0.0, knob.total - knob.total_interval[0]) for knob in knobs]
        highs = [100 * max(0.0, knob.total_interval[1] - knob.total) for knob in knobs]
        axes.barh(range(len(knobs)), totals, xerr=[lows, highs], color=BLUE, alpha=0.55, ecolor=INK, height=0.6)
        axes.set_yticks(range(len(knobs)), [short(spoken(knob.name)) for knob in knobs])
        axes.set_ylim(len(knobs) - 0.4, -0.6)
        axes.set_xlim(0, 105)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
        axes.grid(visible=False, axis="y")
        return inline(chart, f"matters-{entry.metric}".replace(".", "-"), f"shares of knobs in {entry.metric}")


def dependence(curve: Dependence, number: int) -> str:
    """Draw a metric over a knob's values, averaged over the other knobs."""
    places, ticks, labels = knob_axis(curve)
    with drawing():
        chart = figure(WIDTH, 170)
        axes = chart.subplots()
        axis = Axis(axes, "y", curve.metric, [*curve.low, *curve.high])
        order = sorted(range(len(places)), key=places.__getitem__)
        at = [places[one] for one in order]
        low, mean, high = (axis.scaled([side[one] for one in order]) for side in (curve.low, curve.mean, curve.high))
        axes.fill_between(at, low, high, color=BLUE, alpha=0.22, linewidth=0)
        axes.plot(at, mean, color=BLUE, marker="o", markersize=4)
        axes.set_xticks(ticks, labels)
        axes.set_xlabel(short(spoken(curve.name), 46))
        axes.set_ylabel(f"{curve.metric} ({axis.unit})" if axis.unit else curve.metric)
        return inline(chart, f"curve{number}", f"{curve.metric} over {spoken(curve.name)}")


def progress(entries: Sequence[TrialProgress]) -> str:
    """Draw how the search went: the loss of each trial as it is seen now, and the least so far."""
    with drawing():
        chart = figure(WIDTH, 214)
        axes = chart.subplots()
        numbers = [entry.number for entry in entries]
        axes.vlines(numbers, [entry.low for entry in entries], [entry.high for entry in entries], color=BLUE, alpha=0.4)
        # what misses a hard objective may well have less to wish for: it must not look like the best
        for misses_hard, marker, colour, words in (
            (False, "o", BLUE, "keeps all hard"),
            (True, "x", MUTED, "does not"),
        ):
            own = [entry for entry in entries if (entry.feasible < FEASIBLE) == misses_hard]
            if own:
                at = [entry.number for entry in own], [entry.mean for entry in own]
                axes.plot(*at, linestyle="", marker=marker, markersize=5, color=colour, label=words)
        best = [(entry.number, entry.best) for entry in entries if entry.best is not None]
        if best:
            axes.step(*zip(*best), where="post", color=GREEN, label="least so far")
        chart.legend(loc="outside lower center", ncols=3, columnspacing=1.0, handletextpad=0.3)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.set_xlabel("settings told to the search")
        axes.set_ylabel("loss")
        return inline(chart, "progress", "the loss of each trial, and the least so far")


def knob_axis(curve: Dependence) -> Tuple[List[float], List[float], List[str]]:
    """Give where a knob's values lie, and ticks; no limit stands beyond the largest one."""
    knob = KNOBS.get(curve.name)

    def written(value: Any) -> str:
        return str(value) if knob is None else shown(knob, value)

    numbers = [value for value in curve.values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) < len(curve.values):
        return (
            list(map(float, range(len(curve.values)))),
            list(range(len(curve.values))),
            [short(written(value), 14) for value in curve.values],
        )
    has_no_limit = curve.name.endswith("_lim") and 0 in numbers
    limits = sorted({float(value) for value in numbers if value or not has_no_limit})
    logarithmic = bool(limits) and limits[0] > 0 and limits[-1] > WIDE_RANGE * limits[0]

    def placed(value: float) -> float:
        return math.log(value) if logarithmic else value

    spots = [placed(value) for value in limits] or [0.0]
    beyond = spots[-1] + 0.14 * ((spots[-1] - spots[0]) or 1.0)
    places = [beyond if has_no_limit and not value else placed(float(value)) for value in numbers]
    tick_values = _spread(limits, spots)
    ticks, labels = [placed(value) for value in tick_values], [written(_plain(value, numbers)) for value in tick_values]
    return places, ticks + [beyond] * has_no_limit, labels + ["none"] * has_no_limit


def _spread(values: Sequence[float], spots: Sequence[float], most: int = 5) -> List[float]:
    """Some of the values, so far apart that their names do not touch."""
    places: List[int] = []
    for place, spot in enumerate(spots[: len(values)]):
        if not places or spot - spots[places[-1]] >= (spots[-1] - spots[0]) / most:
            places.append(place)
    return [values[place] for place in places]


def _plain(value: float, numbers: Sequence[Any]) -> Any:
    """The number as it was given: a whole one stays one."""
    return next(number for number in numbers if number == value)
