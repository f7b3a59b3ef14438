"""Whether a stage of a trial has passed: what its effects say about harm and gain."""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional, Sequence

from ceph_tuner.autopilot.contract import ALIKE, BETTER, WORSE, Effect
from ceph_tuner.autopilot.policy import Policy
from ceph_tuner.metrics import METRICS

GO_ON, PASSED, HARMFUL, INCONCLUSIVE = "go on", "passed", "harmful", "inconclusive"

STAND_INS = {
    "recovery.finish_s": "recovery.objects_s",
    "backfill.finish_s": "recovery.objects_s",
    "backfill.objects_s": "recovery.objects_s",
    "scrub.interval_s": "scrub.bytes_s",
    "scrub.pgs_late": "scrub.bytes_s",
}
"""What shows on part of the OSDs what these metrics show of the whole cluster only."""


class Judgement(NamedTuple):
    """One of the four verdicts, and its reason for people."""

    verdict: str
    words: str
    gain: bool = False
    """Whether a metric of an objective that was missed became better."""


def judge(
    effects: Mapping[str, Effect],
    hard: Sequence[str],
    aims: Sequence[str],
    windows: int,
    policy: Policy,
    first: bool,
) -> Judgement:
    """Judge a stage: `hard` are metrics of hard objectives, seen before, `aims` those of objectives that were missed.

    Harm to any hard metric ends it at once. It passes when no harm beyond the tolerance is left possible and, on the
    canary (`first`), a missed objective's metric became better. Aims that part of the OSDs cannot show do not hold it
    up: they are judged once the settings are everywhere.
    """
    watched = [effect for effect in (shown(effects, metric) for metric in hard) if effect is not None]
    worse = [effect for effect in watched if effect.verdict == WORSE]
    if worse:
        return Judgement(HARMFUL, "; ".join(map(in_words, worse)))
    if windows < policy.least_windows:
        return Judgement(GO_ON, f"{windows} of at least {policy.least_windows} windows")
    open_ = [effect for effect in watched if effect.verdict not in (ALIKE, BETTER)]
    aimed = [effect for effect in (shown(effects, metric) for metric in aims) if effect is not None]
    gains = [effect for effect in aimed if effect.verdict == BETTER]
    doubts: List[str] = [f"harm not ruled out yet: {in_words(effect)}" for effect in open_]
    # client latency that is no longer seen is no proof that it is well
    unseen = [metric for metric in hard if metric.startswith("client.") and shown(effects, metric) is None]
    doubts += [f"harm not ruled out yet: {metric} is not seen on both sides" for metric in unseen]
    if first and aimed and not gains:
        doubts += [f"no gain seen yet: {in_words(effect)}" for effect in aimed]
    if not doubts:
        found = gains or watched
        words = "; ".join(map(in_words, found)) or "nothing that can be compared was harmed"
        return Judgement(PASSED, words, bool(gains))
    verdict = INCONCLUSIVE if windows >= policy.most_windows else GO_ON
    return Judgement(verdict, f"{windows} windows; " + "; ".join(doubts))


def shown(effects: Mapping[str, Effect], metric: str) -> Optional[Effect]:
    """Give the effect on a metric, or on what stands in for it; None where neither was seen."""
    for name in (metric, STAND_INS.get(metric, "")):
        if name in effects and effects[name].change is not None:
            return effects[name]
    return None


def in_words(effect: Effect) -> str:
    """`client.p95_ms 31% lower (18% to 42% lower)`."""
    if effect.change is None:
        return f"{effect.metric} not seen"
    low, high = effect.low, effect.high
    ends = f"{_share(low)} to {_share(high)}"
    if low * high > 0 and abs(low + high) < float("inf"):
        # both ends on one side: the nearer first
        near, far = sorted((low, high), key=abs)
        ends = f"{abs(near):.0%} to {_share(far)}"
    return f"{effect.metric} {_share(effect.change)} ({ends})"


def improved(metric: str, before: float, after: float, share: float) -> bool:
    """Whether a metric became better by more than that share."""
    better = before - after if METRICS[metric].lower_is_better else after - before
    return better > share * abs(before)


def _share(change: float) -> str:
    if abs(change) == float("inf"):
        return "unbounded"
    return f"{abs(change):.0%} {'lower' if change < 0 else 'higher'}"
