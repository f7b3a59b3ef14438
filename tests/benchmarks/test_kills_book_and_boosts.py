"""The laws of the book and of boosts at a look, and what a run of kills with them must have carried out."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, List, Sequence

import kills_on_lab
import pytest
from configuration_laws import Breach
from kills_book_and_boosts import (
    ANSWERS_S,
    BEGUN,
    BESIDE,
    BOOST_LATE_S,
    BOUNDS,
    BY_TIME,
    CANCELLED,
    LATE_S,
    PAGES,
    RECOVERING,
    SWITCHES,
    Regimes,
    StandingObserver,
    end_both,
    more_words,
    not_tried,
)
from kills_book_and_boosts import table as standing_table
from kills_ledger import Ledger, carried_out
from kills_on_lab import Observer
from standing_laws import BookLaw, BoostLaw

from ceph_tuner.core.book.book import PAGES_KEY, Book
from ceph_tuner.core.book.executor import BY as BY_BOOK
from ceph_tuner.core.book.executor import KEY as BOOK_KEY
from ceph_tuner.core.book.page import STRUCK, Page
from ceph_tuner.core.book.page_check import check_page
from ceph_tuner.core.book.state import HOLDING, BookState
from ceph_tuner.core.boost.events import Request
from ceph_tuner.core.boost.executor import BY as BY_BOOST
from ceph_tuner.core.boost.executor import KEY as BOOST_KEY
from ceph_tuner.core.boost.state import ENDING, ON, STARTING, BoostState
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import Entry, Journal
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.changes.standing import StandingApplier
from ceph_tuner.core.errors import CommandFailed, InputError
from monitors import TENTACLE, ManualClock, Monitors

QUIET = BOUNDS[0]
RECOVERY_PAGE, MUCH_PAGE = PAGES[1], PAGES[3]


def writer(monitors: Monitors, name: str, kind: Callable[..., Applier] = Applier) -> Applier:
    clock = ManualClock()
    lock = Lock(monitors.store, clock, Holder(name), lambda holder: holder.name == name, heartbeat=False)
    return kind(monitors, monitors.store, clock, lock, TENTACLE, name)


def stand(monitors: Monitors, page: Page) -> Entry:
    """The book has a page in force."""
    book = writer(monitors, f"mgr.x{BY_BOOK}", StandingApplier)
    entry = book.apply(book.plan(page.target, page.settings))
    assert entry is not None
    return entry


def boosted(monitors: Monitors) -> Entry:
    """A boost's settings are in force, whatever the store has of it."""
    boost = writer(monitors, f"mgr.x{BY_BOOST}")
    entry = boost.apply(boost.plan("osd", {"osd_max_scrubs": 6}), trial=True)
    assert entry is not None
    return entry


class Looks:
    """Of both laws, a second after the other."""

    def __init__(self, monitors: Monitors, recent_s: float = 10.0, late_s: float = 20.0) -> None:
        self.counts: Counter[str] = Counter()
        self._monitors, self._now = monitors, 0.0
        self._book = BookLaw(0.0, recent_s, late_s, self.counts)
        self._boost = BoostLaw(0.0, late_s, self.counts)
        self.pages: Sequence[Page] = PAGES
        self.boost = BoostState()

    def breaches(self, seconds: int, regime: str = "", excused: bool = False) -> List[Breach]:
        """All of so many looks."""
        found: List[Breach] = []
        entries = Journal(self._monitors.store).entries()
        table = {(row.who, row.name): row.value for row in self._monitors.dump()}
        for _ in range(seconds):
            self._now += 1.0
            found += self._book.breaches(self._now, regime, excused, entries, lambda: self.pages, lambda: table)
            found += self._boost.breaches(self._now, self._now, excused, entries, lambda: self.boost)
        return list(dict.fromkeys(found))


def on(entry: Entry, at_most_s: float = 60.0, **values: Any) -> BoostState:
    return replace(BoostState(phase=ON, request=Request("recovery", at_most_s), changes=(entry.number,)), **values)


def test_a_page_of_the_regime_that_holds_may_stand_for_ever() -> None:
    monitors = Monitors()
    stand(monitors, RECOVERY_PAGE)
    looks = Looks(monitors)
    assert looks.breaches(100, RECOVERING) == []
    assert looks.counts["looks at a page in force"] == 100


def test_a_page_whose_regime_is_over_may_stand_for_as_long_as_the_law_says() -> None:
    monitors = Monitors()
    entry = stand(monitors, RECOVERY_PAGE)
    looks = Looks(monitors)
    assert looks.breaches(1, RECOVERING) == []
    # the regime counts for 10 s, then what it names may stand for 20 s
    assert looks.breaches(29, "idle") == []
    (breach,) = looks.breaches(1, "idle")
    assert breach == Breach("book", f"change {entry.number} has what no page of idle names")


