from __future__ import annotations

from typing import List, Optional, Tuple

import pytest

from ceph_lab.capacity import MOST_RUNS, capacity


def told(runs: List[float], stated: Optional[float]) -> Tuple[float, int, List[str]]:
    """What mClock is told, after how many runs, with which words."""
    left, said = list(runs), []  # type: Tuple[List[float], List[str]]
    found = capacity(lambda: left.pop(0), stated, "nvme", said.append)
    return found, len(runs) - len(left), said


@pytest.mark.parametrize(
    ("runs", "stated", "expected"),
    [
        # what is stated is told to every lab, so that labs are alike
        ([951.0], 934.0, (934.0, 1)),
        ([811.0, 930.0], 934.0, (934.0, 2)),
        # without a statement two runs have to agree, and a busy moment only takes away
        ([900.0, 940.0], None, (940.0, 2)),
        ([811.0, 934.0, 930.0], None, (934.0, 3)),
        ([811.0, 820.0, 934.0], None, (820.0, 2)),
    ],
)
def test_what_agrees_is_told(runs: List[float], stated: Optional[float], expected: Tuple[float, int]) -> None:
    assert told(runs, stated) == (*expected, [])


def test_a_busy_machine_does_not_change_what_a_drive_is_said_to_do() -> None:
    found, count, (words,) = told([600.0, 610.0, 590.0, 605.0, 600.0], 934.0)
    assert (found, count) == (934.0, MOST_RUNS)
    assert words.startswith("warning: nvme: the bench gave 590, 600, 600, 605, 610 IOPS, stated are 934")


def test_runs_of_which_no_two_agree_are_told_with_a_warning() -> None:
    found, count, (words,) = told([500.0, 600.0, 700.0, 800.0, 900.0], None)
    assert (found, count) == (900.0, MOST_RUNS)
    assert "no two agree" in words
