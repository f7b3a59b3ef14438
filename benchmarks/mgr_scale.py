"""How long one tick of the plugin holds the interpreter, and how much memory it takes, by the size of the cluster.

    python benchmarks/mgr_scale.py --osds 100 1000 10000 --pgs 5000 50000 500000 --ticks 300 --runs 3
    python benchmarks/mgr_scale.py --render benchmarks/results/mgr-scale.jsonl --page benchmarks/results/mgr-scale.md

Runs the plugin's sampler on a made-up mgr (`synthetic_mgr.py`), without objectives' scopes and with five of them. Time
goes on by 5 s a tick without waiting. As many PGs are known as a plugin knows that has run for days. OSDs go down and
come back, and from the middle on two groups are compared. Each run of each size has a process of its own, and is a line
of the output.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import platform
import statistics
import sys
import threading
import time
import tracemalloc
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple
from unittest import mock

# Ceph's framework, or a stand-in for it, must be there before the plugin is imported
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "mgr"))
import runs_file
from mgr_stand_in import CommandResult
from synthetic_mgr import CLASSES, SyntheticMgr

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.measure.history import History
from monitors import MemoryStore
from tuner import compat, pg_details
from tuner.collect import Collector
from tuner.commander import MgrCommander
from tuner.sampler import Sampler, exempt_what_is_loaded
from tuner.scopes_watched import LOOK_S, ScopesWatched
from tuner.service import STATUS_WINDOW_S

INTERVAL_S = 5.0
BOUND_MS, BOUND_MB = 50.0, 150.0
SIZES = ("OSDs", "PGs", "scopes with objectives")
SCOPED = parse_slo(
    {
        "objectives": [
            *(f"client.p95_ms{{class={name}}} <= 10 ms" for name in CLASSES),
            "client.mean_ms{pool=pool1} <= 10 ms",
            "client.p95_ms{pool=pool2} <= 20 ms",
        ]
    }
)
"""Objectives of three device classes and of two pools."""
HOUR_S = 3600.0


@dataclass
class Ticks:
    """What was measured in each tick."""

    own_ms: List[float] = field(default_factory=list)
    """Processor time of the sampling thread, without building the mgr's documents."""
    garbage_ms: List[float] = field(default_factory=list)
    """Python's garbage collection, a part of it."""
    wall_ms: List[float] = field(default_factory=list)
    """Time that passed in the tick, without building the mgr's documents."""
    window_ms: List[float] = field(default_factory=list)
    """Processor time of what is exported after a tick: the last minute's window, and each class's part of it."""
    look_ms: List[float] = field(default_factory=list)
    """Processor time of the look at device classes and pools, in another thread once a minute."""
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


def peak_kb() -> int:
    """Highest resident memory of this process; `getrusage` counts what its parent had as well."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def collection_times() -> List[float]:
    """Seconds of processor time of each garbage collection from now on."""
    times: List[float] = []
    started = [0.0]

    def note(phase: str, _: Any) -> None:
        if phase == "start":
            started[0] = time.thread_time()
        else:
            times.append(time.thread_time() - started[0])

    gc.callbacks.append(note)
    return times


def plugin_on(mgr: SyntheticMgr) -> Sampler:
    """The plugin's sampler as `module.py` puts it together."""
    history = History(MemoryStore())
    collector = Collector(mgr, MgrCommander(mgr, CommandResult), compat.counters(mgr))  # type: ignore[arg-type]
    return Sampler(collector, lambda: history, lambda: mgr.now)


def scopes_on(mgr: SyntheticMgr) -> ScopesWatched:
    """What looks at device classes and pools, by the made-up mgr's clock."""
    return ScopesWatched(MgrCommander(mgr, CommandResult), lambda: mgr.now)  # type: ignore[arg-type]


def age(mgr: SyntheticMgr, sampler: Sampler) -> None:
    """Have the sampler know as many PGs as after days, and those of the last hour as it looks at them in one."""
    for pgs in (pg_details.PGS_KEPT, int(pg_details.PG_QUERIES * HOUR_S / INTERVAL_S)):
        mgr.prepare(2 * HOUR_S)
        with mock.patch.object(pg_details, "PG_QUERIES", min(pgs, mgr.pgs)):
            sampler.tick()


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


def cpu_ms(work: Callable[[], Any]) -> float:
    """Processor time of this thread."""
    started = time.thread_time()
    work()
    return 1000 * (time.thread_time() - started)


def export(sampler: Sampler, scopes: ScopesWatched) -> None:
    """What the automatic modes and Prometheus have of the last minute."""
    sampler.window(STATUS_WINDOW_S)
    for scope, members in scopes.members.items():
        window = sampler.window(STATUS_WINDOW_S)
        if window is not None:
            window.of(scope, [f"pool{number}" for number in members.pools])


