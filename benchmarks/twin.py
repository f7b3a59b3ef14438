"""Measures how quick the twin is on this machine.

    python benchmarks/twin.py --output twin-speed.json

Times are seconds of one core (the thread's own CPU time), the least of several repeats, because other programs may run
at the same time; only compiling and runs on several cores are timed by the clock on the wall as well. Events:

    of the queue         a request added, or a request served
    of the simulation    these two, and every step in time: a message or a client's operation arrives, a thread is
                         through with a request, a commit begins or ends, a queue's next tag is due
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np

from ceph_tuner.twin.compiled import functions
from ceph_tuner.twin.kernel.dmclock import Queue, set_class
from ceph_tuner.twin.kernel.layout import as_objects, dtype_of, write_back
from ceph_tuner.twin.model import (
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.prediction import PredictionRun, predict_all
from ceph_tuner.twin.simulation import Simulation

NVME = OsdModel(Device(iops=21_500.0, bandwidth_bytes_s=1200.0 * MIB), 21_500.0, 1200.0 * MIB)
"""mClock's default capacity; 8 shards of 2 threads."""

LAB = OsdModel(
    Device(1075.0, 60.0 * MIB, slice_s=0.1, shared=False), 935.0, 60.0 * MIB, shards=1, threads_per_shard=5,
    throttle_bytes=256.0 * 1024,
)  # fmt: skip

FIRST = """
import sys, time
begin = time.perf_counter(), time.process_time()
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation
Simulation(ClusterModel(1, OsdModel(Device(1e3, 1e8)), (Pool("rbd", 1, 1),)), {}).advance(1.0)
now = time.perf_counter(), time.process_time()
print(now[0] - begin[0], now[1] - begin[1], int("numba" in sys.modules))
"""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: str


def least(repeats: int, run: Callable[[], Tuple[float, float]]) -> Tuple[float, float]:
    """(seconds, amount) of the quickest repeat."""
    return min(run() for _ in range(repeats))


def queue_alone(queues: int, requests: int, compiled: bool = True) -> Tuple[float, float]:
    """(CPU seconds, events) of requests of three classes that go through the queues."""
    table = np.zeros(queues, dtype_of(Queue))
    table["classes"]["idle"] = 1
    objects = as_objects(Queue, table)
    for queue in objects:
        for own, shares in zip(queue.classes, ((6e7, 2.0, 0.0), (4e7, 1.0, 0.0), (1e7, 1.0, 1.2e8))):
            set_class(own, *shares)
    write_back(Queue, objects, table)
    costs, gaps = requests_of(queues)
    arrays = (table, costs, gaps)
    given: List[Any] = [own.ctypes.data for own in arrays] if compiled else [objects, costs.tolist(), gaps.tolist()]
    begin = time.thread_time()
    functions(compiled).run_queues(given[0], queues, requests, given[1], given[2], len(costs))
    seconds = time.thread_time() - begin
    if not compiled:
        write_back(Queue, objects, table)
    added, waiting = table["tick"].sum(), table["classes"]["waiting"].sum()
    assert added == requests
    return seconds, float(2 * added - waiting)


def requests_of(queues: int) -> Tuple[Any, Any]:
    """Costs in bytes, and seconds between arrivals at so many queues."""
    random = np.random.default_rng(1)
    # long tables: a processor learns short ones by heart, and then guesses every branch right
    return random.integers(4096, 1 << 20, 1 << 16).astype(float), random.exponential(1e-3 / queues, 1 << 16)


def simulated(model: ClusterModel, seconds: float, settle: float = 0.0, compiled: bool = True) -> Tuple[float, float]:
    """(CPU seconds, events) of so much simulated time."""
    simulation = Simulation(model, {}, 1, compiled)
    simulation.advance(settle)
    events, begin = simulation.events, time.thread_time()
    simulation.advance(seconds)
    return time.thread_time() - begin, float(simulation.events - events)


def cluster(osds: int, osd: OsdModel, size: int, pgs: int, depth: int) -> ClusterModel:
    """Clients that keep every OSD near saturation, and work of every other kind that does not end."""
    return ClusterModel(
        osds,
        osd,
        (Pool("rbd", pgs, size),),
        clients=(ClientStream("rbd", depth=depth, read_share=0.3),),
        recovery=(RecoveryWork("rbd", 100_000 * osds),) if size > 1 else (),
        scrub=(ScrubWork("rbd", 10_000 * osds),),
        snaptrim=(SnaptrimWork("rbd", 1_000_000 * osds),),
    )


