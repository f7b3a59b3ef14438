"""`ceph-tuner knobs`: what each release does with each option."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional

import typer

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, WORKS, Knob, bearing_on, knob, why_not_tuned
from ceph_tuner.core.knobs.releases import RELEASES, Release, Version, format_version, level_of, release_of
from ceph_tuner.report.words import shown as shown
from ceph_tuner_cli import complete
from ceph_tuner_cli.cluster_option import ReleaseOption
from ceph_tuner_cli.from_option import FromOption, read_state
from ceph_tuner_cli.render import Format, FormatOption, emit
from ceph_tuner_cli.tables import Columns, columns


def knobs(
    names: Optional[List[str]] = typer.Argument(
        None, metavar="[KNOB]...", help="Only these, in full.", autocompletion=complete.knobs
    ),
    release: Optional[str] = ReleaseOption,
    work: Optional[str] = typer.Option(
        None, "--work", "-w", help=f"Only what bears on one of {', '.join(WORKS)}.", autocompletion=complete.works
    ),
    state: Optional[Path] = FromOption,
    form: Format = FormatOption,
) -> None:
    """Show every knob: its range and default, what a change costs, and whether the release honours it under mClock."""
    if state is not None:
        if release is not None:
            raise InputError("--from", f"--release {release} beside it", "one of them")
        with read_state(state) as connection:
            release = connection.version
    era = None if release is None else release_of(release, "--release")
    rows = _listed_knobs(names, work, era)
    level = None if release is None else level_of(release, "--release")
    in_full = "\n".join(_page(entry, era, level) for entry in rows)
    emit(
        [describe(entry, era, level) for entry in rows],
        form,
        lambda: in_full if names else _table(rows, era, level),
    )


def _listed_knobs(names: Optional[List[str]], work: Optional[str], era: Optional[Release]) -> List[Knob]:
    if names and work is not None:
        raise InputError("--work", f"{work} beside the names of knobs", "one of both")
    if work is None:
        return [knob(name) for name in names] if names else list(KNOBS.values())
    if work not in WORKS:
        raise InputError("--work", repr(work), f"one of {', '.join(WORKS)}")
    # the class that schedules a work differs between releases
    return bearing_on(work, era or list(RELEASES.values())[-1])


def describe(entry: Knob, release: Optional[Release] = None, level: Optional[Version] = None) -> Dict[str, Any]:
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
        "not_tuned": why_not_tuned(entry) or None,
        "under_wpq": entry.under_wpq or None,
    }
    if entry.choices:
        plain["choices"] = list(entry.choices)
    elif entry.kind != "bool":
        plain.update({"low": low, "high": high, "zero_means": entry.zero_means or None})
    if release is not None:
        return {**plain, "release": release.name, **_in_release(entry, release, level)}
    return {**plain, "releases": {era.name: _in_release(entry, era) for era in RELEASES.values()}}


def _in_release(entry: Knob, release: Release, level: Optional[Version] = None) -> Dict[str, Any]:
    effect = entry.effective(release, level)
    return {
        "exists": entry.exists(release, level),
        "default": entry.default(release, level),
        "works": effect.works,
        "because": effect.because,
        "instead": list(effect.instead),
        "needs": dict(effect.needs),
    }


def _table(rows: List[Knob], release: Optional[Release], level: Optional[Version] = None) -> Columns:
    """One line a knob; `ceph-tuner knobs NAME` has the reasons."""
    level_title = "" if release is None else format_version(level) if level else release.title
    title = f"Knobs under mClock, {level_title}" if level_title else "Knobs under mClock"
    headings = ["knob", "works", "range"] if release is None else ["knob", "effect", "default", "range"]
    hint = "ceph-tuner knobs NAME says why, and what to use instead"
    # the names alone take half of a narrow terminal
    table = columns(*headings, title=title, caption=hint, spare=["range"])
    for entry in rows:
        cells = [_works(entry)]
        if release is not None:
            default = entry.default(release, level)
            cells = [_effect(entry, release, level), "-" if default is None else shown(entry, default)]
        is_ignored = release is not None and not entry.effective(release, level).works
        table.add_row(entry.name, *cells, _range(entry, release), style="dim" if is_ignored else None)
    return table


def _range(entry: Knob, release: Optional[Release]) -> str:
    if entry.choices:
        return f"{len(entry.choices)} choices"
    if entry.kind == "size":
        return f"{shown(entry, int(entry.low))} to {shown(entry, int(entry.high))}"
    low, high = entry.bounds(release)
    return entry.expected(release) if entry.kind == "bool" else f"{low:.0f} to {high:.0f}"


def _effect(entry: Knob, release: Release, level: Optional[Version]) -> str:
    """One word for the effect; what a change costs, where it has one."""
    effect = entry.effective(release, level)
    if not effect.works:
        return "ignored" if entry.exists(release, level) else "absent"
    return "if opened" if effect.needs else entry.change


def _works(entry: Knob) -> str:
    """Say since when the knob works: `always`, `from 17.2.7`, `before 18.2.4`, `never`."""
    steps = entry.history
    changes = [
        f"{'from' if after.effect.works else 'before'} {format_version(after.version)}"
        for before, after in zip(steps, steps[1:])
        if before.effect.works != after.effect.works
    ]
    return ", ".join(changes) or ("always" if steps[0].effect.works else "never")


def _verdict(entry: Knob, release: Release, level: Optional[Version]) -> str:
    effect = entry.effective(release, level)
    if effect.works:
        needs = ", ".join(f"{name} = {KNOBS[name].format(value)}" for name, value in effect.needs)
        return f"works{f' with {needs}' if needs else ''}: {effect.because}"
    instead = f"; use {', '.join(effect.instead)}" if effect.instead else ""
    return f"does nothing: {effect.because}{instead}"


def _page(entry: Knob, release: Optional[Release], level: Optional[Version] = None) -> str:
    """One knob in full, release by release."""
    lines = [entry.name, f"  {entry.meaning}"]
    lines.append(f"  {entry.kind}{f' ({entry.unit})' if entry.unit else ''}, {entry.expected(release)}")
    lines.append(f"  scope: {entry.scope}; a change: {entry.change}")
    for era in [release] if release is not None else RELEASES.values():
        default = entry.default(era, level)
        text = "absent" if default is None else f"default {shown(entry, default)}"
        lines.append(f"  {era.title}: {text}; {_verdict(entry, era, level)}")
    if not entry.searched:
        lines.append(f"  not tuned: {why_not_tuned(entry)}")
    if entry.under_wpq:
        lines.append(f"  under wpq: {entry.under_wpq}")
    return "\n".join(lines)
