"""Every knob has its page, and the facts on it are the program's.

CEPH_TUNER_WRITE_DOCS=1 writes the facts anew; the text around them is written by hand.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import List, Tuple

import pytest

from ceph_tuner.core.knobs.catalogue import KNOBS, why_not_tuned
from ceph_tuner.core.knobs.knob import Knob, KnobEffect, Since
from ceph_tuner.core.knobs.releases import format_version
from ceph_tuner_cli.knobs import shown

PAGES = Path(__file__).resolve().parents[1] / "docs" / "knobs"
BEGIN, END = "<!-- facts, held against the program -->\n", "<!-- end of facts -->\n"


def facts(entry: Knob) -> str:
    """What the program knows of a knob, as Markdown."""
    lines = [f"{entry.meaning[:1].upper()}{entry.meaning[1:]}.", "", "| | |", "| --- | --- |"]
    kind = entry.kind if entry.unit in ("", "1") else f"{entry.kind}, in {entry.unit}"
    lines.append(f"| value | {kind} |")
    lines.append(f"| accepted | {entry.expected()} |")
    if entry.zero_means and entry.low == 0:
        lines.append(f"| 0 means | {entry.zero_means} |")
    lines.append(f"| a change | {entry.change} |")
    lines.append(f"| tuned | {'yes' if entry.searched else f'no: {why_not_tuned(entry)}'} |")
    lines += ["", "| Ceph | default | under mClock |", "| --- | --- | --- |"]
    for since, last in spans(entry):
        default = "absent" if since.default is None else shown(entry, since.default)
        lines.append(f"| {last} | {default} | {verdict(since.effect)} |")
    if entry.under_wpq:
        lines += ["", f"Under wpq: {entry.under_wpq}."]
    return "\n".join(lines) + "\n"


def spans(entry: Knob) -> List[Tuple[Since, str]]:
    """The history with what each step is called."""
    if len(entry.history) == 1:
        return [(entry.history[0], "all releases")]
    return [(since, f"from {format_version(since.version)}") for since in entry.history]


def verdict(effect: KnobEffect) -> str:
    """What the effect is, in a cell of a table."""
    needs = ", ".join(f"`{name}` is {str(value).lower()}" for name, value in effect.needs)
    names = ", ".join(f"`{name}`" for name in effect.instead)
    instead = f"; use {names}" if names and not effect.works else ""
    word = "works" if effect.works else "does nothing"
    return f"{word}{f' where {needs}' if needs else ''}: {effect.because}{instead}"


def page(name: str) -> Path:
    return PAGES / f"{name}.md"


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_has_a_page_with_its_facts(name: str) -> None:
    text = page(name).read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    head, _, rest = text.partition(BEGIN)
    found, _, tail = rest.partition(END)
    if os.environ.get("CEPH_TUNER_WRITE_DOCS"):
        page(name).write_text(f"{head}{BEGIN}{facts(KNOBS[name])}{END}{tail}", encoding="utf-8")
        return
    assert found == facts(KNOBS[name])
    # a page says more than the table
    assert len(tail.split()) >= 12


def test_there_is_no_page_without_its_knob() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(KNOBS)
