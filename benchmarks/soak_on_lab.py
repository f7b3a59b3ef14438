"""The plugin on a lab for hours, in the automatic mode, with loads that come and go: does it level off?

    ceph-tuner lab up --mgrs 2
    python benchmarks/soak_on_lab.py --cluster lab --hours 6 --output soak.jsonl
    python benchmarks/soak_on_lab.py --render soak.jsonl --page benchmarks/results/soak.md

Each sample is a line of the output: what the active mgr's process takes (proc(5)), the keys below the plugin's prefix
with their bytes, and what the plugin says of itself. A run goes on until the whole file has so many hours, so several
runs make one record; `--leave` leaves the plugin in place for the next one, else it is taken out with all that it did.
A mgr that failed over is another process.

Whether something levels off is told over the last half of the record: Theil-Sen's slope (scipy.stats.theilslopes, 95%)
over the medians of blocks of ten minutes, since samples that follow each other are alike.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import runs_file
from automatic_on_lab import OBJECTIVES, Mode, load, plugin_options
from scipy.stats import theilslopes

from ceph_lab.cluster import Lab
from ceph_lab.processes import identify
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import TunerError

BLOCK_S = 600.0
FEWEST_BLOCKS = 6
CONFIDENCE = 0.95
BORNE = 0.02
"""Growth over the last half, as a share of the median there, that counts as level."""
LOADS = ("client-scrub", "client", "client-recovery", "client-snaptrim", "mixed")
WORKS_S, RESTS_S = (300.0, 1200.0), (60.0, 300.0)
"""How long a load lasts, and how long there is none."""

OF_THE_PROCESS = {"rss_kib": "resident memory, KiB", "threads": "threads", "fds": "file descriptors"}
OF_THE_STORE = {"keys": "keys", "key_bytes": "bytes of the keys' values"}
LEVEL, GROWS, OPEN = "levels off", "grows", "cannot be told"


class Trend(NamedTuple):
    """Of one figure over the last half of a record."""

    median: float
    slope: float
    """An hour."""
    low: float
    high: float
    hours: float

    @property
    def verdict(self) -> str:
        """By the ends of the slope's interval: what they come to over the time, beside what is borne."""
        # less than one of something that is counted is none
        borne = max(BORNE * self.median, 0.5)
        if self.high * self.hours <= borne:
            return LEVEL
        return GROWS if self.low * self.hours > borne else OPEN


