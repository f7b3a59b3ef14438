"""`ceph-tuner fleet`: many clusters at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, TypeVar

import typer
from rich.text import Text

from ceph_tuner.core.moments import duration
from ceph_tuner.core.wording import first_of
from ceph_tuner.fleet import fleet_file
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.member_answers import MemberAnswer, ask_all
from ceph_tuner.fleet.status import Status, look
from ceph_tuner_cli import complete
from ceph_tuner_cli.render import Format, FormatOption, emit, say, working
from ceph_tuner_cli.tables import Cell, Columns, columns

app = typer.Typer(help="Many clusters at once, as fleet.yaml names them.", no_args_is_help=True)

FleetOption = typer.Option(Path("fleet.yaml"), "--fleet", envvar="CEPH_TUNER_FLEET", help="The file of clusters.")
LabelOption = typer.Option(
    [],
    "--label",
    "-l",
    metavar="KEY=VALUE",
    help="Only clusters with it; may be repeated.",
    autocompletion=complete.labels,
)
WithinOption = typer.Option(30.0, "--within", min=1.0, max=600.0, help="Seconds that each cluster has to answer.")
NamesArgument = typer.Argument(
    None, help="Clusters by name; all of the file where none is given.", autocompletion=complete.members
)
MemberArgument = typer.Argument(help="The cluster.", autocompletion=complete.members)

T = TypeVar("T")


@app.command()
def status(
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    within: float = WithinOption,
    form: Format = FormatOption,
) -> None:
    """Show how each cluster stands. Exit code 1 where one does not answer or misses a hard objective."""
    members = fleet_file.read(fleet).chosen(names or (), labels)
    answers = asked(members, lambda member: look(member, within), within)
    emit([_document(answer) for answer in answers], form, lambda: _table(answers))
    if form is Format.table:
        say([line for answer in answers for line in _remarks(answer)])
    if any(answer.found is None or answer.found.missing_hard for answer in answers):
        raise typer.Exit(1)


def asked(members: Sequence[Member], ask: Callable[[Member], T], within_s: float) -> List[MemberAnswer[T]]:
    """Every member's answer in the order of the file, with progress for people meanwhile."""
    answers: Dict[str, MemberAnswer[T]] = {}
    _ask_into(answers, members, ask, within_s)
    return [answers[member.name] for member in members]


def asked_so_far(
    members: Sequence[Member], ask: Callable[[Member], T], within_s: float
) -> Tuple[List[MemberAnswer[T]], bool]:
    """The same where asking changes something: Ctrl-C ends the asking, and what was answered is given.

    Also whether it was interrupted. A member that was asked and has not answered may do it all the same.
    """
    answers: Dict[str, MemberAnswer[T]] = {}
    under_way: Set[str] = set()

    def asking(member: Member) -> T:
        under_way.add(member.name)
        return ask(member)

    interrupted = False
    try:
        _ask_into(answers, members, asking, within_s)
    except KeyboardInterrupt:
        interrupted = True
    for member in members:
        answers.setdefault(member.name, not_asked(member, "interrupted" if member.name in under_way else "not asked"))
    return [answers[member.name] for member in members], interrupted


def not_asked(member: Member, kind: str = "not asked") -> MemberAnswer[Any]:
    """The answer of one that was asked too late for it, or not at all, as somebody pressed Ctrl-C."""
    return MemberAnswer(member, None, "interrupted before it answered", kind)


def _ask_into(
    answers: Dict[str, MemberAnswer[T]], members: Sequence[Member], ask: Callable[[Member], T], within_s: float
) -> None:
    with working("asking the clusters") as tell:

        def report() -> None:
            names = [member.name for member in members if member.name not in answers]
            tell(f"waiting for {first_of(names, 3)}", len(answers), len(members))

        report()
        for answer in ask_all(members, ask, within_s):
            answers[answer.member.name] = answer
            report()


def _document(answer: MemberAnswer[Status]) -> Dict[str, Any]:
    return {**answer.to_dict(), "status": None if answer.found is None else answer.found.to_dict()}


def _table(answers: Sequence[MemberAnswer[Status]]) -> Columns:
    table = columns("cluster", "release", ">osds", "capacity", "slo", "profile", ">drift", "last change")
    for answer in answers:
        table.add_row(answer.member.name, *_cells(answer), style="red" if answer.found is None else None)
    return table


def _cells(answer: MemberAnswer[Status]) -> List[Cell]:
    status = answer.found
    if status is None:
        return [answer.word, *["-"] * 6]
    return [
        status.version if len(status.versions) < 2 else f"{status.version} (mixed)",
        f"{status.up}/{status.osds}" if status.up != status.osds else str(status.osds),
        f"{status.capacities_wrong} wrong" if status.capacities_wrong else "ok",
        _slo(status),
        status.profile + ("" if status.profile_certain else "?"),
        "?" if status.drift is None else str(len(status.drift)),
        _change(status),
    ]


def _slo(status: Status) -> Cell:
    if status.objectives is None:
        return "missed" if status.missing_hard else "?"
    if not status.objectives.count and status.objectives.idle:
        return "idle"
    if not status.objectives.count:
        return "none"
    cell = f"{len(status.objectives.met)}/{status.objectives.count}"
    return Text(cell, "red") if status.missing_hard else cell


def _change(status: Status) -> str:
    if status.last_change is None:
        return "none" if status.drift is not None else "?"
    return (
        f"{status.last_change.number} {status.last_change.state}, {duration(time.time() - status.last_change.at)} ago"
    )


def _remarks(answer: MemberAnswer[Status]) -> List[str]:
    """What does not fit a cell, behind the name of its cluster."""
    if answer.found is None:
        return [f"{answer.member.name}: {answer.reason}"]
    status = answer.found
    lines = [*status.capacity, *(f"missed: {text}" for text in (status.objectives.missed if status.objectives else ()))]
    lines += [
        *(f"not seen: {text}" for text in (status.objectives.unseen if status.objectives else ())),
        *status.warnings,
    ]
    if not status.profile_certain:
        lines.append("the profile may be for some of its OSDs only: the dashboard's REST API hides masks")
    return [f"{answer.member.name}: {line}" for line in [*lines, *(status.drift or ()), *status.notes]]
