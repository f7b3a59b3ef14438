"""The cluster's SLO in the store: one document, changed objective by objective."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from itertools import count
from typing import Any, Callable, Dict, Mapping, Optional

from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.slo import Objective, Slo, parse_slo
from ceph_tuner.core.goals.stored_slo import BASELINE, SLO_KEY, stored_baseline, stored_slo
from ceph_tuner.core.measure.metrics import Scope, parted, scoped

DEFAULT_NAME = "cluster"
CURRENT_S = 5.0
"""Age of the last answer up to which it is the current one, where no sample came."""


@dataclass(frozen=True)
class _Answer:
    """What the store said, or why it did not."""

    interval: int
    at: float
    slo: Optional[Slo] = None
    fault: Optional[TunerError] = None


class SloBook:
    """Reads and writes the SLO. Any thread may call."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._now = store, now
        self._reading = threading.Lock()
        self._numbers = count(1)
        self._interval = 0
        """Another number after each sample and each write."""
        self._answer: Optional[_Answer] = None

    def read(self) -> Optional[Slo]:
        """The SLO as it is now, or None. Raises TunerError."""
        return stored_slo(self._store)

    def current(self) -> Optional[Slo]:
        """The SLO as whoever asked first in this interval read it: one read for all. Raises TunerError.

        A read that fails fails all who waited for it; who asks later reads again. What this mgr writes begins an
        interval; what others write is there after the next sample, or CURRENT_S.
        """
        begun = self._now()
        with self._reading:
            answer = self._answer
            if answer is None or not self._serves(answer, begun):
                answer = self._answer = self._ask()
        if answer.fault is not None:
            raise answer.fault
        return answer.slo

    def begin_interval(self) -> None:
        """Read it anew for the next who asks for the current one."""
        self._interval = next(self._numbers)

    def _serves(self, answer: _Answer, begun: float) -> bool:
        """Whether an answer is for one who has waited since `begun`."""
        if answer.fault is not None:
            return begun <= answer.at
        return answer.interval == self._interval and 0 <= self._now() - answer.at < CURRENT_S

    def _ask(self) -> _Answer:
        # before it is read: what is written meanwhile makes another interval
        interval = self._interval
        try:
            slo = self.read()
            return _Answer(interval, self._now(), slo)
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
        named = {name if parted(name)[1] is not None else scoped(name, scope): means[name] for name in relative}
        new = {name: value for name, value in named.items() if name not in baseline}
        if new:
            self._store.set(BASELINE, json.dumps({**baseline, **new}))

    def replace(self, document: Any) -> Slo:
        """Take a whole SLO; its relative bounds refer to what is seen from now on."""
        slo = parse_slo(document, DEFAULT_NAME)
        self._forget(*self.baseline())
        self._write(slo)
        return slo

    def set(self, objective: Objective) -> Slo:
        """Add an objective, in place of the one about the same metric."""
        self._forget(objective.metric)
        before = self.read()
        kept = [other for other in before.objectives if other.metric != objective.metric] if before else []
        slo = Slo(before.name if before else DEFAULT_NAME, (*kept, objective))
        self._write(slo)
        return slo

    def remove(self, metric: str) -> Optional[Slo]:
        """Remove a metric's objectives, or `all`."""
        self._forget(*(self.baseline() if metric == "all" else [metric]))
        before = self.read() if metric != "all" else None
        if metric == "all":
            self._write(None)
            return None
        kept = tuple(other for other in before.objectives if other.metric != metric) if before else ()
        if before is None or len(kept) == len(before.objectives):
            metrics = (
                ", ".join(objective.metric for objective in before.objectives) if before else "no objective is set"
            )
            raise InputError("slo rm", metric, f"a metric with an objective ({metrics}), or all")
        if not kept:
            self._write(None)
            return None
        slo = Slo(before.name, kept)
        self._write(slo)
        return slo

    def _forget(self, *metrics: str) -> None:
        baseline = self.baseline()
        left = {name: value for name, value in baseline.items() if name not in metrics}
        if left != baseline:
            self._store.set(BASELINE, json.dumps(left))

    def _write(self, slo: Optional[Slo]) -> None:
        try:
            if slo is None:
                self._store.remove(SLO_KEY)
            else:
                self._store.set(SLO_KEY, json.dumps(slo.to_dict()))
        finally:
            # also where no answer came: it may be written
            self.begin_interval()
