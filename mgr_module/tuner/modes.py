"""The automatic modes of a cluster: one for the whole, or one for each device class that has objectives of its own.

Each has its own state, budget, trail and pause. One at a time has something on trial: what is written is one
configuration, the lock is one, and OSDs of several classes share hosts.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from ceph_tuner import __version__
from ceph_tuner.core.autopilot.audit_log import CAPACITY, Audit, every_trail
from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.autopilot.state import MODES, OFF, WAITING
from ceph_tuner.core.book.events import ON as BOOK_ON
from ceph_tuner.core.book.executor import KEY as BOOK_STATE
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.measure.metrics import CLASS, METRICS, Scope, scoped

from .aim import STATE, TRAIL, Aim
from .automatic import OPERATOR, Automatic, joined_health, tell_each
from .books import Books
from .boosts import Boosts
from .capacity_check import CapacityCheck
from .changes import NewLock, own_lock
from .endpoint import Endpoint
from .exposition import ExportedState
from .lookout import BOOST
from .policy_markers import never_on
from .regime_watch import RegimeWatch
from .sampler import Sampler
from .service import STATUS_WINDOW_S, Service
from .turns import Turns

CAPACITY_S = 600.0
"""How often stored capacities are held against what is known."""
LOOK_S = 5.0
JOURNAL_S = 60.0
MOST_CLASSES = 16
"""Of those whose stored state is looked at."""


class Modes:
    """What the module and its commands have of them. Any thread may call, but `run` and what `look` does."""

    def __init__(
        self,
        mgr: Any,
        service: Service,
        sampler: Sampler,
        osds_up: Callable[[], Mapping[int, int]],
        write_counts: Callable[[int], Tuple[float, ...]],
        option: Callable[[str], Any],
        clock: Optional[Clock] = None,
        new_lock: NewLock = own_lock,
    ) -> None:
        """`mgr` is the module; `osds_up` is as for `Lookout`; without a clock, the machine's.

        `write_counts` gives an OSD's counter of client writes, with its stamp before it.
        """
        self._mgr, self._service, self._sampler, self._running = mgr, service, sampler, osds_up
        self._option, self._clock, self._new_lock = option, clock, new_lock
        self._now: Callable[[], float] = time.time if clock is None else clock.now
        self._endpoint = Endpoint()
        self.capacity = CapacityCheck(
            service.commander,
            service.capacities,
            service.inventory,
            write_counts,
            # the mgr's own, as its `pg ls` is denied to modules
            lambda osd: mgr.get("pg_summary")["by_osd"].get(str(osd), ()),
            lambda target, settings, why: service.changes().set(target, settings, why),
            lambda: service.release().units == "fraction",
        )
        self._capacity: List[str] = []
        self._capacity_at = self._journal_at = 0.0
        self._executors: Dict[str, TrialExecutor[Any]] = {}
        self.whole = self._mode("")
        """The one of the cluster as a whole; it has nothing to do while classes have their own."""
        self._of_classes: Dict[str, Automatic] = {}
        self.regimes = RegimeWatch(service.store, service.history, service.capacity_iops, service.slos, self._now)
        self.boosts = Boosts(mgr, service, self._executors, self.regimes, clock, new_lock)
        self.books = Books(mgr, service, self._executors, self.regimes, clock, new_lock)
        self.whole.logbook.on_kept = partial(self.books.validated, self.whole.aim)
        self._threads: Dict[str, threading.Thread] = {}
        self._looking = threading.Lock()
        self._recalled = False

    @property
    def all(self) -> List[Automatic]:
        """Every mode that there is, the whole cluster's first."""
        return [self.whole, *self._of_classes.values()]

    def run(self, stop: threading.Event) -> None:
        """Keep a thread for each mode until told to stop, and make one as its class gets an objective."""
        while not stop.is_set():
            # first: what a mgr that is gone left is taken back, whether or not the monitors answer what is asked next
            self._keep_running(stop)
            self.attempt()
            self._keep_running(stop)
            # the book waits for their bounds
            self._surviving(self.keep_regimes)
            self._surviving(self.look_at_capacities)
            self._surviving(self.look_at_journal)
            self._surviving(self.boosts.by_rule)
            stop.wait(LOOK_S)

    def attempt(self) -> None:
        """Look, as far as that is possible now."""
        with self._looking:
            self._surviving(self.look)

    def _surviving(self, work: Callable[[], None]) -> None:
        """What goes wrong is tried again the next time: the modes themselves must go on."""
        try:
            work()
        except TunerError:
            # a command that was not answered, or an SLO that nobody can read: the modes say so
            return
        except Exception:
            self._mgr.log.exception("it cannot be seen what the automatic modes are about")

    def look(self) -> None:
        """See which scopes are to be sampled, and which classes have modes. Raises TunerError."""
        scopes = self._service.scopes
        # of all its policies: a mode does not come and go with the hours
        scopes.look(self._service.slos.current_calendar())
        self._sampler.scopes = scopes.members
        for name in (*scopes.classes(), *self._stored_classes()):
            if name not in self._of_classes:
                mode = self._mode(name)
                self.books.add(mode.aim)
                mode.logbook.on_kept = partial(self.books.validated, mode.aim)
                self._of_classes = {**self._of_classes, name: mode}

    def look_at_capacities(self) -> None:
        """Hold the stored capacities against what is known, now and then while a mode is on. Raises TunerError."""
        if all(mode.driver.state.mode == OFF for mode in self.all):
            self._capacity, self._capacity_at = [], 0.0
        elif abs(self._now() - self._capacity_at) > CAPACITY_S:
            self._capacity_at = self._now()
            self._capacity = self.capacity.report()["findings"]

    def look_at_journal(self) -> None:
        """See now and then whether all of it can be read, whatever the modes do. Raises TunerError."""
        if abs(self._now() - self._journal_at) > JOURNAL_S:
            self._journal_at = self._now()
            self._service.look_at_journal()

    def keep_regimes(self) -> None:
        """Keep in the history which regimes and which policy hold. Raises TunerError."""
        self.regimes.keep(self._service.scopes.members)

    def sampled(self) -> None:
        """Go on after a sample, or a missed one. Called by the sampling thread."""
        self._service.slos.begin_interval()
        # first those that guard what is on the cluster
        for mode in self.all:
            mode.driver.sampled()
        self.boosts.driver.sampled()
        self.regimes.sampled(self._sampler.latest(), self._service.scopes.members)
        # after the regime is told: it switches by the same sample
        for book in self.books.all:
            book.driver.sampled()
        port = int(self._option("metrics_port"))
        self._endpoint.listen(str(self._option("metrics_address")), port)
        if port:
            self._endpoint.publish(self._metrics())

    def close(self, end: float) -> None:
        """Let the port go, and wait until `end` (of `time.monotonic`) for the threads, which were told to stop.

        A trial is left to the next active mgr, or to `ceph-tuner guardian`.
        """
        self._endpoint.close()
        for _, driver in self._drivers():
            driver.inbox.wake.set()
        for thread in list(self._threads.values()):
            thread.join(max(0.0, end - time.monotonic()))

    def switch(self, mode: str, device_class: str = "") -> Dict[str, Any]:
        """Change the mode of a class, or without one of all that have objectives."""
        if mode not in MODES:
            raise InputError("auto", mode, f"one of {', '.join(MODES)}")
        return self.tell(mode, device_class=device_class)

    def switch_book(self, what: str, why: str = "", device_class: str = "") -> Dict[str, Any]:
        """Switch the book on or off, as `Books.switch`."""
        if what == BOOK_ON:
            # an objective that was set a moment ago has its class
            self.attempt()
        return self.books.switch(what, why, device_class)

    def tell(self, what: str, why: str = "", device_class: str = "") -> Dict[str, Any]:
        """Pass an operator's word on to the mode of a class, or without one to all that it makes sense for."""
        if what in MODES and what != OFF:
            # an objective that was set a moment ago has its mode; what ends something waits for nothing
            self.attempt()
        modes = [self.of(device_class)] if device_class else self._addressees(what)
        tell_each(modes, what, why)
        return self.document(device_class)

    def of(self, device_class: str) -> Automatic:
        """The mode of a class; without one the whole cluster's. Raises InputError where that class has none."""
        if not device_class:
            return self.whole
        if device_class not in self._of_classes:
            # its first objective may be a moment old
            self.attempt()
        if device_class not in self._of_classes:
            raise self._service.scopes.refused_class(device_class, self._of_classes)
        return self._of_classes[device_class]

    def aim(self, device_class: str) -> Aim:
        """What the mode of a class is for; without one the whole cluster."""
        return self.of(device_class).aim

    def document(self, device_class: str = "") -> Dict[str, Any]:
        """What a mode does and why; without a class what all do, those of classes by name."""
        document = {**self.of(device_class).document(), "device_class": device_class}
        document["notes"] = [*document["notes"], *([self._endpoint.note] if self._endpoint.note else [])]
        document["regimes"], document["book"] = self.regimes.held(), self.books.words()
        document["policy"] = self._service.slo_commands.current_policy()
        if not device_class:
            document["classes"] = {name: mode.document() for name, mode in self._of_classes.items()}
        return document

    def by_hand(self, really: bool, what: str, work: Callable[[], Any]) -> Any:
        """Do an operator's own work on the settings: what is on trial goes first, and that mode pauses."""
        if really:
            for mode in self.all:
                mode.give_way(what)
            self.boosts.give_way(what)
            self.books.give_way(what)
        return work()

    def rollback(self, really: bool, to: Optional[int], everything: bool) -> Dict[str, Any]:
        """Take changes back; a trial that is under way is the newest one."""
        trial = [number for mode in self.all for number in mode.give_way("rollback")] if really else []
        trial += self.boosts.give_way("rollback") if really else []
        trial += self.books.give_way("rollback", trial_alone=True) if really else []
        if trial and to is None and not everything:
            undone = [{"change": number, "why": "trial", "drift": [], "unseen": []} for number in reversed(trial)]
            return {"undone": undone, "would": []}
        return self._service.changes().rollback(really, to, everything)

    def past(self, limit: int) -> List[Dict[str, Any]]:
        """The newest records of the audit trails, the newest last, each with the name of its trail."""
        return [{"trail": trail, **record.to_dict()} for trail, record in every_trail(self._service.store)[-limit:]]

    def health(self) -> Dict[str, List[str]]:
        """Health checks of all modes; those of a class say which."""
        checks = joined_health(self.all)
        for part in (self.boosts.health(), self.books.health(), self._policy_health()):
            for name, lines in part.items():
                checks.setdefault(name, []).extend(lines)
        if self._capacity:
            checks["TUNER_CAPACITY_WRONG"] = self._capacity
        return checks

    def _policy_health(self) -> Dict[str, List[str]]:
        """Regimes that a book which is on waits for in vain."""
        lines = [never_on(marker) for marker in self.regimes.without_policy()]
        is_on = any(book.driver.state.on for book in self.books.all)
        return {"TUNER_POLICY_MISSING": lines} if lines and is_on else {}

    def measure(self, osd: int, store: bool) -> Dict[str, Any]:
        """Bench an OSD that nobody waits for, or one of a canary. Raises InputError where it must not be."""
        report = self.capacity.measure(osd, store, *self._conditions())
        if report["change"] is not None:
            why = f"osd.{osd} measured {report['measured']:.6g} IOPS, {report['iops']:.6g} until now"
            self._note_capacity(why, [report["change"]])
        return report

    def measure_class(self, device_class: str, store: bool) -> Dict[str, Any]:
        """Bench some OSDs of a class for all of it. Raises InputError as `measure` does."""
        places = self._service.config.places()
        osds = [place.osd for place in places if place.up and place.device_class == device_class]
        if not osds:
            classes = ", ".join(sorted({place.device_class for place in places if place.device_class}))
            raise InputError(
                "capacity measure-class", device_class, f"a device class with OSDs that are up ({classes})"
            )
        report = self.capacity.measure_class(device_class, osds, store, *self._conditions())
        if report["changes"]:
            self._note_capacity(f"{len(report['osds'])} OSDs of the class {device_class} measured", report["changes"])
        return report

    def _conditions(self) -> Tuple[Tuple[int, ...], bool, Sight]:
        """What a bench has to heed: OSDs of a canary, whether something is on trial, how the cluster is."""
        busy = next((mode for mode in self.all if mode.driver.state.on_cluster), self.whole)
        return busy.canary, busy.driver.state.on_cluster, self.whole.lookout.sight

    def _note_capacity(self, why: str, changes: List[int]) -> None:
        Audit(self._service.store, TRAIL).append(self._now(), OPERATOR, CAPACITY, why, {"changes": changes}, "stored")

    def _mode(self, device_class: str) -> Automatic:
        aim = self._service.aim(device_class)
        return Automatic(self._mgr, self._service, aim, self._running, self._executors, self._clock, self._new_lock)

    def _stored_classes(self) -> Iterable[str]:
        """Classes whose mode or book was on, or had something in force, when this mgr became the active one."""
        if self._recalled:
            return []
        names = [
            key[len(prefix) :] for prefix in (f"{STATE}/", f"{BOOK_STATE}/") for key in self._service.store.keys(prefix)
        ]
        self._recalled = True
        # what else lies there is no class that could have objectives
        return [name for name in names[:MOST_CLASSES] if scoped("client.iops", Scope(CLASS, name)) in METRICS]

    def _keep_running(self, stop: threading.Event) -> None:
        for name, driver in self._drivers():
            current = self._threads.get(name)
            if current is None or not current.is_alive():
                thread = threading.Thread(target=driver.run, args=(stop,), daemon=True)
                thread.name = f"tuner-{name.strip('=')}" if name else "tuner-automatic"
                thread.start()
                self._threads[name] = thread

    def _drivers(self) -> List[Tuple[str, Turns[Any]]]:
        """What has a thread of its own, by name."""
        modes = [(mode.aim.device_class, mode.driver) for mode in self.all]
        books = [(book.name, book.driver) for book in self.books.all]
        return [*modes, (BOOST, self.boosts.driver), *books]

    def _addressees(self, what: str) -> List[Automatic]:
        """Modes that a word without a class is for."""
        classes = [self._of_classes[name] for name in self._service.scopes.classes() if name in self._of_classes]
        if what in ("accept", "reject"):
            addressees = [mode for mode in self.all if mode.driver.state.phase == WAITING]
            if len(addressees) > 1:
                names = " or ".join(mode.aim.device_class or "none" for mode in addressees)
                raise InputError("--device-class", "nothing, and several proposals wait", f"one of {names}")
            return addressees or [self.whole]
        if what in MODES and what != OFF:
            return classes or [self.whole]
        return self.all if self._of_classes else [self.whole]

    def _metrics(self) -> ExportedState:
        window, sample = self._sampler.window(STATUS_WINDOW_S), self._sampler.latest()
        return {
            "version": __version__,
            "sample": sample.to_dict() if sample is not None else None,
            "window": window.to_dict() if window is not None else None,
            "modes": [mode.exported() for mode in self.all],
            "boost": self.boosts.exported(),
            "books": self.books.exported(),
            "policies": self._service.slos.policies_seen(self._now()),
            "tick_s": self._sampler.tick_s,
            "release": self.whole.lookout.release,
            "sampling_failures": self._sampler.failures,
        }
