"""What is told of the automatic mode's acts: to the audit trail, the cluster's log, its progress bars, the history."""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Optional

from ceph_tuner.core.autopilot import audit_log as audit
from ceph_tuner.core.autopilot.audit_log import Audit, AuditRecord, without_outcome
from ceph_tuner.core.autopilot.events import (
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
from ceph_tuner.core.autopilot.state import COMPARING, PHASES, AutopilotState
from ceph_tuner.core.autopilot.transitions import BY_OPERATOR
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.measure.history import History

from .announce import Announcer

RECENT = 60
"""Records that health checks look at."""


class MgrLogbook:
    """`executor.Logbook` inside the mgr."""

    def __init__(
        self,
        trail: Audit,
        announcer: Announcer,
        history: Callable[[], History],
        who: str,
        device_class: str,
        log: logging.Logger,
    ) -> None:
        self._trail, self._announcer, self._history = trail, announcer, history
        self._who, self._device_class, self._log = who, device_class, log
        self._shown = ""
        """The event of the bar that is shown."""
        self.recent: List[AuditRecord] = []
        """Records of the last day, for health checks; any thread may read it."""
        self._act: Optional[AuditRecord] = None
        self._begun = 0.0
        self.on_kept: Callable[[Learn, float, float], None] = _nothing
        """Called with the result of a trial that was kept, when, and when its first write was."""

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
        of: Dict[str, Any] = {"device_class": self._device_class} if self._device_class else {}
        record = self._trail.append(at, who, note.what, note.why, {**note.detail, **of}, refers=open_)
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
        self._announcer.collect(self._trail.tell(self._act, outcome.at, words, detail=detail))
        self._act = None

    def learn(self, result: Learn, at: float) -> None:
        """Keep the trial for the optimiser; that it is forgotten would cost a trial, not the cluster."""
        try:
            seconds = max(at - self._begun, 0.0) if self._begun else 0.0
            self._history().add_trial(trial_of(result, at, seconds, self._device_class).to_dict())
            begun = None if result.failed else self._first_write()
            if begun is not None:
                self.on_kept(result, at, begun)
        except (TunerError, ValueError) as error:
            self._log.warning("a trial's result is lost: %s", error)

    def _first_write(self) -> Optional[float]:
        """When the first write was of the trial that was kept last; None where its records are gone."""
        acts = [record for record in self.recent if record.what in audit.ACTS and not record.refers]
        if not acts or acts[-1].what != audit.KEPT:
            return None
        writes: List[float] = []
        for record in reversed(acts[:-1]):
            if record.what != audit.APPLY:
                return writes[-1] if writes else None
            writes.append(record.at)
        # what was before is gone: the first one may be as well
        return writes[-1] if writes and len(self.recent) < RECENT else None

    def progress(self, state: AutopilotState) -> None:
        """Show the bar of a trial that is under way; take away that of one that is over."""
        proposed = state.proposed
        # one bar for a whole trial, also while the old settings have their turn
        under_way = proposed is not None and (state.on_cluster or state.phase == COMPARING)
        event = f"tuner-{proposed.number}" if proposed is not None and under_way else ""
        if self._shown and event != self._shown:
            self._announcer.finished(self._shown, self._failure())
        if event and proposed is not None:
            share = (state.stage + 0.5) / len(proposed.rollout.stages)
            self._announcer.progress(event, f"ceph-tuner: {PHASES[state.phase]}", share)
        self._shown = event

    def _failure(self) -> str:
        """Why the last trial ended, if it was taken back."""
        ends = [record for record in self.recent if record.what in audit.ACTS and not record.refers]
        by_guard = bool(ends) and ends[-1].what == audit.TAKEN_BACK and ends[-1].detail.get("rule") != BY_OPERATOR
        return ends[-1].why if by_guard else ""


def _nothing(result: Learn, at: float, begun: float) -> None:
    """Nobody wants to know."""


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
