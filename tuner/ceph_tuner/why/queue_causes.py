"""Work that is held in mClock's queue by values that a shard never learnt, or by what goes before it."""

from __future__ import annotations

from statistics import fmean
from typing import Dict, Iterable, List, Tuple

from ceph_tuner.doctor.finding import named
from ceph_tuner.doctor.shards import CURE, differing
from ceph_tuner.why.cause import Cause, Evidence
from ceph_tuner.why.client_wait import all_in_flight, client_wait
from ceph_tuner.why.facts import CLIENT, SERVICE_CLASS, WORKS, PgNow, WhyFacts
from ceph_tuner.why.limit_causes import limited
from ceph_tuner.why.work import matters, scheduled, together

LEAST_STRICT = 2.0
"""Items in the strict queue, in the mean, before others wait for it: replica writes pass through it all the time."""
MOST_OF_THE_TIME = 0.5


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
        held_share, own, osds = _waiting_in(facts, work, lines)
        if held_share > 0:
            evidence = [
                Evidence(f"osd.{osd}: {lines[osd][0]}", f"ceph tell osd.{osd} dump_op_pq_state") for osd in osds[:3]
            ]
            command = f"ceph config show osd.{osds[0]}"
            causes.append(
                Cause(
                    CURE,
                    work,
                    facts.pool_names(own),
                    f"Shards of {named(osds)} schedule {work} by other values than the OSD shows",
                    held_share,
                    float(len(own)) if work != CLIENT else _client_waiting(facts, osds),
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
    total, wait_count, osds = all_in_flight(facts.osds), 0.0, []
    for osd in facts.osds:
        wait = client_wait(osd)
        is_lasting = (
            osd.strict and fmean(osd.strict) >= LEAST_STRICT and fmean(map(bool, osd.strict)) > MOST_OF_THE_TIME
        )
        if is_lasting and wait.queued >= MOST_OF_THE_TIME and not any(limited(osd, SERVICE_CLASS[CLIENT])):
            wait_count += wait.in_flight * wait.queued
            osds.append(osd)
    if not osds or total <= 0 or wait_count < 1:
        return []
    worst = max(osds, key=lambda osd: fmean(osd.strict))
    own = [pg for pg in facts.pgs if pg.acting[:1] and pg.acting[0] in {osd.id for osd in osds}]
    lengths = ", ".join(map(str, worst.strict))
    shares = f"{client_wait(worst).queued:.0%} of clients' time on osd.{worst.id} passes in the queue"
    return [
        Cause(
            "strict-queue",
            CLIENT,
            facts.pool_names(own),
            f"Clients wait behind the strict queue of {named(osd.id for osd in osds)}: replica writes and the like",
            min(1.0, wait_count / total),
            wait_count,
            "operations",
            (
                Evidence(f"osd.{worst.id}: {lengths} items in the strict queue at {len(worst.strict)} looks",
                         f"ceph tell osd.{worst.id} dump_op_pq_state"),
                Evidence(shares, f"ceph tell osd.{worst.id} perf dump osd"),
            ),
            "No setting of mClock orders the strict queue. Spread primaries and PGs; on 20.2.3 and later, reads of "
            "erasure-coded recovery no longer go there.",
            (f"ceph osd primary-affinity osd.{worst.id} 0.5",),
            tuple(osd.id for osd in osds),
        )
    ]  # fmt: skip


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


def _waiting_in(facts: WhyFacts, work: str, osds: Iterable[int]) -> Tuple[float, List[PgNow], List[int]]:
    """Share of the looks at which the work waited on any of these OSDs, in which PGs, on which of them."""
    service_class = SERVICE_CLASS[work]
    waits = {
        osd.id: [count > 0 for count in osd.waiting(service_class)]
        for osd in facts.osds
        if osd.id in set(osds) and any(service_class == item.service_class for item in osd.served)
    }
    waits = {osd: looks for osd, looks in waits.items() if any(looks)}
    if not waits or not matters(facts, work):
        return 0.0, [], []
    if work == CLIENT:
        own = [pg for pg in facts.pgs if pg.acting and pg.acting[0] in waits]
        total = all_in_flight(facts.osds)
        return (min(1.0, _client_waiting(facts, list(waits)) / total) if total else 0.0), own, sorted(waits)
    at_work = scheduled(facts, work)
    own = [pg for pg in at_work if pg.osds & set(waits)]
    part = sum(together([waits[osd] for osd in pg.osds if osd in waits]) for pg in own)
    return (part / len(at_work) if at_work else 0.0), own, sorted(waits)


def _client_waiting(facts: WhyFacts, osds: List[int]) -> float:
    waits = [client_wait(osd) for osd in facts.osds if osd.id in osds]
    return sum(wait.in_flight * wait.queued for wait in waits)
