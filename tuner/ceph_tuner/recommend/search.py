"""From a question to a recommendation: built-in profiles, a search on the twin, the best again on fresh seeds.

Any `Optimiser` does the search. A batch is asked for at once, to be simulated side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import Candidate, Choice, choose, finalists
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import fitting_reservations, moved_knobs
from ceph_tuner.core.measure.sample import Measure, measured_once
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.optimise import Options
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort, SearchListener
from ceph_tuner.recommend.runs import Runs, StartedRuns, run_length_s
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.knob_search import KnobSearch
from ceph_tuner.search.optimiser import Optimiser, SettingsProposal
from ceph_tuner.search.space import KnobSpace, space_for
from ceph_tuner.search.transfer import Elsewhere, Here

SearchFor = Callable[[], Optimiser]
"""Makes an optimiser that knows nothing yet."""

_FRESH = 1_000_000
"""Seeds of the last runs begin here, far from those of the search."""


@dataclass(frozen=True)
class SearchedSettings:
    """What was simulated, and what came of it."""

    question: Question
    effort: SearchEffort
    run_s: float
    """Simulated seconds of a run, the settling included."""
    runs: int
    tried: Tuple[Prediction, ...]
    """Everything that the search saw, built-in profiles included, on the seeds of the search."""
    compared: Tuple[Prediction, ...]
    """The last round, what is in force first: on fresh seeds, or on those of the search where that was not reached."""
    choice: Choice
    confirmed: bool
    """Whether the numbers come from fresh seeds."""
    interrupted: bool = False
    space: Tuple[str, ...] = field(default=())
    learnt: Optional[KnobSearch] = None
    """The search itself, for explanations; None where another optimiser did it."""

    @property
    def before(self) -> Prediction:
        """What is in force."""
        return self.compared[0]

    @property
    def closest(self) -> Prediction:
        """The best of what was compared, by however little."""
        return next(entry for entry in self.compared if entry.label == self.choice.winner.label)

    @property
    def winner(self) -> Prediction:
        """What is recommended: what is in force, where nothing is better by more than chance."""
        return self.closest if self.choice.better else self.before

    @property
    def judge(self) -> Judge:
        """By the question's SLO; relative bounds refer to what is in force."""
        return Judge(self.question.slo, self.before.candidate.means)

    @property
    def built_in(self) -> List[Prediction]:
        """The release's own profiles, in its order."""
        names = self.question.model.release.profiles
        return [entry for name in names for entry in self.compared if entry.label == name]


def search(
    question: Question,
    effort: SearchEffort,
    report: SearchListener,
    processes: Optional[int] = None,
    search_for: Optional[SearchFor] = None,
    profiles_elsewhere: Sequence[Profile] = (),
) -> SearchedSettings:
    """Search, and choose. An interrupt ends it early with what is known; before anything is known it is raised.

    `profiles_elsewhere` are of other clusters: tried first where these are alike.
    Raises InputError for an objective that the twin has nothing to say about, and for knobs that cannot be searched.
    """
    refused = unpredictable(question)
    if refused:
        raise refused[0]
    profiles, model = profiles_of(question), question.model
    before, shards = fitting_reservations(question.before), model.osd.hardware.shards
    space = space_for(model.release, question.work, before, question.knobs, shards)
    site = Here(model.release, model.osd.hardware, model.osds, question.slo.work)
    transfer = Elsewhere(profiles_elsewhere, site, space)
    total = effort.seeds * (len(profiles) + effort.trials) + effort.fresh * (len(profiles) + effort.finalists)
    report.phase("preparing: compiles the model on its first use", 0, total)
    with Runs(effort, run_length_s(question.model, question.in_force, effort), processes) as runs:
        race = _Race(question, effort, report, runs, total)
        try:
            race.open(profiles)
            race.search(search_for or _search_for(question, space, effort, transfer))
            return race.end(space, interrupted=False)
        except KeyboardInterrupt:
            if not race.tried:
                raise
            return race.end(space, interrupted=True)


def fresh_seeds(effort: SearchEffort) -> range:
    """Seeds that the search never sees: those of the last round."""
    return range(_FRESH * effort.seed, _FRESH * effort.seed + effort.fresh)


def profiles_of(question: Question) -> Dict[str, Settings]:
    """What is compared with: what is in force first, then the release's other profiles; label -> settings."""
    name = question.profile_in_force
    before: Settings = {**question.kept, PROFILE: name} if name is not None else dict(question.in_force)
    profiles = {name or IN_FORCE: before}
    profiles.update({own: {**question.kept, PROFILE: own} for own in question.model.release.profiles if own != name})
    return profiles


