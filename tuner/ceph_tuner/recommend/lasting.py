"""Whether settings are as good in the long run as in the short ones of a search.

Some work takes its time to build up: with more scrubs at a time and larger chunks a cluster is quiet for half a minute,
and clients wait for a second from then on. Short runs cannot tell that, however many there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import LEAST_GAIN
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.paired_effect import paired_effects
from ceph_tuner.recommend.runs import Processes, Runs
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds

LONG = 6
"""A long run, in runs of the search."""

SEEDS = 2
"""Fresh seeds on which it is made: those of the choice, so that it can be held against these."""


def does_not_last(search_result: SearchedSettings, processes: Processes = None) -> Optional[str]:
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
) -> Optional[str]:
    """Say what becomes worse than runs of `run_s` on the fresh seeds showed; None where nothing does.

    `standing`: these settings were in force before.
    """
    short, seconds = replace(prediction, runs=prediction.runs[:SEEDS]), LONG * run_s
    with Runs(question, effort, seconds, processes) as runs:
        seeds = fresh_seeds(effort)[:SEEDS]
        try:
            means = runs.start(question.model, prediction.settings, seeds, standing=standing).collect()
        except InputError:
            return f"over {seconds:.0f} s more work waits than the twin has room for"
    long = replace(prediction, runs=means)
    missed = judge.missed_hard(long.means)
    more = {each.text for each in missed} - {each.text for each in judge.missed_hard(short.means)}
    if not more and judge.loss(long.means) - judge.loss(short.means) <= LEAST_GAIN[bool(missed)]:
        return None
    effects = paired_effects(question.slo.metrics, short, long)
    changes = ", ".join(f"{each.metric} {each.before:.3g} to {each.after:.3g}" for each in effects)
    return f"over {seconds:.0f} s it gets worse ({changes})"