def process_figures(pid: int) -> Dict[str, int]:
    """Resident memory, threads and descriptors of a process. Raises OSError where it is gone."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return {
        "rss_kib": int(status["VmRSS"].split()[0]),
        "threads": int(status["Threads"]),
        "fds": len(os.listdir(f"/proc/{pid}/fd")),
    }


def sample(lab: Lab, cluster: Cluster) -> Dict[str, Any]:
    """What there is now. Raises TunerError, OSError."""
    active = str(json.loads(cluster.commander.mon("mgr dump", {}))["active_name"])
    process = identify(lab.daemon_pid(f"mgr.{active}") or 0)
    if process is None:
        raise ProcessLookupError(f"mgr.{active} does not run")
    stored = cluster.store.items("")
    told = json.loads(cluster.commander.mon("tuner status", {"format": "json"}))
    kinds: Counter[str] = Counter(key.rpartition("/")[0] or key for key in stored)
    window = told["window"] or {"measures": {}}
    return {
        "mgr": active,
        "process": list(process),
        **process_figures(process.pid),
        "keys": len(stored),
        "key_bytes": sum(len(text.encode()) for text in stored.values()),
        "keys_by_kind": dict(sorted(kinds.items())),
        "sampling": told["sampling"],
        "client_iops": window["measures"].get("client.iops", [None])[0],
        "phase": json.loads(cluster.commander.mon("tuner auto explain", {"format": "json"})).get("phase"),
    }


@contextmanager
def coming_and_going(lab: str, randomness: random.Random) -> Iterator[List[str]]:
    """Loads and pauses while the block lasts; gives a list of the load that is there now."""
    stop, now = threading.Event(), [""]

    def work() -> None:
        while not stop.is_set():
            now[0] = randomness.choice(LOADS)
            with load(lab, now[0], ["rate=250"]):
                stop.wait(randomness.uniform(*WORKS_S))
            now[0] = ""
            stop.wait(randomness.uniform(*RESTS_S))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield now
    finally:
        stop.set()
        thread.join()


def measure(arguments: argparse.Namespace) -> None:
    """Until the file has the hours, or Ctrl-C."""
    earlier = runs_file.lines_of(arguments.output)
    part, before = 1 + max((line["part"] for line in earlier), default=0), measured_s(earlier)
    lab = Lab.open(arguments.cluster)
    conditions = {"part": part, "ceph": lab.state.ceph_version, "machine": runs_file.machine()}
    with closing(open_cluster(lab.name)) as cluster:
        mode = Mode(cluster, plugin_options(arguments.window))
        try:
            cluster.store.set("slo", json.dumps({"name": "benchmark", "objectives": list(OBJECTIVES)}))
            mode.mon("tuner auto on")
            with coming_and_going(lab.name, random.Random(f"{arguments.seed}/{part}")) as loads:
                began = time.monotonic()
                while before + time.monotonic() - began < 3600 * arguments.hours and not runs_file.over(arguments):
                    at = time.monotonic() - began
                    # a mgr that begins anew does not answer: the next sample is of the next one
                    with suppress(TunerError, OSError):
                        line = {**conditions, "at": time.time(), "seconds": round(at, 1), "load": loads[0]}
                        line.update(sample(lab, cluster))
                        runs_file.append(arguments.output, line)
                        shown = {name: line[name] for name in (*OF_THE_PROCESS, *OF_THE_STORE)}
                        print(f"{(before + at) / 3600:.2f} h, {loads[0] or 'no load'}: {shown}", flush=True)
                    time.sleep(arguments.interval)
        except KeyboardInterrupt:
            print("ends early")
        finally:
            if not arguments.leave:
                mode.close()


def measured_s(lines: Sequence[Mapping[str, Any]]) -> float:
    """Length of the record: the time between parts is none of it."""
    ends: Dict[int, float] = {}
    for line in lines:
        ends[line["part"]] = max(ends.get(line["part"], 0.0), line["seconds"])
    return sum(ends.values())


def course(lines: Sequence[Mapping[str, Any]]) -> List[Tuple[float, Mapping[str, Any]]]:
    """Samples with the second of the record."""
    placed, offset = [], 0.0
    for part in sorted({line["part"] for line in lines}):
        own = [line for line in lines if line["part"] == part]
        placed += [(offset + line["seconds"], line) for line in own]
        offset += measured_s(own)
    return placed


def process_of(line: Mapping[str, Any]) -> Tuple[int, ...]:
    return tuple(line["process"])


def last_half(lines: Sequence[Mapping[str, Any]], name: str) -> List[Tuple[float, float]]:
    """Values of a figure; of what processes have, those of the process that was there the longest."""
    half = measured_s(lines) / 2
    placed = [(second, line) for second, line in course(lines) if second >= half]
    if name in OF_THE_PROCESS and placed:
        (longest, _), *_ = Counter(process_of(line) for _, line in placed).most_common(1)
        placed = [(second, line) for second, line in placed if process_of(line) == longest]
    return [(second, float(line[name])) for second, line in placed]


def trend(values: Sequence[Tuple[float, float]]) -> Trend:
    """Raises ValueError where there are too few blocks."""
    blocks: Dict[int, List[float]] = {}
    for second, value in values:
        blocks.setdefault(int(second // BLOCK_S), []).append(value)
    if len(blocks) < FEWEST_BLOCKS:
        raise ValueError(f"{len(blocks)} blocks of {BLOCK_S / 60:g} min, {FEWEST_BLOCKS} are needed")
    hours = [block * BLOCK_S / 3600 for block in blocks]
    medians = [statistics.median(block) for block in blocks.values()]
    slope, _, low, high = theilslopes(medians, hours, CONFIDENCE)
    whole = (max(second for second, _ in values) - min(second for second, _ in values)) / 3600
    return Trend(statistics.median(medians), float(slope), float(low), float(high), whole)


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row for each figure, and what the record is made of."""
    rows = [
        "| figure | first | last | median of the last half | slope an hour (95%) | it |",
        "| --- |" + " ---: |" * 4 + " --- |",
    ]
    for name, meaning in {**OF_THE_PROCESS, **OF_THE_STORE}.items():
        values = last_half(lines, name)
        cells = [f"{lines[0][name]}", f"{lines[-1][name]}"]
        try:
            found = trend(values)
            cells += [
                f"{found.median:.0f}",
                f"{found.slope:+.3g} ({found.low:+.3g} to {found.high:+.3g})",
                found.verdict,
            ]
        except ValueError as few:
            cells += ["", "", f"{OPEN}: {few}"]
        rows.append(f"| {meaning} | {' | '.join(cells)} |")
    processes = list(dict.fromkeys(process_of(line) for line in lines))
    busy = sum(bool(line["load"]) for line in lines) / len(lines)
    words = (
        f"{measured_s(lines) / 3600:.1f} h in {len({line['part'] for line in lines})} parts, {len(lines)} samples, "
        f"under load in {busy:.0%} of them; {len(processes)} mgr processes."
    )
    return "\n".join([*rows, "", words])


def main() -> int:
    """0 where everything levels off."""
    # a shell starts what runs in its background with Ctrl-C ignored, and the load that is ended by it inherits that
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = runs_file.lab_parser(__doc__, "soak.jsonl")
    parser.add_argument("--hours", type=float, default=6.0, help="of all runs together")
    parser.add_argument("--interval", type=float, default=30.0, help="seconds between samples")
    parser.add_argument("--window", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--leave", action="store_true", help="leave the plugin in the lab, for the next run")
    arguments = parser.parse_args()
    if arguments.render is None:
        measure(arguments)
    lines = runs_file.lines_of(arguments.render or arguments.output)
    if not lines:
        print("no sample was made", file=sys.stderr)
        return 1
    runs_file.show(table(lines), arguments)
    return 0 if table(lines).count(f"| {LEVEL} |") == len(OF_THE_PROCESS) + len(OF_THE_STORE) else 1


if __name__ == "__main__":
    sys.exit(main())
