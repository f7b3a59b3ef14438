"""One judge of what was measured: each objective's verdict, what must hold, and one number for all of them.

The loss of a measurement is

    sum over objectives of  priority x (weight x log(1 + violation) - 0.1 x headroom / (1 + headroom))

violation and headroom being the margin outside and inside the bound as a share of the bound, weight 10 for hard
objectives and 1 for soft ones. It falls wherever a margin grows: first hard violations go, then soft ones, then
headroom is gathered, each unit of it worth less than the one before.

Where the SLO names a goal, headroom beyond `MARGIN` counts for little (`REST_WEIGHT`), and the loss falls with the
goal's metric: `GOAL_WEIGHT` times the logarithm of how it compares with what is in force.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.goals.goal import MINIMISE
from ceph_tuner.core.goals.slo import Objective, Slo
from ceph_tuner.core.measure.sample import at_work, clients_wait

HARD_WEIGHT, SOFT_WEIGHT, HEADROOM_WEIGHT = 10.0, 1.0, 0.1

MARGIN = 0.1
"""Headroom, as a share of the bound, that objectives are to have beside a goal: as far as windows repeat."""

REST_WEIGHT = 0.2
"""What headroom beyond `MARGIN` counts for beside a goal: what costs the goal nothing is to harm nothing else."""

GOAL_WEIGHT = 0.2
"""A tenth of the goal's metric is then just worth a write (`ranking.LEAST_GAIN`); soft objectives weigh five-fold."""

UNSEEN_GOAL = math.log(100.0)
"""A goal that was not seen counts as a hundred times worse than it is in force."""

LEAST_GOAL = 1e-3
"""A goal that is to be small counts as this where it is smaller, in its unit."""

UNSEEN_VIOLATION = 1.0
"""An objective whose metric was not seen counts as missed by its whole bound: silence must not win."""

LOSS_CEILING = 1e6

TOLERANCE = 0.05
"""Share by which a hard objective that the settings in force miss may get worse in a trial."""


@dataclass(frozen=True)
class Verdict:
    """One objective held against a measurement; `met` is None where metric or baseline was not seen."""

    objective: Objective
    seen: Optional[float]
    bound: Optional[float]
    margin: Optional[float]
    idle: bool = False
    """Whether it is about the rate of work that is not there now: neither met nor missed."""

    @property
    def met(self) -> Optional[bool]:
        """Whether the bound holds."""
        return None if self.margin is None else self.margin >= 0

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "objective": self.objective.text,
            "hard": self.objective.hard,
            "priority": self.objective.priority,
            "seen": self.seen,
            "bound": self.bound,
            "margin": self.margin,
            "met": self.met,
        }


