"""The automatic mode put together inside the mgr, and what the commands want of it."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner import __version__
from ceph_tuner.applier import Applier
from ceph_tuner.autopilot.audit import ACTS, CAPACITY, TAKEN_BACK, Audit
from ceph_tuner.autopilot.machine import BY_OPERATOR
from ceph_tuner.autopilot.observer import Observer, groups_of
from ceph_tuner.autopilot.pilot import Pilot
from ceph_tuner.autopilot.policy import Policy
from ceph_tuner.autopilot.state import COMPARING, MODES, OFF, PHASES, State
from ceph_tuner.clusters.machine import SystemClock
from ceph_tuner.errors import InputError, Stopped, TunerError
from ceph_tuner.lock import Lock
from ceph_tuner.ports import Clock
from ceph_tuner.releases import release_of

from . import health
from .announce import Announcer
from .capacity_check import CapacityCheck
from .changes import NewLock, own_lock
from .crew import MgrCrew
from .driver import Driver
from .endpoint import Endpoint
from .exposition import Document
from .guardian import Guardian, access
from .options import policy_of
from .proposer import Proposer
from .sampler import Sampler
from .service import STATUS_WINDOW_S, Service
from .surroundings import Surroundings

OPERATOR = "an operator"
"""A module is not told who gave a command; the monitors' own audit log has the name."""

AT_ALL_TIMES = "mon-sun"

CAPACITY_S = 600.0
"""How often stored capacities are held against what is known."""


