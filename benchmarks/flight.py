"""Flies the whole automatic mode over a twin for hours of its time, while everything goes wrong around it.

    python benchmarks/flight.py --hours 24 --seed 1 --output benchmarks/results/flight.jsonl
    python benchmarks/flight.py --render benchmarks/results/flight.jsonl --page benchmarks/results/flight.md

The plugin's own code runs, but for the mgr, the clock and the driver's thread (`flight_mgr.py`). Exits with 1 where a
law of `flight_laws.py` does not hold.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import random
import sys
import tempfile
import threading
import time
import tracemalloc
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import runs_file
from flight_faults import REGIMES, Chance, Operators, Optimiser
from flight_laws import Laws
from flight_mgr import Killed, MgrClock, MgrProcess, Trouble
from flight_world import World

from ceph_tuner.cluster.lock_holder import holder_of
from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.core.autopilot.state import ASKING, OFF, RETURNING, WRITING
from ceph_tuner.core.book.book import PAGES_KEY, Book
from ceph_tuner.core.book.events import OFF as BOOK_OFF
from ceph_tuner.core.book.events import ON as BOOK_ON
from ceph_tuner.core.book.page import TRIAL, VALIDATED, Page
from ceph_tuner.core.boost.rules import OPTION as BOOST_RULES
from ceph_tuner.core.boost.state import OFF as NO_BOOST
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.changes.guardian import Guardian
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY
from tuner.options import DEFAULTS, policy_of

INTERVAL_S, LATE_S = 10.0, 60.0
OPTIONS: Dict[str, Any] = {
    "sample_interval": INTERVAL_S,
    "worker_timeout": 1.0,
    "auto_baseline_windows": 6,
    "auto_most_windows": 24,
    "auto_tolerance": 0.3,
    "auto_confidence": 0.9,
    "auto_hold_windows": 4,
    "auto_back_off": 300.0,
    "auto_back_off_most": 1200.0,
    "auto_quiet": 60.0,
    "auto_trials": 50,
    "auto_changes_per_day": 60,
    "auto_blackout": "03:00-04:00",
}
"""Quicker than an operator would have it, so that a day holds many trials."""
KINDS: Dict[str, Tuple[Dict[str, Any], int]] = {
    "hosts": ({}, 2),
    "osds": ({}, 3),
    "alternating": ({"auto_canary": "alternate"}, 2),
    "defaults": ({name: DEFAULTS[name] for name in OPTIONS if name.startswith("auto_")}, 2),
}
"""Options, and copies of the objects: canaries of hosts or of OSDs, none, and the plugin's own thresholds."""
BOOK_OPTIONS: Dict[str, Any] = {
    "book_watch": 60.0,
    "book_rest": 60.0,
    BOOST_RULES: "recovery after 1min at-most 30min, backfill after 2min at-most 2min, snaptrim after 2min",
}
PAGES = tuple(
    Page(number, regime, {"osd_max_scrubs": number, **settings}, VALIDATED, TRIAL, 1.0)
    for number, regime, settings in (
        (1, "idle", {}),
        (2, "recovering", {"osd_mclock_profile": "high_recovery_ops"}),
        (3, "backfilling", {"osd_mclock_profile": "balanced"}),
        (4, "recovering+backfilling", {"osd_mclock_profile": "high_recovery_ops"}),
        (5, "trimming", {}),
        (6, "backfilling+trimming", {"osd_mclock_profile": "high_client_ops"}),
        (7, "office", {"osd_mclock_profile": "high_client_ops"}),
        (8, "office+recovering", {"osd_mclock_profile": "balanced"}),
        (9, "office+trimming", {}),
    )
)
BOUNDS_MS = (60.0, 160.0)
"""The hard objective lies between these: scrubs miss it under Ceph's own profile."""


