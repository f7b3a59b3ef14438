"""Draws the Grafana dashboard's own JSON as a page, with what a Prometheus server answers to its queries.

A drawing, not Grafana: places, titles, units, legends, bounds, marks, transformations and what a panel says when it is
empty are those of the JSON. Whatever of the JSON is not drawn here raises ValueError, so that no drawing leaves it out.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Protocol, Sequence, Tuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from ceph_tuner.cluster.prometheus import QueryAnswer, Series, Span
from ceph_tuner.core.moments import duration
from ceph_tuner.report.plots_in_time import time_axis, when
from ceph_tuner.report.svg import BLUE, GREEN, MUTED, ORANGE, PURPLE, RED, drawing, figure, inline

WIDTH = 1280
"""Of the browser's window."""
MARGIN, COLUMNS, CELL, GAP = 16, 24, 30, 8
"""Grafana's: around the grid, columns, a row's height and what is between panels, in pixels."""
HEADER, LEGEND_LINE = 42, 19
EMPTY = "No data"
COLOURS = {GREEN: "green", ORANGE: "orange", BLUE: "blue", RED: "red", PURPLE: "purple", MUTED: "muted"}
"""By the stand-in that matplotlib draws with, the page's name."""
DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)))
WITHOUT_THRESHOLDS = ({"color": "green", "value": None}, {"color": "red", "value": 80})
"""What Grafana takes where the JSON has none."""


class Answering(Protocol):
    """A Prometheus server, as far as it is asked."""

    def query(self, expression: str, at_s: float) -> QueryAnswer:
        """The values at one moment."""

    def query_range(self, expression: str, span: Span) -> QueryAnswer:
        """The values at every moment of a span."""


@dataclass(frozen=True)
class Source:
    """Where the values are from, and of which time."""

    server: Answering
    chosen: Callable[[str], str]
    """Puts the values of the dashboard's variables into an expression."""
    span: Span

    def answers(self, target: Mapping[str, Any]) -> Sequence[Series]:
        """Series of a panel's query: as of the end of the span, or at each moment of it."""
        expression = self.chosen(target["expr"])
        if target.get("instant"):
            return self.server.query(expression, self.span.end / 1000).series
        return self.server.query_range(expression, self.span).series


@dataclass(frozen=True)
class Part:
    """A row's title, or a panel with its body."""

    kind: str
    title: str
    style: str
    body: str = ""
    silent: Tuple[str, ...] = ()
    """Legends of its queries that have no series."""


def duration_text(seconds: float) -> str:
    """Give `12 ms`, `3.2 s`, `15 min`."""
    return EngFormatter(unit="s")(seconds) if abs(seconds) < 1 else duration(seconds)


def counted(unit: str) -> Callable[[float], str]:
    """Write numbers with a prefix from a thousand on, and none for what is below one."""
    large = EngFormatter(unit=unit, sep=" " if unit else "")
    return lambda value: large(float(f"{value:.3g}")) if abs(value) >= 1000 else f"{value:.3g} {unit}".rstrip()


UNITS: Dict[str, Callable[[float], str]] = {
    "short": counted(""),
    "none": lambda value: f"{value:g}",
    "percentunit": lambda value: f"{100 * value:.3g}%",
    "ops": counted("ops/s"),
    "Bps": counted("B/s"),
    "s": duration_text,
}
"""How Grafana's units are written."""


