"""Every optimiser of the comparison behind the same three calls; a new one is one small class and one entry in ALL.

All are asked for the start first, and all but ours recommend what their users would take: the best trial that was seen
to keep every constraint, or, when none was, the one that missed the constraints least.

All begin with what ours has: the start, then the problem's designs. Their model proposes as soon as these are measured,
but not before LEAST_TOLD trials. BoTorch is told the noise of each metric whose measurements come with it; the samplers
of Optuna and scikit-optimize have no place for it. All else is at the packages' defaults.
"""

from __future__ import annotations

import logging
import warnings
from operator import itemgetter
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from search_problem import Problem
from skopt import Optimizer, Space
from skopt.space import Categorical, Dimension, Integer

from ceph_tuner.optimise.contract import Measured, Settings

LEAST_TOLD = 3
"""Measured trials before a peer's model proposes: fewer say nothing of a length scale."""
Seen = Tuple[Settings, Mapping[str, Measured]]


def excesses(problem: Problem, values: Mapping[str, Measured]) -> List[float]:
    """By how much each constraint was seen to be missed (> 0) or kept, in its scale."""
    return [c.excess(values[c.name].mean) / problem.scale[c.name] for c in problem.constraints]


def first_tries(problem: Problem) -> List[Settings]:
    """What every optimiser but random search begins with: the start, and the designs that ours is given, each once."""
    tries: List[Settings] = []
    for settings in [problem.start, *problem.designs.values()]:
        if settings not in tries:
            tries.append(settings)
    return tries


def start_up(problem: Problem) -> int:
    """Trials before a peer's model proposes."""
    return min(max(LEAST_TOLD, len(first_tries(problem))), problem.budget)


def noise_variances(problem: Problem, told: Sequence[Mapping[str, Measured]]) -> List[Optional[List[float]]]:
    """Variance of each measurement in its metric's scale, for the objective and then each constraint.

    A metric is None where a measurement does not come with its error.
    """
    variances: List[Optional[List[float]]] = []
    for metric in [problem.objective, *(constraint.name for constraint in problem.constraints)]:
        own = [(values[metric].error / problem.scale[metric]) ** 2 for values in told]
        variances.append(own if np.isfinite(own).all() else None)
    return variances


class Peer:
    """Ask, tell, recommend; `seed` decides everything that is random."""

    first_model_trial: Optional[int] = None
    """Number of the first trial that a model proposes, the start being 1; None: no model."""

    promised: Optional[float] = None
    """Probability of the last trial that was asked for to be safe; None: nothing was promised."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.seed = seed
        self.seen: List[Seen] = []

    @property
    def verdict(self) -> str:
        """What its user is told of the search as it stands: a word of STATES; empty where it has none."""
        return ""

    def trust(self) -> Dict[str, Tuple[float, ...]]:
        """Metric -> how far each prior was right about it, as was learnt: 1 as predicted, 0 of no use; empty: none."""
        return {}

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
        return self.best_measured()

    def best_measured(self) -> Settings:
        """The same rule for every optimiser: the best trial that was measured as feasible, or the least infeasible."""

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
        self._first, told = first_tries(problem), start_up(problem)
        self.first_model_trial = told + 1
        self._optimiser = Optimizer(
            problem.dimensions, "GP", n_initial_points=told, acq_func=acquisition, random_state=seed
        )

    def propose(self) -> Settings:
        if len(self.seen) < len(self._first):
            return self._first[len(self.seen)]
        return self.problem.settings(self._optimiser.ask())

    def tell(self, settings: Settings, values: Mapping[str, Measured]) -> None:
        super().tell(settings, values)
        missed = sum(max(0.0, excess) for excess in excesses(self.problem, values))
        objective = self.problem.objective
        cost = values[objective].mean / self.problem.scale[objective] + self.PENALTY * missed
        self._optimiser.tell(self.problem.point(settings), cost)


def constrained_study(sampler: str, seed: int, told: int) -> Any:
    """Optuna's, quiet: its model proposes after so many trials, and each trial's `excesses` are its constraints."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    kind = getattr(optuna.samplers, sampler)
    return optuna.create_study(
        sampler=kind(seed=seed, n_startup_trials=told, constraints_func=lambda trial: trial.user_attrs["excesses"])
    )


