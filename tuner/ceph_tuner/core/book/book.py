"""All pages of a cluster, and the document that holds them in its store."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

from ceph_tuner.core.book.page import (
    IMPORT,
    LONGEST_MISS,
    LONGEST_TEXT,
    MOST_LEFT_OUT,
    STRUCK,
    TWIN,
    UNVALIDATED,
    VALIDATED,
    Page,
    same_settings,
)
from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.ceph.stored_document import VERSION, unknown_in, versioned
from ceph_tuner.core.errors import InputError

PAGES_KEY = "book/pages"
MOST_PAGES = 60
LARGEST_DOCUMENT = 60_000
"""Bytes: the monitors keep 64 KiB of a value."""


@dataclass(frozen=True)
class Book:
    """Pages in the order of their numbers."""

    pages: Tuple[Page, ...] = ()
    newest: int = 0
    """Number of the page that was added last, whether it is still there."""

    def __post_init__(self) -> None:
        """Raise ValueError for pages that are no book."""
        numbers = [page.number for page in self.pages]
        if numbers != sorted(set(numbers)) or self.newest < max(numbers, default=0):
            raise ValueError(f"numbers of pages (={numbers}) must ascend up to newest (={self.newest})")
        if len(self.pages) > MOST_PAGES:
            raise ValueError(f"a book has at most {MOST_PAGES} pages (={len(self.pages)})")
        pins = [(page.target, page.regime) for page in self.pages if page.pin]
        if len(pins) > len(set(pins)):
            raise ValueError("a regime has at most one page that is pinned for each target")

    def page(self, number: int) -> Page:
        """The page of that number. Raises InputError where there is none."""
        for page in self.pages:
            if page.number == number:
                return page
        numbers = ", ".join(str(page.number) for page in self.pages) or "none: the book is empty"
        raise InputError("book", f"no page {number}", f"a page of the book ({numbers})")

    def of_target(self, target: str) -> Book:
        """With the pages for that target alone."""
        return replace(self, pages=tuple(page for page in self.pages if page.target == target))

    def added(self, page: Page) -> Book:
        """With one more page, under a number of its own.

        Settings that the regime has a page for already replace that page, unless that one says more of them or is
        struck: what a trial keeps is in force without the book. The number stays, as pins and rests are about it. So do
        the policies under which it is left out, but for that of a trial that it came through.
        Where there are too many pages the oldest goes: first of those unvalidated, then of those struck, then of all;
        none that is pinned. Raises InputError where all are.
        """
        same = [
            each
            for each in self.pages
            if each.regime == page.regime and same_settings(each, page.target, page.settings)
        ]
        if any(each.state == STRUCK or (each.state == VALIDATED and page.state != VALIDATED) for each in same):
            return self
        pin = page.pin or any(each.pin for each in same)
        number = same[0].number if same else self.newest + 1
        left_out = {policy: why for each in (page, *same) for policy, why in each.left_out.items()}
        if page.state == VALIDATED:
            left_out.pop(page.policy, None)
        kept = [each for each in self.pages if each not in same]
        kept = sorted([*kept, replace(page, number=number, pin=pin, left_out=left_out)], key=lambda each: each.number)
        return Book(_fitting(kept, number), max(self.newest, number))

    def pinned(self, number: int) -> Book:
        """With that page pinned, and no other of its regime and target. Raises InputError: none, or a struck one."""
        chosen = self.page(number)
        if chosen.state == STRUCK:
            raise InputError("book pin", f"page {number}, which is struck: {chosen.reason}", "another page")
        pages = (
            replace(page, pin=page.number == number)
            if (page.target, page.regime) == (chosen.target, chosen.regime)
            else page
            for page in self.pages
        )
        return replace(self, pages=tuple(pages))

    def unpinned(self, number: int) -> Book:
        """With that page as any other. Raises InputError where it is not pinned."""
        if not self.page(number).pin:
            raise InputError("book unpin", f"page {number}, which is not pinned", "one that is")
        return self._with(replace(self.page(number), pin=False))

    def struck(self, number: int, reason: str) -> Book:
        """With that page struck: it is not used until it is restored. Raises InputError: none, or struck already."""
        page = self.page(number)
        if page.state == STRUCK:
            raise InputError("book strike", f"page {number}, which is struck already: {page.reason}", "another page")
        return self._with_words(
            replace(page, state=STRUCK, reason=reason[:LONGEST_TEXT] or "by an operator", pin=False)
        )

    def blamed(self, number: int, reason: str, policy: str = "") -> Book:
        """With a page that broke a hard objective struck, or left out while that policy holds.

        `policy`: that which held and is not in the name of the page's regime; empty where there is none. A page whose
        evidence is about another one, or about nobody knows which, may do well under that: it is not struck.
        Raises InputError as `struck`.
        """
        page = self.page(number)
        if not policy or policy == page.policy or page.state == STRUCK:
            return self.struck(number, reason)
        others = [item for item in page.left_out.items() if item[0] != policy][1 - MOST_LEFT_OUT :]
        return self._with_words(replace(page, left_out=dict([*others, (policy, reason[:LONGEST_MISS])])))

    def restored(self, number: int) -> Book:
        """With that page left out under no policy, and unvalidated where it was struck. Raises InputError: as it is."""
        page = self.page(number)
        if page.state != STRUCK and not page.left_out:
            raise InputError("book restore", f"page {number}, which is {page.state}", "one that is struck or left out")
        state = UNVALIDATED if page.state == STRUCK else page.state
        return self._with(replace(page, state=state, reason="", left_out={}))

    def imported(self, pages: Sequence[Page], at: float) -> Book:
        """With these pages of another book, unvalidated and unpinned here; what was struck there is left out.

        Policies of another cluster's calendar are not those of this one; the twin predicts for those of this one.
        Raises InputError where what this cluster showed, validated or struck, would have to make room.
        """
        book = self
        for page in pages:
            if page.state != STRUCK:
                origin, policy = (TWIN, page.policy) if page.origin == TWIN else (IMPORT, "")
                page = replace(page, state=UNVALIDATED, origin=origin, pin=False, at=at, policy=policy, left_out={})
                book = book.added(page)
        return self._checked_room(book, "book import")

    def copied(self, number: int, regime: str, at: float) -> Book:
        """With the settings of that page for another regime, unvalidated: nobody knows what they do there.

        Raises InputError for none or a struck one, where the regime has these settings already, and as `imported`.
        """
        page = self.page(number)
        if page.state == STRUCK:
            raise InputError("book copy", f"page {number}, which is struck: {page.reason}", "another page")
        same = [
            each for each in self.pages if each.regime == regime and same_settings(each, page.target, page.settings)
        ]
        if same:
            found = f"page {same[0].number} for {regime}, which is {same[0].state}, with the same settings"
            raise InputError("book copy", found, "another regime, or `book pin` or `book restore` of that page")
        words = f"copy of page {number}, {page.regime}{f': {page.verdict}' if page.verdict else ''}"[:LONGEST_TEXT]
        copy = Page(self.newest + 1, regime, page.settings, UNVALIDATED, IMPORT, at, page.target, verdict=words)
        return self._checked_room(self.added(copy), "book copy")

    def _checked_room(self, book: Book, place: str) -> Book:
        """The same book. Raises InputError where what this cluster showed had to make room in it."""
        left = {page.number for page in book.pages}
        lost = [page for page in self.pages if page.state != UNVALIDATED and page.number not in left]
        if lost:
            numbers = ", ".join(str(page.number) for page in lost)
            raise InputError(place, f"more pages than there is room for beside pages {numbers}", "fewer pages")
        return book

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, which `parse_book` reads."""
        return {"newest": self.newest, "pages": [page.to_dict() for page in self.pages]}

    def _with_words(self, changed: Page) -> Book:
        """With a page that has a reason now. It takes room as a page does: other pages go as in `added`.

        Where all others are pinned none does: what does harm goes, and one reason is within what the monitors store.
        """
        book = self._with(changed)
        with contextlib.suppress(InputError):
            book = replace(book, pages=_fitting(book.pages, changed.number))
        return book

    def _with(self, changed: Page) -> Book:
        pages = (changed if page.number == changed.number else page for page in self.pages)
        return replace(self, pages=tuple(pages))


