from __future__ import annotations

from ceph_tuner.core.knobs.scrub_hours import bounding_options, bounds_of
from ceph_tuner.core.knobs.scrub_slots import scrub_slots_of
from ceph_tuner.core.measure.pg_documents import DEEP, SHALLOW, late_pgs, overdue_pgs, pg_details

DAY = 86_400.0


def test_scrubs_that_an_osd_leads_and_those_of_its_copies_count_together_or_apart() -> None:
    most, under_way = {0: 2, 1: 2, 2: 3}, [(0, 1, 2), (0, 2, 1)]
    together, apart = scrub_slots_of(most, (), under_way), scrub_slots_of(most, most, under_way)
    assert (together.as_primary, together.as_replica) == ({0, 1}, {0, 1})
    assert (apart.as_primary, apart.as_replica) == ({0}, {1})
    assert apart.loads == {0: (2, 0), 1: (0, 2), 2: (0, 2)}


def test_a_scrub_waits_for_its_primary_s_slot_and_for_those_of_its_copies() -> None:
    slots = scrub_slots_of({0: 1, 1: 1, 2: 1}, (0, 1, 2), [(0, 1)])
    assert slots.hold((0, 2)) == {0}
    assert slots.hold((2, 1)) == {1}
    # who leads one may have a copy of another, from Tentacle on
    assert slots.hold((1, 0)) == frozenset()
    assert slots.hold(()) == frozenset()
    assert scrub_slots_of({0: 0}, (), []).hold((0, 1)) == {0}


def test_only_bounds_that_are_narrower_than_always_have_options() -> None:
    assert bounds_of({}) == bounds_of({"osd_scrub_begin_hour": "at night"}) == ((0, 0), (0, 0))
    days, hours = bounds_of({"osd_scrub_begin_hour": "22", "osd_scrub_end_hour": "6"})
    assert bounding_options(days, hours) == ("osd_scrub_begin_hour", "osd_scrub_end_hour")
    days, hours = bounds_of({"osd_scrub_begin_week_day": "6"})
    assert bounding_options(days, hours) == ("osd_scrub_begin_week_day", "osd_scrub_end_week_day")


def test_a_pg_is_overdue_a_tenth_after_its_date_by_its_pool_s_own_interval_first() -> None:
    stamp = "2026-11-13T00:00:00.000000+0000"
    rows = [
        {"pgid": pgid, "state": "active+clean", "last_deep_scrub_stamp": stamp, "last_scrub_stamp": stamp}
        for pgid in ("1.0", "2.0")
    ]
    at = 1_794_528_000.0
    pools = {"pools": [{"pool": 2, "options": {"deep_scrub_interval": 2 * DAY}}]}
    assert overdue_pgs(rows, at + 2.1 * DAY, DEEP, 7 * DAY, pools) == frozenset()
    assert overdue_pgs(rows, at + 2.3 * DAY, DEEP, 7 * DAY, pools) == {"2.0"}
    assert overdue_pgs(rows, at + 7.6 * DAY, SHALLOW, 7 * DAY, pools) == frozenset()
    assert overdue_pgs(rows, at + 7.8 * DAY, SHALLOW, 7 * DAY, pools) == {"1.0", "2.0"}


def test_a_pg_of_which_the_mgr_has_not_heard_is_not_late() -> None:
    none = {"state": "unknown", "last_deep_scrub_stamp": "0.000000", "last_scrub_stamp": "0.000000"}
    row = {"pgid": "1.0", **none, "acting": [], "stat_sum": {"num_objects": 0, "num_bytes": 0}}
    assert (
        overdue_pgs([row], 1.8e9, DEEP, 7 * DAY, {}) == overdue_pgs([row], 1.8e9, SHALLOW, 7 * DAY, {}) == frozenset()
    )
    stamps = {pgid: pg.deep_scrubbed for pgid, pg in pg_details([row], {}).items()}
    assert late_pgs(stamps, 1.8e9, 7 * DAY, {}) == []
