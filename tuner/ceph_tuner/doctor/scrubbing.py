"""Can every PG be deep-scrubbed within its interval at all, by the bytes stored, the hours and the rate allowed."""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Tuple

from ceph_tuner.doctor.facts import Facts, OsdFacts
from ceph_tuner.doctor.finding import MISLEADING, Finding, named, size, some, span

_LIMIT = "osd_mclock_scheduler_background_best_effort_lim"


def flagged(facts: Facts) -> List[Finding]:
    """Flags that keep scrubs from starting."""
    set_flags = [flag for flag in ("nodeep-scrub", "noscrub") if flag in facts.flags]
    if not set_flags:
        return []
    return [
        Finding(
            "scrub-flags",
            MISLEADING,
            "Scrubs are switched off: no objective about them can be met, and no trial sees their cost",
            (f"flags of the OSD map: {', '.join(set_flags)}",),
            "scrub does not run at all; damage to copies stays unseen meanwhile",
            "Remove the flags when the reason for them is gone.",
            share=1.0 if "nodeep-scrub" in set_flags else None,
            commands=tuple(f"ceph osd unset {flag}" for flag in set_flags),
        )
    ]


def interval(facts: Facts) -> List[Finding]:
    """OSDs that cannot read what they store within the deep-scrub interval."""
    seen, allowed = [], []
    for osd in facts.looked_at:
        available = osd.number("osd_deep_scrub_interval", 604_800.0) * permitted_share(osd)
        took = _seconds_seen(facts, osd)
        if took is not None and took > available:
            words = f"osd.{osd.place.osd}: its PGs took {span(took)} by their last deep scrubs"
            seen.append((f"{words}, {span(available)} are there", osd.place.osd, 1 - available / took))
        rate = rate_allowed(osd)
        if rate and osd.used_bytes / rate > available:
            words = f"osd.{osd.place.osd}: {size(osd.used_bytes)} at the {size(rate)}/s that best effort may have take "
            words += f"{span(osd.used_bytes / rate)}, {span(available)} are there"
            allowed.append((words, osd.place.osd, 1 - available * rate / osd.used_bytes))
    late = facts.health.get("PG_NOT_DEEP_SCRUBBED", ())[:1]
    return [
        *_finding(
            "deep-scrub-allowed",
            "The rate that best effort may have",
            allowed,
            late,
        ),
        *_finding("deep-scrub-seen", "Deep scrub at the pace of the last ones", seen, late),
    ]


def permitted_share(osd: OsdFacts) -> float:
    """Share of the time in which scrubs may start, by hours and days of the week; the same begin and end is always."""
    hours = (osd.number("osd_scrub_end_hour") - osd.number("osd_scrub_begin_hour")) % 24 or 24
    days = (osd.number("osd_scrub_end_week_day") - osd.number("osd_scrub_begin_week_day")) % 7 or 7
    return hours / 24 * days / 7


def rate_allowed(osd: OsdFacts) -> Optional[float]:
    """Bytes per second that the best-effort class may read, by its limit; None under another queue."""
    bandwidth = osd.number(f"osd_mclock_max_sequential_bandwidth_{osd.kind}")
    if osd.queue != "mclock_scheduler" or not bandwidth:
        return None
    limit = osd.number(_LIMIT)
    return bandwidth * (limit if 0 < limit <= 1 else 1.0)


def _seconds_seen(facts: Facts, osd: OsdFacts) -> Optional[float]:
    """Time of a round over an OSD's PGs, by its last deep scrubs; of a PG without a known time by its bytes.

    As many go on at once as did then, or as may now, whichever is more: scrubs that were requested all together ran
    slowly side by side, and those that ran alone need not.
    """
    own = [pg for pg in facts.pgs if osd.place.osd in pg.acting]
    known = [pg for pg in own if pg.deep_scrub_s is not None]
    nbytes = sum(pg.nbytes for pg in known)
    if not nbytes:
        return None
    runs = [(pg.deep_scrubbed_at - (pg.deep_scrub_s or 0.0), pg.deep_scrubbed_at) for pg in known]
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


def _finding(check: str, title: str, found: List[Tuple[str, int, float]], late: Tuple[str, ...]) -> List[Finding]:
    if not found:
        return []
    osds: Dict[int, None] = {osd: None for _, osd, _ in found}
    share = max(part for _, _, part in found)
    commands: Tuple[str, ...] = ("ceph config set global osd_deep_scrub_interval SECONDS",)
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
            (*some(words for words, _, _ in found), *late),
            f"{share:.0%} of the data of {named(osds)} is always late: an objective on the interval cannot be met",
            cure,
            share=share,
            commands=commands,
        )
    ]
