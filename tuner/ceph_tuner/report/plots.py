"""What findings look like: each plot one figure of a phone's width, to stand beside others where there is room."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from ceph_tuner.bayesian.explaining import Dependence, Importance, Progress
from ceph_tuner.knobs import KNOBS
from ceph_tuner.metrics import METRICS
from ceph_tuner.recommendation.accounts import Account
from ceph_tuner.report import Findings, Option
from ceph_tuner.report.svg import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, RED, drawing, figure, inline
from ceph_tuner.report.words import scale_of, shown, spoken
from ceph_tuner.search.explaining import notable

WIDTH = 330.0
_WIDE_RANGE = 30.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""

_BUILT_IN_MARKERS = ("s", "^", "v", "P", "X", "D")


def role_of(option: Option, better: bool) -> str:
    """Say what an option is to the reader."""
    if option.chosen and better:
        return "recommended"
    if option.in_force:
        return "in force"
    if option.built_in:
        return "built-in profile"
    return "closest" if option.chosen else "tried"


def objective(found: Findings, place: int) -> str:
    """Compare the options in one objective's metric, with intervals and the bound."""
    verdict = found.verdicts(found.options[0])[place]
    wanted, bound = verdict.objective, verdict.bound
    options = [option for option in compared(found) if wanted.metric in option.seen]
    with drawing():
        drawn = figure(WIDTH, 74 + 23 * len(options))
        axes = drawn.subplots()
        values = [option.seen[wanted.metric].mean for option in options] + ([] if bound is None else [bound])
        ends = [end for option in options for end in option.seen[wanted.metric].interval or ()]
        axis = Axis(axes, "x", wanted.metric, [*values, *ends])
        for row, option in enumerate(options):
            seen = option.seen[wanted.metric]
            colour, marker = look(option, options, found.better)
            if seen.interval is not None:
                axes.plot(axis.scaled(seen.interval), [row, row], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot(axis.scaled([seen.mean]), [row], color=colour, marker=marker, markersize=_size(marker))
        if bound is not None:
            draw_bound(axes, axis, bound, wanted.comparison == "<=", vertical=True)
        axes.set_yticks(range(len(options)), [_short(option.label) for option in options])
        axes.set_ylim(len(options) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        return inline(drawn, f"objective{place}", f"{wanted.metric} under {len(options)} settings, with the bound")


def trade_off(found: Findings, one: str, other: str) -> str:
    """Put everything that was tried into the plane of two metrics, with the front that nothing passes."""
    points = [option for option in found.options if one in option.seen and other in option.seen]
    cloud = [means for means in found.tried if one in means and other in means]
    with drawing():
        drawn = figure(WIDTH, 330)
        axes = drawn.subplots()
        bounds = bounds_of(found)
        x_values = [means[one] for means in cloud] + [point.seen[one].mean for point in points]
        y_values = [means[other] for means in cloud] + [point.seen[other].mean for point in points]
        x = Axis(axes, "x", one, [*x_values, *(bounds[name][0] for name in (one,) if name in bounds)])
        y = Axis(axes, "y", other, [*y_values, *(bounds[name][0] for name in (other,) if name in bounds)])
        if cloud:
            seen = [x.scaled([means[one] for means in cloud]), y.scaled([means[other] for means in cloud])]
            axes.plot(*seen, linestyle="", marker=".", color=MUTED, markersize=5, label="tried")
        front = pareto(list(zip(x_values, y_values)), METRICS[one].lower_is_better, METRICS[other].lower_is_better)
        line = x.scaled([at for at, _ in front]), y.scaled([at for _, at in front])
        # between two of them nothing was tried: there the better of them in the other metric is known to be possible
        style = "steps-post" if METRICS[one].lower_is_better else "steps-pre"
        axes.plot(*line, color=MUTED, linewidth=1.2, drawstyle=style, label="front")
        named = compared(found)
        for point in points:
            colour, marker = look(point, points, found.better)
            label = _short(point.label) if point in named else None
            marks = [x.scaled([point.seen[one].mean]), y.scaled([point.seen[other].mean])]
            axes.plot(*marks, linestyle="", marker=marker, color=colour, markersize=_size(marker), label=label)
        for name, axis, vertical in ((one, x, True), (other, y, False)):
            if name in bounds:
                draw_bound(axes, axis, *bounds[name], vertical)
        axes.set_xlabel(f"{one} ({x.unit})" if x.unit else one)
        axes.set_ylabel(f"{other} ({y.unit})" if y.unit else other)
        drawn.legend(loc="outside lower center", ncols=2, columnspacing=1.0, handletextpad=0.3)
        return inline(drawn, f"trade-off-{one}-{other}".replace(".", "-"), f"{other} against {one} of all settings")


def importance(entry: Importance) -> str:
    """Draw which knobs a metric depends on, each share with its interval."""
    knobs = notable(entry)[:8]
    with drawing():
        drawn = figure(WIDTH, 52 + 22 * len(knobs))
        axes = drawn.subplots()
        totals = [100 * knob.total for knob in knobs]
        lows = [100 * max(0.0, knob.total - knob.total_interval[0]) for knob in knobs]
        highs = [100 * max(0.0, knob.total_interval[1] - knob.total) for knob in knobs]
        axes.barh(range(len(knobs)), totals, xerr=[lows, highs], color=BLUE, alpha=0.55, ecolor=INK, height=0.6)
        axes.set_yticks(range(len(knobs)), [_short(spoken(knob.name)) for knob in knobs])
        axes.set_ylim(len(knobs) - 0.4, -0.6)
        axes.set_xlim(0, 105)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
        axes.grid(visible=False, axis="y")
        return inline(drawn, f"matters-{entry.metric}".replace(".", "-"), f"shares of knobs in {entry.metric}")


def dependence(curve: Dependence, number: int) -> str:
    """Draw a metric over a knob's values, averaged over the other knobs."""
    places, ticks, labels = knob_axis(curve)
    with drawing():
        drawn = figure(WIDTH, 170)
        axes = drawn.subplots()
        axis = Axis(axes, "y", curve.metric, [*curve.low, *curve.high])
        order = sorted(range(len(places)), key=places.__getitem__)
        at = [places[one] for one in order]
        low, mean, high = (axis.scaled([side[one] for one in order]) for side in (curve.low, curve.mean, curve.high))
        axes.fill_between(at, low, high, color=BLUE, alpha=0.22, linewidth=0)
        axes.plot(at, mean, color=BLUE, marker="o", markersize=4)
        axes.set_xticks(ticks, labels)
        axes.set_xlabel(_short(spoken(curve.name), 46))
        axes.set_ylabel(f"{curve.metric} ({axis.unit})" if axis.unit else curve.metric)
        return inline(drawn, f"curve{number}", f"{curve.metric} over {spoken(curve.name)}")


def capacity(classes: Sequence[Account]) -> str:
    """Draw what each class of an OSD may have, needs, is owed and gets."""
    with drawing():
        drawn = figure(WIDTH, 104 + 34 * len(classes))
        axes = drawn.subplots()
        widest = 100 * max(1.0, *(share for entry in classes for share in (entry.owed, entry.got, entry.needed)))
        for row, entry in enumerate(classes):
            limit = widest * 1.05 if entry.limit is None else 100 * entry.limit
            first = row == 0
            axes.barh(row, limit, color=MUTED, alpha=0.28, height=0.62, label="up to its limit" if first else None)
            reserved = 100 * entry.reserved
            axes.barh(row, reserved, color=BLUE, alpha=0.6, height=0.62, label="reserved" if first else None)
            for share, marker, colour, words in (
                (entry.needed, "|", RED, "needed"),
                (entry.owed, "D", PURPLE, "owed"),
                (entry.got, "o", INK, "got"),
            ):
                size = 17 if marker == "|" else 7
                marks: Dict[str, Any] = {"marker": marker, "color": colour, "markersize": size, "markeredgewidth": 2}
                if marker != "|":
                    marks.update(markerfacecolor="none" if marker == "D" else colour)
                axes.plot([100 * share], [row], linestyle="", label=words if first else None, **marks)
        axes.set_yticks(range(len(classes)), [_short(class_name(entry.name)) for entry in classes])
        axes.set_ylim(len(classes) - 0.4, -0.6)
        axes.set_xlim(0, widest * 1.05)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
        axes.grid(visible=False, axis="y")
        drawn.legend(loc="outside lower center", ncols=3, columnspacing=1.0, handletextpad=0.4, markerscale=0.8)
        return inline(drawn, "capacity", "shares of an OSD's capacity, class by class")


def progress(entries: Sequence[Progress]) -> str:
    """Draw how the search went: the loss of each trial as it is seen now, and the least so far."""
    with drawing():
        drawn = figure(WIDTH, 190)
        axes = drawn.subplots()
        numbers = [entry.number for entry in entries]
        axes.vlines(numbers, [entry.low for entry in entries], [entry.high for entry in entries], color=BLUE, alpha=0.4)
        axes.plot(numbers, [entry.mean for entry in entries], linestyle="", marker="o", markersize=4, color=BLUE)
        best = [(entry.number, entry.best) for entry in entries if entry.best is not None]
        if best:
            axes.step(*zip(*best), where="post", color=GREEN, label="least so far")
            axes.legend(loc="best")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.set_xlabel("settings told to the search")
        axes.set_ylabel("loss")
        return inline(drawn, "progress", "the loss of each trial, and the least so far")


def compared(found: Findings) -> List[Option]:
    """Give the options worth a name: what is in force, the built-in profiles, and the chosen one."""
    return [option for option in found.options if option.in_force or option.built_in or option.chosen]


def pareto(points: Sequence[Tuple[float, float]], less_x: bool, less_y: bool) -> List[Tuple[float, float]]:
    """Give the points that no other one is better than in both, along the first coordinate."""
    signs = (1 if less_x else -1, 1 if less_y else -1)
    kept: List[Tuple[float, float]] = []
    least = math.inf
    for x, y in sorted(set(points), key=lambda point: (signs[0] * point[0], signs[1] * point[1])):
        if signs[1] * y < least:
            kept.append((x, y))
            least = signs[1] * y
    return sorted(kept)


def class_name(name: str) -> str:
    """A service class as one says it."""
    return name.replace("background_", "").replace("_", " ")


class Axis:
    """An axis in the unit that people read a metric in; from 0 on, or logarithmic where values differ by far."""

    def __init__(self, axes: Axes, side: str, metric: str, values: Sequence[float]) -> None:
        largest = max(values, default=0.0)
        self._scale, self.unit = scale_of(metric, largest)
        self.top = largest / self._scale
        positive = [value / self._scale for value in values if value > 0]
        self.logarithmic = len(positive) == len(values) and bool(values) and self.top > _WIDE_RANGE * min(positive)
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


def bounds_of(found: Findings) -> Mapping[str, Tuple[float, bool]]:
    """Metric -> its hard bound, else the soft one, and whether that is an upper one."""
    bounds: Dict[str, Tuple[float, bool]] = {}
    verdicts = found.verdicts(found.options[0]) if found.options else []
    for verdict in sorted(verdicts, key=lambda entry: not entry.objective.hard):
        if verdict.bound is not None:
            bounds.setdefault(verdict.objective.metric, (verdict.bound, verdict.objective.comparison == "<="))
    return bounds


def look(option: Option, options: Sequence[Option], better: bool) -> Tuple[str, str]:
    """Colour and marker: never the colour alone tells options apart."""
    role = role_of(option, better)
    if role in ("recommended", "closest"):
        return GREEN, "*"
    if role == "in force":
        return ORANGE, "o"
    if role == "built-in profile":
        place = [other.label for other in options if other.built_in and not other.in_force].index(option.label)
        return BLUE, _BUILT_IN_MARKERS[place % len(_BUILT_IN_MARKERS)]
    return MUTED, "."


def _size(marker: str) -> float:
    return 12.0 if marker == "*" else 8.0


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
            [_short(written(value), 14) for value in curve.values],
        )
    unlimited = curve.name.endswith("_lim") and 0 in numbers
    bounded = sorted({float(value) for value in numbers if value or not unlimited})
    logarithmic = bool(bounded) and bounded[0] > 0 and bounded[-1] > _WIDE_RANGE * bounded[0]

    def placed(value: float) -> float:
        return math.log(value) if logarithmic else value

    spots = [placed(value) for value in bounded] or [0.0]
    beyond = spots[-1] + 0.14 * ((spots[-1] - spots[0]) or 1.0)
    places = [beyond if unlimited and not value else placed(float(value)) for value in numbers]
    chosen = _spread(bounded, spots)
    ticks, labels = [placed(value) for value in chosen], [written(_plain(value, numbers)) for value in chosen]
    return places, ticks + [beyond] * unlimited, labels + ["none"] * unlimited


def _spread(values: Sequence[float], spots: Sequence[float], most: int = 5) -> List[float]:
    """Some of the values, so far apart that their names do not touch."""
    kept: List[int] = []
    for place, spot in enumerate(spots[: len(values)]):
        if not kept or spot - spots[kept[-1]] >= (spots[-1] - spots[0]) / most:
            kept.append(place)
    return [values[place] for place in kept]


def _plain(value: float, numbers: Sequence[Any]) -> Any:
    """The number as it was given: a whole one stays one."""
    return next(number for number in numbers if number == value)


def _short(label: str, most: int = 26) -> str:
    """Cut what would leave no room for the plot; the table beside it has all of it."""
    return label if len(label) <= most else f"{label[: most - 1]}…"


def pairs(metrics: Sequence[str], most: int = 3) -> List[Tuple[str, str]]:
    """Pairs of metrics worth a trade-off: the first with each of the others."""
    return [(metrics[0], other) for other in metrics[1 : most + 1]] if metrics else []
