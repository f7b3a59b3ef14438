"""The book and boosts in a measurement of kills: what makes them come and go, and whether their laws hold.

Objects of two small pools lack a copy whenever a pool wants more copies than there are hosts. So there is work to
boost, and regimes change, without any load. Operators pin, strike and restore pages, and set other bounds.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import closing, suppress
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from configuration_laws import Breach, Table
from kills_ledger import Ledger, Stop, carried_out
from standing_laws import BookLaw, BoostLaw

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.core.book.book import PAGES_KEY, Book, parse_book
from ceph_tuner.core.book.executor import BY as BY_BOOK
from ceph_tuner.core.book.executor import KEY as BOOK_KEY
from ceph_tuner.core.book.page import IMPORT, UNVALIDATED, Page
from ceph_tuner.core.book.state import HOLDING, WATCHING, BookState
from ceph_tuner.core.boost.executor import BY as BY_BOOST
from ceph_tuner.core.boost.executor import KEY as BOOST_KEY
from ceph_tuner.core.boost.state import OFF, ON, BoostState
from ceph_tuner.core.ceph.ports import Store, contents
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.changes.lock_owner import claim_at_work
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.regimes.bounds import IDLE, Marker, RegimeBounds

FEW, MANY = "kills-few", "kills-many"
OBJECTS = {FEW: 8, MANY: 80}
COPIES = 3
"""Of a pool whose objects lack none."""
DWELL_S, HOLD_S = 4.0, 2.0
RECOVERING, MUCH = "recovering", "much"
BOUNDS = tuple(
    RegimeBounds(
        (
            Marker(RECOVERING, "recovery.objects_left", 1, 0, HOLD_S),
            Marker(MUCH, "recovery.objects_left", much, much / 2, HOLD_S),
        ),
        DWELL_S,
    )
    for much in (40, 4)
)
"""By the first one only the objects of the larger pool are much."""
PAGES = tuple(
    Page(number, regime, settings, UNVALIDATED, IMPORT, 1.0)
    for number, regime, settings in (
        (1, IDLE, {"osd_max_scrubs": 4}),
        (2, RECOVERING, {"osd_mclock_profile": "high_recovery_ops", "osd_max_scrubs": 1}),
        (3, RECOVERING, {"osd_mclock_profile": "balanced", "osd_max_scrubs": 2}),
        (4, f"{RECOVERING}+{MUCH}", nine((0.3, 2, 0), (0.4, 2, 0), (0.1, 1, 0))),
        (5, f"{RECOVERING}+{MUCH}", {"osd_mclock_profile": "high_client_ops", "osd_max_scrubs": 5}),
    )
)
OPTIONS: Mapping[str, Any] = {
    "sample_interval": 2.0,
    "book_dead_time": 4,
    "book_switches": 1000,
    "book_watch": 30,
    "book_rest": 60,
    "book_unvalidated": "all",
}
RECENT_S, LATE_S = 120.0, 300.0
"""For how long a regime that is over counts, and what no page of such a regime names may stand."""
BOOST_LATE_S = 60.0
"""Within which a boost is to be taken back while the plugin answers and a monitor may be slow."""
ANSWERS_S = 10.0
"""How old what the plugin told may be."""
ENDS_S = 180.0

BESIDE = "mgrs killed or failed over beside"
SWITCHES, BEGUN, BY_TIME, CANCELLED = (
    "switches of the book",
    "boosts begun",
    "boosts ended by time",
    "boosts ended by operator",
)
NEEDED = {
    "book": (SWITCHES, f"{BESIDE} a page"),
    "boosts": (BEGUN, BY_TIME, CANCELLED, f"{BESIDE} a boost"),
}
"""What a run with them must have carried out."""


class Regimes:
    """The regime that the plugin tells, asked for now and then."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._at, self._name = float("-inf"), ""

    def work(self, stop: Stop) -> None:
        """Ask until the time is over."""
        with closing(open_cluster(self._lab.name, timeout=ANSWERS_S)) as own:
            while not stop.wait(2.0):
                with suppress(TunerError):
                    held = json.loads(own.commander.mon("tuner book show", {"format": "json"}))["regimes"]
                    name = next((regime["regime"] for regime in held if not regime["scope"]), "")
                    self._at, self._name = time.time(), name

    def now(self) -> str:
        """That holds; empty where the plugin does not answer, or has no sample yet."""
        return self._name if time.time() - self._at < ANSWERS_S else ""


