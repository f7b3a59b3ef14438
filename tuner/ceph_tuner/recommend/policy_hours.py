"""What the twin says of each hour of the day under the policies of a calendar: some settings, at the hour's clients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge, Verdict
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.goals.week_behind import HourAhead
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.regime_pages import with_client_iops
from ceph_tuner.recommend.runs import Runs, StartedRuns, run_length_s
from ceph_tuner.recommend.search import unpredictable
from ceph_tuner.twin.described_cluster import DescribedCluster

EFFORT = SearchEffort(events=3e5, fresh=4)
"""Hours are many, and each is told to a few digits."""


@dataclass(frozen=True)
class PredictedHour:
    """An hour under a policy: each objective that the twin knows of, under each of the settings."""

    ahead: HourAhead
    verdicts: Mapping[str, Sequence[Verdict]]
    """By the settings' names."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        verdicts = {name: [each.to_dict() for each in of_settings] for name, of_settings in self.verdicts.items()}
        return {**self.ahead._asdict(), "verdicts": verdicts}


def with_clients(description: DescribedCluster, iops: Optional[float]) -> DescribedCluster:
    """The cluster with that load; as it is where nothing is known of it, or its clients have no rate."""
    has_rate = any(stream.rate for stream in description.model.clients)
    if iops is None or not has_rate or iops <= 0:
        return description
    return replace(description, model=with_client_iops(description.model, iops))


def question_under(description: DescribedCluster, slo: Slo, iops: Optional[float] = None) -> Tuple[Question, List[str]]:
    """What is asked of the twin under a policy at that load, and which objectives it says nothing of.

    Raises InputError where it says nothing of any.
    """
    question = question_of(with_clients(description, iops), slo)
    left_out = [refusal.place for refusal in unpredictable(question)]
    objectives = tuple(each for each in question.slo.objectives if each.text not in left_out)
    if not objectives:
        raise InputError(f"SLO {slo.name}", f"no objective that the twin predicts: {', '.join(left_out)}", "one")
    goal = question.slo.goal if question.slo.goal is None or question.slo.goal.text not in left_out else None
    return replace(question, slo=replace(question.slo, objectives=objectives, goal=goal)), left_out


def predict_hours(
    description: DescribedCluster,
    calendar: SloCalendar,
    hours: Sequence[HourAhead],
    settings_of: Mapping[str, Mapping[str, Settings]],
    reference: Mapping[str, float],
    progress: Callable[[int, int], None] = lambda done, total: None,
    processes: Optional[int] = None,
) -> List[PredictedHour]:
    """Run the twin for each hour; `settings_of`: by policy, settings by name. Raises InputError.

    Hours of the same policy whose clients are the same to two digits are one. `reference`: what relative bounds refer
    to.
    """
    started: Dict[Tuple[str, Optional[float]], Dict[str, StartedRuns]] = {}
    keys = [(each.policy, _rounded(each.client_iops)) for each in hours]
    first = next(iter(next(iter(settings_of.values())).values()))
    with Runs(EFFORT, run_length_s(description.model, first, EFFORT), processes) as runs:
        seeds = range(EFFORT.seed, EFFORT.seed + EFFORT.fresh)
        for policy, iops in keys:
            if (policy, iops) not in started:
                model = question_under(description, calendar.by_policy[policy], iops)[0].model
                own = {name: runs.start(model, settings, seeds) for name, settings in settings_of[policy].items()}
                started[policy, iops] = own
        means: Dict[Tuple[str, Optional[float]], Dict[str, Mapping[str, float]]] = {}
        for number, (key, own) in enumerate(started.items()):
            progress(number, len(started))
            means[key] = {
                name: Prediction(name, settings_of[key[0]][name], each.collect()).candidate.means
                for name, each in own.items()
            }
    slos = {policy: question_under(description, calendar.by_policy[policy])[0].slo for policy, _ in keys}
    judges = {policy: Judge(slo, reference) for policy, slo in slos.items()}
    return [
        PredictedHour(each, {name: judges[key[0]].verdicts(of_settings) for name, of_settings in means[key].items()})
        for each, key in zip(hours, keys)
    ]


def _rounded(iops: Optional[float]) -> Optional[float]:
    return None if iops is None else float(f"{iops:.2g}")
