"""Settings for a cluster that is only described: searched on the twin, confirmed on fresh seeds, explained.

Question        the described cluster, what is in force there, what is wanted
Effort          how much is simulated
Prediction      what settings would do: one window's means for each seed
Report          hears how it goes
recommend()     question in, recommendation out (`recommendation.py`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import List, Mapping, Optional, Protocol, Sequence, Tuple

from ceph_tuner.core.goals.ranking import Candidate, candidate
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel

IN_FORCE = "in force"
"""Label of settings that are in force and no built-in profile."""

COVERAGE = 0.9
"""Of like clusters, the share that an interval shall hold."""


Error = Tuple[float, float]
"""Scale of a t distribution of logarithms, and its degrees of freedom."""


@dataclass(frozen=True)
class Question:
    """What is asked. `in_force` holds what differs from the release's defaults, the nine values as fractions."""

    model: ClusterModel
    slo: Slo
    in_force: Settings = field(default_factory=dict)
    knobs: Optional[Tuple[str, ...]] = None
    """Knobs to search; None: those of the work that is described."""
    errors: Mapping[str, Error] = field(default_factory=dict)
    """Metric -> the twin's own error, where a fit has found it."""
    target: str = "osd"
    """What the settings are written to."""
    measured_means: Mapping[str, float] = field(default_factory=dict)
    """Means of a window under this work and what is in force, where one is known."""
    switched: bool = False
    """Whether settings come while the work goes on, as a page of the book does: runs begin under what is in force."""

    @property
    def switched_from(self) -> Optional[Settings]:
        """What is in force as a run begins; None where that is the settings of the run."""
        return self.in_force if self.switched else None

    @property
    def profile_in_force(self) -> Optional[str]:
        """Name of the built-in profile in force; None for a custom one."""
        name = str(self.in_force.get(PROFILE, self.model.release.default_profile))
        return name if name in self.model.release.profiles else None

    @property
    def kept(self) -> Settings:
        """What is in force beside the scheduler's values: it stays unless a candidate says otherwise."""
        return {name: value for name, value in self.in_force.items() if name != PROFILE and name not in MCLOCK_NINE}

    @property
    def before(self) -> Settings:
        """Everything in force, the nine values written out."""
        return completed(self.in_force, self.model.release)

    def under_profile_in_force(self, settings: Settings) -> Settings:
        """Settings with the profile in force in place of the nine: by its name, or a custom one to the last digit."""
        profile, before = self.profile_in_force, self.before
        nine: Settings = {name: before[name] for name in MCLOCK_NINE} if profile is None else {PROFILE: profile}
        return {**{name: value for name, value in settings.items() if name not in (PROFILE, *MCLOCK_NINE)}, **nine}

    @property
    def work(self) -> List[str]:
        """Kinds of work that the model has."""
        model = self.model
        kinds = {
            "client": model.clients,
            "recovery": model.recovery,
            "backfill": [work for work in model.recovery if not work.degraded],
            "scrub": model.scrub,
            "snaptrim": model.snaptrim,
        }
        return [kind for kind, parts in kinds.items() if parts]


@dataclass(frozen=True)
class SearchEffort:
    """How much is simulated. Nothing of it depends on the machine, so that a seed gives the same answer everywhere."""

    trials: int = 32
    """Settings that the search tries at most, beside the built-in profiles."""
    batch: int = 4
    """Settings that are asked for at a time, to be simulated side by side."""
    seeds: int = 4
    """Runs of each of them: other placements of the PGs, other chance. Which PGs recover or are scrubbed within a run
    does more to its result than its length."""
    finalists: int = 4
    """Settings that are run again on fresh seeds, beside the built-in profiles and what is in force."""
    fresh: int = 12
    """Seeds of that: the winner is chosen, and every number in the answer comes, from these alone. What is surely
    beaten on the first `seeds` of them runs on no more."""
    seed: int = 1
    events: Optional[float] = None
    """Events that a run is to have; the simulated time follows from it. None: by the drives (`EVENTS`)."""
    shortest_s: float = 4.0
    longest_s: float = 60.0
    settle_share: float = 0.25

    def __post_init__(self) -> None:
        for name in ("trials", "batch", "seeds", "finalists", "fresh"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}(={getattr(self, name)}) must be 1 or more")


@dataclass(frozen=True)
class Prediction:
    """What settings would do. `runs` holds the metrics' means, one mapping for each seed."""

    label: str
    settings: Settings
    runs: Tuple[Mapping[str, float], ...]
    why: str = ""
    errors: Mapping[str, Error] = field(default_factory=dict)

    def with_runs(self, runs: Sequence[Mapping[str, float]]) -> Prediction:
        """The same with more runs, on the seeds after those that it has."""
        return replace(self, runs=(*self.runs, *runs))

    @property
    def candidate(self) -> Candidate:
        """As the choice of a winner takes it."""
        return candidate(self.label, self.runs)

    @property
    def means(self) -> Mapping[str, float]:
        """Mean of each metric over the runs."""
        return self.candidate.means

    def values(self, metric: str) -> List[float]:
        """The runs' means of a metric, where they have it."""
        return [run[metric] for run in self.runs if metric in run]

    def interval(self, metric: str) -> Optional[Tuple[float, float]]:
        """Where COVERAGE of clusters that fit the description fall, by the spread over seeds; None below two runs.

        Student's prediction interval, of the logarithms where nothing is 0: rates and times are skewed. The twin's own
        error is in it where `errors` has it.
        """
        values = self.values(metric)
        if len(values) < 2:
            return None
        from scipy.special import stdtrit  # who only asks for `Effort` or a question does not wait for scipy

        positive = min(values) > 0
        samples = [math.log(value) for value in values] if positive else values
        mean = sum(samples) / len(samples)
        reach = (
            float(stdtrit(len(samples) - 1, (1 + COVERAGE) / 2)) * _deviation(samples) * math.sqrt(1 + 1 / len(samples))
        )
        if positive and metric in self.errors:
            scale, freedom = self.errors[metric]
            reach = math.hypot(reach, float(stdtrit(freedom, (1 + COVERAGE) / 2)) * scale)
        low, high = mean - reach, mean + reach
        return (math.exp(low), math.exp(min(high, 700.0))) if positive else (max(0.0, low), high)


class SearchListener(Protocol):
    """Hears how it goes."""

    def phase(self, text: str, done: int, total: int) -> None:
        """So many of all runs are done, and this comes next."""

    def best(self, prediction: Prediction) -> None:
        """The best so far has changed."""


def changed(settings: Settings, question: Question) -> Settings:
    """Of settings, what differs from what is in force (a named profile as such), in the order to write them."""
    before, release = question.before, question.model.release
    profile = settings.get(PROFILE, "custom")
    nine = profile == "custom" and any(settings.get(name) != before[name] for name in MCLOCK_NINE if name in settings)
    changes: Settings = {PROFILE: "custom"} if nine else {}
    if profile not in ("custom", question.profile_in_force):
        changes[PROFILE] = profile
    for name in KNOBS:
        if name in MCLOCK_NINE and nine:
            changes[name] = settings[name]
        elif name in settings and name != PROFILE and name not in MCLOCK_NINE:
            value_before = before.get(name, KNOBS[name].default(release))
            changes.update({name: settings[name]} if settings[name] != value_before else {})
    return changes


def _deviation(values: List[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
