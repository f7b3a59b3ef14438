"""What a twin says of settings before they are written, quickly enough to be asked before every write."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Dict, Optional

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.forecast_record import ForecastRecord
from ceph_tuner.files import fit_file
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.runs import run_length_s
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.description import to_dict
from ceph_tuner.twin.fit import Fit, described_fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.forecast import forecast_record
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel

EFFORT = SearchEffort(events=3e5, shortest_s=4.0, longest_s=60.0)
"""Of one simulation; there are `forecast.DRAWS` of them. A scrub begins after seconds: none is shorter."""


class WriteForecasts:
    """The twin of one cluster, asked before writes. The same settings are simulated once."""

    def __init__(self, model: ClusterModel, fit: Fit, name: str, runner: Runner) -> None:
        self._model, self._fit, self._runner = model, fit, runner
        # a twin that is described or fitted anew is another one; a model's own text leaves values out
        digest = hashlib.sha256(repr((to_dict(model), fit.values)).encode()).hexdigest()[:12]
        self.name = f"{name} {digest}"
        self._said: Dict[str, ForecastRecord] = {}
        self._seconds: Optional[float] = None

    def of(self, settings: Settings, at: float) -> Optional[ForecastRecord]:
        """Predict settings, the nine values as fractions; None where the twin has no room for the work.

        An interrupt is passed on.
        """
        whole = completed(settings, self._model.release)
        key = repr(sorted(whole.items()))
        try:
            if self._seconds is None:
                self._seconds = run_length_s(self._model, whole, EFFORT)
            if key not in self._said:
                settle = self._seconds * EFFORT.settle_share
                self._said[key] = forecast_record(
                    self._fit, self._model, whole, self._runner, at, self.name, self._seconds - settle, settle
                )
        except (InputError, ValueError):
            return None
        return replace(self._said[key], at=at)


def write_forecasts(description: DescribedCluster, runner: Runner) -> WriteForecasts:
    """The twin of a described cluster, under its fit where the description names one. Raises InputError."""
    if description.calibration is None:
        fit = described_fit({description.name: description.model}, description.settings)
    else:
        fit = fit_file.read(description.calibration)
    return WriteForecasts(fit.applied(description.model), fit, description.name, runner)
