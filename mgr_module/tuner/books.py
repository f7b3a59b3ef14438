"""The cluster's book inside the mgr: its pages, what switches them, and what the commands want of both."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot.audit_log import BOOK_MODE
from ceph_tuner.core.autopilot.events import Learn
from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.autopilot.judgement import in_words
from ceph_tuner.core.book.book import Book, StoredBook, parse_book
from ceph_tuner.core.book.events import ON
from ceph_tuner.core.book.explanation import BOOK_OFF
from ceph_tuner.core.book.page import LONGEST_TEXT, MOST_METRICS, STRUCK, TRIAL, VALIDATED, Page
from ceph_tuner.core.book.page_check import check_origin, check_page
from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.writer import said_of_class
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo_calendar import BASE
from ceph_tuner.core.measure.metrics import METRICS, parted
from ceph_tuner.core.regimes.bounds import DEFAULT, RegimeBounds, changes_in_words, stored_bounds

from .aim import Aim
from .automatic import OPERATOR, joined_health, tell_each
from .book_switching import BookSwitching
from .changes import NewLock, own_lock
from .policy_markers import never_on
from .regime_watch import RegimeWatch
from .service import Service


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
        """`mgr` is the module; `executors` has those of the automatic modes and the boost, the book's are added."""
        clock = clock or SystemClock()
        self._service, self._regimes, self._now = service, regimes, clock.now
        self._book = StoredBook(service.store)
        self._new: Callable[[Aim], BookSwitching] = lambda aim: BookSwitching(
            mgr, service, aim, executors, regimes, self._book, clock, new_lock
        )
        self.whole = self._new(service.aim())
        """Of the cluster as a whole; it stands aside while classes have objectives of their own."""
        self._of_classes: Dict[str, BookSwitching] = {}

    @property
    def all(self) -> List[BookSwitching]:
        """Every one that there is, the whole cluster's first."""
        return [self.whole, *self._of_classes.values()]

    def add(self, aim: Aim) -> None:
        """Have a class switch by its own regime from now on."""
        self._of_classes = {**self._of_classes, aim.device_class: self._new(aim)}

    def switch(self, what: str, why: str = "", device_class: str = "") -> Dict[str, Any]:
        """Switch it on or off for a class, or without one for all that it makes sense for.

        Raises InputError where it is so already, or where the book cannot be read.
        """
        if what == ON:
            self._book.read()
        tell_each(self._addressees(what, device_class), what, why)
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

    def restore(self, number: int, why: str = "") -> Dict[str, Any]:
        """Have a page that was struck be unvalidated, and one that is left out under a policy be used there again.

        Raises InputError.
        """
        said = f"by {OPERATOR}{f': {why}' if why else ''}"
        return self._changed(lambda book: book.restored(number), f"page {number} is restored {said}")

    def export(self) -> Dict[str, Any]:
        """All pages, as `take` reads them, and the version of Ceph that they are for."""
        pages = [page.to_dict() for page in self._book.read().pages]
        return versioned({"ceph": self._service.release_version(), "pages": pages})

    def take(self, text: str) -> Dict[str, Any]:
        """Import a book: its pages are unvalidated here. Raises InputError for one that does not fit the release."""
        if not text:
            raise InputError("book import", "nothing", "-i FILE, as `ceph tuner book export` gives it")
        document = read_json(text, "the book")
        book, at = parse_book(document, "the book"), self._now()
        origin = document.get("ceph")
        # books of earlier versions do not say
        notes = check_origin(str(origin), book.pages, self._service.release_version()) if origin else []
        self._checked(book.pages)
        changed = self._book.change(lambda own: own.imported(book.pages, at))
        taken = sum(page.at == at for page in changed.pages)
        words = f"{taken} of {len(book.pages)} pages are imported"
        if taken < len(book.pages):
            words += ": the others are struck, validated here, or too many"
        return self._noted(words, [words, *notes])

    def copy(self, number: int, regime: str) -> Dict[str, Any]:
        """Have the settings of a page for another regime too, unvalidated. Raises InputError."""
        name, at = self._regimes.named(regime), self._now()
        newest = self._book.change(lambda book: book.copied(number, name, at)).newest
        return self._noted(f"page {newest} is a copy of page {number}, for {name}", [f"page {newest} is unvalidated"])

    def set_bounds(self, text: str, default: bool) -> Dict[str, Any]:
        """Take other bounds of regimes, as JSON, or the default ones. Raises InputError."""
        # those of the store: this mgr may not have read them yet
        old, unreadable = self._stored_bounds()
        self._regimes.set_bounds(text, default)
        new = self._regimes.bounds
        words = "; ".join(changes_in_words(old, new)) or "as they were"
        if unreadable:
            words = f"{words}; the stored ones could not be read: {unreadable}"
        detail = {"old": old.to_dict(), "new": new.to_dict()}
        self.whole.trail.append(self._now(), OPERATOR, BOOK_MODE, f"bounds of regimes: {words}", detail, "done")
        return self.document()

    def _stored_bounds(self) -> Tuple[RegimeBounds, str]:
        """The bounds of before, and why they cannot be read: then those in use are the default ones."""
        try:
            return stored_bounds(self._service.store), ""
        except InputError as fault:
            return DEFAULT, str(fault)

    def validated(self, aim: Aim, result: Learn, at: float, begun: float) -> None:
        """Take a trial that was kept as a page of the regime that held all the time, for what the trial aimed at.

        A trial across two regimes, or two policies, validates none. Raises InputError where the book cannot be read.
        """
        held = self._regimes.state_of(aim.scope)
        policy, policy_before = (self._service.slos.policy_seen(moment) for moment in (at, begun))
        if held is None or held.since > begun or not result.settings or policy != policy_before:
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
            aim.target,
            dict(sorted(load.items())[:MOST_METRICS]),
            {effect.metric: effect.change for effect in better[:MOST_METRICS] if effect.change is not None},
            "; ".join(in_words(effect) for effect in better)[:LONGEST_TEXT],
            # nobody knows it, or nothing depends on the time
            policy="" if policy is None else policy or BASE,
        )
        self._book.change(lambda book: book.added(page))

    def give_way(self, what: str, trial_alone: bool = False) -> List[int]:
        """Take the settings of all back and switch them off, for an operator's own work; give their changes.

        `trial_alone`: a page that is watched no more stays, as any change does. Raises Stopped.
        """
        return [number for each in self.all for number in each.give_way(what, trial_alone)]

    def document(self) -> Dict[str, Any]:
        """The regimes, the pages, and what is in force, of the cluster as a whole and of classes by name."""
        try:
            book, problem = self._book.read(), ""
        except InputError as error:
            book, problem = Book(), str(error)
        notes = [
            problem,
            self._of_no_regime(book),
            self._of_no_policy(),
            *(note for each in self.all for note in each.notes()),
        ]
        return {
            **self._regimes.document(),
            "switching": self.whole.document(),
            "classes": {name: each.document() for name, each in self._of_classes.items()},
            "pages": [page.to_dict() for page in book.pages],
            # what the options say is the same for each
            "notes": [note for note in dict.fromkeys(notes) if note],
        }

    def _of_no_regime(self, book: Book) -> str:
        """Which pages wait for a regime that the bounds and the calendar never tell; empty where none does."""
        lost = [page for page in book.pages if page.state != STRUCK and not self._regimes.tells(page.regime)]
        if not lost:
            return ""
        numbers = ", ".join(str(page.number) for page in lost)
        names = ", ".join(sorted({page.regime for page in lost}))
        each = any(self._regimes.bounds.tells(page.regime) for page in lost)
        why = "Each policy of the calendar has a marker, so each regime names one. " if each else ""
        return f"pages that name no regime of these bounds are never used: {numbers} ({names}). {why}Strike them"

    def _of_no_policy(self) -> str:
        """Which markers the calendar never turns on, as it has no such policy; empty where none."""
        return "; ".join(map(never_on, self._regimes.without_policy()))

    def words(self) -> List[str]:
        """What is in force and what would switch it, of all that have something to say."""
        lines: List[str] = []
        for each in self.all:
            lines += [said_of_class(line, each.aim.device_class) for line in each.words() if line != BOOK_OFF]
        return lines or [BOOK_OFF]

    def exported(self) -> List[Mapping[str, Any]]:
        """What of each goes to Prometheus."""
        return [each.exported() for each in self.all]

    def health(self) -> Dict[str, List[str]]:
        """Health checks of all; those of a class say which."""
        return joined_health(self.all)

    def _addressees(self, what: str, device_class: str) -> List[BookSwitching]:
        """Those that a word is for."""
        if device_class:
            if device_class not in self._of_classes:
                raise self._service.scopes.refused_class(device_class, self._of_classes)
            return [self._of_classes[device_class]]
        if what != ON:
            return self.all
        own = [self._of_classes[name] for name in self._service.scopes.classes() if name in self._of_classes]
        return own or [self.whole]

    def _checked(self, pages: Any) -> None:
        """Refuse settings that this cluster's release does not take."""
        version = self._service.release_version()
        for page in pages:
            check_page(page, version)

    def _changed(self, work: Callable[[Book], Book], words: str) -> Dict[str, Any]:
        self._book.change(work)
        return self._noted(words)

    def _noted(self, words: str, notes: Sequence[str] = ()) -> Dict[str, Any]:
        """Put what an operator did into the trail; the document, with notes of it."""
        self.whole.trail.append(self._now(), OPERATOR, BOOK_MODE, words, {}, "done")
        document = self.document()
        return {**document, "notes": [*notes, *document["notes"]]}
