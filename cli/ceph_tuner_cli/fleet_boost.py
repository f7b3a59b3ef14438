"""`ceph-tuner fleet boost`: the boosts of many clusters, each begun and ended by its own plugin."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import typer

from ceph_tuner.core.boost.events import Request
from ceph_tuner.core.boost.goals import MOST, SEPARATOR
from ceph_tuner.core.boost.kinds import BACKFILL, RECOVERY, SCRUB, SNAPTRIM
from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_objective
from ceph_tuner.core.moments import duration, duration_s
from ceph_tuner.core.wording import first_of
from ceph_tuner.fleet import boosts, fleet_file
from ceph_tuner.fleet.boosts import MemberBoost
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.member_answers import MemberAnswer
from ceph_tuner_cli.boost import (
    CLEAN,
    AtMostOption,
    KeepOption,
    ProcessesOption,
    TrialsOption,
    UntilOption,
    WhoOption,
)
from ceph_tuner_cli.boost_predict import TwinAnswer, twin_search
from ceph_tuner_cli.fleet import FleetOption, LabelOption, NamesArgument, WithinOption, asked, asked_so_far
from ceph_tuner_cli.fleet_boost_predict import BoostRequest, boosts_by_twin
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.render import Format, FormatOption, emit, say
from ceph_tuner_cli.tables import Cell, Columns, columns

app = typer.Typer(
    help="Recovery, backfill, scrub or snaptrim sooner, on many clusters, until it is done.", no_args_is_help=True
)

YesOption = typer.Option(False, "--yes", "-y", help="Begin them; without, only show what is boosted now.")
TwinsOption = typer.Option(
    False, "--predict", help="First search on each cluster's twin, for minutes, one cluster after another."
)

_NAMED = 10
"""Clusters that a line names."""

Answers = List[MemberAnswer[MemberBoost]]


def _command(kind: str, words: str) -> None:
    @app.command(kind, help=words)
    def begin(
        names: Optional[List[str]] = NamesArgument,
        fleet: Path = FleetOption,
        labels: List[str] = LabelOption,
        until: str = UntilOption,
        at_most: str = AtMostOption,
        keep: List[str] = KeepOption,
        target: str = WhoOption,
        predict: bool = TwinsOption,
        trials: Optional[int] = TrialsOption,
        processes: Optional[int] = ProcessesOption,
        within: float = WithinOption,
        yes: bool = YesOption,
        form: Format = FormatOption,
    ) -> int:
        arguments = _checked(kind, until, at_most, keep, target)
        search = twin_search(predict, trials, processes)
        members = fleet_file.read(fleet).chosen(names or (), labels)
        if search is not None:
            return _begin_by_twin(members, BoostRequest(kind, arguments, within, search, yes), form)
        return _begin(members, kind, arguments, within, yes, form)


for _kind, _words in {
    RECOVERY: "Recover degraded objects sooner on each cluster; each ends its own boost. Exit code 1 where one begins "
    "none.",
    BACKFILL: "Move degraded and misplaced objects sooner on each cluster. Exit code 1 where one begins no boost.",
    SCRUB: "Scrub PGs past their deep-scrub date sooner on each cluster. Exit code 1 where one begins no boost.",
    SNAPTRIM: "Empty the snaptrim queue sooner on each cluster. Exit code 1 where one begins no boost.",
}.items():
    _command(_kind, _words)


@app.command()
def status(
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    within: float = WithinOption,
    form: Format = FormatOption,
) -> int:
    """Say what each cluster boosts, what is left, and when it will be done. Exit code 1 where one cannot say."""
    members = fleet_file.read(fleet).chosen(names or (), labels)
    return _show(asked(members, lambda member: boosts.status(member, within), within), form)


@app.command()
def cancel(
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    why: str = typer.Option("", "--why", help="A word for the audit trails."),
    within: float = WithinOption,
    form: Format = FormatOption,
) -> int:
    """End the boost of each cluster that has one, and take its settings back. It acts at once, as it is the safe way.

    Exit code 1 where a boost may still be on.
    """
    members = fleet_file.read(fleet).chosen(names or (), labels)
    return _done(members, lambda member: boosts.cancel(member, why, within), within, "ended", form)


def _begin(
    members: Sequence[Member], kind: str, arguments: Mapping[str, str], within: float, yes: bool, form: Format
) -> int:
    if yes:
        return _done(members, lambda member: boosts.begin(member, kind, arguments, within), within, "begun", form)
    answers = asked(members, lambda member: boosts.status(member, within), within)
    code = _show(answers, form)
    _say_unchanged(answers, kind)
    return code


def _begin_by_twin(members: Sequence[Member], request: BoostRequest, form: Format) -> int:
    course = boosts_by_twin(members, request)
    answers = list(course.answers.values())
    code = _show(answers, form, course.twins)
    if request.begins:
        _say_unknown([answer for answer in answers if _name(answer) in course.requested], "begun")
    else:
        _say_unchanged(answers, request.kind)
    return INTERRUPTED if course.interrupted else code


def _say_unchanged(answers: Answers, kind: str) -> None:
    free = [_name(answer) for answer in answers if answer.found and not answer.found.kind]
    without = f"add --yes to boost {kind} on {first_of(free, _NAMED)}" if free else f"none is free to boost {kind}"
    say([f"nothing is changed: {without}"])


def _checked(kind: str, until: str, at_most: str, keep: Sequence[str], target: str) -> Dict[str, str]:
    """What each plugin is told, in the order in which it declares it. Raises InputError before any is asked."""
    if until != CLEAN:
        raise InputError("--until", until, CLEAN)
    Target.parse(target)
    if len(keep) > MOST:
        raise InputError("--keep", f"{len(keep)} objectives", f"at most {MOST}")
    for text in keep:
        if parse_objective(text, lambda *keys: "--keep").scope is not None:
            raise InputError("--keep", text, "an objective on the whole cluster")
    Request(kind, duration_s(at_most, "--at-most"))
    arguments = {"until": until, "at_most": at_most, "who": target}
    if keep:
        arguments["keep"] = SEPARATOR.join(keep)
    return arguments


def _done(
    members: Sequence[Member], do: Callable[[Member], MemberBoost], within: float, word: str, form: Format
) -> int:
    """Have it done on all at once, and tell what is known of each, also after Ctrl-C."""
    answers, interrupted = asked_so_far(members, do, within)
    code = _show(answers, form)
    _say_unknown(answers, word)
    return INTERRUPTED if interrupted else code


def _say_unknown(answers: Answers, word: str) -> None:
    unknown = [_name(answer) for answer in answers if answer.may_have_done_it]
    if unknown:
        say([f"it may have {word} on {first_of(unknown, _NAMED)}: see `ceph-tuner fleet boost status`"])


def _show(answers: Answers, form: Format, twins: Optional[Mapping[str, TwinAnswer]] = None) -> int:
    """A row for each, and what fits no cell behind it; the exit code. `twins`: what those said that were asked."""
    emit([{**_document(answer), **_of_twin(answer, twins)} for answer in answers], form, lambda: _table(answers))
    if form is Format.table:
        say([f"{_name(answer)}: {line}" for answer in answers for line in _remarks(answer)])
    return 0 if all(answer.found is not None for answer in answers) else 1


def _document(answer: MemberAnswer[MemberBoost]) -> Dict[str, Any]:
    found = answer.found
    return {
        **answer.to_dict(),
        "begun": found is not None and found.begun,
        "boost": dict(found.document) if found is not None else None,
    }


def _of_twin(answer: MemberAnswer[MemberBoost], twins: Optional[Mapping[str, TwinAnswer]]) -> Dict[str, Any]:
    """For programs; nothing where no twin was to be asked."""
    if twins is None:
        return {}
    twin = twins.get(_name(answer))
    return {"twin": None if twin is None else twin.to_dict()}


def _table(answers: Answers) -> Columns:
    table = columns("cluster", "boost", ">left", "done in", "ends in at most")
    for answer in answers:
        table.add_row(_name(answer), *_cells(answer), style="red" if answer.found is None else None)
    return table


def _cells(answer: MemberAnswer[MemberBoost]) -> List[Cell]:
    found = answer.found
    if found is None:
        return [answer.word, *["-"] * 3]
    if not found.kind:
        return ["none", *["-"] * 3]
    document, now = found.document, time.time()
    amount, end = document.get("left"), document.get("ends_at")
    return [
        f"{found.kind}, {document['phase']}",
        "?" if amount is None else f"{amount:.6g}",
        _done_in(document, now),
        "?" if end is None else duration(max(end - now, 0.0)),
    ]


def _done_in(document: Mapping[str, Any], now: float) -> str:
    """As `boost status` says it: by the windows of the boost, and before the first two by the rate of before."""
    finish, within_s = document.get("finish"), document.get("done_within_s")
    if finish:
        expected = finish.get("expected")
        return "no end" if expected is None else duration(max(expected - now, 0.0))
    return f"within {duration(within_s)}" if within_s else "?"


def _remarks(answer: MemberAnswer[MemberBoost]) -> List[str]:
    found = answer.found
    if found is None:
        return [answer.reason]
    problem = found.document.get("problem")
    held = (*found.document.get("obstacles", []), *found.document.get("notes", []))
    return [*([str(problem)] if problem else []), *map(str, held)]


def _name(answer: MemberAnswer[MemberBoost]) -> str:
    return answer.member.name