THREE = cluster(3, NVME, 3, 96, 192)
ONE = cluster(1, NVME, 1, 64, 64)
FORTY = cluster(40, NVME, 3, 1280, 2560)
EIGHT_OF_FORTY = replace(FORTY, simulated_osds=8)
LABS = ClusterModel(
    3, LAB, (Pool("rbd", 32),), clients=(ClientStream("rbd", rate=250.0, depth=128),),
    recovery=(RecoveryWork("rbd", 100_000, MIB),), scrub=(ScrubWork("rbd", 1200, MIB),),
    snaptrim=(SnaptrimWork("rbd", 100_000, MIB),),
)  # fmt: skip


def measure_queue(repeats: int) -> Dict[str, float]:
    queue_alone(1, 1000)
    found = {}
    for queues in (1, 8, 320):
        seconds, events = least(repeats, lambda queues=queues: queue_alone(queues, 4_000_000))  # type: ignore[misc]
        found[f"queue_events_s_{queues}"] = events / seconds
    seconds, events = least(3, lambda: queue_alone(1, 50_000, compiled=False))
    found["queue_plain_events_s"] = events / seconds
    return found


def measure_library(checkout: Path, repeats: int) -> Dict[str, float]:
    """The same requests through Ceph's own library, compiled from a checkout: `dmclock_library.cc`."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        program, source = Path(folder) / "dmclock_library", Path(__file__).with_name("dmclock_library.cc")
        parts = [checkout / "src", checkout / "support" / "src"]
        sources = [source, parts[0] / "dmclock_util.cc", parts[1] / "run_every.cc"]
        includes = [word for part in parts for word in ("-I", str(part))]
        compiler = [
            "c++",
            "-O3",
            "-DNDEBUG",
            "-std=c++17",
            *includes,
            "-o",
            str(program),
            *map(str, sources),
            "-pthread",
        ]
        subprocess.run(compiler, check=True)
        for queues in (1, 8, 320):
            files = [Path(folder) / name for name in ("costs", "gaps")]
            for file, numbers in zip(files, requests_of(queues)):
                numbers.tofile(file)
            command = [str(program), str(queues), "4000000", *map(str, files)]

            def run(command: List[str] = command) -> Tuple[float, float]:
                seconds, events = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
                return float(seconds), float(events)

            seconds, events = least(repeats, run)
            found[f"library_events_s_{queues}"] = events / seconds
    return found


def measure_simulation(repeats: int) -> Dict[str, float]:
    Simulation(ONE, {}).advance(0.0)
    found = {}
    runs = {
        "one": (ONE, 60.0, repeats),
        "three": (THREE, 60.0, repeats),
        "lab": (LABS, 600.0, repeats),
        "forty": (FORTY, 6.0, min(3, repeats)),
        "eight_of_forty": (EIGHT_OF_FORTY, 30.0, min(3, repeats)),
    }
    for name, (model, length, times) in runs.items():
        seconds, events = least(times, lambda model=model, length=length: simulated(model, length, 1.0))  # type: ignore[misc]
        found[f"{name}_s"], found[f"{name}_events"], found[f"{name}_simulated_s"] = seconds, events, length
        begin = time.thread_time()
        Simulation(model, {}, 1)
        found[f"{name}_set_up_s"] = time.thread_time() - begin
    seconds, events = least(2, lambda: simulated(LABS, 4.0, 0.0, compiled=False))
    found["plain_events_s"] = events / seconds
    return found


def measure_compiling() -> Dict[str, float]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for state in ("cold", "warm"):
            out = subprocess.run(
                [sys.executable, "-c", FIRST], env=environment, check=True, capture_output=True, text=True
            ).stdout
            first, first_cpu, numba = map(float, out.split())
            # only what is not kept takes the compiler
            assert numba == (state == "cold")
            found[f"compile_{state}_s"], found[f"compile_{state}_cpu_s"] = first, first_cpu
    return found


def measure_cores(repeats: int) -> Dict[str, float]:
    """Windows a second: predictions of the lab's cluster, 30 s each."""
    jobs = [PredictionRun(LABS, seconds=25.0, settle=5.0, seed=seed) for seed in range(200)]
    found = {}
    for processes in (1, 2):

        def run(processes: int = processes) -> Tuple[float, float]:
            begin = time.perf_counter()
            count = sum(1 for _ in predict_all(jobs, processes))
            return time.perf_counter() - begin, float(count)

        seconds, windows = least(min(3, repeats), run)
        found[f"windows_s_{processes}"] = windows / seconds
    return found


