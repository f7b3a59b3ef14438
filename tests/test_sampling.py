from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.osd_documents import osd_latency, osd_queues, osd_values
from ceph_tuner.core.measure.pg_documents import pg_details
from ceph_tuner.core.measure.reading import PgDetail, Reading, Turn, copies_per_object
from ceph_tuner.core.measure.sample import NEVER_S, WRITE, Sample
from ceph_tuner.core.measure.sampling import Sampling

RECORDED = Path(__file__).parent / "data" / "plugin"


def recorded(release: str) -> List[Reading]:
    """Two looks at a real cluster under `rados bench … write -b 8K`, five seconds apart."""
    looks: List[Dict[str, Any]] = json.loads((RECORDED / f"{release}-readings.json").read_text())
    return [
        Reading(
            at=look["at"],
            osds={
                int(osd): DaemonReport(seen["at"], osd_values(seen["perf"]["osd"]), 1)
                for osd, seen in look["osds"].items()
            },
            latency={int(osd): osd_latency(seen["histogram"]) for osd, seen in look["osds"].items()},
            queues={int(osd): osd_queues(seen["perf"]) for osd, seen in look["osds"].items()},
            pg_states={row["state_name"]: row["count"] for row in look["pgmap"]["pgs_by_state"]},
            pgs=pg_details(look["pg_ls"], {}),
        )
        for look in looks
    ]


def last(readings: List[Reading]) -> Sample:
    sampling = Sampling()
    assert sampling.take(readings[0]) is None
    samples = [sampling.take(each) for each in readings[1:]]
    assert samples[-1] is not None
    return samples[-1]


def second(readings: List[Reading]) -> Sample:
    return last(readings[:2])


@pytest.mark.parametrize("release", ["tentacle", "reef"])
def test_real_documents_of_a_write_load_give_its_rates(release: str) -> None:
    first, last = recorded(release)
    seen = second([first, last]).values
    writes = sum(last.osds[osd].values["op_w"] - first.osds[osd].values["op_w"] for osd in last.osds)
    spans = [last.osds[osd].at - first.osds[osd].at for osd in last.osds]
    assert writes > 100
    assert writes / max(spans) <= seen["client.write_iops"] <= writes / min(spans)
    assert seen["client.write_bytes_s"] == pytest.approx(seen["client.write_iops"] * 8192, rel=0.1)
    assert 0 < seen["client.p50_ms"] <= seen["client.p95_ms"] <= seen["client.p99_ms"] < 1000
    # the histogram and the counter with a sum are two witnesses of one thing
    assert 0.4 < seen["client.write_mean_ms"] / seen["client.p50_ms"] < 5
    assert set(seen) >= {"queue.client", "pgs.inactive", "recovery.bytes_s"}


@pytest.mark.parametrize("release", ["tentacle", "reef"])
def test_histograms_and_counters_of_a_real_osd_count_the_same_operations(release: str) -> None:
    first, last = recorded(release)
    for osd, kinds in last.latency.items():
        rise = kinds[WRITE].since(first.latency[osd][WRITE])
        counted = sum(last.osds[osd].values[name] - first.osds[osd].values[name] for name in ("op_w", "op_rw"))
        assert rise is not None
        # two commands, one after the other, under load
        assert rise.total == pytest.approx(counted, rel=0.1)


def reading(at: float, **rest: Any) -> Reading:
    rest.setdefault("osds", {0: DaemonReport(at, {"op_r": 10 * at, "op_w": 0.0, "recovery_ops": 0.0}, 1)})
    rest.setdefault("pg_states", {"active+clean": 2})
    return Reading(at, **rest)


def test_an_osd_that_restarts_leaves_a_gap_and_a_note_instead_of_a_rate() -> None:
    def both(at: float, restarted: bool) -> Reading:
        count, born = (1e9, 2) if restarted else (10 * at, 1)
        return reading(at, osds={0: DaemonReport(at, {"op_r": 10 * at}, 1), 1: DaemonReport(at, {"op_r": count}, born)})

    sample = second([both(5.0, False), both(10.0, True)])
    assert sample.values["client.read_iops"] == 10.0
    assert sample.notes == ("no rates of osd.1",)


