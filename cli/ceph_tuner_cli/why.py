"""`ceph-tuner why`: which work is held by what, now."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ceph_tuner.core.why import Cause, Diagnosis, diagnose, gather
from ceph_tuner.core.wording import first_of
from ceph_tuner_cli.cluster_option import AnyClusterOption
from ceph_tuner_cli.from_option import FromOption, cluster_or_state
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, working


def why(
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromOption,
    pool: str = typer.Option("", "--pool", help="Only what holds this pool's work."),
    device_class: str = typer.Option("", "--device-class", help="Only what is about OSDs of this class."),
    seconds: float = typer.Option(10.0, "--seconds", min=2.0, max=600.0, help="Between the two looks."),
    form: Format = FormatOption,
) -> int:
    """Say which work waits now, and what holds it: clients, recovery, backfill, scrub, snaptrim.

    It looks twice, and changes nothing. What holds most of its work comes first. Exit code 0 whether or not a cause is
    named, or could be judged. --from takes the two looks of the file, whatever --seconds says.
    """
    with (
        working(f"{cluster or state}: looking") as tell,
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        about: Dict[str, Any] = {"cluster": connection.name if state else cluster, "as_of": connection.clock.now()}
        facts = gather(
            connection.commander,
            connection.clock,
            seconds,
            lambda what, done, total: tell(f"looking at {what}", done, total if total > 1 else None),
        )
        diagnosis = diagnose(facts, pool, device_class, "--{}")
    emit({**about, **diagnosis.to_dict()}, form, lambda: page(diagnosis))
    if form is Format.table:
        commands = [
            f"{number}. {command}" for number, cause in enumerate(diagnosis.causes, 1) for command in cause.commands
        ]
        show_lines(["", "Commands by cause; nothing was run:", *commands] if commands else [])
    say([f"note: {note}" for note in diagnosis.facts.notes])
    return 0


def page(diagnosis: Diagnosis) -> RenderableType:
    """The causes, one below the other."""
    parts: List[RenderableType] = [Text(diagnosis.headline)]
    for number, cause in enumerate(diagnosis.causes, 1):
        head = Text(f"{number}. ")
        head.append(f"{cause.work}, {cause.held:.0%} held", "yellow")
        head.append(f": {cause.title}", "bold")
        grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
        grid.add_column(width=9, no_wrap=True)
        grid.add_column(overflow="fold")
        for left, right in _rows(cause):
            grid.add_row(left, Text(right))
        parts += [Text(""), head, grid]
    return Group(*parts)


def _rows(cause: Cause) -> List[Tuple[str, str]]:
    pools = first_of(cause.pools, 5)
    unit = cause.unit[:-1] if cause.waiting == 1 else cause.unit
    where = f", {'pool' if len(cause.pools) == 1 else 'pools'} {pools}" if pools else ""
    rows = [("    waits", f"{cause.waiting:.3g} {unit}{where}")]
    for at, evidence in enumerate(cause.evidence):
        rows += [("" if at else "     seen", evidence.words), ("", f"  {evidence.command}")]
    return [*rows, ("  do this", cause.cure)]
