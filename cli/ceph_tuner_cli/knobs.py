"""`ceph-tuner knobs`: what each release does with each option."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import typer
from rich.table import Table

from ceph_tuner.knobs import KNOBS, Knob, knob
from ceph_tuner.releases import RELEASES, Release, Value, release_of
from ceph_tuner_cli.render import Format, FormatOption, console, emit


def knobs(
    names: Optional[List[str]] = typer.Argument(None, metavar="[KNOB]...", help="Only these, in full."),
    release: Optional[str] = typer.Option(
        None, "--release", "-r", help=f"A version such as 18.2.7, or one of {', '.join(RELEASES)}."
    ),
    form: Format = FormatOption,
) -> None:
    """Show every knob: its range and default, what a change costs, and whether the release honours it under mClock."""
    chosen = [knob(name) for name in names] if names else list(KNOBS.values())
    era = None if release is None else release_of(release, "--release")
    if names and form is Format.table:
        for entry in chosen:
            console.print(_page(entry, era), soft_wrap=True, markup=False)
        return
    emit([describe(entry, era) for entry in chosen], form, lambda: _table(chosen, era))


def describe(entry: Knob, release: Optional[Release] = None) -> Dict[str, Any]:
    """Give a knob as plain data, in one release or in all."""
    low, high = entry.bounds(release)
    plain: Dict[str, Any] = {
        "name": entry.name,
        "work": entry.work,
        "meaning": entry.meaning,
        "kind": entry.kind,
        "unit": entry.unit,
        "scope": entry.scope,
        "change": entry.change,
        "searched": entry.searched,
    }
    if entry.choices:
        plain["choices"] = list(entry.choices)
    elif entry.kind != "bool":
        plain.update({"low": low, "high": high, "zero_means": entry.zero_means or None})
    if release is not None:
        return {**plain, "release": release.name, **_in_release(entry, release)}
    return {**plain, "releases": {era.name: _in_release(entry, era) for era in RELEASES.values()}}


def _in_release(entry: Knob, release: Release) -> Dict[str, Any]:
    effect = entry.effective(release)
    return {
        "exists": entry.exists(release),
        "default": entry.default(release),
        "works": effect.works,
        "because": effect.because,
        "instead": list(effect.instead),
        "needs": dict(effect.needs),
    }


def _table(chosen: List[Knob], release: Optional[Release]) -> Table:
    title = "Knobs under mClock" if release is None else f"Knobs under mClock, {release.title}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading in ("knob", "unit", "range", "change"):
        table.add_column(heading, no_wrap=heading == "knob", overflow="fold")
    if release is None:
        table.add_column("works in")
        for entry in chosen:
            table.add_row(entry.name, entry.unit, entry.expected(), entry.change, _works_in(entry))
        return table
    table.add_column("default")
    table.add_column("effect", ratio=1)
    for entry in chosen:
        default = entry.default(release)
        effect = entry.effective(release)
        table.add_row(
            entry.name,
            entry.unit,
            entry.expected(release),
            entry.change,
            "-" if default is None else shown(entry, default, release),
            "works" if effect.works and not effect.needs else _verdict(entry, release),
            style=None if effect.works else "dim",
        )
    return table


def _works_in(entry: Knob) -> str:
    works = [name for name, era in RELEASES.items() if entry.effective(era).works]
    if len(works) == len(RELEASES):
        return "all releases"
    return ", ".join(works) or "none"


def _verdict(entry: Knob, release: Release) -> str:
    effect = entry.effective(release)
    if effect.works:
        needed = ", ".join(f"{name} = {KNOBS[name].format(value)}" for name, value in effect.needs)
        return f"works{f' with {needed}' if needed else ''}: {effect.because}"
    instead = f"; use {', '.join(effect.instead)}" if effect.instead else ""
    return f"does nothing: {effect.because}{instead}"


def _page(entry: Knob, release: Optional[Release]) -> str:
    """One knob in full, release by release."""
    lines = [entry.name, f"  {entry.meaning}"]
    lines.append(f"  {entry.kind}{f' ({entry.unit})' if entry.unit else ''}, {entry.expected(release)}")
    lines.append(f"  scope: {entry.scope}; a change: {entry.change}")
    for era in [release] if release is not None else RELEASES.values():
        default = entry.default(era)
        text = "absent" if default is None else f"default {shown(entry, default, era)}"
        lines.append(f"  {era.title}: {text}; {_verdict(entry, era)}")
    return "\n".join(lines)


def shown(entry: Knob, value: Value, release: Optional[Release] = None) -> str:
    """Write a value for people: sizes in binary units, fractions without needless zeros."""
    if isinstance(value, (bool, str)):
        return entry.format(value)
    if entry.kind == "size":
        for suffix, unit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value >= unit and value % unit == 0:
                return f"{int(value) // unit} {suffix}"
    if value == 0 and entry.zero_means:
        return f"0 ({entry.zero_means})"
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else f"{value:.0f}"
