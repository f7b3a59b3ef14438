"""Where a search starts: settings that the way mClock works makes sensible, before anything was measured.

Clients get a reservation and a high weight, so that they are served first as long as they ask; the background work
gets a limit, which bounds its rate; and small chunks, which bound how long one of its items makes others wait
("a limit bounds the rate, the chunk bounds the wait"). On OSDs with several shards the chunk of recovery stands in for
its limit, which each shard has a part of.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.search.optimiser import SettingsProposal
from ceph_tuner.search.space import CHUNK, DEFERRED, KnobSpace

Shares = Tuple[float, int, float]
Designs = Tuple[Tuple[str, Shares, Shares, Shares, Dict[str, int]], ...]
"""Why, then (reservation, weight, limit) of client, recovery and best effort, then counts."""

_COUNTS: Tuple[Dict[str, int], ...] = (
    {"osd_max_scrubs": 1, "osd_scrub_chunk_max": 5, "osd_pg_max_concurrent_snap_trims": 1, "osd_max_trimming_pgs": 1},
    {"osd_max_scrubs": 2, "osd_scrub_chunk_max": 5, "osd_pg_max_concurrent_snap_trims": 1, "osd_max_trimming_pgs": 2},
    {"osd_max_scrubs": 1, "osd_scrub_chunk_max": 10, "osd_pg_max_concurrent_snap_trims": 2, "osd_max_trimming_pgs": 1},
)
_SMALLEST, _SMALL, _MIDDLE = _COUNTS
_SCRUB_CHUNK = "osd_scrub_chunk_max"

KIB = 1024

# In the lab a limit on recovery of 0.65 to 0.75 did most for the clients' p95; lower ones slowed recovery and made p95
# worse again (docs/loads.md).
_RECOVERY: Designs = (
    ("recovery limited to 0.65", (0.5, 16, 0), (0.15, 1, 0.65), (0.05, 1, 0.3), _SMALL),
    ("recovery limited to 0.75", (0.5, 8, 0), (0.2, 1, 0.75), (0.05, 1, 0.3), _SMALL),
    ("recovery limited to half", (0.5, 8, 0), (0.2, 1, 0.5), (0.05, 1, 0.3), _SMALL),
    ("no limit, clients weighted high", (0.7, 48, 0), (0.1, 1, 0), (0.05, 1, 0), _MIDDLE),
    ("recovery limited to a third", (0.6, 24, 0), (0.1, 1, 0.33), (0.05, 1, 0.2), _SMALLEST),
)
# On several shards small chunks did what a limit does on one: p95 16 ms at 26 MB/s where the default chunk gave
# 46 ms at 34 MB/s, and a limit at the default chunk 3 MB/s (docs/loads.md).
_RECOVERY_ON_SHARDS: Designs = (
    ("recovery in small chunks", (0.6, 8, 0), (0.3, 1, 0), (0.05, 1, 0.7), {**_SMALLEST, CHUNK: 256 * KIB}),
    (
        "small chunks, clients weighted high",
        (0.9, 20, 0),
        (0.05, 1, 0),
        (0.02, 1, 0.3),
        {**_SMALLEST, CHUNK: 256 * KIB},
    ),
    ("chunks of 512 KiB", (0.6, 8, 0), (0.3, 1, 0), (0.05, 1, 0.7), {**_SMALL, CHUNK: 512 * KIB}),
    (
        "small chunks, recovery limited to 0.75",
        (0.5, 8, 0),
        (0.2, 1, 0.75),
        (0.05, 1, 0.3),
        {**_SMALL, CHUNK: 256 * KIB},
    ),
    ("chunks of 1 MiB, clients weighted high", (0.7, 48, 0), (0.1, 1, 0), (0.05, 1, 0), {**_MIDDLE, CHUNK: 1024 * KIB}),
)
# scrub is held back by chunks and by how many run at once, hardly by a limit
_BEST_EFFORT: Designs = (
    ("small chunks, one at a time", (0.6, 8, 0), (0.2, 1, 0.75), (0.05, 1, 0.7), _SMALLEST),
    ("small chunks, one at a time, limit 0.4", (0.5, 16, 0), (0.2, 1, 0.75), (0.05, 1, 0.4), _SMALLEST),
    ("small chunks, two at a time, limit 0.5", (0.5, 8, 0), (0.2, 1, 0.5), (0.05, 1, 0.5), _SMALL),
    ("no limit, middle chunks, one at a time", (0.6, 32, 0), (0.2, 1, 0), (0.05, 1, 0), _MIDDLE),
    ("small chunks, one at a time, limit 0.2", (0.6, 16, 0), (0.2, 1, 0.5), (0.02, 1, 0.2), _SMALLEST),
)


def informed_designs(space: KnobSpace, work: Iterable[str]) -> List[SettingsProposal]:
    """Give the designs for the kinds of work, each as the nearest settings of the space, without doubles.

    Recovery is in its own class; scrub, snaptrim and backfill share best effort. For both, designs alternate.
    """
    kinds = set(work)
    best_effort = bool(kinds & {"scrub", "snaptrim", "backfill"})
    recovery = "recovery" in kinds or not best_effort
    designs = []
    for one, other in zip(_RECOVERY_ON_SHARDS if CHUNK in space.free else _RECOVERY, _BEST_EFFORT):
        designs += [one] if recovery else []
        designs += [other] if best_effort else []
    wanted = _by_counts_alone(space, best_effort)
    wanted += [(why, {**nine(client, recover, effort), **counts}) for why, client, recover, effort, counts in designs]
    here = space.nearest({})
    proposals: List[SettingsProposal] = []
    for why, values in wanted:
        settings = space.nearest(values)
        if settings != here and all(settings != proposal.settings for proposal in proposals):
            proposals.append(SettingsProposal(settings, why))
    return proposals


def _by_counts_alone(space: KnobSpace, best_effort: bool) -> List[Tuple[str, Settings]]:
    """Give what may do the work by itself, with the shares as they are in force."""
    wanted: List[Tuple[str, Settings]] = []
    if DEFERRED in space.free:
        wanted.append(("few deferred writes at once, nothing else", {DEFERRED: KNOBS[DEFERRED].search_bounds[0]}))
    if CHUNK in space.free:
        wanted.append(("recovery in small chunks, nothing else", {CHUNK: 256 * KIB}))
    if _SCRUB_CHUNK in space.free:
        # clients' writes stop a chunk the more seldom the smaller it is, and lose less of it (docs/ceph-behaviour.md)
        wanted.append(("scrub in small chunks, nothing else", {_SCRUB_CHUNK: _SMALLEST[_SCRUB_CHUNK]}))
    if best_effort:
        wanted.append(("small chunks, one at a time, nothing else", dict(_SMALLEST)))
    return wanted
