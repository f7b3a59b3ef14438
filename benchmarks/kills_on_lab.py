"""Random kills, clock steps and slow monitors, while two programs and a mgr write to a lab: is every look in order?

    ceph-tuner lab up --mons 3 --mgrs 2
    python benchmarks/kills_on_lab.py --cluster lab --minutes 30 --seed 1 --output kills.jsonl
    python benchmarks/kills_on_lab.py --render kills.jsonl --page benchmarks/results/kills.md

Two processes of the program apply, set and take back without end, and so does the plugin by its commands. Meanwhile
they are killed (SIGKILL), the mgr is killed or failed over, a monitor is slow for a while, and the wall clock of one
process steps. Twice a second the configuration database and the journal are held against each other: every option is
as before, or as a stored change plans. Notes of each process say who is inside the lock. With `--book` and
`--boosts` the plugin also switches its book, and boosts begin and end. In the end everything is taken back by the
ordinary commands, and nothing may be left. A look that breaks a law is a line of the output, and the
run is one. Exit code 1 where there is such. Ctrl-C ends it early in the same way.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import lock_trace
import runs_file
from configuration_laws import Breach, Table, breaches
from kills_book_and_boosts import (
    BESIDE,
    Boosters,
    Operators,
    Regimes,
    Shortage,
    StandingObserver,
    end_both,
    more_words,
    not_tried,
)
from kills_book_and_boosts import table as standing_table
from kills_ledger import Ledger, Stop, carried_out

from ceph_lab.cluster import Lab
from ceph_lab.drives import preload
from ceph_lab.processes import command_line
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import LIBRARY, MODULE, OPTION_PREFIX, Plugin
from ceph_tuner.core.book.state import BookState
from ceph_tuner.core.boost.state import BoostState
from ceph_tuner.core.ceph.ports import ConfigDatabase, Store, contents
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.journal import PREFIX as JOURNAL
from ceph_tuner.core.changes.journal import UNDONE, Entry, Journal
from ceph_tuner.core.errors import ClusterTimeout, InputError, JournalDamaged, LabFailed, TunerError
from ceph_tuner.core.knobs.releases import nine

HERE = Path(__file__).resolve().parent
TUNED = HERE.parent / "profiles" / "ceph_tuner_profiles" / "tuned"
LOOK_S, ATTEMPTS = 0.5, 5
PROGRAMS = 2
BUSY_S, SELDOM_S, RARELY_S = (0.0, 2.0), (5.0, 60.0), (20.0, 120.0)
"""Between two commands of one, and where the book and boosts are to have their turn: they wait for who is inside.

What the plugin applies or takes back ends a boost, which lasts for a minute at least: so that comes rarely then.
"""
FAULTS_S, FEW_FAULTS_S = (0.5, 5.0), (0.5, 10.0)
"""Between what happens to them; a mgr that starts needs some seconds before its book and its boosts go on."""
ENDS_S = 30.0
"""How long what is told to end may take."""
LASTS_S = 120.0
"""A command that takes longer hangs: the lock's lease and a slow monitor are well below it."""
STEPS_S = (-3600.0, -90.0, -31.0, -5.0, 5.0, 31.0, 90.0, 3600.0)
"""Of a clock, on both sides of the lease and of what clocks may differ by."""
SLOW_S = (0.2, 1.0, 3.0)
"""What a slow monitor takes longer for each write that must last."""
ENDED_WELL = {0, 1, 2, 3, 4, -signal.SIGKILL}
"""Exit codes of docs/exit-codes.md for what may happen to a command whose cluster and rivals misbehave."""
TRACED = "\n\nfrom ceph_tuner.lock_trace import install as _install\n\n_install(Lock)\n"
"""Appended to the lab's own copy of lock.py."""


