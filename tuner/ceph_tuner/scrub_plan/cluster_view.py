"""Reads a cluster's PGs, flags and scrub options by commands that change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.pg_rows import all_pg_rows
from ceph_tuner.cluster.sampler import deep_scrub_interval
from ceph_tuner.core.ceph.commands import parsed, shaped
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.measure.osd_selection import spread
from ceph_tuner.core.measure.pg_documents import (
    SHALLOW,
    STAMP_AHEAD_S,
    UNHEARD,
    UNKNOWN,
    data_chunks,
    deep_scrub_intervals,
    flags_of,
    late_pgs,
    osds_of,
    pg_details,
    pool_intervals,
    stamp_s,
)
from ceph_tuner.core.measure.reading import PgDetail, pool_of
from ceph_tuner.core.wording import first_of
from ceph_tuner.scrub_plan import ScrubPg, ScrubRules, ScrubView

OSDS_ASKED = 64
"""OSDs whose options are asked for, evenly over their ids."""

_NAMES = (
    "osd_max_scrubs",
    "osd_scrub_begin_hour",
    "osd_scrub_end_hour",
    "osd_scrub_begin_week_day",
    "osd_scrub_end_week_day",
    "osd_scrub_during_recovery",
    "osd_scrub_load_threshold",
    SHALLOW.option,
)


def read_view(cluster: Cluster) -> ScrubView:
    """The whole. Raises TunerError."""
    places = cluster.config.places()
    rules, notes = read_rules(cluster, [place.osd for place in places if place.up])
    empty = ScrubView(
        cluster.clock.now(),
        (),
        rules,
        {place.osd: place.locations.get("host", "") for place in places},
        tuple(notes),
    )
    return read_again(cluster, empty, deep_scrub_interval(cluster.commander))


def read_again(cluster: Cluster, before: ScrubView, usual_interval_s: float) -> ScrubView:
    """The same with PGs and flags as they are now; options and places stay. Raises TunerError.

    PGs of which the active mgr has not heard are as they were before, or left out.
    """
    osd_map = _ask(cluster.commander, "osd dump")
    with shaped("osd dump"):
        rows = all_pg_rows(cluster.commander, osd_map)
        now = cluster.clock.now()
        flags, pool_flags = _flags(osd_map)
        pgs = _with_shallow_dates(
            _pgs(osd_map, rows, now, usual_interval_s), rows, now, osd_map, before.rules.max_interval_s
        )
    # stamps of which a new mgr has not heard are no stamps, and a PG with a newer one would count as scrubbed
    last_known = {pg.pgid: pg for pg in before.pgs}
    heard = [last_known.get(pg.pgid) if UNKNOWN in pg.state else pg for pg in pgs]
    notes = [] if before.pgs else _notes(pgs, heard.count(None))
    pgs = tuple(pg for pg in heard if pg is not None)
    rules = replace(before.rules, flags=flags, pool_flags=pool_flags)
    return replace(before, at=now, pgs=pgs, rules=rules, notes=(*before.notes, *notes))


def _notes(pgs: Sequence[ScrubPg], left_out: int) -> List[str]:
    ahead = [pg.pgid for pg in pgs if pg.ahead]
    notes = [f"{left_out} of {len(pgs)} PGs are left out: {UNHEARD}"] if left_out else []
    if ahead:
        notes.append(
            f"{len(ahead)} of {len(pgs)} PGs count as late, as a clock that was ahead put their last scrub into the "
            f"future: {first_of(ahead, 3)}; Ceph itself begins none of them before"
        )
    return notes


def _pgs(
    osd_map: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], now: float, usual_s: float
) -> Tuple[ScrubPg, ...]:
    names = {int(pool["pool"]): str(pool["pool_name"]) for pool in osd_map["pools"]}
    own = deep_scrub_intervals(osd_map)
    details = pg_details(rows, data_chunks(osd_map))
    late = set(late_pgs({pgid: pg.deep_scrubbed for pgid, pg in details.items()}, now, usual_s, own))
    pgs = []
    for row in rows:
        pgid = str(row["pgid"])
        detail, pool = details[pgid], pool_of(pgid)
        stamp = stamp_s(detail.deep_scrubbed)
        pgs.append(
            ScrubPg(
                pgid,
                names[pool],
                osds_of(row["acting"]),
                detail.raw_bytes,
                own.get(pool, usual_s),
                stamp,
                pgid in late,
                frozenset(detail.state.split("+")),
                detail.snaptrim_queue,
                detail.scrub_lasted_s if detail.scrub_lasted_s > 0 and _last_was_deep(row) else None,
                _progress(detail),
                osds_of(row["up"]),
                stamp > now + STAMP_AHEAD_S,
            )
        )
    return tuple(pgs)


def _with_shallow_dates(
    pgs: Sequence[ScrubPg],
    rows: Sequence[Mapping[str, Any]],
    now: float,
    osd_map: Mapping[str, Any],
    usual_s: Optional[float],
) -> Tuple[ScrubPg, ...]:
    """With the dates of their next scrub of any kind; PGs without an interval stay without one."""
    own = pool_intervals(osd_map, SHALLOW.of_pool)
    stamps = {
        str(row["pgid"]): str(row[SHALLOW.stamp])
        for row in rows
        if row["state"] != UNKNOWN and (usual_s or pool_of(str(row["pgid"])) in own)
    }
    late = set(late_pgs(stamps, now, usual_s or 0.0, own))
    return tuple(
        replace(
            pg,
            shallow_due_at=stamp_s(stamps[pg.pgid]) + own.get(pool_of(pg.pgid), usual_s or 0.0),
            shallow_late=pg.pgid in late,
        )
        if pg.pgid in stamps
        else pg
        for pg in pgs
    )


def _progress(pg: PgDetail) -> float:
    deep = {"scrubbing", "deep"} <= set(pg.state.split("+"))
    return min(pg.scrubbed / pg.objects, 1.0) if deep and pg.objects else 0.0


def _last_was_deep(row: Mapping[str, Any]) -> bool:
    return bool(row["last_scrub_stamp"] == row["last_deep_scrub_stamp"])


def _flags(osd_map: Mapping[str, Any]) -> Tuple[FrozenSet[str], Dict[str, FrozenSet[str]]]:
    pools = {str(pool["pool_name"]): flags_of(pool.get("flags_names", "")) for pool in osd_map["pools"]}
    return flags_of(osd_map.get("flags", "")), pools


def read_rules(cluster: Cluster, osds: Sequence[int]) -> Tuple[ScrubRules, List[str]]:
    """Options as the OSDs have them, and notes where OSDs differ. Flags are left out."""
    notes: List[str] = []
    values: Dict[str, Dict[str, int]] = {name: {} for name in _NAMES}
    sample = spread(osds, OSDS_ASKED)
    if len(sample) < len(osds):
        notes.append(f"{len(sample)} of {len(osds)} OSDs were asked for their options, evenly over their ids")
    for osd, answer in cluster.config.effective_on(sample, _NAMES):
        if not isinstance(answer, dict):
            notes.append(f"osd.{osd} did not say its options ({answer})")
            continue
        for name in _NAMES:
            if name in answer:
                values[name][answer[name]] = values[name].get(answer[name], 0) + 1
    usual = ScrubRules()

    def numbers(name: str, default: float) -> List[float]:
        return [float(text) for text in values[name]] or [default]

    def commonest(name: str) -> int:
        counts = values[name]
        return int(float(max(sorted(counts), key=lambda text: counts[text]))) if counts else 0

    with shaped("config show"):
        rules = ScrubRules(
            max_scrubs=max(0, int(min(numbers("osd_max_scrubs", usual.max_scrubs)))),
            hours=(commonest("osd_scrub_begin_hour"), commonest("osd_scrub_end_hour")),
            days=(commonest("osd_scrub_begin_week_day"), commonest("osd_scrub_end_week_day")),
            during_recovery=set(values["osd_scrub_during_recovery"]) == {"true"},
            load_threshold=min(numbers("osd_scrub_load_threshold", usual.load_threshold)),
            max_interval_s=min(numbers(SHALLOW.option, 0.0)) or None,
        )
    for name, counts in values.items():
        if len(counts) > 1:
            counts_text = ", ".join(f"{value} on {count}" for value, count in sorted(counts.items()))
            which = "the commonest" if name.endswith(("_hour", "_day")) else "the strictest"
            notes.append(f"OSDs differ in {name}: {counts_text}; {which} is taken")
    return rules, notes


def _ask(commander: Commander, prefix: str) -> Any:
    return parsed(commander.mon(prefix, {}), prefix)
