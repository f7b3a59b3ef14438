"""What an automatic mode exports, with everything in it."""

from __future__ import annotations

from typing import Mapping, Sequence

from ceph_tuner.core.autopilot.audit_log import KINDS
from ceph_tuner.core.autopilot.contract import BETTER, Effect
from ceph_tuner.core.autopilot.state import AUTO, TRYING
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from tuner.exposition import ModeDocument


def mode(
    slo: Slo, means: Mapping[str, float], device_class: str = "", effects: Sequence[str] = ("client.p95_ms",)
) -> ModeDocument:
    """One that has settings on trial; `means` is what the objectives are held against, `effects` are metrics."""
    return {
        "device_class": device_class,
        "slo": [verdict.to_dict() for verdict in Judge(slo).verdicts(means)],
        "mode": AUTO,
        "phase": TRYING,
        "paused": False,
        "stage": 1,
        "stages": 3,
        "changes_on_trial": 2,
        "trial_windows": 5,
        "effects": [Effect(metric, -0.2, -0.3, -0.1, 5, BETTER).to_dict() for metric in effects],
        "counts": {
            "changes": 4,
            "rollbacks": {"slow operations": 1},
            "events": {**dict.fromkeys(KINDS, 0), "taken back": 1},
        },
        "worker_failures": 2,
    }
