"""Scrubs that clients' writes stop: how much of what scrub may use goes into chunks that are begun anew."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.knobs.scrub_chunks import CHUNK, LEAST_CHUNK, LEAST_LOST, lost_share, smaller_chunks
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts, OsdFacts
from ceph_tuner.doctor.finding import COSTLY, Finding

STOPS = 20
"""From so many stopped chunks on there is a finding, where their loss is worth it."""


def stopped_scrubs(facts: Facts) -> List[Finding]:
    """OSDs under mClock on whose PGs clients write to what is scrubbed."""
    copies = min((pool.size for pool in facts.pools if pool.size > 1), default=1)
    losing = [(osd, _lost(osd, copies, facts)) for osd in facts.looked_at if osd.queue == "mclock_scheduler"]
    losing = [(osd, lost) for osd, lost in losing if osd.chunks_stopped >= STOPS and lost >= LEAST_LOST]
    if not losing:
        return []
    share = max(lost for _, lost in losing)
    chunk, least = (max(osd.number(name, facts.default(name)) for osd, _ in losing) for name in (CHUNK, LEAST_CHUNK))
    cure, commands = smaller_chunks(chunk, least)
    return [
        Finding(
            "stopped-scrubs",
            COSTLY,
            "Clients' writes stop scrubs, which begin their chunks anew",
            some(
                f"osd.{osd.place.osd}: writes preempted {osd.chunks_stopped:.0f} chunks, while "
                f"{osd.copies_scrubbed:.0f} copies of objects were scrubbed"
                for osd, _ in losing
            ),
            f"at least {share:.0%} of what scrub may use on {named(osd.place.osd for osd, _ in losing)} is lost: under "
            "mClock a chunk that is begun anew pays for a whole one at its replicas",
            cure,
            share=share,
            commands=commands,
        )
    ]


def _lost(osd: OsdFacts, copies: int, facts: Facts) -> float:
    return lost_share(osd.chunks_stopped, osd.number(CHUNK, facts.default(CHUNK)), osd.copies_scrubbed / copies)
