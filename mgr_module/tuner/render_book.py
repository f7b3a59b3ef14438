"""The book as text: which regime holds, what is in force, the pages, and by what regimes are told."""

from __future__ import annotations

from typing import Any, Collection, List, Mapping, Sequence

from ceph_tuner.core.book.explanation import page_origin, page_words
from ceph_tuner.core.changes.writer import said_of_class
from ceph_tuner.core.moments import utc_minute

from . import render, render_regimes
from .render_table import folded, table


def book(document: Mapping[str, Any]) -> str:
    """All of it."""
    parts = {"": document["switching"], **document["classes"]}
    # where classes have the word, nothing is said of a book of the whole that is off
    lines = [line for name, part in parts.items() if name or len(parts) == 1 or part["on"] for line in _of(name, part)]
    lines += render.notes(document["notes"])
    lines.append(pages(document["pages"], {part["page"] for part in parts.values()}))
    return "\n".join([*lines, render_regimes.book(document)])


def _of(device_class: str, switching: Mapping[str, Any]) -> List[str]:
    """What is in force for a class, or without one for the cluster."""
    sentences = [*switching["words"], *switching["preview"]]
    if switching["turn_problem"] and switching["on"]:
        sentences.append(f"problem: {switching['turn_problem']}")
    return [line for words in sentences for line in folded(said_of_class(words, device_class), "  ")]


def pages(rows: Sequence[Mapping[str, Any]], in_force: Collection[int]) -> str:
    """The pages by regime, with their settings and what speaks for them."""
    if not rows:
        return "the book has no page yet: a trial that is kept under one regime makes one"
    cells = [
        [
            f"{row['number']}{'*' if row['number'] in in_force else ''}",
            row["regime"],
            f"{row['state']}{', pinned' if row['pin'] else ''}",
            page_origin(row),
            utc_minute(row["at"]),
            f"{row['target']}: {', '.join(f'{name}={value}' for name, value in sorted(row['settings'].items()))}",
            page_words(row) or "-",
        ]
        for row in sorted(rows, key=lambda row: (row["regime"], -row["number"]))
    ]
    return table(["PAGE", "REGIME", "STATE", "BY", "AT", "SETTINGS", "WHY"], cells)
