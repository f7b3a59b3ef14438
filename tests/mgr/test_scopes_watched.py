from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import pytest

from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.measure.metrics import CLASS, POOL, Scope
from tuner.scopes_watched import LOOK_S, ScopesWatched
from tuner.served import ServedByPool

CRUSH = {
    "devices": [{"id": 0, "name": "osd.0", "class": "nvme"}, {"id": 1, "name": "osd.1", "class": "hdd"}],
    "buckets": [{"id": -1, "name": "default", "items": [{"id": 0}, {"id": 1}]}],
    "rules": [{"rule_id": 0, "steps": [{"op": "take", "item_name": "default~nvme"}]}],
}
POOLS = [{"pool_id": 1, "pool_name": "volumes", "crush_rule": 0}]


class Monitors:
    """Answer what the CRUSH map and the pools are, or nothing."""

    def __init__(self) -> None:
        self.answers: Dict[str, str] = {"osd crush dump": json.dumps(CRUSH), "osd pool ls": json.dumps(POOLS)}
        self.asked = 0

    def tell_many(
        self, asked: Sequence[Tuple[str, str, Mapping[str, Any]]], timeout: float
    ) -> Dict[Tuple[str, str], str]:
        self.asked += 1
        return {each[:2]: self.answers[each[1]] for each in asked if each[1] in self.answers}


def slo(*objectives: str) -> Slo:
    return parse_slo({"objectives": list(objectives)})


def watched() -> Tuple[ScopesWatched, Monitors, List[float]]:
    monitors, now = Monitors(), [1000.0]
    return ScopesWatched(monitors, lambda: now[0]), monitors, now  # type: ignore[arg-type]


OF_POOL = slo("client.mean_ms{pool=volumes} <= 5")


def test_where_nothing_has_a_scope_nobody_is_asked() -> None:
    scopes, monitors, _ = watched()
    scopes.look(slo("client.p95_ms <= 80"))
    scopes.look(None)
    assert (scopes.members, scopes.classes(), scopes.missing(), monitors.asked) == ({}, (), [], 0)


def test_a_class_without_a_mode_is_refused_with_what_helps_on_this_cluster() -> None:
    scopes, monitors, _ = watched()
    assert "set one such as 'client.p95_ms{class=ssd}<=5'" in str(scopes.refused_class("ssd", ()))
    scopes.look(OF_POOL)
    assert "(nvme)" in str(scopes.refused_class("ssd", ("nvme",)))
    # to set an objective for the class would not help
    one = [{**each, "class": "nvme"} for each in CRUSH["devices"]]
    monitors.answers["osd crush dump"] = json.dumps({**CRUSH, "devices": one})
    scopes = ScopesWatched(monitors)  # type: ignore[arg-type]
    scopes.look(OF_POOL)
    assert "the OSDs are of one class: leave it out" in str(scopes.refused_class("nvme", ()))


def test_a_pools_classes_are_sampled_with_it() -> None:
    scopes, _, _ = watched()
    scopes.look(OF_POOL)
    assert set(scopes.members) == {Scope(POOL, "volumes"), Scope(CLASS, "nvme")}
    assert scopes.classes() == ("nvme",)


def test_the_monitors_are_asked_once_a_minute_and_when_other_scopes_are_wanted() -> None:
    scopes, monitors, now = watched()
    for _ in range(5):
        scopes.look(OF_POOL)
    assert monitors.asked == 1
    scopes.look(slo("client.p95_ms{class=hdd} <= 80"))
    assert monitors.asked == 2
    now[0] += LOOK_S
    scopes.look(slo("client.p95_ms{class=hdd} <= 80"))
    assert monitors.asked == 3


def test_a_class_whose_outcome_is_awaited_is_sampled_and_gets_no_mode() -> None:
    scopes, _monitors, _ = watched()
    scopes.awaited = (Scope(CLASS, "hdd"),)
    scopes.look(None)
    assert scopes.members[Scope(CLASS, "hdd")].osds == frozenset({1})
    assert scopes.classes() == ()
    scopes.look(OF_POOL)
    assert set(scopes.members) == {Scope(CLASS, "hdd"), Scope(CLASS, "nvme"), Scope(POOL, "volumes")}
    assert scopes.classes() == ("nvme",)
    scopes.awaited = (Scope(CLASS, "gone"),)
    scopes.look(OF_POOL)
    assert scopes.missing() == []
    scopes.awaited = ()
    scopes.look(None)
    assert scopes.members == {}


@pytest.mark.parametrize("answer", [None, "", "[]", "{}", '{"devices": [{}], "buckets": []}', '{"devices": 3}'])
def test_what_was_known_stays_where_the_monitors_say_nothing_that_can_be_read(answer: Optional[str]) -> None:
    scopes, monitors, now = watched()
    scopes.look(OF_POOL)
    known = scopes.members
    if answer is None:
        monitors.answers = {}
    else:
        monitors.answers["osd crush dump"] = answer
    now[0] += LOOK_S
    scopes.look(OF_POOL)
    assert scopes.members == known
    assert scopes.missing() == []


def test_a_scope_that_is_gone_is_named_and_comes_back() -> None:
    scopes, monitors, now = watched()
    monitors.answers["osd pool ls"] = "[]"
    scopes.look(OF_POOL)
    assert scopes.missing() == ["there is no pool called volumes"]
    monitors.answers["osd pool ls"] = json.dumps(POOLS)
    now[0] += LOOK_S
    scopes.look(OF_POOL)
    assert scopes.missing() == []


class Queries:
    """A mgr whose OSDs count by pool."""

    def __init__(self, possible: bool = True) -> None:
        self.possible, self.running, self.begun, self.reported = possible, False, 0, True

    def add_osd_perf_query(self, query: Mapping[str, Any]) -> Optional[int]:
        assert query["key_descriptor"][0]["type"] == "pool_id"
        self.running, self.begun = self.possible, self.begun + 1
        return 7 if self.possible else None

    def get_osd_perf_counters(self, query_id: int) -> Mapping[str, Any]:
        assert query_id == 7
        counters = [[10, 0], [2_000_000_000, 10], [3, 0], [90_000_000, 3]]
        reported, self.reported = self.reported, False
        return {"counters": [{"k": [["4"]], "c": counters}] if reported else []}

    def remove_osd_perf_query(self, query_id: int) -> None:
        assert query_id == 7
        self.running = False


def test_the_osds_count_by_pool_while_somebody_wants_it() -> None:
    mgr = Queries()
    served = ServedByPool(mgr)  # type: ignore[arg-type]
    assert served.look(False) == {}
    first = served.look(True)[4]
    assert (first.reads, first.read_s, first.writes, first.write_s) == (10, 2.0, 3, pytest.approx(0.09))
    # what is asked for between two reports is what was there before
    assert served.look(True) == {4: first}
    mgr.reported = True
    assert served.look(True)[4].reads == 20
    assert mgr.begun == 1
    served.look(False)
    assert not mgr.running
    served.end()


def test_where_they_cannot_nothing_is_known() -> None:
    assert ServedByPool(Queries(possible=False)).look(True) == {}  # type: ignore[arg-type]
