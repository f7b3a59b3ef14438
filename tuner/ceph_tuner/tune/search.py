"""The search of a tuning run: what it begins from, what it may do, and what it says of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import FEWER_CHANGES
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.optimise import Options, Prior, SearchVerdict
from ceph_tuner.optimise.contract import Expected
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.explanation import Explained, explained
from ceph_tuner.search.knob_search import PREFERENCE, KnobSearch
from ceph_tuner.search.optimiser import Result, SettingsProposal
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.search.transfer import Elsewhere


class TuningSearch:
    """`tune.Search` by `KnobSearch`. Built-in profiles and informed designs are suggestions: tried where safe."""

    def __init__(
        self,
        space: KnobSpace,
        slo: Slo,
        in_force: Settings,
        profiles: Mapping[str, Settings],
        seed: int,
        options: Optional[Options] = None,
        priors: Sequence[Prior] = (),
        elsewhere: Optional[Elsewhere] = None,
    ) -> None:
        self._space, self._slo = space, slo
        suggestions: List[SettingsProposal] = []
        for name, profile in profiles.items():
            settings = self.nearest(profile)
            if settings is not None:
                suggestions.append(SettingsProposal(settings, f"built-in profile {name}"))
        suggestions += informed_designs(space, slo.work)
        self._search = KnobSearch(
            space, slo, space.nearest(in_force), seed, options, priors, suggestions, elsewhere=elsewhere
        )

    def nearest(self, settings: Settings) -> Optional[Settings]:
        """Give the settings of the space that stand for these; None where knobs differ that are not searched."""
        return self._space.standing_for(settings)

    def ask(self) -> Optional[SettingsProposal]:
        """Give settings to try next; None where no more are safe."""
        return self._search.ask()

    def tell(self, settings: Settings, result: Result, old: bool = False, expected: Optional[Expected] = None) -> None:
        """Take a result; the first is that of the settings in force. `old` ones are of an earlier run.

        `expected`: what was said of it before, where that was another process.
        """
        self._search.tell(settings, result, old, expected)

    def forget_pending(self) -> None:
        """Let what was asked for and could not be measured be asked for again."""
        self._search.safe_optimiser.forget_pending()

    def verdict(self) -> SearchVerdict:
        """Say whether another trial is worth its cost."""
        return self._search.verdict()

    def best(self) -> Settings:
        """Give the settings that the models think best of all that were tried."""
        return self._search.safe_optimiser.best().settings

    def simpler(self, settings: Settings, built_in: bool) -> Optional[SettingsProposal]:
        """Give the fewest of these changes that the models think as good; None where it takes all of them.

        `built_in`: a built-in profile is in force.
        """
        simpler = self._search.simpler(settings, built_in)
        if simpler is None:
            return None
        proposal, names = simpler
        return replace(proposal, why=f"{FEWER_CHANGES}{', '.join(names)}, worth nothing by what is known")

    def trust(self) -> Dict[str, Tuple[float, ...]]:
        """Metric -> how far each prior was right about it: 1 as predicted, 0 of no use."""
        return {name: scales for name, scales in self._search.safe_optimiser.trust().items() if name != PREFERENCE}

    def explained(self, misses: bool, curves: bool = False) -> Optional[Explained]:
        """Say what was learnt (`search/explanation.py`), around the best: far from it little was tried."""
        if self._search.told == 0:
            return None
        return explained(self._search, self._slo, misses, self.best(), curves)
