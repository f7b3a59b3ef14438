"""A matplotlib figure as SVG in a page: text stays text, colours follow the page, names clash with no other plot."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any, Dict, List
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
BLUE, ORANGE, GREEN, RED, PURPLE = "#050505", "#060606", "#070707", "#080808", "#090909"
_VARIABLES: Dict[str, str] = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    BLUE: "--blue",
    ORANGE: "--orange",
    GREEN: "--green",
    RED: "--red",
    PURPLE: "--purple",
}
"""Stands for a colour of the page's style sheet while matplotlib draws: it differs between light, dark and print."""

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ceph-tuner",
    "text.parse_math": False,
    "axes.unicode_minus": False,
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10.5,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "figure.dpi": 72,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.5,
    "timezone": "UTC",
}
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_LEFT_OUT = (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style")
_DIGITS = re.compile(r"(\.\d\d)\d+")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_COLOUR = re.compile("|".join(_VARIABLES))


def figure(width: float, height: float) -> Figure:
    """Make a figure of this size in the units of its text (10.5 high); to be used within `drawing`."""
    return Figure(figsize=(width / 72, height / 72), layout="constrained")


def drawing() -> Any:
    """Give the context in which figures are made and written."""
    return mpl.rc_context(STYLE)


def inline(chart: Figure, name: str, label: str) -> str:
    """Write a figure as an `<svg>` element; `name` keeps its parts' names apart from those of other plots."""
    stream = io.StringIO()
    with warnings.catch_warnings():
        # letters that matplotlib's font lacks are the browser's to draw
        warnings.filterwarnings("ignore", message=".*missing from font.*", category=UserWarning)
        canvas: Any = FigureCanvasSVG(chart)
        canvas.print_svg(stream, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    # what matplotlib has written just now, not what somebody gave
    root = ElementTree.fromstring(stream.getvalue())  # noqa: S314
    for parent in list(root.iter()):
        for child in list(parent):
            # the style is for all of the page, which has its own
            if child.tag in _LEFT_OUT:
                parent.remove(child)
        parent.text = (parent.text or "").strip() or None
        parent.tail = None
        _rename(parent, name)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("aria-label", label)
    # a page has one name space for styles and elements: without prefixes it reads as HTML wants it
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _rename(element: ElementTree.Element, name: str) -> None:
    """Prefix names and references, and put the page's colours in."""
    identity = element.attrib.pop("id", None)
    if identity is not None and not element.tag.endswith("}g"):
        # groups are named for people who edit the file: nothing refers to them
        element.set("id", f"{name}-{identity}")
    for key, value in list(element.attrib.items()):
        if key == f"{{{_XLINK}}}href":
            del element.attrib[key]
            element.set("href", f"#{name}-{value[1:]}")
        elif key in ("style", "clip-path", "fill", "stroke"):
            text = _REFERENCE.sub(lambda match: f"url(#{name}-{match.group(1)})", value)
            element.set(key, _COLOUR.sub(lambda match: f"var({_VARIABLES[match.group(0)]})", _own_font(text)))
        elif key in ("d", "x", "y", "transform", "points"):
            element.set(key, _DIGITS.sub(r"\1", " ".join(value.split())))


def _own_font(style: str) -> str:
    """Leave the font to the page, and keep its size."""
    parts: List[str] = [part.strip() for part in style.split(";")]
    declarations = []
    for part in parts:
        size = re.match(r"font: (?:\w+ )*?([0-9.]+px)", part)
        if size:
            declarations.append(f"font-size: {size.group(1)}")
        elif part and not part.startswith("font-family"):
            declarations.append(part)
    return "; ".join(declarations)
