"""`ceph-tuner tune` with another search in the place of its own: the same guard, windows, finalists and choice.

    python benchmarks/tuning_peers.py optuna-gp tune --cluster lab --slo slo.yaml --no-prior
    python benchmarks/tuning_peers.py no-designs tune --cluster lab --slo slo.yaml

`benchmarks/tuning_on_lab.py --search` calls it.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from search_peers import LEAST_TOLD, constrained_study

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import settings_key
from ceph_tuner.optimise.contract import SearchVerdict
from ceph_tuner.search.optimiser import Failed, Result, SettingsProposal
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.tune import search as own_search
from ceph_tuner_cli import main, tune_run


class OptunaGp:
    """Optuna's GP sampler with its constraints, over the unit cube of the same space. It is told no designs.

    A trial that was ended early counts by what was seen until then. The best is what was measured best.
    """

    def __init__(
        self, space: KnobSpace, slo: Slo, in_force: Settings, profiles: Mapping[str, Settings], seed: int, *_: object
    ) -> None:
        from optuna.distributions import FloatDistribution

        self._space, self._judge = space, Judge(slo)
        self._seen: List[Tuple[Settings, Mapping[str, float]]] = []
        self._pending: Dict[str, Any] = {}
        self._cube: Dict[str, Any] = {f"u{place}": FloatDistribution(0.0, 1.0) for place in range(space.size)}
        self._study = constrained_study("GPSampler", seed, LEAST_TOLD)

    def nearest(self, settings: Settings) -> Optional[Settings]:
        return self._space.standing_for(settings)

    def ask(self) -> Optional[SettingsProposal]:
        trial = self._study.ask(self._cube)
        settings = self._space.decode([trial.params[name] for name in self._cube])
        self._pending[settings_key(settings)] = trial
        return SettingsProposal(settings, "Optuna's GP")

    def tell(self, settings: Settings, result: Result, *_: object, **__: object) -> None:
        means = result.seen if isinstance(result, Failed) else {name: one.mean for name, one in result.items()}
        if not self._seen:
            self._judge = Judge(self._judge.slo, means)
        self._seen.append((settings, means))
        # what was not seen is missed by its whole bound
        margins = [-1.0 if one.margin is None else one.margin for one in self._judge.verdicts(means)]
        trial = self._pending.pop(settings_key(settings), None) or self._enqueued(settings)
        trial.set_user_attr("excesses", [-margin for margin in margins])
        self._study.tell(trial, self._judge.preference(means))

    def _enqueued(self, settings: Settings) -> Any:
        """What it did not ask for: what is in force, and the built-in profiles."""
        self._study.enqueue_trial(dict(zip(self._cube, map(float, self._space.encode(settings)))))
        return self._study.ask(self._cube)

    def forget_pending(self) -> None:
        """A trial that could not be measured stays open: the sampler leaves it out."""
        self._pending.clear()

    def verdict(self) -> SearchVerdict:
        return SearchVerdict("searching", "it has no end of its own")

    def best(self) -> Settings:
        return min(self._seen, key=lambda seen: self._judge.rank(seen[1]))[0]

    def simpler(self, settings: Settings, built_in: bool) -> None:
        """It knows no fewer changes."""

    def trust(self) -> Dict[str, Tuple[float, ...]]:
        return {}

    def explained(self, misses: bool, curves: bool = False) -> None:
        """It explains nothing."""


def use_optuna() -> None:
    vars(tune_run)["TuningSearch"] = OptunaGp


def use_no_designs() -> None:
    vars(own_search)["informed_designs"] = lambda space, work: []


SEARCHES = {"optuna-gp": use_optuna, "no-designs": use_no_designs}

if __name__ == "__main__":
    SEARCHES[sys.argv[1]]()
    sys.argv = ["ceph-tuner", *sys.argv[2:]]
    main.main()
