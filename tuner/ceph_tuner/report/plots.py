"""What findings look like: each plot one figure of a phone's width, to stand beside others where there is room."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Sequence, Tuple

from matplotlib.ticker import FuncFormatter

from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.recommend.accounts import Account
from ceph_tuner.report import Findings, Option
from ceph_tuner.report.axes import WIDTH, Axis, bounds_of, draw_bound, short
from ceph_tuner.report.svg import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, RED, drawing, figure, inline

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


def objective(findings: Findings, place: int) -> str:
    """Compare the options in one objective's metric, with intervals and the bound."""
    verdict = findings.verdicts(findings.options[0])[place]
    aim, bound = verdict.objective, verdict.bound
    options = [option for option in compared(findings) if aim.metric in option.seen]
    with drawing():
        chart = figure(WIDTH, 74 + 23 * len(options))
        axes = chart.subplots()
        values = [option.seen[aim.metric].mean for option in options] + ([] if bound is None else [bound])
        ends = [end for option in options for end in option.seen[aim.metric].interval or ()]
        axis = Axis(axes, "x", aim.metric, [*values, *ends])
        for row, option in enumerate(options):
            estimate = option.seen[aim.metric]
            colour, marker = look(option, options, findings.better)
            if estimate.interval is not None:
                axes.plot(
                    axis.scaled(estimate.interval), [row, row], color=colour, linewidth=2.5, solid_capstyle="butt"
                )
            axes.plot(axis.scaled([estimate.mean]), [row], color=colour, marker=marker, markersize=_size(marker))
        if bound is not None:
            draw_bound(axes, axis, bound, aim.comparison == "<=", vertical=True)
        axes.set_yticks(range(len(options)), [short(option.label) for option in options])
        axes.set_ylim(len(options) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        return inline(chart, f"objective{place}", f"{aim.metric} under {len(options)} settings, with the bound")


def trade_off(findings: Findings, one: str, other: str) -> str:
    """Put everything that was tried into the plane of two metrics, with the front that nothing passes."""
    points = [option for option in findings.options if one in option.seen and other in option.seen]
    cloud = [means for means in findings.tried if one in means and other in means]
    with drawing():
        chart = figure(WIDTH, 330)
        axes = chart.subplots()
        bounds = bounds_of(findings)
        x_values = [means[one] for means in cloud] + [point.seen[one].mean for point in points]
        y_values = [means[other] for means in cloud] + [point.seen[other].mean for point in points]
        x = Axis(axes, "x", one, [*x_values, *(bounds[name][0] for name in (one,) if name in bounds)])
        y = Axis(axes, "y", other, [*y_values, *(bounds[name][0] for name in (other,) if name in bounds)])
        if cloud:
            dots = [x.scaled([means[one] for means in cloud]), y.scaled([means[other] for means in cloud])]
            axes.plot(*dots, linestyle="", marker=".", color=MUTED, markersize=5, label="tried")
        front = pareto(list(zip(x_values, y_values)), METRICS[one].lower_is_better, METRICS[other].lower_is_better)
        line = x.scaled([at for at, _ in front]), y.scaled([at for _, at in front])
        # between two of them nothing was tried: there the better of them in the other metric is known to be possible
        style = "steps-post" if METRICS[one].lower_is_better else "steps-pre"
        axes.plot(*line, color=MUTED, linewidth=1.2, drawstyle=style, label="front")
        with_label = compared(findings)
        for point in points:
            colour, marker = look(point, points, findings.better)
            label = short(point.label) if point in with_label else None
            marks = [x.scaled([point.seen[one].mean]), y.scaled([point.seen[other].mean])]
            axes.plot(*marks, linestyle="", marker=marker, color=colour, markersize=_size(marker), label=label)
        for name, axis, vertical in ((one, x, True), (other, y, False)):
            if name in bounds:
                draw_bound(axes, axis, *bounds[name], vertical)
        axes.set_xlabel(f"{one} ({x.unit})" if x.unit else one)
        axes.set_ylabel(f"{other} ({y.unit})" if y.unit else other)
        chart.legend(loc="outside lower center", ncols=2, columnspacing=1.0, handletextpad=0.3)
        return inline(chart, f"trade-off-{one}-{other}".replace(".", "-"), f"{other} against {one} of all settings")


def capacity(classes: Sequence[Account]) -> str:
    """Draw what each class of an OSD may have, needs, is owed and gets."""
    with drawing():
        chart = figure(WIDTH, 104 + 34 * len(classes))
        axes = chart.subplots()
        widest = 100 * max(1.0, *(share for entry in classes for share in (entry.owed, entry.got, entry.needed)))
        for row, entry in enumerate(classes):
            limit = widest * 1.05 if entry.limit is None else 100 * entry.limit
            first = row == 0
            axes.barh(row, limit, color=MUTED, alpha=0.28, height=0.62, label="up to its limit" if first else None)
            reservation = 100 * entry.reserved
            axes.barh(row, reservation, color=BLUE, alpha=0.6, height=0.62, label="reserved" if first else None)
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
        axes.set_yticks(range(len(classes)), [short(class_name(entry.name)) for entry in classes])
        axes.set_ylim(len(classes) - 0.4, -0.6)
        axes.set_xlim(0, widest * 1.05)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
        axes.grid(visible=False, axis="y")
        chart.legend(loc="outside lower center", ncols=3, columnspacing=1.0, handletextpad=0.4, markerscale=0.8)
        return inline(chart, "capacity", "shares of an OSD's capacity, class by class")


def compared(findings: Findings) -> List[Option]:
    """Give the options worth a name: what is in force, the built-in profiles, and the chosen one."""
    return [option for option in findings.options if option.in_force or option.built_in or option.chosen]


def pareto(points: Sequence[Tuple[float, float]], less_x: bool, less_y: bool) -> List[Tuple[float, float]]:
    """Give the points that no other one is better than in both, along the first coordinate."""
    signs = (1 if less_x else -1, 1 if less_y else -1)
    front: List[Tuple[float, float]] = []
    least = math.inf
    for x, y in sorted(set(points), key=lambda point: (signs[0] * point[0], signs[1] * point[1])):
        if signs[1] * y < least:
            front.append((x, y))
            least = signs[1] * y
    return sorted(front)


def class_name(name: str) -> str:
    """A service class as one says it."""
    return name.replace("background_", "").replace("_", " ")


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


def pairs(metrics: Sequence[str], most: int = 3) -> List[Tuple[str, str]]:
    """Pairs of metrics worth a trade-off: the first with each of the others."""
    return [(metrics[0], other) for other in metrics[1 : most + 1]] if metrics else []
