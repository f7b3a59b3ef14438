"""Where clients' operations spend their time on an OSD: in the queue, or in the store behind it."""

from __future__ import annotations

from statistics import fmean
from typing import Iterable, List, NamedTuple, Sequence

from ceph_tuner.core.why.facts import CLIENT, SERVICE_CLASS, OsdNow, PgNow, WhyFacts
from ceph_tuner.core.why.work import led


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
    if serves_nobody(osd):
        return ClientWait(in_queue, 1.0 if in_queue else 0.0)
    return ClientWait(max(total, in_queue), min(1.0, max(0.0, (total - process) / total)) if total > 0 else 0.0)


def serves_nobody(osd: OsdNow) -> bool:
    """Whether no client's operation ended on it between the two looks."""
    return osd.rises.get("osd.op_latency.count", 0.0) <= 0


class Held(NamedTuple):
    """What the queues of some OSDs hold of a kind of work."""

    share: float
    """Of what is under way, the part that waits there, 0 to 1."""
    waiting: float
    """How many operations of clients that is, in the mean; of other work, how many PGs."""
    pgs: List[PgNow]
    """Those that are concerned; of clients, the ones that these OSDs lead."""


def held_in_queues(facts: WhyFacts, osds: Sequence[OsdNow]) -> Held:
    """Tell what waits in the queues of these OSDs.

    Who gets no answer at all may send no more: where no client was served between the looks, all PGs that the OSD
    leads are held, however little waits.
    """
    total, waits = all_in_flight(facts.osds), [client_wait(osd) for osd in osds]
    waiting = sum(wait.in_flight * wait.queued for wait in waits)
    held_share = min(1.0, waiting / total) if total > 0 else 0.0
    primaries, listed = {osd.id for osd in osds}, led(facts, list(facts.pgs))
    if waiting and listed:
        unserved = {osd.id for osd in osds if serves_nobody(osd)}
        held_share = max(held_share, fmean(pg.acting[0] in unserved for pg in listed))
    return Held(held_share, waiting, [pg for pg in listed if pg.acting[0] in primaries])


def all_in_flight(osds: Iterable[OsdNow]) -> float:
    """Clients' operations under way on these OSDs."""
    return sum(client_wait(osd).in_flight for osd in osds)
