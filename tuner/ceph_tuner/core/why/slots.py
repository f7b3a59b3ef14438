"""Work that waits for a slot: recovery reservations, osd_max_scrubs, osd_max_trimming_pgs, room on the target."""

from __future__ import annotations

from typing import List, Optional, Set, Tuple

from ceph_tuner.core.knobs.catalogue import OVERRIDE
from ceph_tuner.core.knobs.scrub_slots import COUNTED_APART, SCRUBS_DEFAULT, forbidding_flag, scrub_slots_of
from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.facts import BACKFILL, RECOVERY, SCRUB, SNAPTRIM, OsdNow, PgNow, WhyFacts
from ceph_tuner.core.why.pg_cause import pg_cause
from ceph_tuner.core.why.work import TOO_FULL, judged, led, left, running, some_pgs, waiting
from ceph_tuner.core.wording import named

_STOPPED = {RECOVERY: {"norecover"}, BACKFILL: {"norecover", "nobackfill", "norebalance"}}


def reservations(facts: WhyFacts) -> List[Cause]:
    """PGs in recovery_wait or backfill_wait behind OSDs whose slots are all taken."""
    causes = []
    for work in (RECOVERY, BACKFILL):
        own = waiting(facts, work)
        full = {osd.id for osd in facts.osds if _is_full(osd.local) or _is_full(osd.remote)}
        own = [pg for pg in own if pg.osds & full]
        if own and not facts.flags & _STOPPED[work]:
            causes.append(_slots_cause(facts, work, own, full))
    return causes


def _is_full(slots: object) -> bool:
    most, holders = getattr(slots, "most", 0), getattr(slots, "holders", ())
    return 0 < most <= len(holders)


def _slots_cause(facts: WhyFacts, work: str, own: List[PgNow], full: Set[int]) -> Cause:
    first = min(full & frozenset().union(*(pg.osds for pg in own)))
    osd = facts.osd(first)
    slots = osd.local if osd and _is_full(osd.local) else osd.remote if osd else None
    holders = ", ".join(slots.holders[:3]) if slots else ""
    most = slots.most if slots else 0
    slots_text = (
        f"osd.{first}: {most} of {most} slots taken by {holders}, {len(slots.waiting) if slots else 0} PGs in line"
    )
    at_work = running(facts, work)
    return pg_cause(
        facts,
        "reservation-slots",
        work,
        own,
        judged(facts, left(facts, work)),
        f"{len(own)} PGs wait for a slot: osd_max_backfills is {most} and {named(full)} have none left",
        (
            Evidence(
                f"{len(own)} PGs in {work}_wait, {len(at_work)} at work: {some_pgs(own)}", f"ceph pg ls {work}_wait"
            ),
            Evidence(slots_text, f"ceph tell osd.{first} dump_recovery_reservations"),
        ),
        "More slots let more PGs recover at once, and take more from clients. Under mClock the override comes first.",
        (*_override(osd), f"ceph config set osd osd_max_backfills {most + 1}"),
        tuple(sorted(full)),
    )


def _override(osd: Optional[OsdNow]) -> Tuple[str, ...]:
    """Without it mClock takes `osd_max_backfills` back; wpq has no need of it, and releases before 17.2.6 have none."""
    options = osd.options if osd is not None else {}
    spare = options.get("osd_op_queue", "").startswith("wpq") or (options and OVERRIDE not in options)
    return () if spare else (f"ceph config set osd {OVERRIDE} true",)


def too_full(facts: WhyFacts) -> List[Cause]:
    """PGs whose target has no room."""
    causes = []
    for work, state in TOO_FULL.items():
        own = [pg for pg in facts.pgs if state in pg.states & pg.lasting]
        if own:
            causes.append(
                pg_cause(
                    facts,
                    "too-full",
                    work,
                    own,
                    left(facts, work),
                    f"{work.capitalize()} has no room on its target",
                    (Evidence(f"{len(own)} PGs in {state}: {some_pgs(own)}", f"ceph pg ls {state}"),),
                    "Make room: more OSDs, a better balance, or less data. No setting of mClock helps.",
                    ("ceph osd df tree",),
                )
            )
    return causes


