"""Scrubs that clients' writes stop: how much of what scrub may use goes into chunks that are begun anew."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts, OsdFacts
from ceph_tuner.doctor.finding import COSTLY, Finding

STOPS, LOST = 20, 0.2
"""From so many stopped chunks, and such a part lost, on there is a finding."""

_CHUNK, _LEAST_CHUNK = "osd_scrub_chunk_max", "osd_scrub_chunk_min"


def stopped_scrubs(facts: Facts) -> List[Finding]:
    """OSDs under mClock on whose PGs clients write to what is scrubbed."""
    copies = min((pool.size for pool in facts.pools if pool.size > 1), default=1)
    losing = [(osd, _lost(osd, copies, facts)) for osd in facts.looked_at if osd.queue == "mclock_scheduler"]
    losing = [(osd, lost) for osd, lost in losing if osd.chunks_stopped >= STOPS and lost >= LOST]
    if not losing:
        return []
    share = max(lost for _, lost in losing)
    least = max(osd.number(_LEAST_CHUNK, facts.default(_LEAST_CHUNK)) for osd, _ in losing)
    smaller = any(osd.number(_CHUNK, facts.default(_CHUNK)) > least for osd, _ in losing)
    return [
        Finding(
            "stopped-scrubs",
            COSTLY,
            "Clients' writes stop scrubs, which begin their chunks anew",
            some(
                f"osd.{osd.place.osd}: writes met {osd.chunks_stopped:.0f} chunks, while {osd.copies_scrubbed:.0f} "
                "copies of objects were scrubbed"
                for osd, _ in losing
            ),
            f"at least {share:.0%} of what scrub may use on {named(osd.place.osd for osd, _ in losing)} is lost: under "
            "mClock a chunk that is begun anew pays for a whole one at its replicas",
            f"Make chunks as small as they may be ({least:.0f} objects): they are met less often, and cost less."
            if smaller
            else "Scrub when clients write less (hours, days), or let writes wait for a scrub's chunk.",
            share=share,
            commands=(f"ceph config set osd {_CHUNK} {least:.0f}",)
            if smaller
            else ("ceph config set osd osd_scrub_max_preemptions 0",),
        )
    ]


def _lost(osd: OsdFacts, copies: int, facts: Facts) -> float:
    """The part that stopped chunks take, at least: what was scrubbed is taken for more objects than it can be."""
    paid = osd.chunks_stopped * osd.number(_CHUNK, facts.default(_CHUNK))
    return paid / (paid + osd.copies_scrubbed / copies) if paid else 0.0
