from __future__ import annotations

from typing import List, Sequence, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.contract import Rollout
from ceph_tuner.core.autopilot.groups import CANARY_MOST, SECTIONS, rollout
from ceph_tuner.core.autopilot.policy import CANARY_KINDS, Policy
from ceph_tuner.core.ceph.target import Place, covered
from ceph_tuner.core.errors import InputError


def cluster(racks: int, hosts: int, osds: int, classes: Sequence[str] = ("ssd",)) -> List[Place]:
    """Equal hosts in equal racks; the classes take turns on each host."""
    return [
        Place(
            (rack * hosts + host) * osds + osd,
            classes[osd % len(classes)],
            {"host": f"h{rack}-{host}", "rack": f"r{rack}", "root": "default"},
        )
        for rack in range(racks)
        for host in range(hosts)
        for osd in range(osds)
    ]


def kinds_of(targets: Sequence[str]) -> Set[str]:
    return {"osd" if target.startswith("osd.") else target.split("/")[1].split(":")[0] for target in targets}


@pytest.mark.parametrize(
    ("places", "kind", "share"),
    [
        (cluster(4, 3, 4), "rack", 1 / 4),
        (cluster(12, 2, 3), "rack", 4 / 12),
        (cluster(3, 2, 4), "host", 2 / 6),
        (cluster(1, 3, 4), "host", 1 / 3),
        (cluster(1, 2, 5), "osd", 3 / 10),
        (cluster(1, 1, 3), "osd", 1 / 3),
    ],
)
def test_the_canary_is_the_widest_subtree_of_which_there_are_enough(
    places: List[Place], kind: str, share: float
) -> None:
    planned = rollout(places, "ssd", "osd", Policy())
    assert kinds_of(planned.stages[0].targets) == {kind}
    assert len(planned.stages[0].osds) / len(places) == pytest.approx(share)
    assert not planned.alternating
    assert kind in planned.why


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_osds_for_a_control_take_turns(count: int) -> None:
    planned = rollout(cluster(1, 1, count), "ssd", "osd/class:ssd", Policy())
    assert planned.alternating
    (stage,) = planned.stages
    assert (stage.targets, stage.osds, stage.control) == (("osd/class:ssd",), tuple(range(count)), ())
    assert f"too few for a control (1 of 4 racks, 1 of 3 hosts, {count} of 3 osds)" in planned.why
    assert "take turns" in planned.why


def test_the_policy_names_the_kind_and_the_share() -> None:
    places = cluster(4, 3, 4)
    assert kinds_of(rollout(places, "ssd", "osd", Policy(canary="host")).stages[0].targets) == {"host"}
    assert rollout(places, "ssd", "osd", Policy(canary="osd", canary_share=0.05)).stages[0].targets == (
        "osd.0",
        "osd.1",
    )
    assert rollout(places, "ssd", "osd", Policy(canary="alternate")).alternating
    # two OSDs are too few for `auto`; an operator who asks for it gets one against one
    pair = rollout(cluster(1, 1, 2), "ssd", "osd", Policy(canary="osd"))
    assert [stage.osds for stage in pair.stages] == [(0,), (0, 1)]
    assert pair.stages[0].control == (1,)


def test_a_subtree_above_the_share_gives_way_to_a_finer_one_and_says_so() -> None:
    planned = rollout(cluster(1, 2, 8), "ssd", "osd", Policy(canary="host"))
    assert kinds_of(planned.stages[0].targets) == {"osd"}
    assert "no host is within 34%" in planned.why
    # one failure domain, so that placement groups have one replica at most on it
    assert set(planned.stages[0].osds) < set(range(8))


def test_stages_double_about_and_the_target_comes_last_without_a_control() -> None:
    planned = rollout(cluster(10, 4, 5), "ssd", "osd/class:ssd", Policy(canary_share=0.1))
    sizes = [len(stage.osds) for stage in planned.stages]
    assert sizes[0] == 20
    assert sizes[-1] == 200
    assert len(sizes) == 4
    assert all(1.5 <= later / earlier <= 3.2 for earlier, later in zip(sizes, sizes[1:]))
    assert planned.stages[-1].targets == ("osd/class:ssd",)
    assert planned.stages[-1].control == ()


def test_a_host_of_several_classes_is_written_by_its_osds() -> None:
    places = cluster(1, 4, 4, ("ssd", "hdd"))
    first = rollout(places, "ssd", "osd/class:ssd", Policy()).stages[0]
    assert first.targets == ("osd.0", "osd.2")
    assert all(places[osd].device_class == "ssd" for osd in (*first.osds, *first.control))


def test_a_subtree_of_one_class_with_all_osds_up_comes_before_others() -> None:
    places = cluster(1, 6, 4)
    places[1] = Place(1, "ssd", places[1].locations, up=False)
    places[5] = Place(5, "hdd", places[5].locations)
    first = rollout(places, "ssd", "osd/class:ssd", Policy(canary_share=0.2)).stages[0]
    assert first.targets == ("osd/host:h0-2",)
    # but where each host has one down, one of them will do
    limping = [Place(p.osd, "ssd", p.locations, up=p.osd % 4 != 0) for p in cluster(1, 6, 4)]
    assert rollout(limping, "ssd", "osd", Policy(canary_share=0.2)).stages[0].osds == (1, 2, 3)


