"""What is done around the executor: the audit trail, the cluster's log, the history, the optimiser, the guardian."""

from __future__ import annotations

import logging
import threading
from typing import Any, Callable, Dict, List, Optional, Protocol

from ceph_tuner.core.autopilot import audit_log as audit
from ceph_tuner.core.autopilot.audit_log import Audit, Record, without_outcome
from ceph_tuner.core.autopilot.events import (
    Answered,
    Event,
    Kept,
    Learn,
    Note,
    TakeBackFailed,
    TookBack,
    WriteFailed,
    Wrote,
)
from ceph_tuner.core.autopilot.learning import trial_of
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import State
from ceph_tuner.core.errors import RetryLater, TunerError
from ceph_tuner.core.measure.history import History

from .announce import Announcer

RECENT = 60
"""Records that health checks look at."""


class ProposalSource(Protocol):
    """Whoever proposes settings; `proposer.Proposer` is one."""

    def ask(self, state: State, policy: Policy) -> Answered:
        """Give the answer; takes as long as it takes, and raises nothing that is expected."""


class Logbook:
    """`executor.Crew` inside the mgr. Answers and changes of what is on trial go to the callables."""

    def __init__(
        self,
        trail: Audit,
        announcer: Announcer,
        history: Callable[[], History],
        proposer: ProposalSource,
        policy: Callable[[], Policy],
        answered: Callable[[Answered], None],
        on_trial: List[Callable[[State], None]],
        who: str,
        log: logging.Logger,
        device_class: str = "",
    ) -> None:
        self._device_class = device_class
        self._trail, self._announcer, self._history = trail, announcer, history
        self._proposer, self._policy, self._answered = proposer, policy, answered
        self._on_trial, self._who, self._log = on_trial, who, log
        self.recent: List[Record] = []
        """Records of the last day, for health checks; any thread may read it."""
        self._act: Optional[Record] = None
        self._begun = 0.0

    def remember(self) -> None:
        """Read what happened before this mgr became the active one. Raises TunerError."""
        self.recent = self._trail.newest(RECENT)
        acts = [record for record in self.recent if record.what in audit.ACTS and not record.refers]
        # an act whose outcome its mgr could not tell any more: what is found now is its outcome
        self._act = next((act for act in acts[-1:] if act in without_outcome(self.recent)), None)
        self._begun = next((act.at for act in reversed(acts) if act.what == audit.APPLY), 0.0)

    def note(self, note: Note, at: float) -> None:
        """Commit it to the trail, then announce it. Raises TunerError: what is not in the trail is not done."""
        who = self._who if note.by == "automatic mode" else note.by
        open_ = self._act.number if note.what == audit.FAILOVER and self._act is not None else 0
        record = self._trail.append(at, who, note.what, note.why, note.detail, refers=open_)
        if note.what in audit.ACTS:
            self._act = record
            self._begun = at if note.what == audit.APPLY else self._begun
        elif open_:
            self._act = None
        self._announcer.announce(record)
        self.recent = [*self.recent, record][-RECENT:]

    def came_of(self, outcome: Event) -> None:
        """Add the outcome of an act to the trail. Raises TunerError, and is told again: no act stays without one."""
        if self._act is None or not isinstance(outcome, (Wrote, WriteFailed, TookBack, TakeBackFailed, Kept)):
            return
        words, detail = _outcome(outcome)
        self._trail.tell(self._act, outcome.at, words, detail=detail)
        self._act = None

    def learn(self, result: Learn, at: float) -> None:
        """Keep the trial for the optimiser; that it is forgotten would cost a trial, not the cluster."""
        try:
            seconds = max(at - self._begun, 0.0) if self._begun else 0.0
            self._history().add_trial(trial_of(result, at, seconds, self._device_class).to_dict())
        except (TunerError, ValueError) as error:
            self._log.warning("a trial's result is lost: %s", error)

    def ask(self, state: State) -> None:
        """Ask in a thread of its own: the guard goes on meanwhile."""
        policy = self._policy()
        asking = threading.Thread(
            target=lambda: self._answered(self._proposer.ask(state, policy)), name="tuner-asking", daemon=True
        )
        try:
            asking.start()
        except RuntimeError as error:
            raise RetryLater(f"no thread to ask in: {error}") from error

    def on_trial(self, state: State) -> None:
        """Something is on trial now, or no more."""
        for told in self._on_trial:
            told(state)


def _outcome(outcome: Event) -> Any:
    detail: Dict[str, Any] = {}
    if isinstance(outcome, Wrote):
        return "written", {"changes": list(outcome.numbers)}
    if isinstance(outcome, TookBack):
        return "taken back", {"drift": list(outcome.drift)} if outcome.drift else detail
    if isinstance(outcome, Kept):
        return "kept", {"change": outcome.number}
    if isinstance(outcome, (WriteFailed, TakeBackFailed)):
        return f"failed: {outcome.words}", detail
    return "", detail
