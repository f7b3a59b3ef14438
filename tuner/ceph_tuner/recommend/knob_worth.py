"""What each knob of the winner is worth, by the winner without it: with the knob as it is in force.

Both run on the same seeds, which neither the search nor the choice of the winner has used: on as many as the search ran
on, and where these leave doubt on as many as the choice did. A knob is worth nothing, and goes back, where no metric of
an objective or of the goal gets worse without it by `NEAR` or more, nor by more than chance unless that is less than
`NEAR`. Several such knobs may stand in for each other: what is put back together is judged together, on the fresh seeds
of the choice, and by half where it is too much. Then the knobs that are left are weighed again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.ranking import RankingChoice, choose
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, Value
from ceph_tuner.core.knobs.settings import check_settings, fitting_reservations, same_value
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.recommend import Prediction, Question, SearchListener
from ceph_tuner.recommend.paired_effect import PairedEffect, paired_effects
from ceph_tuner.recommend.runs import Processes, Runs, StartedRuns
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds

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
    """Knobs that go back with it: alone it would leave reservations above 1, or a limit below its reservation."""
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
        worths, put_back = trials.of(search_result.winner), []
        simpler = trials.simpler(search_result.winner, worths)
        while simpler is not None:
            winner, choice, names = simpler
            put_back += [replace(worth, put_back=True) for worth in worths if worth.name in names]
            worths = trials.of(winner)
            others = (entry for entry in search_result.compared if entry.label != winner.label)
            search_result = replace(search_result, compared=(*others, winner), choice=choice)
            simpler = trials.simpler(winner, worths)
        return replace(search_result, runs=search_result.runs + runs.done), (*worths, *put_back)


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
    intervals = [_worse(effect) for effect in without]
    is_sure = len(without) < len(set(metrics)) or any(low > 1 + NEAR for _, low, _ in intervals)
    return not is_sure and any(high >= 1 + NEAR for _, _, high in intervals)


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


class _KnobTrials:
    """Simulates the winner without some of its knobs."""

    def __init__(self, search_result: SearchedSettings, listener: SearchListener, runs: Runs) -> None:
        self._search_result, self._listener, self._runs = search_result, listener, runs
        effort = search_result.effort
        fresh = fresh_seeds(effort)
        self._seeds = range(fresh.stop, fresh.stop + effort.fresh)
        self._metrics = search_result.question.slo.metrics

    def of(self, winner: Prediction) -> Tuple[KnobWorth, ...]:
        """Weigh each knob that the winner moves; on the later seeds those of which the first leave doubt."""
        question, before = self._search_result.question, replace(winner, runs=())
        groups = doubtful = [_group(name, winner, question) for name in moved_knobs_of(winner, question)]
        after = dict.fromkeys(groups, before)
        without: Dict[Tuple[str, ...], Tuple[PairedEffect, ...]] = {}
        # of one pair nothing is known
        few = max(2, self._search_result.effort.seeds)
        for seeds in (self._seeds[:few], self._seeds[few:]):
            if not (doubtful and seeds):
                break
            whole = self._start(winner.settings, seeds)
            started = [self._start(_without(group, winner.settings, question), seeds) for group in doubtful]
            before = replace(before, runs=(*before.runs, *whole.collect()))
            for number, (group, runs) in enumerate(zip(doubtful, started)):
                self._listener.phase("what each knob is worth", number, len(started))
                after[group] = replace(winner, runs=(*after[group].runs, *runs.collect()))
                without[group] = paired_effects(self._metrics, before, after[group])
            doubtful = [group for group in doubtful if leaves_doubt(without[group], self._metrics)]
        return tuple(
            KnobWorth(group[0], _in_force(group[0], question), winner.settings[group[0]], without[group], group[1:])
            for group in groups
        )

    def simpler(
        self, winner: Prediction, worths: Sequence[KnobWorth]
    ) -> Optional[Tuple[Prediction, RankingChoice, Tuple[str, ...]]]:
        """Put back as many of the knobs that are worth nothing as can be spared together; None where it is none."""
        groups = [worth.names for worth in worths if worth_nothing(worth.without, self._metrics)]
        while groups:
            names = tuple(dict.fromkeys(name for group in groups for name in group))
            self._listener.phase(f"without {len(names)} knobs that seem worth nothing", 0, 1)
            prediction, choice = self._confirmation(winner, names)
            if choice is not None:
                return prediction, choice, names
            groups = groups[: len(groups) // 2]
        return None

    def _confirmation(self, winner: Prediction, names: Sequence[str]) -> Tuple[Prediction, Optional[RankingChoice]]:
        search_result, question = self._search_result, self._search_result.question
        settings = _without(names, winner.settings, question)
        label = f"{search_result.winner.label}, simpler"
        if not _writable(settings, question):
            return winner, None
        runs = self._start(settings, fresh_seeds(search_result.effort)).collect()
        prediction = Prediction(label, settings, runs, winner.why, winner.errors)
        candidate, judge = prediction.candidate, search_result.judge
        misses = {objective.text for objective in judge.missed_hard(candidate.means)}
        # beside the search's own winner: what each step may lose would add up
        whole = search_result.winner
        more = misses - {objective.text for objective in judge.missed_hard(whole.means)}
        if more or not worth_nothing(paired_effects(self._metrics, whole, prediction), self._metrics):
            return prediction, None
        in_force = search_result.before.candidate
        choice = choose(judge, in_force, [candidate])
        count = len(moved_knobs_of(search_result.winner, question)) - len(moved_knobs_of(prediction, question))
        words = f"{choice.reason}; {count} of the knobs of {search_result.winner.label} are left alone: worth nothing"
        return prediction, replace(choice, reason=words) if choice.better else None

    def _start(self, settings: Settings, seeds: Sequence[int]) -> StartedRuns:
        return self._runs.start(self._search_result.question.model, settings, seeds)


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
