"""Every optimiser of the comparison behind the same three calls; a new one is one small class and one entry in ALL.

All are asked for the start first, and all but ours recommend what their users would take: the best trial that was seen
to keep every constraint, or, when none was, the one that missed the constraints least. Designs are left at the defaults
of their packages; where a package leaves the number of random trials open, it is 10, the start included, as in the
others' defaults.
"""

from __future__ import annotations

import logging
import warnings
from operator import itemgetter
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np
from search_problem import Problem
from skopt import Optimizer, Space
from skopt.space import Categorical, Dimension, Integer

from ceph_tuner.optimise.contract import Measured, Settings

RANDOM_TRIALS = 10
Seen = Tuple[Settings, Mapping[str, Measured]]


def excesses(problem: Problem, values: Mapping[str, Measured]) -> List[float]:
    """By how much each constraint was seen to be missed (> 0) or kept, in its scale."""
    return [c.excess(values[c.name].mean) / problem.scale[c.name] for c in problem.constraints]


class Peer:
    """Ask, tell, recommend; `seed` decides everything that is random."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.seed = seed
        self.seen: List[Seen] = []
        self.verdict = ""

    def ask(self) -> Optional[Settings]:
        """The next trial; None: there is nothing left to try, and `verdict` says why."""
        return self.problem.start if not self.seen else self.propose()

    def propose(self) -> Settings:
        """A trial after the first."""
        raise NotImplementedError

    def tell(self, settings: Settings, values: Mapping[str, Measured]) -> None:
        self.seen.append((settings, values))

    def recommend(self) -> Settings:
        """What its user would take."""

        def rank(seen: Seen) -> Tuple[float, float]:
            missed = sum(max(0.0, excess) for excess in excesses(self.problem, seen[1]))
            return missed, seen[1][self.problem.objective].mean

        return min(self.seen, key=rank)[0]


class Random(Peer):
    """Uniform in the box."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self._space = Space(problem.dimensions)
        self._random = np.random.RandomState(seed)

    def propose(self) -> Settings:
        return self.problem.settings(self._space.rvs(1, self._random)[0])


class Designs(Peer):
    """No search: the settings that come with the problem, one after the other."""

    def ask(self) -> Optional[Settings]:
        tries = [self.problem.start, *self.problem.designs.values()]
        return tries[len(self.seen)] if len(self.seen) < len(tries) else None


class Skopt(Peer):
    """`gp_minimize` in its ask-and-tell form; it knows no constraints, so what is missed is added to the objective."""

    PENALTY = 10.0
    """Scales of the objective for each scale by which a constraint is missed; of 1, 3 and 10 the least unsafe one."""

    def __init__(self, problem: Problem, seed: int, acquisition: str) -> None:
        super().__init__(problem, seed)
        self._optimiser = Optimizer(
            problem.dimensions, "GP", n_initial_points=RANDOM_TRIALS, acq_func=acquisition, random_state=seed
        )

    def propose(self) -> Settings:
        return self.problem.settings(self._optimiser.ask())

    def tell(self, settings: Settings, values: Mapping[str, Measured]) -> None:
        super().tell(settings, values)
        missed = sum(max(0.0, excess) for excess in excesses(self.problem, values))
        objective = self.problem.objective
        cost = values[objective].mean / self.problem.scale[objective] + self.PENALTY * missed
        self._optimiser.tell(self.problem.point(settings), cost)


class Optuna(Peer):
    """A sampler that is told the constraints."""

    def __init__(self, problem: Problem, seed: int, sampler: str) -> None:
        super().__init__(problem, seed)
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        kind = getattr(optuna.samplers, sampler)
        self._study = optuna.create_study(
            sampler=kind(seed=seed, constraints_func=lambda trial: trial.user_attrs["excesses"])
        )
        self._distributions = {d.name: _distribution(d) for d in problem.dimensions}
        self._study.enqueue_trial(dict(zip(self._distributions, problem.point(problem.start))))

    def ask(self) -> Optional[Settings]:
        # the start is asked for as well: it is the trial that was enqueued
        self._trial = self._study.ask(self._distributions)
        return self.problem.settings([self._trial.params[name] for name in self._distributions])

    def tell(self, settings: Settings, values: Mapping[str, Measured]) -> None:
        super().tell(settings, values)
        self._trial.set_user_attr("excesses", excesses(self.problem, values))
        self._study.tell(self._trial, values[self.problem.objective].mean)


def _distribution(dimension: Dimension) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(dimension, Categorical):
        return CategoricalDistribution(dimension.categories)
    kind = IntDistribution if isinstance(dimension, Integer) else FloatDistribution
    return kind(dimension.low, dimension.high, log=dimension.prior == "log-uniform")


