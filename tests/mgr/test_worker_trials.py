"""What the worker is told of trials."""

from __future__ import annotations

import math
from dataclasses import replace

from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.measure.sample import measured_once
from ceph_tuner.search.worker import answer
from tuner.worker_trials import worker_trials

RUN = Run("trial", "trial 1", {"osd_mclock_scheduler_client_res": 0.6}, "automatic mode", {"client.p95_ms": (5, 4, 7)})
TRIAL = Trial(RUN, 1.0, 60.0, measured_once({"client.p95_ms": 6.0}))


def test_what_was_expected_is_told_beside_what_came() -> None:
    (entry,) = worker_trials([TRIAL])
    assert entry == {
        "settings": {"osd_mclock_scheduler_client_res": 0.6},
        "values": {"client.p95_ms": 6.0},
        "expected": {"client.p95_ms": [5, 4, 7]},
    }


def test_an_expectation_that_makes_no_sense_does_not_keep_the_worker_from_answering() -> None:
    nothing, endless = (math.nan, 1.0, 2.0), (1.0, 0.0, math.inf)
    odd = {"client.p95_ms": (5.0, 7.0, 4.0), "client.mean_ms": nothing, "client.iops": endless}
    told = worker_trials([replace(TRIAL, run=replace(RUN, expected=odd))])
    assert told[0]["expected"] == {}
    request = {
        "version": 1,
        "release": "20.2.4",
        "slo": {"name": "some", "objectives": ["client.p95_ms <= 4 ms"]},
        "in_force": {"osd_mclock_profile": "balanced"},
        "baseline": {"client.p95_ms": 8.0},
        "told": told,
    }
    assert answer(request)["ok"] is True