class Flight:
    """One cluster, its mgrs one after the other, and their luck."""

    def __init__(
        self,
        seed: int,
        directory: Path,
        options: Optional[Dict[str, Any]] = None,
        copies: int = 2,
        book: Sequence[Page] = (),
    ) -> None:
        """`options` of the module, beside OPTIONS; `book`: pages, with which the book is on all the time, as boosts.

        Operators then have a calendar, and a marker for one of its policies.
        """
        # others may have left some, whoever flies in a process with them
        self._threads, self._children = set(threading.enumerate()), set(children())
        self.world, self.trouble = World(seed, copies), Trouble()
        self._chance = random.Random(self.world.random.random())
        self._optimiser = Optimiser(directory, random.Random(self.world.random.random()))
        self._options = {**DEFAULTS, **OPTIONS, "worker_python": str(self._optimiser.path), **(options or {})}
        if self._options.get(BOOST_RULES):
            # rules that are not in the database as well were removed
            self.world.cluster.config.set("mgr", f"{OPTION_PREFIX}{BOOST_RULES}", str(self._options[BOOST_RULES]))
        self.laws = Laws(self.world, self.trouble, policy_of(self._options.__getitem__), INTERVAL_S)
        self.laws.mgr_now = lambda: self.world.now() + self.world.offset
        self.world.watchers.append(self._watch)
        self.chance = Chance(self.world, self.trouble, self.laws, BOUNDS_MS)
        self.operators = Operators(self.world, self.laws, BOUNDS_MS, bool(book))
        self.process: Optional[MgrProcess] = None
        self._number = 0
        self._next_start = self.world.now()
        self._guardian: Optional[Guardian] = None
        """On another host, from one mgr's end to the next one's."""
        self.counts = self.laws.counts
        self.problems: List[str] = []
        self._book = bool(book)
        if book:
            stored = Book(tuple(book), book[-1].number)
            self.world.cluster.store.set(PAGES_KEY, json.dumps(versioned(stored.to_dict())))
            self.world.cluster.store.set(BOUNDS_KEY, json.dumps(REGIMES.to_dict()))
        self._phase = ""

    def fly(self, hours: float, rate: float, deeds: float) -> None:
        """Go on for so many hours, with so many faults and operators' deeds in each."""
        end = self.world.now() + hours * 3600.0
        while self.world.now() < end:
            self.chance.happen(rate, INTERVAL_S)
            self._tick(deeds)

    def land(self, looks: int = 60) -> None:
        """End all trouble, wait so many looks for what is under way to be taken back, and switch off."""
        self.chance.calm_down()
        for _ in range(looks):
            self._tick(0.0)
        process = self.process
        if process is None:
            self.laws.broken("landing", "no mgr")
            return
        process.command(lambda: process.modes.switch(OFF))
        if self._book:
            process.command(lambda: process.modes.books.switch(BOOK_OFF))
            process.command(lambda: process.modes.boosts.cancel("landing"))
        for _ in range(3):
            self._tick(0.0, on_the_way=False)
        if process.driver.state.on_cluster or process.driver.state.mode != OFF:
            self.laws.broken("landing", f"{process.driver.state.mode}, {process.driver.state.phase}")
        if process.boost.state.phase != NO_BOOST:
            self.laws.broken("landing", f"the boost is {process.boost.state.phase}: {process.boost.problem}")
        if process.book.state.stands:
            self.laws.broken("landing", f"the book is {process.book.state.phase}: {process.book.problem}")
        # that of an mgr that died ends by itself
        if holder_of(self.world.cluster) is not None:
            self.laws.broken("landing", "a lock is held")
        self._die()
        self.laws.look(None, False)
        self.laws.end()
        self.laws.size()
        begun = [thread for thread in threading.enumerate() if thread not in self._threads]
        left = [thread.name for thread in begun if thread.name.startswith(("tuner", "flight", "lock"))]
        if left:
            self.laws.broken("threads", ", ".join(left))
        left = [process for process in children() if process not in self._children]
        if left:
            self.laws.broken("processes", ", ".join(left))

    def _tick(self, deeds: float, on_the_way: bool = True) -> None:
        began = self.world.now()
        try:
            if self.process is None and began >= self._next_start:
                self._start()
            if self.process is not None:
                self.process.tick()
                self._see(self.process)
                if self._book and on_the_way:
                    self._keep_on(self.process)
                if on_the_way:
                    self.operators.work(self.process, deeds, INTERVAL_S)
        except Killed:
            self._die()
        if self._guardian is not None:
            self._guard(self._guardian)
        started = self.process is not None and self.process.driver.problem == ""
        self.laws.look(self.process, started)
        self.world.advance(max(0.0, began + INTERVAL_S - self.world.now()))

    def _keep_on(self, process: MgrProcess) -> None:
        """Somebody who changed its values is done with that: an operator switches the book on again."""
        state = process.book.state
        if not process.book.problem and not state.on and not state.stands:
            process.command(lambda: process.modes.books.switch(BOOK_ON))
            self.counts["the book is on"] += 1

    def _start(self) -> None:
        self._number += 1
        self._optimiser.draw()
        self.process = MgrProcess(
            self.world, self.trouble, self._number, lambda number: number == str(self._number), self._options.get
        )

    def _die(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None
        self.counts["mgrs that ended"] += 1
        self._next_start = self.world.now() + self._chance.uniform(3.0, 90.0)
        self._guardian = Guardian(self.world, MgrClock(self.world)) if self._chance.random() < 0.5 else None

    def _guard(self, guardian: Guardian) -> None:
        if self.trouble.recent(self.world.now(), 0.0):
            return
        with suppress(TunerError):
            self.counts["changes that a guardian took back"] += len(guardian.look())
        self.counts["looks of a guardian"] += 1

    def _see(self, process: MgrProcess) -> None:
        """What was not there a tick ago."""
        state = process.driver.state
        if "internal error" in process.driver.problem:
            self.laws.broken("errors", process.driver.problem)
        if state.phase != self._phase:
            self._phase = state.phase
            self.counts[f"phase: {state.phase}"] += 1
            if state.phase == ASKING:
                self.counts[f"optimiser: {self._optimiser.kind}"] += 1
            self._optimiser.draw()
            process.answer_after = LATE_S if self._optimiser.kind == "late" else 0.0

    def _watch(self, prefix: str, arguments: Mapping[str, str], payload: str, done: bool) -> None:
        trouble = self.trouble
        of_state = done and arguments.get("key", "").endswith("auto/state")
        if of_state and json.loads(payload)["phase"] in (WRITING, RETURNING):
            if trouble.kill_when_writing is not None:
                trouble.kill_after, trouble.kill_when_writing = trouble.kill_when_writing, None
            if trouble.fail_when_writing is not None:
                trouble.fail_after, trouble.fail_when_writing = trouble.fail_when_writing, None


def children() -> List[str]:
    """Processes that this one has started and not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[1] == str(os.getpid()):
                found.append(entry.name)
    return found


def _sizes(flight: Flight, hours: float) -> Dict[str, Any]:
    """Of the store and of this process, at this hour."""
    gc.collect()
    status = Path("/proc/self/statm").read_text().split()
    size = flight.laws.size()
    return {
        "hours": hours,
        "keys": sum(keys for keys, _ in size.values()),
        "bytes": sum(length for _, length in size.values()),
        "by kind": {kind: list(found) for kind, found in sorted(size.items())},
        "resident_bytes": int(status[1]) * os.sysconf("SC_PAGE_SIZE"),
        "traced_bytes": tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else None,
        "objects": len(gc.get_objects()),
        "threads": threading.active_count(),
        "children": len(children()),
    }


def fly(
    seed: int, hours: int, rate: float, deeds: float, kind: str, book: bool = False, store: Optional[Path] = None
) -> Dict[str, Any]:
    """One flight from its start to its landing; gives everything that was counted. `store` gets the plugin's keys."""
    began = time.process_time()
    rows: List[Dict[str, Any]] = []
    options, copies = KINDS[kind]
    options = {**options, **BOOK_OPTIONS} if book else options
    with tempfile.TemporaryDirectory() as directory:
        flight = Flight(seed, Path(directory), options, copies, PAGES if book else ())
        for hour in range(1, hours + 1):
            flight.fly(1.0, rate, deeds)
            rows.append(_sizes(flight, hour))
            counts, row = flight.counts, rows[-1]
            print(
                f"{hour:3} h: {counts['trail: apply']} writes, {counts['trail: kept']} kept, "
                f"{counts['trail: taken back']} taken back, {counts['mgrs that ended']} mgrs ended; "
                f"{row['keys']} keys, {row['bytes']} bytes, {row['objects']} objects; "
                f"{len(flight.laws.violations)} laws broken; CPU {time.process_time() - began:.0f} s",
                flush=True,
            )
        flight.land()
        if store is not None:
            store.write_text(json.dumps(flight.world.stored()), encoding="utf-8")
    return {
        "seed": seed,
        "kind": f"{kind}, book and boosts" if book else kind,
        "hours": hours,
        "faults an hour": rate,
        "deeds an hour": deeds,
        "at": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "cpu_s": round(time.process_time() - began),
        "counts": dict(sorted(flight.counts.items())),
        "longest_beyond": flight.laws.longest_beyond,
        "sizes": rows,
        "violations": flight.laws.violations,
    }


def page(flights: Sequence[Mapping[str, Any]]) -> str:
    """Tables of flights: what happened, and what was left of it hour by hour."""
    heads = [f"{flight['kind']}, seed {flight['seed']}" for flight in flights]
    counts = [flight["counts"] for flight in flights]
    beginnings = [
        ("hours flown", [flight["hours"] for flight in flights]),
        ("laws broken", [len(flight["violations"]) for flight in flights]),
        ("windows of clients beyond the bound in a row, at most", [flight["longest_beyond"] for flight in flights]),
        ("CPU of the flight, s", [flight["cpu_s"] for flight in flights]),
        ("faults", [sum(row[name] for name in row if name.startswith("fault: ")) for row in counts]),
        ("deeds of operators", [sum(row[name] for name in row if name.startswith("operator: ")) for row in counts]),
    ]
    names = sorted({name for row in counts for name in row if not name.startswith("phase: ")})
    lines = _table(["", *heads], beginnings + [(name, [row.get(name, 0) for row in counts]) for name in names])
    sizes: List[Tuple[str, List[Any]]] = []
    flown = max(flight["hours"] for flight in flights)
    for hours in sorted({hours for hours in (1, 6, 12, 18, 24) if hours <= flown} | {flown}):
        rows = [next((row for row in flight["sizes"] if row["hours"] == hours), None) for flight in flights]
        for name, unit, share in (
            ("keys", "", 1),
            ("bytes", " kB of the store", 1000),
            ("resident_bytes", " MB resident", 10**6),
            ("objects", " thousand objects of Python", 1000),
            ("threads", " threads", 1),
        ):
            told = f"{hours} h:{unit or ' keys of the store'}"
            sizes.append((told, [round(row[name] / share) if row else "" for row in rows]))
    lines += ["", *_table(["after", *heads], sizes), ""]
    for head, flight in zip(heads, flights):
        lines += [f"- {head}: {words}" for words in flight["violations"]]
    return "\n".join(lines).rstrip()


def _table(heads: Sequence[str], rows: Sequence[Tuple[str, Sequence[Any]]]) -> List[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return lines + [f"| {name} | {' | '.join(map(str, values))} |" for name, values in rows]


def main() -> int:
    """Fly once, or write the page of flights."""
    parser = runs_file.parser(__doc__, "flight.jsonl")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=float, default=5.0, help="an hour")
    parser.add_argument("--deeds", type=float, default=2.0, help="of operators, an hour")
    parser.add_argument("--kind", choices=list(KINDS), default="hosts")
    parser.add_argument("--book", action="store_true", help="with the book and boosts on")
    parser.add_argument("--store", type=Path, help="gets the plugin's keys at the end, for `soak_on_lab.py --store`")
    parser.add_argument("--trace", action="store_true", help="trace memory (slow)")
    arguments = parser.parse_args()
    if arguments.render is not None:
        runs_file.show(page(runs_file.lines_of(arguments.render)), arguments)
        return 0
    if arguments.trace:
        tracemalloc.start()
    flown = fly(
        arguments.seed,
        arguments.hours,
        arguments.faults,
        arguments.deeds,
        arguments.kind,
        arguments.book,
        arguments.store,
    )
    runs_file.append(arguments.output, flown)
    print("\n".join(flown["violations"]) or "no law was broken")
    return 1 if flown["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
