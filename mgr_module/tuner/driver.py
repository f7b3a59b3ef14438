"""Drives the automatic mode: a thread that takes turns, each of one look and of what is done on it, and commands.

A second thread decides and acts, on one event at a time: on a large cluster a write takes as long as several samples,
and the guard looks at each of them meanwhile. A command puts its words into the inbox and waits for a moment.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, wait
from typing import Any, Callable, Dict, Optional

from ceph_tuner.core.autopilot.events import Event, Look, OperatorCommand
from ceph_tuner.core.autopilot.executor import Executor
from ceph_tuner.core.autopilot.explanation import explain
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import State
from ceph_tuner.core.autopilot.state_machine import refusal
from ceph_tuner.core.errors import InputError, RetryLater, TunerError
from ceph_tuner.core.goals.guard import Breach

from .guardian import Guardian
from .inbox import Inbox
from .logbook import Logbook
from .lookout import Lookout

LOOK_S = 0.2
"""How often it is seen whether a sample has come while something is written."""
BLIND_TURNS = 5
"""Turns in a row that fail, one or more a sample, after which what is on trial is taken back unseen."""
LONGEST_WHY = 1000

PATIENCE_S = 8.0
"""How long a command waits for its turn."""


class Driver:
    """Takes turns: one look, and what is decided on it is done."""

    def __init__(
        self,
        executor: Executor,
        lookout: Lookout,
        logbook: Logbook,
        guardian: Guardian,
        inbox: Inbox,
        policy: Callable[[], Policy],
        log: logging.Logger,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._executor, self._lookout, self._logbook, self._guardian = executor, lookout, logbook, guardian
        self.inbox, self._policy, self._log, self._now = inbox, policy, log, now
        self._sampled = False
        self._looked = time.monotonic()
        self._failed = 0
        self._started = False
        self._problem = "the automatic mode has not started yet"
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

    def tell(self, what: str, by: str, why: str = "") -> Dict[str, Any]:
        """Take an operator's word. Raises InputError where it makes no sense now, RetryLater where it must wait."""
        refused = refusal(self._executor.state, what)
        if refused is not None:
            raise InputError("automatic mode", refused, "another moment (`ceph tuner auto explain`)")
        done = self.inbox.post(OperatorCommand(self._now(), what, by, why[:LONGEST_WHY]))
        if not done.wait(PATIENCE_S):
            raise RetryLater(
                f"`{what}` was taken, and waits until what is being written is written: {self._problem}",
                "see `ceph tuner auto explain`",
            )
        return self.document()

    def document(self) -> Dict[str, Any]:
        """The state, what was seen last, and in words what it does and waits for."""
        state, policy, look = self._executor.state, self._policy(), self._newest_look
        return {
            **state.to_dict(),
            "words": explain(state, look, policy, self._now()),
            "effects": [effect.to_dict() for effect in look.effects.values()] if look else [],
            "windows": look.windows if look else 0,
            "missed": list(look.missed) if look else [],
            "waits_for": look.wait if look else "",
            "problem": self._problem,
        }

    @property
    def state(self) -> State:
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
            self._log.exception("the automatic mode failed in this turn")
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
            event, done = self.inbox[0]
            try:
                self._handle(event)
            except TunerError:
                # nothing was remembered of it: the next turn tries again
                raise
            except Exception:
                # it would fail for ever, and neither what is behind it nor the guard would have their turn
                self.inbox.popleft()
                done.set()
                raise
            self.inbox.popleft()
            done.set()
        if self._due():
            self._look()
            self._guardian.beat()

    def _due(self) -> bool:
        """Whether it is time to look: at a sample, or as one is missing, so that a hanging sampler is noticed."""
        if not self._sampled and time.monotonic() - self._looked <= self._lookout.overdue_s():
            return False
        self._sampled, self._looked = False, time.monotonic()
        return True

    def _handle(self, event: Event) -> None:
        """Have the executor take an event; the guard goes on meanwhile."""
        done: Future[None] = Future()

        def work() -> None:
            try:
                self._executor.handle(event)
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        threading.Thread(target=work, name="tuner-writing", daemon=True).start()
        breach = None
        while not wait([done], LOOK_S).done:
            breach = breach or self._guarded()
            if breach is not None:
                self._executor.end_write(breach)
        done.result()
        if breach is not None and self._executor.state.on_cluster:
            # all was written before its end was seen
            self._handle(Look(self._now(), breach=breach))

    def _guarded(self) -> Optional[Breach]:
        """Look at what is due while something is written."""
        if not self._due():
            return None
        try:
            breach = self._lookout.guard(self._executor.state)
        except Exception:
            self._log.exception("the guard could not look while something is written")
            return None
        self._guardian.beat()
        return breach

    def _look(self) -> None:
        """One look, and what is decided on it is done."""
        state = self._executor.state
        self._logbook.progress(state)
        look = self._newest_look = self._lookout.look(state, self._policy())
        if look is not None:
            self._handle(look)
