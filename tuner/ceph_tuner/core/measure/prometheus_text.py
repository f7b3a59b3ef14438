"""Metrics in Prometheus's text format 0.0.4: units are base units, and what is not known is absent, never 0."""

from __future__ import annotations

import math
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.measure.exported_metrics import PREFIX, Labels
from ceph_tuner.core.printable import printable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Series = Tuple[str, Labels, Optional[float]]
"""Name of the family without the prefix, labels, value."""


class Family(NamedTuple):
    """A metric as Prometheus knows it."""

    name: str
    type: str
    labels: str
    help: str


def prometheus_text(families: Mapping[str, Family], series: Iterable[Series]) -> str:
    """Give the series, family after family, in the order of `families`, which are by their full names."""
    values: Dict[str, Dict[Labels, float]] = {}
    for name, labels, value in series:
        # a text is no number, and NaN or an infinity says nothing that its absence does not say
        if isinstance(value, (int, float)) and math.isfinite(value):
            values.setdefault(f"{PREFIX}{name}", {})[labels] = float(value)
    lines: List[str] = []
    for name, family in families.items():
        if name in values:
            lines += [f"# HELP {name} {_help(family.help)}", f"# TYPE {name} {family.type}"]
            lines += [f"{name}{_label_set(labels)} {value!r}" for labels, value in values[name].items()]
    return "".join(f"{line}\n" for line in lines)


def _help(text: str) -> str:
    return printable(text, lines=True).replace("\\", "\\\\").replace("\n", "\\n")


def _label_set(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_label(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _label(value: str) -> str:
    return _help(str(value)).replace('"', '\\"')
