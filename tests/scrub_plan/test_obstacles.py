from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Mapping, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.sample import NEVER_S
from ceph_tuner.scrub_plan import ScrubPg, ScrubRules
from ceph_tuner.scrub_plan.obstacles import (
    Obstacle,
    held_pgs,
    next_opening,
    obstacles,
    open_at,
    trims_next,
    waiting_trims,
)
from overdue import DAY, HOUR, NOW, pg, view

Bounds = Tuple[int, int]

TRIMMED = frozenset(("active", "clean", "snaptrim"))
RECOVERED = frozenset(("active", "recovering", "degraded"))


def named(*pgs: ScrubPg, means: Optional[Mapping[str, float]] = None, **rules: Any) -> Dict[str, Obstacle]:
    return {found.name: found for found in obstacles(view(pgs, **rules), means)}


def test_a_flag_of_the_cluster_is_named_with_the_command_that_removes_it() -> None:
    found = named(pg("1.0"), flags=frozenset(("nodeep-scrub",)))["nodeep-scrub"]
    assert (found.pgs, found.command) == (("1.0",), "ceph osd unset nodeep-scrub")


def test_a_flag_of_a_pool_is_about_its_pgs_alone() -> None:
    flags = {"archive": frozenset(("nodeep-scrub",))}
    found = named(pg("1.0"), pg("2.0", pool="archive"), pool_flags=flags)["nodeep-scrub"]
    assert (found.pgs, found.command) == (("2.0",), "ceph osd pool set archive nodeep-scrub 0")


def test_dates_count_from_a_flag_s_removal_so_it_holds_no_pg() -> None:
    assert held_pgs(obstacles(view([pg("1.0")], flags=frozenset(("nodeep-scrub",))))) == {}


def test_noscrub_alone_keeps_no_deep_scrub_from_beginning() -> None:
    found = named(pg("1.0"), flags=frozenset(("noscrub",)))
    assert "nodeep-scrub" not in found
    assert found["noscrub"].pgs == ()


def test_a_pool_s_own_noscrub_is_named_with_its_command() -> None:
    found = named(pg("1.0"), pg("2.0", pool="archive"), pool_flags={"archive": frozenset(("noscrub",))})["noscrub"]
    assert (found.pgs, found.command) == ((), "ceph osd pool set archive noscrub 0")


def test_a_pg_that_is_trimmed_waits_until_the_queue_is_drained() -> None:
    found = named(pg("1.0", state=TRIMMED), pg("1.1"), means={"snaptrim.drain_s": 2 * HOUR})["snaptrim"]
    assert (found.pgs, found.until) == (("1.0",), NOW + 2 * HOUR)
    assert held_pgs([found]) == {"1.0": NOW + 2 * HOUR}


@pytest.mark.parametrize("means", [{}, {"snaptrim.drain_s": NEVER_S}])
def test_where_nothing_tells_when_a_trim_ends_its_pgs_have_no_date(means: Mapping[str, float]) -> None:
    assert held_pgs([named(pg("1.0", state=TRIMMED), means=means)["snaptrim"]]) == {"1.0": None}


SCRUBBED = frozenset(("active", "clean", "scrubbing", "deep"))


def test_snapshots_that_wait_for_a_scrub_are_named_with_the_date_at_which_trimming_goes_on() -> None:
    own = pg("1.0", state=SCRUBBED, snaptrim_queue=3, scrub_s=HOUR, progress=0.25)
    # it has the pace of the others' last scrubs: 3600 MB in an hour
    other = pg("1.1", state=SCRUBBED, snaptrim_queue=1, raw_bytes=7200e6)
    found = named(own, other, pg("1.2", state=SCRUBBED))["scrub before snaptrim"]
    assert "2 PGs are scrubbed while snapshots wait" in found.words
    assert (found.pgs, found.until) == (("1.0", "1.1"), NOW + 2 * HOUR)
    assert waiting_trims(view([own, other])) == {"1.0": NOW + 0.75 * HOUR, "1.1": NOW + 2 * HOUR}
    assert held_pgs([found]) == {}, "they are being scrubbed"


