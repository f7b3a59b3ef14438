"""How long one tick of the plugin holds the interpreter, and how much memory it takes, by the size of the cluster.

    python benchmarks/mgr_scale.py --osds 100 1000 10000 --pgs 5000 50000 500000 --ticks 300

Runs the plugin's sampler on a made-up mgr (`synthetic_mgr.py`). Time goes on by 5 s a tick without waiting. OSDs go
down and come back, and from the middle on two groups are compared. Each size runs in a process of its own. `--output`
writes the table into `docs/results/mgr-scale.md` or another file, in place of the one that is between its marks.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import platform
import resource
import statistics
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Tuple

import rich.console
import rich.table

# Ceph's framework, or a stand-in for it, must be there before the plugin is imported
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "mgr"))
from measured_page import put
from mgr_stand_in import CommandResult
from synthetic_mgr import SyntheticMgr

from ceph_tuner.history import History
from monitors import MemoryStore
from tuner import compat
from tuner.collect import Collector
from tuner.commander import MgrCommander
from tuner.sampler import Sampler

INTERVAL_S = 5.0
BOUND_MS, BOUND_MB = 50.0, 150.0


@dataclass
class Ticks:
    """What was measured in each tick."""

    own_ms: List[float] = field(default_factory=list)
    """Processor time of the sampling thread, without building the mgr's documents."""
    garbage_ms: List[float] = field(default_factory=list)
    """Python's garbage collection, a part of it."""
    estimate_ms: List[float] = field(default_factory=list)
    """What ceph-mgr would take to build them."""
    counters: List[int] = field(default_factory=list)
    gap_ms: List[float] = field(default_factory=list)
    """Longest time in the tick for which another thread did not get to run, beyond the millisecond that it sleeps."""

    idle_gap_ms: List[float] = field(default_factory=list)
    """The same in 30 ms in which nothing was done."""

    @property
    def held_ms(self) -> List[float]:
        return [own + estimate for own, estimate in zip(self.own_ms, self.estimate_ms)]


class Watcher:
    """Another thread that wants to run every millisecond."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            before = time.perf_counter()
            time.sleep(0.001)
            self.longest_s = max(self.longest_s, time.perf_counter() - before - 0.001)


def collection_times() -> List[float]:
    """Seconds of processor time of each garbage collection from now on."""
    found: List[float] = []
    started = [0.0]

    def note(phase: str, _: Any) -> None:
        if phase == "start":
            started[0] = time.thread_time()
        else:
            found.append(time.thread_time() - started[0])

    gc.callbacks.append(note)
    return found


def plugin_on(mgr: SyntheticMgr) -> Sampler:
    """The plugin's sampler as `module.py` puts it together."""
    history = History(MemoryStore())
    collector = Collector(mgr, MgrCommander(mgr, CommandResult), compat.counters(mgr))  # type: ignore[arg-type]
    return Sampler(collector, lambda: history, lambda: mgr.now)


def story(mgr: SyntheticMgr, sampler: Sampler, tick: int, ticks: int) -> None:
    """What happens to the cluster before a tick."""
    if tick % 40 == 20:
        mgr.set_away(tick % mgr.osds, True)
    if tick % 40 == 30:
        mgr.set_away((tick - 10) % mgr.osds, False)
    hosts = [list(range(start, start + 20)) for start in (0, 20)]
    if tick == ticks // 2:
        sampler.groups.watch({"tried": hosts[0], "control": hosts[1]})
    if tick == 3 * ticks // 4:
        third = mgr.osds // 3
        sampler.groups.watch({"tried": range(third), "control": range(third, mgr.osds)})
    mgr.prepare(INTERVAL_S)


def measure(osds: int, pgs: int, ticks: int) -> Tuple[Ticks, float]:
    """Ticks, and the growth of the process's memory in MB, the made-up mgr's own texts included."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mgr = SyntheticMgr(osds, pgs)
    sampler = plugin_on(mgr)
    found = Ticks()
    collections = collection_times()
    watcher = Watcher()
    for _ in range(100):
        watcher.longest_s = 0.0
        time.sleep(0.03)
        found.idle_gap_ms.append(1000 * watcher.longest_s)
    for tick in range(ticks):
        story(mgr, sampler, tick, ticks)
        # lets the watcher through, or it would count what the story took
        time.sleep(0.005)
        collections.clear()
        mgr.building_s = mgr.estimate_s = 0.0
        mgr.counter_calls, watcher.longest_s = 0, 0.0
        started = time.thread_time()
        sampler.tick()
        own_s = time.thread_time() - started - mgr.building_s
        found.own_ms.append(1000 * own_s)
        found.garbage_ms.append(1000 * sum(collections))
        found.estimate_ms.append(1000 * mgr.estimate_s)
        found.counters.append(mgr.counter_calls)
        found.gap_ms.append(1000 * watcher.longest_s)
    watcher.stop()
    return found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024


def memory(osds: int, pgs: int, ticks: int) -> Tuple[float, float]:
    """MB that the plugin's own code holds after so many ticks, and the highest there was, documents included."""
    tracemalloc.start()
    mgr = SyntheticMgr(osds, pgs)
    sampler = plugin_on(mgr)
    for tick in range(ticks):
        story(mgr, sampler, tick, ticks)
        sampler.tick()
    gc.collect()
    highest = tracemalloc.get_traced_memory()[1]
    ours = [tracemalloc.Filter(True, pattern) for pattern in ("*/mgr_module/tuner/*", "*/ceph_tuner/*")]
    held = sum(entry.size for entry in tracemalloc.take_snapshot().filter_traces(ours).statistics("filename"))
    tracemalloc.stop()
    return held / 2**20, highest / 2**20


