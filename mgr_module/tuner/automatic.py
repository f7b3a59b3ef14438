"""An automatic mode put together inside the mgr, and what the commands want of it."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.audit_log import ACTS, TAKEN_BACK, Audit
from ceph_tuner.core.autopilot.executor import Executor
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import COMPARING, OFF, PHASES, State
from ceph_tuner.core.autopilot.state_machine import BY_OPERATOR
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import InputError, Stopped
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.knobs.releases import release_of

from . import health
from .aim import Aim
from .announce import Announcer
from .changes import NewLock, own_lock
from .driver import Driver
from .exposition import ModeDocument
from .guardian import Guardian, access
from .logbook import Logbook
from .lookout import Lookout
from .options import policy_of
from .proposer import Proposer
from .service import STATUS_WINDOW_S, Service

OPERATOR = "an operator"
"""A module is not told who gave a command; the monitors' own audit log has the name."""

AT_ALL_TIMES = "mon-sun"


class Automatic:
    """Composition: everything that one automatic mode is made of, for what it aims at."""

    def __init__(
        self,
        mgr: Any,
        service: Service,
        aim: Aim,
        running: Callable[[], Mapping[int, int]],
        option: Callable[[str], Any],
        busy: Callable[[], str] = str,
        clock: Optional[Clock] = None,
        new_lock: NewLock = own_lock,
    ) -> None:
        """`mgr` is the module; `running` and `busy` are as for `Lookout`; without a clock, the machine's."""
        log: logging.Logger = mgr.log
        self._service, self.aim, self._option = service, aim, option
        self._who = aim.who
        self._clock, self._new_lock = clock or SystemClock(), new_lock
        now = self._clock.now
        self.trail = Audit(service.store, aim.trail_prefix)
        self._announcer = Announcer(mgr, log)
        self._guardian = Guardian(lambda: access(mgr), self._who)
        self._lookout = Lookout(mgr, service, aim, running, now, busy)
        proposer = Proposer(service, aim, now)
        logbook = Logbook(
            self.trail,
            self._announcer,
            service.history,
            proposer,
            self.policy,
            lambda answer: self._driver.answered(answer),
            [self._on_trial, self._guardian.watch],
            self._who,
            log,
            aim.device_class,
        )
        self._logbook = logbook
        executor = Executor(service.store, self._hands, logbook, self._clock, self.policy, self._who, aim.state_key)
        self._driver = Driver(executor, self._lookout, self.policy, logbook.remember, self._each_look, log, now)
        self._driver.notes = self.notes
        self._driver.beat = self._guardian.beat
        self._policy, self._misread = Policy(), ""
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

    def sampled(self) -> None:
        """Go on after a sample, or a missed one. Called by the sampling thread."""
        self._driver.sampled()

    def tell(self, what: str, why: str = "") -> Dict[str, Any]:
        """Pass an operator's word on."""
        return self._driver.tell(what, OPERATOR, why)

    def document(self) -> Dict[str, Any]:
        """What it does and why."""
        return self._driver.document()

    def give_way(self, what: str) -> List[int]:
        """Take back what is on trial, for an operator's own work on the settings, and pause; give its changes.

        Raises Stopped where it is still there afterwards.
        """
        trial = list(self._driver.state.changes)
        if not self._driver.state.on_cluster:
            return []
        self.tell("pause", what)
        if self._driver.state.on_cluster:
            raise Stopped(self._driver.state.problem or "the trial is not taken back yet", "try again")
        return trial

    def notes(self) -> List[str]:
        """What an operator should know."""
        return [note for note in (self._misread, self._guardian.problem, *self.aim.notes()) if note]

    def health(self) -> Dict[str, List[str]]:
        """Health checks of the state, and of what happened in the last day."""
        state, look = self._driver.state, self._driver.newest_look
        missed = zip(look.missed, look.metrics_missed) if look else ()
        hard = [text for text, metric in missed if look and metric in look.hard_metrics]
        found = {**health.of_state(state, hard), **health.of_trail(self._logbook.recent, self._clock.now())}
        problems = [problem for problem in (self._driver.problem, self._misread) if problem]
        if problems and state.mode != OFF:
            found["TUNER_STOPPED"] = [*found.get("TUNER_STOPPED", []), *problems]
        return found

    @property
    def canary(self) -> Tuple[int, ...]:
        """OSDs of the first stage of what is proposed."""
        proposed = self._driver.state.proposed
        return proposed.rollout.stages[0].osds if proposed is not None else ()

    @property
    def sight(self) -> Sight:
        """The newest."""
        return self._lookout.sight

    def _hands(self) -> Tuple[Applier, Lock]:
        store = self._service.store
        lock = self._new_lock(store, self._clock, f"{self._who}, automatic mode")
        release = release_of(self._service.release_version())
        return Applier(self._service.config, store, self._clock, lock, release, self._who), lock

    def _on_trial(self, state: State) -> None:
        self._lookout.on_trial(state, self.policy())

    def _each_look(self, state: State) -> None:
        """What the driver's thread does at every look, beside looking."""
        proposed = state.proposed
        # one bar for a whole trial, also while the old settings have their turn
        under_way = proposed is not None and (state.on_cluster or state.phase == COMPARING)
        event = f"tuner-{proposed.number}" if proposed is not None and under_way else ""
        if self._shown and event != self._shown:
            self._announcer.finished(self._shown, self._failure())
        if event and proposed is not None:
            share = (state.stage + 0.5) / len(proposed.rollout.stages)
            self._announcer.progress(event, f"ceph-tuner: {PHASES[state.phase]}", share)
        self._shown = event

    def _failure(self) -> str:
        """Why the last trial ended, if it was taken back."""
        ends = [record for record in self._logbook.recent if record.what in ACTS and not record.refers]
        failed = bool(ends) and ends[-1].what == TAKEN_BACK and ends[-1].detail.get("rule") != BY_OPERATOR
        return ends[-1].why if failed else ""

    def exported(self) -> ModeDocument:
        """What of it goes to Prometheus."""
        state, look, proposed = self._driver.state, self._driver.newest_look, self._driver.state.proposed
        return {
            "device_class": self.aim.device_class,
            "slo": self._lookout.verdicts(self.aim.window(STATUS_WINDOW_S)),
            "mode": state.mode,
            "phase": state.phase,
            "paused": bool(state.paused),
            "stage": state.stage + 1 if state.on_cluster else 0,
            "stages": len(proposed.rollout.stages) if proposed is not None else 0,
            "changes_on_trial": len(state.changes),
            "trial_windows": look.windows if look is not None and state.on_cluster else 0,
            "effects": [effect.to_dict() for effect in look.effects.values()] if look is not None else [],
            "counts": self._announcer.counts(),
            "worker_failures": state.worker_failures,
        }

    @property
    def release(self) -> str:
        """The oldest version among the OSDs, as of the newest window."""
        return self._lookout.release
