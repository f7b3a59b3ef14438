"""What was measured, in the form in which the twin is held against it: logarithms, with their noise.

Glossary
    output    one metric of one window
    z         log(value + negligible): what is too small to matter counts alike, and nothing is the logarithm of 0
    noise     standard deviation of z: the spread inside the window over the root of its samples, and how far two
              windows of the same settings differ
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

import numpy as np

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import settings_key
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.parameters import Array
from ceph_tuner.twin.samples import looks_while_it_lasts, sample_between
from ceph_tuner.twin.simulation import Simulation

RATES = ("client.iops", "recovery.bytes_s", "backfill.objects_s", "scrub.bytes_s", "snaptrim.objects_s")
MEANS = ("client.mean_ms", "client.p50_ms")
TAILS = ("client.p95_ms", "client.p99_ms")
FITTED = RATES + MEANS + TAILS
"""Metrics that are held against the cluster. Their doubles (objects and bytes of one recovery) would count twice."""

WANTED = {**dict.fromkeys(RATES + MEANS, 0.15), **dict.fromkeys(TAILS, 0.25)}
"""Relative errors up to which the twin is right enough to choose settings by."""

NEGLIGIBLE = 0.0025
"""Share of what the drives can do (bytes a second, requests a second) below which a rate is as good as none."""

REPEATABILITY = {**dict.fromkeys(RATES, 0.04), **dict.fromkeys(MEANS, 0.08), **dict.fromkeys(TAILS, 0.10)}
"""How far two windows of the same settings differ where none was measured twice: what labs showed."""

LEAST_NOISE = 0.02
"""Five samples can agree by chance."""


@dataclass(frozen=True)
class Observation:
    """A window that was measured: under which work, with which settings (whole, never "those in force")."""

    scenario: str
    label: str
    settings: Settings
    measures: Mapping[str, Measure]
    seconds: float = 25.0
    settle: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= 86400 or not 0 <= self.settle <= 86400:
            raise ValueError(f"seconds(={self.seconds}) must be above 0 and settle(={self.settle}) 0 or more")

    @property
    def same(self) -> Tuple[str, str]:
        """Equal for windows of the same work and settings."""
        return self.scenario, settings_key(self.settings)

    @property
    def metrics(self) -> List[str]:
        """Those that are held against the twin."""
        return [name for name in FITTED if name in self.measures]


class SimulatedRun(NamedTuple):
    """One simulation of a window's work and settings."""

    model: ClusterModel
    settings: Settings
    seconds: float
    settle: float
    seed: int
    metrics: Tuple[str, ...]


def negligible(metric: str, model: ClusterModel) -> float:
    """What of a metric is as good as none on this cluster; 0 for latencies."""
    device = model.osd.device
    if metric.endswith("bytes_s"):
        return NEGLIGIBLE * model.osds * device.bandwidth_bytes_s
    return NEGLIGIBLE * model.osds * device.iops if metric in RATES else 0.0


def simulated(run: SimulatedRun) -> Array:
    """Values of the metrics, in their order."""
    simulation = Simulation(run.model, run.settings, run.seed)
    looks = looks_while_it_lasts(simulation, run.settle, run.seconds, 1)
    values = sample_between(looks[0], looks[-1], run.model, simulation.now).values
    # no operation was answered: each that waits has waited for all of the window
    nothing = {"ms": 1000.0 * run.seconds}
    return np.asarray([values.get(name, nothing.get(name.rsplit("_", 1)[-1], 0.0)) for name in run.metrics])


class Outputs:
    """All metrics of all windows in one row. `floors`, `z` and `noise` have one number for each."""

    def __init__(self, observations: Sequence[Observation], models: Mapping[str, ClusterModel]) -> None:
        """Raises KeyError where a window's scenario has no model."""
        self.observations = tuple(observations)
        self.models = dict(models)
        self.names = [(n, name) for n, entry in enumerate(self.observations) for name in entry.metrics]
        self.floors = np.asarray(
            [negligible(name, models[self.observations[n].scenario]) for n, name in self.names], dtype=float
        )
        self.z = self.to_z([self.observations[n].measures[name].mean for n, name in self.names])
        self.repeatability = repeatability(self.observations, models)
        self.noise = np.asarray([self._noise(place) for place in range(len(self.names))])

    def __len__(self) -> int:
        return len(self.names)

    @property
    def metrics(self) -> List[str]:
        """Metric of each output."""
        return [name for _, name in self.names]

    @property
    def labels(self) -> List[str]:
        """Label of each output's window."""
        return [self.observations[n].label for n, _ in self.names]

    def to_z(self, values: Union[Sequence[float], Array]) -> Array:
        """Values to logarithms; shape (outputs,)."""
        # a latency is above 0, but a file may say 0
        return np.asarray(np.log(np.maximum(np.asarray(values, dtype=float) + self.floors, 1e-9)))

    def values(self, z: Array) -> Array:
        """Inverse of `to_z`."""
        return np.asarray(np.maximum(np.exp(z) - self.floors, 0.0))

    def runs(self, models: Mapping[str, ClusterModel], seed: int) -> List[SimulatedRun]:
        """Simulations whose values, one after the other, are the row; each has a seed of its own.

        With one seed for all, chance would bend all windows alike, and pass for what they have in common.
        """
        return [
            SimulatedRun(models[o.scenario], o.settings, o.seconds, o.settle, seed * 1009 + number, tuple(o.metrics))
            for number, o in enumerate(self.observations)
        ]

    def chosen(self, metric: str) -> Array:
        """Places of a metric in the row."""
        return np.flatnonzero([name == metric for name in self.metrics])

    def _noise(self, place: int) -> float:
        n, name = self.names[place]
        entry, floor = self.observations[n].measures[name], float(self.floors[place])
        inside = entry.deviation / math.sqrt(entry.count) / max(entry.mean + floor, 1e-9)
        # what differs by more than its own size is noise enough; a logarithm makes no more sense of it
        return math.sqrt(min(inside, 1.0) ** 2 + max(self.repeatability[name], LEAST_NOISE) ** 2)


def repeatability(observations: Sequence[Observation], models: Mapping[str, ClusterModel]) -> Dict[str, float]:
    """By metric, the standard deviation of z between windows of the same work and settings, where some were repeated.

    Drawn to what labs showed by as much as two pairs would.
    """
    groups: Dict[Tuple[str, str], List[Observation]] = {}
    for entry in observations:
        groups.setdefault(entry.same, []).append(entry)
    by_metric = {}
    for name in FITTED:
        squares, count = 2.0 * REPEATABILITY[name] ** 2, 2.0
        for group in groups.values():
            floor = negligible(name, models[group[0].scenario])
            z = [math.log(max(o.measures[name].mean + floor, 1e-9)) for o in group if name in o.measures]
            if len(z) > 1:
                squares += float(np.var(z, ddof=1)) * (len(z) - 1)
                count += len(z) - 1
        by_metric[name] = math.sqrt(squares / count)
    return by_metric