def counter_cost_us() -> float:
    """What the made-up mgr itself takes for one counter."""
    mgr = SyntheticMgr(10, 10)
    started = time.thread_time()
    for call in range(100_000):
        mgr.get_latest_unlabeled_counter("osd", str(call % 10), "osd.op_w")
    return (time.thread_time() - started) * 10


def row(osds: int, pgs: int, ticks: int) -> Dict[str, Any]:
    found, rss_mb = measure(osds, pgs, ticks)
    held = sorted(found.held_ms)
    return {
        "OSDs": osds,
        "PGs": pgs,
        "ticks": ticks,
        "held p50 (ms)": statistics.median(held),
        "held p99 (ms)": held[int(0.99 * (len(held) - 1))],
        "held max (ms)": held[-1],
        "of it estimate, max (ms)": max(found.estimate_ms),
        "of it garbage collection, max (ms)": max(found.garbage_ms),
        "gap p50 (ms)": statistics.median(found.gap_ms),
        "gap max (ms)": max(found.gap_ms),
        "idle gap p50 (ms)": statistics.median(found.idle_gap_ms),
        "idle gap max (ms)": max(found.idle_gap_ms),
        "counters max": max(found.counters),
        "RSS growth (MB)": rss_mb,
    }


def table(rows: List[Dict[str, Any]]) -> List[List[str]]:
    shown = [[f"{value:.1f}" if isinstance(value, float) else f"{value:,}" for value in line.values()] for line in rows]
    return [list(rows[0]), *shown]


def misses(rows: List[Dict[str, Any]]) -> List[str]:
    """Targets that were not met, in words."""
    found = []
    for line in rows:
        for name, bound in (("held max (ms)", BOUND_MS), ("RSS growth (MB)", BOUND_MB)):
            if line[name] > bound:
                found.append(f"{line['OSDs']} OSDs: {name} is {line[name]:.1f}, more than {bound:g}")
    for small, large in zip(rows, rows[1:]):
        for name in ("held p50 (ms)", "held max (ms)", "RSS growth (MB)"):
            if large[name] * small["OSDs"] > small[name] * large["OSDs"]:
                found += [f"{name} grows more than linearly from {small['OSDs']} to {large['OSDs']} OSDs"]
    return found


def page(rows: List[Dict[str, Any]], command: str) -> str:
    """The measured part of the results' page."""
    head, *body = table(rows)
    lines = ["| " + " | ".join(line) + " |" for line in zip(*[head, *body])]
    lines.insert(1, "| --- |" + " ---: |" * len(body))
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    machine = (
        f"{multiprocessing.cpu_count()} cores of a shared {platform.machine()} virtual machine, busy with other work"
    )
    costs = f"one counter of the made-up mgr took {counter_cost_us():.1f} µs of its own"
    missed = misses(rows)
    return "\n".join(
        [
            f"`{command}`, {date}; Python {platform.python_version()}; {machine}; {costs}.",
            "",
            *lines,
            "",
            "Missed:" if missed else f"Missed: none of {BOUND_MS:g} ms, {BOUND_MB:g} MB and linear growth.",
            *[f"- {miss}" for miss in missed],
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--osds", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--pgs", type=int, nargs="+", default=[5000, 50_000, 500_000])
    parser.add_argument("--ticks", type=int, default=300)
    parser.add_argument("--memory-ticks", type=int, default=60)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if len(arguments.osds) != len(arguments.pgs):
        parser.error(f"--osds has {len(arguments.osds)} numbers and --pgs {len(arguments.pgs)}, expected as many")
    sizes = list(zip(arguments.osds, arguments.pgs))
    rows = []
    for osds, pgs in sizes:
        # a process of its own, so that one size's memory is not counted for the next
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
            line = processes.submit(row, osds, pgs, arguments.ticks).result()
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
            held_mb, highest_mb = processes.submit(memory, osds, pgs, arguments.memory_ticks).result()
        rows.append({**line, "objects held (MB)": held_mb, "objects, highest (MB)": highest_mb})
    head, *body = table(rows)
    screen = rich.table.Table()
    for name in head:
        screen.add_column(name, justify="right")
    for line in body:
        screen.add_row(*line)
    console = rich.console.Console(width=240)
    console.print(screen)
    for miss in misses(rows):
        console.print(f"missed: {miss}")
    if arguments.output:
        numbers = " ".join(f"--{name} {' '.join(map(str, getattr(arguments, name)))}" for name in ("osds", "pgs"))
        command = f"python benchmarks/mgr_scale.py {numbers} --ticks {arguments.ticks}"
        put(page(rows, command), arguments.output)


if __name__ == "__main__":
    main()