def scrub_slots(facts: WhyFacts) -> List[Cause]:
    """Late PGs on OSDs that run as many scrubs as osd_max_scrubs permits."""
    at_work = running(facts, SCRUB)
    most = {osd.id: int(osd.number("osd_max_scrubs", SCRUBS_DEFAULT)) for osd in facts.osds if osd.options}
    apart = {osd.id for osd in facts.osds if osd.major >= COUNTED_APART}
    taken = scrub_slots_of(most, apart, [pg.acting for pg in at_work])
    own = [pg for pg in waiting(facts, SCRUB) if not _is_forbidden(facts, pg) and taken.hold(pg.acting)]
    if not own:
        return []
    full = taken.as_primary | taken.as_replica
    first = min({osd for pg in own for osd in taken.hold(pg.acting)})
    return [
        pg_cause(
            facts,
            "scrub-slots",
            SCRUB,
            own,
            judged(facts, left(facts, SCRUB)),
            f"{len(own)} late PGs wait for a slot: osd_max_scrubs is {most[first]}",
            (
                Evidence(
                    f"osd.{first}: {max(taken.loads[first])} of its PGs are scrubbed; osd_max_scrubs is {most[first]}",
                    f"ceph tell osd.{first} dump_scrub_reservations",
                ),
                Evidence(
                    f"{len(own)} PGs are late and wait, {len(at_work)} are scrubbed: {some_pgs(own)}", "ceph pg ls"
                ),
            ),
            "Permit more scrubs at a time, within what clients bear. `ceph-tuner scrub plan` says when all are done.",
            (f"ceph config set osd osd_max_scrubs {most[first] + 1}",),
            tuple(sorted(full)),
        )
    ]


def _is_forbidden(facts: WhyFacts, pg: PgNow) -> bool:
    """Whether a flag, of all or of its pool, lets the scrub that it waits for not begin, whoever has a slot."""
    pool = facts.pools.get(pg.pool)
    return forbidding_flag(pg.deep_late) in (facts.flags | (pool.flags if pool else frozenset()))


def snaptrim_slots(facts: WhyFacts) -> List[Cause]:
    """PGs in snaptrim_wait behind OSDs that trim as many as osd_max_trimming_pgs permits."""
    own, at_work = waiting(facts, SNAPTRIM), running(facts, SNAPTRIM)
    if not own or "nosnaptrim" in facts.flags:
        return []
    full = _trimming_fully(facts, at_work)
    own = [pg for pg in own if pg.acting and pg.acting[0] in dict(full)]
    if not own:
        return []
    most = full[0][1]
    queue = sum(pg.snaptrim_queue for pg in (*own, *at_work))
    return [
        pg_cause(
            facts,
            "snaptrim-slots",
            SNAPTRIM,
            own,
            led(facts, left(facts, SNAPTRIM)),
            f"{len(own)} PGs wait to be trimmed: osd_max_trimming_pgs is {most}",
            (
                Evidence(f"{len(own)} PGs in snaptrim_wait, {len(at_work)} in snaptrim", "ceph pg ls snaptrim_wait"),
                Evidence(f"{queue} snapshots in their queues", "ceph pg ls snaptrim snaptrim_wait"),
            ),
            "Trim more PGs at a time, within what clients bear.",
            (f"ceph config set osd osd_max_trimming_pgs {most + 1}",),
            tuple(osd for osd, _ in full),
        )
    ]


def _trimming_fully(facts: WhyFacts, at_work: List[PgNow]) -> List[Tuple[int, int]]:
    """OSD -> osd_max_trimming_pgs, of those whose primaries trim as many."""
    full = []
    for osd in facts.osds:
        most = int(osd.number("osd_max_trimming_pgs", 2.0))
        if osd.options and sum(pg.acting[:1] == (osd.id,) for pg in at_work) >= most:
            full.append((osd.id, most))
    return full
