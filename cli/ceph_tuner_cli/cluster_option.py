"""What the commands that work on a cluster have in common."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import typer
from rich.console import Group
from rich.text import Text

from ceph_tuner.cluster import Cluster
from ceph_tuner.cluster.lock_holder import under_way
from ceph_tuner.core.ceph.target import Place, reach
from ceph_tuner.core.changes.applier import Undone
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.changes.lock import Claim
from ceph_tuner.core.changes.plan import Step
from ceph_tuner.core.errors import EffectNotSeen, InputError
from ceph_tuner.core.knobs.releases import RELEASES
from ceph_tuner_cli import complete
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import console, show_lines, warn, working
from ceph_tuner_cli.render import say as say
from ceph_tuner_cli.tables import Columns, columns

_CLUSTER = "A lab's name, a path of a ceph.conf, or `ceph`."
ClusterOption = typer.Option(..., "--cluster", "-c", help=_CLUSTER, autocompletion=complete.clusters)
AnyClusterOption = typer.Option(None, "--cluster", "-c", help=_CLUSTER, autocompletion=complete.clusters)
TargetOption = typer.Option(
    "osd",
    "--target",
    "-t",
    help="osd, osd/class:…, osd/host:…, osd/rack:… or osd.N.",
    autocompletion=complete.targets,
)
ReleaseOption = typer.Option(
    None,
    "--release",
    "-r",
    help=f"A version such as 18.2.7, or one of {', '.join(RELEASES)}.",
    autocompletion=complete.releases,
)
YesOption = typer.Option(False, "--yes", "-y", help="Write it; without, only show what would be written.")
KnobsOption = typer.Option(
    None,
    "--knobs",
    help="Knobs to search, with commas; else the work's own.",
    autocompletion=complete.knobs_in_a_row,
)
ForceOption = typer.Option(False, "--force", help="Replace the file if there is one.")


def knobs_in_a_row(text: Optional[str]) -> Optional[Tuple[str, ...]]:
    """What `--knobs` names, None where it is not given. Raises InputError."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InputError("--knobs", repr(text), "names of knobs, with commas")
    return names


@contextmanager
def at_work(cluster: str, text: str) -> Iterator[Cluster]:
    """Open a cluster, and say what is done there for as long as it takes."""
    with working(f"{cluster}: {text}") as tell, closing(open_cluster(cluster)) as connection:
        yield replace(connection, progress=lambda words, done, total: tell(f"{cluster}: {words}", done, total))


def show_commands(commands: Sequence[str]) -> None:
    """The exact commands, each on one line, to be copied."""
    console.print()
    show_lines(commands)


def value(text: Optional[str]) -> str:
    """How the absence of an entry is shown."""
    return "-" if text is None else text


def step_table(steps: Sequence[Step]) -> Columns:
    """The difference, in the order of the writes."""
    table = columns("section", "option", ">now", ">then")
    for step in steps:
        then = Text(value(step.new), "red" if step.new is None else "green")
        table.add_row(step.who, step.name, value(step.old), then)
    return table


def preview(places: Sequence[Place]) -> str:
    """What is said where nothing was written yet."""
    return f"would write to {reach(places)}; nothing is changed: add --yes to write it"


def step_documents(steps: Sequence[Step]) -> List[Dict[str, Any]]:
    """The same for programs."""
    return [
        {"section": step.who, "option": step.name, "old": step.old, "new": step.new, "command": step.command}
        for step in steps
    ]


def say_leftover(entries: Sequence[Entry], claim: Optional[Claim]) -> None:
    """What the next write takes back first, unless the tuner of that claim is at work on it."""
    for entry in entries:
        kind = "trial" if entry.trial and not entry.unfinished else f"half-done change ({entry.state})"
        if claim is not None and under_way(entry, claim):
            say([f"{kind} {entry.number} is under way, by {claim.words}"])
        else:
            say([f"{kind} {entry.number} by {entry.who} was left behind: it is taken back first"])


def say_undone(undone: Sequence[Undone]) -> None:
    """What was taken back on the way to something else, and what was not, and why."""
    say([_taken_back(each) for each in undone])
    warn_of(undone)


def undone_page(undone: Sequence[Undone]) -> Group:
    """What was taken back, for people who asked for it."""
    return Group(*(Text(_taken_back(each)) for each in undone))


def warn_of(undone: Sequence[Undone]) -> None:
    """What of it was left as it is, and why, and which OSDs do not show it."""
    warn([line for each in undone for line in each.remarks])


def code_of(undone: Sequence[Undone]) -> int:
    """Exit code of taking back: 1 where somebody else's change is left. Raises EffectNotSeen where OSDs have others."""
    if any(each.unseen for each in undone):
        raise EffectNotSeen("the database is as before, and not every OSD shows it")
    return 1 if any(each.drift for each in undone) else 0


def _taken_back(undone: Undone) -> str:
    return (
        f"change {undone.entry.number} ({undone.entry.target}, {undone.entry.why or 'no reason given'}) is taken back"
    )


def undone_documents(undone: Sequence[Undone]) -> List[Dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "change": each.entry.number,
            "target": each.entry.target,
            "drift": [asdict(drift) for drift in each.drift],
            "unseen": list(each.unseen),
        }
        for each in undone
    ]