def test_where_no_scrub_is_known_or_nothing_is_trimmed_that_has_no_date() -> None:
    assert named(pg("1.0", state=SCRUBBED, snaptrim_queue=3))["scrub before snaptrim"].until is None
    flags = frozenset(("nosnaptrim",))
    found = named(pg("1.0", state=SCRUBBED, snaptrim_queue=3, scrub_s=HOUR), flags=flags)["scrub before snaptrim"]
    assert (found.until, "once nosnaptrim is unset" in found.words) == (None, True)


@pytest.mark.parametrize(
    ("changes", "flags", "expected"),
    [
        ({}, (), True),
        ({"snaptrim_queue": 0}, (), False),
        ({"state": SCRUBBED}, (), False),
        ({"state": TRIMMED}, (), False),
        ({"state": frozenset(("active", "clean", "snaptrim_error"))}, (), False),
        ({"state": RECOVERED}, (), False),
        ({}, ("nosnaptrim",), False),
    ],
)
def test_a_pg_is_trimmed_next_where_nothing_keeps_that_from_beginning(
    changes: Dict[str, Any], flags: Tuple[str, ...], expected: bool
) -> None:
    rules = ScrubRules(flags=frozenset(flags))
    assert trims_next(pg("1.0", **{"snaptrim_queue": 2, **changes}), rules) is expected


def test_pgs_on_osds_that_recover_wait_unless_scrubs_are_allowed_meanwhile() -> None:
    pgs = [pg("1.0", state=RECOVERED), pg("1.1", acting=(1, 2)), pg("1.2", acting=(2, 3))]
    found = named(*pgs, means={"recovery.finish_s": HOUR})
    assert (found["recovery"].pgs, found["recovery"].until) == (("1.1",), NOW + HOUR)
    assert found["unclean"].pgs == ("1.0",)
    assert "recovery" not in named(*pgs, during_recovery=True)


def test_pgs_on_an_osd_that_is_backfilled_wait_before_it_is_in_the_acting_set() -> None:
    backfilled = pg("1.0", acting=(0, 1), up=(0, 5), state=frozenset(("active", "remapped", "backfilling")))
    found = named(backfilled, pg("1.1", acting=(5, 6)), pg("1.2", acting=(2, 3)))
    assert found["recovery"].pgs == ("1.1",)


def test_what_is_unclean_and_does_not_recover_has_no_date() -> None:
    found = named(pg("1.0", state=frozenset(("active", "undersized"))), means={"recovery.finish_s": 0.0})
    assert found["unclean"].until is None


def test_what_cannot_be_seen_from_here_is_said() -> None:
    found = named(pg("1.0"), load_threshold=0.5)
    assert "0.5" in found["osd_scrub_load_threshold"].words
    assert "not seen from here" in found["osd_scrub_load_threshold"].words


def ceph_permits(rules: ScrubRules, hour: int, day: int) -> bool:
    """`isbetween_modulo` of Ceph's osd_scrub.cc, in words: from begin on until before the end, over midnight too."""

    def within(bounds: Bounds, value: int, count: int) -> bool:
        begin, end = bounds
        return begin == end or value in [(begin + step) % count for step in range((end - begin) % count)]

    return within(rules.hours, hour, 24) and within(rules.days, day, 7)


@given(
    st.tuples(st.integers(0, 23), st.integers(0, 23)),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
    st.integers(0, 7 * 24 - 1),
)
def test_hours_and_days_are_those_that_ceph_allows(hours: Bounds, days: Bounds, after: int) -> None:
    rules, at = ScrubRules(hours=hours, days=days), NOW + after * HOUR
    local = datetime.fromtimestamp(at, timezone.utc)
    assert open_at(rules, at) == ceph_permits(rules, local.hour, local.isoweekday() % 7)


def test_hours_are_in_the_time_of_the_osds_hosts() -> None:
    rules = ScrubRules(hours=(1, 5))
    assert not open_at(rules, NOW)
    assert open_at(rules, NOW, timezone(timedelta(hours=1)))


@given(
    st.tuples(st.integers(0, 23), st.integers(0, 23)),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
    st.floats(0, 7 * DAY),
)
def test_the_next_opening_is_open_and_nothing_before_it_is(hours: Bounds, days: Bounds, after: float) -> None:
    rules, at = ScrubRules(hours=hours, days=days), NOW + after
    opens = next_opening(rules, at)
    assert open_at(rules, opens)
    assert opens == at or not open_at(rules, opens - HOUR / 2)
