"""Ask and tell: constrained Bayesian optimisation that tries nothing which is not probably safe.

    space = MixedSpace([Real(0, 1, name="share"), Integer(1, 64, prior="log-uniform", name="weight")])
    search = SafeOptimiser(space, "cost", [Constraint("latency", "<=", 20.0)], start={"share": 0.5, "weight": 1})
    for _ in range(20):
        (proposal,) = search.ask()
        search.tell(proposal.settings, measure(proposal.settings))
    print(search.best())

Everything follows from the seed, what was told and what was asked since: told the same again, on whatever machine, it
proposes the same.
"""

from __future__ import annotations

import math
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from ceph_tuner.optimise.contract import (
    Array,
    BestSettings,
    Constraint,
    Expected,
    Measured,
    Options,
    Prior,
    Proposal,
    SearchVerdict,
    Settings,
    Space,
    Values,
)
from ceph_tuner.optimise.explanation import Explanation
from ceph_tuner.optimise.history import ToldTrial, intervals, intervals_from, measured
from ceph_tuner.optimise.margins import risk
from ceph_tuner.optimise.model import FEASIBLE, Model
from ceph_tuner.optimise.proposal import LEAST_TRIALS, SearchStep, next_step

_RECOMMENDED = 0.98
"""Probability from which tried settings may be recommended."""

_EVIDENCE, _UNLIKELY, _HOPELESS = 4, 0.02, 0.005
"""Trials and one more for each side of the cube, at least LEAST_TRIALS and with priors these, before a set of
constraints is called infeasible; the probability of the next trial below which it is looked into, and the probability
that any point meets all below which it is. With few trials the models are too sure of themselves: of 14 rugged
functions that could be met in 0.2% of the cube, 6 were given up at 0.02, and 3 at 0.005."""

_GIVEN_UP, _FUTILE = 0.05, 1e-6
"""The last of these where nothing more is safe, or all trials are made: then it is but a word for the end of a search,
and costs none. So it is with priors after ten trials, where the likeliest of all that is safe meets everything with
less than the second probability."""

_MOVES = 4
"""Settings that are named of what is not safe."""

ALIKE = 0.1
"""Share by which constrained metrics of settings may differ that are worth a measurement as alike: windows of the same
settings differ by as much. Where a metric is not modelled by its logarithm, of how much it varies over the cube."""