class Observer:
    """Looks at the database and the journal at one moment, as far as there is one."""

    def __init__(
        self, config: ConfigDatabase, store: Store, ledger: Ledger, standing: Optional[StandingObserver] = None
    ) -> None:
        """`standing`: judges the book and boosts as well."""
        self._config, self._store, self._ledger, self._standing = config, store, ledger, standing
        self.before = self.table()

    def table(self) -> Dict[tuple[str, str], str]:
        """The database without the plugin's own options."""
        entries = self._config.dump()
        return {(entry.who, entry.name): entry.value for entry in entries if not entry.name.startswith(OPTION_PREFIX)}

    def look(self) -> None:
        """A journal that is the same before and after the database was read is that of the whole time between."""
        for _ in range(ATTEMPTS):
            journal = contents(self._store, JOURNAL)
            beside = self._standing.read() if self._standing is not None else {}
            table = self.table()
            if contents(self._store, JOURNAL) == journal:
                self._ledger.count("looks")
                for law, words in self._judged(table, journal, beside):
                    self._ledger.violation(law, words)
                return
        self._ledger.count("looks at a journal that changed meanwhile")

    def _judged(self, table: Table, journal: Mapping[str, str], beside: Mapping[str, str]) -> Iterator[Breach]:
        try:
            entries = [Entry.from_text(key, text) for key, text in sorted(journal.items())]
        except JournalDamaged as damage:
            yield Breach("journal", str(damage))
            return
        yield from breaches(table, entries, self.before)
        if self._standing is not None:
            yield from self._standing.breaches(entries, table, beside)


