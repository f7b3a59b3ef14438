from __future__ import annotations

import threading
import time

import pytest

from ceph_tuner.core.errors import RetryLater
from tuner.jobs import Jobs


def test_quick_work_is_answered_at_once() -> None:
    assert Jobs().run("work", lambda: 7) == 7


def test_long_work_is_answered_when_asked_again_and_runs_once() -> None:
    jobs, release, runs = Jobs(patience=0.05), threading.Event(), []

    def work() -> str:
        runs.append(1)
        release.wait(10)
        return "done"

    for _ in range(3):
        with pytest.raises(RetryLater, match="at work"):
            jobs.run("work", work)
    release.set()
    assert Jobs.run(_patient(jobs), "work", work) == "done"
    assert len(runs) == 1


def test_an_error_reaches_whoever_asks_and_is_then_forgotten() -> None:
    jobs = Jobs()
    with pytest.raises(ZeroDivisionError):
        jobs.run("work", lambda: 1 // 0)
    assert jobs.run("work", lambda: 1) == 1


def test_an_outcome_that_nobody_came_for_is_not_given_to_the_next() -> None:
    jobs, done = Jobs(patience=0.05, fresh_s=0.0), threading.Event()

    def first() -> str:
        done.wait(10)
        return "old"

    with pytest.raises(RetryLater):
        jobs.run("work", first)
    done.set()
    time.sleep(0.1)
    assert Jobs.run(_patient(jobs), "work", lambda: "new") == "new"


def _patient(jobs: Jobs) -> Jobs:
    jobs._patience = 5.0
    return jobs
