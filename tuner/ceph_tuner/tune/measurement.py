"""One run: prepare the load, write the settings, settle, measure under guard, and leave everything as it was."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import LabFailed, RetryLater, TunerError
from ceph_tuner.core.goals.guard import Breach, Guard, GuardLimits, Sight
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.sample import Measure, measured_once
from ceph_tuner.tune import Interruptible, MeasuredWork, TrialLookout, TuneListener, Writer
from ceph_tuner.tune.early_stop import STRETCH_S, Hopeless

OBSERVE_S, LOOK_S = 1.0, 3.0
"""Seconds between two readings of the load's counters, and between two looks of the guard."""

CANARY_S = 15.0
"""The guard looks on for that long: more than its patience."""


@dataclass(frozen=True)
class Timing:
    """Seconds that a run takes beside the preparation of its load."""

    settle: float = 5.0
    window: float = 25.0

    def __post_init__(self) -> None:
        if not 0 <= self.settle <= 3600 or not 0 < self.window <= 86400:
            raise ValueError(f"settle (={self.settle}) must be 0 to 3600 s, window (={self.window}) above 0 to 86400 s")


class Canary(NamedTuple):
    """A part of the target to which settings are written first."""

    name: str
    writer: Writer


class _StoppedError(Exception):
    """The guard stopped the run."""

    def __init__(self, breach: Breach) -> None:
        super().__init__(breach.reason)
        self.breach = breach


class _HopelessError(Exception):
    """More of the window would be wasted."""

    def __init__(self, reason: str, measures: Mapping[str, Measure]) -> None:
        super().__init__(reason)
        self.reason, self.measures = reason, measures


