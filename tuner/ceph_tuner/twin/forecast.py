"""What settings would do, with intervals: the fit's uncertainty, chance, and what the twin is known not to explain.

Each of `draws` simulations has parameters drawn from the posterior and a seed of its own, so their spread is that of
windows on clusters that all fit. The discrepancy by metric, learnt where settings were held out, is added as a t
distribution: it widens intervals and moves no prediction, because a few settings do not tell how the twin is off under
the next one. An interval is for one measured window, not for the mean of many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.metrics import work_of
from ceph_tuner.twin.discrepancy import Discrepancy, Unexplained, spread_and_freedom
from ceph_tuner.twin.fit import Fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import FITTED, RATES, REPEATABILITY, SimulatedRun, negligible
from ceph_tuner.twin.parameters import with_values

LEVEL = 0.90
DRAWS = 24
UNSEEN_RATES, UNSEEN_LATENCIES = 0.25, 0.50
"""Discrepancy of metrics of which the fit has seen nothing, in logarithms: a guess, and a wide one."""

_SAMPLES = 400


@dataclass(frozen=True)
class Forecast:
    """A metric's prediction, and the interval that holds a measured window with the probability LEVEL."""

    metric: str
    value: float
    low: float
    high: float
    guessed: bool = False
    """Whether the fit has seen nothing of this metric, so that its error is a guess."""

    def to_dict(self) -> Dict[str, Any]:
        """The form for programs, below the metric's name."""
        fields = dict(vars(self))
        del fields["metric"]
        return fields


def forecast(
    model: ClusterModel,
    settings: Settings,
    drawn: Sequence[Mapping[str, float]],
    discrepancy: Optional[Discrepancy],
    runner: Runner,
    seconds: float = 25.0,
    settle: float = 5.0,
    seed: int = 1,
) -> List[Forecast]:
    """Predict one window; `drawn` are the parameters' values, one simulation for each."""
    metrics = metrics_of(model)
    runs = [
        SimulatedRun(with_values(model, values), settings, seconds, settle, seed * 1009 + number, metrics)
        for number, values in enumerate(drawn)
    ]
    rows = np.asarray(runner(runs))
    random = np.random.default_rng(seed)
    forecasts = []
    for column, metric in enumerate(metrics):
        floor = negligible(metric, model)
        z = np.log(np.maximum(rows[:, column] + floor, 1e-9))
        own = discrepancy.metrics.get(metric) if discrepancy is not None else None
        spread, freedom = spread_and_freedom(own if own is not None else _guess(metric))
        # whole mixtures of simulations and t distribution: quantiles of what a window may show
        chance = random.standard_t(freedom, size=(len(z), _SAMPLES)) * spread
        low, high = np.quantile(z[:, None] + chance, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        middle = float(np.median(z))
        value, least, most = (max(float(np.exp(e)) - floor, 0.0) for e in (middle, low, high))
        forecasts.append(Forecast(metric, value, least, most, own is None))
    return forecasts


def forecast_record(
    fit: Fit,
    model: ClusterModel,
    settings: Settings,
    runner: Runner,
    at: float,
    name: str,
    seconds: float = 25.0,
    settle: float = 5.0,
) -> ForecastRecord:
    """What the twin says of settings, as it is kept with a write. `at`: seconds since the epoch."""
    forecast_now = forecast(model, settings, fit.draws(DRAWS), fit.discrepancy, runner, seconds, settle)
    metrics = {entry.metric: ForecastInterval(entry.value, entry.low, entry.high) for entry in forecast_now}
    return ForecastRecord(at, name, LEVEL, metrics)


def metrics_of(model: ClusterModel) -> Tuple[str, ...]:
    """Metrics that a window of this model's work has."""
    has = {
        "client": bool(model.clients),
        "recovery": bool(model.recovery),
        "backfill": any(not work.degraded for work in model.recovery),
        "scrub": bool(model.scrub),
        "snaptrim": bool(model.snaptrim),
    }
    return tuple(name for name in FITTED if has[work_of(name)])


def _guess(metric: str) -> Unexplained:
    wide = UNSEEN_RATES if metric in RATES else UNSEEN_LATENCIES
    return Unexplained(0, 0.0, 0.0, 0.0, wide + REPEATABILITY[metric], 2.0, "", 0.0)