def test_no_operations_have_no_latency() -> None:
    idle = {0: DaemonReport(5.0, {"op_r": 3.0, "op_r_latency.sum": 1.0, "op_r_latency.count": 3.0}, 1)}
    sample = second([reading(5.0, osds=idle), reading(10.0, osds={0: replace(idle[0], at=10.0)})])
    assert sample.values["client.iops"] == 0.0
    assert not [name for name in sample.values if name.endswith("_ms")]


def test_a_gap_gives_no_sample() -> None:
    sampling = Sampling()
    sampling.take(reading(5.0))
    assert sampling.take(reading(500.0)) is None
    assert sampling.take(reading(505.0)) is not None
    assert sampling.take(reading(100.0)) is None


def test_what_is_left_and_when_it_is_done_are_of_copies_and_the_osds_count_objects() -> None:
    """Of objects that lack two copies each, while others move."""
    looks = [
        reading(
            at,
            osds={0: DaemonReport(at, {"recovery_ops": 30.0 * at}, 1)},
            totals={"num_objects_degraded": 600.0 - 40.0 * at, "num_objects_misplaced": 1000.0 - 10.0 * at},
        )
        for at in (5.0, 10.0)
    ]
    seen = second(looks).values
    assert seen["backfill.objects_s"] == 10.0
    assert seen["backfill.finish_s"] == 90.0
    assert seen["recovery.objects_s"] == 30.0
    assert seen["recovery.copies_s"] == 40.0
    assert seen["recovery.objects_left"] == 200.0
    assert seen["recovery.finish_s"] == 5.0


def returning(found: float) -> List[Reading]:
    """An OSD returns while nothing recovers: peering finds all but so many copies on it."""
    sums = {"num_objects": 400.0, "num_object_copies": 1200.0, "num_objects_recovered": 50.0}
    return [
        reading(
            at,
            totals={**sums, "num_objects_degraded": left, "num_objects_misplaced": left},
            copies_per_object=copies_per_object([sums]),
        )
        for at, left in ((5.0, 1283.0), (10.0, found))
    ]


def test_an_osd_that_returns_is_no_recovery() -> None:
    seen = second(returning(17.0)).values
    assert seen["recovery.objects_left"] == 17.0
    assert seen["recovery.copies_s"] == seen["backfill.objects_s"] == 0.0
    assert seen["recovery.finish_s"] == seen["backfill.finish_s"] == NEVER_S


def test_each_recovered_object_mends_at_most_the_copies_that_it_may_lack() -> None:
    before, after = returning(17.0)
    some = replace(after, totals={**after.totals, "num_objects_recovered": 60.0})
    seen = second([before, some]).values
    assert seen["recovery.copies_s"] == pytest.approx(2 * 10 / 5)
    # of a misplaced one all may be elsewhere
    assert seen["backfill.objects_s"] == pytest.approx(3 * 10 / 5)


def test_the_pool_with_most_copies_says_how_many_an_object_may_lack() -> None:
    sums = [{"num_objects": 10, "num_object_copies": 20}, {"num_objects": 1, "num_object_copies": 6}, {}]
    assert copies_per_object(sums) == 6.0
    assert copies_per_object([{"num_objects": 0, "num_object_copies": 0}]) is None


def test_work_that_stands_still_never_ends() -> None:
    looks = [
        reading(at, totals={"num_objects_degraded": 5.0, "num_objects_misplaced": 7.0}, snaptrim_queue=3.0)
        for at in (5.0, 10.0)
    ]
    seen = second(looks).values
    assert seen["recovery.finish_s"] == seen["backfill.finish_s"] == seen["snaptrim.drain_s"] == NEVER_S


