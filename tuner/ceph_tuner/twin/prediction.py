"""What settings would do: a window of a simulated cluster, and many of them side by side on all cores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, List, Mapping, Optional, Sequence

from ceph_tuner.core.knobs.releases import Value
from ceph_tuner.core.measure.sample import Window, window_of
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.samples import looks_while_it_lasts, sample_between
from ceph_tuner.twin.simulation import Simulation
from ceph_tuner.twin.simulation_pool import simulation_pool

SAMPLES = 5
"""A window is cut into so many samples, whose spread is its deviation."""


@dataclass(frozen=True)
class PredictionRun:
    """One run: `settle` seconds that do not count, then a window of `seconds`.

    With `before` these settings are in force first, for as long as the window: scrubs begin one after the other. What
    goes on then goes on under the new ones, as on a cluster. Lower `osd_max_scrubs` ends no scrub, and the tags stay.
    """

    model: ClusterModel
    settings: Mapping[str, Value] = field(default_factory=dict)
    seconds: float = 25.0
    settle: float = 5.0
    seed: int = 0
    before: Optional[Mapping[str, Value]] = None

    def __post_init__(self) -> None:
        if not self.seconds > 0 or not self.settle >= 0:
            raise ValueError(f"seconds(={self.seconds}) must be above 0 and settle(={self.settle}) 0 or more")


def predict(job: PredictionRun) -> Window:
    """The window of one run. Same job, same window."""
    simulation = Simulation(job.model, job.settings if job.before is None else job.before, job.seed)
    if job.before is not None:
        simulation.advance(job.seconds)
        simulation.configure(job.settings)
    looks = looks_while_it_lasts(simulation, job.settle, job.seconds, SAMPLES)
    window = window_of(
        sample_between(before, after, job.model, after.counters.at) for before, after in zip(looks, looks[1:])
    )
    if window is None:
        raise ValueError(f"seconds(={job.seconds}) gave no sample")
    return window


def predict_all(jobs: Sequence[PredictionRun], processes: Optional[int] = None) -> Iterator[Window]:
    """The windows of independent runs, in their order, spread over the cores (`processes`; None: all of them)."""
    with simulation_pool(processes) as pool:
        yield from pool.map(predict, jobs)


def mean_of(windows: Sequence[Window], metric: str) -> Optional[float]:
    """Mean of a metric over windows that have it."""
    means: List[float] = [window.measures[metric].mean for window in windows if metric in window.measures]
    return sum(means) / len(means) if means else None
