"""What Kubernetes and Prometheus ask a controller: whether it moves, whether it is ready, and its metrics."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from ceph_tuner import __version__
from ceph_tuner.controller.kinds import ALL
from ceph_tuner.controller.resource import Report
from ceph_tuner.core.bounded_http import TEXT, HttpPage
from ceph_tuner.core.measure.exported_metrics import PREFIX, labelled
from ceph_tuner.core.measure.prometheus_text import CONTENT_TYPE, Family, Series, prometheus_text

ALIVE_S = 300.0
"""A pass that takes longer hangs: each of its calls has 30 s."""
READY_S = 60.0

_FAMILIES = [
    Family("controller_build_info", "gauge", "version", "Always 1; the version of the controller."),
    Family("controller_leads", "gauge", "", "Whether this controller leads: 1 or 0."),
    Family("controller_resources", "gauge", "kind, ready, reason", "Resources by what their condition Ready says."),
    Family("controller_passes_total", "counter", "", "Passes over all resources."),
    Family("controller_pass_failures_total", "counter", "", "Passes that ended with an error."),
    Family("controller_pass_timestamp_seconds", "gauge", "", "When the last whole pass ended, since the epoch."),
    Family("controller_watch_failures_total", "counter", "kind", "Watches that broke off."),
    Family("controller_lease_transitions_total", "counter", "", "How often this controller began to lead."),
]
FAMILIES: Dict[str, Family] = {f"{PREFIX}{family.name}": family for family in _FAMILIES}
"""Every metric by its full name."""


@dataclass
class Vitals:
    """Counted by the controller's threads, read by those of the HTTP server."""

    monotonic: Callable[[], float]
    leads: bool = False
    passes: int = 0
    pass_failures: int = 0
    terms: int = 0
    last_pass: float = 0.0
    """Seconds since the epoch; 0 for never."""
    last_move: float = field(init=False)
    """When the main loop moved last, by the monotonic clock."""
    last_answer: float = float("-inf")
    """When the API server answered last."""
    problems: Tuple[str, ...] = ()
    """What the last pass failed of."""
    _reports: Mapping[Tuple[str, bool, str], int] = field(default_factory=dict)
    _watch_failures: Dict[str, int] = field(default_factory=dict)
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.last_move = self.monotonic()

    def count_reports(self, reports: Mapping[str, Sequence[Report]]) -> None:
        """Show what a pass has said, kind by kind."""
        counts: Dict[Tuple[str, bool, str], int] = {}
        for kind, of_kind in reports.items():
            for report in of_kind:
                key = (kind, report.ready.is_true, report.ready.reason)
                counts[key] = counts.get(key, 0) + 1
        self._reports = counts

    def count_watch_failure(self, kind: str) -> None:
        """Count a watch that broke off."""
        with self._counting:
            self._watch_failures[kind] = self._watch_failures.get(kind, 0) + 1

    def page(self, path: str) -> HttpPage:
        """What is answered at `/healthz`, `/readyz` and `/metrics`."""
        now = self.monotonic()
        if path == "/healthz":
            return _probe([f"no move for {ALIVE_S:g} s"] if now - self.last_move > ALIVE_S else [])
        if path == "/readyz":
            silent = now - self.last_answer > READY_S
            return _probe([f"the API server has not answered for {READY_S:g} s"] if silent else [])
        if path == "/metrics":
            return HttpPage(200, CONTENT_TYPE, prometheus_text(FAMILIES, self._series()))
        return HttpPage(404, TEXT, "ceph-tuner's controller answers at /healthz, /readyz and /metrics\n")

    def _series(self) -> Iterator[Series]:
        yield "controller_build_info", labelled(version=__version__), 1
        yield "controller_leads", (), self.leads
        for (name, ready, reason), count in self._reports.items():
            yield "controller_resources", labelled(kind=name, ready=str(ready).lower(), reason=reason), count
        yield "controller_passes_total", (), self.passes
        yield "controller_pass_failures_total", (), self.pass_failures
        yield "controller_pass_timestamp_seconds", (), self.last_pass or None
        for name in (kind.name for kind in ALL):
            yield "controller_watch_failures_total", labelled(kind=name), self._watch_failures.get(name, 0)
        yield "controller_lease_transitions_total", (), self.terms


def _probe(faults: List[str]) -> HttpPage:
    return HttpPage(503, TEXT, "".join(f"{fault}\n" for fault in faults)) if faults else HttpPage(200, TEXT, "ok\n")
