"""The search over knobs for an SLO: hard objectives are constraints, the rest is what to better.

The optimiser itself knows nothing of Ceph (`ceph_tuner.optimise`). Here its metrics get their meaning: each hard
objective's metric has a surrogate of its own, and one more is the preference (`Judge.preference`) among settings that
keep all of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner import optimise
from ceph_tuner.core.goals.judge import Judge, weighed
from ceph_tuner.core.goals.ranking import LEAST_GAIN
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.optimise import Constraint, Measured, Options, Prior, Proposal, SearchVerdict
from ceph_tuner.optimise.contract import Array, Expected
from ceph_tuner.search.optimiser import Failed, Result, SettingsProposal
from ceph_tuner.search.simpler import left_out, simpler_variants
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.search.transfer import Elsewhere, corrected, proposals

if TYPE_CHECKING:
    from ceph_tuner.optimise import SafeOptimiser

PREFERENCE = "preference"

_LEAST = 1e-3
"""Share of its bound that a rate of 0 counts as: the logarithm of a standstill."""


class KnobSearch:
    """An `Optimiser`. What was in force is told first: it is the start, and relative bounds refer to it."""

    def __init__(
        self,
        space: KnobSpace,
        slo: Slo,
        in_force: Settings,
        seed: int,
        options: Optional[Options] = None,
        priors: Sequence[Prior] = (),
        suggestions: Sequence[SettingsProposal] = (),
        opening: Sequence[SettingsProposal] = (),
        elsewhere: Optional[Elsewhere] = None,
    ) -> None:
        """Nothing is measured yet.

        `suggestions` are tried where they are safe and promising. An `opening` is tried in any case, before the models
        are asked: for searches that risk nothing. What served `elsewhere`, on clusters like this one, is suggested as
        well; where there is an opening, in place of its last ones.
        """
        self._space, self._slo, self._in_force, self._seed = space, slo, dict(in_force), seed
        self._options, self._priors = options or Options(), priors
        self._opening, self._elsewhere = list(opening), elsewhere
        self._suggestions = {proposal.why: proposal.settings for proposal in suggestions}
        self._search: Optional[SafeOptimiser] = None
        self._constraints: List[Constraint] = []
        self._judge = Judge(slo)

    def ask(self) -> Optional[SettingsProposal]:
        """Give settings to try next; None where no more are safe (`verdict` says why). Nothing is proposed twice."""
        return next(iter(self.ask_many(1)), None)

    def ask_many(self, count: int) -> List[SettingsProposal]:
        """Give settings to try side by side: `count`, or fewer where no more are safe."""
        if self._search is None:
            return [SettingsProposal(dict(self._in_force), "what is in force")][:count]
        if self._opening:
            proposals, self._opening = self._opening[:count], self._opening[count:]
            return proposals
        return [_of_metrics(proposal) for proposal in self._search.ask(count)]

    def simpler(self, settings: Settings, built_in: bool) -> Optional[Tuple[SettingsProposal, List[str]]]:
        """Give the fewest of these changes that are thought safe and worse by no more than is worth a write.

        With the knobs that are left as they were in force; None where it takes all changes. `built_in`: a built-in
        profile was in force.
        """
        whole = self._space.standing_for(settings)
        if whole is None:
            return None
        variants = simpler_variants(self._space, whole, self._in_force, built_in)
        proposal = self.safe_optimiser.first_as_good(whole, variants, LEAST_GAIN[False])
        return None if proposal is None else (_of_metrics(proposal), left_out(self._space, whole, proposal.settings))

    def tell(self, settings: Settings, result: Result, old: bool = False, expected: Optional[Expected] = None) -> None:
        """Take a result, of any settings; `old` ones are of an earlier search.

        `expected`: what another process with this search had said of them, in the place of what this one did.
        """
        values = result.seen if isinstance(result, Failed) else {name: m.mean for name, m in result.items()}
        search = self._search or self._begin(values)
        errors = {} if isinstance(result, Failed) else {name: m.error for name, m in result.items()}
        measurements: Dict[str, Measured] = {
            name: Measured(self._at_least(name, value), errors.get(name, math.nan)) for name, value in values.items()
        }
        if not isinstance(result, Failed):
            measurements[PREFERENCE] = Measured(self._judge.preference(values))
        failure = result.reason if isinstance(result, Failed) else None
        search.tell(settings, measurements, failure, old, expected)

    def verdict(self) -> SearchVerdict:
        """Say whether another trial is worth its cost."""
        if self._search is None:
            return SearchVerdict("searching", "nothing was tried yet")
        return self._search.verdict()

    @property
    def constraints(self) -> Sequence[Constraint]:
        """The hard objectives, with their bounds in the metrics' units."""
        return tuple(self._constraints)

    @property
    def knobs(self) -> Sequence[str]:
        """What is searched, one for each side of the cube."""
        return self._space.free

    @property
    def told(self) -> int:
        """How many trials it knows of, the baseline included."""
        return 0 if self._search is None else len(self._search.trials)

    @property
    def elsewhere(self) -> Optional[Elsewhere]:
        """What was offered of other clusters; judged once the baseline was told."""
        return self._elsewhere

    @property
    def safe_optimiser(self) -> SafeOptimiser:
        """The search itself, once the baseline was told. Raises ValueError before."""
        if self._search is None:
            raise ValueError("the baseline was not told yet")
        return self._search

    def _begin(self, baseline: Mapping[str, float]) -> SafeOptimiser:
        self._judge = Judge(self._slo, {name: value for name, value in baseline.items() if math.isfinite(value)})
        for objective in self._slo.objectives:
            bound = self._judge.bound(objective)
            # what the baseline does not show cannot be held
            if objective.hard and bound is not None and objective.metric in self._judge.reference:
                self._constraints.append(Constraint(objective.metric, objective.comparison, bound))
        logs = frozenset(name for name in self._slo.metrics if METRICS[name].unit != "1")
        options = replace(self._options, log_metrics=self._options.log_metrics | logs)
        priors = [_WithPreference(prior, self._judge) for prior in self._with_elsewhere()]
        self._search = optimise.SafeOptimiser(
            self._space,
            PREFERENCE,
            self._constraints,
            self._in_force,
            seed=self._seed,
            options=options,
            priors=priors,
            suggestions=self._suggestions,
        )
        return self._search

    def _with_elsewhere(self) -> Sequence[Prior]:
        """Take what served elsewhere as suggestions; give what is believed, corrected by what was measured there."""
        if self._elsewhere is None:
            return self._priors
        alike = self._elsewhere.judge(self._judge.reference)
        suggestions = proposals(alike)
        self._suggestions.update({proposal.why: proposal.settings for proposal in suggestions})
        if self._opening:
            self._opening = [*suggestions, *self._opening[: max(0, len(self._opening) - len(suggestions))]]
        return corrected(self._priors, alike, self._space, self._elsewhere.release)

    def _at_least(self, name: str, value: float) -> float:
        bounds = [constraint.bound for constraint in self._constraints if constraint.name == name]
        return max(value, _LEAST * bounds[0]) if bounds and METRICS[name].unit != "1" else value


