"""Where clients' operations spend their time on an OSD: in the queue, or in the store behind it."""

from __future__ import annotations

from statistics import fmean
from typing import Iterable, NamedTuple

from ceph_tuner.why.facts import CLIENT, SERVICE_CLASS, OsdNow


class ClientWait(NamedTuple):
    """Of one OSD, as a primary, between the two looks."""

    in_flight: float
    """Operations under way in the mean (Little's law: their times, added up, by the time that passed)."""
    queued: float
    """Share of their time before they left the queue, 0 to 1."""


def client_wait(osd: OsdNow) -> ClientWait:
    """Read it out of the counters; what waits and was never served shows in the dumps of the queue alone."""
    queue_lengths = osd.waiting(SERVICE_CLASS[CLIENT])
    in_queue = fmean(queue_lengths) if queue_lengths else 0.0
    total, process = osd.rate("osd.op_latency.sum"), osd.rate("osd.op_process_latency.sum")
    if osd.rises.get("osd.op_latency.count", 0.0) <= 0:
        return ClientWait(in_queue, 1.0 if in_queue else 0.0)
    return ClientWait(max(total, in_queue), min(1.0, max(0.0, (total - process) / total)) if total > 0 else 0.0)


def all_in_flight(osds: Iterable[OsdNow]) -> float:
    """Clients' operations under way on these OSDs."""
    return sum(client_wait(osd).in_flight for osd in osds)