def test_a_large_cluster_is_compared_with_as_many_spread_evenly() -> None:
    planned = rollout(cluster(20, 10, 10), "ssd", "osd", Policy(canary_share=0.05))
    first = planned.stages[0]
    # not a rack of a hundred: that many OSDs are not put at risk at once
    assert len(first.osds) == len(first.control) == 60 <= CANARY_MOST
    per_rack = [sum(osd // 100 == rack for osd in first.control) for rack in range(1, 20)]
    assert min(per_rack) >= 3


@pytest.mark.parametrize(
    ("places", "target", "policy"),
    [
        (cluster(25, 20, 20), "osd", Policy()),
        (cluster(25, 20, 20), "osd", Policy(canary="osd")),
        (cluster(1, 500, 20), "osd", Policy()),
        (cluster(25, 20, 20, ("ssd", "hdd")), "osd/class:ssd", Policy()),
    ],
)
def test_ten_thousand_osds_take_few_sections_and_few_stages(places: List[Place], target: str, policy: Policy) -> None:
    planned = rollout(places, "ssd", target, policy)
    assert all(len(stage.targets) <= SECTIONS for stage in planned.stages)
    assert len(planned.stages) <= 7
    members = planned.stages[-1].osds
    if len(planned.stages[-2].osds) * 5 < len(members):
        assert "times as large as the one before" in planned.why


@pytest.mark.parametrize(
    ("device_class", "target"), [("hdd", "osd"), ("ssd", "osd/host:none"), ("ssd", "osd/class:hdd"), ("", "osd.99")]
)
def test_a_target_without_running_osds_is_refused(device_class: str, target: str) -> None:
    with pytest.raises(InputError, match="covers no running OSD"):
        rollout(cluster(1, 3, 3), device_class, target, Policy())
    with pytest.raises(InputError, match="target: found"):
        rollout(cluster(1, 3, 3), "ssd", "mon", Policy())


@st.composite
def clusters(draw: st.DrawFn) -> List[Place]:
    """Uneven hosts of mixed classes, in racks or in none, some OSDs down, some outside of any host."""
    racks = draw(st.integers(0, 6))
    kind = st.tuples(st.sampled_from(["ssd", "ssd", "ssd", "hdd"]), st.integers(0, 12), st.integers(0, 9))
    places = []
    for number, (device_class, host, luck) in enumerate(draw(st.lists(kind, max_size=80))):
        locations = {"root": "default"}
        if host:
            locations["host"] = f"h{host}"
            if racks:
                locations["rack"] = f"r{host % racks}"
        places.append(Place(3 * number, device_class, locations, up=luck > 0))
    return places


policies = st.builds(Policy, canary=st.sampled_from(CANARY_KINDS), canary_share=st.floats(0.01, 0.5, exclude_min=True))


def members_of(places: Sequence[Place], device_class: str, target: str) -> Set[int]:
    by_osd = {place.osd: place for place in places}
    return {osd for osd in covered(target, places) if device_class in ("", by_osd[osd].device_class)}


@given(clusters(), st.sampled_from(["", "ssd"]), st.sampled_from(["osd", "osd/class:ssd", "osd/host:h3"]), policies)
def test_laws_of_a_rollout(places: List[Place], device_class: str, target: str, policy: Policy) -> None:
    members = members_of(places, device_class, target)
    if not members:
        with pytest.raises(InputError):
            rollout(places, device_class, target, policy)
        return
    planned = rollout(places, device_class, target, policy)
    first, last = planned.stages[0], planned.stages[-1]
    assert planned == rollout(list(reversed(places)), device_class, target, policy)
    assert Rollout.from_dict(planned.to_dict()) == planned
    assert planned.why
    assert (last.targets, set(last.osds), last.control) == ((target,), set(covered(target, places)), ())
    for earlier, later in zip(planned.stages, planned.stages[1:]):
        assert set(earlier.osds) < set(later.osds)
    reached: Set[int] = set()
    for stage in planned.stages[:-1]:
        assert stage.control
        assert not set(stage.osds) & set(stage.control)
        assert {*stage.osds, *stage.control} <= members
        assert 1 <= len(stage.targets) <= SECTIONS
        for section in stage.targets:
            reached |= set(covered(section, places))
        assert reached == set(stage.osds)
    if planned.alternating:
        assert len(planned.stages) == 1
    else:
        assert len(first.osds) <= max(1, policy.canary_share * len(members) + 1e-6)


def test_single_osds_under_too_few_hosts_are_no_canary() -> None:
    # 3 hosts of 8 OSDs, 3 replicas: a canary of 8 OSDs would be a whole host, and serve every write
    planned = rollout(cluster(1, 3, 8), "ssd", "osd", Policy(), replicas=3)
    assert planned.alternating
    assert "3 of 6 hosts under the OSDs" in planned.why
    assert not rollout(cluster(1, 6, 4), "ssd", "osd", Policy(), replicas=3).alternating
