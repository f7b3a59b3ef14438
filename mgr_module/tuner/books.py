"""The cluster's book put together inside the mgr, and what the commands want of it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.audit_log import BOOK_MODE, Audit
from ceph_tuner.core.autopilot.events import Learn, OperatorCommand
from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.autopilot.judgement import in_words
from ceph_tuner.core.book.book import Book, StoredBook, parse_book
from ceph_tuner.core.book.events import OFF, ON, BookLook
from ceph_tuner.core.book.executor import BY, BookExecutor
from ceph_tuner.core.book.explanation import explain
from ceph_tuner.core.book.page import LONGEST_TEXT, MOST_METRICS, TRIAL, VALIDATED, Page
from ceph_tuner.core.book.state import RETURNING, BookState
from ceph_tuner.core.book.state_machine import refusal
from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.standing import StandingApplier
from ceph_tuner.core.errors import InputError, Stopped
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.core.knobs.settings import check_settings, dotted
from ceph_tuner.core.measure.metrics import METRICS, parted

from .announce import Announcer
from .automatic import OPERATOR, on_trial_elsewhere
from .book_lookout import BookLookout
from .changes import NewLock, own_lock
from .guardian import Guardian, access
from .inbox import Inbox
from .logbook import MgrLogbook
from .lookout import BOOK
from .options import BookOptions, PolicyOptions
from .regime_watch import RegimeWatch
from .service import Service
from .turns import LONGEST_WHY, Turns

TRAIL = "audit/=book/"
"""No device class can be called so."""


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


class Books:
    """Composition, and the commands."""

    def __init__(
        self,
        mgr: Any,
        service: Service,
        executors: Dict[str, TrialExecutor[Any]],
        regimes: RegimeWatch,
        clock: Optional[Clock] = None,
        new_lock: NewLock = own_lock,
    ) -> None:
        """`mgr` is the module; `executors` has those of the automatic modes and the boost, the book's is added."""
        clock = clock or SystemClock()
        self._service, self._regimes, self._now, self._log = service, regimes, clock.now, mgr.log
        self._options, policy = BookOptions(service.option), PolicyOptions(service.option)
        self._aim, who = service.aim(), f"{service.who}{BY}"
        self._book = StoredBook(service.store)
        self._trail = Audit(service.store, TRAIL)
        self._guardian = Guardian(partial(access, mgr), who)
        self._lookout = BookLookout(
            mgr,
            service,
            self._aim,
            self._book,
            regimes.state_of,
            self._options,
            policy.read,
            executors,
            clock.now,
        )
        logbook = BookLog(self._trail, Announcer(mgr, mgr.log), service.history, who, "", mgr.log)
        executor = executors[BOOK] = BookExecutor(
            service.store,
            partial(_hands, service, clock, new_lock, who),
            logbook,
            (self._lookout, self._guardian),
            clock,
            self._options.read,
            self._book,
            partial(on_trial_elsewhere, executors, BOOK),
        )
        self.driver = BookDriver(
            executor, self._lookout, logbook, self._guardian, Inbox(), policy.read, mgr.log, clock.now
        )

    def switch(self, what: str, why: str = "") -> Dict[str, Any]:
        """Switch it on or off. Raises InputError where it is so already, or where the book cannot be read."""
        if what == ON:
            self._book.read()
        self.driver.tell(what, OPERATOR, why)
        return self.document()

    def pin(self, number: int) -> Dict[str, Any]:
        """Have a page hold in its regime, whatever others there are. Raises InputError."""
        self._checked([self._book.read().page(number)])
        return self._changed(lambda book: book.pinned(number), f"page {number} is pinned")

    def unpin(self, number: int) -> Dict[str, Any]:
        """Have a page be as any other. Raises InputError."""
        return self._changed(lambda book: book.unpinned(number), f"page {number} is pinned no more")

    def strike(self, number: int, why: str = "") -> Dict[str, Any]:
        """Have a page never be used again. Raises InputError."""
        reason = f"by {OPERATOR}{f': {why}' if why else ''}"
        return self._changed(lambda book: book.struck(number, reason), f"page {number} is struck {reason}")

    def export(self) -> Dict[str, Any]:
        """All pages, as `take` reads them."""
        return versioned({"pages": [page.to_dict() for page in self._book.read().pages]})

    def take(self, text: str) -> Dict[str, Any]:
        """Import a book: its pages are unvalidated here. Raises InputError for one that does not fit the release."""
        if not text:
            raise InputError("book import", "nothing", "-i FILE, as `ceph tuner book export` gives it")
        book = parse_book(read_json(text, "the book"), "the book")
        self._checked(book.pages)
        words = f"{len(book.pages)} pages are imported"
        return self._changed(lambda own: own.imported(book.pages, self._now()), words)

    def validated(self, result: Learn, at: float, begun: float) -> None:
        """Take a trial of the whole cluster that was kept as a page of the regime that held all the time.

        A trial across two regimes validates none. Raises InputError where the book cannot be read.
        """
        held = self._regimes.state_of()
        if held is None or held.since > begun or not result.settings:
            return
        better = [effect for effect in result.effects.values() if effect.change is not None]
        load = {name: value for name, value in result.baseline.items() if name in METRICS and not parted(name)[1]}
        page = Page(
            1,
            held.name,
            dict(result.settings),
            VALIDATED,
            TRIAL,
            at,
            self._aim.target,
            dict(sorted(load.items())[:MOST_METRICS]),
            {effect.metric: effect.change for effect in better[:MOST_METRICS] if effect.change is not None},
            "; ".join(in_words(effect) for effect in better)[:LONGEST_TEXT],
        )
        self._book.change(lambda book: book.added(page))

    def give_way(self, what: str, trial_alone: bool = False) -> List[int]:
        """Take the book's settings back and switch it off, for an operator's own work; give its changes.

        `trial_alone`: a page that is watched no more stays, as any change does. Raises Stopped.
        """
        state = self.driver.state
        changes = list(state.changes)
        if not state.stands or (trial_alone and not state.on_cluster):
            return []
        self.driver.tell(OFF, OPERATOR, what)
        if self.driver.state.stands:
            raise Stopped(self.driver.state.problem or "the book's settings are not taken back yet", "try again")
        return changes

    def document(self) -> Dict[str, Any]:
        """The regimes, the pages, and what is in force."""
        try:
            pages, problem = [page.to_dict() for page in self._book.read().pages], ""
        except InputError as error:
            pages, problem = [], str(error)
        notes = (problem, self._options.problem, self._guardian.problem and f"guardian: {self._guardian.problem}")
        return {
            **self._regimes.document(),
            "switching": {**self.driver.state.to_dict(), "words": self.words(), "turn_problem": self.driver.problem},
            "pages": pages,
            "notes": [note for note in notes if note],
        }

    def words(self) -> List[str]:
        """What is in force and what would switch it."""
        look = self.driver.newest_look
        return explain(
            self.driver.state, look if isinstance(look, BookLook) else None, self._options.read(), self._now()
        )

    def exported(self) -> Mapping[str, Any]:
        """What of it goes to Prometheus."""
        state, held, now = self.driver.state, self._regimes.state_of(), self._now()
        return {
            "regime": held.name if held is not None else "",
            "on": state.on,
            "page": state.page if state.stands else 0,
            "switches": sum(0 <= now - at < 3600.0 for at in state.switches),
        }

    def health(self) -> Dict[str, List[str]]:
        """Health checks of the book."""
        state, checks = self.driver.state, {}
        if self._lookout.problem and state.on:
            checks["TUNER_BOOK_DAMAGED"] = [self._lookout.problem]
        if state.stopped and not state.on:
            checks["TUNER_BOOK_STOPPED"] = [state.stopped]
        stuck = state.problem if state.phase == RETURNING else ""
        problems = [problem for problem in (stuck, self.driver.problem) if problem and (state.on or state.stands)]
        if problems:
            checks["TUNER_STOPPED"] = [f"book: {problem}" for problem in problems]
        return checks

    def _checked(self, pages: Any) -> None:
        """Refuse settings that this cluster's release does not take."""
        version = self._service.release_version()
        for page in pages:
            of_page = partial(_place, page.number)
            check_settings(dict(page.settings), release_of(version), of_page, version=parse_version(version))
            for name in page.settings:
                if KNOBS[name].scope != "osd" or KNOBS[name].change != "live":
                    # it would come, or stay, with the next restart of an OSD, whatever the regime is then
                    raise InputError(of_page("settings", name), name, "a knob of the OSDs that needs no restart")

    def _changed(self, work: Callable[[Book], Book], words: str) -> Dict[str, Any]:
        self._book.change(work)
        self._trail.append(self._now(), OPERATOR, BOOK_MODE, words, {}, "done")
        return self.document()


def _place(number: int, *keys: object) -> str:
    return f"page {number}, {dotted(*keys)}"


def _hands(service: Service, clock: Clock, new_lock: NewLock, who: str) -> Tuple[StandingApplier, Lock]:
    lock = new_lock(service.store, clock, who)
    release = release_of(service.release_version())
    return StandingApplier(service.config, service.store, clock, lock, release, who), lock
