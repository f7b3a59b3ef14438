"""Intervals for means that may be looked at after every window, and still cover the truth with the stated probability.

A t-interval that is computed anew after every window and acted upon as soon as it leaves zero is wrong far more often
than it says. These are confidence sequences: with the stated probability the truth is in all of them at once.

The test behind them is the Bayes factor of a t-test with right-Haar priors on what is unknown on both sides (location,
deviation) and a normal prior N(0, g) on the effect in deviations. It is a martingale under the null hypothesis, so by
Ville's inequality it exceeds 1/alpha with probability alpha at most, however often one looks; the interval holds the
effects that it does not refute.

    t     estimate over its standard error           n_eff   windows of one sample that would tell as much
    nu    degrees of freedom                         g       variance of the prior on the effect, in deviations squared

    B = (1 + n_eff g)^(-1/2) * [(1 + t^2/nu) / (1 + t^2/(nu (1 + n_eff g)))]^((nu + 1)/2)        (Goenen et al.)

Sources: Goenen, Johnson, Lu, Westfall, "The Bayesian two-sample t test", The American Statistician 59 (2005);
Perez-Ortiz, Lardy, de Heide, Gruenwald, "E-statistics, group invariance and anytime-valid testing", Annals of
Statistics 52 (2024), arXiv 2208.07610, for why this is valid at any time; Wang, Ramdas, arXiv 2310.03722, for one
sample; Lindon, Sanden, Shirikian, arXiv 2205.14762, for its use on deployments.

Three things are added because windows are not independent normal numbers of one deviation, each of which only widens:
the standard error is Welch's where that is larger, it is inflated by the correlation of neighbouring windows, and the
deviation has a floor. Turns of old and new settings have their noise from differences without an effect, see
`alternation`. benchmarks/results/false-alarms.md has the rates of false alarms that are left.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import NamedTuple, Sequence

EFFECT_VARIANCE = 1.0
"""g: effects of 5 to 30% are 0.5 to 2.6 deviations of 10%. Between 0.5 and 4 the power hardly depends on it."""

LEAST = 4
"""Windows on each side below which the interval is unbounded: fewer say next to nothing of their own deviation."""

USUAL_CORRELATION = 0.3
"""Correlation of neighbouring windows that is assumed as long as few have been seen."""

CORRELATION_WEIGHT = 10
"""How many windows the assumption counts as: by simulation enough to keep the promise, at little cost."""

CORRELATION_MOST = 0.9

LEAST_TURNS = 3
"""Turns of new settings below which the interval is unbounded: one wild one of two could not be told."""

EARLIER_WEIGHT = 8.0
"""Degrees of freedom that the noise of other turns, or of before, has at most in that of these turns.

By simulation: with less a verdict takes longer; with more, settings that only change the noise are called better or
worse more often.
"""

STEP_FREEDOM = 1.5
"""Differences of a series from one value to the next that tell its variance as well as one degree of freedom does."""

NEIGHBOURS_SHARE = 4.0 / 3.0
"""Variance of the mean of k differences of a turn from its neighbours' mean, times k, over that of one: neighbouring
differences share a turn. It is 1.5 s^2 for one, and 2 s^2/k for the mean."""


class Interval(NamedTuple):
    """An estimate and the range in which the truth is; unbounded while nothing can be said."""

    estimate: float
    low: float
    high: float


def mean(sample: Sequence[float], confidence: float, floor: float) -> Interval:
    """Interval of a sample's mean. `floor`: the least deviation of a single value that is believed, above 0."""
    _check(confidence, floor)
    estimate = fmean(sample)
    count = len(sample)
    if count < LEAST:
        return _around(estimate, math.inf)
    error = math.sqrt(max(_variance(sample), floor * floor) / count)
    return _around(estimate, error * inflation(sample) * radius(count, count - 1, confidence))


class TurnNoise(NamedTuple):
    """Differences of logarithms in which no effect is; each is empty where nothing of the kind was seen."""

    old: Sequence[float]
    """Each turn of the old settings, less the old turn before it."""
    new: Sequence[float]
    """The same of the new ones."""
    earlier: Sequence[float]
    """Each window before the first turn, less the last but one: old settings, and as far apart as turns of one kind."""
    bends: Sequence[float]
    """Each window before the first turn, less the mean of its neighbours: what the effect is made of, without one."""