def document_of(pages: Sequence[Page], version: str) -> Dict[str, Any]:
    """Pages as `book import` takes them, numbered anew and unpinned, for a cluster of this version of Ceph.

    The version says in which unit the shares are.
    """
    numbered = (replace(page, number=number, pin=False) for number, page in enumerate(pages, 1))
    return versioned({"ceph": version, "pages": [page.to_dict() for page in numbered]})


def parse_book(document: Any, place: str) -> Book:
    """Inverse of `Book.to_dict`. Raises InputError that names the place."""
    if not isinstance(document, Mapping):
        raise InputError(place, type(document).__name__, "a mapping with `pages`")
    version = document.get("version", VERSION)
    if type(version) is not int or version > VERSION:
        raise InputError(f"{place}.version", repr(version)[:20], f"{VERSION}: a newer version wrote it")
    listed = document.get("pages")
    if not isinstance(listed, list) or len(listed) > MOST_PAGES:
        found = f"{len(listed)} pages" if isinstance(listed, list) else type(listed).__name__
        raise InputError(f"{place}.pages", found, f"a list of at most {MOST_PAGES} pages")
    pages = [_page(item, f"{place}.pages.{index}") for index, item in enumerate(listed)]
    try:
        newest = document.get("newest", max((page.number for page in pages), default=0))
        if type(newest) is not int:
            raise ValueError(f"newest (={newest!r:.40}) must be a whole number")
        return Book(tuple(pages), newest)
    except ValueError as fault:
        raise InputError(place, str(fault)[:200], "another book") from None


