"""The book as text: which regime holds, what is in force, the pages, and by what regimes are told."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from ceph_tuner.core.moments import utc_minute

from . import render, render_regimes
from .render_table import folded, table


def book(document: Mapping[str, Any]) -> str:
    """All of it."""
    lines: List[str] = [line for words in document["switching"]["words"] for line in folded(words, "  ")]
    if document["switching"]["turn_problem"] and document["switching"]["on"]:
        lines += folded(f"problem: {document['switching']['turn_problem']}", "  ")
    lines += render.notes(document["notes"])
    lines.append(pages(document["pages"], document["switching"]["page"]))
    return "\n".join([*lines, render_regimes.book(document)])


def pages(rows: Sequence[Mapping[str, Any]], in_force: int) -> str:
    """The pages by regime, with their settings and what speaks for them."""
    if not rows:
        return "the book has no page yet: a trial that is kept under one regime makes one"
    cells = [
        [
            f"{row['number']}{'*' if row['number'] == in_force else ''}",
            row["regime"],
            f"{row['state']}{', pinned' if row['pin'] else ''}",
            row["origin"],
            utc_minute(row["at"]),
            f"{row['target']}: {', '.join(f'{name}={value}' for name, value in sorted(row['settings'].items()))}",
            row["reason"] or row["verdict"] or "-",
        ]
        for row in sorted(rows, key=lambda row: (row["regime"], -row["number"]))
    ]
    return table(["PAGE", "REGIME", "STATE", "BY", "AT", "SETTINGS", "WHY"], cells)
