"""What the twin offers a boost: the fastest settings for its work that keep what is to be kept, by a search.

They are held against what a boost would take without the twin, on the same seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Dict, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.boost.kinds import Kind
from ceph_tuner.core.boost.offer import TwinOffer
from ceph_tuner.core.goals.goal import Goal
from ceph_tuner.core.goals.ranking import choose
from ceph_tuner.core.goals.slo import Bound, Objective, Slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.metrics import CLASS, Scope, work_of
from ceph_tuner.core.profiles.translation import from_release_units
from ceph_tuner.recommend import COVERAGE, Prediction, Question
from ceph_tuner.recommend.measured import MeasuredMetric, measured_in_force
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.recommendation import Recommendation
from ceph_tuner.recommend.runs import Processes, Runs
from ceph_tuner.recommend.search import fresh_seeds, predictable
from ceph_tuner.twin.described_cluster import DescribedCluster

USUAL = "without the twin"
"""Label of what a boost takes that does not ask the twin."""
NOTHING_TO_ASK = "it is not asked, as it predicts none of what is to be kept, or none of this work"
NONE_FASTER = "it finds nothing faster that keeps the objectives"


@dataclass(frozen=True)
class BoostQuestion:
    """A boost as `recommend` is asked of it."""

    kind: Kind
    question: Question
    wanted: Mapping[str, Objective]
    """Metric -> the objective, whose bound the question has beside what was measured."""
    left_out: Tuple[str, ...]
    """Objectives that the twin says nothing of: the guard alone watches them."""


@dataclass(frozen=True)
class BoostAnswer:
    """What came of it."""

    reason: str
    """Why there is an offer, or none."""
    offer: Optional[TwinOffer]
    usual: Prediction
    """What a boost would do without the twin."""
    missed: Tuple[str, ...] = ()
    """Hard objectives that it would miss then, by the twin."""
    off: Tuple[MeasuredMetric, ...] = ()
    """Where the twin is off by more than chance under what is in force."""


def question_for(kind: Kind, description: DescribedCluster, objectives: Sequence[Objective]) -> Optional[BoostQuestion]:
    """Ask for the fastest settings now; None where no objective, or nothing of the work, can be predicted.

    Only hard objectives are bounds: soft ones would hold back what is to be fast. A twin of a described cluster is off
    by a factor at times, and what settings change is right all the same. So bounds refer to what was measured, where it
    was: 20 ms, of which 10 are measured, are twice what is in force.
    """
    scopes = (None, Scope(CLASS, description.model.osd.device_class))
    hard = [each for each in objectives if each.hard]
    within = tuple(each for each in hard if each.scope in scopes)
    if not within:
        return None
    question = question_of(description, Slo("boost", within))
    slo, left_out = predictable(question)
    goal = next((Goal(name) for name in kind.speed if work_of(name) in question.work), None)
    if slo is None or goal is None:
        return None
    elsewhere = tuple(each.text for each in hard if each.scope not in scopes)
    beside = tuple(_beside_measured(each, question.measured_means) for each in slo.objectives)
    return BoostQuestion(
        kind,
        replace(question, slo=replace(slo, objectives=beside, goal=goal), switched=True),
        {each.metric: each for each in slo.objectives},
        (*elsewhere, *left_out),
    )


def answer_for(
    question: BoostQuestion,
    recommendation: Recommendation,
    usual: Settings,
    name: str,
    at: float,
    processes: Processes = None,
) -> BoostAnswer:
    """Make an offer of what was found, where it is better than the `usual` settings, in the release's own units.

    `name`: the described cluster's.
    """
    searched = recommendation.searched
    seeds = fresh_seeds(searched.effort)[: len(searched.winner.runs)]
    with Runs(question.question, searched.effort, searched.run_s, processes) as runs:
        settings = _beside_what_is_in_force(usual, question.question)
        own = Prediction(USUAL, settings, runs.start(question.question.model, settings, seeds).collect())
    judge = searched.judge
    missed = tuple(question.wanted[each.metric].text for each in judge.missed_hard(own.means))
    off = tuple(each for each in measured_in_force(searched) if each.outside)
    none = BoostAnswer(NONE_FASTER, None, own, missed, off)
    if not (recommendation.better and searched.confirmed and recommendation.keeps_hard):
        return none
    offer = _offer(question, recommendation, name, at)
    if not offer.is_faster(question.kind):
        return none
    rate = offer.rate_of(question.kind)
    is_slower = not missed and searched.winner.means[rate] <= own.means.get(rate, 0.0)
    if is_slower or not choose(judge, own.candidate, [searched.winner.candidate]).better:
        return replace(none, reason=f"{NONE_FASTER} than what a boost takes anyway")
    return replace(none, reason=offer.promise(question.kind, None), offer=offer)


def _beside_measured(objective: Objective, measured: Mapping[str, float]) -> Objective:
    value = measured.get(objective.metric, 0.0)
    if objective.bound.relative or not (objective.bound.value > 0 and value > 0 and math.isfinite(value)):
        return objective
    return replace(objective, bound=Bound(objective.bound.value / value, relative=True))


def _beside_what_is_in_force(usual: Settings, question: Question) -> Settings:
    model = question.model
    settings: Settings = {**question.kept, **from_release_units(usual, model.release, model.osd.hardware)}
    return settings if settings.keys() & {PROFILE, *MCLOCK_NINE} else question.under_profile_in_force(settings)


def _offer(question: BoostQuestion, recommendation: Recommendation, name: str, at: float) -> TwinOffer:
    """What was found, with what it changes on what was measured, where it was."""
    winner, before = recommendation.searched.winner, recommendation.searched.before
    metrics = dict.fromkeys((*question.question.slo.metrics, *question.kind.speed, *question.kind.mended))
    intervals: Dict[str, ForecastInterval] = {}
    present: Dict[str, float] = {}
    for metric in metrics:
        value, old, ends = winner.means.get(metric), before.means.get(metric), winner.interval(metric)
        if value is None or old is None or ends is None or not all(map(math.isfinite, (value, old, *ends))):
            continue
        measured = question.question.measured_means.get(metric, 0.0)
        factor = measured / old if measured > 0 and old > 0 else 1.0
        intervals[metric] = ForecastInterval(value * factor, *(end * factor for end in ends))
        present[metric] = old * factor
    return TwinOffer(
        question.kind.name,
        question.question.target,
        recommendation.instructions.settings,
        present,
        ForecastRecord(at, name, COVERAGE, intervals),
    )
