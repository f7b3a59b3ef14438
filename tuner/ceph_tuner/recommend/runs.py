"""Runs of the twin, side by side on all cores, and how long a run has to be."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Callable, Dict, List, Sequence, Tuple, Union

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.processes.process_pool import ProcessPool
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.recommend.turns import together, turns
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.prediction import PredictionRun, predict
from ceph_tuner.twin.simulation import Simulation
from ceph_tuner.twin.simulation_pool import simulation_pool

Means = Dict[str, float]
Processes = Union[int, None, ProcessPool]
"""How many; None: one for each core. A pool that is there already is used, and stays."""

EVENTS = {"ssd": 5e5, "ssd, scrubbed": 1e6, "hdd": 1e6}
"""Kind of drive -> events of a run. On flash twice as many change neither the means nor their spread over seeds, but
scrubs take their time to build up (`lasting.py`). On hard disks half as many spread what two settings differ by in the
clients' latency by another two fifths."""

_PROBE_S = 0.5


def means_of(job: PredictionRun) -> Means:
    """One run's metrics: of work that takes turns, each in its own run."""
    return together([means_at_once(replace(job, model=turn)) for turn in turns(job.model)])


def means_at_once(job: PredictionRun) -> Means:
    """One run's metrics, all work together: where scrubs wait for what recovers, OSD by OSD, that is in them."""
    return predict(job).means


def run_length_s(model: ClusterModel, settings: Settings, effort: SearchEffort) -> float:
    """Simulated seconds in which about as many events happen as wanted; compiles the kernel where that is needed."""
    simulation = Simulation(model, settings, effort.seed)
    simulation.advance(_PROBE_S)
    rate = max(1.0, simulation.events / _PROBE_S)
    kind = "ssd, scrubbed" if model.scrub and model.osd.kind == "ssd" else model.osd.kind
    events = effort.events or EVENTS[kind]
    return float(round(min(max(events / rate, effort.shortest_s), effort.longest_s)))


class Runs:
    """A context manager: runs are started at once and collected later, in any order."""

    def __init__(self, question: Question, effort: SearchEffort, seconds: float, processes: Processes = None) -> None:
        """With `processes` of 1 a run is made in this process, when it is collected."""
        self.seconds, self._before = seconds, question.switched_from
        self.settle_s = seconds * effort.settle_share
        """Of the seconds, those that do not count."""
        self._ending = ExitStack()
        if not isinstance(processes, ProcessPool):
            processes = self._ending.enter_context(simulation_pool(processes))
        self._pool = processes
        self.done = 0

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def start(
        self,
        model: ClusterModel,
        settings: Settings,
        seeds: Sequence[int],
        at_once: bool = False,
        standing: bool = False,
    ) -> StartedRuns:
        """Run settings on these seeds. `at_once`: what would take turns goes on together.

        `standing`: the settings of the run are in force first as well, in the place of `before`.
        """
        run = means_at_once if at_once else means_of
        settle = self.settle_s
        before = settings if standing else self._before
        jobs = [PredictionRun(model, settings, self.seconds - settle, settle, seed, before) for seed in seeds]
        return StartedRuns(self, [self._pool.start(run, job) for job in jobs])


class StartedRuns:
    """Runs under way."""

    def __init__(self, runs: Runs, means_of_runs: List[Callable[[], Means]]) -> None:
        self._runs, self._waiting = runs, means_of_runs

    def collect(self) -> Tuple[Means, ...]:
        """Wait for them."""
        means = tuple(wait() for wait in self._waiting)
        self._runs.done += len(means)
        return means
