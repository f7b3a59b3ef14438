"""Whether a stage of a trial has passed: what its effects say about harm and gain."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from ceph_tuner.core.autopilot.contract import BETTER, WORSE, Effect
from ceph_tuner.core.autopilot.effect import harm_ruled_out, verdict_on
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.measure.metrics import METRICS, parted

GO_ON, PASSED, HARMFUL, INCONCLUSIVE = "go on", "passed", "harmful", "inconclusive"

STAND_INS = {
    "recovery.finish_s": "recovery.objects_s",
    "recovery.copies_s": "recovery.objects_s",
    "backfill.finish_s": "recovery.objects_s",
    "backfill.objects_s": "recovery.objects_s",
    "scrub.interval_s": "scrub.bytes_s",
    "scrub.pgs_late": "scrub.bytes_s",
}
"""What shows on part of the OSDs what these metrics show of the whole cluster only.

Of scrub it is what was read there, of chunks that writes preempt as well.
"""


def stand_in(metric: str) -> Optional[str]:
    """What shows on part of the OSDs what this metric shows of all only; None where it shows there itself.

    Of a pool it is what the OSDs do for all pools.
    """
    plain, scope = parted(metric)
    return STAND_INS.get(plain, None if scope is None else plain)


ENOUGH = 4
"""Pairs of windows, or turns, that bound an interval at the usual confidence, whatever is known from before."""


class Judgement(NamedTuple):
    """One of the four verdicts, and its reason for people."""

    verdict: str
    words: str
    gain: bool = False
    """Whether a metric of an objective that was missed became better."""


def judge(
    effects: Mapping[str, Effect],
    tolerances: Mapping[str, float],
    aims: Sequence[str],
    windows: int,
    policy: Policy,
    unseen: Sequence[str] = (),
) -> Judgement:
    """Judge a stage by what it did to the metrics of hard objectives, and to those that were missed (`aims`).

    `tolerances` has the former, as far as they were seen before, and the share by which each may be worse
    (`allowances`).
    What is surely worse than allowed ends it at once, and it passes when that is ruled out for each. A gain on part of
    the OSDs is noted and not asked for: a write waits for replicas elsewhere, so that it shows diluted there. Whether
    there is one is asked once the settings are everywhere.

    `unseen`: metrics of clients that no window shows now. Nobody was seen not to be harmed then, also where they were
    not seen before. A stage that shows the clients so rarely that its last window would not tell either ends early.
    """
    doubts = [f"harm not ruled out yet: {metric} is not seen" for metric in unseen if metric not in tolerances]
    comparable: List[Effect] = []
    window_counts: Dict[str, int] = {}
    for metric, share in tolerances.items():
        effect = shown(effects, metric)
        if effect is None:
            # client latency that is no longer seen, and work that stands still on one side, are no proof of being well
            doubtful = metric.startswith("client.") or any(name in effects for name in (metric, stand_in(metric)))
            doubts += [f"harm not ruled out yet: {metric} is not seen on both sides"] * doubtful
            window_counts[metric] = 0
            continue
        window_counts[metric] = effect.windows
        comparable.append(effect)
        lower_is_better = METRICS[effect.metric].lower_is_better
        bearable = share if METRICS[metric].lower_is_better == lower_is_better else _of_stand_in(share)
        if verdict_on(effect.low, effect.high, lower_is_better, bearable) == WORSE:
            return Judgement(HARMFUL, f"{in_words(effect)}, where {bearable:.0%} worse is borne")
        if not harm_ruled_out(effect, lower_is_better, bearable):
            doubts.append(f"harm not ruled out yet: {in_words(effect)}, where {bearable:.0%} worse is borne")
    if windows < policy.least_windows:
        return Judgement(GO_ON, f"{windows} of at least {policy.least_windows} windows")
    gains = gained(effects, aims)
    if not doubts:
        words = "; ".join(map(in_words, gains or comparable)) or "nothing that can be compared was harmed"
        return Judgement(PASSED, words, bool(gains))
    few = _too_few(window_counts, windows, policy)
    if few:
        return Judgement(INCONCLUSIVE, few)
    verdict = INCONCLUSIVE if windows >= policy.most_windows else GO_ON
    return Judgement(verdict, f"{windows} windows; " + "; ".join(doubts))


def _too_few(window_counts: Mapping[str, int], windows: int, policy: Policy) -> str:
    """Say which metric of the clients would be seen too rarely up to the last window; empty where none would."""
    if windows < min(2 * policy.least_windows, policy.most_windows):
        return ""
    enough = min(ENOUGH, policy.most_windows)
    words = (
        f"{metric} was seen on both sides in {count} of {windows} windows only"
        for metric, count in window_counts.items()
        if metric.startswith("client.") and count * policy.most_windows < windows * enough
    )
    return next(words, "")


def gained(effects: Mapping[str, Effect], aims: Sequence[str]) -> List[Effect]:
    """Give the effects that made a missed objective's metric surely better."""
    candidates = (shown(effects, metric) for metric in aims)
    return [effect for effect in candidates if effect is not None and effect.verdict == BETTER]


def allowances(slo: Slo, baseline: Mapping[str, float], tolerance: float) -> Dict[str, float]:
    """Give the share by which each hard objective's metric may be worse than before: up to its bound.

    Where it is missed already, or only just met, it is the tolerance: no trial could rule out less than noise.
    """
    shares = {}
    for objective, bound in Judge(slo, baseline).must_hold(tolerance).items():
        before = baseline[objective.metric]
        if before > 0:
            slack = bound / before - 1.0 if objective.comparison == "<=" else 1.0 - bound / before
            shares[objective.metric] = max(slack, tolerance)
    return shares


def _of_stand_in(share: float) -> float:
    """A time that may be longer by `share` lets the rate that stands in for it be lower by this much."""
    return share / (1.0 + share)


def shown(effects: Mapping[str, Effect], metric: str) -> Optional[Effect]:
    """Give the effect on a metric, or on what stands in for it; None where neither was seen."""
    candidates = (effects.get(name) for name in (metric, stand_in(metric) or ""))
    return next((effect for effect in candidates if effect is not None and effect.change is not None), None)


def in_words(effect: Effect) -> str:
    """`client.p95_ms 31% lower (18% to 42% lower)`."""
    if effect.change is None:
        return f"{effect.metric} not seen"
    low, high = effect.low, effect.high
    if low == -float("inf") and high == float("inf"):
        return f"{effect.metric} {_share(effect.change)} (in {effect.windows} windows, too few to say how sure that is)"
    ends = f"{_share(low)} to {_share(high)}"
    if low * high > 0 and abs(low + high) < float("inf"):
        # both ends on one side: the nearer first
        near, far = sorted((low, high), key=abs)
        ends = f"{abs(near):.0%} to {_share(far)}"
    return f"{effect.metric} {_share(effect.change)} ({ends})"


def _share(change: float) -> str:
    if abs(change) == float("inf"):
        return "unbounded"
    return f"{abs(change):.0%} {'lower' if change < 0 else 'higher'}"