def rows(found: Dict[str, float]) -> List[Row]:
    table: List[Row] = []

    def rate(what: str, value: float, target: float = 0.0) -> None:
        met = "" if not target else ("yes" if value >= target else "no")
        table.append(Row(what, f"{value / 1e6:.3g} M/s", f"{target / 1e6:.0f} M/s" if target else "", met))

    def length(what: str, value: float, target: float = 0.0) -> None:
        met = "" if not target else ("yes" if value <= target else "no")
        table.append(Row(what, f"{value:.3g} s", f"{target:.1f} s" if target else "", met))

    for queues, name in ((1, "one queue"), (8, "the 8 queues of an OSD"), (320, "the 320 queues of 40 OSDs")):
        if f"queue_events_s_{queues}" in found:
            rate(f"queue alone, {name}", found[f"queue_events_s_{queues}"], 50e6)
    for queues, name in ((1, "one queue"), (8, "8 queues"), (320, "320 queues")):
        if f"library_events_s_{queues}" in found:
            rate(f"Ceph's own library, {name}", found[f"library_events_s_{queues}"])
            times = found[f"queue_events_s_{queues}"] / found[f"library_events_s_{queues}"]
            table.append(
                Row("the twin's queue beside it", f"{times:.2f} times", "5 times", "yes" if times >= 5 else "no")
            )
    if "queue_plain_events_s" in found:
        rate("the same in plain Python", found["queue_plain_events_s"])
    names = {
        "one": "one OSD, size 1: clients, scrub, snaptrim",
        "three": "3 OSDs, size 3: all four loads",
        "lab": "the lab's 3 OSDs: all four loads",
        "forty": "40 OSDs, all simulated: all four loads",
        "eight_of_forty": "40 OSDs, 8 of them simulated: all four loads",
    }
    for name, title in names.items():
        if f"{name}_s" in found:
            rate(f"simulation, {title}", found[f"{name}_events"] / found[f"{name}_s"], 15e6)
    if "plain_events_s" in found:
        rate("simulation, the lab's in plain Python", found["plain_events_s"])
    if "three_s" in found:
        length("60 s of a 21 500 IOPS OSD, all four loads (a third of the 3 OSDs)", found["three_s"] / 3, 0.3)
        length("60 s of a 21 500 IOPS OSD alone, without recovery", found["one_s"], 0.3)
        for name, target in (("three", 0.0), ("lab", 0.0), ("forty", 2.0), ("eight_of_forty", 2.0)):
            simulated_s = found[f"{name}_simulated_s"]
            length(f"{simulated_s:.0f} s of {names[name]}", found[f"{name}_s"], target)
            length("setting that up", found[f"{name}_set_up_s"])
    if "compile_cold_s" in found:
        length("compiling, cold cache (CPU)", found["compile_cold_cpu_s"])
        length("compiling, cold cache (wall)", found["compile_cold_s"])
        length("loading from the cache (CPU)", found["compile_warm_cpu_s"])
    # until 2026-11-29: kept machine code is loaded without it since
    if "numba_import_warm_cpu_s" in found:
        length("importing numba (CPU)", found["numba_import_warm_cpu_s"])
    if "windows_s_1" in found:
        one, two = found["windows_s_1"], found["windows_s_2"]
        table.append(Row("windows of 30 s of the lab's cluster, 1 process (wall)", f"{one:.3g} /s", "", ""))
        table.append(Row("the same, 2 processes (wall)", f"{two:.3g} /s, {two / one:.2f} times", "", ""))
    return table


def render(found: Dict[str, float]) -> str:
    lines = ["| what | measured | target | met |", "| --- | --- | --- | --- |"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows(found)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    parser.add_argument("--render", type=Path, help="print the table of such a file instead of measuring")
    parser.add_argument("--repeats", type=int, default=7, help="the least of so many counts")
    parser.add_argument(
        "--dmclock", type=Path, help="a checkout of github.com/ceph/dmclock: its queue beside the twin's"
    )
    parser.add_argument("--only", choices=("queue", "simulation", "compiling", "cores"), action="append")
    given = parser.parse_args()
    if given.render:
        print(render(json.loads(given.render.read_text())["measured"]))
        return
    wanted = given.only or ["queue", "simulation", "compiling", "cores"]
    load_before = os.getloadavg()[0]
    found: Dict[str, float] = {}
    for name, measure in {
        "queue": lambda: measure_queue(given.repeats),
        "library": lambda: measure_library(given.dmclock, given.repeats),
        "simulation": lambda: measure_simulation(given.repeats),
        "compiling": measure_compiling,
        "cores": lambda: measure_cores(given.repeats),
    }.items():
        if name in wanted or (name == "library" and given.dmclock and "queue" in wanted):
            found.update(measure())
    print(render(found))
    machine = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
    }
    if given.output:
        given.output.write_text(json.dumps({"machine": machine, "measured": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
