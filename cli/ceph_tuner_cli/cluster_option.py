"""What the commands that work on a cluster have in common."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Optional, Sequence

import typer
from rich.table import Table

from ceph_tuner.applier import Undone
from ceph_tuner.journal import Entry
from ceph_tuner.plan import Step
from ceph_tuner_cli.render import console, messages

ClusterOption = typer.Option(..., "--cluster", "-c", help="A lab's name, a path of a ceph.conf, or `ceph`.")
TargetOption = typer.Option("osd", "--target", "-t", help="osd, osd/class:…, osd/host:…, osd/rack:… or osd.N.")


def say(lines: Sequence[str]) -> None:
    """Notes for people, beside the result."""
    for line in lines:
        messages.print(line, markup=False, soft_wrap=True)


def show_commands(commands: Sequence[str]) -> None:
    """The exact commands, each on one line, to be copied."""
    console.print()
    for command in commands:
        console.print(command, markup=False, soft_wrap=True)


def value(text: Optional[str]) -> str:
    """How the absence of an entry is shown."""
    return "-" if text is None else text


def step_table(steps: Sequence[Step]) -> Table:
    """The difference, in the order of the writes."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("section", no_wrap=True)
    table.add_column("option", overflow="fold")
    table.add_column("now", justify="right")
    table.add_column("then", justify="right")
    for step in steps:
        style = "red" if step.new is None else "green"
        table.add_row(step.who, step.name, value(step.old), f"[{style}]{value(step.new)}[/{style}]")
    return table


def step_documents(steps: Sequence[Step]) -> List[Dict[str, Any]]:
    """The same for programs."""
    return [
        {"section": step.who, "option": step.name, "old": step.old, "new": step.new, "command": step.command}
        for step in steps
    ]


def say_leftover(entries: Sequence[Entry]) -> None:
    """What the next write takes back first."""
    for entry in entries:
        kind = "trial" if entry.trial and not entry.unfinished else f"half-done change ({entry.state})"
        say([f"{kind} {entry.number} by {entry.who} was left behind: it is taken back first"])


def say_undone(undone: Sequence[Undone]) -> None:
    """What was taken back, and what was not, and why."""
    for done in undone:
        say([f"change {done.entry.number} ({done.entry.target}, {done.entry.why or 'no reason given'}) is taken back"])
        say([f"warning: {drift}" for drift in done.drift])
        say([f"warning: {osd}" for osd in done.unseen])


def undone_documents(undone: Sequence[Undone]) -> List[Dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "change": done.entry.number,
            "target": done.entry.target,
            "drift": [asdict(drift) for drift in done.drift],
            "unseen": list(done.unseen),
        }
        for done in undone
    ]
