"""The cluster's SLO in the store: one document, changed objective by objective."""

from __future__ import annotations

import json
from typing import Any, Optional

from ceph_tuner.errors import InputError
from ceph_tuner.ports import Store
from ceph_tuner.slo import Objective, Slo, parse_slo

KEY = "slo"
DEFAULT_NAME = "cluster"


class SloBook:
    """Reads and writes the SLO."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> Optional[Slo]:
        """The SLO, or None."""
        text = self._store.get(KEY)
        if not text:
            return None
        try:
            document = json.loads(text)
        except ValueError as exc:
            raise InputError(
                "the stored SLO", "text that is no JSON", "`ceph tuner slo rm all`, then set it anew"
            ) from exc
        return parse_slo(document, place=_place)

    def replace(self, document: Any) -> Slo:
        """Take a whole SLO."""
        slo = parse_slo(document, DEFAULT_NAME)
        self._write(slo)
        return slo

    def set(self, objective: Objective) -> Slo:
        """Add an objective, in place of the one about the same metric."""
        known = self.read()
        kept = [other for other in known.objectives if other.metric != objective.metric] if known else []
        slo = Slo(known.name if known else DEFAULT_NAME, (*kept, objective))
        self._write(slo)
        return slo

    def remove(self, metric: str) -> Optional[Slo]:
        """Remove a metric's objectives, or `all`."""
        known = self.read() if metric != "all" else None
        if metric == "all":
            self._store.remove(KEY)
            return None
        kept = tuple(other for other in known.objectives if other.metric != metric) if known else ()
        if known is None or len(kept) == len(known.objectives):
            metrics = ", ".join(objective.metric for objective in known.objectives) if known else "no objective is set"
            raise InputError("slo rm", metric, f"a metric with an objective ({metrics}), or all")
        if not kept:
            self._store.remove(KEY)
            return None
        slo = Slo(known.name, kept)
        self._write(slo)
        return slo

    def _write(self, slo: Slo) -> None:
        self._store.set(KEY, json.dumps(slo.to_dict()))


def _place(*keys: object) -> str:
    return ".".join(["the stored SLO", *map(str, keys)])
