"""Ends a trial early where more of it would be wasted: what it shows already decides it.

A window is cut into stretches, and the mean of each objective's metric over them gets a Student interval. Neighbouring
stretches are alike, so that they count for fewer: n (1 - r) / (1 + r), r being their autocorrelation (Wilks,
Statistical Methods in the Atmospheric Sciences, eq. 5.12). The risk is shared by all looks and objectives, and the
interval is widened by what windows of the same settings differ by, which no single window can show.
"""

from __future__ import annotations

import math
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from scipy.stats import t as student

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import WINDOW_NOISE
from ceph_tuner.core.goals.slo import Objective
from ceph_tuner.core.measure.sample import Measure

STRETCH_S = 5.0
"""As long as a sample of a live cluster."""

RISK = 0.01
"""Probability that a trial is ended which would have been worth its window."""

LEAST = 3
"""Stretches before anything is said."""

_OTHER_WINDOWS = float(student.ppf(1 - RISK, math.inf)) * WINDOW_NOISE


class Hopeless:
    """Watches one trial. Feed it every stretch of its window; it answers with a reason once there is one."""

    def __init__(self, judge: Judge, to_beat: Optional[Tuple[bool, float]], window_s: float) -> None:
        """`to_beat`: the rank (`Judge.rank`) that the trial must reach to be of use; None: any."""
        self._judge, self._to_beat = judge, to_beat
        self._held = judge.must_hold()
        looks = max(1, math.ceil(window_s / STRETCH_S) - LEAST)
        self._risk = RISK / looks / len(judge.objectives)
        self._stretches: Dict[str, List[float]] = {}

    def watch(self, stretch: Mapping[str, Measure], so_far: Mapping[str, Measure]) -> Optional[str]:
        """Take the last stretch, and the window up to now; say why more of it would be wasted."""
        for name, measure in stretch.items():
            self._stretches.setdefault(name, []).append(measure.mean)
        means = {name: measure.mean for name, measure in so_far.items()}
        kindest = {}
        for objective in self._judge.objectives:
            best = self._kindest(objective, means)
            if best is None:
                continue
            kindest[objective.metric] = best
            bound = self._held.get(objective)
            if bound is not None and objective.margin(best, bound) < 0:
                return f"breaks {objective.text}: {objective.metric} is {best:.4g} at best, {bound:.4g} must hold"
        # what is not known yet may be anything
        everything = all(objective.metric in kindest for objective in self._judge.objectives)
        reachable = self._judge.rank(kindest)
        beaten = self._to_beat is not None and everything and reachable > self._to_beat
        return "cannot be among the best any more" if beaten else None

    def _kindest(self, objective: Objective, means: Mapping[str, float]) -> Optional[float]:
        """Give the better end of the interval; None where too little was seen."""
        values, mean = self._stretches.get(objective.metric, []), means.get(objective.metric)
        if len(values) < LEAST or mean is None:
            return None
        away = half_width(values, self._risk) + _OTHER_WINDOWS * abs(mean)
        return max(0.0, mean - away) if objective.comparison == "<=" else mean + away


def half_width(values: Sequence[float], risk: float) -> float:
    """Half of the interval that a mean of neighbouring values, three or more, is in; one-sided, with this risk."""
    count = len(values)
    mean = math.fsum(values) / count
    away = [value - mean for value in values]
    squares = math.fsum(value**2 for value in away)
    if squares == 0:
        return 0.0
    # the estimate is too small by about 1/n
    r = math.fsum(one * other for one, other in zip(away, away[1:])) / squares + 1.0 / count
    r = min(max(r, 0.0), 0.9)
    effective = max(2.0, count * (1 - r) / (1 + r))
    return float(student.ppf(1 - risk, effective - 1)) * math.sqrt(squares / (count - 1) / effective)
