"""Carries out what the book's state machine decides, as the automatic mode's executor does."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from typing import Any, Callable, Collection, List, Sequence, Tuple

from ceph_tuner.core.autopilot.events import Keep, WriteFailed, Wrote
from ceph_tuner.core.autopilot.executor import Logbook, TrialExecutor, TrialGuard, nobody
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.book.book import StoredBook
from ceph_tuner.core.book.events import Replace, Strike
from ceph_tuner.core.book.limits import BookLimits
from ceph_tuner.core.book.state import RESTING, RETURNING, BookState
from ceph_tuner.core.book.state_machine import decide
from ceph_tuner.core.ceph.ports import Clock, Store
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import APPLIED, STANDING, Entry
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.standing import StandingApplier
from ceph_tuner.core.changes.writer import class_of, key_for_class
from ceph_tuner.core.errors import InputError, Locked, TunerError

KEY = "book/state"
BY = STANDING
"""How the name of whoever writes for the book ends, in the journal: `ceph tuner in mgr.x (class hdd), book`."""


class BookExecutor(TrialExecutor[BookState]):
    """Of the cluster's book, or of what it holds for one device class."""

    def __init__(
        self,
        store: Store,
        hands: Callable[[], Tuple[Applier, Lock]],
        logbook: Logbook,
        guards: Sequence[TrialGuard],
        clock: Clock,
        limits: Callable[[], BookLimits],
        book: StoredBook,
        elsewhere: Callable[[], Collection[int]] = nobody,
        device_class: str = "",
    ) -> None:
        """As `TrialExecutor`; `hands` give a StandingApplier that writes under a name that ends with BY."""
        self._book, self._device_class = book, device_class
        super().__init__(
            BookState(),
            BookState.from_dict,
            lambda state, event, _: decide(state, event, limits()),
            store,
            hands,
            logbook,
            None,
            guards,
            clock,
            Policy,
            key_for_class(KEY, device_class),
            elsewhere,
        )

    def start(self) -> None:
        """As `TrialExecutor.start`; a change that stands, and that a state which was lost knows no more, goes."""
        super().start()
        if self.state.phase != RESTING:
            return
        applier, _ = self._new_hands()
        unknown = tuple(entry.number for entry in applier.history() if entry.state == APPLIED and self._wrote(entry))
        if unknown:
            then = "a change of the book stands, and its state is lost"
            lost = replace(
                self.state, phase=RETURNING, since=self._clock.now(), changes=unknown, page=0, settings={}, then=then
            )
            self._remember(lost)

    def _do(self, act: Any) -> Any:
        if isinstance(act, Strike):
            # in the order of the trail: nothing is written while it is not done
            self._tell(functools.partial(self._strike, act))
            return None
        if isinstance(act, Replace):
            return self._replace(act)
        return super()._do(act)

    def _keep(self, act: Keep) -> Any:
        # a lock that was lost is lost for good: to try again under it helps nobody
        outcome = super()._keep(act)
        if isinstance(outcome, WriteFailed) and self._hands is not None and _lost(self._hands[1]):
            return replace(outcome, busy=True)
        return outcome

    def _strike(self, act: Strike) -> None:
        with contextlib.suppress(InputError):
            # gone or struck meanwhile; a book that nobody can read is not used either
            self._book.change(lambda book: book.blamed(act.number, act.reason, act.policy))

    def _replace(self, act: Replace) -> Any:
        if self._untold:
            return WriteFailed(self._clock.now(), "the audit trail cannot be written: nothing is switched without it")
        numbers: List[int] = []
        try:
            applier = self._take_hold()
            stored = next((entry for entry in applier.history() if entry.number == act.number), None)
            if stored is None:
                return WriteFailed(self._clock.now(), f"change {act.number} is not in the journal any more")
            if not isinstance(applier, StandingApplier):
                raise TypeError(f"an applier that replaces settings is needed, not {type(applier).__name__}")
            entry = applier.replace(stored, act.target, act.settings, act.why, self._check)
            numbers = [entry.number] if entry.state == APPLIED else []
        except TunerError as error:
            rule = self._end_write.rule if self._end_write is not None else ""
            return WriteFailed(self._clock.now(), str(error), (), isinstance(error, Locked), rule)
        return Wrote(self._clock.now(), tuple(numbers))

    def _is_ours(self, entry: Entry) -> bool:
        # also where the state was lost
        return super()._is_ours(entry) or self._wrote(entry)

    def _wrote(self, entry: Entry) -> bool:
        """Whether the book wrote it for this class, in whichever mgr."""
        return entry.who.endswith(BY) and class_of(entry.who[: -len(BY)]) == self._device_class


def _lost(lock: Lock) -> bool:
    try:
        lock.check()
    except TunerError as error:
        return isinstance(error, Locked)
    return False
