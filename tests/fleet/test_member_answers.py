from __future__ import annotations

import threading
from typing import List

import pytest

from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, PermissionRefused
from ceph_tuner.fleet.contract import ByLab, Member
from ceph_tuner.fleet.member_answers import ask_all


def members(*names: str) -> List[Member]:
    return [Member(name, ByLab(name)) for name in names]


def test_each_member_answers_once_and_a_failure_is_told_by_its_kind() -> None:
    def ask(member: Member) -> str:
        if member.name == "down":
            raise ClusterNotFound("cluster down", "no answer", "a running cluster")
        if member.name == "slow":
            raise ClusterTimeout("no answer in time")
        if member.name == "closed":
            raise PermissionRefused("cluster closed", "a role that does not allow it", "another")
        if member.name == "mad":
            return {"nodes": 1}["osds"]  # type: ignore[return-value]
        return member.name.upper()

    found = {
        answer.member.name: answer for answer in ask_all(members("a", "down", "slow", "closed", "mad", "b"), ask, 60)
    }
    assert {name: answer.found for name, answer in found.items()} == {
        "a": "A", "b": "B", "down": None, "slow": None, "closed": None, "mad": None,
    }  # fmt: skip
    assert [found[name].kind for name in ("a", "down", "slow", "mad")] == ["ok", "failed", "late", "nonsense"]
    assert found["closed"].kind == "refused"
    assert "KeyError" in found["mad"].problem
    assert "\n" not in found["mad"].problem


@pytest.mark.parametrize("at_once", [1, 2, 10])
def test_one_that_never_answers_delays_nobody_and_takes_no_place_for_ever(at_once: int) -> None:
    never = threading.Event()

    def ask(member: Member) -> str:
        if member.name.startswith("hung"):
            never.wait()
        return member.name

    answers = list(ask_all(members("hung-1", "hung-2", "a", "b"), ask, 0.3, at_once))
    never.set()
    assert {answer.member.name: answer.kind for answer in answers} == {
        "hung-1": "late", "hung-2": "late", "a": "ok", "b": "ok",
    }  # fmt: skip
    if at_once == 10:
        # they came while the others still hung
        assert {answer.member.name for answer in answers[:2]} == {"a", "b"}


def test_no_more_are_asked_at_the_same_time_than_allowed() -> None:
    busy, most, guard = [0], [0], threading.Lock()

    def ask(member: Member) -> None:
        with guard:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        threading.Event().wait(0.01)
        with guard:
            busy[0] -= 1

    assert len(list(ask_all(members(*(f"c{n}" for n in range(20))), ask, 60, at_once=3))) == 20
    assert most[0] <= 3
