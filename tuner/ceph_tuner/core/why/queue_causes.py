"""Work that is held in an OSD's queue: by values that a shard never learnt, by what goes before it, by its threads."""

from __future__ import annotations

from statistics import fmean
from typing import Dict, Iterable, List, Tuple

from ceph_tuner.core.measure.stale_shards import CURE, differing
from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.client_wait import Held, client_wait, held_in_queues, serves_nobody
from ceph_tuner.core.why.facts import CLIENT, SERVICE_CLASS, WORKS, OsdNow, WhyFacts
from ceph_tuner.core.why.limit_causes import limited
from ceph_tuner.core.why.work import matters, scheduled, together
from ceph_tuner.core.wording import named

LEAST_STRICT = 2.0
"""Items in the strict queue, in the mean, before others wait for it: replica writes pass through it all the time."""
MOST_OF_THE_TIME = 0.5
THREADS_BUSY = 0.75
"""Share of the threads' time in reads from which they are what is short."""

MORE_THREADS = (
    "With more shards, or threads for each (osd_op_num_shards, osd_op_num_threads_per_shard), the drive has more to do "
    "at once; OSDs take them when they start. Writes of parts of 4 KiB blocks are what makes writes read."
)


def stale_shards(facts: WhyFacts) -> List[Cause]:
    """Shards that schedule by other values than their OSD shows, while work waits in them."""
    lines: Dict[int, List[str]] = {}
    for osd in facts.osds:
        if osd.options:
            words = differing(osd.served, osd.number)
            if words:
                lines[osd.id] = words
    causes = []
    for work in WORKS:
        held, osds = _waiting_in(facts, work, lines)
        if held.share > 0:
            evidence = [
                Evidence(f"osd.{osd}: {lines[osd][0]}", f"ceph tell osd.{osd} dump_op_pq_state") for osd in osds[:3]
            ]
            command = f"ceph config show osd.{osds[0]}"
            causes.append(
                Cause(
                    CURE,
                    work,
                    facts.pool_names(held.pgs),
                    f"Shards of {named(osds)} schedule {work} by other values than the OSD shows",
                    held.share,
                    held.waiting,
                    "PGs" if work != CLIENT else "operations",
                    (*evidence, Evidence(f"{command} has the values that were set, and not those in force", command)),
                    "Make every shard read its values again; no setting changes.",
                    (f"ceph-tuner doctor --cluster NAME --cure {CURE} --yes",),
                    tuple(osds),
                )
            )
    return causes


def strict_queue(facts: WhyFacts) -> List[Cause]:
    """Clients' operations wait behind a strict queue that does not empty."""
    osds = [osd for osd in facts.osds if _has_strict_line(osd) and _clients_queue(osd)]
    held = held_in_queues(facts, osds)
    if held.waiting < 1:
        return []
    worst = max(osds, key=lambda osd: fmean(osd.strict))
    lengths = ", ".join(map(str, worst.strict))
    threads = [_threads_evidence(worst)] if _threads_busy(worst) else []
    return [
        Cause(
            "strict-queue",
            CLIENT,
            facts.pool_names(held.pgs),
            f"Clients wait behind the strict queue of {named(osd.id for osd in osds)}: replica writes and the like",
            held.share,
            held.waiting,
            "operations",
            (
                Evidence(f"osd.{worst.id}: {lengths} items in the strict queue at {len(worst.strict)} looks",
                         f"ceph tell osd.{worst.id} dump_op_pq_state"),
                _queue_evidence(worst),
                *threads,
            ),
            "No setting of mClock orders the strict queue. Spread primaries and PGs; on 20.2.3 and later, reads of "
            "erasure-coded recovery no longer go there." + (f" {MORE_THREADS}" if threads else ""),
            (f"ceph osd primary-affinity osd.{worst.id} 0.5",),
            tuple(osd.id for osd in osds),
        )
    ]  # fmt: skip


def op_threads(facts: WhyFacts) -> List[Cause]:
    """Clients' operations wait for a thread, and all threads wait for reads: the drive has no more of these at once."""
    osds = [osd for osd in facts.osds if _threads_busy(osd) and _clients_queue(osd) and not _has_strict_line(osd)]
    held = held_in_queues(facts, osds)
    if held.waiting < 1:
        return []
    worst = max(osds, key=_thread_use)
    return [
        Cause(
            "op-threads",
            CLIENT,
            facts.pool_names(held.pgs),
            f"All threads of {named(osd.id for osd in osds)} wait for reads, and clients wait for a thread",
            held.share,
            held.waiting,
            "operations",
            (_threads_evidence(worst), _queue_evidence(worst)),
            MORE_THREADS,
            (f"ceph config show osd.{worst.id} osd_op_num_shards_{worst.kind}",),
            tuple(osd.id for osd in osds),
        )
    ]


def _has_strict_line(osd: OsdNow) -> bool:
    lengths = osd.strict
    return bool(lengths) and fmean(lengths) >= LEAST_STRICT and fmean(map(bool, lengths)) > MOST_OF_THE_TIME