class BoTorch(Peer):
    """qLogNEI with constraints: one Gaussian process a metric, all at their defaults, after scrambled Sobol points.

    It searches the unit cube; integers and categories are rounded. 64 samples of the posterior, 4 restarts of 50 steps
    keep it near a second an `ask`.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        import torch
        from botorch.utils.sampling import draw_sobol_samples

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        warnings.filterwarnings("ignore", module="botorch|linear_operator|gpytorch")
        logging.getLogger("botorch").setLevel(logging.ERROR)
        self._torch = torch
        self._space = problem.cube
        cube = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, self._space.size)
        self._cube = cube.contiguous()
        self._sobol = draw_sobol_samples(self._cube, n=RANDOM_TRIALS - 1, q=1, seed=seed).squeeze(1)

    def propose(self) -> Settings:
        place = len(self.seen) - 1
        point = self._sobol[place] if place < len(self._sobol) else self._best_of_acquisition()
        return self._space.decode(point.tolist())

    def _best_of_acquisition(self) -> Any:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.objective import LinearMCObjective
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.optim.optimize import optimize_acqf
        from botorch.sampling.normal import SobolQMCNormalSampler
        from gpytorch.mlls import ExactMarginalLogLikelihood

        tensor, problem = self._torch.tensor, self.problem
        x = tensor([self._space.encode(settings) for settings, _ in self.seen], dtype=self._torch.double)
        # columns: the objective, then by how much each constraint is missed; each is in its scale
        objective = [v[problem.objective].mean / problem.scale[problem.objective] for _, v in self.seen]
        y = tensor([[o, *excesses(problem, v)] for o, (_, v) in zip(objective, self.seen)], dtype=self._torch.double)
        columns = range(y.shape[1])
        model = SingleTaskGP(x, y, outcome_transform=Standardize(len(columns)))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedImprovement(
            model,
            x,
            sampler=SobolQMCNormalSampler(self._torch.Size([64]), seed=self.seed),
            objective=LinearMCObjective(tensor([-1.0] + [0.0] * (len(columns) - 1), dtype=self._torch.double)),
            constraints=[itemgetter((..., c)) for c in columns[1:]],
            prune_baseline=True,
        )
        best, _ = optimize_acqf(acquisition, self._cube, q=1, num_restarts=4, raw_samples=128, options={"maxiter": 50})
        return best[0]


class Ours(Peer):
    """`ceph_tuner.optimise.SafeOptimiser`; with the problem's priors, or without."""

    def __init__(self, problem: Problem, seed: int, with_priors: bool = True) -> None:
        super().__init__(problem, seed)
        from ceph_tuner.optimise import Options, SafeOptimiser

        self._optimiser = SafeOptimiser(
            problem.cube,
            problem.objective,
            problem.constraints,
            problem.start,
            seed=seed,
            options=Options(trials=problem.budget - 1, log_metrics=problem.log_metrics),
            priors=problem.priors if with_priors else (),
            suggestions=problem.designs,
        )

    def ask(self) -> Optional[Settings]:
        self.verdict = self._optimiser.verdict().state
        if self.verdict == "infeasible":
            # as `ceph-tuner tune` does: what cannot be met is not tried on
            return None
        proposals = self._optimiser.ask(1)
        return proposals[0].settings if proposals else None

    def tell(self, settings: Settings, values: Mapping[str, Measured]) -> None:
        super().tell(settings, values)
        self._optimiser.tell(settings, values)

    def recommend(self) -> Settings:
        return self._optimiser.best().settings


ALL: Dict[str, Callable[[Problem, int], Peer]] = {
    "designs": Designs,
    "random": Random,
    "optuna-tpe": lambda problem, seed: Optuna(problem, seed, "TPESampler"),
    "optuna-gp": lambda problem, seed: Optuna(problem, seed, "GPSampler"),
    "skopt-ei": lambda problem, seed: Skopt(problem, seed, "EI"),
    "skopt-hedge": lambda problem, seed: Skopt(problem, seed, "gp_hedge"),
    "botorch": BoTorch,
    "ours": Ours,
    "ours-no-prior": lambda problem, seed: Ours(problem, seed, with_priors=False),
}
"""The quicker ones first."""

TITLES = {
    "designs": "built-in profiles",
    "random": "random",
    "optuna-tpe": "Optuna TPE, constraints",
    "optuna-gp": "Optuna GP (log constrained EI)",
    "skopt-ei": "skopt EI, penalty",
    "skopt-hedge": "skopt gp_hedge, penalty",
    "botorch": "BoTorch qLogNEI, constraints",
    "ours": "ceph-tuner",
    "ours-no-prior": "ceph-tuner without the twin",
}

NEEDS = {
    "optuna-tpe": ("optuna",),
    # its Gaussian processes are torch's
    "optuna-gp": ("optuna", "torch"),
    "botorch": ("torch", "botorch"),
}
"""Packages that the project itself does not need."""