def test_time_in_which_the_book_cannot_switch_is_left_out_and_forgives_nothing() -> None:
    monitors = Monitors()
    stand(monitors, RECOVERY_PAGE)
    looks = Looks(monitors)
    assert looks.breaches(15, "idle") == []
    assert looks.breaches(1000, excused=True) == []
    assert [law for law, _ in looks.breaches(6, "idle")] == ["book"]


def test_a_struck_page_names_nothing() -> None:
    monitors = Monitors()
    stand(monitors, RECOVERY_PAGE)
    looks = Looks(monitors)
    looks.pages = [replace(RECOVERY_PAGE, state=STRUCK, reason="by an operator")]
    assert [law for law, _ in looks.breaches(21, RECOVERING)] == ["book"]


def test_settings_that_are_not_wholly_a_pages_are_named_by_none() -> None:
    monitors = Monitors()
    stand(monitors, RECOVERY_PAGE)
    monitors.set("osd", "osd_max_scrubs", "9")
    assert [law for law, _ in Looks(monitors).breaches(21, RECOVERING)] == ["book"]


def test_two_changes_of_the_book_that_stand_are_a_breach_at_once() -> None:
    monitors = Monitors()
    stand(monitors, RECOVERY_PAGE)
    stand(monitors, MUCH_PAGE)
    assert Breach("book", "changes [1, 2] stand at once") in Looks(monitors).breaches(1, RECOVERING)


def test_a_boost_that_is_on_within_its_time_breaks_no_law() -> None:
    monitors = Monitors()
    looks = Looks(monitors)
    looks.boost = on(boosted(monitors))
    assert looks.breaches(59) == []
    assert looks.counts["looks at a boost in force"] == 59


@pytest.mark.parametrize("phase", [ON, ENDING])
def test_a_boost_whose_time_is_up_is_taken_back_in_time(phase: str) -> None:
    monitors = Monitors()
    looks = Looks(monitors)
    looks.boost = on(boosted(monitors), phase=phase)
    assert looks.breaches(79) == []
    assert looks.breaches(1) == [Breach("boost", f"changes [1] are in force while {phase}")]


def test_a_boosts_settings_without_a_boost_in_the_store_are_a_breach_at_once() -> None:
    monitors = Monitors()
    boosted(monitors)
    assert Looks(monitors).breaches(1, excused=True) == [
        Breach("boost", "changes [1] are in force, and the store has no boost")
    ]


def test_a_boost_may_be_written_before_its_number_is_stored() -> None:
    monitors = Monitors()
    looks = Looks(monitors)
    looks.boost = on(boosted(monitors), phase=STARTING, changes=(), writing=True)
    assert looks.breaches(59) == []


def test_a_change_that_the_boost_does_not_have_is_late_at_once() -> None:
    monitors = Monitors()
    looks = Looks(monitors)
    looks.boost = on(boosted(monitors), 3600.0, changes=(7,))
    assert [law for law, _ in looks.breaches(21)] == ["boost"]


# the observer of a run


class Watched:
    """An observer of the fake monitors, with a book and a boost in their store."""

    def __init__(self) -> None:
        self.monitors, self.ledger, self.regime = Monitors(), Ledger(None, 1), RECOVERING
        self.standing = StandingObserver(self.monitors.store, lambda: self.regime, self.ledger)
        self.observer = Observer(self.monitors, self.monitors.store, self.ledger, self.standing)
        self.store(PAGES_KEY, versioned(Book(PAGES, len(PAGES)).to_dict()))

    def store(self, key: str, document: Dict[str, Any]) -> None:
        self.monitors.store.set(key, json.dumps(document))


def test_a_switch_is_counted_once_and_so_is_a_boost() -> None:
    watched = Watched()
    entry = stand(watched.monitors, RECOVERY_PAGE)
    holding = BookState(True, HOLDING, page=2, changes=(entry.number,), switches=(5.0,))
    watched.store(BOOK_KEY, holding.to_dict())
    for _ in range(3):
        watched.observer.look()
    watched.store(BOOK_KEY, replace(holding, switches=(5.0, 9.0)).to_dict())
    watched.observer.look()
    assert watched.standing.in_force() == ["a page"]
    running = BoostState(phase=ON, request=Request("recovery"), begun=7.0, changes=(entry.number,))
    for state in (running, running, replace(running, resumed=1)):
        watched.store(BOOST_KEY, state.to_dict())
        watched.observer.look()
    assert watched.standing.in_force() == ["a page", "a boost"]
    for begun, ended, rule in ((7.0, 8.0, "operator"), (9.0, 9.5, "time"), (9.0, 9.5, "time")):
        watched.store(BOOST_KEY, BoostState(last={"begun": begun, "ended": ended, "rule": rule}).to_dict())
        watched.observer.look()
    counts = watched.ledger.counts
    assert (counts[SWITCHES], counts[BEGUN], counts[CANCELLED], counts[BY_TIME]) == (2, 2, 1, 1)
    assert counts["boosts that another mgr went on with"] == 1
    assert counts["looks at a page in force"] == counts["looks"] == 10
    assert dict(watched.ledger.broken) == {}


