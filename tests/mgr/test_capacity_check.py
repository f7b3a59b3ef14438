from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import pytest
from automatic_on_twin import OnTwin

from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.twin.model import MIB, ScrubWork
from tuner import capacity_check
from tuner.capacity import Capacity
from tuner.capacity_check import BENCH, CLASS_OSDS, LARGE_BENCH, CapacityCheck
from twins import small_twin

WELL = Sight(0.0, "HEALTH_OK")
NAME, BANDWIDTH = "osd_mclock_max_capacity_iops_ssd", "osd_mclock_max_sequential_bandwidth_ssd"


class Osds:
    """Six OSDs: what they are told, what they serve, what their PGs do."""

    def __init__(self) -> None:
        self.capacities = {osd: Capacity(osd, 20_000.0 + osd, f"osd.{osd}", 1e9) for osd in range(6)}
        self.asked: List[Tuple[str, str, Mapping[str, str]]] = []
        self.operations: Dict[int, List[float]] = {}
        self.bench: Optional[str] = json.dumps({"iops": 21_000.0, "bytes_per_sec": 1e9})
        self.bandwidths: Dict[int, float] = {}
        self.by_bandwidth = True
        self.states: Dict[int, List[str]] = {}
        self.counters: Dict[int, Tuple[float, ...]] = {}
        self.stored: List[Tuple[str, Dict[str, Any], str]] = []
        self.check = CapacityCheck(
            self,  # type: ignore[arg-type]
            self.known,
            self,
            lambda osd: self.counters.get(osd, ()),
            lambda osd: self.states.get(osd, ["active+clean"]),
            self.write,
            lambda: self.by_bandwidth,
        )

    def known(self, osds: Optional[Sequence[int]] = None) -> List[Capacity]:
        return [self.capacities[osd] for osd in (self.capacities if osds is None else osds) if osd in self.capacities]

    def write(self, target: str, settings: Dict[str, Any], why: str) -> int:
        self.stored.append((target, settings, why))
        return 12

    # `MgrCommander`

    def tell_many(self, asked: List[Tuple[str, str, Mapping[str, str]]], timeout: float) -> Dict[Tuple[str, str], str]:
        self.asked += asked
        found = {}
        for daemon, prefix, _ in asked:
            answer = self._answer(int(daemon[4:]), prefix)
            if answer is not None:
                found[daemon, prefix] = answer
        return found

    def _answer(self, osd: int, prefix: str) -> Optional[str]:
        if prefix == "bench":
            if osd in self.bandwidths:
                return json.dumps({"iops": 21_000.0 + osd, "bytes_per_sec": self.bandwidths[osd]})
            return self.bench
        counts = self.operations.get(osd, [100.0])
        count = counts.pop(0) if len(counts) > 1 else counts[0]
        return json.dumps({"osd": {"op_r": count, "op_w": 7.0, "op_rw": 0.0}}) if count >= 0 else None

    # `Inventory`

    def running(self) -> Sequence[int]:
        return sorted(self.capacities)

    def kind(self, osd: int) -> str:
        return "ssd"

    def default_capacity(self, kind: str) -> float:
        return 21_500.0


@pytest.fixture
def osds(monkeypatch: pytest.MonkeyPatch) -> Osds:
    monkeypatch.setattr(capacity_check, "LOOK_S", 0.01)
    return Osds()


def benched(osds: Osds) -> List[Mapping[str, str]]:
    return [arguments for _, prefix, arguments in osds.asked if prefix == "bench"]


# the report


def test_capacities_that_nothing_speaks_against_are_shown_without_findings(osds: Osds) -> None:
    report = osds.check.report()
    assert report["findings"] == []
    assert [(row["osd"], row["iops"], row["source"]) for row in report["osds"][:1]] == [(0, 20_000.0, "osd.0")]


def test_an_osd_far_from_its_peers_and_one_that_nobody_measured_are_named(osds: Osds) -> None:
    osds.capacities[1] = Capacity(1, 300.0, "osd.1")
    osds.capacities[4] = Capacity(4, 21_500.0, "default")
    lines = osds.check.report()["findings"]
    assert any("peers" in line and "osd.1" in line for line in lines)
    assert any("default" in line and "osd.4" in line for line in lines)


def test_an_osd_that_serves_more_than_its_capacity_is_found_by_the_most_it_was_seen_to_write(osds: Osds) -> None:
    for at, writes in ((0.0, 0.0), (600.0, 600.0 * 30_000.0), (1200.0, 600.0 * 30_000.0 + 60.0)):
        osds.counters[2] = (at, writes)
        report = osds.check.report()
    assert report["osds"][2]["seen"] == 30_000.0
    assert any("served" in line and "osd.2" in line for line in report["findings"])


