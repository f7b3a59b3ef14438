"""All that a search can say about itself, asked of one thing: `SafeOptimiser.explain()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.optimise import feasibility, posterior_summary
from ceph_tuner.optimise.candidates import Region
from ceph_tuner.optimise.contract import Constraint, Settings, Space
from ceph_tuner.optimise.feasibility import Limiting, Nearest, Reach
from ceph_tuner.optimise.history import ToldTrial
from ceph_tuner.optimise.model import Model
from ceph_tuner.optimise.posterior_summary import Dependence, Importance, TrialProgress


@dataclass(frozen=True)
class Explanation:
    """A search as it stands. The same seed and the same trials give the same words."""

    model: Model
    space: Space
    objective: str
    constraints: Tuple[Constraint, ...]
    trials: Tuple[ToldTrial, ...]
    seed: int

    @property
    def metrics(self) -> List[str]:
        """The objective and all that is constrained."""
        return list(self.model.surrogates)

    def importance(
        self, names: Sequence[str], around: Optional[Settings] = None, half: float = 0.2
    ) -> Dict[str, Importance]:
        """Say which settings each metric depends on: everywhere, or `around` settings as far as `half` on each side.

        `names` has one name for each side of the cube; sides of the same name count as one setting.
        """
        region = None if around is None else Region.around(np.array(self.space.encode(around)), half)
        return posterior_summary.importance(self.model, self.space, self.metrics, names, self._generator(), region)

    def partial_dependence(self, metric: str, name: str, values: Optional[Sequence[Any]] = None) -> Dependence:
        """Follow a metric over one setting's values (None: some of all), averaged over the other settings."""
        return posterior_summary.partial_dependence(self.model, self.space, metric, name, self._generator(), values)

    def convergence(self) -> List[TrialProgress]:
        """Follow the search, trial by trial."""
        return posterior_summary.convergence(self.model, self.objective, self.trials)

    def reach(self) -> Reach:
        """Say how likely it is that all constraints can be met."""
        return feasibility.reach(self.model, self.space, self._generator())

    def limiting(self) -> Limiting:
        """Find the constraints in each other's way. Raises ValueError where there are none."""
        return feasibility.limiting(self.model, self.space, self.constraints, self._generator())

    def nearest_feasible(self, probability: float = 0.9) -> Nearest:
        """Find the bounds nearest to those asked for that some settings meet with this probability."""
        return feasibility.nearest_feasible(self.model, self.space, self.constraints, self._generator(), probability)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, len(self.trials)])