class StandingObserver:
    """Holds what the store has of the book and of a boost against the laws, and counts what they did."""

    def __init__(self, store: Store, regime: Callable[[], str], ledger: Ledger) -> None:
        self._store, self._regime, self._ledger = store, regime, ledger
        self._book_law = BookLaw(time.time(), RECENT_S, LATE_S, ledger.counts)
        self._boost_law = BoostLaw(time.time(), BOOST_LATE_S, ledger.counts)
        self._counted: Set[Tuple[str, float]] = set()
        self.book, self.boost = BookState(), BoostState()
        """As they were stored at the last look."""

    def read(self) -> Dict[str, str]:
        """What is judged, to be read beside the journal."""
        boost = self._store.get(BOOST_KEY)
        return {**contents(self._store, "book/"), **({BOOST_KEY: boost} if boost else {})}

    def breaches(self, entries: Sequence[Entry], table: Table, stored: Mapping[str, str]) -> Iterator[Breach]:
        """Of the journal, the database and `read` at one moment."""
        self.book, self.boost = self.states(stored)
        self._count()
        now, regime = time.time(), self._regime()
        claim = claim_at_work(self._store, now)
        who = claim.holder.name if claim is not None else ""
        yield from self._book_law.breaches(
            now,
            regime,
            not regime or bool(who and not who.endswith(BY_BOOK)),
            entries,
            lambda: parse_book(json.loads(stored[PAGES_KEY]), "the book").pages if PAGES_KEY in stored else (),
            lambda: table,
        )
        yield from self._boost_law.breaches(
            now, now, not regime or bool(who and not who.endswith(BY_BOOST)), entries, lambda: self.boost
        )

    @staticmethod
    def states(stored: Mapping[str, str]) -> Tuple[BookState, BoostState]:
        """What `read` has of both."""
        book, boost = (json.loads(stored.get(key, "{}")) for key in (BOOK_KEY, BOOST_KEY))
        return BookState.from_dict(book), BoostState.from_dict(boost)

    def in_force(self) -> List[str]:
        """What a mgr that dies now leaves to the next one."""
        return [*(["a page"] if self.book.stands else []), *(["a boost"] if self.boost.on_cluster else [])]

    def _count(self) -> None:
        book, boost = self.book, self.boost
        if book.phase in (WATCHING, HOLDING) and book.switches:
            self._once(SWITCHES, book.switches[-1])
        if boost.phase == ON:
            self._once(BEGUN, boost.begun)
        if boost.resumed:
            self._once("boosts that another mgr went on with", boost.begun)
        if boost.last.get("ended"):
            # it may have come and gone between two looks
            self._once(BEGUN, float(boost.last["begun"]))
            self._once(f"boosts ended by {boost.last.get('rule')}", float(boost.last["ended"]))

    def _once(self, what: str, at: float) -> None:
        if (what, at) not in self._counted:
            self._counted.add((what, at))
            self._ledger.count(what)


class Shortage:
    """Pools whose objects lack a copy now and then."""

    def __init__(self, lab: Lab, seed: str) -> None:
        self._lab, self._random = lab, random.Random(seed)

    def prepare(self) -> None:
        """Make the pools. Raises LabFailed."""
        for pool, objects in OBJECTS.items():
            self._lab.run(["ceph", "osd", "pool", "create", pool, "1"])
            self._lab.run(["ceph", "osd", "pool", "set", pool, "min_size", "1"])
            written = ["rados", "-p", pool, "bench", "5", "write", "-b", "4096", "-t", "4", "--no-cleanup"]
            self._lab.run([*written, "--max-objects", str(objects)])

    def work(self, stop: Stop) -> None:
        """Until the time is over: none, few or many objects lack a copy."""
        while not stop.is_set():
            short = self._random.choice((set(), {FEW}, {FEW}, {FEW, MANY}, {FEW, MANY}))
            for pool in OBJECTS:
                # a monitor that does not answer in time is none of the laws
                with suppress(TunerError):
                    self._lab.run(["ceph", "osd", "pool", "set", pool, "size", str(COPIES + (pool in short))])
            # mostly shorter than what a regime counts for, and now and then longer
            stop.pause(self._random, *((15.0, 60.0) if self._random.random() < 0.7 else (150.0, 240.0)))

    def remove(self) -> None:
        """Take the pools away."""
        for pool in OBJECTS:
            with suppress(TunerError):
                self._lab.run(["ceph", "osd", "pool", "delete", pool, pool, "--yes-i-really-really-mean-it"])


