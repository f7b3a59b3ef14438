"""The switching of the book put together inside the mgr, for a device class or for the cluster as a whole."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Mapping, Optional

from ceph_tuner.core.autopilot.audit_log import Audit
from ceph_tuner.core.autopilot.events import OperatorCommand
from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.book.book import StoredBook
from ceph_tuner.core.book.events import OFF, BookLook
from ceph_tuner.core.book.executor import BY, BookExecutor
from ceph_tuner.core.book.explanation import explain, preview
from ceph_tuner.core.book.state import RETURNING, BookState
from ceph_tuner.core.book.state_machine import refusal
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.changes.guardian import unguarded
from ceph_tuner.core.changes.standing import StandingApplier
from ceph_tuner.core.changes.writer import key_for_class, said_of_class
from ceph_tuner.core.errors import Stopped
from ceph_tuner.core.regimes.telling import RegimeState

from .aim import Aim
from .announce import Announcer
from .automatic import OPERATOR, new_hands, on_trial_elsewhere
from .book_lookout import BookLookout
from .changes import NewLock
from .inbox import Inbox
from .logbook import MgrLogbook
from .lookout import BOOK
from .options import BookOptions, PolicyOptions
from .pulse import Pulse
from .regime_watch import RegimeWatch
from .service import Service
from .turns import LONGEST_WHY, Turns

TRAIL = "audit/=book/"
"""No device class can be called so."""
NOTHING_TO_USE = (
    "no page can be used, so that nothing switches: trials that are kept make pages, `ceph-tuner book predict --add` "
    "finds some, `book import` takes others' (book_unvalidated says which of them are used)"
)


class BookLog(MgrLogbook):
    """`executor.Logbook` of the book: it has no bar, as its work has no end."""

    def progress(self, state: Any) -> None:
        """Show nothing."""


class BookDriver(Turns[BookState]):
    """Drives the switching."""

    what = "book"
    explained_by = "ceph tuner book show"

    def tell(self, what: str, by: str, why: str = "") -> None:
        """Take an operator's word. Raises InputError where it makes no sense now, RetryLater where it must wait."""
        self.refuse(refusal(self.state, what))
        self.post(OperatorCommand(self._now(), what, by, why[:LONGEST_WHY]), f"book {what}")


class BookSwitching:
    """Composition: what puts the page of the regime in force, for what it aims at."""

    def __init__(
        self,
        mgr: Any,
        service: Service,
        aim: Aim,
        executors: Dict[str, TrialExecutor[Any]],
        regimes: RegimeWatch,
        book: StoredBook,
        clock: Clock,
        new_lock: NewLock,
    ) -> None:
        """`mgr` is the module; `executors` has those of the automatic modes and the boost, this one's is added."""
        self.aim, self._regimes, self._now, self._store = aim, regimes, clock.now, service.store
        self._options, policy = BookOptions(service.option), PolicyOptions(service.option)
        device_class, who = aim.device_class, f"{aim.who}{BY}"
        self.name = key_for_class(BOOK, device_class)
        self.trail = Audit(service.store, f"{TRAIL}{device_class}/" if device_class else TRAIL)
        pulse = Pulse()
        self._lookout = BookLookout(
            mgr,
            service,
            aim,
            book,
            self.regime,
            regimes.unnamed_policy,
            self._options,
            policy.read,
            executors,
            clock.now,
        )
        logbook = BookLog(self.trail, Announcer(mgr, mgr.log), service.history, who, device_class, mgr.log)
        executor = executors[self.name] = BookExecutor(
            service.store,
            partial(new_hands, service, clock, new_lock, pulse, who, who, StandingApplier),
            logbook,
            (self._lookout,),
            clock,
            self._options.read,
            book,
            partial(on_trial_elsewhere, executors, self.name),
            device_class,
        )
        self.driver = BookDriver(executor, self._lookout, logbook, pulse, Inbox(), policy.read, mgr.log, clock.now)

    def regime(self) -> Optional[RegimeState]:
        """The regime of what it aims at; None before a sample told it."""
        return self._regimes.state_of(self.aim.scope)

    def tell(self, what: str, why: str = "") -> None:
        """Pass an operator's word on. Raises as `BookDriver.tell`."""
        self.driver.tell(what, OPERATOR, why)

    def give_way(self, what: str, trial_alone: bool = False) -> List[int]:
        """Take its settings back and switch off, for an operator's own work; give its changes.

        `trial_alone`: a page that is watched no more stays, as any change does. Raises Stopped.
        """
        state = self.driver.state
        changes = list(state.changes)
        if not state.stands or (trial_alone and not state.on_cluster):
            return []
        self.tell(OFF, what)
        if self.driver.state.stands:
            raise Stopped(self.driver.state.problem or "the book's settings are not taken back yet", "try again")
        return changes

    def document(self) -> Dict[str, Any]:
        """What is in force, and what would switch it; while it is off, what `book on` would do."""
        return {
            **self.driver.state.to_dict(),
            "words": self.words(),
            "preview": self._preview(),
            "turn_problem": self.driver.problem,
        }

    def words(self) -> List[str]:
        """The same for people."""
        newest, turns = self.driver.newest_look, self._regimes.turns(self.aim.scope)
        look = newest if isinstance(newest, BookLook) else None
        limits, beside = self._options.read(), self._lookout.beside()
        return explain(self.driver.state, look, limits, self._now(), turns, beside, self._regimes.tells)

    def _preview(self) -> List[str]:
        state = self.driver.state
        if state.on or state.stands or self.aim.stands_aside:
            return []
        look = self._lookout.foretell()
        # a book that cannot be read is refused, and that is a note
        return [] if self._lookout.problem else preview(look, self._lookout.unused())

    def notes(self) -> List[str]:
        """What an operator should know."""
        if not self.driver.state.on:
            return [self._options.problem] if self._options.problem else []
        no_page = "" if self._lookout.has_page() else said_of_class(NOTHING_TO_USE, self.aim.device_class)
        return [note for note in (self._options.problem, unguarded(self._store, self._now()), no_page) if note]

    def exported(self) -> Mapping[str, Any]:
        """What of it goes to Prometheus."""
        state, held, now = self.driver.state, self.regime(), self._now()
        return {
            "device_class": self.aim.device_class,
            "regime": held.name if held is not None else "",
            "on": state.on,
            "page": state.page if state.stands else 0,
            "switches": len(state.switches_within_an_hour(now)),
        }

    def health(self) -> Dict[str, List[str]]:
        """Health checks of it."""
        state, checks = self.driver.state, {}
        if self._lookout.problem and state.on:
            checks["TUNER_BOOK_DAMAGED"] = [self._lookout.problem]
        if state.stopped and not state.on:
            checks["TUNER_BOOK_STOPPED"] = [state.stopped]
        stuck = state.problem if state.phase == RETURNING and not state.waits else ""
        problems = [problem for problem in (stuck, self.driver.problem) if problem and (state.on or state.stands)]
        if state.on and self._options.problem:
            checks["TUNER_OPTION_WRONG"] = [f"book: {self._options.problem}"]
        if problems:
            checks["TUNER_STOPPED"] = [f"book: {problem}" for problem in problems]
        return checks
