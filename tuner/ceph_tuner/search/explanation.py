"""What a search has learnt, in its SLO's words: which knobs matter for what, which objectives are in the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from ceph_tuner.core.goals.slo import Bound, Objective, Slo
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.search.knob_search import KnobSearch

if TYPE_CHECKING:
    from ceph_tuner.optimise.explanation import Explanation
    from ceph_tuner.optimise.feasibility import Relaxed
    from ceph_tuner.optimise.posterior_summary import Dependence, Importance, Influence, TrialProgress

LEAST_TRIALS = 4
"""With fewer nothing was learnt that would be worth a word."""

NOTABLE = 0.05
"""Share of a metric's variation from which a knob is worth a curve."""

SURE = 0.9
"""Probability with which the nearest bounds that are named can be kept."""


@dataclass(frozen=True)
class KeepableBound:
    """A hard objective, and the bound that could be kept beside the others."""

    objective: Objective
    bound: float
    """In the metric's unit; that of the objective where it need not give way."""
    share: float
    """How far it gives way, as a share of the bound."""

    @property
    def text(self) -> str:
        """The objective with this bound."""
        if not self.share:
            return self.objective.text
        plain = Objective(self.objective.metric, self.objective.comparison, Bound(float(f"{self.bound:.3g}")))
        return plain.text


@dataclass(frozen=True)
class InTheWay:
    """Why not all hard objectives are kept, as far as the models know."""

    together: float
    """Largest probability, of any settings, of keeping all."""
    conflicts: Tuple[Tuple[Objective, ...], ...]
    """Smallest sets that probably cannot be kept together; each part of one can."""
    without: Tuple[Tuple[Objective, float], ...]
    """Largest probability of keeping all the others, where leaving it out helps most first."""
    nearest: Tuple[KeepableBound, ...]
    """The set of bounds nearest to those asked for that some settings keep with SURE."""
    settings: Settings
    """These settings."""
    probability: float


@dataclass(frozen=True)
class Explained:
    """What a search has learnt of the knobs: what matters, what is in the way, how it went, curves."""

    around: Optional[Settings]
    """The knobs' importance is that around these settings; None: everywhere."""
    matters: Tuple[Importance, ...]
    """One for each metric of the objectives, in their order."""
    in_the_way: Optional[InTheWay]
    progress: Tuple[TrialProgress, ...]
    """Of the preference (`Judge.preference`): the smaller the better."""
    curves: Tuple[Dependence, ...] = ()

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "around": self.around,
            "importance": {entry.metric: _plain_importance(entry) for entry in self.matters},
            "in_the_way": None if self.in_the_way is None else _plain_in_the_way(self.in_the_way),
            "convergence": [asdict(entry) for entry in self.progress],
            "partial_dependence": [asdict(entry) for entry in self.curves],
        }

    def brief(self, most: int = 3) -> Dict[str, Any]:
        """Give what fits beside a proposal."""
        return {
            "importance": {
                entry.metric: [{"knob": one.name, "share": round(one.total, 2)} for one in notable(entry)[:most]]
                for entry in self.matters
            },
            "in_the_way": None if self.in_the_way is None else _plain_in_the_way(self.in_the_way),
        }


def explained(
    search: KnobSearch, slo: Slo, missed: bool, around: Optional[Settings] = None, curves: bool = False
) -> Optional[Explained]:
    """Ask a search what it has learnt: some seconds, with `curves` some more. None where it was told too little.

    `missed`: whether a hard objective still is, so that it is worth saying why.
    """
    if search.told < LEAST_TRIALS:
        return None
    explanation, metrics = search.safe_optimiser.explain(), list(slo.metrics)
    importance = explanation.importance(list(search.knobs), around)
    matters = tuple(importance[name] for name in dict.fromkeys(metrics) if name in importance)
    in_the_way = _in_the_way(explanation, slo) if missed and explanation.constraints else None
    dependence_curves = [
        explanation.partial_dependence(entry.metric, influence.name)
        for entry in (matters if curves else ())
        for influence in notable(entry)
    ]
    return Explained(around, matters, in_the_way, tuple(explanation.convergence()), tuple(dependence_curves))


def notable(importance: Importance) -> List[Influence]:
    """The knobs that a metric depends on, the first one most of all."""
    return [influence for influence in importance.influences if influence.total >= NOTABLE]


def _in_the_way(explanation: Explanation, slo: Slo) -> InTheWay:
    hard = {objective.metric: objective for objective in slo.objectives if objective.hard}
    limits, nearest = explanation.limiting(), explanation.nearest_feasible(SURE)
    without = sorted(limits.without.items(), key=lambda entry: -entry[1])
    return InTheWay(
        limits.together,
        tuple(_in_order([hard[one.name] for one in conflict], slo) for conflict in limits.conflicts),
        tuple((hard[constraint.name], probability) for constraint, probability in without),
        tuple(KeepableBound(hard[one.constraint.name], one.bound, _gives_way(one)) for one in nearest.relaxed),
        nearest.settings,
        nearest.probability,
    )


def _gives_way(relaxed: Relaxed) -> float:
    """How far the bound gives way as a share of itself; the model's own share may be that of a logarithm."""
    asked = relaxed.constraint.bound
    return abs(relaxed.bound - asked) / abs(asked) if relaxed.share and asked else relaxed.share


def _in_order(objectives: Sequence[Objective], slo: Slo) -> Tuple[Objective, ...]:
    return tuple(objective for objective in slo.objectives if objective in objectives)


def _plain_importance(entry: Importance) -> Dict[str, Any]:
    return {"deviation": entry.deviation, "knobs": [asdict(influence) for influence in entry.influences]}


def _plain_in_the_way(entry: InTheWay) -> Dict[str, Any]:
    return {
        "together": entry.together,
        "conflicts": [[objective.text for objective in conflict] for conflict in entry.conflicts],
        "without": {objective.text: probability for objective, probability in entry.without},
        "nearest": [
            {"objective": bound.objective.text, "instead": bound.text, "bound": bound.bound, "share": bound.share}
            for bound in entry.nearest
        ],
        "settings": dict(entry.settings),
        "probability": entry.probability,
    }
