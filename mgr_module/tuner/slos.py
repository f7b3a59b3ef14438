"""The cluster's SLO in the store: one document, changed objective by objective."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple

from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.slo import Objective, Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.core.goals.stored_slo import BASELINE, SLO_KEY, store_slo, stored_baseline, stored_calendar
from ceph_tuner.core.measure.metrics import Scope, parted, scoped
from ceph_tuner.core.moments import utc_minute

DEFAULT_NAME = "cluster"
CURRENT_S = 5.0
"""Age of the last answer up to which it is the current one, where no sample came."""


@dataclass(frozen=True)
class _Answer:
    """What the store said, or why it did not."""

    interval: int
    at: float
    calendar: Optional[SloCalendar] = None
    fault: Optional[TunerError] = None


class SloBook:
    """Reads and writes the SLO. Any thread may call."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], float] = time.monotonic,
        date: Callable[[], float] = time.time,
    ) -> None:
        """`date` gives the seconds since the epoch, by which policies hold."""
        self._store, self._now, self._date = store, now, date
        self._reading = threading.Lock()
        self._numbers = count(1)
        self._interval = 0
        """Another number after each sample and each write."""
        self._answer: Optional[_Answer] = None
        self._seen: Optional[_Answer] = None
        """The newest that is no mere silence of the monitors, or what was written since."""

    def read(self) -> Optional[Slo]:
        """What is wanted now, or None. Raises TunerError."""
        calendar = self.calendar()
        return None if calendar is None else calendar.at(self._date())

    def calendar(self) -> Optional[SloCalendar]:
        """What is wanted and when, as it is stored now, or None. Raises TunerError."""
        return stored_calendar(self._store)

    def current(self) -> Optional[Slo]:
        """What is wanted now, by the current calendar. Raises TunerError."""
        calendar = self.current_calendar()
        return None if calendar is None else calendar.at(self._date())

    def policy(self) -> Tuple[str, Optional[float]]:
        """Name of the policy that holds now, and when another one takes over (None: not within a year).

        The name is empty where nothing depends on the time. Raises TunerError.
        """
        calendar, now = self.current_calendar(), self._date()
        if calendar is None or not calendar.policies:
            return "", None
        return calendar.policy_at(now), calendar.ends(now)

    def boost_refusal(self, kind: str) -> str:
        """Why no boost of this kind may run now, and until when; empty where it may. Raises TunerError."""
        calendar, now = self.current_calendar(), self._date()
        if calendar is None or kind in calendar.boosts_at(now):
            return ""
        again = calendar.boost_again(kind, now)
        until = "for more than a year" if again is None else f"until {utc_minute(again)}"
        return f"the policy {calendar.policy_at(now)} of the calendar lets no boost of {kind} run, {until}"

    def boost_forbidden_at(self, kind: str) -> Tuple[str, Optional[int]]:
        """The policy that will let a boost of this kind run no more, and when it begins. Raises TunerError."""
        calendar = self.current_calendar()
        end = None if calendar is None else calendar.boost_ends(kind, self._date())
        return ("", None) if calendar is None or end is None else (calendar.policy_at(end), end)

    def current_calendar(self) -> Optional[SloCalendar]:
        """The calendar as whoever asked first in this interval read it: one read for all. Raises TunerError.

        A read that fails fails all who waited for it; who asks later reads again. What this mgr writes begins an
        interval; what others write is there after the next sample, or CURRENT_S.
        """
        start = self._now()
        with self._reading:
            answer = self._answer
            if answer is None or not self._serves(answer, start):
                answer = self._answer = self._ask()
        if answer.fault is None or isinstance(answer.fault, InputError):
            self._seen = answer
        if answer.fault is not None:
            raise answer.fault
        return answer.calendar

    def policy_seen(self, at: float) -> Optional[str]:
        """Name of the policy that holds at a moment, by what is known: it waits for nothing.

        Empty where nothing depends on the time; None where nobody has read it yet, or could.
        """
        seen = self._seen
        if seen is None or seen.fault is not None:
            return None
        return seen.calendar.policy_at(at) if seen.calendar is not None and seen.calendar.policies else ""

    def policy_names_seen(self) -> Optional[Tuple[str, ...]]:
        """Policies of the calendar, by what is known; None where nobody has read it yet, or could."""
        seen = self._seen
        if seen is None or seen.fault is not None:
            return None
        return seen.calendar.policy_names if seen.calendar is not None else ()

    def policies_seen(self, at: float) -> Dict[str, bool]:
        """Whether each policy of the calendar holds at a moment, by what is known; empty without a calendar."""
        calendar = self._calendar_seen
        if calendar is None:
            return {}
        holds = calendar.policy_at(at)
        return {name: name == holds for name in calendar.policy_names}

    def turns_seen(self, policies: Iterable[str], at: float) -> Dict[str, Optional[float]]:
        """Of those policies that there are, when each begins, or ends where it holds, by what is known.

        None: not within a year.
        """
        calendar = self._calendar_seen
        if calendar is None:
            return {}
        return {name: calendar.turns(name, at) for name in policies if name in calendar.policy_names}

    @property
    def _calendar_seen(self) -> Optional[SloCalendar]:
        """The calendar by what is known; None also where nobody has read it yet, or could."""
        return self._seen.calendar if self._seen is not None else None

    def damage(self) -> str:
        """Why what is stored cannot be read; empty where it can, and where nobody could look."""
        try:
            self.current_calendar()
        except InputError as fault:
            return str(fault)
        except TunerError:
            pass
        return ""

    def begin_interval(self) -> None:
        """Read it anew for the next who asks for the current one."""
        self._interval = next(self._numbers)

    def _serves(self, answer: _Answer, start: float) -> bool:
        """Whether an answer is for one who has waited since `start`."""
        if answer.fault is not None:
            return start <= answer.at
        return answer.interval == self._interval and 0 <= self._now() - answer.at < CURRENT_S

    def _ask(self) -> _Answer:
        # before it is read: what is written meanwhile makes another interval
        interval = self._interval
        try:
            calendar = self.calendar()
            return _Answer(interval, self._now(), calendar)
        except TunerError as fault:
            return _Answer(interval, self._now(), fault=fault)

    def baseline(self) -> Dict[str, float]:
        """What relative bounds refer to, as far as it was seen."""
        return stored_baseline(self._store)

    def refer(self, slo: Slo, means: Mapping[str, float], scope: Optional[Scope] = None) -> None:
        """Keep for good what the relative bounds of an SLO refer to, where it is seen for the first time.

        With a scope, the names of `slo` and `means` are those of a whole cluster, which the scope stands for.
        """
        baseline = self.baseline()
        relative = [
            objective.metric for objective in slo.objectives if objective.bound.relative and objective.metric in means
        ]
        references = {name if parted(name)[1] is not None else scoped(name, scope): means[name] for name in relative}
        new = {name: value for name, value in references.items() if name not in baseline}
        if new:
            self._store.set(BASELINE, json.dumps({**baseline, **new}))

    def replace(self, document: Any) -> SloCalendar:
        """Take a whole SLO; its relative bounds refer to what is seen from now on."""
        calendar = parse_slo_calendar(document, DEFAULT_NAME)
        self._forget(*self.baseline())
        self._write(calendar, anew=True)
        return calendar

    def set(self, objective: Objective) -> SloCalendar:
        """Add an objective to those that hold outside of all policies, in place of the one about the same metric."""
        self._forget(objective.metric)
        before = self.calendar()
        others = [other for other in before.base.objectives if other.metric != objective.metric] if before else []
        base = Slo(before.name if before else DEFAULT_NAME, (*others, objective), before.base.goal if before else None)
        calendar = SloCalendar(base) if before is None else replace(before, base=base)
        self._write(calendar)
        return calendar

    def remove(self, metric: str) -> Optional[SloCalendar]:
        """Remove a metric's objectives, or `all`; those of policies are removed with `all` alone."""
        before = self.calendar() if metric != "all" else None
        calendar = _without(before, metric) if metric != "all" else None
        self._forget(*(self.baseline() if metric == "all" else [metric]))
        self._write(calendar)
        return calendar

    def _forget(self, *metrics: str) -> None:
        baseline = self.baseline()
        rest = {name: value for name, value in baseline.items() if name not in metrics}
        if rest != baseline:
            self._store.set(BASELINE, json.dumps(rest))

    def _write(self, calendar: Optional[SloCalendar], anew: bool = False) -> None:
        try:
            if calendar is None:
                self._store.remove(SLO_KEY)
            else:
                store_slo(self._store, calendar, anew)
            self._seen = _Answer(self._interval, self._now(), calendar)
        finally:
            # also where no answer came: it may be written
            self.begin_interval()


def _without(before: Optional[SloCalendar], metric: str) -> Optional[SloCalendar]:
    """What is left without a metric's objectives; None where that is nothing. Raises InputError."""
    objectives = before.base.objectives if before is not None else ()
    rest = tuple(other for other in objectives if other.metric != metric)
    if before is None or len(rest) == len(objectives):
        metrics = ", ".join(objective.metric for objective in objectives) or "no objective is set"
        raise InputError("slo rm", metric, f"a metric with an objective ({metrics}), or all")
    for policy in before.policies:
        if metric in policy.without or not rest:
            raise InputError("slo rm", metric, f"one that the policy {policy.name} does not build on, or all")
    return replace(before, base=replace(before.base, objectives=rest)) if rest else None
