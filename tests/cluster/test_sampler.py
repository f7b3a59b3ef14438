from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import pytest

from ceph_tuner.cluster.sampler import OSDS_MAX, ClusterSampler, observe
from ceph_tuner.core.errors import ClusterTimeout, InputError, RetryLater
from ceph_tuner.core.measure.metrics import CLASS, POOL, Scope
from ceph_tuner.core.measure.sampling import CLOCK_STEP_S
from ceph_tuner.twin.model import RecoveryWork
from twin_cluster.cluster import TwinCluster
from twins import small_twin

RECORDED = Path(__file__).parent.parent / "data" / "plugin"


class RecordedCluster:
    """Answers with what a real cluster said at two moments; also its clock."""

    def __init__(self, release: str) -> None:
        self.looks: List[Dict[str, Any]] = json.loads((RECORDED / f"{release}-readings.json").read_text())
        self.look = 0
        self.silent = -1
        self.new_mgr = False
        self.new_mgr_says = "unknown"
        self.asked: List[str] = []

    def now(self) -> float:
        at: float = self.looks[self.look]["at"]
        return at

    def monotonic(self) -> float:
        return self.now()

    def sleep(self, seconds: float) -> None:
        self.look = 1

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        self.asked.append(prefix)
        look = self.looks[self.look]
        pgmap = look["pgmap"]
        if self.new_mgr:
            pgmap = {"pgs_by_state": [{"state_name": self.new_mgr_says, "count": len(look["pg_ls"])}]}
        answers = {
            "osd dump": look["osd_dump"],
            "status": {"pgmap": pgmap},
            "pg ls": {"pg_ready": not self.new_mgr, "pg_stats": look["pg_ls"]},
            "health": {"checks": {}},
            "config get": 604800.0,
        }
        return json.dumps(answers[prefix])

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        osd = daemon.split(".")[1]
        if int(osd) == self.silent:
            raise ClusterTimeout("no answer")
        seen = self.looks[self.look]["osds"][osd]
        return json.dumps(seen["perf" if prefix == "perf dump" else "histogram"])


@pytest.mark.parametrize("release", ["tentacle", "reef"])
def test_two_looks_make_a_sample_of_the_real_load(release: str) -> None:
    cluster = RecordedCluster(release)
    sampler = ClusterSampler(cluster, cluster)
    assert sampler.sample() is None
    cluster.look = 1
    sample = sampler.sample()
    assert sample is not None
    assert sample.values["client.write_iops"] > 20
    assert sample.values["client.write_bytes_s"] == pytest.approx(8192 * sample.values["client.write_iops"], rel=0.1)
    assert sample.values["scrub.pgs_late"] == 0.0
    # rows of all PGs are asked for each time only while PGs scrub (as they did when Reef was recorded)
    assert cluster.asked.count("pg ls") == (2 if any("scrubbing" in state for state in sample.pg_states) else 1)


def test_an_osd_that_does_not_answer_is_left_out_with_a_note() -> None:
    cluster = RecordedCluster("tentacle")
    cluster.silent = 2
    reading = ClusterSampler(cluster, cluster).read()
    assert set(reading.osds) == {0, 1}
    assert reading.notes == ("no answer of osd.2",)


@pytest.mark.parametrize("state", ["unknown", "active+clean+scrubbing"])
def test_a_mgr_that_has_not_heard_of_the_pgs_is_a_look_that_fails_and_the_next_covers_its_time(state: str) -> None:
    cluster = RecordedCluster("tentacle")
    sampler = ClusterSampler(cluster, cluster)
    sampler.sample()
    cluster.new_mgr, cluster.new_mgr_says = True, state
    with pytest.raises(RetryLater, match="has not heard of the PGs"):
        sampler.sample()
    cluster.new_mgr, cluster.look = False, 1
    sample = sampler.sample()
    assert sample is not None
    assert sample.seconds == cluster.looks[1]["at"] - cluster.looks[0]["at"]
    assert "unknown" not in sample.pg_states


def test_rows_of_before_the_clock_was_set_back_are_read_again() -> None:
    cluster = RecordedCluster("tentacle")
    row = {"state": "active+clean", "snaptrimq_len": 0}
    for look in cluster.looks:
        look["pg_ls"] = [{**each, **row} for each in look["pg_ls"]]
        look["pgmap"] = {"pgs_by_state": [{"state_name": "active+clean", "count": len(look["pg_ls"])}]}
    sampler = ClusterSampler(cluster, cluster)
    at = cluster.looks[0]["at"]
    for shift_s, reads in ((0.0, 1), (5.0, 1), (-3600.0, 2), (-3595.0, 2), (0.0, 3)):
        cluster.looks[0]["at"] = at + shift_s
        sampler.read()
        assert cluster.asked.count("pg ls") == reads


