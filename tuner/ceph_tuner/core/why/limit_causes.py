"""Work that is held by its class's limit, and limits that are shares of a capacity that cannot be true."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List

from ceph_tuner.core.autopilot.capacity import BELIEVED, DEFAULTS, Stored
from ceph_tuner.core.autopilot.capacity import findings as capacity_doubts
from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.client_wait import Held, held_in_queues
from ceph_tuner.core.why.facts import CLIENT, SCRUB, SERVICE_CLASS, WORKS, OsdNow, WhyFacts
from ceph_tuner.core.why.work import matters, scheduled, together
from ceph_tuner.core.wording import named


def limited(osd: OsdNow, service_class: str) -> List[bool]:
    """Dump by dump: whether requests of the class wait for the limit's moment."""
    return [
        any(item.service_class == service_class and item.waiting and item.limit_ahead_s > 0 for item in dump)
        for dump in osd.queues
    ]


def limit(facts: WhyFacts) -> List[Cause]:
    """A limit holds a class, with values that its OSD shows and a capacity that is believable.

    It counts by what it withholds: one of 0.9 is reached by whatever runs, and takes a tenth away.
    """
    causes = _by_limit(
        facts, lambda osd, service_class: not _doubt(facts, osd) and not _is_stale(osd, service_class, "lim")
    )
    parts = {
        cause.work: max(_withheld(osd, SERVICE_CLASS[cause.work]) for osd in facts.osds if osd.id in cause.osds)
        for cause in causes
    }
    return [replace(cause, held=cause.held * parts[cause.work]) for cause in causes]


def wrong_capacity(facts: WhyFacts) -> List[Cause]:
    """A limit holds a class, as a share of a capacity that the OSD does not have."""
    causes = []
    for cause in _by_limit(facts, lambda osd, service_class: bool(_doubt(facts, osd))):
        first = facts.osd(cause.osds[0])
        if first is None:
            continue
        option = f"osd_mclock_max_capacity_iops_{first.kind}"
        evidence = Evidence(_doubt(facts, first), f"ceph config show osd.{first.id} {option}")
        causes.append(
            Cause(
                "capacity",
                cause.work,
                cause.pools,
                f"A limit holds {cause.work}, as a share of a wrong capacity of {named(cause.osds)}",
                cause.held,
                cause.waiting,
                cause.unit,
                (evidence, *cause.evidence),
                "Measure the capacity on an idle OSD, and store what it gives. Every share is a part of it.",
                (
                    f"ceph tell osd.{first.id} cache drop",
                    f"ceph tell osd.{first.id} bench 12288000 4096 4194304 100",
                    f"ceph config set osd.{first.id} {option} IOPS",
                ),
                cause.osds,
            )
        )
    return causes


def _by_limit(facts: WhyFacts, counts: Callable[[OsdNow, str], bool]) -> List[Cause]:
    causes = []
    for work in WORKS:
        service_class = SERVICE_CLASS[work]
        parts = {osd.id: limited(osd, service_class) for osd in facts.osds if counts(osd, service_class)}
        parts = {osd: part for osd, part in parts.items() if any(part)}
        if not parts or not matters(facts, work):
            continue
        if work == CLIENT:
            held = held_in_queues(facts, [osd for osd in facts.osds if osd.id in parts])
        else:
            at_work = scheduled(facts, work)
            own = [pg for pg in at_work if pg.osds & set(parts)]
            wait_count = sum(together([parts[osd] for osd in pg.osds if osd in parts]) for pg in own)
            held = Held(wait_count / len(at_work) if at_work else 0.0, wait_count, own)
        if held.share > 0:
            causes.append(_limit_cause(facts, work, held, sorted(parts)))
    return causes


def _withheld(osd: OsdNow, service_class: str) -> float:
    """Share of the capacity that the class's limit keeps from it."""
    return 1 - min(1.0, max(0.0, osd.number(f"osd_mclock_scheduler_{service_class}_lim", 1.0)))


def _limit_cause(facts: WhyFacts, work: str, held: Held, osds: List[int]) -> Cause:
    service_class = SERVICE_CLASS[work]
    worst = max((osd for osd in facts.osds if osd.id in osds), key=lambda osd: sum(limited(osd, service_class)))
    ahead = max(item.limit_ahead_s for dump in worst.queues for item in dump if item.service_class == service_class)
    option = f"osd_mclock_scheduler_{service_class}_lim"
    looks = limited(worst, service_class)
    return Cause(
        "limit",
        work,
        facts.pool_names(held.pgs),
        f"mClock's limit holds {work}: {option} is {worst.number(option):g} on {named(osds)}",
        held.share,
        held.waiting,
        "PGs" if work != CLIENT else "operations",
        (
            Evidence(
                f"osd.{worst.id}: at {sum(looks)} of {len(looks)} looks a request waited for the limit's moment, up to "
                f"{ahead:.2g} s ahead",
                f"ceph tell osd.{worst.id} dump_op_pq_state",
            ),
            Evidence(
                f"osd.{worst.id}: {option} is {worst.number(option):g}", f"ceph config show osd.{worst.id} {option}"
            ),
            *_removed_beside(worst, service_class),
        ),
        "Raise the limit, or choose a profile with a larger one. A limit is divided among the shards, and does not "
        "give away what others leave.",
        (f"ceph-tuner apply {'high_client_ops' if work == CLIENT else 'high_recovery_ops'} --cluster NAME",),
        tuple(osds),
    )


def _removed_beside(osd: OsdNow, service_class: str) -> List[Evidence]:
    """What else is in the best-effort class, and in no state of any PG: the deletion of PGs."""
    if not osd.removing or service_class != SERVICE_CLASS[SCRUB]:
        return []
    words = f"osd.{osd.id}: {osd.removing} PGs are being deleted, in the same class"
    return [Evidence(words, f"ceph tell osd.{osd.id} perf dump osd numpg_removing")]


def _doubt(facts: WhyFacts, osd: OsdNow) -> str:
    """Why its capacity is not believed; empty where nothing shows that."""
    if osd.capacity <= 0:
        return ""
    low, high = BELIEVED[osd.kind]
    if not low <= osd.capacity <= high:
        return f"osd.{osd.id} has {osd.capacity:g} IOPS, beyond what Ceph believes of a bench ({low:g} to {high:g})"
    capacities = [
        Stored(
            each.id,
            each.kind,
            each.capacity,
            "default" if each.capacity == DEFAULTS[each.kind] else f"osd.{each.id}",
            each.place.device_class,
            each.rate("osd.op_w") + each.rate("osd.subop_w"),
        )
        for each in facts.osds
        if each.capacity > 0
    ]
    doubts = [doubt for doubt in capacity_doubts(capacities) if doubt.osd == osd.id and doubt.rule != "unmeasured"]
    return doubts[0].words if doubts else ""


def _is_stale(osd: OsdNow, service_class: str, part: str) -> bool:
    """Whether the class has a limit in a shard where its OSD shows none."""
    return osd.number(f"osd_mclock_scheduler_{service_class}_{part}") == 0 and bool(osd.options)
