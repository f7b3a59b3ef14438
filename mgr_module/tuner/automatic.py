"""An automatic mode put together inside the mgr, and what the commands want of it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Set, Tuple, Type

from ceph_tuner.core.autopilot.audit_log import Audit
from ceph_tuner.core.autopilot.executor import Executor, TrialExecutor
from ceph_tuner.core.autopilot.state import OFF
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.guardian import unguarded
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.writer import said_of_class
from ceph_tuner.core.errors import InputError, Stopped
from ceph_tuner.core.knobs.releases import release_of

from . import health
from .aim import Aim
from .announce import Announcer
from .changes import NewLock, own_lock
from .driver import Driver
from .exposition import ModeDocument
from .inbox import Inbox
from .logbook import MgrLogbook
from .lookout import Lookout
from .options import PolicyOptions
from .proposer import Proposer
from .pulse import Pulse
from .service import STATUS_WINDOW_S, Service

OPERATOR = "an operator"
"""A module is not told who gave a command; the monitors' own audit log has the name."""


class Automatic:
    """Composition: everything that one automatic mode is made of, for what it aims at."""

    def __init__(
        self,
        mgr: Any,
        service: Service,
        aim: Aim,
        osds_up: Callable[[], Mapping[int, int]],
        executors: Dict[str, TrialExecutor[Any]],
        clock: Optional[Clock] = None,
        new_lock: NewLock = own_lock,
    ) -> None:
        """`mgr` is the module; `osds_up` is as for `Lookout`; without a clock, the machine's.

        `executors` has those of the cluster's modes by device class; this one's is added.
        """
        clock = clock or SystemClock()
        self.aim, self._now, self._store = aim, clock.now, service.store
        self.trail = Audit(service.store, aim.trail_prefix)
        self._options = PolicyOptions(service.option)
        self._announcer = Announcer(mgr, mgr.log)
        self.logbook = MgrLogbook(self.trail, self._announcer, service.history, aim.who, aim.device_class, mgr.log)
        self.lookout = Lookout(mgr, service, aim, osds_up, executors, clock.now)
        inbox, pulse = Inbox(), Pulse()
        executor = executors[aim.device_class] = Executor(
            service.store,
            partial(new_hands, service, clock, new_lock, pulse, aim.who, f"{aim.who}, automatic mode"),
            self.logbook,
            Proposer(service, aim, inbox, clock.now),
            (self.lookout,),
            clock,
            self._options.read,
            aim.who,
            aim.state_key,
            partial(on_trial_elsewhere, executors, aim.device_class),
        )
        self.driver = Driver(executor, self.lookout, self.logbook, pulse, inbox, self._options.read, mgr.log, clock.now)

    def tell(self, what: str, why: str = "") -> None:
        """Pass an operator's word on. Raises as `Driver.tell`."""
        self.driver.tell(what, OPERATOR, why)

    def document(self) -> Dict[str, Any]:
        """What it does and why."""
        return {**self.driver.document(), "notes": self.notes()}

    def give_way(self, what: str) -> List[int]:
        """Take back what is on trial, for an operator's own work on the settings, and pause; give its changes.

        Raises Stopped where it is still there afterwards.
        """
        trial = list(self.driver.state.changes)
        if not self.driver.state.on_cluster:
            return []
        self.tell("pause", what)
        if self.driver.state.on_cluster:
            raise Stopped(self.driver.state.problem or "the trial is not taken back yet", "try again")
        return trial

    def notes(self) -> List[str]:
        """What an operator should know."""
        open_trial = unguarded(self._store, self._now()) if self.driver.state.mode != OFF else ""
        return [note for note in (self._options.problem, open_trial, *self.aim.notes()) if note]

    def health(self) -> Dict[str, List[str]]:
        """Health checks of the state, and of what happened in the last day."""
        state, look = self.driver.state, self.driver.newest_look
        misses = zip(look.missed, look.metrics_missed) if look else ()
        hard = [text for text, metric in misses if look and metric in look.hard_metrics]
        checks = {**health.of_state(state, hard), **health.of_trail(self.logbook.recent, self._now())}
        problems = [problem for problem in (self.driver.problem, self._options.problem) if problem]
        if problems and state.mode != OFF:
            checks["TUNER_STOPPED"] = [*checks.get("TUNER_STOPPED", []), *problems]
        return checks

    @property
    def canary(self) -> Tuple[int, ...]:
        """OSDs of the first stage of what is proposed."""
        proposed = self.driver.state.proposed
        return proposed.rollout.stages[0].osds if proposed is not None else ()

    def exported(self) -> ModeDocument:
        """What of it goes to Prometheus."""
        state, look, proposed = self.driver.state, self.driver.newest_look, self.driver.state.proposed
        return {
            "device_class": self.aim.device_class,
            "slo": self.lookout.verdicts(self.aim.window(STATUS_WINDOW_S)),
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


class Addressee(Protocol):
    """A mode, or what switches the book."""

    def tell(self, what: str, why: str = "") -> None:
        """Pass an operator's word on. Raises InputError where it makes no sense now."""


def tell_each(addressees: Sequence[Addressee], what: str, why: str = "") -> None:
    """Pass an operator's word on to each that it makes sense for. Raises InputError where that is none."""
    refusals = [fault for fault in (_refusal(each, what, why) for each in addressees) if fault is not None]
    if refusals and len(refusals) == len(addressees):
        raise refusals[0]


class Checked(Protocol):
    """Something with an aim, and health checks."""

    aim: Aim

    def health(self) -> Dict[str, List[str]]:
        """By name, what is to be said of each."""


def joined_health(parts: Sequence[Checked]) -> Dict[str, List[str]]:
    """Health checks of all; those of a class say which."""
    checks: Dict[str, List[str]] = {}
    for part in parts:
        for name, lines in part.health().items():
            checks.setdefault(name, []).extend(said_of_class(line, part.aim.device_class) for line in lines)
    return checks


def _refusal(addressee: Addressee, what: str, why: str) -> Optional[InputError]:
    """Why this word is refused; None where it was taken."""
    try:
        addressee.tell(what, why)
    except InputError as fault:
        return fault
    return None


def new_hands(
    service: Service,
    clock: Clock,
    new_lock: NewLock,
    pulse: Pulse,
    who: str,
    holder: str,
    kind: Type[Applier] = Applier,
) -> Tuple[Applier, Lock]:
    """An applier with the lock that it writes under: `who` is for the journal, `holder` for those who want the lock."""
    lock = new_lock(service.store, clock, holder)
    lock.at_work = pulse.beats
    release = release_of(service.release_version())
    return kind(service.config, service.store, clock, lock, release, who), lock


def on_trial_elsewhere(executors: Mapping[str, TrialExecutor[Any]], name: str) -> Set[int]:
    """Numbers of the changes that the other executors of this mgr have on the cluster."""
    others = [executor for key, executor in list(executors.items()) if key != name]
    return {number for executor in others for number in executor.state.changes}