class SteppedClock:
    """The wall clock of one process, which steps when it is told to."""

    def __init__(self, directory: Path, name: str, library: Path) -> None:
        self._file, self._library = directory / f"clock.{name}", library
        self.set(0.0)

    def set(self, seconds: float) -> None:
        """From now on it differs so much from the machine's."""
        # in place, for it is mapped; eight aligned bytes are never seen in half
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=d", seconds))

    def environment(self) -> Dict[str, str]:
        """For the process."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_STEP": str(self._file)}


def clock_library(directory: Path) -> Path:
    """Compile what steps clocks. Raises LabFailed."""
    library = directory / "clock_step.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(HERE / "clock_step.c"), "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LabFailed(f"clocks cannot step without a C compiler: {error}", "install gcc") from error
    return library


class Program:
    """One process of the program after the other."""

    def __init__(
        self,
        name: str,
        lab: Lab,
        clock: SteppedClock,
        trace: Path,
        ledger: Ledger,
        seed: str,
        more: Callable[[random.Random], List[List[str]]] = lambda _: [],
    ) -> None:
        """`more`: other commands that it may be told."""
        self._name, self._lab, self._ledger, self._more = name, lab, ledger, more
        self.clock = clock
        self._exact = {**os.environ, **lock_trace.environment(trace)}
        # who has had worker processes has it set, and the participant imports what lies beside it
        self._exact.pop("PYTHONSAFEPATH", None)
        self._random = random.Random(seed)
        self._running: Optional[subprocess.Popen[str]] = None

    def work(self, stop: Stop) -> None:
        """Until the time is over."""
        while not stop.is_set():
            more = self._more(self._random)
            self.run(arguments(self._random, self._lab.osds, more), self.clock.environment())
            stop.pause(self._random, *(SELDOM_S if more else BUSY_S))

    def run(self, words: Sequence[str], environment: Optional[Mapping[str, str]] = None) -> int:
        """One command, with more in its environment; gives its exit code."""
        command = [sys.executable, str(HERE / "kills_participant.py"), *words, "--cluster", self._lab.name, "--quiet"]
        self._ledger.count("commands of the program")
        # of its own session: Ctrl-C ends the measurement in order, and not what it measures
        self._running = subprocess.Popen(
            command,
            env={**self._exact, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            shown, _ = self._running.communicate(timeout=LASTS_S)
        except subprocess.TimeoutExpired:
            self._ledger.violation("hang", f"`ceph-tuner {' '.join(words)}` took over {LASTS_S:g} s")
            self._running.kill()
            shown, _ = self._running.communicate()
        code = self._running.returncode
        self._ledger.count(f"ended with {code}")
        if code not in ENDED_WELL or "Traceback (most recent call last)" in shown:
            self._ledger.violation("exit code", f"`ceph-tuner {' '.join(words)}` ended with {code}: {shown[-500:]}")
        return code

    def kill(self) -> bool:
        """Whether there was one."""
        running = self._running
        if running is None or running.poll() is not None:
            return False
        running.kill()
        self._ledger.count("processes of the program killed")
        return True


def arguments(randomness: random.Random, osds: Sequence[int], more: Sequence[List[str]] = ()) -> List[str]:
    """What a command is told to do."""
    targets = ["osd", "osd", "osd", f"osd.{randomness.choice(osds)}"]
    custom = nine(*((randomness.choice((0.1, 0.2, 0.3)), randomness.randint(1, 8), 0) for _ in range(3)))
    return randomness.choice(
        (
            ["apply", randomness.choice(("balanced", "high_client_ops", "high_recovery_ops")), *_written(targets[0])],
            ["apply", str(randomness.choice(sorted(TUNED.glob("*.yaml")))), *_written(targets[0])],
            ["apply", *(f"--set={name}={value}" for name, value in custom.items()), *_written(targets[0])],
            ["apply", f"--set=osd_max_scrubs={randomness.randint(1, 5)}", *_written(randomness.choice(targets))],
            ["rollback"],
            ["rollback", "--to", str(randomness.randint(0, 40))],
            ["rollback", "--all"],
            *more,
        )
    )


def _written(target: str) -> List[str]:
    return ["--target", target, "--yes"]


class Mgr:
    """The plugin, which is told to apply and to take back, and its daemon, which is killed."""

    def __init__(
        self,
        lab: Lab,
        cluster: Cluster,
        ledger: Ledger,
        seed: str,
        pause_s: Tuple[float, float] = BUSY_S,
        in_force: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        """`pause_s`: between its commands; `in_force`: what it leaves to the next one when it dies, for the count."""
        self._lab, self._cluster, self._ledger = lab, cluster, ledger
        self._pause_s, self._in_force = pause_s, in_force
        self._random = random.Random(seed)
        self.plugin = Plugin(cluster, SystemClock())

    def install(self) -> None:
        """Put it in place with its lock's notes."""
        self.plugin.install(enable=False)
        library = self.plugin.path / LIBRARY
        (library / "lock_trace.py").write_text((HERE / "lock_trace.py").read_text())
        with (library / "core" / "changes" / "lock.py").open("a") as installed:
            installed.write(TRACED)
        self._cluster.commander.mon("mgr module enable", {"module": MODULE, "force": "--force"})
        self.await_answer()

    def await_answer(self, seconds: float = 120.0) -> None:
        """Until the plugin answers. Raises ClusterTimeout."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.revive()
            with suppress(TunerError):
                self._cluster.commander.mon("tuner status", {})
                return
            time.sleep(1)
        raise ClusterTimeout(f"the plugin does not answer within {seconds:g} s")

    def work(self, stop: Stop) -> None:
        """Commands one after the other, until the time is over."""
        with closing(open_cluster(self._lab.name, timeout=20)) as own:
            while not stop.is_set():
                apply = {"name": self._random.choice(("balanced", "high_client_ops", "high_recovery_ops"))}
                prefix, arguments = self._random.choice(
                    (("tuner profile apply", apply), ("tuner rollback", {}), ("tuner rollback", {"all": "true"}))
                )
                carried_out(own.commander, self._ledger, prefix, {**arguments, "yes": "true"})
                stop.pause(self._random, *self._pause_s)

    def kill(self) -> bool:
        """Kill the active one, or fail it over; it comes back."""
        with suppress(TunerError):
            active = str(json.loads(self._cluster.commander.mon("mgr dump", {}))["active_name"])
            pid = self._lab.daemon_pid(f"mgr.{active}")
            if pid is None:
                return False
            for what in self._in_force():
                self._ledger.count(f"{BESIDE} {what}")
            if self._random.random() < 0.5:
                os.kill(pid, signal.SIGKILL)
                self._ledger.count("mgrs killed")
            else:
                self._ledger.count("mgrs failed over")
            self._cluster.commander.mon("mgr fail", {"who": active})
            return True
        return False

    def revive(self) -> None:
        """Start those that do not run."""
        for mgr in self._lab.mgrs:
            with suppress(TunerError):
                self._lab.start_daemon(f"mgr.{mgr}")


class Chaos:
    """What happens to them, by the seed."""

    def __init__(
        self,
        lab: Lab,
        programs: Sequence[Program],
        mgr: Mgr,
        ledger: Ledger,
        seed: str,
        pause_s: Tuple[float, float] = FAULTS_S,
    ) -> None:
        """`pause_s`: between two faults; where they are few, spells of a slow monitor are short as well."""
        self._lab, self._programs, self._mgr, self._ledger, self._pause_s = lab, programs, mgr, ledger, pause_s
        self._random = random.Random(seed)

    def work(self, stop: Stop) -> None:
        """Until the time is over; then everything is as quick and as exact as it is."""
        kinds: Sequence[tuple[Callable[[], object], int]] = (
            (self._kill_a_program, 12),
            (self._mgr.kill, 1),
            (self._slow_monitor, 3),
            (self._step, 4),
            (self._quick_monitors, 0 if self._pause_s == FAULTS_S else 6),
        )
        try:
            while not stop.pause(self._random, *self._pause_s):
                (happens,) = self._random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
                happens()
                self._mgr.revive()
        finally:
            self.end()

    def end(self) -> None:
        """Monitors are quick again, clocks right."""
        self._quick_monitors()
        for program in self._programs:
            program.clock.set(0.0)

    def _kill_a_program(self) -> None:
        self._random.choice(self._programs).kill()

    def _slow_monitor(self) -> None:
        monitor = self._random.choice(self._lab.mons)
        seconds = self._random.choice((0.0, *SLOW_S))
        for other in self._lab.mons:
            preload.slow_down(self._lab.places, other, seconds if other == monitor else 0.0)
        if seconds:
            self._ledger.count("spells of a slow monitor")

    def _quick_monitors(self) -> None:
        for monitor in self._lab.mons:
            preload.slow_down(self._lab.places, monitor, 0.0)

    def _step(self) -> None:
        self._random.choice(self._programs).clock.set(self._random.choice((0.0, *STEPS_S)))
        self._ledger.count("clock steps")


@dataclass(frozen=True)
class Pristine:
    """What a lab has before anybody writes to it."""

    table: Table
    processes: Set[int]
    files: Set[Path]

    @staticmethod
    def of(lab: Lab, observer: Observer) -> Pristine:
        return Pristine(observer.table(), at_work_on(lab), files_of(lab))

    def left_behind(self, cluster: Cluster, lab: Lab, observer: Observer) -> Iterator[Breach]:
        """What is there beside it, after everything was taken back and out."""
        for key in cluster.store.keys(""):
            yield Breach("left behind", f"the key {key}")
        now = observer.table()
        for place in sorted({*self.table, *now}):
            if self.table.get(place) != now.get(place):
                yield Breach("left behind", f"{' '.join(place)} is {now.get(place)}, and was {self.table.get(place)}")
        for entry in cluster.config.dump():
            if entry.name.startswith(OPTION_PREFIX):
                yield Breach("left behind", f"the option {entry.who} {entry.name}")
        for path in sorted(files_of(lab) - self.files):
            yield Breach("left behind", str(path))
        end = time.monotonic() + ENDS_S
        while at_work_on(lab) - self.processes and time.monotonic() < end:
            time.sleep(0.5)
        for pid in sorted(at_work_on(lab) - self.processes):
            yield Breach("left behind", f"process {pid}: {' '.join(command_line(pid))}")


def files_of(lab: Lab) -> Set[Path]:
    """What lies in the lab's own folder and among its mgr's modules; daemons' logs and data are theirs."""
    return {*lab.host_path("/lab").iterdir(), *lab.mgr_modules.iterdir()}


