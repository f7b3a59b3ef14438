from __future__ import annotations

import errno
import time
from types import SimpleNamespace
from typing import Any, List, Optional, Tuple

import pytest

from ceph_lab.capacity import MOST_RUNS, bench, capacity
from ceph_lab.drives.presets import PRESETS, bench_bound_iops
from ceph_lab.options import GIB, RELEASES
from ceph_tuner.core.errors import CommandFailed


def told(runs: List[float], stated: Optional[float], bound: float = 0.0) -> Tuple[float, int, List[str]]:
    """What mClock is told, after how many runs, with which words; it is doubted where there are any."""
    left, said = list(runs), []  # type: Tuple[List[float], List[str]]
    found = capacity(lambda: left.pop(0), stated, "nvme", said.append, bound)
    assert [f"warning: nvme: {found.doubt}. Is the machine busy?"] == (
        said or ["warning: nvme: . Is the machine busy?"]
    )
    return found.iops, len(runs) - len(left), said


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


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        # a steadily loaded machine agrees with itself, and is run again
        ([811.0, 820.0, 934.0, 930.0], (934.0, 4)),
        ([860.0, 858.0], (860.0, 2)),
        # more than the bound is what such a drive may do
        ([990.0, 970.0], (990.0, 2)),
    ],
)
def test_runs_that_agree_count_where_they_reach_what_the_drive_s_model_says(
    runs: List[float], expected: Tuple[float, int]
) -> None:
    assert told(runs, None, bound=900.0) == (*expected, [])


def test_runs_that_agree_far_below_what_the_drive_s_model_says_are_doubted() -> None:
    found, count, (words,) = told([600.0, 610.0, 590.0, 605.0, 600.0], None, bound=900.0)
    assert (found, count) == (610.0, MOST_RUNS)
    assert "an OSD on such a drive does 900 at least; mClock is told 610" in words


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", PRESETS)
def test_the_model_s_bound_is_near_what_was_measured_and_never_above_it(name: str, release: str) -> None:
    data_bytes = {"hdd": 5 * GIB, "hybrid": 15 * GIB // 4}.get(name, GIB)
    drive = PRESETS[name]
    bound = bench_bound_iops(drive, release, data_bytes)
    assert 0.85 * drive.bench_iops[release] <= bound <= drive.bench_iops[release]
    # in slow motion all of it is slower
    assert bench_bound_iops(drive.slowed(6), release, data_bytes) == pytest.approx(bound / 6)


def test_a_lab_of_six_times_slower_drives_reached_its_bound() -> None:
    # 306.9 was measured: the machine's part is smaller there (benchmarks/results/twin-ahead-nvme.json)
    assert 0.9 * 306.9 <= bench_bound_iops(PRESETS["nvme"].slowed(6), "tentacle", 5 * GIB) <= 306.9


def test_runs_of_which_no_two_agree_are_told_with_a_warning() -> None:
    found, count, (words,) = told([500.0, 600.0, 700.0, 800.0, 900.0], None)
    assert (found, count) == (900.0, MOST_RUNS)
    assert "no two agree" in words


def lab_that_answers(*answers: Any) -> Any:
    left = list(answers)

    def run(command: List[str], timeout: float) -> str:
        answer = left.pop(0)
        if isinstance(answer, int):
            raise CommandFailed(" ".join(command), answer, "osd down")
        return str(answer)

    return SimpleNamespace(run=run, wait_osd=lambda osd, up: None)


def test_an_osd_that_is_down_for_a_moment_is_measured_when_it_is_up() -> None:
    assert bench(lab_that_answers(errno.ENXIO, errno.ENXIO, '{"iops": 934.0}'), 0) == 934.0


def test_one_that_stays_down_or_refuses_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10_000, 25))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))
    with pytest.raises(CommandFailed, match="osd down"):
        bench(lab_that_answers(*[errno.ENXIO] * 9), 0)
    with pytest.raises(CommandFailed) as refused:
        bench(lab_that_answers(errno.EINVAL, '{"iops": 934.0}'), 0)
    assert refused.value.code == errno.EINVAL
