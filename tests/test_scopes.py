from __future__ import annotations

from typing import Any, Dict, List

import pytest

from ceph_tuner.core.measure.metrics import CLASS, METRICS, OF_POOLS, POOL, Scope, in_order, parted, scoped
from ceph_tuner.core.measure.scopes import Members, crush_map, layout_of

HDD, NVME = Scope(CLASS, "hdd"), Scope(CLASS, "nvme")


def crush() -> Dict[str, Any]:
    """As `osd crush dump`: two hosts, each with a disk and a flash drive, an OSD that is gone, and shadow trees."""
    classes = {0: "hdd", 1: "nvme", 2: "hdd", 3: "nvme"}
    return {
        "devices": [
            *({"id": osd, "name": f"osd.{osd}", "class": name} for osd, name in classes.items()),
            {"id": 4, "name": "device4"},
        ],
        "buckets": [
            {"id": -1, "name": "default", "items": [{"id": -2}, {"id": -3}]},
            {"id": -2, "name": "h0", "items": [{"id": 0}, {"id": 1}]},
            {"id": -3, "name": "h1", "items": [{"id": 2}, {"id": 3}]},
            {"id": -4, "name": "default~hdd", "items": [{"id": 0}, {"id": 2}]},
        ],
        "rules": [
            rule(0, "default"),
            rule(1, "default~nvme"),
            rule(2, "default~hdd"),
            rule(3, "h1"),
            rule(4, "default~nvme", "default~hdd"),
        ],
    }


def rule(number: int, *roots: str) -> Dict[str, Any]:
    steps: List[Dict[str, Any]] = [{"op": "take", "item": -1, "item_name": root} for root in roots]
    return {"rule_id": number, "steps": [*steps, {"op": "chooseleaf_firstn", "type": "host"}, {"op": "emit"}]}


POOLS = [
    {"pool_id": number, "pool_name": name, "crush_rule": of}
    for number, (name, of) in enumerate(
        [("all", 0), ("volumes", 1), ("cold", 2), ("rack", 3), ("first on flash", 4), ("lost", 9)], start=1
    )
]
LAYOUT = layout_of(crush_map(crush()), POOLS)


def test_a_class_has_its_osds_and_the_pools_that_lie_on_it() -> None:
    assert LAYOUT.members(HDD) == Members(frozenset({0, 2}), frozenset({1, 3, 4, 5, 6}))
    assert LAYOUT.members(NVME) == Members(frozenset({1, 3}), frozenset({1, 2, 4, 5, 6}))
    assert set(LAYOUT.classes) == {"hdd", "nvme"}


@pytest.mark.parametrize(
    ("pool", "osds"),
    [("all", {0, 1, 2, 3}), ("volumes", {1, 3}), ("cold", {0, 2}), ("rack", {2, 3}), ("first on flash", {0, 1, 2, 3})],
)
def test_a_pool_lies_where_its_rule_takes_from(pool: str, osds: Any) -> None:
    members = LAYOUT.members(Scope(POOL, pool))
    assert members is not None
    assert members.osds == osds


def test_a_pool_whose_rule_is_not_known_may_lie_anywhere() -> None:
    assert LAYOUT.pools["lost"].osds == {0, 1, 2, 3}


def test_pools_on_several_classes_are_named() -> None:
    assert LAYOUT.spanning("hdd") == ("all", "rack", "first on flash", "lost")
    assert LAYOUT.class_of(Scope(POOL, "volumes")) == ("nvme",)
    assert LAYOUT.class_of(Scope(POOL, "all")) == ("hdd", "nvme")


def test_what_the_cluster_has_not_is_said() -> None:
    assert LAYOUT.missing([HDD, Scope(CLASS, "ssd"), Scope(POOL, "gone")]) == [
        "there is no OSD of the device class ssd",
        "there is no pool called gone",
    ]
    assert LAYOUT.class_of(Scope(POOL, "gone")) == ()


@pytest.mark.parametrize("scope", [None, HDD, Scope(POOL, "volumes")])
def test_a_name_with_a_scope_comes_apart_as_it_was_put_together(scope: Any) -> None:
    for name in METRICS:
        assert parted(scoped(name, scope)) == (name, scope)


def test_a_metric_in_a_scope_is_the_metric_about_less() -> None:
    for name, metric in METRICS.items():
        of_class = METRICS[scoped(name, HDD)]
        assert (of_class.unit, of_class.lower_is_better) == (metric.unit, metric.lower_is_better)
        assert "class hdd" in of_class.meaning
        assert (scoped(name, Scope(POOL, "p")) in METRICS) == (name in OF_POOLS)


@pytest.mark.parametrize(
    "name",
    [
        "client.iops{}",
        "client.iops{class=}",
        "client.iops{host=a}",
        "client.iops{class=a,pool=b}",
        "client.iops{class=a b}",
        'client.iops{class=a"}',
        "client.iops{class=a}{pool=b}",
        "no.such{class=a}",
        "client.iops{class=" + "a" * 101 + "}",
    ],
)
def test_what_is_no_scope_is_no_metric(name: str) -> None:
    assert name not in METRICS
    assert METRICS.get(name) is None


def test_the_clusters_own_come_first_and_then_scope_by_scope() -> None:
    names = [
        "ops.slow",
        "client.iops{pool=a}",
        "x",
        "client.p95_ms{class=hdd}",
        "client.iops{class=hdd}",
        "client.iops",
    ]
    assert in_order(names) == [
        "client.iops",
        "ops.slow",
        "client.iops{class=hdd}",
        "client.p95_ms{class=hdd}",
        "client.iops{pool=a}",
    ]


# whom a health check is about


@pytest.mark.parametrize(
    ("scope", "lines", "about"),
    [
        (NVME, ["osd.0 is near full"], False),
        (HDD, ["osd.0 is near full"], True),
        (NVME, ["osd.0 is near full", "osd.1 is near full"], True),
        (NVME, ["pool 'cold' is nearfull"], False),
        (NVME, ["pool 'volumes' is nearfull"], True),
        (NVME, ["pg 3.1f is stuck undersized for 8m, last acting [0]"], False),
        (NVME, ["pg 2.1f is stuck undersized for 8m, last acting [1]"], True),
        (Scope(POOL, "cold"), ["osd.2 is full"], True),
        (Scope(POOL, "cold"), ["osd.3 is full"], False),
        # who cannot be told apart is taken to be concerned
        (NVME, ["noscrub flag(s) set"], True),
        (NVME, [], True),
        (NVME, ["pool 'made a moment ago' is nearfull"], True),
        (Scope(CLASS, "tape"), ["osd.0 is near full"], True),
    ],
)
def test_a_health_check_is_about_those_that_its_detail_names(scope: Scope, lines: List[str], about: bool) -> None:
    check = {
        "severity": "HEALTH_WARN",
        "summary": {"count": len(lines)},
        "detail": [{"message": each} for each in lines],
    }
    assert LAYOUT.concerns(scope, check) is about


def test_a_check_that_lists_a_part_of_those_it_counts_may_be_about_anybody() -> None:
    check = {"summary": {"message": "60 nearfull osd(s)", "count": 60}, "detail": [{"message": "osd.0 is near full"}]}
    assert LAYOUT.concerns(NVME, check)