def at_work_on(lab: Lab) -> Set[int]:
    """Processes of the program, and those inside the lab that are none of its daemons."""
    keeper = lab.state.keeper
    inside = os.readlink(f"/proc/{keeper.pid}/ns/mnt") if keeper is not None else ""
    daemons = {"ceph-mon", "ceph-mgr", "ceph-osd"}
    found = set()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        # whatever ends meanwhile is none of them
        with suppress(OSError):
            words = command_line(pid)
            program = any(word.endswith("kills_participant.py") for word in words) and lab.name in words
            within = bool(words) and os.readlink(f"/proc/{pid}/ns/mnt") == inside
            if program or (within and Path(words[0]).name not in daemons):
                found.add(pid)
    return found


@contextmanager
def at_work(threads: Sequence[threading.Thread], stop: Stop) -> Iterator[None]:
    """Threads that end with the block."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def refuse_used(cluster: Cluster, plugin: Plugin) -> None:
    """Raise InputError where a tuner has been at work: what is left would not be known to be ours."""
    keys = cluster.store.keys("")
    if keys or plugin.status().enabled:
        raise InputError(
            f"cluster {cluster.name}", f"{len(keys)} keys of a tuner", "`ceph-tuner mgr uninstall --purge` first"
        )


class Beside:
    """The book and boosts of a run, which may have neither."""

    def __init__(self, lab: Lab, cluster: Cluster, ledger: Ledger, book: bool, boosts: bool, seed: int) -> None:
        self._cluster, self._ledger, self._book, self._boosts = cluster, ledger, book, boosts
        self._shortage = Shortage(lab, f"{seed}/shortage")
        self._operators = Operators(lab, ledger, f"{seed}/operators")
        regimes, boosters = Regimes(lab), Boosters(lab, ledger, f"{seed}/boosters")
        either = book or boosts
        self.observer = StandingObserver(cluster.store, regimes.now, ledger) if either else None
        self.works: List[Callable[[Stop], None]] = [regimes.work, self._shortage.work] if either else []
        self.works += [self._operators.work] if book else []
        self.works += [boosters.work] if boosts else []

    def in_force(self) -> Sequence[str]:
        """At the last look."""
        return self.observer.in_force() if self.observer is not None else ()

    def more(self, randomness: random.Random) -> List[List[str]]:
        """Words for the program."""
        return more_words(randomness, self._book, self._boosts)

    def prepare(self, mgr: Mgr) -> None:
        """Make the pools, and give the plugin its book."""
        if self.observer is None:
            return
        self._shortage.prepare()
        mgr.await_answer()
        self._operators.prepare(self._cluster, self._book)

    def end(self, mgr: Mgr) -> None:
        """Have neither in force, by the ordinary commands."""
        if self.observer is None:
            return
        mgr.await_answer()
        end_both(self._cluster, self._ledger, self._stored)
        self._shortage.remove()

    def _stored(self) -> Optional[Tuple[BookState, BoostState]]:
        observer = self.observer
        with suppress(TunerError):
            return observer.states(observer.read()) if observer is not None else None
        return None


def run(arguments: argparse.Namespace, number: int, seed: int) -> Dict[str, Any]:
    """One run, as a line of the output."""
    ledger, stop, lab = Ledger(arguments.output, number), Stop(), Lab.open(arguments.cluster)
    with closing(open_cluster(lab.name)) as cluster, tempfile.TemporaryDirectory(prefix="kills-") as temporary:
        refuse_used(cluster, Plugin(cluster, SystemClock()))
        directory = Path(temporary)
        trace = lab.host_path("/lab/lock.trace")
        # of a run that was killed: its holders counted by another store
        trace.unlink(missing_ok=True)
        library = clock_library(directory)
        beside = Beside(lab, cluster, ledger, arguments.book, arguments.boosts, seed)
        observer = Observer(cluster.config, cluster.store, ledger, beside.observer)
        pristine = Pristine.of(lab, observer)
        pause_s, faults_s = (RARELY_S, FEW_FAULTS_S) if beside.observer is not None else (BUSY_S, FAULTS_S)
        mgr = Mgr(lab, cluster, ledger, f"{seed}/mgr", pause_s, beside.in_force)
        programs = [
            Program(
                name, lab, SteppedClock(directory, name, library), trace, ledger, f"{seed}/program {name}", beside.more
            )
            for name in map(str, range(PROGRAMS))
        ]
        chaos = Chaos(lab, programs, mgr, ledger, f"{seed}/chaos", faults_s)
        working = [program.work for program in programs] + [mgr.work, chaos.work, *beside.works]
        threads = [threading.Thread(target=ledger.told, args=(work, stop)) for work in working]
        interrupted = False
        try:
            mgr.install()
            beside.prepare(mgr)
            began = time.monotonic()
            with at_work(threads, stop):
                interrupted = watch(observer, began + 60 * arguments.minutes, ledger)
        finally:
            minutes = (time.monotonic() - began) / 60
            take_back(programs[0], mgr, cluster, observer, ledger, beside)
        for law, words in not_tried(ledger.counts, arguments.book, arguments.boosts):
            ledger.violation(law, words)
        notes = lock_trace.read(trace)
        for words in lock_trace.two_inside(notes):
            ledger.violation("two inside", words)
        trace.unlink(missing_ok=True)
        if not ledger.counts["commands of the plugin carried out"]:
            ledger.violation("nothing tried", "the plugin carried out none of its commands")
        for law, words in pristine.left_behind(cluster, lab, observer):
            ledger.violation(law, words)
        return {
            "run": number,
            "seed": seed,
            "date": time.strftime("%Y-%m-%d"),
            "machine": runs_file.machine(),
            "ceph": lab.state.ceph_version,
            "mons": len(lab.mons),
            "mgrs": len(lab.mgrs),
            "minutes": round(minutes, 1),
            "book": arguments.book,
            "boosts": arguments.boosts,
            "interrupted": interrupted,
            "counts": dict(sorted(ledger.counts.items())),
            "entered": sum(note["what"] == lock_trace.ENTERED for note in notes),
            "checks": sum(note["what"] == lock_trace.MAY_WRITE for note in notes),
            "violations": dict(sorted(ledger.broken.items())),
        }


def watch(observer: Observer, end: float, ledger: Ledger) -> bool:
    """Look until the time is over; whether Ctrl-C came first."""
    told = time.monotonic()
    try:
        while time.monotonic() < end:
            try:
                observer.look()
            except TunerError:
                ledger.count("looks that the monitors did not answer")
            if time.monotonic() > told + 30:
                told = time.monotonic()
                counts = ", ".join(f"{count} {what}" for what, count in sorted(ledger.counts.items()))
                violations = sum(ledger.broken.values())
                print(f"{(end - told) / 60:.1f} min left: {counts}; {violations} violations", flush=True)
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        return True
    return False


def take_back(program: Program, mgr: Mgr, cluster: Cluster, observer: Observer, ledger: Ledger, beside: Beside) -> None:
    """By the ordinary commands; what a dead one holds is waited for."""
    mgr.revive()
    beside.end(mgr)
    end = time.monotonic() + 180
    for attempt in itertools.count(1):
        code = program.run(["rollback", "--all"])
        with suppress(TunerError):
            observer.look()
            journal = Journal(cluster.store).read()
            if not journal.set_aside and all(entry.state == UNDONE for entry in journal.entries):
                break
        if time.monotonic() > end:
            ledger.violation("left behind", f"`ceph-tuner rollback --all` ended with {code}, {attempt} times")
            return
        time.sleep(2)
    mgr.await_answer()
    mgr.plugin.uninstall(purge=True)


def summaries(lines: Sequence[Mapping[str, Any]]) -> List[Mapping[str, Any]]:
    """The lines that are runs."""
    return [line for line in lines if "seed" in line]


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row for each run, and what all of them come to."""
    heads = ["run", "seed", "minutes", "looks", "commands", "killed", "mgrs killed or failed over"]
    heads += ["slow spells", "clock steps", "times inside the lock", "violations"]
    rows = [f"| {' | '.join(heads)} |", "|" + " ---: |" * len(heads)]
    runs = summaries(lines)
    for line in runs:
        counts = Counter(line["counts"])
        commands = counts["commands of the program"] + counts["commands of the plugin"]
        cells = [line["run"], line["seed"], line["minutes"], counts["looks"], commands]
        cells += [counts["processes of the program killed"], counts["mgrs killed"] + counts["mgrs failed over"]]
        cells += [counts["spells of a slow monitor"], counts["clock steps"], line["entered"]]
        cells.append(", ".join(f"{law}: {count}" for law, count in line["violations"].items()) or "none")
        rows.append(f"| {' | '.join(map(str, cells))} |")
    minutes = sum(line["minutes"] for line in runs)
    looks = sum(line["counts"].get("looks", 0) for line in runs)
    broken = sum(sum(line["violations"].values()) for line in runs)
    standing = standing_table(runs)
    rows += ["", standing] if standing else []
    return "\n".join([*rows, "", f"{broken} violations in {looks} looks and {minutes:.0f} minutes."])


def main() -> int:
    """0 where no law was broken."""
    # a shell starts what runs in its background with Ctrl-C ignored
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = runs_file.lab_parser(__doc__, "kills.jsonl")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--book", action="store_true", help="the plugin has its book on, and regimes come and go")
    parser.add_argument("--boosts", action="store_true", help="boosts begin, end and are cancelled")
    given = parser.parse_args()
    earlier = runs_file.lines_of(given.render or given.output)
    if given.render is not None:
        runs_file.show(table(earlier), given)
        return 0
    number = len(summaries(earlier)) + 1
    try:
        line = run(given, number, number if given.seed is None else given.seed)
    except TunerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    runs_file.append(given.output, line)
    runs_file.show(table([*earlier, line]), given)
    return 1 if line["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
