from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mgr_stand_in import CommandResult

from ceph_tuner.core.errors import RetryLater
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.measure.sampling import Sampling
from ceph_tuner.core.measure.scopes import Members
from tuner.collect import Collector, TickLimits, _Choice, _choose
from tuner.commander import MgrCommander
from tuner.pg_details import PG_QUERIES

RECORDED = Path(__file__).parent.parent / "data" / "plugin"


class RecordedMgr:
    """A mgr that answers with what a real cluster said; `look` 0 and 1 are five seconds apart."""

    def __init__(self, release: str, pgs: int = 3) -> None:
        self.looks: List[Dict[str, Any]] = json.loads((RECORDED / f"{release}-readings.json").read_text())
        self.look, self.pg_count, self.silent = 0, pgs, -1
        self.odd: Dict[str, Any] = {}
        """What osd.1 answers to a command in another shape than is known."""
        self.told: List[Tuple[str, str]] = []
        self.dumps = self.epoch = 0
        self.states = {"active+clean": pgs}

    @property
    def now(self) -> Dict[str, Any]:
        return self.looks[self.look]

    def get(self, name: str) -> Any:
        if name == "osd_map":
            return self.now["osd_dump"]
        if name == "pg_summary":
            row = self.now["pg_ls"][0]["stat_sum"]
            return {"all": self.states, "pg_stats_sum": {"stat_sum": row}}
        if name == "pg_stats":
            self.dumps += 1
            return {"pg_stats": self.now["pg_ls"]}
        if name == "pool_stats":
            sums = {"num_objects": 0, "num_object_copies": 0, "num_bytes": 0}
            pgs = {1: self.pg_count - 3, 7: 3}
            return {"pool_stats": [{"poolid": pool, "num_pg": count, "stat_sum": sums} for pool, count in pgs.items()]}
        raise AssertionError(name)

    def get_ceph_option(self, key: str) -> float:
        assert key == "osd_deep_scrub_interval"
        return 604800.0

    def get_osdmap(self) -> Any:
        return self

    def get_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def pg_to_up_acting_osds(self, pool: int, seed: int) -> Mapping[str, int]:
        return {"acting_primary": seed % 3}

    def get_daemon_health_metrics(self) -> Dict[str, Any]:
        return {"osd.0": [{"type": "SLOW_OPS", "value": 2}, {"type": "PENDING_CREATING_PGS", "value": 9}], "mgr.x": []}

    def latest(self, kind: str, osd: str, name: str) -> Dict[str, Tuple[float, ...]]:
        seen = self.now["osds"][osd]
        value = seen["perf"]["osd"].get(name.split(".")[1])
        if value is None:
            return {name: ()}
        if isinstance(value, dict):
            return {name: (seen["at"], value["sum"] * 1e9, value["avgcount"])}
        return {name: (seen["at"], value)}

    def send_command(
        self, result: CommandResult, kind: str, osd: str, command: str, tag: str, inbuf: Optional[str] = None
    ) -> None:
        asked = json.loads(command)
        if kind == "mon":
            result.complete(0, json.dumps({"num_osds": 3}), "")
            return
        self.told.append((osd, asked["prefix"]))
        if int(osd) == self.silent:
            return
        seen = self.now["osds"][osd]
        document: Any = seen["perf"] if asked["prefix"] == "perf dump" else seen["histogram"]
        if asked["prefix"] == "query":
            document = {"info": {"stats": self.now["pg_ls"][0]}, "snap_trimq_len": 1}
        odd = self.odd if osd == "1" else {}
        result.complete(0, json.dumps(odd.get(asked["prefix"], document)), "")


def collector(mgr: RecordedMgr, **limits: int) -> Collector:
    commander = MgrCommander(mgr, CommandResult)  # type: ignore[arg-type]
    return Collector(mgr, commander, mgr.latest, lambda: TickLimits(**limits))  # type: ignore[arg-type]


@pytest.mark.parametrize("release", ["tentacle", "reef"])
def test_two_looks_inside_the_mgr_make_a_sample_of_the_real_load(release: str) -> None:
    mgr = RecordedMgr(release)
    watching, sampling = collector(mgr), Sampling()
    assert sampling.take(watching.read(mgr.now["at"])) is None
    mgr.look = 1
    sample = sampling.take(watching.read(mgr.now["at"]))
    assert sample is not None
    assert sample.values["client.write_bytes_s"] == pytest.approx(8192 * sample.values["client.write_iops"], rel=0.1)
    assert sample.values["ops.slow"] == 2.0
    assert sample.values["snaptrim.queue"] == 0.0
    assert sample.values["client.p95_ms"] > 0
    assert "scrub.pgs_late" in sample.values


def test_a_mgr_that_has_not_heard_of_the_pgs_takes_no_reading() -> None:
    mgr = RecordedMgr("tentacle")
    mgr.states = {"unknown": 3}
    with pytest.raises(RetryLater, match="has not heard of the PGs"):
        collector(mgr).read(1.0)
    mgr.states = {"unknown": 1, "active+clean": 2}
    assert collector(mgr).read(1.0).pg_states == mgr.states


