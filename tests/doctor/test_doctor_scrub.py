from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import DAY, TIB, healthy, osd_facts, pgs, place

from ceph_tuner.core.knobs.releases import Version
from ceph_tuner.doctor.facts import Facts, OsdFacts, PoolFacts
from ceph_tuner.doctor.scrub import (
    available_s,
    counted_bytes,
    covered_s,
    flagged,
    interval,
    permitted_share,
    rate_allowed,
)

LIMIT = "osd_mclock_scheduler_background_best_effort_lim"


def test_a_tebibyte_an_osd_in_a_week_is_no_finding() -> None:
    assert interval(healthy()) == []
    assert flagged(healthy(flags=("sortbitwise",))) == []


def test_flags_that_stop_scrubs_are_found() -> None:
    (found,) = flagged(healthy(flags=("sortbitwise", "noscrub", "nodeep-scrub")))
    assert found.commands == ("ceph osd unset nodeep-scrub", "ceph osd unset noscrub")


def test_a_flag_of_a_pool_counts_for_its_data_and_that_of_all_for_everything() -> None:
    quiet = PoolFacts(2, "quiet", 8, 2, raw_bytes=2 * TIB, flags=("hashpspool", "nodeep-scrub"))
    pools = (*healthy().pools, quiet)
    (found,) = flagged(healthy(pools=pools))
    assert found.share == pytest.approx(2 / 8)
    assert found.commands == ("ceph osd pool set quiet nodeep-scrub 0",)
    (found,) = flagged(healthy(pools=pools, flags=("nodeep-scrub",)))
    assert (found.share, found.commands) == (1.0, ("ceph osd unset nodeep-scrub",))


def test_flags_that_stop_other_background_work_are_found() -> None:
    (found,) = flagged(healthy(flags=("sortbitwise", "noout", "norebalance", "nosnaptrim")))
    assert found.check == "work-flags"
    assert found.commands == ("ceph osd unset norebalance", "ceph osd unset nosnaptrim")


def test_of_small_objects_most_of_the_rate_goes_for_the_price_of_an_io() -> None:
    # 2 GB/s at 30 000 IOPS: an I/O costs as much as 66 667 bytes
    rows = tuple(replace(pg, objects=pg.nbytes / 4096) for pg in healthy().pgs)
    tight = osd_facts(0, {LIMIT: "0.020000"})
    # 40 MB/s are 24 TB in a week: 0.7 TB of objects of 4 KiB count 12.5
    assert interval(healthy(osds=(tight,))) == interval(healthy(osds=(tight,), pgs=rows)) == []
    (found,) = interval(healthy(osds=(osd_facts(0, {LIMIT: "0.010000"}),), pgs=rows))
    counted = 84 * 2.0**33 / 4096 * (4096 + 2e9 / 30_000 + 4096 / 15)
    assert found.share == pytest.approx(1 - 7 * DAY * 2e7 / counted, rel=1e-3)
    assert "a deep scrub of its 176160768 objects counts 12.5 TB" in found.evidence[0]


def test_a_limit_below_what_is_stored_by_the_interval_cannot_keep_it() -> None:
    # 0.0005 of 2 GB/s is 1 MB/s
    (found,) = interval(healthy(osds=(osd_facts(0, {LIMIT: "0.000500"}),)))
    assert found.check == "deep-scrub-allowed"
    counted = 84 * 2048 * (2**22 + 2e9 / 30_000)
    assert found.share == pytest.approx(1 - 7 * DAY * 1e6 / counted, rel=1e-3)
    assert "takes 8.48 d, 7 d are there" in found.evidence[0]
    assert found.commands == ("ceph config set global osd_deep_scrub_interval SECONDS",)


def disk(**given: object) -> OsdFacts:
    """A hard disk as Ceph takes it, under balanced."""
    options = {
        "osd_op_queue": "mclock_scheduler",
        LIMIT: "0.9",
        "osd_mclock_max_capacity_iops_hdd": "315.000000",
        "osd_mclock_max_sequential_bandwidth_hdd": str(150 * 2**20),
    }
    return OsdFacts(replace(place(0), device_class="hdd"), "hdd", options=options, mclock_queues=True, **given)


def test_every_shard_of_an_erasure_coded_object_counts_the_whole_object() -> None:
    # 8+3, 10 TB in shards of 0.5 MB on each OSD: 20 million objects of 4 MB and 0.5 MB for the I/O
    rows = pgs([(tuple(range(11)), 100)], nbytes=200_000 * 4e6, objects=200_000)
    pools = (PoolFacts(1, "archive", 100, 11, raw_bytes=110e12, erasure=True),)
    facts = healthy(osds=(disk(used_bytes=10e12),), pools=pools, pgs=rows)
    assert counted_bytes(facts, facts.osds[0])[1] == pytest.approx(20e6 * (4e6 + 499_321), rel=1e-3)
    (found,) = interval(facts)
    assert "takes 7.36 d, 7 d are there" in found.evidence[0]


@pytest.mark.parametrize(("version", "days"), [((18, 2, 4), 0.3), ((18, 2, 7), 8.45)])
def test_up_to_18_2_4_a_chunk_counts_the_same_whatever_it_holds(version: Version, days: float) -> None:
    # 12 TB of objects of 64 KiB
    rows = pgs([((0, 1, 2), 100)], nbytes=12e10, objects=12e10 / 2**16)
    facts = replace(healthy(osds=(disk(used_bytes=12e12),), pgs=rows), version=version)
    seconds = sum(counted_bytes(facts, facts.osds[0]).values()) / rate_allowed(facts.osds[0])
    assert seconds / DAY == pytest.approx(days, rel=0.01)
    assert bool(interval(facts)) == (days > 7)


