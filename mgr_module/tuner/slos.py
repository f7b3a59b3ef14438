"""The cluster's SLO in the store: one document, changed objective by objective."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional

from ceph_tuner.errors import InputError
from ceph_tuner.metrics import Scope, parted, scoped
from ceph_tuner.ports import Store
from ceph_tuner.slo import Objective, Slo, parse_slo
from ceph_tuner.stored_slo import BASELINE, SLO_KEY, stored_baseline, stored_slo

DEFAULT_NAME = "cluster"


class SloBook:
    """Reads and writes the SLO."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> Optional[Slo]:
        """The SLO, or None."""
        return stored_slo(self._store)

    def baseline(self) -> Dict[str, float]:
        """What relative bounds refer to, as far as it was seen."""
        return stored_baseline(self._store)

    def refer(self, slo: Slo, means: Mapping[str, float], scope: Optional[Scope] = None) -> None:
        """Keep for good what the relative bounds of an SLO refer to, where it is seen for the first time.

        With a scope, the names of `slo` and `means` are those of a whole cluster, which the scope stands for.
        """
        known = self.baseline()
        relative = [
            objective.metric for objective in slo.objectives if objective.bound.relative and objective.metric in means
        ]
        named = {name if parted(name)[1] is not None else scoped(name, scope): means[name] for name in relative}
        new = {name: value for name, value in named.items() if name not in known}
        if new:
            self._store.set(BASELINE, json.dumps({**known, **new}))

    def replace(self, document: Any) -> Slo:
        """Take a whole SLO; its relative bounds refer to what is seen from now on."""
        slo = parse_slo(document, DEFAULT_NAME)
        self._forget(*self.baseline())
        self._write(slo)
        return slo

    def set(self, objective: Objective) -> Slo:
        """Add an objective, in place of the one about the same metric."""
        self._forget(objective.metric)
        known = self.read()
        kept = [other for other in known.objectives if other.metric != objective.metric] if known else []
        slo = Slo(known.name if known else DEFAULT_NAME, (*kept, objective))
        self._write(slo)
        return slo

    def remove(self, metric: str) -> Optional[Slo]:
        """Remove a metric's objectives, or `all`."""
        self._forget(*(self.baseline() if metric == "all" else [metric]))
        known = self.read() if metric != "all" else None
        if metric == "all":
            self._store.remove(SLO_KEY)
            return None
        kept = tuple(other for other in known.objectives if other.metric != metric) if known else ()
        if known is None or len(kept) == len(known.objectives):
            metrics = ", ".join(objective.metric for objective in known.objectives) if known else "no objective is set"
            raise InputError("slo rm", metric, f"a metric with an objective ({metrics}), or all")
        if not kept:
            self._store.remove(SLO_KEY)
            return None
        slo = Slo(known.name, kept)
        self._write(slo)
        return slo

    def _forget(self, *metrics: str) -> None:
        known = self.baseline()
        left = {name: value for name, value in known.items() if name not in metrics}
        if left != known:
            self._store.set(BASELINE, json.dumps(left))

    def _write(self, slo: Slo) -> None:
        self._store.set(SLO_KEY, json.dumps(slo.to_dict()))