def _of_metrics(proposal: Proposal) -> SettingsProposal:
    """What is expected of the preference says nothing to anybody else."""
    expected = {name: interval for name, interval in proposal.expected.items() if name != PREFERENCE}
    return SettingsProposal(proposal.settings, proposal.why, expected)


class _WithPreference:
    """A prior of the metrics that also says what the preference would be."""

    def __init__(self, prior: Prior, judge: Judge) -> None:
        self._prior, self._judge = prior, judge
        bounds = [(objective, judge.bound(objective)) for objective in judge.objectives]
        self._bounds = [(objective, bound) for objective, bound in bounds if bound is not None]

    def predict(self, points: Array) -> Mapping[str, Array]:
        """Give metrics at points, shape (n, size) -> metric -> shape (n,)."""
        metrics = dict(self._prior.predict(points))
        total = np.zeros(len(points))
        for objective, bound in self._bounds:
            if objective.metric in metrics:
                margin = objective.margin(metrics[objective.metric], bound)  # type: ignore[arg-type]
                margin = self._judge.counted(margin, np.minimum)
                total += weighed(objective, margin, 0.0, np.log1p, np.maximum)
        goal = self._judge.slo.goal if self._judge.slo is not None else None
        if goal is not None and goal.metric in metrics:
            total += self._judge.goal_part(np.maximum(metrics[goal.metric], _LEAST), np.log)
        metrics[PREFERENCE] = total
        return metrics