def test_a_cluster_that_is_too_large_is_sent_to_the_plugin() -> None:
    cluster = RecordedCluster("reef")
    row = {"up": 1, "in": 1, "up_from": 1}
    cluster.looks[0]["osd_dump"] = {"osds": [{"osd": osd, **row} for osd in range(OSDS_MAX + 1)]}
    with pytest.raises(InputError, match="mgr install"):
        ClusterSampler(cluster, cluster).read()


def test_a_while_of_observing_gives_one_window() -> None:
    cluster = RecordedCluster("reef")
    window, samples = observe(ClusterSampler(cluster, cluster), cluster, 3.0)
    assert window is not None
    assert len(samples) == 1
    found: Optional[float] = samples[0].values.get("client.iops")
    assert found == window.measures["client.iops"].mean


class SetTwinClock:
    """A twin's clock that somebody sets."""

    def __init__(self, twin: TwinCluster) -> None:
        self._twin, self.ahead_s = twin, 0.0

    def now(self) -> float:
        return self._twin.clock.now() + self.ahead_s

    def monotonic(self) -> float:
        return self._twin.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._twin.clock.sleep(seconds)


@pytest.mark.parametrize("step_s", [4.0, -4.0, 3600.0, -3600.0, 1.5, -1.5])
def test_a_clock_that_is_set_makes_no_rate_another_one(step_s: float) -> None:
    twin = small_twin()
    clock = SetTwinClock(twin)
    sampler = ClusterSampler(twin.commander, clock)
    rates, seconds = [], []
    for look in range(12):
        if look == 6:
            clock.ahead_s = step_s
        sample = sampler.sample()
        if sample is not None:
            rates.append(sample.values["client.iops"])
            seconds.append(sample.seconds)
            assert abs(sample.at - clock.now()) <= CLOCK_STEP_S
        clock.sleep(5.0)
    assert len(rates) == (11 if abs(step_s) <= CLOCK_STEP_S else 10)
    assert seconds == pytest.approx([5.0] * len(seconds))
    assert min(rates) > 0.8 * max(rates)


def hybrid_twin() -> TwinCluster:
    """OSDs 0 and 1 are flash, 2 and 3 disks, to those who ask; all pools lie on all of them."""
    twin = small_twin()
    for osd in twin.twin.osds:
        osd.place = replace(osd.place, device_class="nvme" if osd.place.osd < 2 else "hdd")
    return twin


def sampled(sampler: ClusterSampler, twin: TwinCluster) -> Mapping[str, float]:
    sampler.sample()
    twin.clock.sleep(10.0)
    sample = sampler.sample()
    assert sample is not None
    return sample.values


def test_device_classes_and_pools_are_sampled_by_themselves() -> None:
    twin = hybrid_twin()
    scopes = [Scope(CLASS, "nvme"), Scope(CLASS, "hdd"), Scope(POOL, "rbd")]
    seen = sampled(ClusterSampler(twin.commander, twin.clock, scopes), twin)
    assert seen["client.iops{class=nvme}"] + seen["client.iops{class=hdd}"] == pytest.approx(seen["client.iops"])
    assert 0 < seen["client.iops{class=nvme}"] < seen["client.iops"]
    # only the plugin can ask the OSDs by pool
    assert "client.mean_ms{pool=rbd}" not in seen
    assert seen["recovery.objects_left{pool=rbd}"] == 0


def test_recovery_is_seen_by_the_objects_that_the_pgs_count() -> None:
    twin = small_twin(recovery=(RecoveryWork("rbd", 30_000, 1 << 20),))
    sampler = ClusterSampler(twin.commander, twin.clock)
    before = sampler.read()
    twin.clock.sleep(10.0)
    after = sampler.read()
    fell = before.totals["num_objects_degraded"] - after.totals["num_objects_degraded"]
    # read anew with each look, as long as something is degraded
    assert after.totals["num_objects_recovered"] - before.totals["num_objects_recovered"] == pytest.approx(fell)
    assert after.copies_per_object == 2.0
    assert sampled(sampler, twin)["recovery.copies_s"] > 0


def test_a_class_can_be_sampled_as_a_cluster_of_its_own() -> None:
    twin = hybrid_twin()
    own = sampled(ClusterSampler(twin.commander, twin.clock, of=Scope(CLASS, "nvme")), twin)
    assert 0 < own["client.iops"] < 200
    assert not [name for name in own if "{" in name]


def test_a_class_that_is_not_there_is_refused_and_a_scope_that_is_not_is_a_note() -> None:
    twin = hybrid_twin()
    with pytest.raises(InputError, match="device class tape"):
        ClusterSampler(twin.commander, twin.clock, of=Scope(CLASS, "tape")).sample()
    reading = ClusterSampler(twin.commander, twin.clock, [Scope(POOL, "gone")]).read()
    assert "there is no pool called gone" in reading.notes
