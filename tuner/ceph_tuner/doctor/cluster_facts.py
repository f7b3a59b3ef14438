"""Reads the facts of a cluster by commands that change nothing. What does not answer becomes a note."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import (
    Any,
    Dict,
    FrozenSet,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ceph_tuner.cluster.balancer import MAX_DEVIATION, balancer_mode
from ceph_tuner.core.ceph.commands import CommandStore, option_number, parsed, shaped
from ceph_tuner.core.ceph.pods import rook_pod
from ceph_tuner.core.ceph.ports import Clock, Commander, ConfigEntry
from ceph_tuner.core.ceph.questions import Questions, Report
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.forecast_pairs import ForecastPair, kept_pairs
from ceph_tuner.core.changes.journal import APPLIED, Journal
from ceph_tuner.core.checks import COUNTERS, OPTIONS, OSD_MAP, PGS, QUEUES, STEADY
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused
from ceph_tuner.core.knobs.releases import Release, parse_version
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.osd_documents import osd_queues, osd_values, preempted_chunks, scrubbed_copies
from ceph_tuner.core.measure.osd_selection import spread
from ceph_tuner.core.measure.pg_counts import MOST_PGS, TARGET_PGS
from ceph_tuner.core.measure.pg_documents import (
    DEEP,
    ERASURE,
    SHALLOW,
    ScrubKind,
    deep_scrub_intervals,
    overdue_pgs,
    pg_rows,
    stamp_s,
)
from ceph_tuner.core.measure.queue_dump import Dump, read_tags, served
from ceph_tuner.core.measure.reading import pool_of
from ceph_tuner.core.measure.stale_shards import ShardLook, read_again, settled, unsettled, unsettled_note
from ceph_tuner.core.profiles.in_force import kind_of
from ceph_tuner.doctor.facts import (
    CHANGES,
    DEVICES,
    ENTRIES,
    FORECASTS,
    HEALTH,
    JOURNAL,
    PG_STATES,
    POOL_USE,
    SOURCES,
    USE,
    VERSIONS,
    Facts,
    OsdFacts,
    PgFacts,
    PoolFacts,
)

OSDS_MOST = 64
"""OSDs that are asked themselves, five commands each, evenly over their ids and many at a time."""
PGS_MOST = 20_000
"""PGs that are listed one by one, about 4 KiB of JSON each."""

LOG_LINES = "10000"

# "OSD bench result of 812.1 IOPS is not within the threshold limit range of 1000 IOPS and 80000 IOPS for osd.0. …";
# up to 18.2.0 "… exceeded the threshold limit of … for osd.0"
_BENCH = re.compile(r"OSD bench result of ([0-9.]{1,20}) IOPS .{0,300} for osd\.(\d{1,9})")


def gather(
    commander: Commander, clock: Clock, release: Release, version: str, report: Optional[Report] = None
) -> Facts:
    """Gather what the checks need; `report` is told how far it is.

    Raises TunerError where nobody tells which OSDs there are. Whatever else is refused or not answered is a note.
    """
    return _FactsReader(commander, clock, report).facts(release, version)


class _FactsReader:
    def __init__(self, commander: Commander, clock: Clock, report: Optional[Report]) -> None:
        self._ask = Questions(commander, clock, report)
        self._mclock_on_trial = False

    def facts(self, release: Release, version: str) -> Facts:
        self._ask.report("the maps", 0, 1)
        places = self._ask.config.places()
        status: Dict[str, Any] = self._ask.or_note(PG_STATES, lambda: self._ask.mon("status")["pgmap"], {})
        entries: List[ConfigEntry] = self._ask.or_note(ENTRIES, self._ask.config.dump, [])
        osd_map: Dict[str, Any] = self._ask.or_note(OSD_MAP, lambda: self._ask.mon("osd dump"), {})
        frees: List[Any] = self._ask.or_note(USE, lambda: self._ask.mon("osd df")["nodes"], [])
        rows: List[Any] = self._ask.or_note(DEVICES, lambda: self._ask.mon("osd metadata"), [])
        on_trial: FrozenSet[Tuple[str, str]] = self._ask.or_note(JOURNAL, self._on_trial, frozenset())
        osds = self._osds([place for place in places if place.up], frees, rows)
        pgs = self._pgs(int(status.get("num_pgs", 0)), osds, osd_map)
        at = self._ask.clock.now()
        pod = self._ask.or_note("whether OSDs run in pods of Rook", lambda: rook_pod(rows), None)
        return Facts(
            release,
            parse_version(version),
            at,
            osds=osds,
            entries=tuple(entries),
            places=tuple(places),
            pools=self._pools(osd_map.get("pools", [])),
            pgs=pgs,
            weights={
                int(node["id"]): float(node["crush_weight"])
                for node in frees
                if node.get("status") == "up" and node["crush_weight"] * node["reweight"] > 0
            },
            pg_copies={int(node["id"]): int(node.get("pgs", 0)) for node in frees},
            pg_states={str(row["state_name"]): int(row["count"]) for row in status.get("pgs_by_state", [])},
            health=self._ask.or_note(HEALTH, self._health, {}),
            flags=tuple(str(osd_map.get("flags", "")).split(",")),
            on_trial=on_trial,
            benches=self._ask.or_note("the cluster's log", self._benches, {}),
            target_pgs=self._option(*TARGET_PGS),
            most_pgs=self._option(*MOST_PGS),
            versions=self._ask.or_note(VERSIONS, self._versions, {}),
            balancer=self._ask.or_note("the balancer", lambda: balancer_mode(self._ask.commander), ""),
            deviation=self._option(*MAX_DEVIATION),
            forecasts=self._ask.or_note(FORECASTS, lambda: self._forecasts(at), ()),
            scrub_round_s=self._scrub_round(at),
            rook="" if pod is None else pod.namespace,
            kept={} if pod is None else self._ask.or_note(CHANGES, self._values_of_changes, {}),
            notes=self._ask.notes,
            unseen=frozenset(self._ask.unseen),
        )

    def _osds(
        self, places: Sequence[Place], frees: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
    ) -> Tuple[OsdFacts, ...]:
        metadata = {int(row["id"]): row for row in rows}
        bytes_by_osd = {int(node["id"]): 1024.0 * node.get("kb_used_data", 0) for node in frees}
        sample = spread((place.osd for place in places), OSDS_MOST)
        if len(sample) < len(places):
            self._ask.note(f"{len(sample)} of {len(places)} OSDs were asked, evenly over their ids")
        ask = self._ask
        read_options = ask.config.effective_on
        options = ask.each("options", sample, read_options)
        at = ask.clock.now()
        read_queues = partial(ask.config.each, prefix="dump_op_pq_state", read=_tags)
        before = ask.each("queues", sample, read_queues)
        counters = ask.each("counters", sample, partial(ask.config.each, prefix="perf dump", read=_counters))
        sources = ask.each("sources of options", sample, ask.config.sources_on)
        # the other questions lie between the two looks at a queue
        after = ask.each_at("queues", sample, read_queues)
        looks = {
            osd: ShardLook(served(before[osd], dump, at), options[osd])
            for osd, (_, dump) in after.items()
            if osd in before and osd in options
        }
        dumped = {osd: dumped_at for osd, (dumped_at, _) in after.items()}
        looks = read_again(looks, dumped, lambda suspects: ask.each_at("options", suspects, read_options))
        doubts = unsettled(looks, self._mclock_on_trial)
        if doubts:
            ask.note(unsettled_note(doubts, looks, self._mclock_on_trial))
            ask.unseen.add(STEADY)
        osds = []
        for place in places:
            number = place.osd
            osd = OsdFacts(
                place, kind_of(metadata.get(number, {}), place.device_class), used_bytes=bytes_by_osd.get(number, 0.0)
            )
            whole = number in counters and number in sources
            osd = replace(
                osd,
                options=options.get(number, {}),
                sources=sources.get(number, {}),
                whole=whole,
                **counters.get(number, {}),
            )
            if number in looks:
                osd = replace(osd, served=settled(looks[number].served, doubts.get(number, frozenset())))
            osds.append(osd)
        seen = {
            OPTIONS: bool(options),
            COUNTERS: bool(counters),
            SOURCES: bool(sources),
            QUEUES: bool(set(before) & set(after)),
        }
        self._ask.unseen.update(part for part, there in seen.items() if not there)
        return tuple(osds)

    def _pools(self, rows: Sequence[Mapping[str, Any]]) -> Tuple[PoolFacts, ...]:
        usage: List[Any] = self._ask.or_note(POOL_USE, lambda: self._ask.mon("df", detail="detail")["pools"], [])
        stats: Dict[int, Mapping[str, float]] = {int(row["id"]): row["stats"] for row in usage}
        intervals = deep_scrub_intervals({"pools": rows})
        return tuple(
            PoolFacts(
                int(row["pool"]),
                str(row["pool_name"]),
                int(row.get("pg_num_target", row["pg_num"])),
                int(row["size"]),
                raw_bytes=float(stats.get(row["pool"], {}).get("stored_raw", 0)),
                operations=float(sum(stats.get(row["pool"], {}).get(name, 0) for name in ("rd", "wr"))),
                erasure=row.get("type") == ERASURE,
                autoscaled=row.get("pg_autoscale_mode") == "on",
                flags=tuple(str(row.get("flags_names", "")).split(",")),
                deep_scrub_interval=intervals.get(int(row["pool"]), 0.0),
                compression=str(row.get("options", {}).get("compression_mode", "")),
                compressed_from=float(stats.get(row["pool"], {}).get("compress_under_bytes", 0)),
                compressed_to=float(stats.get(row["pool"], {}).get("compress_bytes_used", 0)),
            )
            for row in rows
        )

    def _pgs(self, count: int, osds: Sequence[OsdFacts], osd_map: Mapping[str, Any]) -> Tuple[PgFacts, ...]:
        if count > PGS_MOST:
            self._ask.note(f"{count} PGs are not listed one by one (at most {PGS_MOST})")
            self._ask.unseen.add(PGS)
            return ()
        self._ask.report("the PGs", 0, 1)
        answer: Any = self._ask.or_note(PGS, lambda: self._ask.mon("pg ls"), [])
        rows, now = pg_rows(answer), self._ask.clock.now()
        deep, shallow = (self._overdue(rows, now, kind, osds, osd_map) for kind in (DEEP, SHALLOW))
        pgs = [(str(row["pgid"]), _pg(row)) for row in rows]
        return tuple(replace(pg, pgid=pgid, deep_late=pgid in deep, scrub_late=pgid in shallow) for pgid, pg in pgs)

    def _overdue(
        self,
        rows: Sequence[Mapping[str, Any]],
        now: float,
        kind: ScrubKind,
        osds: Sequence[OsdFacts],
        osd_map: Mapping[str, Any],
    ) -> FrozenSet[str]:
        """By the interval that the OSDs have; where none was seen, by the monitors; none where nobody says."""
        if any(osd.options for osd in osds):
            usual_s = max(osd.number(kind.option) for osd in osds)
        else:
            usual_s = self._option("osd", kind.option, 0.0)
        return overdue_pgs(rows, now, kind, usual_s, osd_map) if usual_s > 0 else frozenset()

    def _health(self) -> Dict[str, Tuple[str, ...]]:
        checks = self._ask.mon("health", detail="detail").get("checks", {})
        return {
            str(code): (str(check["summary"]["message"]), *(str(row["message"]) for row in check.get("detail", [])))
            for code, check in checks.items()
        }

    def _benches(self) -> Dict[int, float]:
        lines = self._ask.mon("log last", num=LOG_LINES, level="warn", channel="cluster")
        matches = (_BENCH.search(str(line.get("message", ""))) for line in lines)
        # the later line wins
        return {int(match[2]): float(match[1]) for match in matches if match}

    def _on_trial(self) -> FrozenSet[Tuple[str, str]]:
        contents = Journal(CommandStore(self._ask.commander)).read()
        for fault in contents.set_aside:
            self._ask.note(str(fault))
        self._mclock_on_trial, trials = contents.mclock_on_trial(), contents.trials
        if trials:
            self._ask.note(f"settings of {contents.trial_owners} are on trial, and not counted among the leftovers")
        return frozenset(restore.key for entry in trials for restore in entry.restores)

    def _scrub_round(self, now: float) -> Optional[float]:
        try:
            window = History(CommandStore(self._ask.commander)).newest(now)
        except (ClusterTimeout, CommandFailed, PermissionRefused):
            # a store that is not seen is a note already, by the journal
            return None
        means = {} if window is None else window.means
        return means.get("scrub.interval_s") if means.get("scrub.bytes_s", 0.0) > 0 else None

    def _values_of_changes(self) -> Dict[Tuple[str, str], FrozenSet[Optional[str]]]:
        entries = [
            entry
            for entry in Journal(CommandStore(self._ask.commander)).entries()
            if entry.state == APPLIED and not entry.trial
        ]
        # the newest change of a key says what it should hold
        return {restore.key: restore.ours for entry in entries for restore in entry.restores}

    def _forecasts(self, now: float) -> Tuple[ForecastPair, ...]:
        store = CommandStore(self._ask.commander)
        return tuple(kept_pairs(History(store), Journal(store).entries(), now))

    def _option(self, who: str, name: str, otherwise: float) -> float:
        return self._ask.or_note(name, lambda: option_number(self._ask.commander, who, name), otherwise)

    def _versions(self) -> Dict[str, int]:
        return {text.split()[2]: int(count) for text, count in self._ask.mon("versions").get("osd", {}).items()}


def _tags(text: str) -> Dump:
    with shaped("dump_op_pq_state"):
        return read_tags(parsed(text, "dump_op_pq_state"))


def _counters(text: str) -> Dict[str, Any]:
    """Of an OSD's facts those that its counters tell."""
    with shaped("perf dump"):
        counters = parsed(text, "perf dump")
        store, values = counters.get("bluestore", {}), osd_values(counters.get("osd", {}))
        return {
            "mclock_queues": bool(osd_queues(counters)),
            "compressed": float(store.get("compress_success_count", 0)),
            "rejected": float(store.get("compress_rejected_count", 0)),
            "chunks_stopped": preempted_chunks(values),
            "copies_scrubbed": scrubbed_copies(values),
        }


def _pg(row: Mapping[str, Any]) -> PgFacts:
    seconds = float(row.get("last_scrub_duration", 0))
    deep = row["last_scrub_stamp"] == row["last_deep_scrub_stamp"] and seconds > 0
    return PgFacts(
        pool_of(str(row["pgid"])),
        tuple(int(osd) for osd in row["acting"]),
        float(row["stat_sum"]["num_bytes"]),
        float(row["stat_sum"]["num_objects"]),
        seconds if deep else None,
        stamp_s(str(row["last_deep_scrub_stamp"])),
        states=frozenset(str(row["state"]).split("+")),
    )
