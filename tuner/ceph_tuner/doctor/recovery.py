"""Does recovery carry objects in parts of a size that a drive and a network are good at."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts, grouped
from ceph_tuner.doctor.finding import MISLEADING, Finding

_CHUNK = KNOBS["osd_recovery_max_chunk"]
_OBJECT_BYTES = 4 << 20
"""Of RBD, CephFS and RGW by default."""


def chunk(facts: Facts) -> List[Finding]:
    """OSDs whose recovery or backfill pushes are smaller than any objective asks for."""
    small = [
        (int(osd.number(_CHUNK.name)), osd.place.osd)
        for osd in facts.looked_at
        if _CHUNK.name in osd.options and osd.number(_CHUNK.name) < _CHUNK.low
    ]
    if not small:
        return []
    least = min(value for value, _ in small)
    cost = (
        f"an object of 4 MiB is copied in {-(-_OBJECT_BYTES // least)} pushes, one after the other, and stays locked "
        "for writes meanwhile"
        if least
        else "a push carries no data: recovery never ends"
    )
    lines = grouped([(f"{_CHUNK.name} {value}", osd) for value, osd in small])
    return [
        Finding(
            "recovery-chunk",
            MISLEADING,
            "Recovery and backfill carry objects in tiny parts",
            some(f"{named(osds)}: {words}" for words, osds in lines.items()),
            cost,
            f"Set at least {_CHUNK.low:.0f} bytes; Ceph's default is {_CHUNK.default(facts.release)}.",
            share=len(small) / len(facts.looked_at),
            commands=tuple(
                Step(entry.who, entry.name, entry.value, None).command
                for entry in facts.entries
                if entry.name == _CHUNK.name and int(_CHUNK.read(entry.value)) < _CHUNK.low
            ),
        )
    ]
