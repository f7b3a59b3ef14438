"""How quickly a fleet's searches go, on local processes and on a local Dask cluster, also with a worker killed midway.

    python benchmarks/fleet.py --clusters 200 --output benchmarks/results/fleet.md

The clusters are drawn by seed (`fleet_clusters.py`). They are searched in blocks, each block in every setting in turn,
so that other work on the machine disturbs all of them alike; workers are started before the clock is. Every setting
must give the same answers, else it exits with 1. `--output` writes the table between the marks of that page.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import distributed
import rich.console
import rich.table
from fleet_clusters import Counted, nothing, tasks
from measured_page import put

from ceph_tuner.fleet.advice import Advice, SearchTask
from ceph_tuner.fleet.advice_for_all import advise_all
from ceph_tuner.fleet.answers_folder import Nowhere
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.twin.simulation_pool import warm
from ceph_tuner.workers import CallFailure, CallMessage, CallResult, CallStart, WorkerLoss, Workers
from ceph_tuner.workers.dask_workers import DaskWorkers
from ceph_tuner.workers.process_workers import ProcessWorkers

EFFORT = SearchEffort(trials=4, batch=4, seeds=1, finalists=1, fresh=2, events=2e5, shortest_s=1.0)
"""Far less than `fleet recommend` takes by default (32 trials on 4 seeds, a million events a run), so that spreading
has a larger share of the time than it has for operators."""
PROCESSES, DASK = "processes", "Dask workers"
_ONE = {PROCESSES: "process", DASK: "Dask worker"}


@dataclass
class Setting:
    """Where searches run, and what was measured there."""

    kind: str
    count: int
    killing: bool = False
    seconds: float = 0.0
    processor_s: float = 0.0
    events: float = 0.0
    answers: Dict[str, Any] = field(default_factory=dict)
    lost: int = 0
    load: List[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        kind = self.kind if self.count > 1 else _ONE[self.kind]
        return f"{self.count} {kind}{', one killed' if self.killing else ''}"


SETTINGS = (
    (PROCESSES, 1, False),
    (PROCESSES, 2, False),
    (DASK, 1, False),
    (DASK, 2, False),
    (PROCESSES, 2, True),
    (DASK, 2, True),
)


@contextmanager
def workers_of(setting: Setting) -> Iterator[Tuple[Workers, Optional[Any]]]:
    """Workers that are there, and for Dask a client to find their processes by."""
    if setting.kind == PROCESSES:
        with ProcessWorkers(
            setting.count, prepare=warm, preload=["fleet_clusters", "ceph_tuner.fleet.advice"]
        ) as workers:
            _wait_for(workers, setting.count)
            yield workers, None
        return
    with (
        distributed.LocalCluster(
            n_workers=setting.count, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", silence_logs=50
        ) as cluster,
        DaskWorkers(cluster.scheduler_address, insecure=True) as workers,
    ):
        _wait_for(workers, setting.count)
        with distributed.Client(cluster, set_as_default=False) as client:
            yield workers, client


def _wait_for(workers: Workers, count: int) -> None:
    for number in range(count):
        workers.start(f"ready {number}", nothing, number)
    assert sum(isinstance(event, CallResult) for event in workers.events()) == count


def searched(setting: Setting, block: Dict[str, SearchTask]) -> None:
    """Search a block of clusters, and add what it took."""
    with workers_of(setting) as (workers, client):
        own = Counted(workers)
        where: Dict[str, str] = {}
        done, alive = 0, setting.killing
        began = time.monotonic()
        for event in advise_all(block, own, Nowhere()):
            if isinstance(event, CallStart):
                where[event.key] = event.where
            elif isinstance(event, CallMessage) and alive and done >= len(block) * 0.4 and event.message["done"] >= 4:
                alive = False
                os.kill(_process(where[event.key], client), signal.SIGKILL)
            elif isinstance(event, WorkerLoss):
                setting.lost += 1
            elif isinstance(event, (CallResult, CallFailure)):
                done += 1
                setting.answers[event.key] = _answer(event)
        setting.seconds += time.monotonic() - began
        setting.processor_s += own.processor_s
        setting.events += own.events_simulated
        setting.load.append(os.getloadavg()[0])


def _answer(event: Any) -> Any:
    if isinstance(event, CallFailure):
        return event.reason
    found: Advice = event.result
    return found.document, None if found.profile is None else found.profile.to_dict()


def _process(where: str, client: Optional[Any]) -> int:
    name = where.split()[-1]
    if client is None:
        return int(name)
    workers = client.scheduler_info(n_workers=-1)["workers"].items()
    (address,) = [address for address, entry in workers if str(entry["name"]) == name]
    return int(client.run(os.getpid, workers=[address])[address])


def measured(count: int, blocks: int, progress: bool = True) -> List[Setting]:
    """Every setting over all blocks."""
    found = [Setting(*given) for given in SETTINGS]
    everything = list(tasks(count, EFFORT).items())
    for number in range(blocks):
        block = dict(everything[number * count // blocks : (number + 1) * count // blocks])
        for setting in found:
            searched(setting, block)
            if progress:
                print(
                    f"block {number + 1}: {setting.name}: {setting.seconds:.1f} s so far", file=sys.stderr, flush=True
                )
    return found


def rows(settings: Sequence[Setting]) -> List[List[str]]:
    """The table, head first."""
    alone = {setting.kind: setting for setting in settings if setting.count == 1}
    undisturbed = {(setting.kind, setting.count): setting for setting in settings if not setting.killing}
    table = [["where", "clusters/min", "against 1", "events/s", "processor s a cluster", "cores had", "lost", "load"]]
    for setting in settings:
        reference = undisturbed[setting.kind, setting.count] if setting.killing else alone[setting.kind]
        ratio = reference.seconds / setting.seconds
        against = f"{setting.seconds - reference.seconds:+.1f} s" if setting.killing else f"{ratio:.2f}"
        table.append(
            [
                setting.name,
                f"{60 * len(setting.answers) / setting.seconds:.1f}",
                against,
                f"{setting.events / setting.seconds / 1e6:.2f} M",
                f"{setting.processor_s / len(setting.answers):.3f}",
                f"{setting.processor_s / setting.seconds:.2f}",
                str(setting.lost),
                f"{min(setting.load):.0f} to {max(setting.load):.0f}",
            ]
        )
    return table


def misses(settings: Sequence[Setting]) -> List[str]:
    """What is not as it should be."""
    first = settings[0]
    found = [f"{setting.name}: other answers" for setting in settings if setting.answers != first.answers]
    for kind in (PROCESSES, DASK):
        one, two = (next(s for s in settings if (s.kind, s.count) == (kind, count)) for count in (1, 2))
        if one.seconds / two.seconds < 1.8:
            found.append(f"{two.name}: {one.seconds / two.seconds:.2f} times as quick as one, less than 1.8")
    found += [f"{setting.name}: nothing was lost" for setting in settings if setting.killing and not setting.lost]
    return found


def page(settings: Sequence[Setting], command: str) -> str:
    """The measured part of the results' page."""
    head, *body = rows(settings)
    given_up = sum(isinstance(answer, str) for answer in settings[0].answers.values())
    better = sum(answer[1] is not None for answer in settings[0].answers.values() if not isinstance(answer, str))
    versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "scikit-learn", "distributed"))
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    machine = f"{os.cpu_count()} cores of a shared {platform.machine()} virtual machine, busy with other work"
    answered = (
        f"{len(settings[0].answers)} clusters: {better} are recommended other settings, {given_up} have no answer"
    )
    missed = misses(settings)
    return "\n".join(
        [
            f"`{command}`, {date}; Python {platform.python_version()}, {versions}; {machine}. {answered}.",
            "",
            "| " + " | ".join(head) + " |",
            "| --- |" + " ---: |" * (len(head) - 1),
            *("| " + " | ".join(line) + " |" for line in body),
            "",
            *(["Missed:", *(f"- {miss}" for miss in missed)] if missed else ["Missed: nothing."]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    found = measured(arguments.clusters, arguments.blocks)
    head, *body = rows(found)
    screen = rich.table.Table(*head)
    for line in body:
        screen.add_row(*line)
    console = rich.console.Console(width=140)
    console.print(screen)
    for miss in misses(found):
        console.print(f"missed: {miss}")
    if arguments.output:
        command = f"python benchmarks/fleet.py --clusters {arguments.clusters} --blocks {arguments.blocks}"
        put(page(found, command), arguments.output)
    if any(setting.answers != found[0].answers for setting in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