@pytest.mark.parametrize(("queues", "seen"), [((32.0, 32.0), None), ((32.0, 34.0), None), ((32.0, 0.0), 0.0)])
def test_a_snaptrim_queue_that_stays_while_objects_are_trimmed_says_nothing_of_its_end(
    queues: Tuple[float, float], seen: Optional[float]
) -> None:
    looks = [
        reading(at, totals={"num_object_clones": 9000.0 - 500.0 * at}, snaptrim_queue=queue)
        for at, queue in zip((5.0, 10.0), queues)
    ]
    values = second(looks).values
    assert values["snaptrim.objects_s"] == 500.0
    assert values.get("snaptrim.drain_s") == seen


def detail(scrubbed: int, state: str = "active+clean+scrubbing+deep", ended: str = "monday") -> PgDetail:
    return PgDetail(
        scrubbed, 0, objects=50, raw_bytes=2 * 50 * 1000, state=state, scrub_ended=ended, deep_scrubbed=ended
    )


def test_scrub_is_read_from_the_pgs_where_the_osds_do_not_count_it() -> None:
    looks = [
        reading(5.0, pgs={"1.0": detail(10), "1.1": detail(0)}),
        reading(10.0, pgs={"1.0": detail(30), "1.1": detail(50, "active+clean", "tuesday")}),
    ]
    seen = second(looks).values
    assert seen["scrub.objects_s"] == 14.0
    assert seen["scrub.bytes_s"] == 14.0 * 1000 * 2


def test_some_pgs_stand_for_all() -> None:
    looks = [reading(at, pgs={"1.0": detail(int(2 * at))}, pg_states={"active+clean": 8}) for at in (5.0, 10.0)]
    assert second(looks).values["scrub.objects_s"] == 16.0


def test_scrub_counters_of_the_osds_count_every_copy() -> None:
    totals = {"num_objects": 100.0, "num_object_copies": 300.0}
    looks = [
        reading(
            at,
            osds={
                0: DaemonReport(at, {"scrub_replicated_stats_cnt": 30 * at, "scrub_replicated_read_bytes": 3e3 * at}, 1)
            },
            totals=totals,
            raw_bytes=3e6,
        )
        for at in (5.0, 10.0)
    ]
    seen = second(looks).values
    assert seen["scrub.objects_s"] == 10.0
    assert seen["scrub.bytes_s"] == 3000.0
    assert seen["scrub.interval_s"] == pytest.approx(1000.0)


def scrubbed(counters: Mapping[str, float], pgs: Callable[[int], Dict[str, PgDetail]], **rest: Any) -> Dict[str, float]:
    """Of four looks the last: what OSDs count between two of them, and PGs after so many, which report one later."""
    looks = [
        reading(
            at,
            osds={0: DaemonReport(at, {name: step * count for name, count in counters.items()}, 1)},
            pgs=pgs(max(step - 1, 0)),
            **rest,
        )
        for step, at in enumerate((5.0, 10.0, 15.0, 20.0))
    ]
    return last(looks).values


def scrubbed_beside_writes(progress: int, chunks: int) -> Dict[str, float]:
    """In each 5 s OSDs read 600 copies of 1 kB, and one PG of two copies gets on by so many objects."""
    return scrubbed(
        {
            "scrub_replicated_stats_cnt": 600.0,
            "scrub_replicated_read_bytes": 6e5,
            "scrub_replicated_io_intersects": chunks + 3.0,
            "scrub_replicated_io_blocked": 3.0,
        },
        lambda done: {"1.0": detail(progress * done)},
        pg_states={"active+clean+scrubbing+deep": 1},
        totals={"num_objects": 100.0, "num_object_copies": 300.0},
        raw_bytes=3e6,
    )


def test_what_is_read_of_chunks_that_writes_preempt_is_no_progress() -> None:
    seen = scrubbed_beside_writes(progress=75, chunks=10)
    assert seen["scrub.preemptions_s"] == 2.0
    assert seen["scrub.objects_s"] == pytest.approx(15.0)
    assert seen["scrub.bytes_s"] == pytest.approx(0.25 * 1.2e5)
    assert seen["scrub.interval_s"] == pytest.approx(100.0)


