"""The finding about shards that schedule by other values than their OSD shows (`core/measure/stale_shards.py`)."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.measure.stale_shards import CURE, differing
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts, grouped
from ceph_tuner.doctor.finding import MISLEADING, Finding


def stale(facts: Facts) -> List[Finding]:
    """Shards that serve a class without the reservation or limit that the OSD shows for it, or with one more."""
    lines = [(words, osd.place.osd) for osd in facts.with_options for words in differing(osd.served, osd.number)]
    if not lines:
        return []
    osds = {osd for _, osd in lines}
    return [
        Finding(
            CURE,
            MISLEADING,
            "Shards of OSDs schedule by other values than the OSD shows",
            some(f"{named(each)}: {words}" for words, each in grouped(lines).items()),
            "part of the PGs of these OSDs is served without what the profile promises, until the OSD restarts",
            "Make every shard read its values again; no setting changes. Only what was served just now was seen.",
            share=len(osds) / len(facts.with_options),
            commands=(f"ceph-tuner doctor --cluster NAME --cure {CURE} --yes",),
        )
    ]
