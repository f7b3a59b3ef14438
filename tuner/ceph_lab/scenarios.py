"""Named combinations of loads, for trials that can be repeated.

A scenario is prepared (slow), started, observed about once a second, measured between two moments, and stopped:

    scenario = scenarios.scenario("client-recovery", lab)
    with scenario:                       # leaves no flag and no process behind, whatever happens
        scenario.prepare()
        measures = scenario.run(25)      # start, settle, window, stop

The caller may change settings between windows, and cut windows out of one long run (`start`, `window`, `stop`).
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ceph_lab.loads import LabUnderLoad, Load, LoadProgress, LoadResult
from ceph_lab.loads.backfill import BackfillLoad
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.pools import Tell, remove_pools, silent
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.room import check_room, make_room
from ceph_lab.loads.scrub import ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_lab.quiet import Quiet, compact, send_deferred_in_turn, wait_until_quiet
from ceph_lab.recipes import RECIPES
from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.core.errors import InputError, LabFailed, TunerError
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure

NAMES: Tuple[str, ...] = tuple(RECIPES)
"""What `scenario` takes."""

SETTLE_S = 5.0
"""Queues fill and the first scrubs are scheduled: these seconds do not count."""

OBSERVE_S = 1.0
LIVE_S = 5.0
"""What `observe` tells is the mean of so many seconds."""

LEAST_SHARE = 0.4
"""When the work runs out before this share of a window, what is left says too little."""

OnProgress = Callable[[float, Mapping[str, LoadProgress]], None]
"""Takes the share of the window that is over, and each load's progress."""


class Described(NamedTuple):
    """One line for people."""

    name: str
    meaning: str
    options: Mapping[str, Any]


