"""`ceph-tuner history`: what was changed, by whom, and whether it is in force."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import typer

from ceph_tuner.core.changes.journal import APPLIED, Entry
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import utc
from ceph_tuner_cli.cluster_option import ClusterOption, at_work, step_documents, step_table
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn
from ceph_tuner_cli.tables import Columns, columns


def history(
    cluster: str = ClusterOption,
    change: Optional[int] = typer.Option(None, "--change", help="Show the steps of this one."),
    form: Format = FormatOption,
) -> None:
    """List the changes that the cluster remembers, newest last: they are kept in the cluster itself."""
    with at_work(cluster, "reading its journal") as opened:
        applier = opened.applier()
        entries, set_aside = applier.history(), applier.set_aside()
    warn(map(str, set_aside))
    if change is None:
        none = "no change was made by ceph-tuner"
        emit([_document(entry) for entry in entries], form, lambda: _table(entries) if entries else none)
        return
    chosen = [entry for entry in entries if entry.number == change]
    if not chosen:
        raise InputError("--change", str(change), "the number of a change (`ceph-tuner history` lists them)")
    (entry,) = chosen
    emit({**_document(entry), "steps": step_documents(entry.steps)}, form, lambda: step_table(entry.steps))
    if form is Format.table and entry.note:
        say([entry.note])


def _table(entries: List[Entry]) -> Columns:
    table = columns(">change", "when", "state", "target", ">writes", "who", "why")
    for entry in entries:
        why = f"{entry.why}: {entry.note}" if entry.why and entry.note else entry.why or entry.note
        row = (str(entry.number), utc(entry.at), _state(entry), entry.target, str(len(entry.steps)), entry.who, why)
        table.add_row(*row, style="bold" if entry.state == APPLIED else None)
    return table


def _document(entry: Entry) -> Dict[str, Any]:
    return {
        "change": entry.number,
        "at": entry.at,
        "changed": entry.changed,
        "state": _state(entry),
        "target": entry.target,
        "release": entry.release,
        "writes": len(entry.steps),
        "who": entry.who,
        "why": entry.why,
        "note": entry.note,
    }


def _state(entry: Entry) -> str:
    return f"{entry.state} (trial)" if entry.trial else entry.state
