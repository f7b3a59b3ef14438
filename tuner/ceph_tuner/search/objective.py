"""What the surrogate learns: one finite number per trial, whatever the trial gave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence

from ceph_tuner.search.optimiser import Failed, Result
from ceph_tuner.slo import Slo, evaluate
from ceph_tuner.winner import loss

FAILURE_STEP = 2.0
"""How much worse than the worst measured trial a stopped one counts: worse than any, and near enough to learn from."""


@dataclass(frozen=True)
class Score:
    """The loss of results under an SLO; relative bounds are held against the baseline's means."""

    slo: Slo
    baseline: Optional[Mapping[str, float]] = None

    def measured(self, values: Mapping[str, float]) -> float:
        """Loss of the means of a window."""
        return loss(evaluate(self.slo, values, self.baseline))

    def all(self, results: Sequence[Result]) -> Sequence[float]:
        """Losses of results in their order; what failed counts worse than everything that was measured."""
        measured = [None if isinstance(result, Failed) else self.measured(means(result)) for result in results]
        worst = max([value for value in measured if value is not None], default=0.0)
        return [worst + FAILURE_STEP if value is None else value for value in measured]


def means(result: Result) -> Mapping[str, float]:
    """Give the finite means of a result."""
    if isinstance(result, Failed):
        return {name: value for name, value in result.seen.items() if math.isfinite(value)}
    return {name: measure.mean for name, measure in result.items() if math.isfinite(measure.mean)}
