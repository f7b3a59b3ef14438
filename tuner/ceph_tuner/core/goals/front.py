"""The front: settings that keep every hard objective, and that nothing tried beats in two metrics at once.

One metric is the goal, or the first that an objective is about. The other is the first of other work than that, in the
operator's order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Generic, List, Mapping, Optional, Protocol, Sequence, Tuple, TypeVar

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.measure.metrics import METRICS, work_of

GAP = 2.0
"""Factor between neighbours from which on what lies between them is not known."""


class Tried(Protocol):
    """Settings that were simulated or measured."""

    @property
    def label(self) -> str:
        """Their name."""

    @property
    def means(self) -> Mapping[str, float]:
        """Mean of each metric."""


SomeTried = TypeVar("SomeTried", bound=Tried)


@dataclass(frozen=True)
class Front(Generic[SomeTried]):
    """Settings in the order of the first metric, the best in it first."""

    one: str
    other: str
    entries: Tuple[SomeTried, ...]

    @property
    def gaps(self) -> List[Tuple[SomeTried, SomeTried]]:
        """Neighbours that differ by `GAP` or more, the widest first."""
        pairs = [(self._factor(*pair), pair) for pair in zip(self.entries, self.entries[1:])]
        wide = [entry for entry in pairs if entry[0] >= GAP]
        return [pair for _, pair in sorted(wide, key=lambda entry: -entry[0])]

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        metrics = [self.one, self.other]
        entries = [
            {"label": entry.label, "means": {metric: entry.means[metric] for metric in metrics}}
            for entry in self.entries
        ]
        return {"metrics": metrics, "entries": entries}

    def _factor(self, first: SomeTried, second: SomeTried) -> float:
        means = first.means, second.means
        return max(_factor(means[0][metric], means[1][metric]) for metric in (self.one, self.other))


def front_of(judge: Judge, entries: Sequence[SomeTried]) -> Optional[Front[SomeTried]]:
    """Give the front of what was tried; None where fewer than two metrics are wanted, or one is best in both."""
    slo = judge.slo
    if slo is None or len(slo.metrics) < 2:
        return None
    one = slo.goal.metric if slo.goal is not None else slo.metrics[0]
    others = [metric for metric in slo.metrics if metric != one]
    other = next((metric for metric in others if work_of(metric) != work_of(one)), others[0])
    candidates = [entry for entry in entries if judge.keeps_hard(entry.means)]
    entries = _pareto_front(candidates, one, other)
    return Front(one, other, entries) if len(entries) > 1 else None


def _pareto_front(entries: Sequence[SomeTried], one: str, other: str) -> Tuple[SomeTried, ...]:
    """Those that no other is as good as in both metrics and better than in one; of equals the first."""
    complete = [entry for entry in entries if one in entry.means and other in entry.means]
    front: List[SomeTried] = []
    for entry in sorted(complete, key=lambda each: (_badness(each, one), _badness(each, other))):
        if not front or _badness(entry, other) < _badness(front[-1], other):
            front.append(entry)
    return tuple(front)


def _badness(entry: Tried, metric: str) -> float:
    value = entry.means[metric]
    return value if METRICS[metric].lower_is_better else -value


def _factor(first: float, second: float) -> float:
    low, high = sorted((first, second))
    return 1.0 if high <= 0 else math.inf if low <= 0 else high / low
