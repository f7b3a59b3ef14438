from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import DAY, TIB, healthy, osd_facts

from ceph_tuner.doctor.facts import Facts
from ceph_tuner.doctor.scrubbing import covered_s, flagged, interval, permitted_share, rate_allowed

LIMIT = "osd_mclock_scheduler_background_best_effort_lim"


def test_a_tebibyte_an_osd_in_a_week_is_no_finding() -> None:
    assert interval(healthy()) == []
    assert flagged(healthy(flags=("sortbitwise",))) == []


def test_flags_that_stop_scrubs_are_found() -> None:
    (found,) = flagged(healthy(flags=("sortbitwise", "noscrub", "nodeep-scrub")))
    assert found.commands == ("ceph osd unset nodeep-scrub", "ceph osd unset noscrub")


def test_a_limit_below_what_is_stored_by_the_interval_cannot_keep_it() -> None:
    # 1 TiB in a week is 1.8 MB/s; 0.0005 of 2 GB/s is 1 MB/s
    (found,) = interval(healthy(osds=(osd_facts(0, {LIMIT: "0.000500"}),)))
    assert found.check == "deep-scrub-allowed"
    assert found.share == pytest.approx(1 - 7 * DAY * 1e6 / TIB)
    assert "12.7 days, 7 days are there" in found.evidence[0]


def paced(seconds: float, apart: float) -> Facts:
    """Each PG's last deep scrub took so long, and ended so long after the one before."""
    rows = [replace(pg, deep_scrub_s=seconds, deep_scrubbed_at=1e9 + apart * at) for at, pg in enumerate(healthy().pgs)]
    return healthy(pgs=tuple(rows), health={"PG_NOT_DEEP_SCRUBBED": ("17 pgs not deep-scrubbed in time",)})


def test_scrubs_that_ran_alone_are_reckoned_as_many_at_once_as_may_run() -> None:
    # every OSD has 84 copies, 7 h each, three at once: 8.2 days
    (found,) = interval(paced(7 * 3600.0, 1e6))
    assert found.check == "deep-scrub-seen"
    assert found.share == pytest.approx(1 - 7 * DAY * 3 / (84 * 7 * 3600))
    assert "took 8.17 days by their last deep scrubs, 7 days are there" in found.evidence[0]
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
