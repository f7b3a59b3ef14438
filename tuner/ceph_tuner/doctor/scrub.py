"""Can background work run at all, and every PG be deep-scrubbed within its interval by bytes, hours and rate."""

from __future__ import annotations

from shlex import quote
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.knobs.cost import Hardware, item_cost, scrub_item_bytes
from ceph_tuner.core.knobs.settings import settings_in_force
from ceph_tuner.core.moments import duration
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts, OsdFacts, PgFacts
from ceph_tuner.doctor.finding import MISLEADING, Finding, size

BYTES_COUNT_SINCE = (18, 2, 5)
"""From 17.2.7 to 18.2.4 a chunk counts a fixed number of bytes, whatever it holds."""

_LIMIT = "osd_mclock_scheduler_background_best_effort_lim"
_CHUNK = "osd_scrub_chunk_max"
_CHARGES = ("osd_scrub_event_cost", "osd_shallow_scrub_chunk_max")

_SCRUB_FLAGS = ("nodeep-scrub", "noscrub")
_WORK_FLAGS = ("norecover", "nobackfill", "norebalance", "nosnaptrim")


def flagged(facts: Facts) -> List[Finding]:
    """Flags, of all or of a pool, that keep background work from starting."""
    findings = []
    everywhere = [flag for flag in _SCRUB_FLAGS if flag in facts.flags]
    pools = [
        (pool.name, flag)
        for flag in _SCRUB_FLAGS
        for pool in facts.pools
        if flag in pool.flags and flag not in everywhere
    ]
    if everywhere or pools:
        evidence = [f"flags of the OSD map: {', '.join(everywhere)}"] if everywhere else []
        evidence += [f"flag of pool {name}: {flag}" for name, flag in pools]
        total_bytes = sum(pool.raw_bytes for pool in facts.pools)
        unseen = sum(pool.raw_bytes for pool in facts.pools if (pool.name, "nodeep-scrub") in pools)
        findings.append(
            Finding(
                "scrub-flags",
                MISLEADING,
                "Scrubs are switched off: no objective about them can be met, and no trial sees their cost",
                some(evidence),
                "scrub does not run there at all; damage to copies stays unseen meanwhile",
                "Remove the flags when the reason for them is gone.",
                share=1.0 if "nodeep-scrub" in everywhere else unseen / total_bytes if unseen else None,
                commands=(
                    *(f"ceph osd unset {flag}" for flag in everywhere),
                    *(f"ceph osd pool set {quote(name)} {flag} 0" for name, flag in pools),
                ),
            )
        )
    flags = [flag for flag in _WORK_FLAGS if flag in facts.flags]
    if flags:
        findings.append(
            Finding(
                "work-flags",
                MISLEADING,
                "Recovery, backfill or snaptrim is switched off: no objective about it can be met",
                (f"flags of the OSD map: {', '.join(flags)}",),
                "what is to do piles up, and all of it begins at once when the flags go",
                "Remove the flags when the reason for them is gone, and tune after the rush.",
                commands=tuple(f"ceph osd unset {flag}" for flag in flags),
            )
        )
    return findings


def interval(facts: Facts) -> List[Finding]:
    """OSDs that cannot read what they store within the deep-scrub interval."""
    by_pace, by_limit = [], []
    for osd in facts.looked_at:
        own = [pg for pg in facts.pgs if osd.place.osd in pg.acting]
        bytes_by_pool = _by_pool((pg.pool, pg.nbytes) for pg in own)
        took, available = seconds_seen(own, osd), available_s(facts, osd, bytes_by_pool)
        if took is not None and took > available:
            words = f"osd.{osd.place.osd}: its PGs took {duration(took)} by their last deep scrubs"
            by_pace.append((f"{words}, {duration(available)} are there", osd.place.osd, 1 - available / took))
        rate, cost_by_pool = rate_allowed(osd), counted_bytes(facts, osd)
        total, available = sum(cost_by_pool.values()), available_s(facts, osd, cost_by_pool)
        if rate and total / rate > available:
            words = f"osd.{osd.place.osd}: a deep scrub of its {_amount(own, osd)} counts {size(total)}; at the "
            words += f"{size(rate)}/s that best effort may have that takes {duration(total / rate)}, "
            words += f"{duration(available)} are there"
            by_limit.append((words, osd.place.osd, 1 - available * rate / total))
    late = facts.health.get("PG_NOT_DEEP_SCRUBBED", ())[:1]
    settings = _interval_settings(facts)
    return [
        *_finding("deep-scrub-allowed", "The rate that best effort may have", by_limit, late, settings),
        *_finding("deep-scrub-seen", "Deep scrub at the pace of the last ones", by_pace, late, settings),
    ]


def available_s(facts: Facts, osd: OsdFacts, work: Mapping[int, float]) -> float:
    """Seconds in which an OSD's work (by pool) must be done: each pool's own interval, else the OSD's."""
    usual = _usual_s(osd)
    own = {pool.number: pool.deep_scrub_interval for pool in facts.pools if pool.deep_scrub_interval > 0}
    total = sum(work.values())
    mean = total / sum(part / own.get(pool, usual) for pool, part in work.items()) if total else usual
    return mean * permitted_share(osd)


def permitted_share(osd: OsdFacts) -> float:
    """Share of the time in which scrubs may start, by hours and days of the week; the same begin and end is always."""
    hours = (osd.number("osd_scrub_end_hour") - osd.number("osd_scrub_begin_hour")) % 24 or 24
    days = (osd.number("osd_scrub_end_week_day") - osd.number("osd_scrub_begin_week_day")) % 7 or 7
    return hours / 24 * days / 7


