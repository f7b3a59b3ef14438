"""A trial and what came of it, and what to measure next.

A tuning run goes through four stages: the settings in force (the baseline), and the release's built-in profiles where
they are wanted for comparison; the trials that the search asks for; the best candidates once more, in turns with the
settings in force and the best built-in profile; and the choice by means and upper bounds (`ranking.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.goals.judge import Judge, all_met
from ceph_tuner.core.goals.ranking import Candidate, RankingChoice, best_of, candidate, choose, finalists
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import change_cost
from ceph_tuner.core.measure.forecast_record import ForecastRecord
from ceph_tuner.core.measure.sample import Measure

KINDS = ("baseline", "profile", "trial", "repeat", "check")
IN_FORCE = "settings in force"
"""Label of the baseline."""
FEWER_CHANGES = "the best without "
"""How the reason of a trial begins that leaves out changes of the best one, which the search thinks worth nothing."""
NOT_MEASURED = "not measured: "
"""How the failure of a run begins that says nothing about its settings."""


@dataclass(frozen=True)
class Run:
    """Something to measure: settings under a label. Empty settings mean those in force."""

    kind: str
    label: str
    settings: Settings
    why: str = ""
    expected: Mapping[str, Tuple[float, float, float]] = field(default_factory=dict)
    """What the search said of it beforehand: metric -> the middle, and the ends of its 95%."""
    forecast: Optional[ForecastRecord] = None
    """What the twin said of it beforehand, where the cluster is described to one."""

    @property
    def fewer_changes(self) -> bool:
        """Whether it is the best one without changes that seem worth nothing."""
        return self.kind == "trial" and self.why.startswith(FEWER_CHANGES)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind (={self.kind!r}) must be one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Trial:
    """A run that was carried out: measured, or failed with the reason and what was seen until then.

    `hopeless` ones were well, and ended early because more of them would have been wasted: their measures count.
    """

    run: Run
    at: float
    seconds: float
    measures: Mapping[str, Measure] = field(default_factory=dict)
    failed: Optional[str] = None
    notes: Tuple[str, ...] = ()
    hopeless: bool = False
    device_class: str = ""
    """The class whose automatic mode made it, and which the measures are of; empty: the whole cluster."""

    @property
    def means(self) -> Dict[str, float]:
        """Mean of each metric that was seen."""
        return {name: measure.mean for name, measure in self.measures.items()}

    @property
    def unmeasured(self) -> bool:
        """Whether it failed for reasons that say nothing about its settings: its load did not come up."""
        return self.failed is not None and self.failed.startswith(NOT_MEASURED)

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the history and for programs."""
        return {
            "kind": self.run.kind,
            "label": self.run.label,
            "settings": dict(self.run.settings),
            "why": self.run.why,
            "expected": {name: list(interval) for name, interval in self.run.expected.items()},
            "at": self.at,
            "seconds": self.seconds,
            "measures": {name: measure.to_list() for name, measure in self.measures.items()},
            "forecast": None if self.run.forecast is None else self.run.forecast.to_dict(),
            "failed": self.failed,
            "notes": list(self.notes),
            "hopeless": self.hopeless,
            "device_class": self.device_class,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Trial:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        run = Run(
            str(document["kind"]),
            str(document["label"]),
            dict(document["settings"]),
            str(document.get("why", "")),
            {
                str(name): (float(middle), float(low), float(high))
                for name, (middle, low, high) in dict(document.get("expected", {})).items()
            },
            ForecastRecord.from_dict(document.get("forecast")),
        )
        measures = {str(name): Measure.from_list(row) for name, row in dict(document["measures"]).items()}
        failure = document.get("failed")
        return cls(
            run,
            float(document["at"]),
            float(document["seconds"]),
            measures,
            None if failure is None else str(failure),
            tuple(str(note) for note in document.get("notes", ())),
            bool(document.get("hopeless", False)),
            str(document.get("device_class", "")),
        )

    @classmethod
    def remembered(cls, record: Mapping[str, Any]) -> Optional[Trial]:
        """Read a record of the history; None for what another version wrote: the past is not worth an error."""
        try:
            return cls.from_dict(record)
        except MISREAD:
            return None


@dataclass(frozen=True)
class TrialBudget:
    """How much may be measured."""

    trials: int = 8
    finalists: int = 2
    repeats: int = 1
    """How often the finalists, and what they are held against, are measured again."""
    hours: Optional[float] = None
    """Time for all of it; None: as long as it takes."""

    @property
    def most_finalists(self) -> int:
        """Tried settings that are measured again, the best with fewer changes among them."""
        return self.finalists + 1

    def __post_init__(self) -> None:
        if self.trials < 1 or self.finalists < 1 or self.repeats < 0:
            raise ValueError(
                f"trials (={self.trials}) and finalists (={self.finalists}) must be at least 1, "
                f"repeats (={self.repeats}) at least 0"
            )
        if self.hours is not None and not self.hours > 0:
            raise ValueError(f"hours (={self.hours}) must be above 0")


def opening_runs(profiles: Mapping[str, Settings], profile_in_force: Optional[str]) -> List[Run]:
    """Give the runs before the search: the baseline, then each of these profiles that is not in force already."""
    runs = [Run("baseline", IN_FORCE, {}, profile_in_force or "")]
    runs += [Run("profile", name, {PROFILE: name}) for name in profiles if name != profile_in_force]
    return runs


def candidates_of(trials: Sequence[Trial], kinds: Sequence[str] = KINDS) -> List[Candidate]:
    """Group trials by label, each with the mean of its repeats; what failed once is out. `kinds` is of the first."""
    groups: Dict[str, List[Trial]] = {}
    for trial in trials:
        if not trial.unmeasured:
            groups.setdefault(trial.run.label, []).append(trial)
    return [
        candidate(
            label,
            [trial.means for trial in group],
            [{name: measure.deviation for name, measure in trial.measures.items()} for trial in group],
        )
        for label, group in groups.items()
        if group[0].run.kind in kinds and all(trial.failed is None for trial in group)
    ]


def choice_among(judge: Judge, trials: Sequence[Trial], in_force: Settings) -> Optional[RankingChoice]:
    """Choose among all that was measured; None where what is in force was not. `in_force`: its settings."""
    candidates = candidates_of(trials)
    now = next((entry for entry in candidates if entry.label == IN_FORCE), None)
    if now is None:
        return None
    # the baseline's reason is the built-in profile in force
    built_in = any(trial.run.why for trial in trials if trial.run.kind == "baseline")
    costs = {trial.run.label: change_cost(trial.run.settings, in_force, built_in) for trial in trials}
    return choose(judge, now, [entry for entry in candidates if entry is not now], costs)


def finalist_labels(
    judge: Judge, trials: Sequence[Trial], budget: TrialBudget, favourite: Optional[str] = None
) -> List[str]:
    """Label the tried settings that are worth measuring again, the best first; none that does no better than before.

    `favourite`: a label that the search's models think best, luck aside. The best with fewer changes comes beside the
    others, where it was tried.
    """
    candidates, (now,) = candidates_of(trials, ("trial",)), candidates_of(trials, ("baseline",))
    before = judge.rank(now.means)
    better = [entry for entry in candidates if judge.rank(entry.means) < before]
    labels = [entry.label for entry in better if entry.label == favourite]
    best = finalists(judge, better, budget.finalists)
    labels += [entry.label for entry in best if entry.label not in labels][: budget.finalists - len(labels)]
    simpler = {trial.run.label for trial in trials if trial.run.fewer_changes}
    return labels + [entry.label for entry in better if entry.label in simpler and entry.label not in labels]


def repeat_runs(
    judge: Judge, trials: Sequence[Trial], budget: TrialBudget, favourite: Optional[str] = None
) -> List[Run]:
    """Give the runs that decide: the finalists again, in turns with what exists already.

    That is what is in force, and the best profile that was measured. In turns, each round in another order, so that a
    drift of the load meets all of them alike. Nothing where no tried settings did better than what is in force.
    """
    labels = finalist_labels(judge, trials, budget, favourite)
    if not labels:
        return []
    best_profile = best_of(judge, candidates_of(trials, ("profile",)))
    labels += [IN_FORCE, *([best_profile.label] if best_profile else [])]
    first = {trial.run.label: trial.run for trial in reversed(trials)}
    runs = [replace(first[label], kind="repeat") for label in labels]
    turns = [number % len(runs) for number in range(budget.repeats)]
    return [run for turn in turns for run in runs[turn:] + runs[:turn]]


def standing(judge: Judge, trials: Sequence[Trial], place: int) -> Optional[Tuple[bool, float]]:
    """Give the rank of the settings in that place, 1 being the best so far; None where there are fewer."""
    leaders = finalists(judge, candidates_of(trials), place)
    return judge.rank(leaders[-1].means) if len(leaders) == place else None


def at_fault(judge: Judge, trials: Sequence[Trial]) -> List[str]:
    """Say which hard objectives stand in the way: those that nothing met, else those that were not met together.

    Empty where something that was measured meets all of them.
    """
    entries = candidates_of(trials)
    tables = {entry.label: judge.verdicts(entry.means) for entry in entries}
    nearest = best_of(judge, entries)
    if nearest is None or all_met(tables[nearest.label], hard_only=True):
        return []
    alone = []
    for place, objective in enumerate(judge.objectives):
        margins = [(table[place].margin, label) for label, table in tables.items()]
        margin, label = max(((own, label) for own, label in margins if own is not None), default=(0.0, ""))
        if objective.hard and margin < 0:
            alone.append(f"{objective.text} was met by nothing: {label} came nearest, {-100 * margin:.0f}% off")
    hard = [verdict for verdict in tables[nearest.label] if verdict.objective.hard]
    met_names = " and ".join(verdict.objective.metric for verdict in hard if verdict.met)
    return alone or [
        f"{verdict.objective.text} was not met together with {met_names}: {nearest.label} came nearest, "
        f"{-100 * verdict.margin:.0f}% off"
        for verdict in hard
        if verdict.margin is not None and verdict.margin < 0
    ]


def best_built_in(judge: Judge, trials: Sequence[Trial]) -> Optional[Candidate]:
    """Give the best of the release's own profiles, the one in force included."""
    entries = candidates_of(trials, ("profile",))
    base = [trial for trial in trials if trial.run.kind == "baseline"]
    if base and base[0].run.why:
        # the settings in force are a built-in profile: its name says more
        of_baseline = candidates_of([t for t in trials if t.run.label == IN_FORCE])
        entries += [replace(entry, label=base[0].run.why) for entry in of_baseline]
    return best_of(judge, entries)
