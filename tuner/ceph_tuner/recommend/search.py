"""From a question to a recommendation: built-in profiles, a search on the twin, the best again on fresh seeds.

Any `Optimiser` does the search. A batch is asked for at once, to be simulated side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.front import Front, front_of
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import (
    LEAST_GAIN,
    Candidate,
    RankingChoice,
    choose,
    finalists,
    rank_by_bound,
    window_noise,
)
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import ChangeCost, change_cost, fitting_reservations, same_value, settings_key
from ceph_tuner.core.measure.metrics import work_of
from ceph_tuner.core.measure.sample import Measure, measured_once
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.optimise import Options
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort, SearchListener
from ceph_tuner.recommend.paired_effect import LEAST_PAIRS, fall_of_loss
from ceph_tuner.recommend.runs import Processes, Runs, StartedRuns, run_length_s
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.knob_search import KnobSearch
from ceph_tuner.search.optimiser import Optimiser, SettingsProposal
from ceph_tuner.search.space import KnobSpace, space_for
from ceph_tuner.search.transfer import Elsewhere, Here

SearchFor = Callable[[], Optimiser]
"""Makes an optimiser that knows nothing yet."""

_FRESH = 1_000_000
"""Seeds of the last runs begin here, far from those of the search."""

_SETTLED = 2
"""Batches in a row that gain next to nothing, and end the search."""


class WorkOver(InputError):
    """What an objective is about ends in the twin before a run counts."""


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
    """The last round, what is in force first: on fresh seeds, or on those of the search where that was not reached.

    What was surely beaten on the first of these has run on no others.
    """
    choice: RankingChoice
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
        return Judge(self.question.slo, self.before.means)

    @property
    def front(self) -> Optional[Front[Prediction]]:
        """What was found of the trade-off between two metrics, on the seeds of the search; None where there is none."""
        # the last round is on other seeds, and flatters nobody; as a whole the front is known on these alone
        return front_of(Judge(self.question.slo, self.tried[0].means), self.tried)

    def without_winner(self, because: str) -> SearchedSettings:
        """The choice among the others, which says why it is not the best one."""
        label = self.closest.label
        compared = tuple(entry for entry in self.compared if entry.label != label)
        choice = choice_among(self.question, compared)
        return replace(
            self, compared=compared, choice=replace(choice, reason=f"{choice.reason}; not {label}: {because}")
        )

    @property
    def built_in(self) -> List[Prediction]:
        """The release's own profiles, in its order."""
        names = self.question.model.release.profiles
        return [entry for name in names for entry in self.compared if entry.label == name]


def search(
    question: Question,
    effort: SearchEffort,
    report: SearchListener,
    processes: Processes = None,
    search_for: Optional[SearchFor] = None,
    profiles_elsewhere: Sequence[Profile] = (),
) -> SearchedSettings:
    """Search, and choose. An interrupt ends it early with what is known; before anything is known it is raised.

    `profiles_elsewhere` are of other clusters: tried first where these are alike.
    Raises InputError for an objective that the twin has nothing to say about, and for knobs that cannot be searched.
    """
    refusals = unpredictable(question)
    if refusals:
        raise refusals[0]
    profiles, model = profiles_of(question), question.model
    before, shards = fitting_reservations(question.before), model.osd.hardware.shards
    space = space_for(model.release, question.work, before, question.knobs, shards, model.osd.kind)
    site = Here(model.release, model.osd.hardware, model.osds, question.slo.work)
    transfer = Elsewhere(profiles_elsewhere, site, space)
    total = effort.seeds * (len(profiles) + effort.trials) + effort.fresh * (len(profiles) + effort.finalists)
    report.phase("preparing: compiles the model on its first use", 0, total)
    run_s = run_length_s(question.model, question.in_force, effort)
    with Runs(question, effort, run_s, processes) as runs:
        race = _Race(question, effort, report, runs, total)
        try:
            race.open(profiles)
            race.search(search_for or _search_for(question, space, effort, transfer))
            race.look_between(space)
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