class Automatic:
    """Composition: everything that the automatic mode is made of, for one module."""

    def __init__(
        self,
        mgr: Any,
        service: Service,
        sampler: Sampler,
        running: Callable[[], Mapping[int, int]],
        written: Callable[[int], Tuple[float, ...]],
        option: Callable[[str], Any],
        clock: Optional[Clock] = None,
        new_lock: NewLock = own_lock,
    ) -> None:
        """`mgr` is the module; `running` is as for `Surroundings`; without a clock, the machine's.

        `written` gives an OSD's counter of client writes, with its stamp before it.
        """
        log: logging.Logger = mgr.log
        self._service, self._sampler, self._option = service, sampler, option
        self._who = service.who
        self._clock, self._new_lock = clock or SystemClock(), new_lock
        now = self._clock.now
        self.trail = Audit(service.store)
        self._announcer = Announcer(mgr, log)
        self._endpoint = Endpoint()
        self._guardian = Guardian(lambda: access(mgr), self._who)
        self._around = Surroundings(mgr, service, sampler, running, lambda: float(option("sample_interval")), now)
        proposer = Proposer(service, lambda: str(option("auto_target")), now)
        crew = MgrCrew(
            self.trail,
            self._announcer,
            service.history,
            proposer,
            self.policy,
            lambda answer: self._driver.answered(answer),
            [self._on_trial, self._guardian.watch],
            self._who,
            log,
        )
        self._crew = crew
        pilot = Pilot(service.store, self._hands, crew, self._clock, self.policy, self._who)
        self._driver = Driver(
            pilot, Observer(sampler), self._around, self.policy, crew.remember, self._each_look, log, now
        )
        self._driver.notes = self.notes
        self._driver.beat = self._guardian.beat
        self.capacity = CapacityCheck(
            service.commander,
            service.capacities,
            service.inventory,
            written,
            # the mgr's own, as its `pg ls` is denied to modules
            lambda osd: mgr.get("pg_summary")["by_osd"].get(str(osd), ()),
            lambda target, settings, why: service.changes().set(target, settings, why),
        )
        self._policy, self._misread = Policy(), ""
        self._capacity: List[str] = []
        self._capacity_at = 0.0
        self._shown = ""

    def policy(self) -> Policy:
        """The module's options. Where they make no sense no move is permitted, and what is on trial goes."""
        try:
            self._policy, self._misread = policy_of(self._option), ""
        except InputError as error:
            # not an error of each turn: with options that nobody can read the guard must go on, and commands too
            self._misread = f"an option makes no sense: {error}"
            return replace(self._policy, hours="", blackout=AT_ALL_TIMES)
        return self._policy

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        self._driver.run(stop)

    @property
    def driver(self) -> Driver:
        """What `run` runs."""
        return self._driver

    def close(self) -> None:
        """Let the port go; a trial is left to the guardian and to the next active mgr."""
        self._endpoint.close()

    def sampled(self) -> None:
        """Go on after a sample, or a missed one. Called by the sampling thread."""
        self._driver.sampled()
        port = int(self._option("metrics_port"))
        self._endpoint.listen(str(self._option("metrics_address")), port)
        if port:
            self._endpoint.publish(self._metrics())

    def switch(self, mode: str) -> Dict[str, Any]:
        """Change the mode."""
        if mode not in MODES:
            raise InputError("auto", mode, f"one of {', '.join(MODES)}")
        return self.tell(mode)

    def tell(self, what: str, why: str = "") -> Dict[str, Any]:
        """Pass an operator's word on."""
        return self._driver.tell(what, OPERATOR, why)

    def document(self) -> Dict[str, Any]:
        """What it does and why."""
        return self._driver.document()

    def by_hand(self, really: bool, what: str, work: Callable[[], Any]) -> Any:
        """Do an operator's own work on the settings: what is on trial goes first, and the automatic mode pauses."""
        if really and self._driver.state.on_cluster:
            self.tell("pause", what)
        return work()

    def rollback(self, really: bool, to: Optional[int], everything: bool) -> Dict[str, Any]:
        """Take changes back; a trial that is under way is the newest one."""
        trial = list(self._driver.state.changes)
        if really and self._driver.state.on_cluster:
            self.tell("pause", "rollback")
            if self._driver.state.on_cluster:
                raise Stopped(self._driver.state.problem or "the trial is not taken back yet", "try again")
            if to is None and not everything:
                undone = [{"change": number, "why": "trial", "drift": [], "unseen": []} for number in reversed(trial)]
                return {"undone": undone, "would": []}
        return self._service.changes().rollback(really, to, everything)

    def past(self, limit: int) -> List[Dict[str, Any]]:
        """The newest records of the audit trail, the newest last."""
        return [record.to_dict() for record in self.trail.newest(limit)]

    def notes(self) -> List[str]:
        """What an operator should know."""
        return [note for note in (self._misread, self._endpoint.note, self._guardian.problem) if note]

    def health(self) -> Dict[str, List[str]]:
        """Health checks of the state, and of what happened in the last day."""
        state, seen = self._driver.state, self._driver.seen
        missed = zip(seen.missed, seen.metrics_missed) if seen else ()
        hard = [text for text, metric in missed if seen and metric in seen.hard_metrics]
        found = {**health.of_state(state, hard), **health.of_trail(self._crew.recent, self._clock.now())}
        problems = [problem for problem in (self._driver.problem, self._misread) if problem]
        if problems and state.mode != OFF:
            found["TUNER_STOPPED"] = [*found.get("TUNER_STOPPED", []), *problems]
        if self._capacity:
            found["TUNER_CAPACITY_WRONG"] = self._capacity
        return found

    def measure(self, osd: int, store: bool) -> Dict[str, Any]:
        """Bench an OSD that nobody waits for, or one of the canary. Raises InputError where it must not be."""
        state = self._driver.state
        canary = state.proposed.rollout.stages[0].osds if state.proposed is not None else ()
        found = self.capacity.measure(osd, store, canary, state.on_cluster, self._around.sight)
        if found["change"] is not None:
            why = f"osd.{osd} measured {found['measured']:.6g} IOPS, {found['iops']:.6g} until now"
            self.trail.append(self._clock.now(), OPERATOR, CAPACITY, why, {"changes": [found["change"]]}, "stored")
        return found

    def _hands(self) -> Tuple[Applier, Lock]:
        store = self._service.store
        lock = self._new_lock(store, self._clock, f"{self._who}, automatic mode")
        release = release_of(self._service.release_version())
        return Applier(self._service.config, store, self._clock, lock, release, self._who), lock

    def _on_trial(self, state: State) -> None:
        self._around.on_trial(state, self.policy())

    def _each_look(self, state: State) -> None:
        """What the driver's thread does at every look, beside looking."""
        proposed = state.proposed
        self._sampler.groups.watch(groups_of(state))
        # one bar for a whole trial, also while the old settings have their turn
        under_way = proposed is not None and (state.on_cluster or state.phase == COMPARING)
        event = f"tuner-{proposed.number}" if proposed is not None and under_way else ""
        if self._shown and event != self._shown:
            self._announcer.finished(self._shown, self._failure())
        if event and proposed is not None:
            share = (state.stage + 0.5) / len(proposed.rollout.stages)
            self._announcer.progress(event, f"ceph-tuner: {PHASES[state.phase]}", share)
        self._shown = event
        if state.mode == OFF:
            self._capacity, self._capacity_at = [], 0.0
            if self._option("metrics_port"):
                with contextlib.suppress(TunerError):
                    self._around.keep_up()
        elif abs(self._clock.now() - self._capacity_at) > CAPACITY_S:
            self._capacity_at = self._clock.now()
            # what a command does not answer now it answers later; the look itself must go on
            with contextlib.suppress(TunerError):
                self._capacity = self.capacity.report()["findings"]

    def _failure(self) -> str:
        """Why the last trial ended, if it was taken back."""
        ends = [record for record in self._crew.recent if record.what in ACTS and not record.refers]
        failed = bool(ends) and ends[-1].what == TAKEN_BACK and ends[-1].detail.get("rule") != BY_OPERATOR
        return ends[-1].why if failed else ""

    def _metrics(self) -> Document:
        state, seen, window = self._driver.state, self._driver.seen, self._sampler.window(STATUS_WINDOW_S)
        sample, proposed = self._sampler.latest(), state.proposed
        return {
            "version": __version__,
            "sample": sample.to_dict() if sample is not None else None,
            "window": window.to_dict() if window is not None else None,
            "slo": self._around.verdicts(window),
            "mode": state.mode,
            "phase": state.phase,
            "paused": bool(state.paused),
            "stage": state.stage + 1 if state.on_cluster else 0,
            "stages": len(proposed.rollout.stages) if proposed is not None else 0,
            "changes_on_trial": len(state.changes),
            "trial_windows": seen.windows if seen is not None and state.on_cluster else 0,
            "effects": [effect.to_dict() for effect in seen.effects.values()] if seen is not None else [],
            "counts": self._announcer.counts(),
            "tick_s": self._sampler.tick_s,
            "release": self._around.release,
            "sampling_failures": self._sampler.failures,
            "worker_failures": state.worker_failures,
        }