class _Race:
    """What is known so far."""

    def __init__(
        self, question: Question, effort: SearchEffort, report: SearchListener, runs: Runs, total: int
    ) -> None:
        self._question, self._effort, self._report, self._runs, self._total = question, effort, report, runs, total
        self.tried: List[Prediction] = []
        self._last: List[Prediction] = []
        self._best: Optional[str] = None
        self._compared = 0
        self._learnt: Optional[KnobSearch] = None

    def open(self, profiles: Mapping[str, Settings]) -> None:
        """Simulate what is compared with."""
        self._phase("built-in profiles")
        self._compared = len(profiles)
        started = {label: self._start(settings) for label, settings in profiles.items()}
        for label, runs in started.items():
            self._take(Prediction(label, dict(profiles[label]), runs.collect(), errors=self._question.errors))

    def search(self, search_for: SearchFor) -> None:
        """Ask, simulate, tell."""
        optimiser = search_for()
        self._learnt = optimiser if isinstance(optimiser, KnobSearch) else None
        # the first of what is known is what is in force: relative bounds refer to it
        for prediction in self.tried:
            optimiser.tell(self._told(prediction.settings), _compared(prediction))
        trials = 0
        while trials < self._effort.trials:
            batch: List[Tuple[SettingsProposal, StartedRuns]] = []
            for _ in range(min(self._effort.batch, self._effort.trials - trials)):
                self._phase(f"search, settings {trials + len(batch) + 1} of {self._effort.trials}")
                proposal = optimiser.ask()
                if proposal is not None:
                    batch.append((proposal, self._start({**self._question.kept, **proposal.settings})))
            if not batch:
                break
            for proposal, started in batch:
                trials += 1
                settings = {**self._question.kept, **proposal.settings}
                trial = Prediction(f"trial {trials}", settings, started.collect(), proposal.why, self._question.errors)
                self._take(trial)
                optimiser.tell(proposal.settings, _compared(trial))
                self._phase(f"search, settings {trials} of {self._effort.trials}")

    def end(self, space: KnobSpace, interrupted: bool) -> SearchedSettings:
        """Run the best again on fresh seeds, unless interrupted, and choose."""
        compared = [*self.tried[: self._compared], *self._order(self.tried[self._compared :])[: self._effort.finalists]]
        confirmed = False
        if not interrupted:
            try:
                compared, confirmed = self._again(compared), True
            except KeyboardInterrupt:
                interrupted = True
        entries = [entry.candidate for entry in compared]
        in_force = self._told(compared[0].settings)
        moved = {entry.label: moved_knobs(entry.settings, in_force) for entry in compared}
        choice = choose(Judge(self._question.slo, entries[0].means), entries[0], entries[1:], moved)
        return SearchedSettings(
            self._question,
            self._effort,
            self._runs.seconds,
            self._runs.done,
            tuple(self.tried),
            tuple(compared),
            choice,
            confirmed,
            interrupted,
            space.free,
            self._learnt,
        )

    def _again(self, compared: Sequence[Prediction]) -> List[Prediction]:
        self._phase("the best again, on fresh seeds")
        seeds, model = fresh_seeds(self._effort), self._question.model
        started = [(entry, self._runs.start(model, entry.settings, seeds)) for entry in compared]
        predictions = []
        for entry, runs in started:
            predictions.append(replace(entry, runs=runs.collect()))
            self._phase("the best again, on fresh seeds")
        return predictions

    def _start(self, settings: Settings) -> StartedRuns:
        # the same seeds for all: what differs between settings is then not the placement of the PGs
        seeds = range(self._effort.seed, self._effort.seed + self._effort.seeds)
        return self._runs.start(self._question.model, settings, seeds)

    def _take(self, prediction: Prediction) -> None:
        self.tried.append(prediction)
        best = self._order(self.tried)[0]
        if best.label != self._best:
            self._best = best.label
            self._report.best(best)

    def _order(self, predictions: Sequence[Prediction]) -> List[Prediction]:
        """Best first."""
        by_label = {entry.label: entry for entry in predictions}
        candidates: List[Candidate] = [entry.candidate for entry in predictions]
        judge = Judge(self._question.slo, self.tried[0].candidate.means)
        return [by_label[entry.label] for entry in finalists(judge, candidates, len(candidates))]

    def _told(self, settings: Settings) -> Settings:
        """The nine values in place of a profile's name."""
        profile = self._question.model.release.profiles.get(str(settings.get(PROFILE)), {})
        return {**profile, **{name: value for name, value in settings.items() if name != PROFILE}}

    def _phase(self, text: str) -> None:
        self._report.phase(text, self._runs.done, self._total)


def _search_for(question: Question, space: KnobSpace, effort: SearchEffort, transfer: Elsewhere) -> SearchFor:
    designs = informed_designs(space, question.work)
    # a third of the trials looks everywhere: on the twin a wild setting costs nothing
    points = np.random.default_rng(effort.seed).random((max(0, effort.trials // 2 - len(designs)), space.size))
    designs += [SettingsProposal(space.decode([float(u) for u in point]), "drawn at random") for point in points]
    free = Options(safe_probability=0.0, first_step=0.25)
    before = fitting_reservations(question.before)
    return lambda: KnobSearch(space, question.slo, before, effort.seed, free, opening=designs, elsewhere=transfer)


def _compared(prediction: Prediction) -> Dict[str, Measure]:
    """Means alone: all settings run on the same seeds, so that the spread over these is nothing that they differ by."""
    return measured_once(prediction.candidate.means)


def unpredictable(question: Question) -> List[InputError]:
    """Give the objectives that no simulation of this cluster can answer, each with the reason."""
    found = []
    for objective in question.slo.objectives:
        kind = objective.metric.split(".")[0]
        if kind not in ("client", "recovery", "backfill", "scrub", "snaptrim") or objective.metric == "scrub.pgs_late":
            found.append(InputError(objective.text, "a metric that the twin does not predict", "it left out here"))
        elif kind not in question.work:
            expected = f"some {kind} there"
            found.append(InputError(objective.text, f"no {kind} in the description of the cluster", expected))
    return found
