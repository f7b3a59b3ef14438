"""PGs of a pool's OSDs, as the doctor and moves count them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.pg_counts import PgCounts, pg_counts

COPIES = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3), (3, 4)]


def test_only_what_is_on_the_pool_s_osds_counts() -> None:
    assert pg_counts(COPIES, 1, 2) == PgCounts(osds=2, size=2, others=2.0)
    assert pg_counts(COPIES, 3, 1) == PgCounts(osds=1, size=1, others=0.0)
    assert pg_counts(COPIES, 1, 2).mean(8) == (8 * 2 + 2) / 2


def test_what_is_planned_for_another_pool_comes_where_its_pgs_are() -> None:
    assert pg_counts(COPIES, 1, 2, {1: 99.0, 2: 40.0}).others == 20.0


def test_a_pool_on_no_osd_has_no_pgs_and_room_for_none() -> None:
    counts = pg_counts(COPIES, 4, 0)
    assert (counts.mean(8), counts.permitted(100.0)) == (0.0, 0)


@given(st.integers(1, 100), st.integers(1, 12), st.floats(0, 1e4), st.floats(1, 1000))
def test_what_is_permitted_keeps_the_limit_and_twice_as_many_do_not(
    osds: int, size: int, others: float, most: float
) -> None:
    counts = PgCounts(osds, size, others)
    pg_num = counts.permitted(most)
    assert pg_num == 0 or counts.mean(pg_num) <= most * (1 + 1e-12)
    assert counts.mean(max(1, 2 * pg_num)) > most * (1 - 1e-12)
