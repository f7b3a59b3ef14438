"""What holds work now as text: each cause with its evidence, what to do, and the commands."""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping

from ceph_tuner.core.wording import first_of

from .render_table import folded


def causes(document: Mapping[str, Any]) -> str:
    """The causes, one below the other."""
    lines: List[str] = folded(document["headline"])
    for number, cause in enumerate(document["causes"], 1):
        lines += ["", *folded(f"{number}. {cause['work']}, {cause['held']:.0%} held: {cause['title']}", "   ")]
        lines += _rows(cause)
        lines += [f"   {command}" for command in cause["commands"]]
    lines += [line for note in document["notes"] for line in folded(f"note: {note}", "  ")]
    return "\n".join(lines)


def _rows(cause: Mapping[str, Any]) -> Iterator[str]:
    unit = cause["unit"][:-1] if cause["waiting"] == 1 else cause["unit"]
    where = (
        f", {'pool' if len(cause['pools']) == 1 else 'pools'} {first_of(cause['pools'], 5)}" if cause["pools"] else ""
    )
    yield from folded(f"   waits: {cause['waiting']:.3g} {unit}{where}", "     ")
    for evidence in cause["evidence"]:
        yield from folded(f"   seen: {evidence['words']}", "     ")
        yield f"     {evidence['command']}"
    yield from folded(f"   do this: {cause['cure']}", "     ")
