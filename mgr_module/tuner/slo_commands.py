"""What the commands `slo` do, as documents."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.slo import parse_objective
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.core.goals.week_ahead import week_ahead

from .policy_markers import PolicyMarkers
from .slos import DEFAULT_NAME, SloBook


class SloCommands:
    """Shows and changes the cluster's SLO. `date` gives seconds since the epoch."""

    def __init__(self, book: SloBook, store: Store, date: Callable[[], float]) -> None:
        self._book, self._store, self._date = book, store, date

    def document(self) -> Optional[Dict[str, Any]]:
        """The SLO, its calendar, the policy that holds, and notes; None without an SLO."""
        calendar = self._book.calendar()
        return None if calendar is None else self._shown(calendar, self._markers())

    def notes(self) -> List[str]:
        """What regimes of the book wait for in vain, by the current calendar. Raises TunerError."""
        return self._markers().never_on(self._book.current_calendar())

    def policy_in_force(self) -> Optional[Dict[str, Any]]:
        """Which policy of the calendar holds, until when, what it wants and lets run; None without a calendar."""
        return _policy_at(self._book.calendar(), self._date())

    def current_policy(self) -> Optional[Dict[str, Any]]:
        """The same by the current calendar; None also where that cannot be read."""
        try:
            return _policy_at(self._book.current_calendar(), self._date())
        except TunerError:
            return None

    def _markers(self) -> PolicyMarkers:
        return PolicyMarkers.stored(self._store)

    def _shown(self, calendar: SloCalendar, markers: PolicyMarkers) -> Dict[str, Any]:
        policy = _policy_at(calendar, self._date())
        return {**calendar.to_dict(), "policy": policy, "notes": markers.never_on(calendar)}

    def set(
        self, expression: str, soft: bool, priority: float, document: str, really: bool = False
    ) -> Optional[Dict[str, Any]]:
        """Add one objective, or take a whole document; one with a calendar is only shown, unless `really`."""
        if document:
            if expression:
                raise InputError("slo set", "an expression and a file", "one of them")
            try:
                replacement = read_json(document, "the SLO")
                # before it is written: what nobody could read must not hide that it is
                markers = self._markers()
                if not really:
                    calendar = parse_slo_calendar(replacement, DEFAULT_NAME)
                    if calendar.policies:
                        return {"week": week_ahead(calendar, self._date()), "notes": markers.never_on(calendar)}
                return self._shown(self._book.replace(replacement), markers)
            except ValueError as exc:
                raise InputError(
                    "slo set -i", "a file that is no JSON", "an SLO as JSON (ceph-tuner reads YAML)"
                ) from exc
        if not expression:
            raise InputError("slo set", "nothing", "an objective such as 'client.p95_ms<=80', or -i FILE")
        item = {"objective": expression, "hard": not soft, "priority": priority}
        objective = parse_objective(item, lambda *keys: " ".join(["slo set", *map(str, keys)]))
        markers = self._markers()
        return self._shown(self._book.set(objective), markers)

    def remove(self, metric: str) -> Optional[Dict[str, Any]]:
        """Remove a metric's objectives, or all; without any that are left there are notes alone, or None."""
        markers = self._markers()
        calendar = self._book.remove(metric)
        if calendar is not None:
            return self._shown(calendar, markers)
        notes = markers.never_on(None)
        return {"notes": notes} if notes else None


def _policy_at(calendar: Optional[SloCalendar], now: float) -> Optional[Dict[str, Any]]:
    if calendar is None or not calendar.policies:
        return None
    objectives = [objective.to_dict() for objective in calendar.at(now).objectives]
    return {
        "name": calendar.policy_at(now),
        "until": calendar.ends(now),
        "objectives": objectives,
        "boosts": list(calendar.boosts_at(now)),
    }
