"""What the twin says of each hour of the day under the policies of a calendar: some settings, at the hour's clients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.goals.judge import Judge, Verdict
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.goals.week_behind import HourAhead
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.regime_questions import with_client_iops
from ceph_tuner.recommend.runs import Runs, StartedRuns, run_length_s
from ceph_tuner.recommend.search import unpredictable
from ceph_tuner.twin.described_cluster import LEAST_CLIENT_IOPS, DescribedCluster

EFFORT = SearchEffort(events=3e5, fresh=4)
"""Hours are many, and each is told to a few digits."""
NO_CLIENTS = "clients do nothing"

_Key = Tuple[str, Optional[float]]
"""A policy, and what clients do."""


@dataclass(frozen=True)
class PredictedHour:
    """An hour under a policy: each objective that the twin knows of, under each of the settings."""

    ahead: HourAhead
    verdicts: Mapping[str, Sequence[Verdict]]
    """By the settings' names; none where nothing is judged."""
    reason: str = ""
    """Why nothing is."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        verdicts = {name: [each.to_dict() for each in of_settings] for name, of_settings in self.verdicts.items()}
        return {**self.ahead._asdict(), "verdicts": verdicts, "reason": self.reason or None}


def with_clients(description: DescribedCluster, iops: Optional[float]) -> DescribedCluster:
    """The cluster with that load; as it is where nothing is known of it, or its clients have no rate."""
    if iops is not None and iops < LEAST_CLIENT_IOPS:
        return replace(description, model=replace(description.model, clients=()))
    has_rate = any(stream.rate for stream in description.model.clients)
    if iops is None or not has_rate:
        return description
    return replace(description, model=with_client_iops(description.model, iops))


def question_under(
    description: DescribedCluster, slo: Slo, iops: Optional[float] = None
) -> Tuple[Optional[Question], Dict[str, str]]:
    """What is asked of the twin under a policy at that load; and which objectives it says nothing of, and why.

    None where it says nothing of any.
    """
    question = question_of(with_clients(description, iops), slo)
    idle = iops is not None and iops < LEAST_CLIENT_IOPS
    left_out = {
        refusal.place: NO_CLIENTS if idle and refusal.place.startswith("client.") else refusal.found
        for refusal in unpredictable(question)
    }
    objectives = tuple(each for each in question.slo.objectives if each.text not in left_out)
    if not objectives:
        return None, left_out
    goal = question.slo.goal if question.slo.goal is None or question.slo.goal.text not in left_out else None
    return replace(question, slo=replace(question.slo, objectives=objectives, goal=goal)), left_out


def why_none(left_out: Mapping[str, str]) -> str:
    """Why no objective is judged, by why each is left out."""
    reasons = list(dict.fromkeys(left_out.values()))
    return NO_CLIENTS if NO_CLIENTS in reasons else ", ".join(reasons)


def predict_hours(
    description: DescribedCluster,
    calendar: SloCalendar,
    hours: Sequence[HourAhead],
    settings_of: Mapping[str, Mapping[str, Settings]],
    reference: Mapping[str, float],
    progress: Callable[[int, int], None] = lambda done, total: None,
    processes: Optional[int] = None,
) -> List[PredictedHour]:
    """Run the twin for each hour that it can judge; `settings_of`: by policy, settings by name. Raises InputError.

    Hours of the same policy whose clients are the same to two digits are one. `reference`: what relative bounds refer
    to.
    """
    keys = [(each.policy, _rounded(each.client_iops)) for each in hours]
    questions_and_reasons: Dict[_Key, Tuple[Optional[Question], Dict[str, str]]] = {}
    for policy, iops in keys:
        if (policy, iops) not in questions_and_reasons:
            questions_and_reasons[policy, iops] = question_under(description, calendar.by_policy[policy], iops)
    questions = {
        key: question
        for key, (question, _) in questions_and_reasons.items()
        if question is not None and settings_of.get(key[0])
    }
    means = _simulated(description, questions, settings_of, progress, processes)
    judges = {key: Judge(question.slo, reference) for key, question in questions.items()}
    return [
        PredictedHour(
            each,
            {name: judges[key].verdicts(of_settings) for name, of_settings in means.get(key, {}).items()},
            "" if key in means else why_none(questions_and_reasons[key][1]),
        )
        for each, key in zip(hours, keys)
    ]


def _simulated(
    description: DescribedCluster,
    questions: Mapping[_Key, Question],
    settings_of: Mapping[str, Mapping[str, Settings]],
    progress: Callable[[int, int], None],
    processes: Optional[int],
) -> Dict[_Key, Dict[str, Mapping[str, float]]]:
    """The means of each question under each of its policy's settings."""
    means: Dict[_Key, Dict[str, Mapping[str, float]]] = {}
    if not questions:
        return means
    (policy, _), question = next(iter(questions.items()))
    run_s = run_length_s(description.model, next(iter(settings_of[policy].values())), EFFORT)
    seeds = range(EFFORT.seed, EFFORT.seed + EFFORT.fresh)
    started: Dict[_Key, Dict[str, StartedRuns]] = {}
    with Runs(question, EFFORT, run_s, processes) as runs:
        for key, question in questions.items():
            own = settings_of[key[0]]
            started[key] = {name: runs.start(question.model, settings, seeds) for name, settings in own.items()}
        for number, (key, of_settings) in enumerate(started.items()):
            progress(number, len(started))
            means[key] = {
                name: Prediction(name, settings_of[key[0]][name], each.collect()).means
                for name, each in of_settings.items()
            }
    return means


def _rounded(iops: Optional[float]) -> Optional[float]:
    return None if iops is None else float(f"{iops:.2g}")