def test_of_pgs_that_are_not_listed_what_is_stored_is_the_least_that_they_count() -> None:
    slow = osd_facts(0, {LIMIT: "0.000500"})
    (found,) = interval(healthy(osds=(slow,), pgs=()))
    assert "a deep scrub of its 1.1 TB counts 1.1 TB" in found.evidence[0]
    assert interval(replace(healthy(osds=(slow,), pgs=()), version=(18, 2, 4))) == []
    patient = (replace(healthy().pools[0], deep_scrub_interval=21 * DAY), PoolFacts(2, "other", 8, 2))
    assert interval(healthy(osds=(slow,), pgs=(), pools=patient)) == []


def test_a_pool_s_own_interval_counts_for_its_part() -> None:
    slow, rbd = osd_facts(0, {LIMIT: "0.000500"}), healthy().pools[0]
    assert interval(healthy(osds=(slow,), pools=(replace(rbd, deep_scrub_interval=9 * DAY),))) == []
    (found,) = interval(healthy(pools=(replace(rbd, deep_scrub_interval=DAY / 1000),)))[:1]
    assert found.check == "deep-scrub-allowed"
    assert found.commands == ("ceph osd pool set rbd deep_scrub_interval SECONDS",)
    # half of the work within 14 days, half within 7: 9.3 days for the whole
    rows = tuple(replace(pg, pool=1 + at % 2) for at, pg in enumerate(healthy().pgs))
    pools = (rbd, PoolFacts(2, "slow", 128, 2, deep_scrub_interval=14 * DAY))
    facts = healthy(pools=pools, pgs=rows)
    assert available_s(facts, facts.osds[0], {1: 1.0, 2: 1.0}) == pytest.approx(28 / 3 * DAY)
    assert interval(healthy(osds=(slow,), pools=pools, pgs=rows)) == []
    (found,) = interval(healthy(osds=(osd_facts(0, {LIMIT: "0.000400"}),), pools=pools, pgs=rows))
    assert found.commands == (
        "ceph config set global osd_deep_scrub_interval SECONDS",
        "ceph osd pool set slow deep_scrub_interval SECONDS",
    )


def paced(seconds: float, apart: float) -> Facts:
    """Each PG's last deep scrub took so long, and ended so long after the one before."""
    rows = [replace(pg, deep_scrub_s=seconds, deep_scrubbed_at=1e9 + apart * at) for at, pg in enumerate(healthy().pgs)]
    return healthy(pgs=tuple(rows), health={"PG_NOT_DEEP_SCRUBBED": ("17 pgs not deep-scrubbed in time",)})


def test_scrubs_that_ran_alone_are_reckoned_as_many_at_once_as_may_run() -> None:
    # every OSD has 84 copies, 7 h each, three at once: 8.2 days
    (found,) = interval(paced(7 * 3600.0, 1e6))
    assert found.check == "deep-scrub-seen"
    assert found.share == pytest.approx(1 - 7 * DAY * 3 / (84 * 7 * 3600))
    assert "took 8.17 d by their last deep scrubs, 7 d are there" in found.evidence[0]
    assert found.evidence[-1] == "17 pgs not deep-scrubbed in time"


def test_scrubs_that_were_requested_all_together_are_reckoned_by_the_time_that_they_covered() -> None:
    # as on a lab: all at once, each as slow as all of them; by three at once it would be 28 times as long
    assert interval(paced(6 * DAY, 0.0)) == []
    (found,) = interval(paced(14 * DAY, 0.0))
    assert found.share == pytest.approx(0.5)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=12))
def test_covered_time_counts_each_moment_once(runs: list) -> None:
    spans = [(float(start), float(start + length)) for start, length in runs]
    assert covered_s(spans) == len({second for start, end in spans for second in range(int(start), int(end))})


@given(st.integers(0, 23), st.integers(0, 23), st.integers(0, 6), st.integers(0, 6))
def test_permitted_time_is_the_hours_and_days_that_ceph_would_scrub_in(
    begin: int, end: int, first: int, last: int
) -> None:
    def inside(now: int, low: int, high: int) -> bool:
        """Ceph's own rule (`PgScrubber`, `isbetween_modulo`): equal ends are always."""
        return low == high or (low <= now < high if low < high else now >= low or now < high)

    osd = osd_facts(
        0,
        {
            "osd_scrub_begin_hour": str(begin),
            "osd_scrub_end_hour": str(end),
            "osd_scrub_begin_week_day": str(first),
            "osd_scrub_end_week_day": str(last),
        },
    )
    permitted = sum(inside(hour, begin, end) and inside(day, first, last) for hour in range(24) for day in range(7))
    assert permitted_share(osd) == pytest.approx(permitted / (24 * 7))


def test_no_limit_is_the_whole_bandwidth_and_wpq_has_none() -> None:
    assert rate_allowed(osd_facts(0, {LIMIT: "0.000000"})) == 2e9
    assert rate_allowed(osd_facts(0, {LIMIT: "0.250000"})) == 5e8
    assert rate_allowed(osd_facts(0, {"osd_op_queue": "wpq"}, mclock_queues=False)) is None
