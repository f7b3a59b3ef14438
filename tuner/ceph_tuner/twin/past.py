"""Windows to fit on out of a cluster's own past: what trials measured, and what was seen since the last change."""

from __future__ import annotations

import math
from typing import List, Tuple

from ceph_tuner.core.changes.forecast_pairs import SETTLED_S
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings
from ceph_tuner.core.measure.history import History, merged
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.observations import Observation

AT_ONCE = 10
"""So many minutes of the history make one window, so that several show how far such windows differ."""

IN_FORCE = "in force"


def past_of(
    history: History,
    scenario: str,
    in_force: Settings,
    changed_at: float,
    release: Release,
    now: float = math.inf,
    touched_at: float = 0.0,
) -> Tuple[List[Observation], List[str]]:
    """(windows, what was left out). `changed_at`: when settings were last written to stay; earlier trials had others.

    `touched_at`: when any was last written, by a trial or by hand; earlier minutes had others.
    By `now` no minute is of a clock that was ahead: it would look as if it came after that.
    """
    observations: List[Observation] = []
    skipped: List[str] = []
    for record in history.trials():
        trial = Trial.remembered(record)
        if trial is None or trial.failed is not None or not trial.measures:
            skipped.append(f"trial {record.get('label', '')}: {record.get('failed') or 'nothing measured'}")
        elif trial.device_class:
            skipped.append(f"trial {trial.run.label}: of the device class {trial.device_class} alone")
        elif not trial.run.settings and trial.at < changed_at:
            skipped.append(f"trial {trial.run.label}: of settings in force before the last change")
        else:
            settings = _whole(trial.run.settings, in_force, release)
            observations.append(Observation(scenario, trial.run.label, settings, trial.measures))
    settled_from = max(changed_at, touched_at) + SETTLED_S
    minutes = [window for window in history.windows(now) if window.start >= settled_from]
    for number in range(0, len(minutes), AT_ONCE):
        together = merged(minutes[number : number + AT_ONCE])
        if together is not None:
            settings = _whole({}, in_force, release)
            observations.append(Observation(scenario, IN_FORCE, settings, together.measures, together.seconds, 30.0))
    with_metrics = [observation for observation in observations if observation.metrics]
    if len(with_metrics) < len(observations):
        skipped.append(f"{len(observations) - len(with_metrics)} windows without any metric that the twin predicts")
    return with_metrics, skipped


def _whole(own: Settings, in_force: Settings, release: Release) -> Settings:
    base = {name: value for name, value in in_force.items() if not name.startswith("bluestore_throttle")}
    if own.get(PROFILE) in release.profiles:
        base.update(release.profiles[str(own[PROFILE])])
    return completed({**base, **{name: value for name, value in own.items() if name != PROFILE}}, release)