def rate_allowed(osd: OsdFacts) -> Optional[float]:
    """Bytes per second that best effort may count by its limit; None under another queue."""
    bandwidth = osd.number(f"osd_mclock_max_sequential_bandwidth_{osd.kind}")
    if osd.queue != "mclock_scheduler" or not bandwidth:
        return None
    limit = osd.number(_LIMIT)
    return bandwidth * (limit if 0 < limit <= 1 else 1.0)


def counted_bytes(facts: Facts, osd: OsdFacts) -> Dict[int, float]:
    """Bytes that mClock counts for a deep scrub of an OSD's PGs, by pool; the items around each chunk are left out.

    Every shard of an erasure-coded object counts the whole object (`PgScrubber::get_scrub_cost`: the PG's mean). Where
    the PGs are too many to be listed, what the OSD stores is the least that it can be, from when bytes are counted.
    """
    iops = osd.number(f"osd_mclock_max_capacity_iops_{osd.kind}")
    bandwidth = osd.number(f"osd_mclock_max_sequential_bandwidth_{osd.kind}")
    if facts.release.cost_model != "bytes" or not iops > 0 or not bandwidth > 0:
        return {}
    if not facts.pgs:
        # whose it is, is not known either: only what is late by the longest interval is late for sure
        longest = max(facts.pools, key=lambda pool: pool.deep_scrub_interval or _usual_s(osd), default=None)
        return {longest.number if longest else 0: osd.used_bytes} if facts.version >= BYTES_COUNT_SINCE else {}
    hardware = Hardware(iops, bandwidth, 1, osd.kind)
    settings = settings_in_force(osd.options, _CHARGES)
    chunk = max(1, int(osd.number(_CHUNK, facts.default(_CHUNK))))

    def item(objects: int, object_bytes: float) -> int:
        nbytes = scrub_item_bytes(objects, object_bytes, True, settings, hardware, facts.release, facts.version)
        return item_cost(nbytes, hardware, facts.release)

    def charge(pg: PgFacts) -> float:
        chunks, rest = divmod(int(pg.objects), chunk)
        mean = pg.nbytes / pg.objects if pg.objects else 0.0
        return float(chunks * item(chunk, mean) + (item(rest, mean) if rest else 0))

    return _by_pool((pg.pool, charge(pg)) for pg in facts.pgs if osd.place.osd in pg.acting)


def _usual_s(osd: OsdFacts) -> float:
    return osd.number("osd_deep_scrub_interval", 604_800.0)


def _by_pool(parts: Iterable[Tuple[int, float]]) -> Dict[int, float]:
    sums: Dict[int, float] = {}
    for pool, part in parts:
        sums[pool] = sums.get(pool, 0.0) + part
    return sums


def _amount(own: Sequence[PgFacts], osd: OsdFacts) -> str:
    return f"{sum(pg.objects for pg in own):.0f} objects" if own else size(osd.used_bytes)


def _interval_settings(facts: Facts) -> Tuple[str, ...]:
    """Commands that lengthen the interval: of pools with their own, and for those that have none."""
    own = [pool.name for pool in facts.pools if pool.deep_scrub_interval > 0]
    everywhere = (
        () if own and len(own) == len(facts.pools) else ("ceph config set global osd_deep_scrub_interval SECONDS",)
    )
    return (*everywhere, *(f"ceph osd pool set {quote(name)} deep_scrub_interval SECONDS" for name in own))


def seconds_seen(own: Sequence[PgFacts], osd: OsdFacts) -> Optional[float]:
    """Time of a round over an OSD's PGs, by its last deep scrubs; of a PG without a known time by its bytes.

    As many go on at once as did then, or as may now, whichever is more: scrubs that were requested all together ran
    slowly side by side, and those that ran alone need not.
    """
    with_duration = [pg for pg in own if pg.deep_scrub_s is not None]
    nbytes = sum(pg.nbytes for pg in with_duration)
    if not nbytes:
        return None
    runs = [(pg.deep_scrubbed_at - (pg.deep_scrub_s or 0.0), pg.deep_scrubbed_at) for pg in with_duration]
    seconds = sum(end - start for start, end in runs)
    at_once = max(osd.number("osd_max_scrubs", 1.0), seconds / covered_s(runs))
    return seconds / at_once * sum(pg.nbytes for pg in own) / nbytes


def covered_s(runs: Iterable[Tuple[float, float]]) -> float:
    """Time during which at least one of the runs (start, end) was under way."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(runs):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _finding(
    check: str, title: str, late_osds: List[Tuple[str, int, float]], late: Tuple[str, ...], commands: Tuple[str, ...]
) -> List[Finding]:
    if not late_osds:
        return []
    osds: Dict[int, None] = {osd: None for _, osd, _ in late_osds}
    share = max(part for _, _, part in late_osds)
    if check == "deep-scrub-allowed":
        cure = "Raise the limit of best effort, widen the hours, or scrub less often."
    else:
        cure = "More scrubs at once, wider hours, more share for best effort, or a longer interval."
        commands = ("ceph config set osd osd_max_scrubs N", *commands)
    return [
        Finding(
            check,
            MISLEADING,
            f"{title} cannot keep the deep-scrub interval",
            (*some(words for words, _, _ in late_osds), *late),
            f"{share:.0%} of the data of {named(osds)} is always late: an objective on the interval cannot be met",
            cure,
            share=share,
            commands=commands,
        )
    ]
