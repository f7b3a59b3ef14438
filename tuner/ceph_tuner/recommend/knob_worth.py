"""What each knob of the winner is worth, by the winner without it: with the knob as it is in force.

Both run on the same seeds, which neither the search nor the choice of the winner has used: on two, where these leave
doubt on as many as the search ran on, and then on as many as the choice did. A knob is worth nothing, and goes back,
where no metric of an objective or of the goal gets worse without it by `NEAR` or more, nor by more than chance unless
that is less than `NEAR`. Several such knobs may stand in for each other: what is put back together is judged together,
on the fresh seeds of the choice, and by half where it is too much. Then the knobs that are left are weighed again.

What the search itself thinks worth nothing is tried first, and together: where that is so, none of it is weighed alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.ranking import RankingChoice, choose
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, Value
from ceph_tuner.core.knobs.settings import check_settings, fitting_reservations, same_value, settings_key
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.recommend import Prediction, Question, SearchListener
from ceph_tuner.recommend.paired_effect import LEAST_PAIRS, PairedEffect, paired_effects
from ceph_tuner.recommend.runs import Processes, Runs, StartedRuns
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds, in_rounds

NEAR = 0.02
"""Share of a metric that is nothing on a real cluster: windows of the same settings differ by five times as much."""


@dataclass(frozen=True)
class KnobWorth:
    """One knob that the winner moves."""

    name: str
    in_force: Value
    value: Value
    """The winner's."""
    without: Tuple[PairedEffect, ...] = ()
    """What each objective's metric becomes without it: before is with the knob, after is with it as in force."""
    beside: Tuple[str, ...] = ()
    """Knobs that go back with it: those that the search thought worth nothing as well, or those without which
    reservations would be above 1, or a limit below its reservation."""
    put_back: bool = False
    """Whether it was worth nothing, and the recommendation leaves it as it is in force."""

    @property
    def names(self) -> Tuple[str, ...]:
        """All that go back."""
        return (self.name, *self.beside)


def weighed(
    search_result: SearchedSettings, listener: SearchListener, processes: Processes = None
) -> Tuple[SearchedSettings, Tuple[KnobWorth, ...]]:
    """Weigh the winner's knobs; give what is recommended without those worth nothing, and the worth of all of them.

    Nothing is weighed where nothing is better, where the winner is a built-in profile, and before the fresh seeds.
    """
    if (
        not (search_result.confirmed and search_result.choice.better)
        or moved_knobs_of(search_result.winner, search_result.question) == []
    ):
        return search_result, ()
    with Runs(search_result.question, search_result.effort, search_result.run_s, processes) as runs:
        trials = _KnobTrials(search_result, listener, runs)
        simpler = trials.as_thought()
        put_back = [] if simpler is None else list(simpler.worths)
        while True:
            if simpler is not None:
                others = (entry for entry in search_result.compared if entry.label != simpler.winner.label)
                search_result = replace(search_result, compared=(*others, simpler.winner), choice=simpler.choice)
            worths = trials.of(search_result.winner)
            simpler = trials.simpler(search_result.winner, worths)
            if simpler is None:
                worths = trials.reported(search_result.winner)
                return replace(search_result, runs=search_result.runs + runs.done), (*worths, *put_back)
            put_back += simpler.worths


def moved_knobs_of(prediction: Prediction, question: Question) -> List[str]:
    """Knobs by which settings differ from what is in force; none for a built-in profile, which is one whole.

    What another of them needs beside it is a part of that one.
    """
    settings, is_built_in = prediction.settings, prediction.settings.get(PROFILE, "custom") != "custom"
    knob_names = [
        name for name in KNOBS if name in settings and name != PROFILE and not (is_built_in and name in MCLOCK_NINE)
    ]
    moves = [name for name in knob_names if _is_moved(name, settings[name], question)]
    needs = _needs(moves, question)
    return [name for name in moves if name not in needs]


def worth_nothing(without: Sequence[PairedEffect], metrics: Sequence[str]) -> bool:
    """Whether no metric gets worse by `NEAR`, nor by less and yet surely; one that is no longer seen has got worse."""
    return len(without) == len(set(metrics)) and not any(_is_worse(effect) for effect in without)


def leaves_doubt(without: Sequence[PairedEffect], metrics: Sequence[str]) -> bool:
    """Whether more runs may tell otherwise: no metric is surely worse by `NEAR`, and not all are surely not."""
    return not surely_worse(without, metrics) and any(_worse(effect)[2] >= 1 + NEAR for effect in without)


def surely_worse(without: Sequence[PairedEffect], metrics: Sequence[str]) -> bool:
    """Whether a metric is surely worse by `NEAR`, or not seen any more."""
    return len(without) < len(set(metrics)) or any(_worse(effect)[1] > 1 + NEAR for effect in without)


