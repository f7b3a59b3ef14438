"""What plots draw, where it is more than matplotlib's business."""

from __future__ import annotations

import json
import warnings
from datetime import datetime, timedelta, timezone
from typing import List, Tuple

import pytest
from example_answers import recommendation, tuning
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.report import answer_file, plots, plots_in_time, plots_of_search, svg
from ceph_tuner.report.answers import findings_of

NUMBERS = st.integers(0, 20).map(float)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30)


@given(POINTS, st.booleans(), st.booleans())
def test_nothing_passes_the_front_and_everything_lies_behind_it(
    points: List[Tuple[float, float]], less_x: bool, less_y: bool
) -> None:
    def no_worse(one: Tuple[float, float], other: Tuple[float, float]) -> bool:
        x, y = (
            (one[0] <= other[0]) if less_x else (one[0] >= other[0]),
            ((one[1] <= other[1]) if less_y else (one[1] >= other[1])),
        )
        return x and y

    front = plots.pareto(points, less_x, less_y)
    assert set(front) <= set(points)
    assert all(any(no_worse(one, point) for one in front) for point in points)
    assert not any(no_worse(one, other) for one in front for other in front if one != other)
    assert front == sorted(front)


def found(document: object) -> plots.Findings:
    return findings_of(answer_file.parse(json.dumps(document).encode(), "answer.json"))


def test_every_option_has_a_mark_of_its_own() -> None:
    options = found(recommendation()).options
    named = plots.compared(found(recommendation()))
    looks = [plots.look(option, options, better=True) for option in named]
    assert len({marker for _, marker in looks}) == len(looks)
    assert [plots.role_of(option, True) for option in named] == ["in force", "built-in profile", "recommended"]
    assert plots.role_of(named[-1], False) == "closest"


def test_no_limit_stands_beyond_the_largest_limit() -> None:
    curve = found(recommendation()).learnt.curves[0]
    places, ticks, labels = plots_of_search.knob_axis(curve)
    assert curve.values[0] == 0
    assert places[0] == max(places)
    assert labels[ticks.index(max(ticks))] == "none"


@given(st.floats(0.5, 90 * 86400.0), st.floats(0.0, 86400.0), st.sampled_from(sorted(plots_in_time.SIZES)))
def test_a_time_of_any_length_has_some_moments_written_under_it(seconds: float, after: float, size: str) -> None:
    start = datetime(2026, 11, 21, tzinfo=timezone.utc) + timedelta(seconds=after)
    with warnings.catch_warnings():
        # what matplotlib warns of here would be printed to whoever has a report written
        warnings.simplefilter("error")
        assert 1 <= len(plots_in_time.ticks(size).tick_values(start, start + timedelta(seconds=seconds))) <= 12


@pytest.mark.parametrize("size", plots_in_time.SIZES)
def test_trials_are_drawn_over_the_time_of_their_run(size: str) -> None:
    run = found(tuning())
    (part,) = plots_in_time.stretches(run)
    assert part.end - part.start == 5 * 40 + 35
    drawn = plots_in_time.in_time(run, part, "client.p95_ms", size)
    assert drawn is not None
    assert "00:0" in drawn
    assert plots_in_time.in_time(run, part, "scrub.bytes_s", size) is None


def test_a_drawing_takes_its_colours_from_the_page_and_names_nothing_else() -> None:
    drawn = plots.objective(found(recommendation()), 0)
    assert not any(colour in drawn for colour in (svg.INK, svg.MUTED, svg.BLUE, svg.RED))
    for variable in ("--ink", "--red", "--green", "--orange"):
        assert f"var({variable})" in drawn
    assert "font-family" not in drawn
    assert "<metadata" not in drawn
    assert drawn == plots.objective(found(recommendation()), 0)
