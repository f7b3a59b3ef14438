from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any, Optional

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.errors import ClusterTimeout, InputError
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, QUINCY_EARLY, TENTACLE, nine
from ceph_tuner.core.knobs.settings import moves_alone
from ceph_tuner.core.measure.sample import Sample
from ceph_tuner.core.profiles.in_force import in_force
from ceph_tuner.tune.live_work import LiveWork
from ceph_tuner.tune.on_cluster import ClusterLookout, JournalledWriter
from monitors import ManualClock, MemoryStore, Monitors
from twins import DISK, archive_twin

TUNED = {**nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3)), "osd_max_scrubs": 1}
HARDWARE = Hardware(935.0, 62914560.0, 1)


def applier(monitors: Monitors, name: str) -> Applier:
    clock = ManualClock()
    lock = Lock(monitors.store, clock, Holder(name), lambda holder: holder.name == name, heartbeat=False)
    return Applier(monitors, monitors.store, clock, lock, TENTACLE, name)


def writer(monitors: Monitors, name: str = "tune") -> JournalledWriter:
    return JournalledWriter(applier(monitors, name), ("osd",), TENTACLE, HARDWARE, "tune some")


def test_trials_are_taken_back_one_by_one_and_the_winner_in_one_step() -> None:
    monitors = Monitors()
    before, tuner = monitors.dump(), writer(monitors)
    for profile in ("high_client_ops", "high_recovery_ops"):
        tuner.apply({PROFILE: profile})
        assert monitors.dump() != before
        tuner.undo()
        assert monitors.dump() == before
    tuner.apply(TUNED)
    tuner.keep()
    assert monitors.effective(0)["osd_max_scrubs"] == "1"
    # another process finds a change in force, no trial to clear away
    assert applier(monitors, "later").recover() == []
    applier(monitors, "later").undo()
    assert monitors.dump() == before