def _clients_queue(osd: OsdNow) -> bool:
    """Whether clients' operations spend their time in the queue, and no limit holds them there."""
    return client_wait(osd).queued >= MOST_OF_THE_TIME and not any(limited(osd, SERVICE_CLASS[CLIENT]))


def _threads(osd: OsdNow) -> int:
    """Threads of all its shards; 0 where that is not known."""
    names = ("osd_op_num_shards", "osd_op_num_threads_per_shard")
    shards, threads = (osd.number(name) or osd.number(f"{name}_{osd.kind}") for name in names)
    return int(shards * threads)


def _thread_use(osd: OsdNow) -> float:
    """Share of its threads' time in which they wait for reads, also of the rest of blocks that are written in part."""
    threads = _threads(osd)
    return osd.rate("bluestore.read_wait_aio_lat.sum") / threads if threads else 0.0


def _threads_busy(osd: OsdNow) -> bool:
    # a hard disk has one head: its threads are enough for it
    return osd.kind == "ssd" and _thread_use(osd) >= THREADS_BUSY


def _threads_evidence(osd: OsdNow) -> Evidence:
    reads, most = osd.rate("bluestore.read_wait_aio_lat.count"), _threads(osd)
    return Evidence(
        f"osd.{osd.id}: its threads wait for reads in {_thread_use(osd):.0%} of their time, {reads:.3g} a second; the "
        f"drive never has more than {most} at once",
        f"ceph tell osd.{osd.id} perf dump bluestore",
    )


def _queue_evidence(osd: OsdNow) -> Evidence:
    unserved = "; none of them was served between the looks" if serves_nobody(osd) else ""
    return Evidence(
        f"{client_wait(osd).queued:.0%} of clients' time on osd.{osd.id} passes in the queue{unserved}",
        f"ceph tell osd.{osd.id} perf dump osd",
    )


def share(facts: WhyFacts) -> List[Cause]:
    """Background work that waits for its turn, with no limit in force, while clients are served."""
    causes = []
    for work in WORKS[1:]:
        service_class, at_work = SERVICE_CLASS[work], scheduled(facts, work)
        if not matters(facts, work):
            continue
        waits = {
            osd.id: fmean(count > 0 for count in counts)
            for osd in facts.osds
            if (counts := osd.waiting(service_class))
            and not any(limited(osd, service_class))
            and osd.rate("osd.op") > 1
        }
        own = [(pg, max(waits.get(osd, 0.0) for osd in pg.osds)) for pg in at_work if pg.osds & set(waits)]
        held_share = sum(part for _, part in own) / len(at_work) if at_work else 0.0
        if held_share < MOST_OF_THE_TIME:
            continue
        worst = max(waits, key=lambda osd: waits[osd])
        osd = facts.osd(worst)
        prefix = f"osd_mclock_scheduler_{service_class}"
        values = [f"{part} {osd.number(f'{prefix}_{part}'):g}" for part in ("res", "wgt", "lim")] if osd else []
        lengths = ", ".join(map(str, osd.waiting(service_class))) if osd else ""
        causes.append(
            Cause(
                "share",
                work,
                facts.pool_names([pg for pg, _ in own]),
                f"{work.capitalize()} waits for its share beside clients",
                held_share,
                held_share * len(at_work),
                "PGs",
                (
                    Evidence(f"osd.{worst}: {lengths} requests of {service_class} wait, for no limit",
                             f"ceph tell osd.{worst} dump_op_pq_state"),
                    Evidence(f"osd.{worst}: {', '.join(values)}", f"ceph config show osd.{worst} {prefix}_res"),
                ),
                "A larger reservation or weight of this class takes from the others: compare profiles first.",
                ("ceph-tuner apply high_recovery_ops --cluster NAME",),
                tuple(osd for osd, part in waits.items() if part >= MOST_OF_THE_TIME),
            )
        )  # fmt: skip
    return causes


def _waiting_in(facts: WhyFacts, work: str, osds: Iterable[int]) -> Tuple[Held, List[int]]:
    """What of the work waits on any of these OSDs: the share, by the looks; how much; and on which of them."""
    service_class = SERVICE_CLASS[work]
    waits = {
        osd.id: [count > 0 for count in osd.waiting(service_class)]
        for osd in facts.osds
        if osd.id in set(osds) and any(service_class == item.service_class for item in osd.served)
    }
    waits = {osd: looks for osd, looks in waits.items() if any(looks)}
    if not waits or not matters(facts, work):
        return Held(0.0, 0.0, []), []
    if work == CLIENT:
        return held_in_queues(facts, [osd for osd in facts.osds if osd.id in waits]), sorted(waits)
    at_work = scheduled(facts, work)
    own = [pg for pg in at_work if pg.osds & set(waits)]
    part = sum(together([waits[osd] for osd in pg.osds if osd in waits]) for pg in own)
    return Held(part / len(at_work) if at_work else 0.0, float(len(own)), own), sorted(waits)
