"""What measured trials say of settings: means over repeats, and how far chance may have moved them."""

from __future__ import annotations

import math
from typing import Mapping, Optional, Sequence, Tuple

from scipy.special import ndtri

from ceph_tuner.core.goals.ranking import WINDOW_NOISE, Candidate, window_noise
from ceph_tuner.core.goals.trial import IN_FORCE, Trial, candidates_of
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, Value
from ceph_tuner.recommend import COVERAGE
from ceph_tuner.report import MetricEstimate, Option


def measured_options(trials: Sequence[Trial], winner: Optional[str]) -> Tuple[Tuple[Option, ...], str]:
    """Give what was measured, in force first, and what its intervals are. Raises ValueError without a baseline."""
    # the check was no part of the choice
    measurements = [trial for trial in trials if trial.run.kind != "check"]
    kinds = {trial.run.label: trial.run.kind for trial in reversed(measurements)}
    candidates = sorted(candidates_of(measurements), key=lambda entry: entry.label != IN_FORCE)
    baseline = next((trial for trial in measurements if trial.run.kind == "baseline"), None)
    if baseline is None or not candidates or candidates[0].label != IN_FORCE:
        raise ValueError("no measurement of the settings in force among the trials")
    noise = window_noise(candidates)
    reach = float(ndtri((1 + COVERAGE) / 2))

    def seen(entry: Candidate, name: str) -> MetricEstimate:
        mean = entry.means[name]
        away = math.exp(reach * noise.get(name, WINDOW_NOISE) / math.sqrt(entry.repeats))
        return MetricEstimate(mean, (mean / away, mean * away) if mean > 0 else None)

    options = tuple(
        Option(
            f"{baseline.run.why} (in force)" if entry.label == IN_FORCE and baseline.run.why else entry.label,
            {name: seen(entry, name) for name in entry.means},
            entry.repeats,
            in_force=entry.label == IN_FORCE,
            built_in=kinds[entry.label] == "profile" or (entry.label == IN_FORCE and bool(baseline.run.why)),
            chosen=entry.label == winner,
        )
        for entry in candidates
    )
    source = "repeats of this run" if noise else f"experience ({WINDOW_NOISE:.0%}), as nothing was repeated"
    words = (
        f"where the true mean lies in {COVERAGE:.0%} of the cases; how far windows of the same settings differ is "
        f"known from {source}"
    )
    return options, words


def headline(winner: str, better: bool, reason: str, missed_hard: Sequence[str]) -> str:
    """Say in a sentence or two what came of it."""
    if not better:
        return f"Nothing better found: {reason}. What is in force stays."
    if missed_hard:
        return f"The least bad, {winner}: {reason}. Still missed: {' and '.join(missed_hard)}."
    return f"{winner}: {reason}."


def custom(settings: Mapping[str, Value]) -> Settings:
    """Settings with the profile that they are written under: any of the nine values takes `custom`."""
    own: Settings = {PROFILE: "custom"} if any(name in settings for name in MCLOCK_NINE) else {}
    return {**own, **settings}
