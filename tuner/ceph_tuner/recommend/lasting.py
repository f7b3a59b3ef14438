"""Whether settings are as good in the long run as in the short ones of a search.

Some work takes its time to build up: with more scrubs at a time and larger chunks a cluster is quiet for half a minute,
and clients wait for a second from then on. Short runs cannot tell that, however many there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import LEAST_GAIN
from ceph_tuner.core.measure.quantity import quantity
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.paired_effect import paired_effects
from ceph_tuner.recommend.runs import Means, Processes, Runs, StartedRuns
from ceph_tuner.recommend.search import SearchedSettings, choice_among, fresh_seeds, in_rounds

LONG = 6
"""A long run, in runs of the search."""

SEEDS = 2
"""Fresh seeds on which it is made: those of the choice, so that it can be held against these."""


class Decline(NamedTuple):
    """What does not last."""

    words: str
    long: Optional[Prediction]
    """As the long runs have it; None where more work waits than the twin has room for."""


def does_not_last(search_result: SearchedSettings, processes: Processes = None) -> Optional[Decline]:
    """Say what of the winner does not last; None where all does, and where what is in force stays."""
    if not (search_result.confirmed and search_result.choice.better):
        return None
    question, effort, judge = search_result.question, search_result.effort, search_result.judge
    return gets_worse(question, effort, search_result.run_s, judge, search_result.winner, processes)


def gets_worse(
    question: Question,
    effort: SearchEffort,
    run_s: float,
    judge: Judge,
    prediction: Prediction,
    processes: Processes = None,
    standing: bool = False,
) -> Optional[Decline]:
    """Say what becomes worse than runs of `run_s` on the fresh seeds showed; None where nothing does.

    `standing`: these settings were in force before.
    """
    # runs that are long already, of `judged_by_long_runs`, are not made as many times longer again
    short, seconds = replace(prediction, runs=prediction.runs[:SEEDS]), LONG * min(run_s, effort.longest_s)
    with Runs(question, effort, seconds, processes) as runs:
        seeds = fresh_seeds(effort)[:SEEDS]
        means = _collected(runs.start(question.model, prediction.settings, seeds, standing=standing))
    if means is None:
        return Decline(f"over {seconds:.0f} s more work waits than the twin has room for", None)
    long = replace(prediction, runs=means)
    missed = judge.missed_hard(long.means)
    more = {each.text for each in missed} - {each.text for each in judge.missed_hard(short.means)}
    if not more and judge.loss(long.means) - judge.loss(short.means) <= LEAST_GAIN[bool(missed)]:
        return None
    effects = paired_effects(question.slo.metrics, short, long)
    changes = ", ".join(
        f"{each.metric} {quantity(each.metric, each.before)} to {quantity(each.metric, each.after)}" for each in effects
    )
    return Decline(f"over {seconds:.0f} s it gets worse ({changes})", long)


def judged_by_long_runs(
    search_result: SearchedSettings, declined: Sequence[Prediction], processes: Processes = None
) -> SearchedSettings:
    """The choice among what does not last, what is in force and the built-in profiles, all in the long run.

    Nothing that lasts is better than what is in force: what gets worse may still be the best there is.
    """
    effort, model = search_result.effort, search_result.question.model
    profiles = [search_result.before, *search_result.built_in]
    entrants = {entry.label: entry for entry in (*profiles, *declined)}
    seeds, _ = in_rounds(fresh_seeds(effort), effort)
    with Runs(search_result.question, effort, LONG * search_result.run_s, processes) as runs:
        started = {label: runs.start(model, entry.settings, seeds) for label, entry in entrants.items()}
        means_by_label = {label: _collected(own) for label, own in started.items()}
    if means_by_label[search_result.before.label] is None:
        # there is nothing to hold the others against
        return search_result
    compared = tuple(
        replace(entrants[label], runs=means) for label, means in means_by_label.items() if means is not None
    )
    choice = choice_among(search_result.question, compared)
    if not choice.better:
        return search_result
    choice = replace(
        choice, reason=f"{choice.reason}; by runs of {runs.seconds:.0f} s, as nothing better stays as it is"
    )
    return replace(
        search_result, compared=compared, choice=choice, run_s=runs.seconds, runs=search_result.runs + runs.done
    )


def _collected(started: StartedRuns) -> Optional[Tuple[Means, ...]]:
    """None where more work waits than the twin has room for."""
    try:
        return started.collect()
    except InputError:
        return None
