"""Chunks of scrubs that clients' writes preempt: what they cost under mClock, and which setting makes them few."""

from __future__ import annotations

from typing import Tuple

CHUNK, LEAST_CHUNK = "osd_scrub_chunk_max", "osd_scrub_chunk_min"

LEAST_LOST = 0.2
"""Of what scrub may use; less is not worth a change."""


def lost_share(chunks: float, chunk_objects: float, objects: float) -> float:
    """The part of what scrub may use that preempted chunks take, at least: each pays for a whole one.

    `objects`: what OSDs counted as scrubbed meanwhile, some of it in chunks that were preempted.
    """
    paid = chunks * chunk_objects
    return paid / (paid + objects) if paid > 0 else 0.0


def smaller_chunks(chunk_objects: float, least_objects: float) -> Tuple[str, Tuple[str, ...]]:
    """What to do, and the command, where chunks have so many objects, and may have as few as that."""
    if chunk_objects > least_objects:
        return (
            f"Make chunks as small as they may be ({least_objects:.0f} objects): they are met less often, and cost "
            "less.",
            (f"ceph config set osd {CHUNK} {least_objects:.0f}",),
        )
    return (
        "Scrub when clients write less (hours, days), or let writes wait for a scrub's chunk.",
        ("ceph config set osd osd_scrub_max_preemptions 0",),
    )