def measure(osds: int, pgs: int, ticks: int, scoped: bool) -> Tuple[Ticks, float]:
    """Ticks, and the growth of the process's memory in MB, the made-up mgr's own texts included."""
    before_kb = peak_kb()
    mgr = SyntheticMgr(osds, pgs)
    sampler, scopes = plugin_on(mgr), scopes_on(mgr)
    exempt_what_is_loaded()
    measured = Ticks()
    look = lambda: scopes.look(SCOPED if scoped else None)  # noqa: E731
    look()
    sampler.scopes = scopes.members
    age(mgr, sampler)
    collections = collection_times()
    watcher = Watcher()
    for _ in range(100):
        watcher.longest_s = 0.0
        time.sleep(0.03)
        measured.idle_gap_ms.append(1000 * watcher.longest_s)
    for tick in range(ticks):
        story(mgr, sampler, tick, ticks)
        if scoped and tick % (LOOK_S / INTERVAL_S) == 0:
            measured.look_ms.append(cpu_ms(look))
            sampler.scopes = scopes.members
        # lets the watcher through, or it would count what the story took
        time.sleep(0.005)
        collections.clear()
        mgr.building_s = mgr.estimate_s = mgr.building_wall_s = 0.0
        mgr.counter_calls, watcher.longest_s = 0, 0.0
        began = time.perf_counter()
        own_ms = cpu_ms(sampler.tick)
        measured.wall_ms.append(1000 * (time.perf_counter() - began - mgr.building_wall_s))
        measured.own_ms.append(own_ms - 1000 * mgr.building_s)
        measured.garbage_ms.append(1000 * sum(collections))
        measured.estimate_ms.append(1000 * mgr.estimate_s)
        measured.counters.append(mgr.counter_calls)
        measured.gap_ms.append(1000 * watcher.longest_s)
        measured.window_ms.append(cpu_ms(lambda: export(sampler, scopes)))
    watcher.stop()
    return measured, (peak_kb() - before_kb) / 1024


def memory(osds: int, pgs: int, ticks: int, scoped: bool) -> Tuple[float, float]:
    """MB that the plugin's own code holds after so many ticks, and the highest there was, documents included."""
    tracemalloc.start()
    mgr = SyntheticMgr(osds, pgs)
    sampler, scopes = plugin_on(mgr), scopes_on(mgr)
    scopes.look(SCOPED if scoped else None)
    sampler.scopes = scopes.members
    age(mgr, sampler)
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
    calls = 100_000
    return (
        1000
        / calls
        * cpu_ms(lambda: [mgr.get_latest_unlabeled_counter("osd", str(call % 10), "osd.op_w") for call in range(calls)])
    )


def row(osds: int, pgs: int, ticks: int, scoped: bool) -> Dict[str, Any]:
    processors = runs_file.Processors()
    ticked, rss_mb = measure(osds, pgs, ticks, scoped)
    held = sorted(ticked.held_ms)
    line = {
        "OSDs": osds,
        "PGs": pgs,
        "scopes with objectives": len(SCOPED.scopes) if scoped else 0,
        "ticks": ticks,
        "held p50 (ms)": statistics.median(held),
        "held p99 (ms)": held[int(0.99 * (len(held) - 1))],
        "held max (ms)": held[-1],
        "of it estimate, max (ms)": max(ticked.estimate_ms),
        "of it garbage collection, max (ms)": max(ticked.garbage_ms),
        "wall time p50 (ms)": statistics.median(ticked.wall_ms),
        "wall time max (ms)": max(ticked.wall_ms),
        "windows after it, max (ms)": max(ticked.window_ms),
        "look at scopes p50 (ms)": statistics.median(ticked.look_ms or [0.0]),
        "look at scopes max (ms)": max(ticked.look_ms, default=0.0),
        "gap p50 (ms)": statistics.median(ticked.gap_ms),
        "gap max (ms)": max(ticked.gap_ms),
        "idle gap p50 (ms)": statistics.median(ticked.idle_gap_ms),
        "idle gap max (ms)": max(ticked.idle_gap_ms),
        "counters max": max(ticked.counters),
        "RSS growth (MB)": rss_mb,
    }
    measured = {name: round(value, 2) if isinstance(value, float) else value for name, value in line.items()}
    return {"measured": measured, "processors_percent": processors.percent()}