@dataclass(frozen=True)
class Judge:
    """Holds measurements, as metric -> mean in the metric's unit, against an SLO; without one there are no verdicts."""

    slo: Optional[Slo]
    reference: Mapping[str, float] = field(default_factory=dict)
    """What relative bounds refer to: metric -> value in the metric's unit."""

    @property
    def objectives(self) -> Tuple[Objective, ...]:
        """Those of the SLO, in its order."""
        return self.slo.objectives if self.slo is not None else ()

    def bound(self, objective: Objective) -> Optional[float]:
        """An objective's bound in the metric's unit; None where it is relative and the reference does not show it."""
        return objective.bound.resolve(_finite(self.reference.get(objective.metric)))

    def verdicts(self, means: Mapping[str, float]) -> List[Verdict]:
        """One of each objective, in their order."""
        return [self._verdict(objective, means) for objective in self.objectives]

    def verdicts_at_work(self, means: Mapping[str, float]) -> List[Verdict]:
        """As `verdicts`, of a cluster that is looked at as it is: nothing to recover is no missed recovery rate."""
        work_means = at_work(means)
        return [
            self._verdict(objective, work_means, objective.metric in means and objective.metric not in work_means)
            for objective in self.objectives
        ]

    def keeps_hard(self, means: Mapping[str, float]) -> bool:
        """Whether every hard objective is seen and holds."""
        return all_met(self.verdicts(means), hard_only=True)

    def missed_hard(self, means: Mapping[str, float]) -> List[Objective]:
        """Hard objectives that are missed or not seen."""
        return [each.objective for each in self.verdicts(means) if each.objective.hard and not each.met]

    def loss(self, means: Mapping[str, float], most_headroom: float = math.inf) -> float:
        """Give the loss; finite, smaller is better. Headroom beyond `most_headroom`, of the bound, counts as that."""
        return self._loss(means, HARD_WEIGHT, most_headroom)

    def preference(self, means: Mapping[str, float]) -> float:
        """Give the loss without what hard objectives are missed by: what is left to wish for where all of them hold."""
        return self._loss(means, 0.0)

    def counted(self, margin: Any, smaller: Callable[[Any, Any], Any] = min) -> Any:
        """Give what counts of a margin: beside a goal `MARGIN` and a little of the rest. For arrays: `np.minimum`."""
        if self.slo is None or self.slo.goal is None:
            return margin
        inside = smaller(margin, MARGIN)
        return inside + REST_WEIGHT * (margin - inside)

    def goal_part(self, value: Any, log: Callable[[Any], Any] = math.log) -> Any:
        """Give the goal's part of the loss by its metric's value, above 0. With numpy's `log` it may be an array."""
        goal = self.slo.goal if self.slo is not None else None
        if goal is None:
            return 0.0
        reference = _finite(self.reference.get(goal.metric)) or 1.0
        return GOAL_WEIGHT * goal.sign * log(value / reference)

    def rank(self, means: Mapping[str, float]) -> Tuple[bool, float]:
        """Order measurements: those that keep every hard objective come first, then the smaller loss."""
        return not self.keeps_hard(means), self.loss(means)

    def must_hold(self, tolerance: float = TOLERANCE) -> Dict[Objective, float]:
        """Hard objective -> the bound that no trial may be beyond. The reference is what the settings in force give.

        It is the objective's own where the settings in force keep it; where they miss it, what they give is, with the
        tolerance.
        """
        bounds: Dict[Objective, float] = {}
        for verdict in self.verdicts(self.reference):
            if verdict.objective.hard and verdict.bound is not None and verdict.seen is not None:
                worse = 1 + tolerance if verdict.objective.comparison == "<=" else 1 - tolerance
                bounds[verdict.objective] = verdict.bound if verdict.met else verdict.seen * worse
        return bounds

    def broken(self, means: Mapping[str, float]) -> List[Objective]:
        """Give the hard objectives that a window broke although it had to hold them."""
        return beyond(self.must_hold(), means, clients_wait(means, self.reference))

    def _loss(self, means: Mapping[str, float], hard_weight: float, most_headroom: float = math.inf) -> float:
        verdicts = [
            each if each.margin is None else replace(each, margin=self.counted(min(each.margin, most_headroom)))
            for each in self.verdicts(means)
        ]
        total = loss(verdicts, hard_weight)
        if self.slo is None or self.slo.goal is None:
            return total
        goal, value = self.slo.goal, _finite(means.get(self.slo.goal.metric))
        if value is not None and goal.verb == MINIMISE:
            # 0 is as good as it gets, and has no logarithm
            value = max(value, LEAST_GOAL)
        part = GOAL_WEIGHT * UNSEEN_GOAL if value is None or value <= 0 else self.goal_part(value)
        return float(min(total + part, LOSS_CEILING))

    def _verdict(self, objective: Objective, means: Mapping[str, float], idle: bool = False) -> Verdict:
        value, bound = _finite(means.get(objective.metric)), self.bound(objective)
        margin = None if value is None or bound is None else objective.margin(value, bound)
        return Verdict(objective, value, bound, margin, idle)


def all_met(verdicts: Sequence[Verdict], hard_only: bool = False) -> bool:
    """Whether every (hard) objective is seen and holds."""
    return all(verdict.met is True for verdict in verdicts if verdict.objective.hard or not hard_only)


def loss(verdicts: Sequence[Verdict], hard_weight: float = HARD_WEIGHT, most_headroom: float = math.inf) -> float:
    """Give the loss of a measurement by its verdicts, as `Judge.loss`; `hard_weight`: of violated hard objectives."""
    margins = [-UNSEEN_VIOLATION if each.margin is None else min(each.margin, most_headroom) for each in verdicts]
    parts = (weighed(verdict.objective, margin, hard_weight) for verdict, margin in zip(verdicts, margins))
    return float(min(sum(parts), LOSS_CEILING))


def weighed(
    objective: Objective,
    margin: Any,
    hard_weight: float,
    log1p: Callable[[Any], Any] = math.log1p,
    larger: Callable[[Any, Any], Any] = max,
) -> Any:
    """Give one objective's part of the loss. With numpy's `log1p` and `maximum` the margin may be an array."""
    violation, headroom = larger(0.0, -margin), larger(0.0, margin)
    weight = hard_weight if objective.hard else SOFT_WEIGHT
    # headroom / (1 + headroom), written so that an infinite headroom gives 1
    saturation = 1.0 - 1.0 / (1.0 + headroom)
    return objective.priority * (weight * log1p(violation) - HEADROOM_WEIGHT * saturation)


def beyond(bounds: Mapping[Objective, float], means: Mapping[str, float], waiting: bool = False) -> List[Objective]:
    """Give the objectives whose bound (`Judge.must_hold`) a window is beyond.

    What the window did not see is not known to be, unless the clients wait (`clients_wait`): a latency that no
    operation ends to show is beyond every bound.
    """

    def is_beyond(objective: Objective, bound: float) -> bool:
        if objective.metric not in means:
            return waiting and objective.metric.startswith("client.")
        return objective.margin(means[objective.metric], bound) < 0

    return [objective for objective, bound in bounds.items() if is_beyond(objective, bound)]


def _finite(value: Optional[float]) -> Optional[float]:
    return None if value is None or not math.isfinite(value) else float(value)