class SafeOptimiser:
    """Minimises a metric of a mixed space under noisy constraints, from a start that is in use already."""

    def __init__(
        self,
        space: Space,
        objective: str,
        constraints: Sequence[Constraint],
        start: Mapping[str, Any],
        *,
        seed: int = 0,
        options: Optional[Options] = None,
        priors: Sequence[Prior] = (),
        suggestions: Optional[Mapping[str, Mapping[str, Any]]] = None,
    ) -> None:
        """`suggestions`: label -> settings that are worth a look, such as what served elsewhere."""
        self._space, self._objective, self._constraints = space, objective, tuple(constraints)
        self._start = _point(space, start)
        self._start_settings = dict(start)
        self._seed, self._options, self._priors = seed, options or Options(), tuple(priors)
        self._suggestions = {label: _point(space, settings) for label, settings in (suggestions or {}).items()}
        self._trials: List[ToldTrial] = []
        self._pending: List[Proposal] = []
        self._model: Optional[Model] = None
        self._measured_model: Optional[Model] = None
        """Of what was measured alone, where `_model` also has what is under way."""
        self._model_pending = 0
        self._step: Optional[SearchStep] = None
        self._exists: Optional[float] = None

    @property
    def trials(self) -> Tuple[ToldTrial, ...]:
        """All trials that `tell` was given, in their order."""
        return tuple(self._trials)

    def tell(
        self,
        settings: Mapping[str, Any],
        values: Values,
        failed: Optional[str] = None,
        old: bool = False,
        expected: Optional[Expected] = None,
    ) -> None:
        """Take what settings gave: complete, or until it was stopped (`failed` says why).

        Any settings are welcome, also repeats, and those that nobody asked for; `old` ones are of an earlier search.
        `expected`: what was said of them beforehand; None: what was when they were asked for here.
        """
        if expected is None:
            expected = next((each.expected for each in self._pending if each.settings == dict(settings)), {})
        self._trials.append(ToldTrial(dict(settings), measured(values), failed, old, {} if old else expected))
        self._pending = [proposal for proposal in self._pending if proposal.settings != dict(settings)]
        self._model, self._step = None, None

    def ask(self, count: int = 1) -> List[Proposal]:
        """Give settings to try next, side by side. Fewer than `count`, or none, where no more are safe (`verdict`).

        What was asked for and not told yet counts as under way: nothing is proposed twice.
        """
        proposals: List[Proposal] = []
        for _ in range(count):
            proposal = None if self._frozen else self._next()
            if proposal is None:
                break
            proposals.append(proposal)
            self._pending.append(proposal)
            self._step = None
        return proposals

    def forget_pending(self) -> None:
        """Let what was asked for and could not be measured be asked for again."""
        self._pending, self._model, self._step = [], None, None

    def verdict(self) -> SearchVerdict:
        """Say whether to go on."""
        options, own = self._options, self._own
        if not self._started:
            return SearchVerdict("searching", "what is in use is to be measured first")
        if self._frozen:
            broken = sum(self._violated())
            return SearchVerdict("frozen", f"{broken} trials broke a constraint, {options.violation_budget} may")
        step = self._stepped()
        if step.met and step.point is not None and step.gain < options.least_gain:
            return SearchVerdict(
                "satisfied", f"every constraint holds; another trial would gain {100 * step.gain:.1f}%"
            )
        spent = options.trials is not None and len(own) > options.trials
        # where nothing is left that could be tried with hope there will be no more evidence than there is
        futile = bool(self._priors) and len(own) >= LEAST_TRIALS and step.feasible < _FUTILE
        last = spent or futile or step.point is None
        evidence = LEAST_TRIALS if self._priors else max(LEAST_TRIALS, _EVIDENCE + self._space.size)
        if not step.met and step.feasible < _UNLIKELY and (len(own) >= evidence or last):
            if self._exists is None:
                with threadpool_limits(1):
                    self._exists = self._chance()
            if self._exists < (_GIVEN_UP if last else _HOPELESS):
                chance = f"{100 * self._exists:.1f}%"
                return SearchVerdict("infeasible", f"that any settings meet every constraint has {chance} probability")
        if spent:
            return SearchVerdict("budget", f"all {options.trials} trials are made")
        if step.point is None:
            reason = f"no untried settings are safe with {100 * options.safe_probability:g}%"
            return SearchVerdict("nothing safe", f"{reason}{self._nearest(step)}")
        return SearchVerdict("searching", step.why)

    def _chance(self) -> float:
        """Probability that any settings meet every constraint: by the priors, and by how far these may be wrong.

        What priors say of everything that was not tried rests on what was. About a metric they count as wrong as likely
        as right, until trials apart from the start say which.
        """
        chance = by_priors = self.explain().reach().exists
        if not self._priors:
            return chance
        metrics = sorted({constraint.name for constraint in self._constraints})
        for name in metrics:
            doubted = self._modelled(self._trials, [name])
            right, wrong = (each.surrogates[name].log_pseudo_likelihood for each in (self._fitted(), doubted))
            share = float(expit(wrong - right))
            if share > _HOPELESS / len(metrics):
                chance += share * max(0.0, self._explained(doubted).reach().exists - by_priors)
        return min(chance, 1.0)

    def _nearest(self, step: SearchStep) -> str:
        """In words, how far the likeliest safe of all that was not tried is from what was."""
        if step.nearest is None or step.beside is None:
            return ""
        there, here = (self._space.decode(list(each)) for each in (step.nearest, step.beside))
        moved = [f"{name} {_shown(here[name])} to {_shown(there[name])}" for name in there if there[name] != here[name]]
        more = f" and {len(moved) - _MOVES} more" if len(moved) > _MOVES else ""
        return f"; the nearest are with {100 * step.safe:.0f}%: {', '.join(moved[:_MOVES])}{more}"

    def best(self) -> BestSettings:
        """Give the best settings that were tried: by the models' upper bounds, among those that are surely feasible.

        Raises ValueError where nothing was told.
        """
        model, view = self._fitted(), self._fitted().at_trials
        # what is under way comes after what was told
        trials = len(self._trials)
        feasible = np.exp(view.log_feasible())[:trials]
        whole = np.array([trial.failed is None for trial in self._trials])
        mean, deviation = (values[:trials] for values in view.metric(self._objective))
        sure = whole & (feasible >= _RECOMMENDED)
        row = int(np.argmin(np.where(sure, mean + deviation, np.inf) if sure.any() else -feasible * whole))
        for start, trial in enumerate(self._trials):
            if whole[start] and trial.settings == self._start_settings and feasible[start] >= FEASIBLE:
                # what is in use stays unless something is better by more than chance
                chance = float(view.difference(self._objective, row)[start])
                row = row if float(mean[start] - mean[row]) > chance else start
                break
        names = list(model.surrogates)
        return BestSettings(
            dict(self._trials[row].settings),
            {name: float(model.plain(name, view.metric(name)[0])[row]) for name in names},
            {name: float(view.metric(name)[1][row]) for name in names},
            float(feasible[row]),
        )

    def first_as_good(
        self, settings: Mapping[str, Any], variants: Sequence[Mapping[str, Any]], within: float
    ) -> Optional[Proposal]:
        """Give the first of `variants` that is thought safe and as good as `settings`; None where none is.

        As good: the objective gets worse by no more than `within` (in its model's unit), no constraint's metric by more
        than `ALIKE`, and the constraints are met as surely, or surely enough. It is no further away than a trial may
        be.
        Raises ValueError where nothing was told.
        """
        if not variants or self._frozen:
            return None
        model, options = self._fitted(), self._options
        with threadpool_limits(1):
            view = model.at(np.array([self._space.encode(each) for each in (settings, *variants)], dtype=float))
            feasible = view.log_feasible()
            surely = feasible >= min(float(feasible[0]), math.log(max(options.safe_probability, FEASIBLE)))
            near = np.max(np.abs(view.points - view.points[0]), axis=1) <= options.step_limit
            allowed = view.allowed(risk(self._violated(), 1.0 - options.safe_probability), options)
            good = [near, allowed, surely]
            worse = [(self._objective, 1.0, within)]
            for bounds in model.bounds:
                unit = 1.0 if model.is_log(bounds.name) else model.surrogates[bounds.name].scale
                worse.append((bounds.name, bounds.sign, ALIKE * unit))
            for name, sign, tolerance in worse:
                mean = view.metric(name)[0]
                good.append(sign * (mean - mean[0]) <= tolerance)
        rows = np.flatnonzero(np.all(good, axis=0)[1:])
        if not len(rows):
            return None
        row = int(rows[0])
        safe = float(np.exp(np.minimum(view.log_safe(), view.log_no_worse())[row + 1]))
        expected = model.at(view.points[row + 1 : row + 2]).intervals()
        return Proposal(dict(variants[row]), "as good as the best, as far as is known", safe, expected)

    def trust(self) -> Dict[str, Tuple[float, ...]]:
        """Metric -> how far each prior was right about it: 1 as predicted, 0 of no use; empty before the first tell."""
        if not self._trials or not self._priors:
            return {}
        return {name: tuple(float(scale) for scale in s.trust) for name, s in self._fitted().surrogates.items()}

    def explain(self) -> Explanation:
        """Give what was learnt, for people. Raises ValueError where nothing was told."""
        return self._explained(self._fitted())

    def _explained(self, model: Model) -> Explanation:
        return Explanation(model, self._space, self._objective, self._constraints, tuple(self._trials), self._seed)

    def to_dict(self) -> Dict[str, Any]:
        """Give all that another instance needs to go on, ready for JSON."""
        pending = [
            {"settings": p.settings, "why": p.why, "safe": p.safe, "expected": intervals(p.expected)}
            for p in self._pending
        ]
        return {"version": 1, "trials": [trial.to_dict() for trial in self._trials], "pending": pending}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Go on from `to_dict`. Raises ValueError for what is none."""
        try:
            if document["version"] != 1:
                raise ValueError(f"version (={document['version']!r}) must be 1")
            trials = [ToldTrial.from_dict(entry) for entry in document["trials"]]
            pending = [
                Proposal(dict(p["settings"]), str(p["why"]), float(p["safe"]), intervals_from(p.get("expected", {})))
                for p in document["pending"]
            ]
        except (KeyError, TypeError) as error:
            raise ValueError(f"no history of a search: {error!r}") from error
        self._trials, self._pending = trials, pending
        self._model, self._step = None, None

    @property
    def _own(self) -> List[ToldTrial]:
        return [trial for trial in self._trials if not trial.old]

    @property
    def _names(self) -> List[str]:
        return list(dict.fromkeys([self._objective, *(constraint.name for constraint in self._constraints)]))

    @property
    def _started(self) -> bool:
        """Whether the start was measured: there is nothing else that settings could be compared with."""
        return any(
            trial.failed is None and trial.settings == self._start_settings and set(self._names) <= set(trial.values)
            for trial in self._own
        )

    @property
    def _frozen(self) -> bool:
        budget = self._options.violation_budget
        return budget is not None and self._started and sum(self._violated()) > budget

    def _next(self) -> Optional[Proposal]:
        if not self._started:
            first = Proposal(dict(self._start_settings), "what is in use: everything is compared with it", 1.0)
            return None if any(proposal.settings == first.settings for proposal in self._pending) else first
        if self._confirming():
            return Proposal(self._contender(), "the best once more, before it is recommended", 1.0)
        step = self._stepped()
        if step.point is None:
            return None
        return Proposal(self._space.decode(list(step.point)), step.why, step.safe, step.expected)

    def _contender(self) -> Settings:
        """What would be recommended if it were as good as it looks, among what is safe to be tried again."""
        model, view, trials = self._fitted(), self._fitted().at_trials, len(self._trials)
        mean, _ = view.metric(self._objective)
        may = view.log_feasible() >= math.log(max(self._options.safe_probability, FEASIBLE))
        likely = np.where(may & ~model.failed, mean, np.inf)[:trials]
        row = int(np.argmin(likely))
        return dict(self._trials[row].settings) if np.isfinite(likely[row]) else self.best().settings

    def _confirming(self) -> bool:
        if self._options.trials is None:
            return False
        left = self._options.trials + 1 - len(self._own) - len(self._pending)
        return 0 < left <= min(self._options.confirm, self._options.trials // 4)

    def _fitted(self) -> Model:
        """What was told, and for what is under way what is expected of it."""
        if self._model is None or self._model_pending != len(self._pending):
            trials = list(self._trials)
            names = self._names
            self._model = self._measured_model = self._modelled(trials)
            for proposal in self._pending:
                view = self._model.at(np.array([self._space.encode(proposal.settings)]))
                expected = {name: Measured(float(self._model.plain(name, view.metric(name)[0])[0])) for name in names}
                trials.append(ToldTrial(proposal.settings, expected))
                self._model = self._modelled(trials)
            self._model_pending = len(self._pending)
        return self._model

    def _modelled(self, trials: Sequence[ToldTrial], doubted: Collection[str] = ()) -> Model:
        with threadpool_limits(1):
            # matrices this small are slower on two threads than on one
            return Model(
                self._space, self._names, self._constraints, self._start, self._options, self._priors, trials, doubted
            )

    def _violated(self) -> List[bool]:
        """Whether each trial of this search broke a constraint, as it is seen now."""
        return [
            bool(broken)
            for broken, trial in zip(self._fitted().broken, self._trials)
            if not trial.old and trial.settings != self._start_settings
        ]

    def _stepped(self) -> SearchStep:
        if self._step is None:
            self._exists = None
            model = self._fitted()
            with threadpool_limits(1):
                entropy = [self._seed, len(self._trials), len(self._pending)]
                self._step = next_step(
                    self._space, self._objective, model, self._measured_model or model, self._violated(), self._options,
                    self._suggestions, entropy,
                )  # fmt: skip
        return self._step


def _point(space: Space, settings: Mapping[str, Any]) -> Array:
    return np.asarray(space.encode(settings), dtype=float)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