def test_a_look_holds_the_laws_of_boosts_too() -> None:
    watched = Watched()
    boosted(watched.monitors)
    watched.observer.look()
    assert dict(watched.ledger.broken) == {"boost": 1}


def test_what_the_laws_forbid_takes_longer_than_the_plugin_may_be_silent() -> None:
    assert min(LATE_S, BOOST_LATE_S) > 5 * ANSWERS_S


def test_the_plugin_that_never_answered_tells_no_regime() -> None:
    assert Regimes(None).now() == ""  # type: ignore[arg-type]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.number))
def test_each_page_is_one_of_a_regime_that_the_bounds_tell(page: Page) -> None:
    assert all(bounds.tells(page.regime) for bounds in BOUNDS)
    check_page(page, "20.2.4")


# what it must have carried out


class Commands:
    """A commander that refuses the first so many commands."""

    def __init__(self, refusals: Sequence[Exception] = ()) -> None:
        self.refusals, self.heard = list(refusals), []  # type: ignore[var-annotated]

    def mon(self, prefix: str, arguments: Dict[str, str], payload: str = "") -> str:
        self.heard.append(prefix)
        if self.refusals:
            raise self.refusals.pop(0)
        return ""


def test_a_command_that_is_refused_is_counted_and_an_error_of_the_product_is_a_violation() -> None:
    ledger = Ledger(None, 1)
    commands: Any = Commands(
        [InputError("boost", "off", "on"), CommandFailed("tuner boost cancel", 5, "internal error")]
    )
    done = [carried_out(commands, ledger, "tuner boost cancel", {}) for _ in range(3)]
    assert done == [False, False, True]
    assert ledger.counts["commands of the plugin carried out"] == 1
    assert ledger.counts["commands of the plugin refused"] == 2
    assert dict(ledger.broken) == {"exit code": 1}


def test_the_end_cancels_the_boost_and_switches_the_book_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    running = BoostState(phase=ON, request=Request("recovery"), changes=(1,))
    holding = BookState(True, HOLDING, changes=(2,))
    returning = replace(holding, on=False)
    states = iter([None, (holding, running), (holding, BoostState()), (returning, BoostState())])
    cluster: Any = type("AnyCluster", (), {"commander": Commands()})()
    ledger = Ledger(None, 1)
    end_both(cluster, ledger, lambda: next(states, (BookState(), BoostState())))
    assert cluster.commander.heard == ["tuner boost cancel", "tuner book off", "tuner book off"]
    assert dict(ledger.broken) == {}


def test_what_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kills_book_and_boosts.ENDS_S", 0.05)
    monkeypatch.setattr("time.sleep", lambda _: None)
    cluster: Any = type("AnyCluster", (), {"commander": Commands()})()
    ledger = Ledger(None, 1)
    end_both(cluster, ledger, lambda: (BookState(True), BoostState()))
    assert dict(ledger.broken) == {"left behind": 1}


def test_a_run_without_a_switch_or_a_boost_has_failed() -> None:
    counts = Counter({SWITCHES: 3, f"{BESIDE} a page": 1, BEGUN: 2, BY_TIME: 1, CANCELLED: 1, f"{BESIDE} a boost": 1})
    assert list(not_tried(counts, True, True)) == []
    for what in counts:
        assert list(not_tried(Counter({**counts, what: 0}), True, True)) == [Breach("nothing tried", f"no {what}")]
    assert list(not_tried(Counter(), False, False)) == []
    assert len(list(not_tried(Counter(), True, False))) == 2


def test_the_program_is_told_of_what_the_run_has() -> None:
    randomness = random.Random(1)
    words = [words[0] for _ in range(50) for words in more_words(randomness, True, True)]
    assert set(words) == {"boost", "book"}
    assert more_words(randomness, False, False) == []
    drawn = {kills_on_lab.arguments(randomness, [0], [["book", "on"]])[0] for _ in range(200)}
    assert drawn == {"apply", "rollback", "book"}


def test_the_page_has_what_was_carried_out() -> None:
    without = {"run": 1, "counts": {"looks": 5}}
    assert standing_table([without]) == ""
    counts = {"looks at a page in force": 90, SWITCHES: 12, f"{BESIDE} a page": 3, "looks at a boost in force": 80}
    counts.update({BEGUN: 9, CANCELLED: 4, BY_TIME: 2, "boosts ended by drift": 1, f"{BESIDE} a boost": 5})
    counts["boosts that another mgr went on with"] = 2
    shown = standing_table([without, {"run": 2, "counts": counts}])
    assert shown.splitlines()[2:] == ["| 2 | 90 | 12 | 3 | 80 | 9 | 4 | 2 | 1 | 2 | 5 |"]
