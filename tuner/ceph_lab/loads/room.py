"""Room for loads: the pools of other loads go where it is short on the OSDs, or where they have work left."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Sequence, Set, Tuple

from ceph_lab.loads import Load
from ceph_lab.loads.pools import Tell, remove_pools
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.errors import LoadFailed

NEARLY_FULL = 0.85
"""Share of an OSD up to which it may be filled: from there on Ceph warns, and a trial is ended for it."""

AT_REST = {"active", "clean", "scrubbing", "deep"}
"""States of a PG."""


def make_room(session: LabSession, loads: Sequence[Load], tell: Tell) -> bool:
    """Delete pools of other loads; give whether these loads would not have fitted beside them.

    All of them where room is short, else those that still recover, move or trim: a slow drive does so for long.
    """
    keep = {pool.name for load in loads for pool in load.pools}
    short = bool(_short(session, loads))
    pools = remove_pools(session, keep if short else keep | _at_rest(session))
    if pools:
        why = "the OSDs have too little room" if short else "it would go on working"
        tell(f"{why}: what other loads left there is removed ({', '.join(pools)})")
    return short


def _at_rest(session: LabSession) -> Set[str]:
    """Pools whose PGs are clean, and only scrubbed if anything, as the mgr knew it a moment ago."""
    rows = session.mgr("pg dump", dumpcontents=["pgs_brief"])["pg_stats"]
    at_work = {int(row["pgid"].partition(".")[0]) for row in rows if set(row["state"].split("+")) - AT_REST}
    pools = session.mon("osd dump")["pools"]
    return {str(pool["pool_name"]) for pool in pools if int(pool["pool"]) not in at_work}


def check_room(session: LabSession, loads: Sequence[Load]) -> None:
    """Raises LoadFailed where the loads would fill an OSD. Nothing has been written for them then."""
    for osd, (need, free) in _short(session, loads).items():
        raise LoadFailed(
            f"{' and '.join(load.name for load in loads)} would write {need / 1e9:.1f} GB to osd.{osd}, which has "
            f"{max(free, 0.0) / 1e9:.1f} GB up to {NEARLY_FULL:.0%} of its size",
            "make OSDs larger (`lab up --device-size`), or take fewer objects or a shorter window",
        )


def _short(session: LabSession, loads: Sequence[Load]) -> Dict[int, Tuple[float, float]]:
    """OSD -> bytes that are still to be written to it, and bytes that it may take; of those where they do not fit."""
    bytes_by_osd: Counter[int] = Counter()
    for load in loads:
        own_bytes = load.stores()
        there = sum(pool.raw_bytes() for pool in load.pools)
        share = max(0.0, 1.0 - there / max(sum(own_bytes.values()), 1.0))
        bytes_by_osd.update({osd: int(share * amount) for osd, amount in own_bytes.items()})
    short = {}
    for osd, amount in sorted(bytes_by_osd.items()):
        counters = session.osd(osd, "perf dump", logger="osd")["osd"]
        free = NEARLY_FULL * counters["stat_bytes"] - counters["stat_bytes_used"]
        # what is nearly all there is not written again
        if amount > max(free, 0.02 * counters["stat_bytes"]):
            short[osd] = (float(amount), free)
    return short
