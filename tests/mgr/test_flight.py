"""Some hours of the whole automatic mode on the twin's clock, while everything goes wrong around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight import BOOK_OPTIONS, KINDS, PAGES, Flight

pytestmark = pytest.mark.slow

HOURS = 1.0


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        (1, "hosts"),
        pytest.param(13, "osds", marks=pytest.mark.long),
        pytest.param(3, "alternating", marks=pytest.mark.long),
    ],
)
def test_no_law_is_broken_in_hours_of_faults_and_operators(tmp_path: Path, seed: int, kind: str) -> None:
    options, copies = KINDS[kind]
    flight = Flight(seed, tmp_path, options, copies)
    flight.fly(HOURS, 8.0, 3.0)
    flight.land()
    assert flight.laws.violations == []
    # it was no holiday
    assert flight.counts["trail: apply"] > 0
    assert flight.counts["trail: taken back"] > 0
    assert flight.counts["mgrs that ended"] > 1


def test_no_law_is_broken_with_the_book_and_boosts_on(tmp_path: Path) -> None:
    options, copies = KINDS["hosts"]
    flight = Flight(4, tmp_path, {**options, **BOOK_OPTIONS}, copies, PAGES)
    flight.fly(HOURS, 8.0, 6.0)
    flight.land()
    assert flight.laws.violations == []
    assert flight.counts["the book is on"] > 0
    assert flight.counts["switches of the book"] > 3
    assert flight.counts["turns of the calendar"] > 1
    assert flight.counts["looks at a page in force"] > 0
    assert flight.counts["boosts written"] > 0
    assert flight.counts["looks at a boost in force"] > 0
    assert flight.counts["mgrs that ended"] > 1


def test_the_same_seed_is_the_same_flight(tmp_path: Path) -> None:
    both = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        flight = Flight(3, tmp_path / name)
        flight.fly(0.1, 20.0, 10.0)
        # whether it lands well is asked above
        flight.land(looks=3)
        both.append((flight.counts, flight.world.table()))
    assert both[0] == both[1]