def test_a_pool_of_many_copies_beside_one_of_few_makes_no_difference() -> None:
    """OSDs count copies of both: bytes are held against bytes."""
    code = replace(detail(0), objects=50, raw_bytes=11 * 50 * 1000)
    seen = scrubbed(
        {"scrub_ec_stats_cnt": 110.0, "scrub_ec_read_bytes": 1.1e5, "scrub_ec_io_intersects": 1.0},
        lambda done: {"1.0": detail(0, "active+clean"), "2.0": replace(code, scrubbed=10 * done)},
        totals={"num_objects": 1100.0, "num_object_copies": 3000.0 + 1100.0},
    )
    assert seen["scrub.bytes_s"] == pytest.approx(1.1e5 / 5)


def test_a_minute_after_the_last_preempted_chunk_the_osds_own_counters_are_progress() -> None:
    sampling, chunks, rates = Sampling(), 0.0, []
    for step in range(40):
        chunks += 3.0 if 10 <= step < 12 else 0.0
        counters = {"scrub_replicated_stats_cnt": 9.0 * step, "scrub_replicated_read_bytes": 5e4 * step}
        counters["scrub_replicated_io_intersects"] = chunks
        at = 5.0 * step
        pgs = {"1.0": detail(10 * step)}
        sample = sampling.take(
            reading(at, osds={0: DaemonReport(at, counters, 1)}, pgs=pgs, pg_states={"active+clean+scrubbing+deep": 1})
        )
        rates.append(sample.values["scrub.bytes_s"] if sample else None)
    by_pgs = [step for step, rate in enumerate(rates) if rate == 10 * 2000 / 5]
    assert by_pgs == list(range(10, by_pgs[-1] + 1))
    assert 60 <= 5 * len(by_pgs) <= 80
    assert {rate for step, rate in enumerate(rates) if step and step not in by_pgs} == {1e4}


def test_where_some_pgs_stand_for_all_nothing_is_taken_from_what_the_osds_read() -> None:
    sampling = Sampling()
    for step, at in enumerate((5.0, 10.0, 15.0)):
        counters = {"scrub_replicated_stats_cnt": 9.0 * step, "scrub_replicated_read_bytes": 5e4 * step}
        counters["scrub_replicated_io_intersects"] = 5.0 * step
        sample = sampling.take(
            reading(at, osds={0: DaemonReport(at, counters, 1)}, pgs={"1.0": detail(0)}, pg_states={"active": 9000})
        )
    assert sample is not None
    assert (sample.values["scrub.bytes_s"], sample.values["scrub.preemptions_s"]) == (1e4, 1.0)


def test_osds_that_count_no_preemptions_show_none() -> None:
    looks = [
        reading(
            at, osds={0: DaemonReport(at, {"scrub_replicated_stats_cnt": at, "scrub_replicated_read_bytes": at}, 1)}
        )
        for at in (5.0, 10.0)
    ]
    assert "scrub.preemptions_s" not in second(looks).values


def test_where_no_chunk_is_preempted_the_osds_own_counters_are_progress() -> None:
    """They are newer than what PGs report, and finer."""
    seen = scrubbed_beside_writes(progress=75, chunks=0)
    assert (seen["scrub.preemptions_s"], seen["scrub.bytes_s"]) == (0.0, 1.2e5)


def test_what_was_not_seen_is_absent() -> None:
    seen = second([Reading(5.0), Reading(10.0)]).values
    assert seen == {}