@pytest.mark.parametrize("later", [(), (600.0,), (0.0, 9e9), (600.0, 0.0)])
def test_counters_that_say_nothing_about_a_rate_are_no_rate(osds: Osds, later: Tuple[float, ...]) -> None:
    """Absent, without a value, of the same moment, or of an OSD that was restarted."""
    osds.counters[2] = (0.0, 1000.0)
    osds.check.report()
    osds.counters[2] = later
    assert osds.check.report()["osds"][2]["seen"] is None


def test_an_osd_without_a_capacity_is_left_out_of_the_report(osds: Osds) -> None:
    osds.capacities[3] = Capacity(3, 0.0, "default")
    assert [row["osd"] for row in osds.check.report()["osds"]] == [0, 1, 2, 4, 5]


# the bench


def test_an_idle_osd_is_benched_as_ceph_does_it_and_nothing_is_stored_unasked(osds: Osds) -> None:
    found = osds.check.measure(2, False, (), False, WELL)
    assert (found["measured"], found["iops"], found["stored"], found["change"]) == (21_000.0, 20_002.0, False, None)
    assert benched(osds) == [BENCH, LARGE_BENCH]
    assert osds.stored == []
    assert found["commands"] == [
        f"ceph config set osd.2 {NAME} 21000",
        f"ceph config set osd.2 {BANDWIDTH} 1000000000",
    ]


def test_what_was_measured_is_stored_for_that_osd_when_asked_to(osds: Osds) -> None:
    found = osds.check.measure(2, True, (), False, WELL)
    wanted = {NAME: 21_000.0, BANDWIDTH: 1_000_000_000}
    assert [(target, settings) for target, settings, _ in osds.stored] == [("osd.2", wanted)]
    assert found["change"] == 12


def test_a_bench_far_from_what_is_in_force_says_so(osds: Osds) -> None:
    osds.bench = json.dumps({"iops": 60_000.0, "bytes_per_sec": 1.1e9})
    (line,) = osds.check.measure(2, False, (), False, WELL)["findings"]
    assert "60000" in line


@pytest.mark.parametrize(
    ("sight", "words"),
    [
        (Sight(0.0, "HEALTH_ERR", {}, "OSD_FULL"), "HEALTH_ERR"),
        (Sight(0.0, "HEALTH_WARN", {"osds.down": 1.0}), "down"),
        (Sight(0.0, "HEALTH_WARN", {"ops.slow": 3.0}), "slow"),
        (Sight(0.0, "HEALTH_WARN", {"recovery.objects_left": 3.0}), "degraded"),
    ],
)
def test_no_bench_on_a_cluster_that_has_other_cares(osds: Osds, sight: Sight, words: str) -> None:
    with pytest.raises(InputError, match=words):
        osds.check.measure(2, True, (2,), False, sight)
    assert benched(osds) == []


def test_no_bench_while_settings_are_on_trial(osds: Osds) -> None:
    with pytest.raises(InputError, match="on trial"):
        osds.check.measure(2, True, (2,), True, WELL)
    assert benched(osds) == []


@pytest.mark.parametrize(
    "work", ["active+clean+scrubbing+deep", "active+clean+snaptrim", "active+remapped+backfilling"]
)
def test_an_osd_with_work_on_its_pgs_is_left_alone_unless_it_is_the_canary(osds: Osds, work: str) -> None:
    osds.states[2] = ["active+clean", work]
    with pytest.raises(InputError, match="under way"):
        osds.check.measure(2, False, (), False, WELL)
    assert benched(osds) == []
    assert osds.check.measure(2, False, (2,), False, WELL)["measured"] == 21_000.0


def test_states_that_only_wait_for_work_are_no_work(osds: Osds) -> None:
    osds.states[2] = ["active+remapped+backfill_wait", "active+clean+snaptrim_wait"]
    assert osds.check.measure(2, False, (), False, WELL)["measured"] == 21_000.0


@pytest.mark.parametrize("counts", [[100.0, 100_000.0], [100.0, -1.0]])
def test_an_osd_that_clients_use_or_that_does_not_say_is_left_alone(osds: Osds, counts: List[float]) -> None:
    osds.operations[2] = counts
    with pytest.raises(InputError, match=r"osd\.2"):
        osds.check.measure(2, False, (), False, WELL)
    assert benched(osds) == []