def unit_of(panel: Mapping[str, Any]) -> Callable[[float], str]:
    """Give how a panel's values are written."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    if unit not in UNITS:
        raise ValueError(f"{panel['title']}: values in {unit} are not drawn")
    return UNITS[unit]


def legend(target: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Name a series as its query's legend says."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), target["legendFormat"]).strip()


def page(dashboard: Mapping[str, Any], source: Source, rows: Sequence[str] = ()) -> str:
    """Draw the dashboard, or those of its rows alone."""
    drawn = list(parts(dashboard, source, rows))
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    height = max(bottom for bottom, _ in drawn)
    return templates.get_template("drawn_dashboard.html.j2").render(
        title=dashboard["title"], height=height, parts=[part for _, part in drawn]
    )


def parts(dashboard: Mapping[str, Any], source: Source, rows: Sequence[str] = ()) -> Iterator[Tuple[int, Part]]:
    """Each row and panel, with where it ends in pixels from the top of the first."""
    marks = list(_marks(dashboard, source))
    row, above_row, left_out = "", 0, 0
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        if panel["type"] == "row":
            left_out += place["y"] - above_row if rows and row not in rows else 0
            row, above_row = panel["title"], place["y"]
        if rows and row not in rows:
            continue
        column = (WIDTH - 2 * MARGIN + GAP) / COLUMNS
        width, height = place["w"] * column - GAP, place["h"] * (CELL + GAP) - GAP
        above = (place["y"] - left_out) * (CELL + GAP)
        style = f"left: {place['x'] * column:.1f}px; top: {above}px; width: {width:.1f}px; height: {height}px"
        if panel["type"] == "row":
            yield above + height, Part("row", panel["title"], style)
            continue
        if panel["type"] not in _KINDS:
            raise ValueError(f"{panel['title']}: panels of the type {panel['type']} are not drawn")
        answers = [(target, source.answers(target)) for target in panel["targets"]]
        silent = tuple(target["legendFormat"] for target, series in answers if not series)
        if any(series for _, series in answers):
            body = _KINDS[panel["type"]](panel, answers, _Room(width - 18, height - HEADER, source.span, marks))
        else:
            words = panel["fieldConfig"]["defaults"].get("noValue", EMPTY)
            body = Markup('<div class="absent">{}</div>').format(words)
        yield above + height, Part(panel["type"], panel["title"], style, body, silent)


@dataclass(frozen=True)
class _Room:
    """What a panel's body has for itself, and what is marked in it."""

    width: float
    height: float
    span: Span
    marks: Sequence[Tuple[str, List[float]]]


Answers = Sequence[Tuple[Mapping[str, Any], Sequence[Series]]]


def _marks(dashboard: Mapping[str, Any], source: Source) -> Iterator[Tuple[str, List[float]]]:
    """Colour and beginnings of what is marked in all plots."""
    for entry in dashboard["annotations"]["list"]:
        step = 1000 * int(re.fullmatch(r"(\d+)s", entry["step"])[1])  # type: ignore[index]
        span = Span(source.span.start, source.span.end, step)
        begun = []
        for series in source.server.query_range(source.chosen(entry["expr"]), span).series:
            stamps = [at for at, _ in series.points]
            begun += [at for before, at in zip([-math.inf, *stamps], stamps) if at - before > 1.5 * step / 1000]
        yield entry["iconColor"], begun


def _time_series(panel: Mapping[str, Any], answers: Answers, room: _Room) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    named = [(legend(target, each.labels), each) for target, series in answers for each in series]
    lines = math.ceil(sum(len(name) * 7.5 + 31 for name, _ in named) / room.width)
    height = room.height - min(lines * LEGEND_LINE, 0.35 * room.height)
    with drawing():
        chart = figure(room.width, height)
        axes = chart.subplots()
        keys = _curves(axes, named, defaults, room.span)
        axes.set_xlim(when(room.span.start / 1000), when(room.span.end / 1000))
        _value_axis(axes, panel)
        time_axis(axes, "wide" if room.width > 600 else "narrow")
        stand_ins = {name: stand_in for stand_in, name in COLOURS.items()}
        for colour, moments in room.marks:
            for at in moments:
                axes.axvline(when(at), color=stand_ins[colour], linewidth=0.8, linestyle=(0, (3, 3)))
        svg = inline(chart, f"panel-{panel['id']}", panel["title"])
    key = Markup('<span><i style="background: var(--{})"></i>{}</span>')
    legends = Markup("").join(key.format(colour, name) for colour, name in keys)
    return Markup('<div class="plot">{}</div><div class="legend">{}</div>').format(Markup(svg), legends)  # noqa: S704