class StoredBook:
    """The book in a cluster's store. One that cannot be read is neither used nor written over. Any thread may call."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changing = threading.Lock()

    def read(self) -> Book:
        """The book; an empty one where there is none. Raises InputError for one that cannot be read."""
        return self._read()[0]

    def change(self, work: Callable[[Book], Book]) -> Book:
        """Put what `work` makes of the book in its place. Raises as `read` and as `work`."""
        with self._changing:
            book, beside = self._read()
            changed = work(book)
            if changed != book:
                self._store.set(PAGES_KEY, json.dumps(versioned(changed.to_dict(), beside), sort_keys=True))
            return changed

    def _read(self) -> Tuple[Book, Dict[str, Any]]:
        text = self._store.get(PAGES_KEY)
        if not text:
            return Book(), {}
        try:
            document = read_json(text, PAGES_KEY)
            book = parse_book(document, "the stored book")
        except InputError as fault:
            remedy = f"`ceph config-key get mgr/tuner/{PAGES_KEY}` to keep it, then `ceph config-key rm` of the same"
            raise InputError(fault.place, fault.found, remedy) from None
        return book, unknown_in(document, book.to_dict())


def _page(item: Any, place: str) -> Page:
    try:
        return Page.from_dict(item)
    except MISREAD as fault:
        words = f"{type(fault).__name__}: {fault}"[:200]
        raise InputError(place, words, "a page, as `ceph tuner book export` gives it") from None


def _fitting(pages: Sequence[Page], number: int) -> Tuple[Page, ...]:
    """As many as the store has room for; that of the number stays. Raises InputError where all others are pinned."""
    kept = list(pages)
    while len(kept) > MOST_PAGES or len(json.dumps([each.to_dict() for each in kept])) > LARGEST_DOCUMENT:
        kept.remove(_dispensable([each for each in kept if each.number != number]))
    return tuple(kept)


def _dispensable(pages: Sequence[Page]) -> Page:
    # what is imported comes again; of what is struck nobody else knows
    for state in (UNVALIDATED, STRUCK, VALIDATED):
        usual = [page for page in pages if page.state == state and not page.pin]
        if usual:
            return min(usual, key=lambda page: page.at)
    raise InputError("book", f"{len(pages)} pages, which are all pinned", "fewer: `ceph tuner book unpin`")