def _is_worse(effect: PairedEffect) -> bool:
    mean, low, high = _worse(effect)
    return mean >= 1 + NEAR or (low > 1 and high >= 1 + NEAR)


def _worse(effect: PairedEffect) -> Tuple[float, float, float]:
    """How many times worse the metric is, and the ends of the interval: below 1 it is better."""
    if effect.ratio is None:
        times = 1.0 if effect.before == effect.after else math.inf
        return times, times, times
    mean, low, high = effect.ratio
    return (mean, low, high) if METRICS[effect.metric].lower_is_better else (1 / mean, 1 / high, 1 / low)


class _Simpler(NamedTuple):
    """A winner with fewer knobs."""

    winner: Prediction
    choice: RankingChoice
    worths: Tuple[KnobWorth, ...]
    """Of the knobs that it leaves as they are in force."""


class _KnobTrials:
    """Simulates the winner without some of its knobs."""

    def __init__(self, search_result: SearchedSettings, listener: SearchListener, runs: Runs) -> None:
        self._search_result, self._listener, self._runs = search_result, listener, runs
        effort = search_result.effort
        fresh = fresh_seeds(effort)
        self._later = range(fresh.stop, fresh.stop + effort.fresh)
        self._fresh, self._few = in_rounds(fresh, effort), len(in_rounds(fresh, effort)[0])
        self._runs_by_settings: Dict[str, Tuple[Mapping[str, float], ...]] = {}
        """Runs on the later seeds, in their order."""
        self._metrics = search_result.question.slo.metrics

    def of(self, winner: Prediction, first: int = LEAST_PAIRS) -> Tuple[KnobWorth, ...]:
        """Weigh each knob that the winner moves, on the first later seeds; on more those of which these leave doubt."""
        question = self._search_result.question
        groups = doubtful = [_group(name, winner, question) for name in moved_knobs_of(winner, question)]
        without: Dict[Tuple[str, ...], Tuple[PairedEffect, ...]] = {}
        for count in sorted({min(first, self._few), self._few, len(self._later)}):
            if not doubtful:
                break
            settings = [_without(group, winner.settings, question) for group in doubtful]
            before, *after = self._on_later_seeds([winner.settings, *settings], count)
            without.update((group, paired_effects(self._metrics, before, each)) for group, each in zip(doubtful, after))
            doubtful = [group for group in doubtful if leaves_doubt(without[group], self._metrics)]
        return tuple(
            KnobWorth(group[0], _in_force(group[0], question), winner.settings[group[0]], without[group], group[1:])
            for group in groups
        )

    def reported(self, winner: Prediction) -> Tuple[KnobWorth, ...]:
        """As `of`, for people: with an interval of as many pairs as the search had runs, or more."""
        return self.of(winner, self._few)

    def _on_later_seeds(self, settings: Sequence[Settings], count: int) -> List[Prediction]:
        """So many runs of each; what was run before is not again."""
        settings_by_key = {settings_key(each): each for each in settings}
        started = {
            key: self._start(each, self._later[len(self._runs_by_settings.get(key, ())) : count])
            for key, each in settings_by_key.items()
        }
        for number, (key, runs) in enumerate(started.items()):
            self._listener.phase("what each knob is worth", number, len(started))
            self._runs_by_settings[key] = (*self._runs_by_settings.get(key, ()), *runs.collect())
        return [Prediction("", each, self._runs_by_settings[settings_key(each)]) for each in settings]

    def as_thought(self) -> Optional[_Simpler]:
        """Leave out together what the search thinks worth nothing; None where that is nothing, or worth something."""
        winner, question, learnt = self._search_result.winner, self._search_result.question, self._search_result.learnt
        built_in = question.profile_in_force is not None
        thought = None if learnt is None else learnt.simpler(winner.settings, built_in)
        moved = moved_knobs_of(winner, question)
        names = tuple(name for name in moved if thought is not None and name in thought[1])
        # one alone is weighed alone
        if len(names) < 2:
            return None
        self._listener.phase(f"without {len(names)} knobs that the search thinks worth nothing", 0, 1)
        prediction, choice = self._confirmation(winner, names)
        if choice is None:
            return None
        effects = paired_effects(self._metrics, winner, prediction)
        worths = tuple(
            KnobWorth(name, _in_force(name, question), winner.settings[name], effects, _others(name, names), True)
            for name in names
        )
        return _Simpler(prediction, choice, worths)

    def simpler(self, winner: Prediction, worths: Sequence[KnobWorth]) -> Optional[_Simpler]:
        """Put back as many of the knobs that are worth nothing as can be spared together; None where it is none."""
        groups = [worth.names for worth in worths if worth_nothing(worth.without, self._metrics)]
        while groups:
            names = tuple(dict.fromkeys(name for group in groups for name in group))
            self._listener.phase(f"without {len(names)} knobs that seem worth nothing", 0, 1)
            prediction, choice = self._confirmation(winner, names)
            if choice is not None:
                spared = tuple(replace(worth, put_back=True) for worth in worths if worth.name in names)
                return _Simpler(prediction, choice, spared)
            groups = groups[: len(groups) // 2]
        return None

    def _confirmation(self, winner: Prediction, names: Sequence[str]) -> Tuple[Prediction, Optional[RankingChoice]]:
        search_result, question = self._search_result, self._search_result.question
        settings = _without(names, winner.settings, question)
        prediction = Prediction(f"{search_result.winner.label}, simpler", settings, (), winner.why, winner.errors)
        if not _writable(settings, question):
            return winner, None
        # beside the search's own winner: what each step may lose would add up
        whole = search_result.winner
        effects: Tuple[PairedEffect, ...] = ()
        for seeds in self._fresh:
            prediction = prediction.with_runs(self._start(settings, seeds).collect())
            effects = paired_effects(self._metrics, whole, prediction)
            if surely_worse(effects, self._metrics):
                return prediction, None
        candidate, judge = prediction.candidate, search_result.judge
        misses = {objective.text for objective in judge.missed_hard(candidate.means)}
        more = misses - {objective.text for objective in judge.missed_hard(whole.means)}
        if more or not worth_nothing(effects, self._metrics):
            return prediction, None
        in_force = search_result.before.candidate
        choice = choose(judge, in_force, [candidate])
        count = len(moved_knobs_of(search_result.winner, question)) - len(moved_knobs_of(prediction, question))
        words = f"{choice.reason}; {count} of the knobs of {search_result.winner.label} are left alone: worth nothing"
        return prediction, replace(choice, reason=words) if choice.better else None

    def _start(self, settings: Settings, seeds: Sequence[int]) -> StartedRuns:
        return self._runs.start(self._search_result.question.model, settings, seeds)


def _others(name: str, names: Sequence[str]) -> Tuple[str, ...]:
    return tuple(other for other in names if other != name)


def _before(question: Question) -> Settings:
    """What is in force, as a custom profile may have it: reservations of built-in ones sum to 1.05."""
    return fitting_reservations(question.before)


def _in_force(name: str, question: Question) -> Value:
    value = _before(question).get(name, KNOBS[name].default(question.model.release))
    return "" if value is None else value


def _is_moved(name: str, value: Value, question: Question) -> bool:
    in_force = _in_force(name, question)
    return not any(same_value(str(value), str(other)) for other in (in_force, question.before.get(name, in_force)))


def _without(names: Sequence[str], settings: Mapping[str, Value], question: Question) -> Settings:
    """Settings with these knobs as in force; what only they needed beside them goes back as well."""
    before = _before(question)
    rest = {name: value for name, value in settings.items() if name not in names}
    rest.update({name: before[name] for name in names if name in before})
    moves = [name for name in rest if name != PROFILE and _is_moved(name, rest[name], question)]
    if not set(moves) & set(MCLOCK_NINE):
        # no custom profile is needed: what is in force stays, and to the last digit
        rest = question.under_profile_in_force(rest)
    once = _needs(names, question) - _needs(moves, question)
    return {name: before[name] if name in once else rest[name] for name in rest if name not in once or name in before}


def _needs(names: Iterable[str], question: Question) -> Set[str]:
    release = question.model.release
    return {need for name in names for need, _ in KNOBS[name].effective(release).needs}


def _group(name: str, winner: Prediction, question: Question) -> Tuple[str, ...]:
    """The knob, and where it cannot go back alone those beside it: of its class, all reservations, all of the nine.

    A knob beside the nine goes back with another such knob that it bounds, else all of them do.
    """
    others = [other for other in moved_knobs_of(winner, question) if other != name]
    nine = [other for other in others if other in MCLOCK_NINE]
    stem = name.rpartition("_")[0]
    of_class = [other for other in nine if other.startswith(stem)]
    reservations = [other for other in nine if other.endswith("_res")]
    single = [[other] for other in others if other not in MCLOCK_NINE]
    groups = ((name, *beside) for beside in ([], of_class, reservations, nine, *single))
    writable = (group for group in groups if _writable(_without(group, winner.settings, question), question))
    # with all of them as in force it is what the cluster runs already
    return next(writable, (name, *(nine if name in MCLOCK_NINE else others)))


def _writable(settings: Settings, question: Question) -> bool:
    release, hardware = question.model.release, question.model.osd.hardware
    try:
        check_settings(to_release_units(settings, release, hardware), release)
    except InputError:
        return False
    return True
