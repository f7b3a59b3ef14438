"""The lease against a small API server: of several holders one may act, whatever is lost on the way."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.controller.lease import LEASE_S, LONGEST_S, USABLE_S, Lease
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused, TunerError
from ceph_tuner.rook.kubernetes_api import ApiAnswer

NAME = "ceph-tuner-controller"


class Clock:
    """Time of one machine: others' clocks say other things, and all go on at the same pace."""

    def __init__(self, world: World, ahead_s: float) -> None:
        self._world, self._ahead_s = world, ahead_s

    def now(self) -> float:
        return self._world.at + self._ahead_s

    def monotonic(self) -> float:
        return self._world.at + 7 * self._ahead_s

    def sleep(self, seconds: float) -> None:
        self._world.at += seconds


class World:
    """An API server that keeps one Lease, with the versions that Kubernetes gives."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.lease: Optional[Dict[str, Any]] = None
        self.version = 0
        self.lost = ""
        """The next write's request or answer does not come through; empty: both do."""

    def call(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> ApiAnswer:
        if method == "GET":
            return ApiAnswer(200, dict(self.lease)) if self.lease else ApiAnswer(404, {})
        lost, self.lost = self.lost, ""
        if lost == "request":
            raise ClusterTimeout("no answer")
        answer = self._write(method, body or {})
        if lost == "answer":
            raise ClusterTimeout("no answer")
        return answer

    def _write(self, method: str, body: Mapping[str, Any]) -> ApiAnswer:
        if method == "POST" and self.lease is not None:
            return ApiAnswer(409, {"message": "already exists"})
        if method == "PUT" and (body["metadata"].get("resourceVersion") != str(self.version)):
            return ApiAnswer(409, {"message": "the object has been modified"})
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return ApiAnswer(200, dict(self.lease))

    def candidate(self, identity: str, ahead_s: float = 0.0) -> Lease:
        return Lease(self, "rook-ceph", NAME, identity, Clock(self, ahead_s))  # type: ignore[arg-type]


def attempt(lease: Lease) -> None:
    try:
        lease.attempt()
    except TunerError:
        return


ACTS = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["attempt", "attempt", "attempt", "release"]),
    st.sampled_from(["", "", "", "request", "answer"]),
    st.floats(0, 20),
)


@given(st.lists(ACTS, max_size=60))
def test_at_no_time_two_may_act(acts: List[Tuple[int, str, str, float]]) -> None:
    world = World()
    candidates = [world.candidate(name, ahead) for name, ahead in (("a", 0.0), ("b", 3600.0), ("c", -500.0))]
    for who, act, lost, pause_s in acts:
        world.lost = lost
        if act == "attempt":
            attempt(candidates[who])
        else:
            with contextlib.suppress(TunerError):
                candidates[who].release()
        for _ in range(4):
            assert sum(each.is_held for each in candidates) <= 1
            world.at += pause_s / 4


def test_one_that_is_gone_is_followed_after_its_lease_and_not_before() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b", -3600.0)
    first.attempt()
    second.attempt()
    assert (first.is_held, second.is_held, second.holder) == (True, False, "a")
    world.at += USABLE_S
    assert not first.is_held
    second.attempt()
    assert not second.is_held
    world.at += LEASE_S - USABLE_S + 0.1
    second.attempt()
    assert second.is_held
    assert world.lease is not None
    assert world.lease["spec"]["leaseTransitions"] == 1


def test_one_that_gives_it_up_is_followed_at_once() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    first.attempt()
    first.release()
    second.attempt()
    assert (first.is_held, second.is_held) == (False, True)


def test_a_short_lease_of_another_is_not_believed() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    first.attempt()
    assert world.lease is not None
    world.lease["spec"]["leaseDurationSeconds"] = 2
    second.attempt()
    world.at += USABLE_S - 0.1
    second.attempt()
    assert (first.is_held, second.is_held) == (True, False)


def test_a_lease_of_years_holds_the_others_up_for_minutes() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    first.attempt()
    assert world.lease is not None
    world.lease["spec"]["leaseDurationSeconds"] = 2**31 - 1
    second.attempt()
    world.at += LONGEST_S - 1
    second.attempt()
    assert not second.is_held
    world.at += 2
    second.attempt()
    assert second.is_held


@pytest.mark.parametrize(
    "lease",
    [
        {"metadata": ["x"], "spec": {"holderIdentity": "b"}},
        {"metadata": "x", "spec": [["holderIdentity", "b"]]},
    ],
)
def test_a_lease_of_another_shape_is_an_error_of_that_attempt(lease: Dict[str, Any]) -> None:
    world = World()
    world.lease = lease
    with pytest.raises(CommandFailed):
        world.candidate("a").attempt()


@pytest.mark.parametrize("spec", [[], "x", {"leaseTransitions": "many"}, {"leaseTransitions": [1]}])
def test_a_lease_that_makes_no_sense_is_an_error_of_that_attempt(spec: Any) -> None:
    world = World()
    world.lease = {"metadata": {"resourceVersion": "1"}, "spec": spec}
    if spec == []:
        world.lease["spec"] = [1]
    with pytest.raises(CommandFailed):
        world.candidate("a").attempt()


def test_a_refusal_is_told() -> None:
    world = World()
    lease = world.candidate("a")
    world.call = lambda *_: ApiAnswer(403, {"message": "forbidden"})  # type: ignore[method-assign]
    with pytest.raises(PermissionRefused, match="forbidden"):
        lease.attempt()
    assert not lease.is_held
