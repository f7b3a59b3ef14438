"""Which settings are better: one number for a measurement, and a choice that luck does not decide.

The loss of a measurement is

    sum over objectives of  priority x (weight x log(1 + violation) - 0.1 x headroom / (1 + headroom))

violation and headroom being the margin outside and inside the bound as a share of the bound, weight 10 for hard
objectives and 1 for soft ones. It falls wherever a margin grows: first hard violations go, then soft ones, then
headroom is gathered, each unit of it worth less than the one before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.slo import Slo, Verdict, all_met, evaluate

HARD_WEIGHT, SOFT_WEIGHT, HEADROOM_WEIGHT = 10.0, 1.0, 0.1

UNSEEN_VIOLATION = 1.0
"""An objective whose metric was not seen counts as missed by its whole bound: silence must not win."""

LOSS_CEILING = 1e6

LEAST_GAIN = {True: 0.5, False: 0.02}
"""Fall of the loss that is worth a write, while a hard objective is missed (5% of its bound) and while all are kept.
Windows repeat to about 10% (docs/ceph-behaviour.md), means of two to about 7%."""


def loss(verdicts: Sequence[Verdict]) -> float:
    """Give the loss of a measurement; finite, smaller is better."""
    return min(_weighed(verdicts, HARD_WEIGHT), LOSS_CEILING)


def preference(verdicts: Sequence[Verdict]) -> float:
    """Give the loss without what hard objectives are missed by: what is left to wish for where all of them hold."""
    return min(_weighed(verdicts, 0.0), LOSS_CEILING)


def _weighed(verdicts: Sequence[Verdict], hard_weight: float) -> float:
    total = 0.0
    for verdict in verdicts:
        margin = -UNSEEN_VIOLATION if verdict.margin is None else verdict.margin
        violation, headroom = max(0.0, -margin), max(0.0, margin)
        weight = hard_weight if verdict.objective.hard else SOFT_WEIGHT
        # headroom / (1 + headroom), written so that an infinite headroom gives 1
        gathered = 1.0 - 1.0 / (1.0 + headroom)
        total += verdict.objective.priority * (weight * math.log1p(violation) - HEADROOM_WEIGHT * gathered)
    return total


def rank(verdicts: Sequence[Verdict]) -> Tuple[bool, float]:
    """Order measurements: those that keep every hard objective come first, then the smaller loss."""
    return not all_met(list(verdicts), hard_only=True), loss(verdicts)


@dataclass(frozen=True)
class Candidate:
    """Something that was measured, once or more often: settings under a label, and the mean of each metric."""

    label: str
    means: Mapping[str, float]
    repeats: int

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats (={self.repeats}) must be at least 1")


def candidate(label: str, measured: Sequence[Mapping[str, float]]) -> Candidate:
    """Average repeats, metric by metric; a metric counts only where every repeat saw it."""
    if not measured:
        raise ValueError(f"{label} was not measured")
    names = set(measured[0]).intersection(*(set(values) for values in measured[1:]))
    means = {name: sum(values[name] for values in measured) / len(measured) for name in sorted(names)}
    return Candidate(label, means, len(measured))


@dataclass(frozen=True)
class Choice:
    """The winner among candidates, and whether it is worth writing."""

    winner: Candidate
    verdicts: Tuple[Verdict, ...]
    in_force: Candidate
    better: bool
    reason: str

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "winner": self.winner.label,
            "better": self.better,
            "reason": self.reason,
            "repeats": self.winner.repeats,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
        }


def choose(
    slo: Slo,
    baseline: Mapping[str, float],
    in_force: Candidate,
    candidates: Sequence[Candidate],
) -> Choice:
    """Choose by the mean over repeats, never the luckiest window.

    Candidates with the most repeats are considered before all others: a single good window does not beat a
    candidate that was measured again. What is in force stays unless a hard objective more is kept, or the loss falls
    by more than noise makes it.
    """
    everyone = [in_force, *candidates]
    most = max(entry.repeats for entry in everyone)
    finalists = [entry for entry in everyone if entry.repeats == most]
    order = sorted(finalists, key=lambda entry: (rank(evaluate(slo, entry.means, baseline)), entry.label))
    winner = order[0]
    verdicts = evaluate(slo, winner.means, baseline)
    now = evaluate(slo, in_force.means, baseline)
    (missed, best), (missed_now, best_now) = rank(verdicts), rank(now)
    if winner is in_force or winner.label == in_force.label:
        return Choice(in_force, tuple(now), in_force, False, "nothing measured better than the settings in force")
    better = missed < missed_now or (missed == missed_now and best + LEAST_GAIN[missed] < best_now)
    reason = _reason(verdicts, now) if better else "no better than the settings in force by more than the noise"
    return Choice(winner, tuple(verdicts), in_force, better, reason)


def finalists(slo: Slo, baseline: Mapping[str, float], candidates: Sequence[Candidate], count: int) -> List[Candidate]:
    """Give the best candidates by their means so far: those worth measuring again."""
    return sorted(candidates, key=lambda entry: (rank(evaluate(slo, entry.means, baseline)), entry.label))[:count]


def best_of(slo: Slo, baseline: Mapping[str, float], candidates: Sequence[Candidate]) -> Optional[Candidate]:
    """Give the best candidate, or None where there is none."""
    found = finalists(slo, baseline, candidates, 1)
    return found[0] if found else None


def _reason(verdicts: Sequence[Verdict], before: Sequence[Verdict]) -> str:
    gained = [v.objective.metric for v, b in zip(verdicts, before) if v.met and not b.met]
    still = [v.objective.metric for v in verdicts if not v.met]
    if gained and not still:
        return f"meets {' and '.join(gained)}, which the settings in force miss"
    if gained:
        return f"meets {' and '.join(gained)}; still misses {' and '.join(still)}"
    if still:
        return f"closer to the bounds, but still misses {' and '.join(still)}"
    return "keeps every objective with more headroom"