def together(lines: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """All runs of each size as one row: the largest of what is a maximum, the median of the rest."""
    sizes: Dict[Tuple[int, int], List[Dict[str, Any]]] = defaultdict(list)
    for line in lines:
        measured = line["measured"]
        sizes[measured["scopes with objectives"], measured["OSDs"]].append(measured)
    rows = []
    for _, runs in sorted(sizes.items()):
        # sizes are the same in all of them, and stay whole numbers
        merged = {
            name: (max if name in SIZES or "max" in name or "(MB)" in name else statistics.median)(
                run[name] for run in runs
            )
            for name in runs[0]
        }
        rows.append({**merged, "ticks": sum(run["ticks"] for run in runs), "runs": len(runs)})
    return rows


def misses(rows: List[Dict[str, Any]]) -> List[str]:
    """Targets that were not met, in words."""
    missed = []
    for line in rows:
        for name, bound in (
            ("held max (ms)", BOUND_MS),
            ("windows after it, max (ms)", BOUND_MS),
            ("look at scopes max (ms)", BOUND_MS),
            ("RSS growth (MB)", BOUND_MB),
        ):
            if line[name] > bound:
                missed.append(f"{_size(line)}: {name} is {line[name]:.1f}, more than {bound:g}")
    for small, large in zip(rows, rows[1:]):
        if small["scopes with objectives"] == large["scopes with objectives"]:
            for name in ("held p50 (ms)", "held max (ms)", "RSS growth (MB)"):
                if large[name] * small["OSDs"] > small[name] * large["OSDs"]:
                    missed += [f"{name} grows more than linearly from {_size(small)} to {_size(large)}"]
    return missed


def _size(line: Mapping[str, Any]) -> str:
    scopes = line["scopes with objectives"]
    return f"{line['OSDs']} OSDs" + (f" with {scopes} scopes" if scopes else "")


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """The measured part of the results' page."""
    rows = together(lines)
    columns = [[f"{value:.1f}" if isinstance(value, float) else f"{value:,}" for value in row.values()] for row in rows]
    body = ["| " + " | ".join(cells) + " |" for cells in zip(list(rows[0]), *columns)]
    body.insert(1, "| --- |" + " ---: |" * len(rows))
    conditions = [
        f"{line['command']}, {line['date']}; Python {line['python']}; {line['machine']}; {line['priority']}"
        for line in lines
    ]
    busy = [line["processors_percent"]["busy"] for line in lines]
    costs = [line["counter_us"] for line in lines]
    missed = misses(rows)
    return "\n".join(
        [
            *(f"{each}." for each in dict.fromkeys(conditions)),
            f"The machine's processors were busy for {min(busy):.0f} to {max(busy):.0f}% of the time. "
            f"One counter of the made-up mgr took {min(costs):.1f} to {max(costs):.1f} µs of its own.",
            "",
            *body,
            "",
            "Missed:" if missed else f"Missed: none of {BOUND_MS:g} ms, {BOUND_MB:g} MB and linear growth.",
            *[f"- {miss}" for miss in missed],
        ]
    )


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """In a process of its own, so that one size's memory is not counted for the next."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        return processes.submit(work, *arguments).result()


def priority() -> str:
    return "at idle priority" if os.sched_getscheduler(0) == os.SCHED_IDLE else "at usual priority"


def main() -> None:
    parser = runs_file.parser(__doc__, "mgr-scale.jsonl")
    parser.add_argument("--osds", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--pgs", type=int, nargs="+", default=[5000, 50_000, 500_000])
    parser.add_argument("--ticks", type=int, default=300)
    parser.add_argument("--memory-ticks", type=int, default=60)
    parser.add_argument("--runs", type=int, default=1, help="of each size, without scopes and with them")
    arguments = parser.parse_args()
    if len(arguments.osds) != len(arguments.pgs):
        parser.error(f"--osds has {len(arguments.osds)} numbers and --pgs {len(arguments.pgs)}, expected as many")
    runs_file.measure_and_show(arguments, measure_all, table)


def measure_all(arguments: argparse.Namespace) -> None:
    numbers = " ".join(f"--{name} {' '.join(map(str, getattr(arguments, name)))}" for name in ("osds", "pgs"))
    cases = [
        (osds, pgs, scoped)
        for _ in range(arguments.runs)
        for scoped in (False, True)
        for osds, pgs in zip(arguments.osds, arguments.pgs)
    ]
    for osds, pgs, scoped in cases[len(runs_file.lines_of(arguments.output)) :]:
        if runs_file.over(arguments):
            return
        line = apart(row, osds, pgs, arguments.ticks, scoped)
        held_mb, highest_mb = apart(memory, osds, pgs, arguments.memory_ticks, scoped)
        line["measured"].update({"objects held (MB)": round(held_mb, 2), "objects, highest (MB)": round(highest_mb, 2)})
        made = {
            "command": f"`python benchmarks/mgr_scale.py {numbers} --ticks {arguments.ticks} --runs {arguments.runs}`",
            "date": time.strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "machine": runs_file.machine(),
            "priority": priority(),
            "counter_us": round(counter_cost_us(), 2),
        }
        runs_file.append(arguments.output, {**line, **made})
        print(line["measured"], flush=True)


if __name__ == "__main__":
    main()
