"""A trial and what came of it, and what to measure next.

A tuning run goes through four stages: the settings in force (the baseline) and the release's built-in profiles; the
trials that the search asks for; the best candidates once more, side by side with the best built-in profile; and the
choice by the mean (`winner.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.knobs import PROFILE
from ceph_tuner.releases import Settings
from ceph_tuner.sample import Measure
from ceph_tuner.slo import Slo
from ceph_tuner.winner import Candidate, best_of, candidate, finalists

KINDS = ("baseline", "profile", "trial", "repeat", "check")
IN_FORCE = "settings in force"
"""Label of the baseline."""


@dataclass(frozen=True)
class Run:
    """Something to measure: settings under a label. Empty settings mean those in force."""

    kind: str
    label: str
    settings: Settings
    why: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind (={self.kind!r}) must be one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Trial:
    """A run that was carried out: measured, or failed with the reason and what was seen until then."""

    run: Run
    at: float
    seconds: float
    measures: Mapping[str, Measure] = field(default_factory=dict)
    failed: Optional[str] = None
    notes: Tuple[str, ...] = ()

    @property
    def means(self) -> Dict[str, float]:
        """Mean of each metric that was seen."""
        return {name: measure.mean for name, measure in self.measures.items()}

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the history and for programs."""
        return {
            "kind": self.run.kind,
            "label": self.run.label,
            "settings": dict(self.run.settings),
            "why": self.run.why,
            "at": self.at,
            "seconds": self.seconds,
            "measures": {name: [m.mean, m.deviation, m.count] for name, m in self.measures.items()},
            "failed": self.failed,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Trial:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        run = Run(
            str(document["kind"]), str(document["label"]), dict(document["settings"]), str(document.get("why", ""))
        )
        measures = {
            str(name): Measure(float(mean), float(deviation), int(count))
            for name, (mean, deviation, count) in document["measures"].items()
        }
        failed = document.get("failed")
        return cls(
            run,
            float(document["at"]),
            float(document["seconds"]),
            measures,
            None if failed is None else str(failed),
            tuple(str(note) for note in document.get("notes", ())),
        )


@dataclass(frozen=True)
class Budget:
    """How much may be measured. `repeats` is how often the finalists are measured again."""

    trials: int = 8
    finalists: int = 2
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.trials < 1 or self.finalists < 1 or self.repeats < 0:
            raise ValueError(
                f"trials (={self.trials}) and finalists (={self.finalists}) must be at least 1, "
                f"repeats (={self.repeats}) at least 0"
            )


def opening_runs(profiles: Mapping[str, Settings], profile_in_force: Optional[str]) -> List[Run]:
    """Give the runs before the search: the baseline, then each built-in profile that is not in force already."""
    runs = [Run("baseline", IN_FORCE, {}, profile_in_force or "")]
    runs += [Run("profile", name, {PROFILE: name}) for name in profiles if name != profile_in_force]
    return runs


def candidates_of(trials: Sequence[Trial], kinds: Sequence[str] = KINDS) -> List[Candidate]:
    """Group trials by label, each with the mean of its repeats; what failed once is out. `kinds` is of the first."""
    groups: Dict[str, List[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.run.label, []).append(trial)
    return [
        candidate(label, [trial.means for trial in group])
        for label, group in groups.items()
        if group[0].run.kind in kinds and all(trial.failed is None for trial in group)
    ]


def repeat_runs(slo: Slo, baseline: Mapping[str, float], trials: Sequence[Trial], budget: Budget) -> List[Run]:
    """Give the runs that decide: the best tried settings again, interleaved with the best of what exists already.

    Interleaved, so that a drift of the load meets all of them alike.
    """
    tried = finalists(slo, baseline, candidates_of(trials, ("trial",)), budget.finalists)
    known = best_of(slo, baseline, candidates_of(trials, ("baseline", "profile")))
    first = {trial.run.label: trial.run for trial in reversed(trials)}
    if not tried:
        return []
    chosen = [*(entry.label for entry in tried), *([known.label] if known else [])]
    runs = [Run("repeat", label, first[label].settings, first[label].why) for label in chosen]
    return runs * budget.repeats


def best_built_in(slo: Slo, baseline: Mapping[str, float], trials: Sequence[Trial]) -> Optional[Candidate]:
    """Give the best of the release's own profiles, the one in force included."""
    entries = candidates_of(trials, ("profile",))
    base = [trial for trial in trials if trial.run.kind == "baseline"]
    if base and base[0].run.why:
        # the settings in force are a built-in profile: its name says more
        of_baseline = candidates_of([t for t in trials if t.run.label == IN_FORCE])
        entries += [Candidate(base[0].run.why, entry.means, entry.repeats) for entry in of_baseline]
    return best_of(slo, baseline, entries)
