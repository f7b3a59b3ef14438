"""Scrubs whose chunks clients' writes preempt: the PGs are at it, and get on slowly."""

from __future__ import annotations

from typing import Dict, List, Mapping

from ceph_tuner.core.knobs.scrub_chunks import CHUNK, LEAST_CHUNK, LEAST_LOST, lost_share, smaller_chunks
from ceph_tuner.core.measure.osd_documents import preempted_chunks, scrubbed_copies
from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.facts import SCRUB, OsdNow, WhyFacts
from ceph_tuner.core.why.work import led, matters, running, some_pgs
from ceph_tuner.core.wording import named

FEWEST = 3
"""Chunks of an OSD between the looks below which it is chance."""


def stopped_scrubs(facts: WhyFacts) -> List[Cause]:
    """PGs that are deep-scrubbed while others are late, by what their primaries lose; Reef counts nothing of it."""
    at_work = led(facts, [pg for pg in running(facts, SCRUB) if "deep" in pg.states])
    losses: Dict[int, float] = {}
    for osd in facts.osds:
        copies = min((len(pg.acting) for pg in at_work if pg.acting[0] == osd.id), default=0)
        known = osd.number(CHUNK) >= osd.number(LEAST_CHUNK) > 0
        if copies and known and osd.options.get("osd_op_queue") == "mclock_scheduler":
            losses[osd.id] = _lost(osd, copies)
    losses = {osd: lost for osd, lost in losses.items() if lost >= LEAST_LOST}
    if not losses or not matters(facts, SCRUB):
        return []
    own = [pg for pg in at_work if pg.acting[0] in losses]
    worst = max((osd for osd in facts.osds if osd.id in losses), key=lambda osd: losses[osd.id])
    cure, commands = smaller_chunks(worst.number(CHUNK), worst.number(LEAST_CHUNK))
    counts = _scrub_counts(worst)
    return [
        Cause(
            "stopped-scrubs",
            SCRUB,
            facts.pool_names(own),
            f"Clients' writes stop scrubs on {named(losses)}, which begin their chunks anew",
            sum(losses[pg.acting[0]] for pg in own) / len(at_work),
            float(len(own)),
            "PGs",
            (
                Evidence(
                    f"osd.{worst.id}: writes preempted {preempted_chunks(counts):.0f} chunks in {worst.seconds:.0f} s, "
                    f"while {scrubbed_copies(counts):.0f} copies of objects were scrubbed",
                    f"ceph tell osd.{worst.id} perf dump osd",
                ),
                Evidence(
                    f"osd.{worst.id}: {CHUNK} {worst.number(CHUNK):.0f}; a chunk that is begun anew pays "
                    f"for as many objects on each replica; {len(own)} PGs are scrubbed: {some_pgs(own)}",
                    f"ceph config show osd.{worst.id} {CHUNK}",
                ),
            ),
            cure,
            commands,
            tuple(losses),
        )
    ]


def _lost(osd: OsdNow, copies: int) -> float:
    counts = _scrub_counts(osd)
    chunks = preempted_chunks(counts)
    return lost_share(chunks, osd.number(CHUNK), scrubbed_copies(counts) / copies) if chunks >= FEWEST else 0.0


def _scrub_counts(osd: OsdNow) -> Mapping[str, float]:
    return {name.partition(".")[2]: rise for name, rise in osd.rises.items() if name.startswith("osd.scrub_")}