def _curves(
    axes: Axes, named: Sequence[Tuple[str, Series]], defaults: Mapping[str, Any], span: Span
) -> List[Tuple[str, str]]:
    """Draw them; the page's colour and the name of each."""
    custom, step_s, keys = defaults["custom"], span.step / 1000, []
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    moments = [span.start / 1000 + number * step_s for number in range(span.count)]
    days, below = [when(at) for at in moments], [0.0] * len(moments)
    for number, (name, series) in enumerate(named):
        stand_in = list(COLOURS)[number % len(COLOURS)]
        seen = {round(at / step_s): value for at, value in series.points}
        values = [seen.get(round(at / step_s), math.nan) for at in moments]
        if stacked:
            values = [value + base for value, base in zip(values, below)]
        dashes: Any = DASHES[number // len(COLOURS) % len(DASHES)]
        axes.plot(days, values, color=stand_in, linewidth=1.2, linestyle=dashes)
        base = below if stacked else [0.0] * len(moments)
        axes.fill_between(days, base, values, color=stand_in, alpha=custom["fillOpacity"] / 100, linewidth=0)
        below = [held if math.isnan(value) else value for held, value in zip(below, values)] if stacked else below
        keys.append((COLOURS[stand_in], name))
    return keys


def _value_axis(axes: Axes, panel: Mapping[str, Any]) -> None:
    """Its unit, where it begins, and lines at the bounds."""
    unit, defaults = unit_of(panel), panel["fieldConfig"]["defaults"]
    if "min" in defaults:
        idle = axes.dataLim.ymax <= defaults["min"]
        axes.set_ylim(defaults["min"], defaults["min"] + 1.0 if idle else None)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: unit(value)))
    if defaults["custom"].get("thresholdsStyle", {}).get("mode") == "line":
        stand_ins = {name: stand_in for stand_in, name in COLOURS.items()}
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is not None:
                axes.axhline(step["value"], color=stand_ins[step["color"]], linewidth=1.5)


def _stat(panel: Mapping[str, Any], answers: Answers, room: _Room) -> str:
    defaults, mode = panel["fieldConfig"]["defaults"], panel["options"]["textMode"]
    steps = defaults.get("thresholds", {}).get("steps", WITHOUT_THRESHOLDS)
    cell = Markup('<div class="stat">{}<b style="color: var(--{}); font-size: {:.0f}px">{}</b></div>')
    cells = []
    for target, series in answers:
        for each in series:
            value, name = each.points[-1][1], legend(target, each.labels)
            colour = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
            text = {"name": name, "value_and_name": unit_of(panel)(value)}[mode]
            size = min(44.0, room.width / (0.66 * max(len(text), 1)))
            above = "" if mode == "name" else Markup("<span>{}</span>").format(name)
            cells.append(cell.format(above, colour, size, text))
    return Markup("").join(cells)


def _table(panel: Mapping[str, Any], answers: Answers, room: _Room) -> str:
    """Rows by what all labels are; a query's values in a column of its letter."""
    rows: Dict[Tuple[Tuple[str, str], ...], Dict[str, str]] = {}
    unit = unit_of(panel)
    for target, series in answers:
        for each in series:
            of = {name: value for name, value in sorted(each.labels.items()) if name != "__name__"}
            row = rows.setdefault(tuple(of.items()), {"Time": "", **of})
            row[f"Value #{target['refId']}"] = unit(each.points[-1][1])
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    names = {name: name for name in columns}
    if "merge" not in [each["id"] for each in panel["transformations"]]:
        raise ValueError(f"{panel['title']}: only merged tables are drawn")
    for transformation in panel["transformations"]:
        options = transformation["options"]
        if transformation["id"] == "organize":
            columns = [name for name in columns if not options["excludeByName"].get(name)]
            names.update(options["renameByName"])
        elif transformation["id"] != "merge":
            raise ValueError(f"{panel['title']}: the transformation {transformation['id']} is not drawn")
    head = Markup("").join(Markup("<th>{}</th>").format(names[name]) for name in columns)
    lines = [
        Markup("").join(Markup("<td>{}</td>").format(row.get(name, "")) for name in columns) for row in rows.values()
    ]
    body = Markup("").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


_KINDS: Dict[str, Callable[[Mapping[str, Any], Answers, _Room], str]] = {
    "timeseries": _time_series,
    "stat": _stat,
    "table": _table,
}