def in_rounds(seeds: range, effort: SearchEffort) -> Tuple[range, range]:
    """Seeds that go first, as many as the search runs on, and those for what these leave undecided."""
    few = max(LEAST_PAIRS, effort.seeds)
    return seeds[:few], seeds[few:]


class _Race:
    """What is known so far."""

    def __init__(
        self, question: Question, effort: SearchEffort, report: SearchListener, runs: Runs, total: int
    ) -> None:
        self._question, self._effort, self._report, self._runs, self._total = question, effort, report, runs, total
        self.tried: List[Prediction] = []
        self._last: List[Prediction] = []
        self._best: Optional[str] = None
        self._first_trial = self._trials = 0
        self._learnt: Optional[KnobSearch] = None

    @property
    def _judge(self) -> Judge:
        """On the seeds of the search, beside what is in force there."""
        return Judge(self._question.slo, self.tried[0].means)

    def open(self, profiles: Mapping[str, Settings]) -> None:
        """Simulate what is compared with."""
        self._phase("built-in profiles")
        self._first_trial = len(profiles)
        runs_by_label = {label: self._start(settings) for label, settings in profiles.items()}
        # while these run: a second of imports that only the search needs
        import_module("ceph_tuner.optimise.optimiser")
        for label, runs in runs_by_label.items():
            self._take(Prediction(label, dict(profiles[label]), runs.collect(), errors=self._question.errors))
        for text, metric in wishes_of(self._question.slo):
            if not any(run.get(metric, 0.0) > 0 for entry in self.tried for run in entry.runs):
                gone = f"nothing of it is left once a run of the twin counts, after {self._runs.settle_s:.0f} s"
                raise WorkOver(text, gone, "more of that work in the description, or it left out here")

    def look_between(self, space: KnobSpace) -> None:
        """Simulate what lies between neighbours of the front that are far apart, for up to a quarter of the trials."""
        most = self._effort.trials // 4
        keys = {settings_key(entry.settings) for entry in self.tried}
        count = 0
        while count < most:
            front = front_of(self._judge, self.tried)
            batch: List[Tuple[str, Settings, StartedRuns]] = []
            for pair in front.gaps if front is not None else []:
                ends = [np.asarray(space.encode(_full_settings(entry.settings, self._question))) for entry in pair]
                settings = self._whole(space.decode(list((ends[0] + ends[1]) / 2)))
                if settings_key(settings) not in keys and len(batch) < min(self._effort.batch, most - count):
                    keys.add(settings_key(settings))
                    why = f"on the front between {pair[0].label} and {pair[1].label}"
                    batch.append((why, settings, self._start(settings)))
            if not batch:
                return
            self._phase("search, between neighbours of the front")
            for why, settings, runs in batch:
                count += 1
                self._trials += 1
                label = f"trial {self._trials}"
                self._take(Prediction(label, settings, runs.collect(), why, self._question.errors))

    def search(self, search_for: SearchFor) -> None:
        """Ask, simulate, tell."""
        optimiser = search_for()
        self._learnt = optimiser if isinstance(optimiser, KnobSearch) else None
        # the first of what is known is what is in force: relative bounds refer to it
        for prediction in self.tried:
            optimiser.tell(
                fitting_reservations(_full_settings(prediction.settings, self._question)), _measures(prediction)
            )
        while self._trials < self._effort.trials and not self._has_settled():
            batch: List[Tuple[SettingsProposal, StartedRuns]] = []
            for _ in range(min(self._effort.batch, self._effort.trials - self._trials)):
                self._phase(f"search, settings {self._trials + len(batch) + 1} of {self._effort.trials}")
                proposal = optimiser.ask()
                if proposal is not None:
                    batch.append((proposal, self._start(self._whole(proposal.settings))))
            if not batch:
                break
            for proposal, runs in batch:
                self._trials += 1
                settings = self._whole(proposal.settings)
                trial = Prediction(
                    f"trial {self._trials}", settings, runs.collect(), proposal.why, self._question.errors
                )
                self._take(trial)
                optimiser.tell(proposal.settings, _measures(trial))
                self._phase(f"search, settings {self._trials} of {self._effort.trials}")

    def _has_settled(self) -> bool:
        """Whether all is kept, and the models' last trials gained less than half of what would be worth a write."""
        judge, last = self._judge, _SETTLED * self._effort.batch
        if self._trials < self._effort.trials // 2 + last:
            return False
        misses_before, loss_before = min(judge.rank(entry.means) for entry in self.tried[:-last])
        _, loss = min(judge.rank(entry.means) for entry in self.tried)
        return not misses_before and loss_before - loss < LEAST_GAIN[False] / 2

    def end(self, space: KnobSpace, interrupted: bool) -> SearchedSettings:
        """Run the best again on fresh seeds, unless interrupted, and choose."""
        entrants = [
            *self.tried[: self._first_trial],
            *self._different(self._order(self.tried[self._first_trial :]))[: self._effort.finalists],
        ]
        is_confirmed = False
        if not interrupted:
            try:
                entrants, is_confirmed = self._again(entrants), True
            except KeyboardInterrupt:
                interrupted = True
        choice = choice_among(self._question, entrants)
        return SearchedSettings(
            self._question,
            self._effort,
            self._runs.seconds,
            self._runs.done,
            tuple(self.tried),
            tuple(entrants),
            choice,
            is_confirmed,
            interrupted,
            space.free,
            self._learnt,
        )

    def _again(self, entrants: Sequence[Prediction]) -> List[Prediction]:
        """On the first fresh seeds all of them, on the others those that may still win, and what is in force."""
        first, others = in_rounds(fresh_seeds(self._effort), self._effort)
        predictions = self._run_further([replace(entry, runs=()) for entry in entrants], first)
        going_on = self._may_win(predictions)
        further = self._run_further([entry for entry in predictions if entry.label in going_on], others)
        further_by_label = {entry.label: entry for entry in further}
        return [further_by_label.get(entry.label, entry) for entry in predictions]

    def _run_further(self, predictions: Sequence[Prediction], seeds: Sequence[int]) -> List[Prediction]:
        model = self._question.model
        started = [(entry, self._runs.start(model, entry.settings, seeds)) for entry in predictions]
        further = []
        for entry, runs in started:
            self._phase("the best again, on fresh seeds")
            further.append(entry.with_runs(runs.collect()))
        return further

    def _may_win(self, predictions: Sequence[Prediction]) -> List[str]:
        """Labels of those that are not surely worse than the best by what is worth a write; the first is in force.

        Nor than its bound: what has more room below a hard objective goes on while the best may yet miss that.
        """
        judge, best = Judge(self._question.slo, predictions[0].means), self._order(predictions)[0]
        least, noise = LEAST_GAIN[judge.rank(best.means)[0]], window_noise([entry.candidate for entry in predictions])

        def by_bound(entry: Prediction) -> Tuple[bool, float]:
            return rank_by_bound(judge, entry.candidate, noise, len(predictions[0].runs))

        return [
            entry.label
            for entry in predictions
            if entry in (predictions[0], best)
            or by_bound(entry) < by_bound(best)
            or fall_of_loss(judge, entry, best)[1] <= least
        ]

    def _start(self, settings: Settings) -> StartedRuns:
        # the same seeds for all: what differs between settings is then not the placement of the PGs
        seeds = range(self._effort.seed, self._effort.seed + self._effort.seeds)
        return self._runs.start(self._question.model, settings, seeds)

    def _whole(self, settings: Settings) -> Settings:
        """Settings of the space beside what stays: where none of the nine moves, the profile in force."""
        question, fitting = self._question, fitting_reservations(self._question.before)
        whole = {**question.kept, **settings}
        if any(name in settings and not same_value(str(settings[name]), str(fitting[name])) for name in MCLOCK_NINE):
            return whole
        return question.under_profile_in_force(whole)

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
        return [by_label[entry.label] for entry in finalists(self._judge, candidates, len(candidates))]

    def _different(self, predictions: Sequence[Prediction]) -> List[Prediction]:
        """Of those that do the same run for run, as they differ in nothing that matters here, the cheapest to reach."""
        by_runs: Dict[str, List[Prediction]] = {}
        for entry in predictions:
            by_runs.setdefault(repr(entry.runs), []).append(entry)
        return [min(alike, key=lambda entry: cost_of_change(self._question, entry)) for alike in by_runs.values()]

    def _phase(self, text: str) -> None:
        self._report.phase(text, self._runs.done, self._total)