@given(
    st.lists(
        st.tuples(
            st.floats(1.0, 20.0),
            st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 10**9), st.integers(1, 3)), max_size=4),
            st.floats(0, 1e6),
            st.integers(0, 100),
        ),
        max_size=12,
    )
)
def test_whatever_the_cluster_does_every_value_is_finite_and_not_negative(story: List[Any]) -> None:
    """A Sample refuses anything else: OSDs come and go, counters fall, totals jump."""
    sampling, at = Sampling(), 0.0
    for wait, osds, total, scrubbed in story:
        at += wait
        sampling.take(
            Reading(
                at,
                osds={
                    osd: DaemonReport(
                        at, {"op_r": float(count), "op_r_latency.sum": count / 7, "op_r_latency.count": 1.0}, born
                    )
                    for osd, (count, born) in osds.items()
                },
                latency={osd: {WRITE: Histogram((1.0, 2.0), (count, 0, 0))} for osd, (count, _) in osds.items()},
                totals=dict.fromkeys(("num_objects_degraded", "num_objects_misplaced", "num_object_clones"), total),
                pg_states={"active": 3},
                pgs={"1.0": detail(scrubbed)},
                snaptrim_queue=total,
            )
        )


def in_turns(count: int, at: float, tick: int) -> Reading:
    """Twelve OSDs, OSD n with n operations per second, of which each reading has every `count`-th."""
    part = tick % count
    reports = {osd: DaemonReport(at, {"op_w": osd * at}) for osd in range(part, 12, count)}
    turn = Turn(part, count, 5.0 * count if count > 1 else 0.0)
    return Reading(at, osds=reports, turn=turn, up=range(12))


@pytest.mark.parametrize("count", [1, 3, 12])
def test_osds_that_are_read_in_turns_add_up_to_the_whole_cluster(count: int) -> None:
    sampling = Sampling()
    for tick in range(2 * count + 1):
        sample = sampling.take(in_turns(count, 5.0 * tick, tick))
    assert sample is not None
    assert sample.values["client.iops"] == pytest.approx(sum(range(12)))
    assert sampling.coverage.rates == 12
    assert sample.notes == ()


def test_until_all_had_their_turn_those_that_had_it_stand_for_all_and_it_says_so() -> None:
    sampling = Sampling()
    for tick in range(5):
        sample = sampling.take(in_turns(4, 5.0 * tick, tick))
    assert sample is not None
    assert sample.values["client.iops"] == pytest.approx(4 * (0 + 4 + 8))
    assert sample.notes == ("the 3 OSDs with rates stand for all",)


def test_an_osd_that_is_gone_leaves_the_sum_in_its_next_turn() -> None:
    sampling = Sampling()
    for tick in range(6):
        whole = in_turns(3, 5.0 * tick, tick)
        sampling.take(whole)
    for tick in range(6, 9):
        whole = in_turns(3, 5.0 * tick, tick)
        left = {osd: report for osd, report in whole.osds.items() if osd != 11}
        sample = sampling.take(replace(whole, osds=left, up=range(11)))
    assert sample is not None
    assert sample.values["client.iops"] == pytest.approx(sum(range(11)))


def test_since_when_scrubs_go_on_is_told_by_the_oldest_one() -> None:
    sampling, states = Sampling(), {"active+clean": 1, "active+clean+scrubbing+deep": 1}
    for at in (5.0, 10.0):
        sampling.take(Reading(at, pg_states=states, pgs={"1.0": detail(1, "active+clean"), "1.1": detail(1)}))
    assert sampling.scrubs_since == 5.0
    sampling.take(Reading(15.0, pg_states={"active+clean": 2}))
    assert sampling.scrubs_since is None


@pytest.mark.parametrize(("longest", "since"), [(600.0, 400.0), (None, None)])
def test_where_some_pgs_are_looked_at_in_turn_the_longest_scrub_tells_it(
    longest: Optional[float], since: Optional[float]
) -> None:
    sampling, states = Sampling(), {"active+clean+scrubbing+deep": 9000}
    sampling.take(Reading(1000.0, pg_states=states, pgs={"1.0": detail(1)}, longest_scrub_s=longest))
    assert sampling.scrubs_since == since
