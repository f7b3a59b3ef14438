"""`ceph-tuner rollback`: takes changes back."""

from __future__ import annotations

from contextlib import closing
from typing import Optional

import typer

from ceph_tuner.applier import Applier
from ceph_tuner.clusters import open_cluster
from ceph_tuner.errors import InputError
from ceph_tuner_cli.cluster_option import (
    ClusterOption,
    say,
    say_leftover,
    say_undone,
    show_commands,
    step_documents,
    step_table,
    undone_documents,
)
from ceph_tuner_cli.render import Format, FormatOption, console, emit


def rollback(
    cluster: str = ClusterOption,
    to: Optional[int] = typer.Option(
        None, "--to", min=0, help="Take back every change after this one (see history); 0 for all."
    ),
    everything: bool = typer.Option(False, "--all", help="Take back every change in force."),
    dry_run: bool = typer.Option(False, "--dry-run", "-n", help="Only show what would be written."),
    form: Format = FormatOption,
) -> None:
    """Take the newest change back: the database as it was, and the OSDs' schedulers with it.

    It acts at once, as it is the safe direction; --dry-run only shows. What somebody else changed since is left alone.
    """
    if to is not None and everything:
        raise InputError("rollback", "--to and --all", "one of them")
    with closing(open_cluster(cluster)) as opened:
        applier = opened.applier()
        if dry_run:
            _show(applier, to, everything, form)
            return
        undone = applier.undo(to, everything)
        if form is not Format.table:
            emit(undone_documents(undone), form)
        say_undone(undone)


def _show(applier: Applier, to: Optional[int], everything: bool, form: Format) -> None:
    left = applier.leftover()
    say_leftover(left)
    entries = [*left, *applier.undoable(to, everything)]
    if not entries:
        raise InputError("journal", "no change in force", "a change that was applied by ceph-tuner")
    previews = [(entry, *applier.preview_undo(entry)) for entry in entries]
    if form is not Format.table:
        emit(
            [
                {"change": entry.number, "steps": step_documents(steps), "drift": [str(item) for item in drift]}
                for entry, steps, drift in previews
            ],
            form,
        )
    for entry, steps, drift in previews:
        say([f"change {entry.number} ({entry.target}, {entry.why or 'no reason given'}) would be taken back"])
        if form is Format.table:
            console.print(step_table(steps))
            show_commands([step.command for step in steps])
        say([f"warning: {item}" for item in drift])
    if len(entries) > 1:
        say(["each is shown against the database as it is now; the later ones go first"])
    say(["nothing is changed: leave --dry-run out to do it"])