def choice_among(question: Question, entrants: Sequence[Prediction]) -> RankingChoice:
    """Of those that went all runs, as what is in force did, which is the first: of fewer the worst is no worst."""
    most = len(entrants[0].runs)
    entries = [entry.candidate for entry in entrants if len(entry.runs) == most]
    costs = {entry.label: cost_of_change(question, entry) for entry in entrants}
    return choose(Judge(question.slo, entries[0].means), entries[0], entries[1:], costs)


def cost_of_change(question: Question, prediction: Prediction) -> ChangeCost:
    """What it takes to come to these settings from those in force."""
    in_force = _full_settings(next(iter(profiles_of(question).values())), question)
    return change_cost(prediction.settings, in_force, question.profile_in_force is not None)


def _full_settings(settings: Settings, question: Question) -> Settings:
    """The nine values in place of a profile's name."""
    profile = question.model.release.profiles.get(str(settings.get(PROFILE)), {})
    return {**profile, **{name: value for name, value in settings.items() if name != PROFILE}}


def _search_for(question: Question, space: KnobSpace, effort: SearchEffort, transfer: Elsewhere) -> SearchFor:
    designs = informed_designs(space, question.work)
    # a third of the trials looks everywhere: on the twin a wild setting costs nothing
    points = np.random.default_rng(effort.seed).random((max(0, effort.trials // 2 - len(designs)), space.size))
    designs += [SettingsProposal(space.decode([float(u) for u in point]), "drawn at random") for point in points]
    free = Options(safe_probability=0.0, first_step=0.25)
    before = fitting_reservations(question.before)
    return lambda: KnobSearch(space, question.slo, before, effort.seed, free, opening=designs, elsewhere=transfer)


def _measures(prediction: Prediction) -> Dict[str, Measure]:
    """Means alone: all settings run on the same seeds, so that the spread over these is nothing that they differ by."""
    return measured_once(prediction.means)


def wishes_of(slo: Slo) -> List[Tuple[str, str]]:
    """Text and metric of each objective, and of the goal."""
    wishes = [(objective.text, objective.metric) for objective in slo.objectives]
    return wishes + [(goal.text, goal.metric) for goal in (slo.goal,) if goal is not None]


def unpredictable(question: Question) -> List[InputError]:
    """Give the objectives, and the goal, that no simulation of this cluster can answer, each with the reason."""
    refusals = []
    for text, metric in wishes_of(question.slo):
        kind = work_of(metric)
        if kind not in ("client", "recovery", "backfill", "scrub", "snaptrim") or metric == "scrub.pgs_late":
            refusals.append(InputError(text, "a metric that the twin does not predict", "it left out here"))
            continue
        missing = kind if kind not in question.work else _operations_missing(metric, question)
        if missing:
            refusals.append(
                InputError(text, f"no {missing} in the description of the cluster", f"some {missing} there")
            )
    return refusals


def _operations_missing(metric: str, question: Question) -> str:
    """`client reads` or `client writes`, where the metric is about these alone and no client does them; else empty."""
    shares = [stream.read_share for stream in question.model.clients]
    if metric.startswith("client.read_") and not any(share > 0 for share in shares):
        return "client reads"
    if metric.startswith("client.write_") and not any(share < 1 for share in shares):
        return "client writes"
    return ""


def predictable(question: Question) -> Tuple[Optional[Slo], Tuple[str, ...]]:
    """Give what of the wishes a simulation can answer, None for no objective at all; and the others, as texts."""
    slo, left_out = question.slo, tuple(refusal.place for refusal in unpredictable(question))
    objectives = tuple(each for each in slo.objectives if each.text not in left_out)
    goal = slo.goal if slo.goal is None or slo.goal.text not in left_out else None
    return (replace(slo, objectives=objectives, goal=goal) if objectives else None), left_out
