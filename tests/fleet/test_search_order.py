"""Who begins with whose settings: by the fleet's order and what is like, never by what happens to end first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, REEF, TENTACLE, Settings
from ceph_tuner.fleet.advice import SearchTask
from ceph_tuner.fleet.search_order import AT_MOST, ordered
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.twin.model import ClientStream, ClusterModel, Device, OsdModel, Pool, RecoveryWork

SLO = parse_slo({"name": "wanted", "objectives": ["client.p95_ms <= 5 ms", "recovery.finish_s <= 2 h"]})
MODEL = ClusterModel(
    4,
    OsdModel(Device(8e4, 1e9)),
    (Pool("rbd"),),
    (ClientStream("rbd", rate=4000.0, read_share=0.25, block_bytes=8192), ClientStream("rbd", rate=1000.0)),
    (RecoveryWork("rbd", 1000),),
)


def task(name: str, settings: Settings = {}, slo: Any = SLO, **changes: Any) -> SearchTask:  # noqa: B006 - only read
    return SearchTask(name, Question(replace(MODEL, **changes), slo, settings), SearchEffort())


def tuned(share: float) -> Settings:
    nine = zip(MCLOCK_NINE, (share, 1, 0.0, 0.2, 2, 0.5, 0.05, 1, 0.0))
    return {"osd_mclock_profile": "custom", **dict(nine)}


def listed(*tasks: SearchTask) -> Any:
    return ordered({entry.name: entry for entry in tasks})


def test_the_first_of_like_clusters_leads_the_others() -> None:
    slow = replace(MODEL.osd, capacity_iops=500.0, device_class="hdd")
    found = listed(task("a"), task("disks", osd=slow), task("b"), task("c", release=REEF), task("more", osd=slow))
    assert found.leader == {"a": None, "disks": None, "b": "a", "c": "a", "more": "disks"}
    assert found.following("a") == ["b", "c"]


@pytest.mark.parametrize(
    "changes",
    [
        {"clients": (ClientStream("rbd", rate=20_000.0),)},
        {"clients": (ClientStream("rbd", depth=64),)},
        {"slo": parse_slo({"name": "x", "objectives": ["scrub.interval_s <= 7 d"]})},
    ],
    ids=["load", "closed loop: nobody knows its load", "work"],
)
def test_an_unlike_cluster_goes_by_itself(changes: Any) -> None:
    assert listed(task("a"), task("other", **changes)).leader["other"] is None


def test_tuned_settings_in_force_elsewhere_are_tried_built_in_ones_are_everywhere() -> None:
    found = listed(task("plain"), task("tuned", tuned(0.4)), task("same", tuned(0.4)), task("other", tuned(0.3)))

    def names(name: str) -> Any:
        return [profile.workload for profile in found.tasks[name].elsewhere]

    assert names("plain") == ["tuned", "other"]
    assert names("tuned") == names("same") == ["other"]
    assert names("other") == ["tuned"]


def test_no_search_begins_with_more_than_it_has_trials_for() -> None:
    many = [task(f"t{number}", tuned(0.1 + number / 100)) for number in range(9)]
    assert len(listed(task("plain"), *many).tasks["plain"].elsewhere) == AT_MOST


@given(st.lists(st.sampled_from([2000.0, 5000.0, 9000.0, 30_000.0]), min_size=1, max_size=12))
def test_leaders_lead_themselves_and_come_first(rates: Any) -> None:
    names = [f"c{number}" for number in range(len(rates))]
    found = listed(*(task(name, clients=(ClientStream("rbd", rate=rate),)) for name, rate in zip(names, rates)))
    for name, leader in found.leader.items():
        if leader is not None:
            assert found.leader[leader] is None
            assert names.index(leader) < names.index(name)
    # equal clusters have one leader
    assert sum(leader is None for leader in found.leader.values()) <= len(set(rates))


def test_a_digest_is_of_all_that_the_answer_depends_on() -> None:
    one = task("a")
    assert one.digest == task("a").digest
    others = [
        task("b"),
        task("a", tuned(0.4)),
        task("a", release=REEF),
        task("a", osds=5),
        replace(one, effort=replace(one.effort, seed=2)),
        replace(one, explain=False),
        replace(one, elsewhere=listed(task("x"), task("t", tuned(0.3))).tasks["x"].elsewhere),
        replace(one, question=replace(one.question, slo=replace(SLO, objectives=SLO.objectives[:1]))),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 1 + len(others)
    assert one.question.model.release is TENTACLE


def looked_at(rate: float) -> Any:
    """A fleet where the load of one cluster that is looked at, with custom settings, is that of the moment."""
    busy = replace(task("tuned", tuned(0.4), clients=(ClientStream("rbd", rate=rate),)), seen=True)
    return listed(busy, task("described"), replace(task("seen"), seen=True), task("far", release=REEF, osds=5))


@given(st.floats(10, 1e5))
def test_the_load_of_a_cluster_that_is_looked_at_makes_no_other_question_of_anybody(rate: float) -> None:
    usual, now = looked_at(5000.0), looked_at(rate)
    assert now.leader == usual.leader == {"tuned": None, "described": "tuned", "seen": "tuned", "far": "tuned"}
    assert {name: own.digest for name, own in now.tasks.items()} == {
        name: own.digest for name, own in usual.tasks.items()
    }
    # what it is that others begin with still counts
    assert now.tasks["described"].digest != listed(task("described")).tasks["described"].digest


def test_the_described_load_of_a_cluster_counts_in_the_digest_of_those_that_begin_with_its_settings() -> None:
    def digest(rate: float) -> str:
        there = task("t", tuned(0.3), clients=(ClientStream("rbd", rate=rate),))
        return str(listed(task("a"), there).tasks["a"].digest)

    assert digest(5000.0) != digest(5100.0)
