"""Two settings, run on the same seeds, held against each other metric by metric: what differs is not the chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable, Optional, Sequence, Tuple

from scipy.special import stdtrit

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.recommend import COVERAGE, Prediction

LEAST_PAIRS = 2
"""Of one pair of runs nothing is known."""


@dataclass(frozen=True)
class PairedEffect:
    """What a change does to one metric: means before and after, and the ratio of the two with its interval.

    The interval holds the true mean ratio of clusters like the described one in COVERAGE of the cases.
    """

    metric: str
    before: float
    after: float
    ratio: Optional[Tuple[float, float, float]]
    """(mean, low, high); None where a run has nothing or 0 of it."""


def paired_effects(metrics: Iterable[str], before: Prediction, after: Prediction) -> Tuple[PairedEffect, ...]:
    """Give one for each of the metrics that both have; run by run they are of the same seeds."""
    effects = (_effect(metric, before, after) for metric in dict.fromkeys(metrics))
    return tuple(entry for entry in effects if entry is not None)


def mean_and_reach(values: Sequence[float], quantile: float) -> Tuple[float, float]:
    """Mean, and how far below it the true mean lies at most with that probability (Student)."""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, math.inf
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return mean, float(stdtrit(count - 1, quantile)) * math.sqrt(variance / count)


def fall_of_loss(judge: Judge, before: Prediction, after: Prediction) -> Tuple[float, float]:
    """By how much the judge's loss is smaller after, on the seeds of both: the mean, and the least in 95% of cases."""
    falls = [judge.loss(old) - judge.loss(new) for old, new in zip(before.runs, after.runs)]
    mean, reach = mean_and_reach(falls, 0.95)
    return mean, mean - reach


def _effect(metric: str, before: Prediction, after: Prediction) -> Optional[PairedEffect]:
    if metric not in before.means or metric not in after.means:
        return None
    pairs = [(one[metric], other[metric]) for one, other in zip(before.runs, after.runs)]
    # one may have run on more seeds than the other
    old, new = (math.fsum(values) / len(pairs) for values in zip(*pairs))
    if min(min(pair) for pair in pairs) <= 0 or len(pairs) < 2:
        return PairedEffect(metric, old, new, None)
    logs = [math.log(other / one) for one, other in pairs]
    # both ends of the interval
    mean, reach = mean_and_reach(logs, (1 + COVERAGE) / 2)
    return PairedEffect(metric, old, new, (math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)))
