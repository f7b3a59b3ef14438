from __future__ import annotations

import json
from dataclasses import replace
from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.condition import Condition, ConditionChange, changed, lighter
from ceph_tuner.core.autopilot.policy import Policy

MEANS = {
    "client.iops": 400.0,
    "client.bytes_s": 400 * 4096.0,
    "client.read_iops": 100.0,
    "recovery.objects_left": 900.0,
    "recovery.objects_s": 20.0,
    "scrub.objects_s": 0.0,
}
NOW = Condition.of("20.2.4", {"ssd": 10}, {"ssd": 900.0}, MEANS)


def test_it_is_made_out_of_a_window() -> None:
    assert (NOW.iops, NOW.operation_bytes, NOW.read_share) == (400.0, 4096.0, 0.25)
    assert NOW.work == {"recovery"}
    assert NOW.idle_iops == pytest.approx(90.0)
    unseen = Condition.of("20.2.4", {}, {}, {})
    assert (unseen.iops, unseen.operation_bytes, unseen.read_share) == (None, None, None)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(NOW, release="20.2.5"), "release 20.2.4 became 20.2.5"),
        (replace(NOW, osds={"ssd": 9}), "10 OSDs of class ssd became 9"),
        (replace(NOW, osds={"ssd": 10, "hdd": 1}), "0 OSDs of class hdd became 1"),
        (replace(NOW, capacity_iops={"ssd": 1200.0}), "capacity of class ssd: 900 IOPS an OSD became 1200"),
        (replace(NOW, iops=801.0), "clients: 400 operations/s became 801"),
        (replace(NOW, iops=199.0), "clients: 400 operations/s became 199"),
        (replace(NOW, operation_bytes=65536.0), "clients: 4096 bytes an operation became 6.554e+04"),
        (replace(NOW, read_share=0.75), "clients: 25% reads became 75%"),
        (replace(NOW, work=frozenset({"recovery", "scrub", "snaptrim"})), "scrub and snaptrim began"),
    ],
)
def test_what_makes_it_another_cluster(other: Condition, words: str) -> None:
    assert changed(NOW, other) == [words]


@pytest.mark.parametrize(
    "other",
    [
        replace(NOW, iops=790.0, operation_bytes=5000.0, read_share=0.4),
        replace(NOW, capacity_iops={"ssd": 1000.0}),
        replace(NOW, work=frozenset()),
        replace(NOW, iops=None, operation_bytes=None, read_share=None),
    ],
)
def test_what_does_not(other: Condition) -> None:
    assert changed(NOW, other) == []


def test_one_disk_of_many_is_no_other_cluster() -> None:
    large = replace(NOW, osds={"ssd": 1000})
    assert changed(large, replace(large, osds={"ssd": 999})) == []


def test_the_mix_of_idle_clients_says_nothing() -> None:
    quiet = replace(NOW, iops=3.0, operation_bytes=400.0, read_share=1.0)
    assert changed(quiet, replace(quiet, iops=80.0, operation_bytes=1e6, read_share=0.0)) == []
    assert changed(quiet, NOW) == ["clients: 3 operations/s became 400"]


def after(loads: List[float], policy: Policy, before: Condition = NOW) -> ConditionChange:
    found = ConditionChange()
    for load in loads:
        found = found.after(before, replace(before, iops=load), policy)
    return found


def test_a_change_counts_once_it_lasted() -> None:
    policy = Policy(changed_windows=3)
    assert after([900.0] * 2, policy).lasting(policy) == ()
    assert after([900.0] * 3, policy).lasting(policy) == ("clients: 400 operations/s became 900",)


def test_windows_that_are_nearly_as_before_end_the_count_and_those_between_do_not() -> None:
    policy = Policy(changed_windows=3)
    assert after([900.0, 900.0, 500.0, 900.0], policy).windows == 1
    # 700 is beyond the square root of 2, within 2: a load that hovers is counted
    assert after([900.0, 900.0, 700.0, 900.0], policy).windows == 3


@given(st.lists(st.floats(400 / 1.4, 400 * 1.4)))
def test_noise_never_adds_up_to_a_change(loads: List[float]) -> None:
    policy = Policy(changed_windows=1)
    assert after(loads, policy) == ConditionChange()


rates = st.none() | st.floats(0, 1e6)
conditions = st.builds(
    Condition,
    st.sampled_from(["18.2.7", "20.2.4"]),
    st.dictionaries(st.sampled_from(["ssd", "hdd"]), st.integers(0, 10000)),
    st.dictionaries(st.sampled_from(["ssd", "hdd"]), st.floats(1, 1e5)),
    rates,
    rates,
    st.none() | st.floats(0, 1),
    st.frozensets(st.sampled_from(["recovery", "backfill", "scrub", "snaptrim"])),
)


@given(conditions)
def test_nothing_is_another_than_itself_and_all_survive_the_store(condition: Condition) -> None:
    assert changed(condition, condition) == []
    assert Condition.from_dict(json.loads(json.dumps(condition.to_dict()))) == condition


@given(conditions, conditions, st.floats(1.1, 10), st.floats(0, 5))
def test_a_larger_factor_never_finds_more(before: Condition, now: Condition, factor: float, more: float) -> None:
    assert len(changed(before, now, factor + more)) <= len(changed(before, now, factor))


@given(conditions, conditions)
def test_all_but_background_work_counts_either_way(before: Condition, now: Condition) -> None:
    one, other = replace(before, work=frozenset()), replace(now, work=frozenset())
    assert len(changed(one, other)) == len(changed(other, one))


def test_less_to_do_is_a_lighter_load_unless_clients_were_idle_before() -> None:
    assert lighter(MEANS, {**MEANS, "client.iops": 200.0}, NOW.idle_iops)
    assert not lighter(MEANS, {**MEANS, "client.iops": 390.0}, NOW.idle_iops)
    assert lighter(MEANS, {**MEANS, "recovery.objects_left": 0.0}, NOW.idle_iops)
    idle = {"client.iops": 3.4}
    assert not lighter(idle, {"client.iops": 0.0}, NOW.idle_iops)
    assert lighter(idle, {"client.iops": 0.0})


def test_clients_that_are_not_seen_any_more_may_have_less_to_do() -> None:
    unseen = {name: value for name, value in MEANS.items() if name != "client.iops"}
    assert lighter(MEANS, unseen, NOW.idle_iops) == "clients are not seen"
    # nobody was there before either
    assert not lighter({**MEANS, "client.iops": 1.0}, unseen, NOW.idle_iops)
