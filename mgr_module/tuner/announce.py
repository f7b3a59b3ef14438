"""Tells those who watch the cluster: lines in its logs, and a bar in `ceph -s` while something is on trial.

The channel `cluster` has lines for people. The channel `audit`, where Ceph has each command and who gave it, has every
record of the trail as JSON, for log collectors. None of it may stop the tuner: what cannot be told goes to the mgr's
own log.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from ceph_tuner.core.autopilot.audit_log import (
    APPLY,
    AUDIT_MARK,
    BOOST_ENDED,
    BREACH,
    DRIFT,
    FAILOVER,
    GAVE_UP,
    KINDS,
    REFUSED,
    STOPPED,
    TAKEN_BACK,
    AuditRecord,
    as_line,
)
from ceph_tuner.core.boost.state_machine import AS_WANTED
from ceph_tuner.core.printable import LONGEST_LINE, one_line
from ceph_tuner.core.wording import first_of

WARNINGS = (BREACH, DRIFT, FAILOVER, GAVE_UP, REFUSED, STOPPED, TAKEN_BACK)
SHOWN_TARGETS = 3


class AnnouncingMgr(Protocol):
    """What of Ceph's MgrModule is needed; alike in 18.2.7 and 20.2.4."""

    ClusterLogPrio: Any
    """An enumeration with INFO and WARN: `cluster_log` asks for the member's `value`."""

    def cluster_log(self, channel: str, priority: Any, message: str) -> None:
        """Write a line to the cluster's log."""

    def remote(self, module_name: str, method_name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of another module. ImportError where it is not there, RuntimeError for whatever it raises."""


class Announcer:
    """Announces records of the audit trail and the progress of trials, and counts what it announced."""

    def __init__(self, mgr: AnnouncingMgr, log: logging.Logger) -> None:
        self._mgr, self._log = mgr, log
        self._shown: Dict[str, Tuple[str, float]] = {}
        self._events: Counter[str] = Counter()
        self._rollbacks: Counter[str] = Counter()

    def announce(self, record: AuditRecord) -> None:
        """Write a record to the cluster's log, for people and for collectors."""
        self._count(record)
        priorities = self._mgr.ClusterLogPrio
        self._tell("cluster", priorities.WARN if _warns(record) else priorities.INFO, line(record))
        self.collect(record)

    def collect(self, record: AuditRecord) -> None:
        """Write it for collectors alone."""
        self._tell("audit", self._mgr.ClusterLogPrio.INFO, AUDIT_MARK + as_line(record))

    def progress(self, event: str, message: str, share: float) -> None:
        """Show or move the bar of an event; `share` is 0 to 1 of the way."""
        state = (one_line(message), round(min(max(share, 0.0), 1.0), 2) if math.isfinite(share) else 0.0)
        if self._shown.get(event) != state:
            self._shown[event] = state
            # in `ceph -s` too: settings on trial are what an operator wants to know of there
            # pairs, as the dashboard makes a dictionary of them: with anything else its /api/summary answers 500
            self._progress("update", event, state[0], state[1], refs=[("tuner", event)], add_to_ceph_s=True)

    def finished(self, event: str, failure: str = "") -> None:
        """Take the bar of an event away: it came to its end, or failed."""
        if self._shown.pop(event, None) is None:
            return
        if failure:
            self._progress("fail", event, one_line(failure))
        else:
            self._progress("complete", event)

    def counts(self) -> Dict[str, Any]:
        """What was announced since this mgr became the active one: `changes`, `rollbacks` by rule, `events` by kind."""
        return {
            "changes": self._events[APPLY],
            "rollbacks": dict(self._rollbacks),
            # all kinds, from 0 on: a counter that only appears with its first event hides that one from rates
            "events": {kind: self._events[kind] for kind in (*KINDS, *self._events)},
        }

    def _tell(self, channel: str, priority: Any, words: str) -> None:
        try:
            self._mgr.cluster_log(channel, priority, words)
        except Exception:
            self._log.warning("not in the cluster's log: %s", words, exc_info=True)

    def _count(self, record: AuditRecord) -> None:
        if record.refers:
            # the outcome of an act that was counted when it was announced
            return
        self._events[record.what] += 1
        if record.what == TAKEN_BACK:
            self._rollbacks[str(record.detail.get("rule") or "other")] += 1

    def _progress(self, method: str, *arguments: Any, **options: Any) -> None:
        try:
            self._mgr.remote("progress", method, *arguments, **options)
        except Exception as error:
            # disabled, missing or not ready: `ceph tuner auto explain` has it all the same
            self._log.debug("progress %s: %s", method, error)


def line(record: AuditRecord) -> str:
    """One line for people: number, kind, targets, what came of it, why, effects, who."""
    words = [f"tuner #{record.number}: {record.what}"]
    if record.refers:
        words.append(f" (of #{record.refers})")
    words.append(_targets(record.detail.get("targets")))
    if record.outcome:
        words.append(f" {record.outcome}")
    if record.why:
        words.append(f": {record.why}")
    effects = [text for text in map(_effect, _rows(record.detail.get("effects"))) if text]
    if effects:
        words.append(f" [{', '.join(effects)}]")
    return one_line("".join(words), LONGEST_LINE - 60) + f" (by {one_line(record.who, 50)})"


def _warns(record: AuditRecord) -> bool:
    """Whether somebody should look: a boost that ended as people wanted is no warning, another is."""
    early_end = record.what == BOOST_ENDED and record.detail.get("rule") not in (*AS_WANTED, None)
    return early_end or record.what in WARNINGS


def _targets(targets: Any) -> str:
    if not isinstance(targets, (list, tuple)) or not targets:
        return ""
    return f" on {first_of(map(str, targets), SHOWN_TARGETS)}"


def _rows(effects: Any) -> List[Mapping[str, Any]]:
    rows: Sequence[Any] = effects if isinstance(effects, (list, tuple)) else ()
    return [row for row in rows if isinstance(row, Mapping)]


def _effect(row: Mapping[str, Any]) -> Optional[str]:
    """An `Effect` in its plain form, as `client.p95_ms -20% (-30% to -9%)`."""
    change, low, high = (row.get(name) for name in ("change", "low", "high"))
    if not isinstance(change, (int, float)):
        return None
    ends = [f"{end:+.0%}" if isinstance(end, (int, float)) else "?" for end in (low, high)]
    return f"{row.get('metric')} {change:+.0%} ({ends[0]} to {ends[1]})"