class Operators:
    """People who want the book on, and have other wishes of it now and then."""

    def __init__(self, lab: Lab, ledger: Ledger, seed: str) -> None:
        self._lab, self._ledger, self._random = lab, ledger, random.Random(seed)

    def prepare(self, cluster: Cluster, on: bool) -> None:
        """Give the plugin its options, the bounds and the pages, and switch the book on. Raises TunerError."""
        for name, value in OPTIONS.items():
            cluster.config.set("mgr", f"{OPTION_PREFIX}{name}", str(value))
        cluster.commander.mon("tuner book bounds", {}, json.dumps(BOUNDS[0].to_dict()))
        pages = versioned(Book(PAGES, len(PAGES)).to_dict())
        cluster.commander.mon("tuner book import", {}, json.dumps(pages))
        if on:
            cluster.commander.mon("tuner book on", {})

    def work(self, stop: Stop) -> None:
        """Until the time is over."""
        with closing(open_cluster(self._lab.name, timeout=60)) as own:
            while not stop.pause(self._random, 1.0, 8.0):
                prefix, arguments, payload = self._deed()
                carried_out(own.commander, self._ledger, prefix, arguments, payload)

    def _deed(self) -> Tuple[str, Dict[str, str], str]:
        what = self._random.choices(
            ("on", "off", "pin", "unpin", "strike", "restore", "bounds"), (14, 1, 3, 3, 2, 4, 2)
        )[0]
        page = {"page": str(self._random.choice(PAGES).number)} if what not in ("on", "off", "bounds") else {}
        payload = json.dumps(self._random.choice(BOUNDS).to_dict()) if what == "bounds" else ""
        return f"tuner book {what}", page, payload


class Boosters:
    """People who boost what lacks a copy; some cancel that."""

    def __init__(self, lab: Lab, ledger: Ledger, seed: str) -> None:
        self._lab, self._ledger, self._random = lab, ledger, random.Random(seed)

    def work(self, stop: Stop) -> None:
        """Until the time is over."""
        with closing(open_cluster(self._lab.name, timeout=60)) as own:
            while not stop.is_set():
                kind, at_most = (
                    self._random.choice(("recovery", "backfill")),
                    self._random.choice(("1min", "1min", "2min")),
                )
                if not carried_out(own.commander, self._ledger, f"tuner boost {kind}", {"at_most": at_most}):
                    stop.pause(self._random, 1.0, 5.0)
                    continue
                # the others live to see their time, or the end of the work
                if self._random.random() < 0.4:
                    stop.pause(self._random, 0.0, 60.0)
                    carried_out(own.commander, self._ledger, "tuner boost cancel", {"why": "enough"})
                stop.pause(self._random, 30.0, 120.0)


def more_words(randomness: random.Random, book: bool, boosts: bool) -> List[List[str]]:
    """What else a process of the program may be told."""
    words: List[List[str]] = []
    if boosts:
        kind = randomness.choice(("recovery", "backfill"))
        words += [["boost", kind, "--at-most", "1min"], ["boost", "cancel"]]
    if book:
        number = str(randomness.choice(PAGES).number)
        words += [["book", "on"], ["book", randomness.choice(("pin", "unpin", "strike", "restore")), number]]
    return words


def end_both(cluster: Cluster, ledger: Ledger, read: Callable[[], Optional[Tuple[BookState, BoostState]]]) -> None:
    """By the ordinary commands: the boost is cancelled, and the book is off. `read`: what the store has of both."""
    end = time.monotonic() + ENDS_S
    while time.monotonic() < end:
        both = read()
        if both is not None:
            book, boost = both
            if boost.phase == OFF and not (book.on or book.stands):
                return
            if boost.phase != OFF:
                carried_out(cluster.commander, ledger, "tuner boost cancel", {"why": "the end"})
            else:
                carried_out(cluster.commander, ledger, "tuner book off", {"why": "the end"})
        time.sleep(2)
    ledger.violation("left behind", f"the book or a boost does not end within {ENDS_S:g} s: {read()}")


def not_tried(counts: Counter[str], book: bool, boosts: bool) -> Iterator[Breach]:
    """What a run was to carry out and did not."""
    for name, wanted in (("book", book), ("boosts", boosts)):
        for what in NEEDED[name] if wanted else ():
            if not counts[what]:
                yield Breach("nothing tried", f"no {what}")


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """A row for each run that had them: what they really did; empty where none had."""
    heads = ["run", "looks at a page in force", SWITCHES, f"{BESIDE} a page", "looks at a boost in force", BEGUN]
    heads += ["cancelled", "by their time", "otherwise", "gone on with by another mgr", f"{BESIDE} a boost"]
    rows = [f"| {' | '.join(heads)} |", "|" + " ---: |" * len(heads)]
    for line in runs:
        counts = Counter(line["counts"])
        if not counts[SWITCHES] and not counts[BEGUN]:
            continue
        ended = sum(count for what, count in counts.items() if what.startswith("boosts ended by "))
        cells = [line["run"], counts[heads[1]], counts[SWITCHES], counts[heads[3]], counts[heads[4]], counts[BEGUN]]
        cells += [counts[CANCELLED], counts[BY_TIME], ended - counts[CANCELLED] - counts[BY_TIME]]
        cells += [counts["boosts that another mgr went on with"], counts[heads[-1]]]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows) if len(rows) > 2 else ""