def alternation(effects: Sequence[float], noise: TurnNoise, confidence: float, floor: float) -> Interval:
    """Interval of the effect of settings that take turns with the old ones.

    `effects`: each turn of the new settings less the mean of the old ones before and after it. `floor` as elsewhere.

    Where the noise of turns is white, with deviations s and s' of old and new ones, the mean of k effects has the
    variance (s^2 + s'^2)/k. Where neighbouring turns follow each other it has less, as they are compared with each
    other. Both deviations are told by differences of turns with the same settings, and by windows of before: from the
    third turn on, where the effects alone take six. Settings may change the noise, and some work goes up and down by
    turns of its own accord. Both make effects scatter more than these differences say. So the variance is at least
    that of the effects themselves, beside the bends of before.
    """
    _check(confidence, floor)
    estimate, count = fmean(effects), len(effects)
    if count < LEAST_TURNS or not noise.old:
        return _around(estimate, math.inf)
    before = _Variance.of_steps(noise.earlier)
    old = _Variance.of_steps(noise.old).beside(before)
    new = _Variance.of_steps(noise.new).beside(old)
    least = floor * floor / 2.0  # the floor is a pair's, as everywhere
    parts = [(max(part.value, least) / count, part.freedom) for part in (old, new)]
    variance = sum(value for value, _ in parts)
    # Welch and Satterthwaite
    freedom = max(1.0, variance**2 / sum(value**2 / freedom for value, freedom in parts))
    squares = sum((effect - estimate) ** 2 for effect in effects)
    bends = min(len(noise.bends), EARLIER_WEIGHT)
    if bends:
        squares += bends * fmean(bend * bend for bend in noise.bends)
    scattered = NEIGHBOURS_SHARE * squares / (count - 1 + bends) / count
    error = math.sqrt(max(variance, scattered))
    return _around(estimate, error * radius(count, freedom, confidence))


class _Variance(NamedTuple):
    """Of one turn, and how well it is known."""

    value: float
    freedom: float

    @classmethod
    def of_steps(cls, steps: Sequence[float]) -> _Variance:
        """A step has twice the variance of a turn."""
        return cls(fmean(step * step for step in steps) / 2.0 if steps else 0.0, len(steps) / STEP_FREEDOM)

    def beside(self, other: _Variance) -> _Variance:
        """What both say together; the other counts for no more than `EARLIER_WEIGHT`."""
        weight = min(other.freedom, EARLIER_WEIGHT)
        freedom = self.freedom + weight
        return _Variance((self.freedom * self.value + weight * other.value) / freedom, freedom) if freedom else self


def difference(before: Sequence[float], during: Sequence[float], confidence: float, floor: float) -> Interval:
    """Interval of mean(during) - mean(before); `before` has its size from the start, `during` grows."""
    _check(confidence, floor)
    estimate = fmean(during) - fmean(before)
    count, more = len(before), len(during)
    if min(count, more) < LEAST:
        return _around(estimate, math.inf)
    freedom = count + more - 2
    spread, spread_during = _variance(before), _variance(during)
    variance = ((count - 1) * spread + (more - 1) * spread_during) / freedom
    effective = count * more / (count + more)
    # The settings, or the load, may change the noise as well, which the pooled deviation does not show while `during`
    # is short. Its own deviation is then known badly: (n-1)/(n-3) is the variance of a t distribution.
    apart = spread / count + spread_during / more * (more - 1) / (more - 3)
    error = math.sqrt(max(variance / effective, floor * floor / effective, apart))
    return _around(estimate, error * inflation(before, during) * radius(effective, freedom, confidence))


def radius(effective: float, freedom: float, confidence: float) -> float:
    """Half the interval's width in standard errors: the t at which B is 1/alpha; infinite where B stays below."""
    shrink = 1.0 / (1.0 + effective * EFFECT_VARIANCE)
    bound = (1.0 / ((1.0 - confidence) * math.sqrt(shrink))) ** (2.0 / (freedom + 1.0))
    if bound * shrink >= 1.0:
        return math.inf
    return math.sqrt(freedom * (bound - 1.0) / (1.0 - bound * shrink))


def inflation(*samples: Sequence[float]) -> float:
    """By what factor correlation of neighbouring windows widens the standard error of their mean.

    Of an autoregressive series of first order: sqrt((1 + r)/(1 - r)), r estimated and drawn to `USUAL_CORRELATION`.
    """
    together = squares = 0.0
    for sample in samples:
        middle = fmean(sample)
        rest = [value - middle for value in sample]
        squares += sum(value * value for value in rest)
        together += sum(value * successor for value, successor in zip(rest, rest[1:]))
    count = sum(len(sample) for sample in samples)
    estimate = together / squares if squares > 0.0 else 0.0
    # a mean that is estimated as well makes r too small, by about 1/n a sample
    weight_sum = CORRELATION_WEIGHT * USUAL_CORRELATION + count * estimate + len(samples)
    correlation = min(max(weight_sum / (CORRELATION_WEIGHT + count), 0.0), CORRELATION_MOST)
    return math.sqrt((1.0 + correlation) / (1.0 - correlation))


def _variance(sample: Sequence[float]) -> float:
    """Unbiased. `statistics.variance` reckons in fractions, which takes a hundred times as long."""
    middle = fmean(sample)
    return sum((value - middle) ** 2 for value in sample) / (len(sample) - 1)


def _around(estimate: float, half: float) -> Interval:
    return Interval(estimate, estimate - half, estimate + half)


def _check(confidence: float, floor: float) -> None:
    if not 0.0 < confidence < 1.0 or not 0.0 < floor < math.inf:
        raise ValueError(f"confidence (={confidence}) must be in 0..1, floor (={floor}) above 0 and finite")