@pytest.mark.parametrize("answer", [None, "", "{}", "[]", '{"iops": null}', "no"])
def test_a_bench_without_a_result_is_an_error_and_stores_nothing(osds: Osds, answer: Optional[str]) -> None:
    osds.bench = answer
    with pytest.raises(CommandFailed, match="no result"):
        osds.check.measure(2, True, (), False, WELL)
    assert osds.stored == []


@pytest.mark.parametrize("bandwidth", [1.3e9, 0.7e9])
def test_a_bandwidth_far_from_what_is_in_force_says_so(osds: Osds, bandwidth: float) -> None:
    """Ceph's own default is never measured, and caps recovery and large writes."""
    osds.bandwidths[2] = bandwidth
    (line,) = osds.check.measure(2, False, (), False, WELL)["findings"]
    assert f"1000 MB/s (default), its bench gave {bandwidth / 1e6:.6g}" in line


def test_a_release_that_reckons_without_bandwidth_is_measured_without(osds: Osds) -> None:
    osds.by_bandwidth = False
    found = osds.check.measure(2, True, (), False, WELL)
    assert found["bandwidth"] is None
    assert benched(osds) == [BENCH]
    assert [settings for _, settings, _ in osds.stored] == [{NAME: 21_000.0}]


# a class


def test_a_class_whose_osds_agree_gets_one_bandwidth_and_each_its_own_iops(osds: Osds) -> None:
    osds.bandwidths = {0: 1.0e9, 2: 1.1e9, 3: 1.2e9, 5: 1.04e9}
    found = osds.check.measure_class("nvme", range(6), True, (), False, WELL)
    measured = [row["osd"] for row in found["osds"]]
    assert len(measured) == CLASS_OSDS
    assert found["alike"]
    *own, (target, settings, _) = osds.stored
    assert [each for each, _, _ in own] == [f"osd.{osd}" for osd in measured]
    assert all(set(written) == {NAME} for _, written, _ in own)
    assert target == "osd/class:nvme"
    assert 1.0e9 <= settings[BANDWIDTH] <= 1.2e9
    assert found["commands"][-1] == f"ceph config set osd/class:nvme {BANDWIDTH} {settings[BANDWIDTH]}"


def test_a_class_whose_osds_differ_gets_no_bandwidth_for_all(osds: Osds) -> None:
    osds.bandwidths = dict.fromkeys(range(6), 1e9)
    osds.bandwidths[0] = 0.4e9
    found = osds.check.measure_class("nvme", range(6), False, (), False, WELL)
    assert not found["alike"]
    assert osds.stored == []
    assert not [line for line in found["commands"] if "class" in line]
    assert f"ceph config set osd.0 {BANDWIDTH} 400000000" in found["commands"]


def test_osds_at_work_are_left_out_and_a_class_of_such_alone_is_refused(osds: Osds) -> None:
    osds.states[0] = ["active+clean+scrubbing"]
    found = osds.check.measure_class("nvme", [0, 1], False, (), False, WELL)
    assert [row["osd"] for row in found["osds"]] == [1]
    assert "osd.0" in found["left_out"][0]
    with pytest.raises(InputError, match=r"scrubbing under way on osd\.0"):
        osds.check.measure_class("nvme", [0], False, (), False, WELL)


@pytest.mark.parametrize("iops", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bench_that_measured_nothing_is_an_error_and_stores_nothing(osds: Osds, iops: float) -> None:
    osds.bench = json.dumps({"iops": iops})
    with pytest.raises(CommandFailed, match="no result"):
        osds.check.measure(2, True, (), False, WELL)
    assert osds.stored == []


def test_a_capacity_of_nothing_is_what_a_bench_is_for(osds: Osds) -> None:
    osds.capacities[2] = Capacity(2, 0.0, "osd.2")
    assert osds.check.measure(2, True, (), False, WELL)["change"] == 12


def test_an_osd_that_is_not_there_cannot_be_measured(osds: Osds) -> None:
    with pytest.raises(InputError, match=r"osd\.77"):
        osds.check.measure(77, False, (), False, WELL)


# inside the mgr


@pytest.mark.parametrize("scrubbing", [False, True])
def test_the_mgr_itself_knows_what_an_osds_pgs_do(scrubbing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module may not run the mgr's `pg ls`: the way through the monitors is closed."""
    monkeypatch.setattr(capacity_check, "LOOK_S", 0.01)
    aboard = OnTwin(small_twin(clients=(), scrub=(ScrubWork("rbd", 3000, MIB),) if scrubbing else ()))
    aboard.sample(3)
    # the twin's OSDs have no bench: where it is reached, it is refused as a command and not as an OSD at work
    with pytest.raises(InputError if scrubbing else CommandFailed, match="scrubbing" if scrubbing else "no result"):
        aboard.modes.measure(1, False)
