"""The controller: threads that watch and renew, and one loop that brings the cluster to what the resources state."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Protocol, Sequence

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller.at_api_server import Resources, Watch
from ceph_tuner.controller.boosts import BoostTurn
from ceph_tuner.controller.convergence import Convergence
from ceph_tuner.controller.kinds import ALL, ResourceKind
from ceph_tuner.controller.leadership import Leadership, controllers_lock
from ceph_tuner.controller.lease import CALL_S, Lease
from ceph_tuner.controller.modes import ModePart
from ceph_tuner.controller.part import Changed
from ceph_tuner.controller.resource import Report, Resource
from ceph_tuner.controller.slos import SloPart
from ceph_tuner.controller.vitals import Vitals
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import Locked, Stopped, TunerError
from ceph_tuner.rook.kubeconfig import ApiAccess
from ceph_tuner.rook.kubernetes_api import KubernetesApi

RESYNC_S = 30.0
"""How often all is looked at where no resource changes: the cluster changes too."""
WATCH_S = 240
"""Length of a watch."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
"""Between two attempts that fail."""
_FIRST_ENTRY_S, _LONGEST_ENTRY_S = 2.0, 8.0
"""Between two attempts to enter the cluster's lock: whoever takes over from a dead one waits no longer than this."""
_STANDBY_S = 0.5
_BRIEF_S = 5.0
"""A watch that ends sooner was none."""


class ResourceTurn(Protocol):
    """What converges the resources of one kind."""

    kind: ResourceKind

    def turn(self, resources: Sequence[Resource]) -> Dict[str, Report]:
        """One pass; give what was said, by uid. Raises Locked, Changed, TunerError."""


@dataclass(frozen=True)
class Settings:
    """Where the controller works."""

    namespace: str
    identity: str
    """Names this controller among those of the namespace: the pod."""
    lease: str = "ceph-tuner-controller"
    resync_s: float = RESYNC_S


