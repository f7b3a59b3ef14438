"""`ceph-tuner fleet boost … --predict`: each cluster's twin is asked, and its boost begun, in turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping, Sequence, Set

from ceph_tuner.core.errors import InputError
from ceph_tuner.fleet import boosts
from ceph_tuner.fleet.boosts import MemberBoost
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.member_answers import MemberAnswer, answer_of
from ceph_tuner.fleet.plugin_of_member import Declined
from ceph_tuner_cli.boost_predict import NOT_ASKED, TwinAnswer, TwinSearch, UsualBoost, answer_of_twin
from ceph_tuner_cli.fleet import asked, asked_so_far, not_asked
from ceph_tuner_cli.render import say, warn

NO_MORE = "interrupted: no more boosts are begun"


@dataclass(frozen=True)
class BoostRequest:
    """What is asked of each cluster."""

    kind: str
    arguments: Mapping[str, str]
    """As the plugin takes them."""
    within_s: float
    search: TwinSearch
    begins: bool
    """False: it is only said what the twins offer."""


@dataclass
class BoostsByTwin:
    """What came of it."""

    answers: Dict[str, MemberAnswer[MemberBoost]]
    twins: Dict[str, TwinAnswer] = field(default_factory=dict)
    requested: Set[str] = field(default_factory=set)
    """Clusters that were told to begin."""
    interrupted: bool = False


def boosts_by_twin(members: Sequence[Member], request: BoostRequest) -> BoostsByTwin:
    """Ask the twin of each that does not boost this work yet, one after another, as each search takes all processors.

    A boost begins with its own twin's answer: nobody waits for the clusters that come later, and no offer grows old.
    Ctrl-C ends it with what was begun by then.
    """
    within_s = request.within_s
    statuses = asked(members, lambda member: boosts.status(member, within_s), within_s)
    course = BoostsByTwin({answer.member.name: answer for answer in statuses})
    waiting = [answer.member for answer in statuses if answer.found and answer.found.kind != request.kind]
    for number, member in enumerate(waiting):
        say([f"{member.name}: asking its twin ({number + 1} of {len(waiting)})"])
        try:
            _take_turn(course, member, request)
        except KeyboardInterrupt:
            course.interrupted = True
        if course.interrupted:
            rest = [each for each in waiting[number:] if each.name not in course.requested]
            course.answers.update({each.name: not_asked(each) for each in rest})
            break
    return course


def _take_turn(course: BoostsByTwin, member: Member, request: BoostRequest) -> None:
    """Raises KeyboardInterrupt where it was told nothing by then."""
    (usual,) = asked([member], lambda member: _usual(member, request), request.within_s)
    if usual.found is None:
        course.answers[member.name] = MemberAnswer(member, None, usual.problem, usual.kind, usual.seconds)
        return
    twin = _twin(member, usual.found, request)
    course.twins[member.name] = twin
    say([f"{member.name}: {line}" for line in twin.words])
    if request.begins:
        course.requested.add(member.name)
        (answer,), course.interrupted = asked_so_far(
            [member],
            lambda member: boosts.begin(member, request.kind, request.arguments, request.within_s, twin.payload),
            request.within_s,
        )
        course.answers[member.name] = answer


def _usual(member: Member, request: BoostRequest) -> UsualBoost:
    document = boosts.foretold(member, request.kind, request.arguments, request.within_s)
    try:
        return UsualBoost.of(document, request.kind, request.arguments["who"])
    except InputError as refusal:
        raise Declined(refusal) from refusal


def _twin(member: Member, usual: UsualBoost, request: BoostRequest) -> TwinAnswer:
    """What its twin says, or why it says nothing: its boost then takes what it would anyway.

    Raises KeyboardInterrupt.
    """
    if usual.is_measured:
        return TwinAnswer(NOT_ASKED)
    (described,) = asked(
        [member],
        lambda member: boosts.described(member, usual.target, usual.also, request.within_s),
        request.within_s,
    )
    if described.found is None:
        return TwinAnswer(f"it cannot be asked: {described.reason}")
    description, at = described.found
    if description.notes:
        say([f"{member.name}: described by itself, with {len(description.notes)} guesses (`twin describe` names them)"])
    warn([f"{member.name}: {line}" for line in description.unlikely])
    answer = answer_of(member, lambda member: answer_of_twin(usual, description, at, request.search, NO_MORE))
    if answer.problem:
        return TwinAnswer(f"it has no answer: {answer.reason}")
    if answer.found is None:
        raise KeyboardInterrupt
    return answer.found
