"""`ceph-tuner fleet book`: the books of many clusters, and pages that go from one to others like it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence

import typer

from ceph_tuner.core.book.page import STATES
from ceph_tuner.core.book.state import RESTING
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.wording import first_of
from ceph_tuner.fleet import books, fleet_file
from ceph_tuner.fleet.books import Taken
from ceph_tuner.fleet.member_answers import MemberAnswer
from ceph_tuner_cli.fleet import FleetOption, LabelOption, NamesArgument, WithinOption, asked, asked_so_far
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.render import Format, FormatOption, emit, say, working
from ceph_tuner_cli.tables import Cell, Columns, columns

app = typer.Typer(help="The settings of each regime, on many clusters.", no_args_is_help=True)

OriginArgument = typer.Argument(help="The cluster that validated the pages.")
YesOption = typer.Option(False, "--yes", "-y", help="Put the pages into the books; without, only show which.")
_NAMED = 10
"""Clusters that a line names."""


@app.command()
def show(
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    within: float = WithinOption,
    form: Format = FormatOption,
) -> int:
    """Say how many pages each book has, which is in force, and the regime. Exit code 1 where a cluster cannot say."""
    members = fleet_file.read(fleet).chosen(names or (), labels)
    answers = asked(members, lambda member: books.shown(member, within), within)
    emit(
        [{**answer.to_dict(), "book": None if answer.found is None else dict(answer.found)} for answer in answers],
        form,
        lambda: _books(answers),
    )
    if form is Format.table:
        say(_problems(answers))
        say([f"{answer.member.name}: {note}" for answer in answers for note in _notes(answer.found)])
    return 1 if any(answer.found is None for answer in answers) else 0


@app.command()
def offer(
    origin: str = OriginArgument,
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    within: float = WithinOption,
    yes: bool = YesOption,
    form: Format = FormatOption,
) -> int:
    """Offer what one cluster validated to the others of the file. There it is unvalidated, until a trial of their own.

    A page goes where the release is the same, the OSDs are alike, and the regime is known. No setting of any cluster
    changes. Exit code 1 where a cluster does not answer, or no page suits it.
    """
    clusters = fleet_file.read(fleet)
    (source,) = clusters.chosen([origin])
    members = [member for member in clusters.chosen(names or (), labels) if member.name != origin]
    if not members:
        raise InputError("fleet book offer", f"no cluster beside {origin}", "others that its pages are offered to")
    with working(f"reading the book of {origin}"):
        found = books.offer_of(source, within)
    say([f"{origin}: left out: {line}" for line in found.left_out])
    if not found.pages:
        raise InputError(f"the book of {origin}", "no page that is validated and fits its OSDs", "one that is")
    answers, interrupted = asked_so_far(members, lambda member: books.take(found, member, within, yes), within)
    documents = [
        {**answer.to_dict(), "taken": None if answer.found is None else answer.found.to_dict(), "written": yes}
        for answer in answers
    ]
    emit(documents, form, lambda: _offered(answers, yes))
    if form is Format.table:
        say(_problems(answers))
        say([f"{answer.member.name}: {line}" for answer in answers if answer.found for line in answer.found.refused])
    unknown = [answer.member.name for answer in answers if answer.may_have_done_it]
    if yes and unknown:
        say(
            [f"pages may have been put into the books of {first_of(unknown, _NAMED)}: see `ceph-tuner fleet book show`"]
        )
    if not yes and any(answer.found is not None and answer.found.pages for answer in answers):
        say(["nothing is changed: add --yes to put the pages into the books, unvalidated"])
    if interrupted:
        return INTERRUPTED
    suited = [answer.found is not None and bool(answer.found.pages or answer.found.there) for answer in answers]
    return 0 if all(suited) else 1


def _books(answers: Sequence[MemberAnswer[Mapping[str, Any]]]) -> Columns:
    table = columns("cluster", "book", "regime", ">page", *(f">{state}" for state in STATES))
    for answer in answers:
        table.add_row(answer.member.name, *_book_cells(answer), style="red" if answer.found is None else None)
    return table


def _book_cells(answer: MemberAnswer[Mapping[str, Any]]) -> List[Cell]:
    if answer.found is None:
        return [answer.word, *["-"] * (2 + len(STATES))]
    parts: List[Mapping[str, Any]] = [answer.found["switching"], *answer.found.get("classes", {}).values()]
    is_on = any(part.get("on") for part in parts)
    in_force = [str(part["page"]) for part in parts if part.get("page") and part.get("phase") != RESTING]
    regimes = [f"{row['scope']} {row['regime']}".strip() for row in answer.found["regimes"]]
    counts = Counter(str(page["state"]) for page in answer.found["pages"])
    return [
        "on" if is_on else "off",
        ", ".join(regimes) or "?",
        ", ".join(in_force) or "-",
        *(str(counts[state]) for state in STATES),
    ]


def _offered(answers: Sequence[MemberAnswer[Taken]], written: bool) -> Columns:
    table = columns("cluster", ">taken" if written else ">would take", ">there already", ">refused", "regimes")
    for answer in answers:
        if answer.found is None:
            table.add_row(answer.member.name, answer.word, "-", "-", "-", style="red")
            continue
        regimes = ", ".join(dict.fromkeys(page.regime for page in answer.found.pages))
        counts = (answer.found.pages, answer.found.there, answer.found.refused)
        table.add_row(answer.member.name, *(str(len(each)) for each in counts), regimes or "-")
    return table


def _problems(answers: Sequence[MemberAnswer[Any]]) -> List[str]:
    """Why there is no answer, behind the name of its cluster."""
    return [f"{answer.member.name}: {answer.reason}" for answer in answers if answer.found is None]


def _notes(document: Optional[Mapping[str, Any]]) -> List[str]:
    return [str(note) for note in document.get("notes", [])] if document is not None else []