def test_histograms_come_from_a_bounded_number_of_osds() -> None:
    mgr = RecordedMgr("tentacle")
    assert set(collector(mgr, histogram_osds=1).read(1.0).latency) == {0}
    assert {osd for osd, _ in mgr.told} == {"0"}
    assert collector(mgr, histogram_osds=0).read(1.0).latency == {}


AXES = [{"ranges": [{"max": 1}, {"min": 2}, {"min": 3}]}]


@pytest.mark.parametrize(
    "odd",
    [
        {"perf dump": {"osd": {}, "mclock-shard-queue-0": None}},
        {"perf dump": {"osd": {}, "mclock-shard-queue-0": {"mclock_client_queue_len": None}}},
        {"perf histogram dump": {"osd": {"op_r_latency_out_bytes_histogram": None}}},
        {"perf histogram dump": {"osd": {"op_r_latency_out_bytes_histogram": {"axes": [], "values": []}}}},
        {"perf histogram dump": {"osd": {"op_r_latency_out_bytes_histogram": {"axes": AXES, "values": [None]}}}},
    ],
    ids=str,
)
def test_an_osd_that_answers_in_another_shape_costs_its_histograms_alone(odd: Dict[str, Any]) -> None:
    mgr = RecordedMgr("tentacle")
    mgr.odd = odd
    found = collector(mgr).read(1.0)
    assert (set(found.latency), found.notes) == ({0, 2}, ("no histograms of osd.1",))


@pytest.mark.parametrize("odd", [{}, {"info": None}, {"info": {"stats": {"state": 7}}, "snap_trimq_len": 0}], ids=str)
def test_a_pg_of_which_an_osd_tells_in_another_shape_costs_no_sample(odd: Dict[str, Any]) -> None:
    mgr = RecordedMgr("tentacle", pgs=30)
    mgr.odd = {"query": odd}
    found = collector(mgr, pg_detail_limit=10, histogram_osds=0).read(1.0)
    assert 0 < len(found.pgs) < PG_QUERIES


def test_an_osd_that_hangs_costs_its_histograms_and_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.collect.TELL_S", 0.1)
    mgr = RecordedMgr("reef")
    mgr.silent = 1
    found = collector(mgr).read(1.0)
    assert set(found.latency) == {0, 2}
    assert found.notes == ("no histograms of osd.1",)
    assert set(found.osds) == {0, 1, 2}


def test_rows_of_pgs_are_read_once_a_minute_and_each_time_while_they_scrub() -> None:
    mgr = RecordedMgr("tentacle")
    watching = collector(mgr)
    for at in (0.0, 5.0, 10.0, 59.0):
        watching.read(at)
    assert mgr.dumps == 1
    watching.read(60.0)
    assert mgr.dumps == 2
    mgr.states = {"active+clean": 2, "active+clean+scrubbing+deep": 1}
    watching.read(65.0)
    watching.read(70.0)
    assert mgr.dumps == 4


def test_above_the_limit_a_few_pgs_are_asked_in_turn_and_never_all_are_dumped() -> None:
    mgr = RecordedMgr("reef", pgs=20)
    watching = collector(mgr, pg_detail_limit=10, histogram_osds=0)
    found = watching.read(0.0)
    assert len(found.pgs) == PG_QUERIES
    assert found.snaptrim_queue is None
    assert found.pgs_late is None
    assert "more than 10 PGs" in found.notes[0]
    watching.read(5.0)
    found = watching.read(10.0)
    assert found.snaptrim_queue == 20.0
    assert found.pgs_late is not None
    assert mgr.dumps == 0
    assert len(mgr.told) == 20


def test_histograms_are_asked_of_both_groups_alike_and_the_rest_is_spread() -> None:
    mgr = RecordedMgr("tentacle")
    assert set(collector(mgr, histogram_osds=2).read(1.0, [[1], [2]]).latency) == {1, 2}
    assert set(collector(mgr, histogram_osds=2).read(1.0, [[2]]).latency) == {0, 2}
    assert set(collector(mgr, histogram_osds=2).read(1.0, [[77]]).latency) == {0, 1}


born_lists = st.dictionaries(st.integers(0, 39), st.integers(1, 3))


@given(st.lists(born_lists, min_size=2, max_size=5), st.integers(1, 6), st.integers(0, 12))
def test_a_choice_after_a_changed_list_is_the_one_that_would_be_made_anew(
    lists: List[Dict[int, int]], asked: int, per_tick: int
) -> None:
    groups = [tuple(range(10)), tuple(range(10, 40))]
    scopes = {Scope(CLASS, "hdd"): Members(frozenset(range(0, 40, 2)), frozenset())}
    limits = TickLimits(histogram_osds=asked, osds_per_tick=per_tick)
    before: Optional[_Choice] = None
    for born in lists:
        choice = _choose(born, groups, scopes, limits, before)
        assert choice == _choose(born, groups, scopes, limits)
        if before is not None:
            kept = zip(choice.parts, choice.running, before.running)
            changed = born.keys() ^ before.born.keys()
            assert all(new is old for part, new, old in kept if changed.isdisjoint(part))
        before = choice
    # other groups are chosen from anew
    assert _choose(lists[-1], groups[:1], scopes, limits, before) == _choose(lists[-1], groups[:1], scopes, limits)
