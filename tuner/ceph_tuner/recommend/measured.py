"""What the cluster showed under the settings in force, beside what the twin says of them."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from ceph_tuner.recommend.search import SearchedSettings


class MeasuredMetric(NamedTuple):
    """One metric of the objectives, as it was measured and as it is predicted."""

    metric: str
    measured: float
    predicted: float
    interval: Optional[Tuple[float, float]]

    @property
    def outside(self) -> bool:
        """Whether the prediction is off by more than chance."""
        return self.interval is not None and not self.interval[0] <= self.measured <= self.interval[1]


def measured_in_force(search_result: SearchedSettings) -> List[MeasuredMetric]:
    """Give those metrics of which both are known."""
    question, before = search_result.question, search_result.before
    metrics = [*question.slo.metrics, *([question.slo.goal.metric] if question.slo.goal is not None else [])]
    return [
        MeasuredMetric(metric, question.measured_means[metric], before.means[metric], before.interval(metric))
        for metric in dict.fromkeys(metrics)
        if metric in question.measured_means and metric in before.means
    ]
