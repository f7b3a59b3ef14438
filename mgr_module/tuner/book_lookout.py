"""One look for the book: the regime, its page, who else is at work, and what the guard says of the page in force."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, List, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.autopilot.intervention import interventions
from ceph_tuner.core.autopilot.permits import outside_hours
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.watchdog import Watchdog
from ceph_tuner.core.book.book import Book, StoredBook
from ceph_tuner.core.book.choice import borne, choose, is_usable, left_out, others
from ceph_tuner.core.book.events import BookLook
from ceph_tuner.core.book.limits import BookLimits
from ceph_tuner.core.book.page import STRUCK, UNVALIDATED, Page, same_settings
from ceph_tuner.core.book.state import HOLDING, WATCHING, BookState
from ceph_tuner.core.book.state_machine import OBJECTIVE
from ceph_tuner.core.boost.state import OFF as NO_BOOST
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.changes.lock_owner import claim_at_work
from ceph_tuner.core.changes.plan import Restore
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, InputError, TunerError
from ceph_tuner.core.goals.guard import Breach, Sight
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.measure.sample import at_work
from ceph_tuner.core.moments import duration
from ceph_tuner.core.regimes.telling import UNSEEN_S, RegimeState

from .aim import Aim
from .guard_windows import GuardWindows
from .lookout import BOOK, BOOST
from .options import BookOptions
from .proto import Mgr
from .service import STATUS_WINDOW_S, Service
from .sights import LATE, newest_sight_while_rebuilt


class BookLookout:
    """Looks at the cluster and guards a page, in the driver's thread; `watch` in that of the writes."""

    def __init__(
        self,
        mgr: Mgr,
        service: Service,
        aim: Aim,
        book: StoredBook,
        regime: Callable[[], Optional[RegimeState]],
        unnamed_policy: Callable[[str], Optional[str]],
        options: BookOptions,
        policy: Callable[[], Policy],
        executors: Mapping[str, TrialExecutor[Any]],
        now: Callable[[], float],
    ) -> None:
        """`aim`: a class, or the whole cluster; `regime`: what holds in it; `executors`: all of this mgr.

        `unnamed_policy`: which holds of the calendar and which a regime's name lacks; None where nobody knows.
        """
        self._mgr, self._service, self._aim, self._book = mgr, service, aim, book
        self._regime, self._options, self._policy = regime, options, policy
        self._unnamed_policy, self._newest_policy = unnamed_policy, ""
        self._executors, self._now = executors, now
        self._watchdog: Optional[Watchdog] = None
        self._watched: Tuple[Any, ...] = ()
        """Which switch the watchdog is for, and what it holds."""
        self._before = Sight(0.0, "")
        """The last one before the switch."""
        self._newest = self._before
        """The last one while no switch was made or watched."""
        self._seen_at: Optional[float] = None
        """When a fresh sample was there last, or this lookout began."""
        self._in_moments = False
        """Whether single samples were why the guard spoke."""
        self._windows = GuardWindows(aim)
        self._ours: Tuple[Any, Tuple[Restore, ...]] = (None, ())
        self.problem = ""
        """Why the book cannot be read; any thread may read it."""

    def look(self, state: BookState, policy: Policy) -> Optional[Look]:
        """Give what is known once a sample was taken or missed; None while the book is off."""
        if not state.on and not state.stands:
            self._watchdog = None
            return None
        now, sight, limits = self._now(), self._sight(), self._options.read()
        held = self._regime()
        regime = self._told(now)
        book = self._read()
        own = self._own(book)
        use = (limits.unvalidated, state.rests, self._policy_beside(regime))
        page = choose(own, regime, *use)
        wait = self._others(state, page)
        breach = None if wait and state.phase == HOLDING else self._guarded(sight, state, policy)
        if state.phase != WATCHING and sight is not None:
            self._newest = sight
        window = self._aim.window(STATUS_WINDOW_S)
        hours = self._outside_hours(now, limits)
        blind = "no fresh sample" if sight is None else ""
        return BookLook(
            now,
            at_work(window.means) if window is not None else {},
            wait=wait or blind or ("" if hours else self._unknown_goals(state, page)),
            breach=breach,
            regime=regime,
            page=page,
            others=others(own, regime, *use),
            hours=hours,
            # by objectives that the guard has read
            policy=self._policy_beside(regime),
            left_out=left_out(own, regime, use[-1]),
            gone="" if wait else self._gone(now, sight, book, state),
            doubtful=(held is not None and held.turning) or (state.phase == HOLDING and self._in_moments),
        )

    def foretell(self) -> BookLook:
        """What would decide if the book, which is off, were on."""
        now, limits = self._now(), self._options.read()
        regime = self._told(now)
        own, use = self._own(self._read()), (limits.unvalidated, (), self._policy_beside(regime))
        page, hours = choose(own, regime, *use), self._outside_hours(now, limits)
        return BookLook(
            now,
            {},
            wait=self._others(BookState(), page) or self._unknown_goals(BookState(), page),
            regime=regime,
            page=page,
            others=others(own, regime, *use),
            hours=hours,
            policy=use[-1],
            left_out=left_out(own, regime, use[-1]),
        )

    def unused(self) -> List[int]:
        """Numbers of pages that are not used, as no trial validated them here."""
        allowed = self._options.read().unvalidated
        pages = self._own(self._read()).pages
        return [page.number for page in pages if page.state == UNVALIDATED and not is_usable(page, allowed)]

    def has_page(self) -> bool:
        """Whether any regime has a page that may be used, or nobody can say."""
        allowed = self._options.read().unvalidated
        pages = self._own(self._read()).pages
        return bool(self.problem) or self._aim.stands_aside or any(is_usable(page, allowed) for page in pages)

    def guard(self, state: BookState) -> Optional[Breach]:
        """Look at the newest sample alone, while settings are being written."""
        return self._watchdog.look(self._sight()) if self._watchdog is not None else None

    def watch(self, state: BookState) -> None:
        """Settings are about to be written, or what is in force is permanent or gone."""
        if state.next_page:
            # a page may have held for days: what the cluster has become since is not the next one's doing
            self._before = self._newest if self._newest.at else self._before
            self._watchdog = self._new_watchdog(state, state.next_page, self._policy(), self._goals())
            self._watched = ()

    def beside(self) -> str:
        """Which work of this mgr the book waits for, in words; empty where there is none. Any thread may ask."""
        for name, executor in list(self._executors.items()):
            other = executor.state
            if name == BOOST and other.phase != NO_BOOST:
                kind = f" of {other.request.kind}" if other.request is not None else ""
                return f"a boost{kind} is on (`ceph tuner boost status`)"
            if name != BOOST and not name.startswith(BOOK) and other.on_cluster:
                return "the automatic mode has settings on trial (`ceph tuner auto explain`)"
        return ""

    def _told(self, now: float) -> str:
        """The regime; empty where it cannot be acted on."""
        held = self._regime()
        return held.name if held is not None and held.is_told(now, self.overdue_s()) else ""

    def overdue_s(self) -> float:
        """Seconds without a sample after which one is missing."""
        return LATE * float(self._service.option("sample_interval"))

    def _outside_hours(self, now: float, limits: BookLimits) -> str:
        if self._options.never_read:
            # those of before a failover are not known here
            return self._options.problem
        return outside_hours(now, Policy(hours=limits.hours)) or ""

    def _goals(self) -> Optional[Slo]:
        return self._aim.absolute_slo(lambda: self._aim.part_of(self._service.reference()))

    def _unknown_goals(self, state: BookState, page: Optional[Page]) -> str:
        """Why a switch to the page could not be guarded, which is not the page's fault; empty where it could be."""
        if page is None or same_settings(page, state.target, state.settings):
            return ""
        try:
            self._goals()
        except TunerError as fault:
            return str(fault)
        return ""

    def _policy_beside(self, regime: str) -> str:
        """The policy that holds and which a regime's name lacks. As objectives, what cannot be read holds as it was."""
        policy = self._unnamed_policy(regime)
        if policy is not None:
            self._newest_policy = policy
        return self._newest_policy

    def _own(self, book: Book) -> Book:
        """The pages that are for its OSDs."""
        if self._aim.device_class:
            return book.of_target(self._aim.target)
        return Book() if self._aim.stands_aside else book

    def _read(self) -> Book:
        try:
            book, self.problem = self._book.read(), ""
        except InputError as fault:
            # never used: what was there before the book holds
            book, self.problem = Book(), str(fault)
        return book

    def _gone(self, now: float, sight: Optional[Sight], book: Book, state: BookState) -> str:
        """Why what is in force may not stay, in words; empty where it may."""
        if sight is not None or self._seen_at is None or now < self._seen_at:
            self._seen_at = now
        if now - self._seen_at >= UNSEEN_S:
            return f"no sample came for {duration(UNSEEN_S)}: nobody sees what the page does"
        if self._aim.stands_aside:
            return "device classes have pages of their own, since there are objectives of theirs"
        for page in book.pages:
            if page.number == state.page and page.state == STRUCK:
                return f"page {page.number} is struck: {page.reason}"
        return ""

    def _others(self, state: BookState, page: Optional[Page]) -> str:
        """Who else is at work on the settings, in words; empty where nobody is."""
        beside = self.beside()
        if beside:
            return beside
        same = page is not None and same_settings(page, state.target, state.settings)
        if state.on_cluster or same or (page is None and not state.stands):
            # the lock is the book's own, or it is not needed
            return ""
        claim = claim_at_work(self._service.store, self._now())
        return f"another tuner is at work on this cluster: {claim.words}" if claim is not None else ""

    def _guarded(self, sight: Optional[Sight], state: BookState, policy: Policy) -> Optional[Breach]:
        if state.phase not in (WATCHING, HOLDING):
            return None
        self._follow(state, policy, sight)
        watchdog = self._watchdog
        if watchdog is None:
            return None
        drift: Tuple[str, ...] = ()
        with contextlib.suppress(ClusterTimeout, CommandFailed):
            drift = self._drift(state)
        breach = _of_page(watchdog.look(sight, drift), state)
        self._in_moments = breach is not None
        return breach or _of_page(self._close(sight, policy, watchdog), state)

    def _follow(self, state: BookState, policy: Policy, sight: Optional[Sight]) -> None:
        """Guard the page in force by what is wanted now."""
        goals = self._watched[1] if self._watched else None
        with contextlib.suppress(TunerError):
            # what cannot be read holds as it was
            goals = self._goals()
        watched = ((state.changes, state.switches[-1:]), goals)
        if watched == self._watched and self._watchdog is not None:
            return
        if not self._watched or self._watched[0] != watched[0]:
            self._windows.begin(self._now() + policy.settle)
        elif self._watched[1] != goals:
            self._windows.begin_anew(self._now())
        self._watched = watched
        if not self._before.at and sight is not None:
            self._before = sight
        self._watchdog = self._new_watchdog(state, state.page, policy, goals)

    def _new_watchdog(self, state: BookState, number: int, policy: Policy, goals: Optional[Slo]) -> Watchdog:
        use = (self._options.read().unvalidated, state.rests, self._policy_beside(state.regime))
        more_borne = borne(self._own(self._read()), number, goals, *use)
        return Watchdog(goals, {**state.baseline, **more_borne}, self._before, policy)

    def _close(self, sight: Optional[Sight], policy: Policy, watchdog: Watchdog) -> Optional[Breach]:
        """Close the windows that have ended; say whether the guard objects to one."""
        if sight is None:
            return None
        breach: Optional[Breach] = None
        for window in self._windows.closed(sight.at, policy):
            breach = breach or watchdog.close(window.means)
        return breach

    def _drift(self, state: BookState) -> Tuple[str, ...]:
        """Keys of ours that others changed."""
        if self._ours[0] != (state.changes, state.switches[-1:]):
            restores = Journal(self._service.store).restores_of(state.changes)
            self._ours = ((state.changes, state.switches[-1:]), restores)
        return interventions((), self._service.config.dump(), self._ours[1], ()).drift

    def _sight(self) -> Optional[Sight]:
        return newest_sight_while_rebuilt(self._mgr, self._aim, self._now(), self.overdue_s())


def _of_page(breach: Optional[Breach], state: BookState) -> Optional[Breach]:
    """The breach, where it ends the page: a cluster that holds one for days loses an OSD now and then."""
    return breach if state.phase != HOLDING or breach is None or breach.rule in ("drift", OBJECTIVE) else None
