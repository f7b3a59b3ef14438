from __future__ import annotations

import pytest

from ceph_tuner.core.measure.sample import Sample, window_of
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, Pool, RecoveryWork, ScrubWork, SnaptrimWork
from ceph_tuner.twin.observations import SimulatedRun, simulated
from ceph_tuner.twin.prediction import PredictionRun, predict
from ceph_tuner.twin.samples import look, looks_while_it_lasts, sample_between
from ceph_tuner.twin.simulation import Simulation
from twins import small_model

WORK = {"recovery": (RecoveryWork("other", 8000, MIB),), "snaptrim": (SnaptrimWork("rbd", 9000, MIB),)}


def ran(model: ClusterModel, seconds: float, parts: int = 1) -> list[Sample]:
    simulation = Simulation(model, {}, 3)
    simulation.advance(2)
    samples, before = [], look(simulation)
    for _ in range(parts):
        simulation.advance(seconds / parts)
        after = look(simulation)
        samples.append(sample_between(before, after, model, simulation.now))
        before = after
    return samples


def test_parts_of_a_stretch_pool_to_what_the_whole_of_it_says() -> None:
    model = small_model(**WORK)
    (whole,) = ran(model, 20.0)
    parts = window_of(ran(model, 20.0, 8))
    assert parts is not None
    # what is left and what waits are states: a window has their mean over time
    states = ("queue.", "recovery.objects_left", "snaptrim.drain_s")
    for name, value in whole.values.items():
        if not name.startswith(states):
            assert parts.measures[name].mean == pytest.approx(value, rel=1e-6), name


def test_metrics_of_work_that_is_not_there_are_absent() -> None:
    (sample,) = ran(small_model(clients=(), scrub=(ScrubWork("rbd", 4000, MIB),)), 10.0)
    assert {name.split(".")[0] for name in sample.values} == {"scrub", "queue"}
    # 4000 objects with two copies of 1 MiB each
    assert sample.values["scrub.interval_s"] == pytest.approx(8000 * MIB / sample.values["scrub.bytes_s"])
    (sample,) = ran(small_model(**WORK), 10.0)
    assert not any(name.startswith(("scrub", "backfill")) for name in sample.values)


def test_finish_times_are_those_of_what_there_is_and_not_of_what_is_simulated_to_outlast_a_run() -> None:
    works = (
        RecoveryWork("other", 8000, MIB, rounds=4, times=4.0),
        RecoveryWork("rbd", 4000, MIB, times=1.0),
        RecoveryWork("other", 6000, MIB, degraded=False, times=3.0),
    )
    (sample,) = ran(
        small_model(clients=(), recovery=works, snaptrim=(SnaptrimWork("rbd", 9000, MIB, times=10.0),)), 10.0
    )
    values = sample.values
    # 2000 and 4000 objects lack a copy, however long the run is that has used up some of what is simulated
    assert values["recovery.objects_left"] == 6000
    assert values["recovery.finish_s"] == pytest.approx(6000 / values["recovery.copies_s"])
    assert values["backfill.objects_left"] == 2000
    assert values["snaptrim.drain_s"] == pytest.approx(900 / values["snaptrim.objects_s"])
    with pytest.raises(ValueError, match=r"times\(=0.5\)"):
        small_model(recovery=(RecoveryWork("rbd", 4000, MIB, times=0.5),))


def test_a_client_that_waits_for_each_answer_sees_the_latency_that_its_rate_implies() -> None:
    model = small_model(clients=(ClientStream("rbd", depth=1),))
    (sample,) = ran(model, 30.0)
    assert sample.values["client.mean_ms"] == pytest.approx(1000.0 / sample.values["client.iops"], rel=0.01)
    # buckets of 1/32 octave
    assert sample.values["client.write_mean_ms"] == pytest.approx(sample.values["client.mean_ms"], rel=0.02)
    assert "client.read_mean_ms" not in sample.values
    assert sample.values["client.p50_ms"] <= sample.values["client.p95_ms"] <= sample.values["client.p99_ms"]


def test_a_part_that_stands_for_the_whole_is_scaled_to_it() -> None:
    model = small_model(
        osds=40,
        simulated_osds=4,
        pools=(Pool("rbd", 320, 3),),
        clients=(ClientStream("rbd", rate=3000.0, depth=640),),
        recovery=(RecoveryWork("rbd", 50_000, MIB),),
    )
    (sample,) = ran(model, 20.0)
    assert sample.values["client.iops"] == pytest.approx(3000, rel=0.05)
    assert 20_000 < sample.values["recovery.objects_left"] < 50_000
    done = sample.values["recovery.objects_s"] * 22
    assert sample.values["recovery.objects_left"] + done == pytest.approx(50_000, rel=0.1)
    # each object lacks one copy
    assert sample.values["recovery.copies_s"] == pytest.approx(sample.values["recovery.objects_s"], rel=0.1)
    left_s = sample.values["recovery.objects_left"] / sample.values["recovery.objects_s"]
    assert sample.values["recovery.finish_s"] == pytest.approx(left_s, rel=0.1)


@pytest.mark.parametrize("settle", [0.0, 2.0, 60.0])
def test_how_quick_work_is_does_not_depend_on_how_long_one_looks_after_it_is_done(settle: float) -> None:
    """The slower ones have more left after settling, and looked quicker in a run that outlasts its work."""
    recovery = (RecoveryWork("other", 1500, MIB),)
    quick = small_model(recovery=recovery)
    slow = {"osd_recovery_max_chunk": 65536}

    def rate(settings: dict[str, int], settle: float, seconds: float) -> float:
        return float(simulated(SimulatedRun(quick, settings, seconds, settle, 3, ("recovery.bytes_s",)))[0])

    while_it_lasts = rate({}, 1.0, 2.0)
    assert rate({}, settle, 120.0) == pytest.approx(while_it_lasts, rel=0.25)
    assert rate({}, settle, 120.0) > 1.2 * rate(slow, settle, 120.0)
    window = predict(PredictionRun(quick, {}, 120.0, settle, 3))
    assert window.measures["recovery.bytes_s"].mean == pytest.approx(while_it_lasts, rel=0.25)


def test_without_work_that_ends_a_run_is_whole() -> None:
    simulation = Simulation(small_model(), {}, 3)
    looks = looks_while_it_lasts(simulation, 3.0, 10.0, 5)
    assert [round(found.counters.at, 6) for found in looks] == [3.0, 5.0, 7.0, 9.0, 11.0, 13.0]


def test_no_time_between_two_looks_makes_no_sample() -> None:
    model = small_model()
    simulation = Simulation(model, {}, 3)
    with pytest.raises(ValueError, match=r"seconds\(=0\.0\)"):
        sample_between(look(simulation), look(simulation), model, 0.0)