@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_could_not_be_taken_back_is_taken_back_by_the_next_call(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monitors = Monitors()
    before, tuner = monitors.dump(), writer(monitors)
    tuner.apply(TUNED)
    dump, dumps = monitors.dump, []

    def silent() -> Any:
        dumps.append(1)
        if len(dumps) == at:
            raise ClusterTimeout("the monitors elect")
        return dump()

    monkeypatch.setattr(monitors, "dump", silent)
    with pytest.raises(ClusterTimeout):
        tuner.undo()
    tuner.undo()
    assert dump() == before
    tuner.apply(TUNED)
    tuner.undo()
    assert dump() == before


def test_what_is_in_force_is_not_written_and_a_built_in_profile_stays() -> None:
    monitors = Monitors()
    before = monitors.dump()
    shares = TENTACLE.profiles["balanced"]
    moves = partial(moves_alone, in_force=shares, release=TENTACLE)
    tuner = JournalledWriter(applier(monitors, "tune"), ("osd",), TENTACLE, HARDWARE, "tune some", moves)
    tuner.apply({**shares, "osd_max_scrubs": 1})
    assert {entry.name for entry in monitors.dump()} - {entry.name for entry in before} == {"osd_max_scrubs"}
    tuner.undo()
    assert monitors.dump() == before
    # nothing at all is neither written nor taken back
    tuner.apply(shares)
    tuner.undo()
    assert monitors.dump() == before
    tuner.apply(TUNED)
    assert monitors.effective(0)[PROFILE] == "custom"


def test_settings_for_several_targets_are_taken_back_from_each() -> None:
    monitors = Monitors()
    before, targets = monitors.dump(), ("osd.0", "osd.2")
    tuner = JournalledWriter(applier(monitors, "tune"), targets, TENTACLE, HARDWARE, "tune some")
    tuner.check()
    tuner.apply(TUNED)
    assert {entry.who for entry in monitors.dump() if entry not in before} == {*targets}
    # a process that dies now leaves both to the next
    assert [undone.entry.target for undone in applier(monitors, "next").recover()] == ["osd.2", "osd.0"]
    assert monitors.dump() == before
    tuner = JournalledWriter(applier(monitors, "tune"), targets, TENTACLE, HARDWARE, "tune some")
    tuner.apply(TUNED)
    tuner.undo()
    assert monitors.dump() == before


def test_a_trial_whose_process_died_is_taken_back_by_the_next() -> None:
    monitors = Monitors()
    before = monitors.dump()
    writer(monitors, "killed").apply(TUNED)
    assert monitors.dump() != before
    assert len(applier(monitors, "next").recover()) == 1
    assert monitors.dump() == before


def test_undoing_nothing_and_keeping_nothing_are_no_errors() -> None:
    tuner = writer(Monitors())
    tuner.undo()
    tuner.keep()
    # settings that are in force already need no write, and leave nothing to take back
    tuner.apply({PROFILE: "balanced"})
    tuner.undo()


def opened(monitors: Monitors) -> Cluster:
    return Cluster("fake", Status("[]"), monitors, MemoryStore(), TENTACLE, "20.2.4")  # type: ignore[arg-type]


def test_what_is_in_force_is_asked_of_the_osds() -> None:
    monitors = Monitors()
    facts = {"osd_op_num_shards": "1", "osd_mclock_max_capacity_iops_ssd": "935", "osd_op_queue": "mclock_scheduler"}
    shown = monitors.effective
    monitors.effective = lambda osd: {**shown(osd), **facts}  # type: ignore[method-assign]
    found = opened(monitors).in_force("osd")
    assert found.built_in == "balanced"
    assert {name: found.settings[name] for name in TENTACLE.profiles["balanced"]} == TENTACLE.profiles["balanced"]
    assert found.hardware.capacity_iops == 935
    monitors.set("osd.1", PROFILE, "high_client_ops")
    with pytest.raises(InputError, match="differ in osd_mclock_profile"):
        opened(monitors).in_force("osd")
    with pytest.raises(InputError, match="covers no running OSD"):
        opened(monitors).in_force("osd/host:nowhere")
    # one that is asked for all of them agrees with itself
    one = in_force(Status("[]"), monitors, TENTACLE, "20.2.4", "osd", most_osds=1)
    assert (one.built_in, one.osds, one.profile.osds) == ("balanced", found.osds, found.osds)


def test_the_hardware_in_force_is_that_of_the_drives_whatever_their_class() -> None:
    hardware = archive_twin().in_force("osd").hardware
    assert hardware == replace(DISK.hardware, device_class="archive")
    early = archive_twin(release=QUINCY_EARLY)
    assert {name: early.in_force("osd").settings[name] for name in MCLOCK_NINE} == pytest.approx(
        dict(QUINCY_EARLY.profiles["high_client_ops"]), abs=0.002
    )


STATUS: dict[str, Any] = {
    "health": {
        "status": "HEALTH_WARN",
        "checks": {"SLOW_OPS": {"severity": "HEALTH_WARN", "summary": {"message": "7 slow ops, oldest one blocked"}}},
    },
    "osdmap": {"num_osds": 3, "num_up_osds": 2, "num_in_osds": 3},
    "pgmap": {
        "pgs_by_state": [
            {"state_name": "active+clean", "count": 60},
            {"state_name": "peering", "count": 3},
            {"state_name": "active+laggy", "count": 1},
        ]
    },
}


class Status:
    def __init__(self, answer: str) -> None:
        self.answer: Optional[str] = answer

    def mon(self, prefix: str, arguments: object, payload: str = "") -> str:
        assert prefix in ("status", "osd metadata")
        if self.answer is None:
            raise ClusterTimeout("no answer")
        return self.answer

    def tell(self, daemon: str, prefix: str, arguments: object) -> str:
        raise AssertionError(daemon)


def test_the_lookout_sees_health_osds_pgs_and_slow_operations() -> None:
    sight = ClusterLookout(Status(json.dumps(STATUS)), ManualClock()).look()
    assert sight is not None
    assert sight.health == "HEALTH_WARN"
    assert sight.values == {"osds.down": 1.0, "pgs.inactive": 3.0, "pgs.laggy": 1.0, "ops.slow": 7.0}


ODD = json.dumps({**STATUS, "health": {**STATUS["health"], "checks": [1]}})


@pytest.mark.parametrize("answer", [None, "", "[]", "{}", '{"health": 3}', '{"health": []}', ODD])
def test_an_answer_that_makes_no_sense_is_no_sight(answer: Optional[str]) -> None:
    status = Status("")
    status.answer = answer
    assert ClusterLookout(status, ManualClock()).look() is None


class Sampler:
    """Gives a sample at each call but the first; every third fails."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.calls, self.last = clock, 0, 0.0

    def sample(self) -> Optional[Sample]:
        self.calls += 1
        if self.calls % 4 == 0:
            raise ClusterTimeout("no answer")
        before, self.last = self.last, self.clock.now()
        seconds = max(1.0, self.last - before)
        return Sample(self.last, seconds, {"client.iops": 200.0 + self.calls}) if before else None


def test_live_work_measures_the_samples_of_the_window_and_says_which_failed() -> None:
    clock = ManualClock()
    work = LiveWork(Sampler(clock), clock)  # type: ignore[arg-type]
    work.prepare()
    work.start()
    assert work.observe() == {}
    for _ in range(10):
        clock.sleep(1)
        work.observe()
    start = clock.now()
    for _ in range(25):
        clock.sleep(1)
        seen = work.observe()
    assert seen["client.iops"] > 200
    measures = work.measure(start, clock.now())
    assert 3 <= measures["client.iops"].count <= 6
    assert "samples failed" in work.remarks()[0]
    work.stop()


def test_live_work_goes_on_when_somebody_sets_the_clock_back() -> None:
    clock = ManualClock()
    sampler = Sampler(clock)
    work = LiveWork(sampler, clock)  # type: ignore[arg-type]
    work.prepare()
    clock.jumped = -3600.0
    for _ in range(20):
        clock.sleep(1)
        work.observe()
    # else the guard would be shown the last sample before that for an hour
    assert sampler.calls == 1 + 4


def test_live_work_without_samples_measures_nothing() -> None:
    clock = ManualClock()
    sampler = Sampler(clock)
    sampler.sample = lambda: None  # type: ignore[method-assign]
    work = LiveWork(sampler, clock)  # type: ignore[arg-type]
    work.prepare()
    assert work.measure(clock.now(), clock.now() + 5) == {}
