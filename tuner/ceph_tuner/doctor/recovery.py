"""Does recovery carry objects in parts of a good size, and does a limit leave anything of it."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.recovery_limit import (
    BACKFILLS,
    CHUNK,
    DEFAULT_CHUNK,
    GOOD_CHUNK,
    LIMIT,
    OBJECT_BYTES,
    share_left,
)
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts, OsdFacts, grouped
from ceph_tuner.doctor.finding import MISLEADING, Finding

_CHUNK, _LIMIT = KNOBS[CHUNK], KNOBS[LIMIT]


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
        f"an object of 4 MiB is copied in {-(-OBJECT_BYTES // least)} pushes, one after the other, and stays locked "
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


def limit_on_shards(facts: Facts) -> List[Finding]:
    """OSDs of several shards whose limit on recovery leaves a part of itself, as a pull counts as a whole chunk."""
    object_bytes = _mean_object(facts)
    held = [osd for osd in facts.looked_at if facts.release.units == "fraction" and _held(osd, object_bytes)]
    if not held:
        return []
    lines = [
        (
            f"{LIMIT} {osd.number(LIMIT):g} on {_shards(osd)} shards leaves recovery {_left(osd):.1%} of the capacity",
            osd.place.osd,
        )
        for osd in held
    ]
    chunk_mib = max(osd.number(CHUNK, DEFAULT_CHUNK) for osd in held) / 2**20
    objects = f"objects have {object_bytes / 2**20:.3g} MiB in the mean, and a pull counts as {chunk_mib:.3g} MiB"
    limits = [entry for entry in facts.entries if entry.name == LIMIT and float(_LIMIT.read(entry.value)) > 0]
    return [
        Finding(
            "recovery-limit",
            MISLEADING,
            "A limit on recovery leaves a small part of itself",
            (*some(f"{named(osds)}: {words}" for words, osds in grouped(lines).items()), objects),
            "each shard has its part of the limit, and recovery is in the shard of one PG at a time; in the lab limits "
            "of 0.4 to 1.0 left 3 to 5 MB/s of 34",
            f"Take the limit away and let small chunks do its work: {CHUNK} {GOOD_CHUNK} kept 26 of 34 MB/s at a "
            "third of the clients' p95.",
            share=1.0 - min(_left(osd) / osd.number(LIMIT) for osd in held),
            commands=(
                *(Step(entry.who, CHUNK, None, str(GOOD_CHUNK)).command for entry in limits),
                *(Step(entry.who, LIMIT, entry.value, "0").command for entry in limits),
            ),
        )
    ]


def _shards(osd: OsdFacts) -> int:
    return int(osd.number("osd_op_num_shards")) or int(osd.number(f"osd_op_num_shards_{osd.kind}", 1))


def _left(osd: OsdFacts) -> float:
    return share_left(osd.number(LIMIT), _shards(osd), osd.number(BACKFILLS, 1))


def _held(osd: OsdFacts, object_bytes: float) -> bool:
    large = osd.number(CHUNK, DEFAULT_CHUNK) > object_bytes
    return osd.queue == "mclock_scheduler" and osd.number(LIMIT) > 0 and large and _left(osd) < osd.number(LIMIT)


def _mean_object(facts: Facts) -> float:
    """Bytes of an object, of all PGs together; the usual ones where none was listed."""
    objects = sum(pg.objects for pg in facts.pgs)
    return sum(pg.nbytes for pg in facts.pgs) / objects if objects else OBJECT_BYTES
