"""The plugin on a lab for hours, in the automatic mode, with loads that come and go: does it level off?

    ceph-tuner lab up --mgrs 2
    python benchmarks/flight.py --hours 24 --output /dev/null --store day.json
    python benchmarks/soak_on_lab.py --cluster lab --hours 6 --store day.json --output soak.jsonl
    python benchmarks/soak_on_lab.py --render soak.jsonl --page benchmarks/results/soak.md

Each sample is a line of the output: what the active mgr's process takes (proc(5)), the keys below the plugin's prefix
with their bytes, and what the plugin says of itself. A run is a part of the record, with the plugin put in and taken
out again, and goes on until the whole file has so many hours. A mgr that failed over is another process.

The plugin's keys lie in rings that take weeks to fill. With `--store` a part begins with full ones, of what a flight
left, so that what grows then grows beyond them.

Whether something levels off is told for each part, over its last half: Theil-Sen's slope (scipy.stats.theilslopes,
95%) over the medians of blocks of ten minutes, since samples that follow each other are alike.
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
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import runs_file
from automatic_on_lab import OBJECTIVES, Mode, load, plugin_options
from scipy.stats import theilslopes
from store_keys import MOST_KEYS

from ceph_lab.cluster import Lab
from ceph_lab.processes import identify
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.autopilot.audit_log import BLOCKS, PER_BLOCK, Audit
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.changes.journal import KEEP, UNDONE, Journal
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.measure.history import History

BLOCK_S = 600.0
FEWEST_BLOCKS = 6
CONFIDENCE = 0.95
BORNE = 0.02
"""Growth over the last half, as a share of the median there, that counts as level."""
OF_A_PAST = ("history/", "audit/", "journal/", "lock-generation")
"""Keys that tell what was. The others are of a state that this cluster is not in."""
LOADS = ("client-scrub", "client", "client-recovery", "client-snaptrim", "mixed")
WORKS_S, RESTS_S = (300.0, 1200.0), (60.0, 300.0)
"""How long a load lasts, and how long there is none."""

OF_THE_PROCESS = {"rss_kib": "resident memory, KiB", "threads": "threads", "fds": "file descriptors"}
OF_THE_STORE = {"keys": "keys", "key_bytes": "bytes of the keys' values"}
LEVEL, GROWS, OPEN = "levels off", "grows", "cannot be told"


class Trend(NamedTuple):
    """Of one figure over the last half of a part."""

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


def kind_of(key: str) -> str:
    """What comes before a key's last part."""
    return key.rpartition("/")[0] or key


def sample(lab: Lab, cluster: Cluster) -> Dict[str, Any]:
    """What there is now. Raises TunerError, OSError."""
    active = str(json.loads(cluster.commander.mon("mgr dump", {}))["active_name"])
    process = identify(lab.daemon_pid(f"mgr.{active}") or 0)
    if process is None:
        raise ProcessLookupError(f"mgr.{active} does not run")
    stored = cluster.store.items("")
    told = json.loads(cluster.commander.mon("tuner status", {"format": "json"}))
    kinds = Counter(kind_of(key) for key in stored)
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
def coming_and_going(lab: str, rate: int, randomness: random.Random) -> Iterator[List[str]]:
    """Loads and pauses while the block lasts; gives a list of the load that is there now."""
    stop, now = threading.Event(), [""]

    def work() -> None:
        while not stop.is_set():
            now[0] = randomness.choice(LOADS)
            with load(lab, now[0], [f"rate={rate}"]):
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


def begin_with(store: Store, path: Path) -> None:
    """Put the past of a flight in the place of what is there, over and over until each ring is full."""
    left = json.loads(path.read_text(encoding="utf-8"))
    past = {key: text for key, text in left.items() if key.startswith(OF_A_PAST)}
    for key in store.items(""):
        store.remove(key)
    for key, text in past.items():
        store.set(key, text)
    history, audit, journal = History(store), Audit(store), Journal(store)
    done = [entry for entry in journal.entries() if entry.state == UNDONE]
    for entry in journal.entries():
        if entry.state != UNDONE:
            store.remove(f"journal/{entry.number:08d}")
    for number in range(journal.next_number(), journal.next_number() + KEEP):
        journal.write(replace(done[number % len(done)], number=number))
    journal.trim()
    trials, changes, records = history.trials(), history.timeline(), audit.newest()
    for number in range(MOST_KEYS["history/trial"] * 10):
        history.add_trial(trials[number % len(trials)])
    for number in range(MOST_KEYS["history/timeline"] * 30):
        history.add_change(changes[number % len(changes)])
    for number in range(BLOCKS * PER_BLOCK):
        record = records[number % len(records)]
        audit.append(record.at, record.who, record.what, record.why, record.detail, record.outcome)


