"""The grid by hand, its front, and what is held against it."""

from __future__ import annotations

import pytest
from front_on_lab import GRIDS, Point, best_at, front_of

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.settings import settings_key


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_has_sixty_settings_of_knobs_that_there_are(name: str) -> None:
    settings = GRIDS[name].settings()
    assert len(settings) == len({settings_key(own) for own in settings.values()}) == 60
    assert {name for own in settings.values() for name in own} <= {*KNOBS, "osd_mclock_profile"}


def test_the_front_is_what_no_other_beats() -> None:
    slow, quick, beaten = Point("slow", 10.0, 5e6), Point("quick", 20.0, 9e6), Point("beaten", 21.0, 9e6)
    same = Point("as slow", 10.0, 4e6)
    assert front_of([beaten, same, quick, slow]) == [slow, quick]


def test_the_front_s_recovery_is_that_of_settings_with_no_longer_a_p95() -> None:
    front = [Point("slow", 10.0, 5e6), Point("quick", 20.0, 9e6)]
    assert [best_at(front, latency_ms) for latency_ms in (9.0, 10.0, 19.0, 20.0)] == [0.0, 5e6, 5e6, 9e6]