@dataclass
class Controller:
    """`run` returns when it is told to stop."""

    cluster: Cluster
    access: ApiAccess
    settings: Settings
    say: Callable[[str], None]
    """Told of what an operator may want to know, line by line."""
    clock: Clock = field(default_factory=SystemClock)
    """Of this machine; the cluster has its own."""
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        clock = self.clock
        self.vitals = Vitals(clock.monotonic)
        self._wake = threading.Event()
        settings = self.settings
        self.lease = Lease(self._api("lease", CALL_S), settings.namespace, settings.lease, settings.identity, clock)
        self._resources = Resources(self._api("resources"), settings.namespace, clock.now)

    def run(self) -> None:
        """Lead or stand by, until told to stop. What the resources state stays at the cluster then."""
        over = threading.Event()
        # a pass that is on goes to its end under the lease
        renewal = threading.Thread(target=self.lease.run, args=(over,), name="lease", daemon=True)
        watches = [threading.Thread(target=self._watch, args=(kind,), name=kind.plural, daemon=True) for kind in ALL]
        for thread in (renewal, *watches):
            thread.start()
        try:
            self._main(renewal)
        finally:
            self.stop.set()
            over.set()
            # it gives the lease up; watches end with the process
            renewal.join(4 * CALL_S)

    def _main(self, renewal: threading.Thread) -> None:
        wait_s = _FIRST_ENTRY_S
        while not self.stop.is_set():
            if not renewal.is_alive():
                raise Stopped("the thread that renews the lease has ended", "see what the controller printed before")
            self._move()
            if not self.lease.is_held:
                self.stop.wait(_STANDBY_S)
                continue
            lock, terms, is_failed = controllers_lock(self.cluster, self.settings.identity), self.vitals.terms, False
            try:
                with lock:
                    self._lead(lock)
            except TunerError as fault:
                self._fail([fault])
                is_failed = True
            finally:
                self.vitals.leads = False
                # another one says from now on what became of them
                self.vitals.count_reports({})
            wait_s = wait_s if self.vitals.terms == terms else _FIRST_ENTRY_S
            if is_failed:
                # each attempt to enter writes to the cluster's store
                self.stop.wait(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_ENTRY_S)

    def _lead(self, lock: Lock) -> None:
        self.say(f"{self.settings.identity} leads")
        self.vitals.leads, self.vitals.terms = True, self.vitals.terms + 1
        leadership = Leadership(self.lease, lock, self._move, self.stop.is_set)
        turns = self._turns(leadership)
        wait_s = FIRST_WAIT_S
        while self.lease.is_held and not self.stop.is_set():
            self._wake.clear()
            self._move()
            faults = self._pass(turns, leadership)
            failures = [fault for fault in faults if not isinstance(fault, Changed)]
            if failures:
                self._fail(failures)
                self.stop.wait(FIRST_WAIT_S)
                self._pause(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
                continue
            if faults:
                self.stop.wait(FIRST_WAIT_S)
                continue
            wait_s = FIRST_WAIT_S
            # whoever changes a resource all the time does not keep the cluster busy
            self.stop.wait(FIRST_WAIT_S)
            self._pause(self.settings.resync_s)
        if not self.stop.is_set():
            self.say(f"{self.settings.identity} has lost the lease, and writes nothing")

    def _turns(self, leadership: Leadership) -> List[ResourceTurn]:
        commander, clock = self.cluster.commander, self.cluster.clock
        return [
            # objectives first: a mode cannot be on without
            Convergence(SloPart(commander, clock), self._resources, leadership),
            Convergence(ModePart(commander), self._resources, leadership),
            BoostTurn(commander, self._resources, leadership),
        ]

    def _pass(self, turns: Sequence[ResourceTurn], leadership: Leadership) -> List[TunerError]:
        """Give what was in the way of it, kind by kind. Raises Locked."""
        reports: Dict[str, List[Report]] = {}
        faults: List[TunerError] = []
        for turn in turns:
            if leadership.is_ending:
                return faults
            leadership.check_lease()
            try:
                resources = self._resources.all(turn.kind)
                self.vitals.last_answer = self.vitals.monotonic()
                reports[turn.kind.name] = list(turn.turn(resources).values())
            except Locked:
                raise
            except TunerError as fault:
                # one kind that cannot be read holds none of the others up
                faults.append(fault)
        self.vitals.count_reports(reports)
        if not faults:
            self.vitals.passes += 1
            self.vitals.last_pass, self.vitals.problems = self.clock.now(), ()
        return faults

    def _pause(self, seconds: float) -> None:
        """Until something changes, the lease is lost, or time is up."""
        end = self.vitals.monotonic() + seconds
        while not self._wake.is_set() and not self.stop.is_set() and self.lease.is_held:
            self._move()
            left = end - self.vitals.last_move
            if left <= 0:
                return
            self._wake.wait(min(left, _STANDBY_S))

    def _move(self) -> None:
        self.vitals.last_move = self.vitals.monotonic()
        self.vitals.last_answer = max(self.vitals.last_answer, self.lease.last_answer)

    def _fail(self, faults: Sequence[TunerError]) -> None:
        """Count it; say what was not said of the attempt before."""
        self.vitals.pass_failures += 1
        for fault in faults:
            if str(fault) not in self.vitals.problems:
                self.say(fault.advised)
        self.vitals.problems = tuple(map(str, faults))

    def _watch(self, kind: ResourceKind) -> None:
        watch, wait_s = Watch(self._api(kind.plural), kind, self.settings.namespace, self._changed), FIRST_WAIT_S
        while not self.stop.is_set():
            begun, is_broken = self.vitals.monotonic(), False
            try:
                watch.follow(WATCH_S)
            except TunerError:
                self.vitals.count_watch_failure(kind.name)
                is_broken = True
            lasted_s = self.vitals.monotonic() - begun
            # one that worked for a while begins anew without a long wait
            wait_s = FIRST_WAIT_S if lasted_s > LONGEST_WAIT_S else wait_s
            # an API server may end each at once, and say nothing of a fault
            if is_broken or lasted_s < _BRIEF_S:
                self.stop.wait(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _changed(self) -> None:
        self.vitals.last_answer = self.vitals.monotonic()
        self._wake.set()

    def _api(self, name: str, timeout: float = 30.0) -> KubernetesApi:
        return KubernetesApi(f"{self.settings.namespace} ({name})", self.access, self.clock, timeout)
