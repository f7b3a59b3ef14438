"""Takes turns: one look, and what is decided on it is done. Of an automatic mode, or of the cluster's boost.

A second thread decides and acts, on one event at a time: on a large cluster a write takes as long as several samples,
and the guard looks at each of them meanwhile. A command puts its words into the inbox and waits for a moment.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, wait
from typing import Any, Callable, Generic, Optional, Protocol, TypeVar

from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.autopilot.executor import TrialExecutor, Working
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.errors import Pointless, RetryLater, TunerError
from ceph_tuner.core.goals.guard import Breach

from . import threads
from .inbox import Inbox
from .pulse import Pulse

LONGEST_WHY = 1000
LOOK_S = 0.2
"""How often it is seen whether a sample has come while something is written."""
BLIND_TURNS = 5
"""Turns in a row that fail, one or more a sample, after which what is on trial is taken back unseen."""
PATIENCE_S = 8.0
"""How long a command waits for its turn."""


S = TypeVar("S", bound=Working)
S_contra = TypeVar("S_contra", contravariant=True)


class LookingOut(Protocol[S_contra]):
    """What the cluster is looked at by."""

    def look(self, state: S_contra, policy: Policy) -> Optional[Look]:
        """Give all that is known once a sample was taken or missed; None while nothing is to be known."""

    def guard(self, state: S_contra) -> Optional[Breach]:
        """Look at the newest sample alone, while settings are being written."""

    def overdue_s(self) -> float:
        """Seconds without a sample after which one is missing."""


class ShowingProgress(Protocol[S_contra]):
    """What shows the bar of what is under way."""

    def progress(self, state: S_contra) -> None:
        """Show it, or take it away."""


class Turns(Generic[S]):
    """Takes turns: one look, and what is decided on it is done."""

    what = "automatic mode"
    """What it drives, for people."""
    explained_by = "ceph tuner auto explain"

    def __init__(
        self,
        executor: TrialExecutor[S],
        lookout: LookingOut[S],
        logbook: ShowingProgress[S],
        pulse: Pulse,
        inbox: Inbox,
        policy: Callable[[], Policy],
        log: logging.Logger,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._executor, self._lookout, self._logbook, self._pulse = executor, lookout, logbook, pulse
        self.inbox, self._policy, self._log, self._now = inbox, policy, log, now
        self._sampled = False
        self._looked = time.monotonic()
        self._failed = 0
        self._started = False
        self._problem = f"the {self.what} has not started yet"
        self._newest_look: Optional[Look] = None

    # called by other threads

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop. An error costs one turn."""
        while not stop.is_set():
            self.inbox.wake.wait(1.0)
            self.inbox.wake.clear()
            if stop.is_set():
                return
            self.attempt()

    def sampled(self) -> None:
        """A sample was taken, or missed."""
        self._sampled = True
        self.inbox.wake.set()

    def post(self, event: Any, word: str) -> None:
        """Have an event taken. Raises RetryLater where it must wait."""
        if not self.inbox.post(event).wait(PATIENCE_S):
            raise RetryLater(
                f"`{word}` was taken, and waits until what is being written is written: {self._problem}",
                f"see `{self.explained_by}`",
            )

    def refuse(self, why: Optional[str]) -> None:
        """Raise Pointless where a command makes no sense now."""
        if why is not None:
            raise Pointless(self.what, why, self.explained_by)

    @property
    def started(self) -> bool:
        """Whether the state was read, and what another mgr left was taken back."""
        return self._started

    @property
    def state(self) -> S:
        """The state as it is now."""
        return self._executor.state

    @property
    def problem(self) -> str:
        """Why the last turn failed; empty where it did not."""
        return self._problem

    @property
    def newest_look(self) -> Optional[Look]:
        """What the last turn knew; None where it did not look."""
        return self._newest_look

    # the driver's own thread

    def attempt(self) -> None:
        """Take a turn; what goes wrong in it is kept for people, and the next one tries again."""
        try:
            self.turn()
            self._problem, self._failed = "", 0
        except TunerError as error:
            self._gone_wrong(str(error))
        except Exception as error:
            self._log.exception("the %s failed in this turn", self.what)
            self._gone_wrong(f"internal error ({type(error).__name__}: {error}); the mgr's log has more")

    def _gone_wrong(self, problem: str) -> None:
        """Where turn after turn fails nobody guards what is on trial: take it back."""
        self._problem, self._failed = problem, self._failed + 1
        # before its start it decides nothing: another mgr may live, and the start itself takes back what one left
        if self._failed < BLIND_TURNS or not self._started or not self._executor.state.on_cluster:
            return
        try:
            breach = Breach("blind", f"the guard cannot look: {problem}"[:LONGEST_WHY])
            self._handle(Look(self._now(), breach=breach))
        except Exception:
            self._log.exception("and nothing can be taken back now")

    def turn(self) -> None:
        """Take what is in the inbox, then look at the newest sample. Raises TunerError; the next turn tries again."""
        if not self._started:
            self._executor.start()
            self._started = True
        while self.inbox:
            event, completion = self.inbox[0]
            try:
                self._handle(event)
            except TunerError:
                # nothing was remembered of it: the next turn tries again
                raise
            except Exception:
                # it would fail for ever, and neither what is behind it nor the guard would have their turn
                self.inbox.popleft()
                completion.set()
                raise
            self.inbox.popleft()
            completion.set()
        if self._due():
            self._look()
            self._pulse.beat()

    def _due(self) -> bool:
        """Whether it is time to look: at a sample, or as one is missing, so that a hanging sampler is noticed."""
        if not self._sampled and time.monotonic() - self._looked <= self._lookout.overdue_s():
            return False
        self._sampled, self._looked = False, time.monotonic()
        return True

    def _handle(self, event: Any) -> None:
        """Have the executor take an event; the guard goes on meanwhile."""
        future: Future[None] = Future()

        def work() -> None:
            try:
                self._executor.handle(event)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(None)

        threads.begin("tuner-writing", work)
        breach = None
        while not wait([future], LOOK_S).done:
            # also after the first: the lock is renewed for signs of life alone while all is taken back
            guard_breach = self._guard()
            breach = breach or guard_breach
            if breach is not None:
                self._executor.end_write(breach)
        future.result()
        if breach is not None and self._executor.state.on_cluster:
            # all was written before its end was seen
            self._handle(Look(self._now(), breach=breach))

    def _guard(self) -> Optional[Breach]:
        """Look at what is due while something is written."""
        if not self._due():
            return None
        try:
            breach = self._lookout.guard(self._executor.state)
        except Exception:
            self._log.exception("the guard could not look while something is written")
            return None
        self._pulse.beat()
        return breach

    def _look(self) -> None:
        """One look, and what is decided on it is done."""
        state = self._executor.state
        self._logbook.progress(state)
        look = self._newest_look = self._lookout.look(state, self._policy())
        if look is not None:
            self._handle(look)