class Optuna(Peer):
    """A sampler that is told the constraints."""

    def __init__(self, problem: Problem, seed: int, sampler: str) -> None:
        super().__init__(problem, seed)
        told = start_up(problem)
        self.first_model_trial = told + 1
        self._study = constrained_study(sampler, seed, told)
        self._distributions = {d.name: _distribution(d) for d in problem.dimensions}
        for settings in first_tries(problem):
            self._study.enqueue_trial(dict(zip(self._distributions, problem.point(settings))))

    def ask(self) -> Optional[Settings]:
        # the start and the designs are asked for as well: they are the trials that were enqueued
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
    """qLogNEI with constraints: one Gaussian process a metric, all at their defaults, after the designs.

    Scrambled Sobol points fill up what the designs leave of the start-up trials.

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
        self._sobol = draw_sobol_samples(self._cube, n=LEAST_TOLD, q=1, seed=seed).squeeze(1)
        self._first = first_tries(problem)
        self.first_model_trial = start_up(problem) + 1

    def propose(self) -> Settings:
        place = len(self.seen)
        if place < len(self._first):
            return self._first[place]
        told = self.first_model_trial is not None and place + 1 >= self.first_model_trial
        point = self._best_of_acquisition() if told else self._sobol[place - len(self._first)]
        return self._space.decode(point.tolist())

    def _best_of_acquisition(self) -> Any:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.objective import LinearMCObjective
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.optim.optimize import optimize_acqf
        from botorch.sampling.normal import SobolQMCNormalSampler
        from gpytorch.mlls import SumMarginalLogLikelihood

        tensor, problem = self._torch.tensor, self.problem
        x = tensor([self._space.encode(settings) for settings, _ in self.seen], dtype=self._torch.double)
        # columns: the objective, then by how much each constraint is missed; each is in its scale
        objective = [v[problem.objective].mean / problem.scale[problem.objective] for _, v in self.seen]
        y = tensor([[o, *excesses(problem, v)] for o, (_, v) in zip(objective, self.seen)], dtype=self._torch.double)
        columns = range(y.shape[1])
        models = []
        for column, variances in zip(columns, noise_variances(problem, [values for _, values in self.seen])):
            noise = None if variances is None else tensor(variances, dtype=self._torch.double)[:, None]
            models.append(SingleTaskGP(x, y[:, [column]], noise, outcome_transform=Standardize(1)))
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
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
    """`ceph_tuner.optimise.SafeOptimiser`; with the problem's priors, suggestions and noise, or without one of them."""

    # what is safe is the model's word from the first measurement on
    first_model_trial = 2

    def __init__(self, problem: Problem, seed: int, without: str = "") -> None:
        super().__init__(problem, seed)
        self._noise = without != "noise"
        from ceph_tuner.optimise import Options, SafeOptimiser

        self._optimiser = SafeOptimiser(
            problem.cube,
            problem.objective,
            problem.constraints,
            problem.start,
            seed=seed,
            options=Options(trials=problem.budget - 1, log_metrics=problem.log_metrics),
            priors=() if without == "priors" else problem.priors,
            suggestions={} if without == "suggestions" else problem.designs,
        )

    @property
    def verdict(self) -> str:
        return self._optimiser.verdict().state

    def trust(self) -> Dict[str, Tuple[float, ...]]:
        return self._optimiser.trust()

    def ask(self) -> Optional[Settings]:
        if self.verdict == "infeasible":
            # as `ceph-tuner tune` does: what cannot be met is not tried on
            return None
        proposals = self._optimiser.ask(1)
        self.promised = round(proposals[0].safe, 4) if proposals else None
        return proposals[0].settings if proposals else None

    def tell(self, settings: Settings, values: Mapping[str, Measured]) -> None:
        super().tell(settings, values)
        told = values if self._noise else {name: Measured(value.mean) for name, value in values.items()}
        self._optimiser.tell(settings, told)

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
    "ours-no-prior": lambda problem, seed: Ours(problem, seed, without="priors"),
    "ours-no-suggestions": lambda problem, seed: Ours(problem, seed, without="suggestions"),
    "ours-no-noise": lambda problem, seed: Ours(problem, seed, without="noise"),
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
    "ours-before": "ceph-tuner, the version before",
    "ours-no-prior": "ceph-tuner without the twin",
    "ours-no-suggestions": "ceph-tuner without suggestions",
    "ours-no-noise": "ceph-tuner without the known noise",
}

_TEN_RANDOM = ("optuna-tpe", "optuna-gp", "skopt-ei", "skopt-hedge", "botorch")
FIRST_MODEL_TRIAL = {**dict.fromkeys(_TEN_RANDOM, 11), "ours": 2}
"""Of runs that do not tell it: peers then began with the start and nine random trials, whatever ours was given."""

NEEDS = {
    "optuna-tpe": ("optuna",),
    # its Gaussian processes are torch's
    "optuna-gp": ("optuna", "torch"),
    "botorch": ("torch", "botorch"),
}
"""Packages that the project itself does not need."""
