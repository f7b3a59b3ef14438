"""What settings did to each metric: the groups' log ratio while they were in force, against the ratio before.

Both sides of a pair are seen at the same time, so what hits all OSDs alike (the clients' load, the hour) cancels; what
always differs between the groups (older drives, hotter pools) cancels against the pairs from before. Where old and new
settings take turns on all OSDs, the effect is the mean log ratio of each new turn to the old ones before and after it,
so that a load that rises steadily is none.

A client's write waits for OSDs of the other group too, so that an effect on part of the OSDs shows smaller than on all.

One wild window does not decide: it raises the deviation along with the mean. Were all others equal, the estimate would
be one standard error from zero at most, however wild the window, and the interval reaches further than two. Nor does it
hide an effect for long: a few log ratios far from their median are drawn in (winsorised) first.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot import sequential
from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, UNKNOWN, WORSE, Effect, Pair, Turn

NOISE_FLOOR = 0.03
"""Least deviation of a window's log ratio that is believed: pooled latencies of Ceph's windows repeat to about 3%."""

REACH = 4.0
"""Deviations from the median, by the median absolute deviation, at which a log ratio is cut off."""

FEW = 0.05
"""Share of a sample that is cut off at most; one window always may."""

_NEW_BETWEEN_OLD, _OLD_BETWEEN_NEW = (False, True, False), (True, False, True)
_DEVIATION_OF_SPREAD = 1.4826
"""Of normal values: the deviation over the median absolute deviation."""
_LARGEST_EXPONENT = 700.0


def effects(
    pairs: Sequence[Pair], lower_is_better: Mapping[str, bool], confidence: float, tolerance: float
) -> Dict[str, Effect]:
    """Give the effect on each metric of `lower_is_better`; absent is what was not seen on both sides meanwhile.

    `confidence` holds for each metric by itself, over all looks: whoever acts on any of k metrics gives
    1 - (1 - confidence)/k. Values that are absent, zero or not finite are left out, as they have no logarithm.
    """
    effect_by_metric = {}
    by_time = sorted(pairs, key=lambda pair: pair.at)
    for metric, lower in lower_is_better.items():
        during = _log_ratios(metric, by_time, during=True)
        before = _log_ratios(metric, by_time, during=False)
        standstills = sum(
            pair.during and pair.tried.get(metric) == 0 and _positive(pair.control.get(metric, 0.0)) for pair in by_time
        )
        if before and 3 * standstills > len(during) + standstills:
            # it has no logarithm, and work that stands still beside work that goes on is not "not seen"
            effect_by_metric[metric] = Effect(metric, None, -math.inf, math.inf, standstills, UNKNOWN)
            continue
        if not during:
            continue
        if not before:
            effect_by_metric[metric] = Effect(metric, None, -math.inf, math.inf, len(during), UNKNOWN)
            continue
        earlier, later = drawn_in(before, during)
        interval = sequential.difference(earlier, later, confidence, NOISE_FLOOR)
        effect_by_metric[metric] = _effect(metric, interval, len(during), lower, tolerance)
    return effect_by_metric


def effects_of_turns(
    turns: Sequence[Turn],
    before: Sequence[Mapping[str, float]],
    lower_is_better: Mapping[str, bool],
    confidence: float,
    tolerance: float,
) -> Dict[str, Effect]:
    """Give the same of turns, in the order of time; a turn of the new settings counts between two of the old.

    `before`: what windows showed before the first turn. They tell how much equal settings differ from window to window.
    """
    legs = [turn.tried for turn in turns]
    whose = list(zip(legs, legs[1:], legs[2:]))
    effect_by_metric = {}
    for metric, lower in lower_is_better.items():
        logarithms = [_logarithm(turn.means.get(metric, 0.0)) for turn in turns]
        compared = _present(bend for bend, three in zip(_bends(logarithms), whose) if three == _NEW_BETWEEN_OLD)
        if not compared:
            continue
        earlier = [_logarithm(means.get(metric, 0.0)) for means in before]
        steps = list(zip(_steps(logarithms), whose))
        noise = sequential.TurnNoise(
            old=_settled(step for step, three in steps if three == _NEW_BETWEEN_OLD),
            new=_settled(step for step, three in steps if three == _OLD_BETWEEN_NEW),
            earlier=_settled(_steps(earlier)),
            bends=_settled(_bends(earlier)),
        )
        (differences,) = drawn_in(compared, width=2)
        interval = sequential.alternation(differences, noise, confidence, NOISE_FLOOR)
        effect_by_metric[metric] = _effect(metric, interval, len(compared), lower, tolerance)
    return effect_by_metric


def drawn_in(*samples: Sequence[float], middle: Optional[float] = None, width: int = 1) -> List[List[float]]:
    """Cut off the few values that are far from their sample's median, by the spread of all samples about theirs.

    Where more than a few are far they are left as they are: then it is no accident, but what the settings do.
    `middle` stands in for the medians. `width`: neighbouring values that one wild window reaches.
    """
    middles = [median(sample) if middle is None else middle for sample in samples]
    spread = median(abs(value - middle) for sample, middle in zip(samples, middles) for value in sample)
    reach = REACH * max(_DEVIATION_OF_SPREAD * spread, NOISE_FLOOR)
    drawn = []
    for sample, middle in zip(samples, middles):
        far = _accidents([abs(value - middle) > reach for value in sample], width)
        bound = reach if far <= max(1, int(FEW * len(sample))) else math.inf
        drawn.append([min(max(value, middle - bound), middle + bound) for value in sample])
    return drawn


def verdict_on(low: float, high: float, lower_is_better: bool, tolerance: float) -> str:
    """Judge an interval of shares.

    better: it is on the good side of zero, by however little. worse: it is beyond the tolerance on the bad side, all of
    it. alike: it is within the tolerance on both sides. unknown: anything else, also what is surely worse but perhaps
    within the tolerance.
    """
    least, most = worsening(low, high, lower_is_better)
    if most < 0.0:
        return BETTER
    if least > tolerance:
        return WORSE
    return ALIKE if -tolerance < least and most < tolerance else UNKNOWN


def harm_ruled_out(effect: Effect, lower_is_better: bool, tolerance: float) -> bool:
    """Whether it is surely not worse beyond the tolerance: known sooner than `alike`, which bounds gains too."""
    return worsening(effect.low, effect.high, lower_is_better)[1] < tolerance


def worsening(low: float, high: float, lower_is_better: bool) -> Tuple[float, float]:
    """The interval as shares of being worse, its ends in order."""
    return (low, high) if lower_is_better else (-high, -low)


def _effect(
    metric: str, interval: sequential.Interval, windows: int, lower_is_better: bool, tolerance: float
) -> Effect:
    low, high = _share(interval.low), _share(interval.high)
    verdict = verdict_on(low, high, lower_is_better, tolerance)
    return Effect(metric, _share(interval.estimate), low, high, windows, verdict)


def _bends(series: Sequence[Optional[float]]) -> List[Optional[float]]:
    """Each value less the mean of its neighbours; None where one of the three is."""
    return [
        None if before is None or value is None or after is None else value - (before + after) / 2.0
        for before, value, after in zip(series, series[1:], series[2:])
    ]


def _steps(series: Sequence[Optional[float]]) -> List[Optional[float]]:
    """Each value less the last but one; None where one of both is."""
    return [None if one is None or other is None else other - one for one, other in zip(series, series[2:])]


def _settled(differences: Iterable[Optional[float]]) -> List[float]:
    """Those that there are, wild ones drawn in: their mean is zero but for chance."""
    present = _present(differences)
    return drawn_in(present, middle=0.0, width=2)[0] if present else []


def _present(values: Iterable[Optional[float]]) -> List[float]:
    return [value for value in values if value is not None]


def _accidents(far: Sequence[bool], width: int) -> int:
    """How many wild windows it takes to make these values far."""
    count = place = 0
    while place < len(far):
        count += far[place]
        place += width if far[place] else 1
    return count


def _log_ratios(metric: str, pairs: Sequence[Pair], during: bool) -> List[float]:
    """Tried over control, in the order of time."""
    values = ((pair.tried.get(metric, 0.0), pair.control.get(metric, 0.0)) for pair in pairs if pair.during == during)
    # a difference of logarithms: the ratio itself may be too large or too small for a float
    return [
        math.log(canary) - math.log(control) for canary, control in values if _positive(canary) and _positive(control)
    ]


def _logarithm(value: float) -> Optional[float]:
    return math.log(value) if _positive(value) else None


def _positive(value: float) -> bool:
    return 0.0 < value < math.inf


def _share(log_ratio: float) -> float:
    """Change as a share; unbounded stays unbounded, although no metric loses more than 100%."""
    if log_ratio == -math.inf or log_ratio > _LARGEST_EXPONENT:
        return math.copysign(math.inf, log_ratio)
    return math.expm1(log_ratio)