def measure(arguments: argparse.Namespace) -> None:
    """Until the file has the hours, or Ctrl-C."""
    earlier = runs_file.lines_of(arguments.output)
    part, before = 1 + max((line["part"] for line in earlier), default=0), measured_s(earlier)
    lab = Lab.open(arguments.cluster)
    drives = ", ".join(str(group.drive) for group in lab.state.options.groups)
    conditions = {"part": part, "ceph": lab.state.ceph_version, "drives": drives, "machine": runs_file.machine()}
    with closing(open_cluster(lab.name)) as cluster:
        if arguments.store is not None:
            begin_with(cluster.store, arguments.store)
            conditions["began with"] = sorted(Counter(kind_of(key) for key in cluster.store.items("")).items())
        mode = Mode(cluster, plugin_options(arguments.window))
        try:
            cluster.store.set(
                "slo", json.dumps({"name": "benchmark", "objectives": arguments.objective or list(OBJECTIVES)})
            )
            mode.mon("tuner auto on")
            with coming_and_going(lab.name, arguments.rate, random.Random(f"{arguments.seed}/{part}")) as loads:
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
            mode.close()


def parts_of(lines: Sequence[Mapping[str, Any]]) -> List[List[Mapping[str, Any]]]:
    """Each a cluster of its own, from its beginning."""
    return [[line for line in lines if line["part"] == part] for part in sorted({line["part"] for line in lines})]


def measured_s(lines: Sequence[Mapping[str, Any]]) -> float:
    """Length of the record: the time between parts is none of it."""
    return sum(max(float(line["seconds"]) for line in part) for part in parts_of(lines))


def process_of(line: Mapping[str, Any]) -> Tuple[int, ...]:
    return tuple(line["process"])


def last_half(part: Sequence[Mapping[str, Any]], name: str) -> List[Tuple[float, float]]:
    """Seconds and values of a figure; of what processes have, those of the process that was there the longest."""
    half = measured_s(part) / 2
    lines = [line for line in part if line["seconds"] >= half]
    if name in OF_THE_PROCESS and lines:
        (longest, _), *_ = Counter(process_of(line) for line in lines).most_common(1)
        lines = [line for line in lines if process_of(line) == longest]
    return [(line["seconds"], float(line[name])) for line in lines]


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
    """What the record is made of, and for each part a row for each figure."""
    parts = parts_of(lines)
    whole = f"{measured_s(lines) / 3600:.1f} h in {len(parts)} parts."
    return "\n\n".join([whole, *(part_table(part) for part in parts)])


def part_table(part: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        "| figure | first | last | median of the last half | slope an hour (95%) | it |",
        "| --- |" + " ---: |" * 4 + " --- |",
    ]
    for name, meaning in {**OF_THE_PROCESS, **OF_THE_STORE}.items():
        cells = [f"{part[0][name]}", f"{part[-1][name]}"]
        try:
            slope = trend(last_half(part, name))
            cells += [
                f"{slope.median:.0f}",
                f"{slope.slope:+.3g} ({slope.low:+.3g} to {slope.high:+.3g})",
                slope.verdict,
            ]
        except ValueError as few:
            cells += ["", "", f"{OPEN}: {few}"]
        rows.append(f"| {meaning} | {' | '.join(cells)} |")
    processes = len({process_of(line) for line in part})
    busy = sum(bool(line["load"]) for line in part) / len(part)
    # the first part was measured before its drives were noted
    words = (
        f"Part {part[0]['part']}: Ceph {part[0]['ceph']} on {part[0].get('drives', 'nvme')}, "
        f"{measured_s(part) / 3600:.1f} h, {len(part)} samples, under load in {busy:.0%} of them; "
        f"mgr processes: {processes}."
    )
    keys = ["| kind of key | at the end | at most |", "| --- | ---: | ---: |"]
    by_kind = part[-1]["keys_by_kind"].items()
    keys += [f"| {kind} | {count} | {MOST_KEYS[kind]} |" for kind, count in by_kind if kind in MOST_KEYS]
    return "\n".join([words, "", *rows, "", *keys])


def main() -> int:
    """0 where everything levels off that can be told, and something can."""
    # a shell starts what runs in its background with Ctrl-C ignored, and the load that is ended by it inherits that
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = runs_file.lab_parser(__doc__, "soak.jsonl")
    parser.add_argument("--hours", type=float, default=6.0, help="of all runs together")
    parser.add_argument("--interval", type=float, default=30.0, help="seconds between samples")
    parser.add_argument("--window", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Path, help="begin with full rings, of what `flight.py --store` left")
    parser.add_argument("--rate", type=int, default=250, help="I/O a second of the clients")
    parser.add_argument("--objective", action="append", help="in the place of those for NVMe drives; may be repeated")
    arguments = parser.parse_args()
    if arguments.render is None:
        measure(arguments)
    lines = runs_file.lines_of(arguments.render or arguments.output)
    if not lines:
        print("no sample was made", file=sys.stderr)
        return 1
    told = table(lines)
    runs_file.show(told, arguments)
    return 0 if f"| {LEVEL} |" in told and f"| {GROWS} |" not in told else 1


if __name__ == "__main__":
    sys.exit(main())
