"""A trial's result as the optimiser is told it: what the whole cluster would have shown under the settings.

The effect is a share of what the control did at the same time; on what the cluster did before the trial it gives the
metric under the settings, with the load as it was then. So results of different hours can stand beside each other.
"""

from __future__ import annotations

import math
from typing import Callable, Dict, List, Mapping, Optional

from ceph_tuner.core.autopilot.contract import Effect
from ceph_tuner.core.autopilot.events import Learn
from ceph_tuner.core.autopilot.judgement import shown
from ceph_tuner.core.goals.slo import Bound, Objective, Slo
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.measure.forecast_record import ForecastRecord
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure

_WIDTH = 2.0 * 1.96
"""Standard errors that a 95% interval is wide; one that holds at any time is wider, so this is on the careful side."""


def trial_of(result: Learn, at: float, seconds: float, device_class: str = "") -> Trial:
    """Give the record for the history; of a device class where it has an automatic mode of its own."""
    forecast = ForecastRecord.from_dict(result.forecast)
    metrics = {} if forecast is None else forecast.metrics
    expected = {name: (interval.value, interval.low, interval.high) for name, interval in metrics.items()}
    run = Run("trial", f"trial {result.number}", dict(result.settings), "automatic mode", expected)
    measures = estimated(result.baseline, result.effects)
    notes = ("estimated from canary and control",)
    return Trial(run, at, seconds, measures, result.failed or None, notes, device_class=device_class)


def estimated(baseline: Mapping[str, float], effects: Mapping[str, Effect]) -> Dict[str, Measure]:
    """Give metrics as they would have been on the whole cluster; what no effect was seen on is left out."""
    measures = {}
    for metric, before in baseline.items():
        effect = shown(effects, metric)
        if effect is None or effect.change is None:
            continue
        # a time to finish is the work left over the rate that stands in for it, and so are the PGs that are late by it
        inverse = METRICS[metric].lower_is_better != METRICS[effect.metric].lower_is_better
        factor = 1.0 + effect.change
        mean = before / factor if inverse and factor > 0 else before * factor
        spread = effect.high - effect.low
        error = before * spread / _WIDTH if math.isfinite(spread) else 0.0
        windows = max(effect.windows, 1)
        measures[metric] = Measure(mean, error * math.sqrt(windows), windows)
    return measures


def absolute(slo: Slo, reference: Mapping[str, float]) -> Slo:
    """Give the SLO with bounds as numbers: those relative to the baseline would follow every change otherwise.

    What the reference does not show is left as it is.
    """
    objectives: List[Objective] = []
    for item in slo.objectives:
        bound = item.bound.resolve(reference.get(item.metric))
        bound_value = item.bound if bound is None else Bound(bound)
        objectives.append(Objective(item.metric, item.comparison, bound_value, item.hard, item.priority))
    return Slo(slo.name, tuple(objectives), slo.goal)


def absolute_where_relative(slo: Optional[Slo], reference: Callable[[], Mapping[str, float]]) -> Optional[Slo]:
    """The same, where there are such bounds: `reference` reads what they refer to, from the store."""
    return absolute(slo, reference()) if slo is not None and slo.needs_baseline else slo
