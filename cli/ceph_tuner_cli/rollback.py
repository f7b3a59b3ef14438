"""`ceph-tuner rollback`: takes changes back."""

from __future__ import annotations

from dataclasses import asdict
from typing import List, Optional, Sequence, Tuple

import typer

from ceph_tuner.cluster.lock_holder import holder_of, under_way
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.changes.lock import Claim
from ceph_tuner.core.changes.plan import SettingDrift, Step
from ceph_tuner.core.errors import InputError
from ceph_tuner_cli.cluster_option import (
    ClusterOption,
    at_work,
    code_of,
    say_leftover,
    show_commands,
    step_documents,
    step_table,
    undone_documents,
    undone_page,
    warn_of,
)
from ceph_tuner_cli.render import Format, FormatOption, console, emit, say, show_lines, warn


def rollback(
    cluster: str = ClusterOption,
    to: Optional[int] = typer.Option(
        None, "--to", min=0, help="Take back every change after this one (see history); 0 for all."
    ),
    everything: bool = typer.Option(False, "--all", help="Take back every change in force."),
    dry_run: bool = typer.Option(False, "--dry-run", "-n", help="Only show what would be written."),
    form: Format = FormatOption,
) -> int:
    """Take the newest change back: the database as it was, and the OSDs' schedulers with it.

    It acts at once, as it is the safe direction; --dry-run only shows. What somebody else changed since is left alone.
    Exit code 1 where there is such, 4 where an OSD does not show what was taken back.
    """
    if to is not None and everything:
        raise InputError("rollback", "--to and --all", "one of them")
    phase = "reading what would be taken back" if dry_run else "taking back, until the OSDs show it"
    with at_work(cluster, phase) as connection:
        applier = connection.applier()
        if dry_run:
            # before the journal is read: what ends meanwhile is not taken for left behind
            claim = holder_of(connection)
            previews = _previews(applier, to, everything, claim)
        else:
            undone = applier.undo(to, everything)
        set_aside = applier.set_aside()
    warn(map(str, set_aside))
    if dry_run:
        _show(previews, form, claim)
        return 0
    emit(undone_documents(undone), form, lambda: undone_page(undone))
    warn_of(undone)
    return code_of(undone)


Preview = Tuple[Entry, Sequence[Step], Sequence[SettingDrift]]


def _previews(applier: Applier, to: Optional[int], everything: bool, claim: Optional[Claim]) -> List[Preview]:
    leftover = applier.leftover()
    say_leftover(leftover, claim)
    entries = [*leftover, *applier.undoable(to, everything)]
    if not entries:
        raise InputError("journal", "no change in force", "a change that was applied by ceph-tuner")
    return [(entry, *applier.preview_undo(entry)) for entry in entries]


def _show(previews: Sequence[Preview], form: Format, claim: Optional[Claim]) -> None:
    if form is Format.table:
        for entry, steps, _ in previews:
            unless = " if whoever is at work on it were gone" if under_way(entry, claim) else ""
            why = entry.why or "no reason given"
            show_lines([f"change {entry.number} ({entry.target}, {why}) would be taken back{unless}"])
            console.print(step_table(steps))
            show_commands([step.command for step in steps])
    else:
        emit(
            [
                {"change": entry.number, "steps": step_documents(steps), "drift": [asdict(item) for item in drift]}
                for entry, steps, drift in previews
            ],
            form,
        )
    warn([str(item) for _, _, drift in previews for item in drift])
    say(["each is shown against the database as it is now; the later ones go first"] if len(previews) > 1 else [])
    if claim is None:
        say(["nothing is changed: leave --dry-run out to do it"])
    else:
        say([f"nothing is changed: without --dry-run it is refused while another tuner is at work, {claim.words}"])
