from __future__ import annotations

from datetime import timedelta, timezone
from typing import Dict, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.pacing.objectives import held_bounds
from ceph_tuner.scrub_plan import MEASURED, OTHER_HOURS, TWIN
from ceph_tuner.scrub_plan.rates import HANDOVER_S, flat_rates, measured_rates, pace_of_past_scrubs, with_handovers
from overdue import DAY, HOUR, MB, NOW, pg, rate

SLO = Slo("keep", (parse_objective("client.p95_ms <= 20"),))
HELD = held_bounds(SLO, {})


def window(hour: int, p95_ms: Optional[float] = 10.0, scrubbed: float = 0.0, day: int = 0) -> Window:
    values: Dict[str, float] = {"client.iops": 100.0, "scrub.bytes_s": scrubbed}
    if p95_ms is not None:
        values["client.p95_ms"] = p95_ms
    start = NOW + day * DAY + hour * HOUR
    return Window(start, start + HOUR, {name: Measure(value, 0.0, 60) for name, value in values.items()})


def days_of(hour: int, scrubbed: float, p95_ms: float = 10.0, days: int = 5) -> List[Window]:
    return [window(hour, p95_ms, scrubbed, day) for day in range(days)]


def test_an_hour_has_the_rate_that_kept_the_objectives_in_it() -> None:
    found = measured_rates([*days_of(3, 50 * MB), *days_of(15, 10 * MB)], HELD)
    assert found is not None
    assert (found[3].mean, found[3].source, found[3].windows) == (50 * MB, MEASURED, 5)
    assert found[15].mean == 10 * MB


def test_windows_that_missed_an_objective_leave_nothing() -> None:
    found = measured_rates([*days_of(3, 50 * MB), *days_of(15, 50 * MB, p95_ms=30.0)], HELD)
    assert found is not None
    assert found[15].mean == 0.0


def test_an_hour_with_room_and_without_scrubs_has_the_pace_of_the_others() -> None:
    found = measured_rates([*days_of(3, 50 * MB), *days_of(15, 0.0)], HELD)
    assert found is not None
    assert found[15].mean == 50 * MB


def test_hours_that_nobody_saw_are_like_all_others_together_and_say_so() -> None:
    found = measured_rates([*days_of(3, 50 * MB), *days_of(15, 10 * MB)], HELD)
    assert found is not None
    assert (found[8].mean, found[8].source) == (30 * MB, OTHER_HOURS)


def test_an_hour_that_is_kept_in_half_of_its_windows_has_half_of_the_pace() -> None:
    windows = [window(3, 10.0 if day % 2 else 30.0, 50 * MB, day) for day in range(10)]
    found = measured_rates(windows, HELD)
    assert found is not None
    assert found[3].mean == 25 * MB
    assert found[3].low < 25 * MB < found[3].high


def test_windows_without_any_scrub_tell_no_pace_but_where_there_is_room() -> None:
    windows = [*days_of(3, 0.0), *days_of(15, 0.0, p95_ms=30.0)]
    assert measured_rates(windows, HELD) is None
    found = measured_rates(windows, HELD, rate(40 * MB, 30 * MB, 50 * MB, TWIN))
    assert found is not None
    assert (found[3].mean, found[3].source) == (40 * MB, TWIN)
    # half of what was seen had room, and nothing measured how fast scrubs are
    assert (found[8].mean, found[8].source) == (20 * MB, TWIN)
    assert found[3].low <= 30 * MB
    assert found[15].mean == 0.0


def test_without_windows_the_twin_s_pace_stands_for_all_hours() -> None:
    pace = rate(40 * MB, source=TWIN)
    assert measured_rates([], HELD, pace) is None
    assert flat_rates(pace) == (pace,) * 24


def test_hours_are_those_of_the_time_zone_that_ceph_s_own_are_in() -> None:
    found = measured_rates(days_of(3, 50 * MB), HELD, zone=timezone(timedelta(hours=2)))
    assert found is not None
    assert (found[5].source, found[3].source) == (MEASURED, OTHER_HOURS)


def test_windows_that_do_not_show_an_objective_s_metric_tell_nothing() -> None:
    assert measured_rates([window(3, None, 50 * MB, day) for day in range(5)], HELD) is None
    found = measured_rates([*days_of(3, 50 * MB), *(window(15, None, 90 * MB, day) for day in range(5))], HELD)
    assert found is not None
    assert found[15].source == OTHER_HOURS


def test_past_scrubs_tell_a_pace_by_how_long_they_took() -> None:
    pgs = [pg("1.0", raw_bytes=100 * MB, scrub_s=10.0), pg("1.1", raw_bytes=300 * MB, scrub_s=10.0), pg("1.2")]
    found = pace_of_past_scrubs(pgs, at_once=2)
    assert found is not None
    assert found.mean == pytest.approx(2 * 20 * MB)
    assert pace_of_past_scrubs([pg("1.2")], 2) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 23), st.floats(1.0, 40.0), st.floats(0, 1e8), st.integers(0, 6)),
        min_size=1,
        max_size=60,
    )
)
def test_no_hour_is_promised_more_than_what_was_seen_at_best(
    rows: List[Tuple[int, float, float, int]],
) -> None:
    found = measured_rates([window(hour, p95, scrubbed, day) for hour, p95, scrubbed, day in rows], HELD)
    best = max((scrubbed for _, p95, scrubbed, _ in rows if p95 <= 20), default=0.0)
    for each in found or ():
        assert 0 <= each.low <= each.mean <= each.high
        assert each.mean <= best * (1 + 1e-9)


def test_between_two_scrubs_of_a_place_nothing_is_read() -> None:
    # three places, each of which reads 300 MB in 21.4 s and waits after it
    pgs = [pg(f"2.{number}", raw_bytes=size * MB) for number, size in enumerate((200, 300, 400))]
    paused = with_handovers(rate(42 * MB, 40 * MB, 44 * MB), pgs, 3.0)
    assert paused.mean == pytest.approx(3 * 300 * MB / (900 / 42 + HANDOVER_S))
    assert paused.low < paused.mean < paused.high
    # of large PGs it is next to nothing
    large = with_handovers(rate(42 * MB), [pg("2.0", raw_bytes=1e6 * MB)], 3.0)
    assert large.mean == pytest.approx(42 * MB, rel=1e-3)
    for nothing in (
        with_handovers(rate(42 * MB), [], 3.0),
        with_handovers(rate(42 * MB), [pg("2.0", raw_bytes=0.0)], 3.0),
    ):
        assert nothing == rate(42 * MB)
