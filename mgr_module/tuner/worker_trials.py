"""Trials as the optimiser's process is told of them."""

from __future__ import annotations

import math
from typing import Any, Dict, List

from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.catalogue import PROFILE


def worker_trials(trials: List[Trial]) -> List[Dict[str, Any]]:
    """Trials in the worker's words, without those whose settings are not known any more."""
    entries = []
    for trial in trials:
        expected = {
            name: [middle, low, high]
            for name, (middle, low, high) in trial.run.expected.items()
            # of a record that somebody else wrote
            if -math.inf < low <= middle <= high < math.inf
        }
        entry: Dict[str, Any] = {"values": trial.means, "expected": expected}
        # a baseline has no settings of its own; its `why` is the built-in profile that was in force, if one was
        profile = trial.run.why if trial.run.kind == "baseline" else trial.run.settings.get(PROFILE)
        if profile and len(trial.run.settings) <= 1:
            entry["profile"] = profile
        elif trial.run.settings:
            entry["settings"] = dict(trial.run.settings)
        else:
            continue
        # what was ended early because it was hopeless was measured all the same
        if trial.failed is not None and not trial.hopeless:
            entry["failed"] = trial.failed
        entries.append(entry)
    return entries