class Scenario:
    """Loads that run at the same time."""

    def __init__(
        self, name: str, lab: LabUnderLoad, loads: Sequence[Load], session: LabSession, tell: Tell = silent
    ) -> None:
        self.name = name
        self.lab = lab
        self.loads: Tuple[Load, ...] = tuple(loads)
        self.quiet: Optional[Quiet] = None
        self.results: Tuple[LoadResult, ...] = ()
        self._session = session
        self._tell = tell
        self._prepared = self._running = False
        self._compacted: Set[int] = set()
        self._remarks: List[str] = []

    def __enter__(self) -> Scenario:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what runs and hang up."""
        try:
            self.stop()
        finally:
            self._session.close()

    @property
    def metrics(self) -> Tuple[str, ...]:
        """Names that `measure` can give, in the order of `ceph_tuner.core.measure.metrics`."""
        able = {name for load in self.loads for name in load.metrics}
        return tuple(name for name in METRICS if name in able)

    def prepare(self) -> None:
        """Wait until the lab is quiet, then bring every load to where it can start at once. Idempotent."""
        if self._running:
            self.stop()
        self._prepared = True
        try:
            # only what is measured has to take a drive's time
            with self.lab.in_haste():
                for load in self.loads:
                    load.hold()
                short = make_room(self._session, self.loads, self._tell)
                self.quiet = wait_until_quiet(self.lab, self._session, tell=self._tell)
                self._tell(str(self.quiet))
                if short:
                    check_room(self._session, self.loads)
                for load in self.loads:
                    load.prepare()
                self._compacted |= compact(self.lab, self._session, self._compacted)
        except BaseException:
            self.stop()
            raise

    def shortfalls(self, seconds: float) -> Tuple[str, ...]:
        """Beforehand: which loads may run out of work within so many seconds, settling included."""
        durations = [(load.name, load.lasts_s()) for load in self.loads]
        return tuple(
            f"{name} may run out of work: at the drives' full speed it lasts for {lasts:.0f} s of {seconds:.0f} s"
            for name, lasts in durations
            if lasts is not None and lasts < seconds
        )

    def start(self) -> None:
        """Start every load, the client first, so that it is there when the background work begins."""
        self._remarks, self.results = [], ()
        self._running = True
        try:
            for load in self.loads:
                load.start()
            send_deferred_in_turn(self.lab, self._session)
        except BaseException:
            self.stop()
            raise

    def observe(self) -> Dict[str, float]:
        """Let every load look and go on; what the last seconds were like. To be called about once a second."""
        for load in self.loads:
            load.observe()
        now = time.time()
        return {name: measure.mean for name, measure in self._measures(now - LIVE_S, now).items()}

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        """Metrics of that stretch of time (seconds since the epoch), for as long as every load had work.

        Raises LabFailed where the work ran out too early for a measurement.
        """
        # readings must reach to the end of the window
        for load in self.loads:
            load.observe()
        self._remarks = []
        until = end
        for load in self.loads:
            idle = load.idle_since()
            if idle is not None and idle < until:
                until = idle
                self._remarks.append(
                    f"{load.name} ran out of work after {max(0.0, idle - start):.0f} s of {end - start:.0f} s"
                )
        if until - start < LEAST_SHARE * (end - start):
            raise LabFailed(f"scenario {self.name}: {self._remarks[-1]}; give it more objects", "")
        measures = self._measures(start, until)
        for load in self.loads:
            self._remarks += load.remarks(measures, until - start)
        return measures

    def remarks(self) -> Tuple[str, ...]:
        """What people should know of the last measurement: what ran out, which clients were not served."""
        notes = (note for result in self.results for note in result.notes)
        return tuple(dict.fromkeys([*self._remarks, *notes]))

    def progress(self) -> Dict[str, LoadProgress]:
        """Of each load, by name."""
        return {load.name: load.progress() for load in self.loads}

    def window(self, seconds: float, on_progress: Optional[OnProgress] = None) -> Dict[str, Measure]:
        """Measure the next `seconds` of a running scenario."""
        start = time.time()
        self._watch(seconds, on_progress)
        return self.measure(start, start + seconds)

    def run(
        self, seconds: float, on_progress: Optional[OnProgress] = None, settle: float = SETTLE_S
    ) -> Dict[str, Measure]:
        """Start, settle, measure for `seconds`, stop. `prepare` comes before."""
        try:
            self.start()
            self._watch(settle, None)
            return self.window(seconds, on_progress)
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop every load and clear its flags. Stopping what does not run is no error; what failed is tried again.

        An interrupt strikes at its end: it may come while another one's consequences are cleaned up.
        """
        if self._running or self._prepared:
            with uninterrupted():
                self._stop_loads(list(self.loads))
                self._running = self._prepared = False

    def cleanup(self) -> None:
        """Remove pools, images and flags, also those of an interrupted run."""
        self._running = self._prepared = False
        for load in self.loads:
            load.cleanup()

    def _watch(self, seconds: float, on_progress: Optional[OnProgress]) -> None:
        began = time.monotonic()
        while True:
            seconds_so_far = time.monotonic() - began
            if on_progress is not None:
                on_progress(min(1.0, seconds_so_far / seconds) if seconds > 0 else 1.0, self.progress())
            if seconds_so_far >= seconds:
                return
            time.sleep(min(OBSERVE_S, seconds - seconds_so_far))
            for load in self.loads:
                load.observe()

    def _measures(self, start: float, end: float) -> Dict[str, Measure]:
        measures: Dict[str, Measure] = {}
        for load in self.loads:
            for name, measure in load.measure(start, end).items():
                # recovery and backfill both recover: their rates are of different objects and add up
                before = measures.get(name)
                measures[name] = measure if before is None else _sum(before, measure)
        return {name: measures[name] for name in METRICS if name in measures}

    def _stop_loads(self, loads: List[Load]) -> None:
        """Stop all of them, whatever fails on the way; then raise the first failure."""
        failures: List[Exception] = []
        results: List[LoadResult] = []
        for load in loads:
            try:
                results.append(load.stop())
            except (TunerError, OSError) as error:  # noqa: PERF203 - the others must be stopped
                failures.append(error)
        self.results = tuple(results)
        if failures:
            raise failures[0]


def scenario(name: str, lab: LabUnderLoad, tell: Tell = silent, **options: Any) -> Scenario:
    """Make a scenario by its name. Raises InputError for a name or an option that it does not have."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise InputError(f"scenario {name}", "no such scenario", f"one of {', '.join(NAMES)}")
    unknown = sorted(set(options) - set(recipe.options))
    if unknown:
        names = ", ".join(recipe.options)
        raise InputError(f"scenario {name}", f"the option {', '.join(unknown)}", f"some of {names}")
    session = LabSession(lab)
    return Scenario(name, lab, recipe.loads(lab, session, tell, {**recipe.options, **options}), session, tell)


def clean(lab: LabUnderLoad) -> None:
    """Remove the pools and flags of every kind of load, whoever left them behind."""
    with LabSession(lab) as session:
        loads: List[Load] = [
            ClientLoad(lab, session, ClientWork()),
            ScrubLoad(lab, session),
            SnaptrimLoad(lab, session),
        ]
        if len(lab.osds) >= 3:
            loads.append(BackfillLoad(lab, session))
        if len(lab.osds) >= 2:
            loads.append(RecoveryLoad(lab, session))
        for load in loads:
            load.cleanup()
        remove_pools(session)


def described() -> List[Described]:
    """Every scenario, in one line each."""
    return [Described(name, recipe.meaning, recipe.options) for name, recipe in RECIPES.items()]


def _sum(one: Measure, other: Measure) -> Measure:
    deviation = (one.deviation**2 + other.deviation**2) ** 0.5
    return Measure(one.mean + other.mean, deviation, min(one.count, other.count))