class TrialRunner:
    """Carries runs out, one at a time."""

    def __init__(
        self,
        slo: Slo,
        work: MeasuredWork,
        lookout: TrialLookout,
        writer: Writer,
        clock: Clock,
        report: TuneListener,
        interruptible: Interruptible,
        timing: Timing,
        limits: Optional[GuardLimits] = None,
        canary: Optional[Canary] = None,
    ) -> None:
        self._canary = canary
        self._went_well: List[Settings] = []
        """On the canary: they are not written there again."""
        self._slo, self._work, self._lookout, self._writer = slo, work, lookout, writer
        self._clock, self._report, self._interruptible, self._timing = clock, report, interruptible, timing
        self._limits = limits or GuardLimits()

    def run(
        self,
        run: Run,
        number: int,
        total: int,
        baseline: Mapping[str, float],
        keep: bool = False,
        to_beat: Optional[Tuple[bool, float]] = None,
    ) -> Trial:
        """Carry a run out. Whatever happens, the settings are undone (`keep`: unless it went well), the load stopped.

        A breach of the guard, and settings that the cluster refuses, make a failed trial; so do those of kind `trial`
        that turn out hopeless, `to_beat` being the rank that they must reach. So is, of any kind, what grossly misses
        an objective. A lock that somebody else holds, a load
        that cannot be started and an interrupt are raised.
        """
        began = self._clock.now()
        values: Dict[str, float] = {}
        failure: Optional[str] = None
        # the settings in force may be measured again as a trial: these are needed whole; and without a baseline
        # nothing is known that a trial could be held against
        may_end = run.kind == "trial" and bool(run.settings) and bool(baseline)
        judge = Judge(self._slo, baseline)
        hopeless = Hopeless(judge, to_beat, self._timing.window) if may_end else None
        ended_early = False
        measures: Mapping[str, Measure] = {}
        # a run that is made again may have begun while the monitors did not answer, and be in force still
        self.take_back_leftovers()
        with ExitStack() as cleanup:
            cleanup.callback(self._work.stop)
            self._report.phase(run, number, total, "preparing the load", 0)
            with self._interruptible():
                self._work.prepare()
            before = self._lookout.look() or Sight(self._clock.now(), "")
            guard = Guard(judge, before, self._limits)
            if run.settings:
                failure = self._on_canary(run, number, total, guard, values)
            if run.settings and failure is None:
                cleanup.callback(self._undo, run, number, total)
                failure = self._write(self._writer, run, number, total)
            try:
                if failure is None:
                    # after the write: what there is to recover must not be gone before it is measured
                    self._work.start()
                    measures = self._windows(run, number, total, guard, values, hopeless)
            except _HopelessError as end:
                failure, measures, ended_early = end.reason, end.measures, True
            except _StoppedError as stop:
                failure = stop.breach.reason
                measures = measured_once(values)
            notes = tuple(self._work.remarks())
            if keep and failure is None:
                cleanup.pop_all()
                self._work.stop()
        trial = Trial(run, began, self._clock.now() - began, measures, failure, notes, ended_early)
        self._report.done(trial, number, total)
        return trial

    def take_back_leftovers(self) -> None:
        """Undo what an earlier run could not take back; nothing where there is none. Raises TunerError."""
        for writer in (self._canary.writer, self._writer) if self._canary is not None else (self._writer,):
            writer.undo()

    def _on_canary(self, run: Run, number: int, total: int, guard: Guard, values: Dict[str, float]) -> Optional[str]:
        """Write to the canary alone, look on, take that back; say what went wrong there. A lab has no load yet."""
        canary = self._canary
        if canary is None or run.settings in self._went_well:
            return None
        try:
            failure = self._write(canary.writer, run, number, total)
            if failure is None:
                self._report.phase(run, number, total, f"on {canary.name} alone", CANARY_S)
                with self._interruptible():
                    self._watch(CANARY_S, guard, values)
        except _StoppedError as stop:
            failure = stop.breach.reason
        finally:
            self._report.phase(run, number, total, "taking the settings back", 0)
            canary.writer.undo()
        if failure is not None:
            return f"on {canary.name} alone: {failure}"
        self._went_well.append(run.settings)
        return None

    def _write(self, writer: Writer, run: Run, number: int, total: int) -> Optional[str]:
        self._report.phase(run, number, total, "writing the settings", 0)
        try:
            writer.apply(run.settings)
        except RetryLater:
            raise
        except TunerError as error:
            # what Ceph refuses or does not take into effect is an answer about these settings
            return f"the settings could not be written: {error}"
        return None

    def _windows(
        self,
        run: Run,
        number: int,
        total: int,
        guard: Guard,
        values: Dict[str, float],
        hopeless: Optional[Hopeless],
    ) -> Mapping[str, Measure]:
        # the settings in force are no trial: there is nothing to undo, so the guard only looks on
        guard_on_trial = guard if run.settings else None
        with self._interruptible():
            self._report.phase(run, number, total, "settling", self._timing.settle)
            self._watch(self._timing.settle, guard_on_trial, values)
            self._report.phase(run, number, total, "measuring", self._timing.window)
            start = self._clock.now()
            self._watch(self._timing.window, guard_on_trial, values, hopeless)
        return self._work.measure(start, self._clock.now())

    def _watch(
        self, seconds: float, guard: Optional[Guard], latest: Dict[str, float], hopeless: Optional[Hopeless] = None
    ) -> None:
        start = stretch = self._clock.now()
        look_at = self._clock.monotonic()
        end = look_at + seconds
        at_the_load: Mapping[str, float] = {}
        while self._clock.monotonic() < end:
            # anew each time: a latency that it does not see any more is none, and not the last one
            at_the_load = self._work.observe()
            if self._clock.monotonic() >= look_at:
                look_at = self._clock.monotonic() + LOOK_S
                sight = self._lookout.look()
                if sight is not None:
                    # what the load itself measures at its clients is nearer to the truth than what the cluster tells
                    sight = Sight(sight.at, sight.health, {**sight.values, **at_the_load}, sight.words)
                    latest.update(sight.values)
                    self._report.live(sight.values)
                breach = guard.watch(sight) if guard is not None else None
                if breach is not None and breach.rule == "slo":
                    # the cluster is well and only slow: that is a measurement, and says nothing against what is near
                    raise _HopelessError(breach.reason, self._so_far(start, latest))
                if breach is not None:
                    raise _StoppedError(breach)
            now = self._clock.now()
            if hopeless is not None and now - stretch >= STRETCH_S and self._clock.monotonic() < end:
                self._ask(hopeless, start, stretch, now)
                stretch = now
            self._clock.sleep(max(0.0, min(OBSERVE_S, end - self._clock.monotonic())))

    def _so_far(self, start: float, values: Mapping[str, float]) -> Mapping[str, Measure]:
        try:
            return self._work.measure(start, self._clock.now())
        except (RetryLater, LabFailed):
            return measured_once(values)

    def _ask(self, hopeless: Hopeless, start: float, stretch: float, now: float) -> None:
        try:
            last, so_far = self._work.measure(stretch, now), self._work.measure(start, now)
        except (RetryLater, LabFailed):
            # some work ran out: whether it lasted for long enough is seen at the end
            return
        reason = hopeless.watch(last, so_far)
        if reason is not None:
            raise _HopelessError(reason, so_far)

    @property
    def clock(self) -> Clock:
        """The cluster's clock, by which windows begin and end: a twin's runs by itself."""
        return self._clock

    def measured_before(self, trial: Trial, number: int, total: int) -> None:
        """Tell of a run that an interrupted process has measured."""
        self._report.done(replace(trial, notes=(*trial.notes, "measured before the interruption")), number, total)

    def keep(self) -> None:
        """Let settings that a run left in place stay for good."""
        self._writer.keep()

    def take_back(self, run: Run, number: int, total: int) -> None:
        """Undo settings that were kept."""
        self._undo(run, number, total)

    def _undo(self, run: Run, number: int, total: int) -> None:
        self._report.phase(run, number, total, "taking the settings back", 0)
        self._writer.undo()
