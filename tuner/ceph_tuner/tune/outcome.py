"""What a tuning run is asked to do, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.goals.front import Front, front_of
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import Candidate, RankingChoice
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Run, Trial, TrialBudget, at_fault, candidates_of, opening_runs
from ceph_tuner.core.knobs.releases import Release, Settings
from ceph_tuner.core.knobs.settings import moves_alone
from ceph_tuner.optimise.contract import SearchVerdict


@dataclass(frozen=True)
class TuneTask:
    """What is to be tuned, and within which means."""

    slo: Slo
    release: Release
    in_force: Settings
    """As the search has it: may be rounded, and lowered to what a custom profile may reserve."""
    profile_in_force: Optional[str]
    """Name of the built-in profile in force; None for a custom one."""
    budget: TrialBudget = field(default_factory=TrialBudget)
    write_back: bool = True
    compare: bool = False
    """Whether the profiles are measured up front, whatever they do: for comparison."""

    @property
    def opening(self) -> List[Run]:
        """What is measured before the search."""
        return opening_runs(self.release.profiles if self.compare else {}, self.profile_in_force)

    def moves(self, settings: Settings) -> Settings:
        """Give what of these settings is written: not what is in force."""
        return moves_alone(settings, self.in_force, self.release)

    @property
    def most_runs(self) -> int:
        """Windows that are measured where nothing ends the search before its last trial."""
        first_runs, budget = self.opening, self.budget
        again = budget.most_finalists + 1 + (len(first_runs) > 1)
        # one trial more: the best with fewer changes
        return len(first_runs) + budget.trials + 1 + again * budget.repeats + self.write_back


@dataclass(frozen=True)
class TuneOutcome:
    """What a tuning run came to."""

    slo: Slo
    trials: List[Trial]
    baseline: Mapping[str, float]
    choice: RankingChoice
    settings: Settings
    """Of the winner, whole; empty where the settings in force won."""
    moves: Settings
    """Of these, what is written; all else stays as it is, a built-in profile too where none of its values moves."""
    best_built_in: Optional[Candidate]
    written: bool
    verdict: SearchVerdict
    """Why the search ended."""
    trust: Mapping[str, Tuple[float, ...]] = field(default_factory=dict)
    """Metric -> how far each model that was believed beforehand was right."""
    lessons: int = 0
    """Windows of earlier runs that were told to the search."""
    check: Optional[Trial] = None
    """The window measured after the winner was written back."""
    withdrawn: str = ""
    """Why a winner that was written back was taken back again."""

    @property
    def judge(self) -> Judge:
        """By the SLO; relative bounds refer to the baseline."""
        return Judge(self.slo, self.baseline)

    @property
    def at_fault(self) -> List[str]:
        """Which hard objectives stand in the way, where nothing that was measured meets all."""
        return at_fault(self.judge, self.trials)

    @property
    def unsafe(self) -> List[Trial]:
        """Trials that broke a hard objective which they had to hold."""
        return [trial for trial in self.trials if trial.run.kind == "trial" and self.judge.broken(trial.means)]

    @property
    def front(self) -> Optional[Front[Candidate]]:
        """What was measured that nothing beats in two metrics at once; None where one is best in both."""
        return front_of(self.judge, candidates_of(self.trials))

    @property
    def misses_hard(self) -> bool:
        """Whether a hard objective is still missed."""
        return any(verdict.objective.hard and not verdict.met for verdict in self.choice.verdicts)

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        built_in, front = self.best_built_in, self.front
        return {
            "slo": self.slo.to_dict(),
            "winner": {
                **self.choice.to_dict(),
                "settings": dict(self.settings),
                "moves": dict(self.moves),
                "means": dict(self.choice.winner.means),
            },
            "best_built_in": None
            if built_in is None
            else {
                "label": built_in.label,
                "means": dict(built_in.means),
                "repeats": built_in.repeats,
                "verdicts": [v.to_dict() for v in self.judge.verdicts(built_in.means)],
            },
            "baseline": dict(self.baseline),
            "in_force": {"means": dict(self.choice.in_force.means), "repeats": self.choice.in_force.repeats},
            "search": {
                "state": self.verdict.state,
                "reason": self.verdict.reason,
                "at_fault": self.at_fault,
                "unsafe": [trial.run.label for trial in self.unsafe],
                "hopeless": [trial.run.label for trial in self.trials if trial.hopeless],
                "trust": {name: list(scales) for name, scales in self.trust.items()},
                "lessons": self.lessons,
            },
            "front": None if front is None else front.to_dict(),
            "written": self.written,
            "withdrawn": self.withdrawn,
            "check": None if self.check is None else self.check.to_dict(),
            "trials": [trial.to_dict() for trial in self.trials],
        }
