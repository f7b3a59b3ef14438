"""The plugin's sampling over any Commander, for clusters where the plugin is not loaded.

The counters come straight from the OSDs (`tell`), stamped here as each answer arrives: no report that is up to 5 s old
stands between. Time passes by the clock that nobody sets. It costs two commands per OSD and sample, so it is for labs
and clusters of up to `OSDS_MAX` OSDs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.commands import option_number, parsed, shaped
from ceph_tuner.core.ceph.ports import Clock, Commander
from ceph_tuner.core.errors import (
    ClusterTimeout,
    CommandFailed,
    InputError,
    PermissionRefused,
    TunerError,
)
from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.metrics import Scope
from ceph_tuner.core.measure.osd_documents import osd_latency, osd_queues, osd_values, slow_ops
from ceph_tuner.core.measure.pg_documents import (
    UNKNOWN,
    check_heard,
    coded_recovered,
    data_chunks,
    deep_scrub_intervals,
    heard_pg_rows,
    late_pgs,
    pg_details,
    pool_readings,
    with_progress,
)
from ceph_tuner.core.measure.reading import PgDetail, PoolReading, Reading, copies_per_object, pool_of
from ceph_tuner.core.measure.sample import Sample, Window, window_of
from ceph_tuner.core.measure.sampling import CLOCK_STEP_S
from ceph_tuner.core.measure.sampling_by_scope import SamplingByScope
from ceph_tuner.core.measure.scopes import Members, crush_map, layout_of

OSDS_MAX = 64
DETAIL_S = 60.0


class ClusterSampler:
    """Samples a cluster by its commands. Every sample covers the time since the one before."""

    def __init__(
        self, commander: Commander, clock: Clock, scopes: Sequence[Scope] = (), of: Optional[Scope] = None
    ) -> None:
        """Samples device classes and pools by themselves as well; with `of` that one, as a cluster of its own."""
        self._commander, self._clock = commander, clock
        self._ahead = clock.now() - clock.monotonic()
        self._scopes, self._of = tuple(dict.fromkeys((*scopes, *([of] if of is not None else [])))), of
        self._sampling = SamplingByScope()
        self._members: Dict[Scope, Members] = {}
        self._rows: Sequence[Mapping[str, Any]] = ()
        self._pgs: Dict[str, PgDetail] = {}
        self._totals: Dict[str, float] = {}
        self._coded = 0.0
        self._copies: Optional[float] = None
        self._pgs_at = float("-inf")
        self._busy = False
        self._interval: Optional[float] = None

    def sample(self) -> Optional[Sample]:
        """Sample now; None for the first look, which has nothing to compare with. Raises TunerError."""
        self._notice_clock()
        with shaped("a sample"):
            sample = self._sampling.take(self.read(), self._members)
        return sample if sample is None or self._of is None else sample.of(self._of)

    def read(self) -> Reading:
        """The cluster at this moment. Raises RetryLater after a failover, until the new mgr has heard of the PGs."""
        osd_dump = self._ask("osd dump")
        born = {int(osd["osd"]): int(osd["up_from"]) for osd in osd_dump["osds"] if osd["up"]}
        if len(born) > OSDS_MAX:
            raise InputError(
                "cluster", f"{len(born)} OSDs", f"at most {OSDS_MAX}, or the plugin (`ceph-tuner mgr install`)"
            )
        reports, latency, queues, notes = self._osds(born)
        status = self._ask("status")["pgmap"]
        states = {str(row["state_name"]): int(row["count"]) for row in status.get("pgs_by_state", [])}
        check_heard(states)
        chunks, now = data_chunks(osd_dump), self._now()
        fresh = self._details(states, chunks)
        interval, own = self._deep_scrub_interval(), deep_scrub_intervals(osd_dump)
        down = frozenset(int(osd["osd"]) for osd in osd_dump["osds"] if osd["in"] and not osd["up"])
        stamps = {pgid: pg.deep_scrubbed for pgid, pg in self._pgs.items()}
        pools: Mapping[int, PoolReading] = {}
        if self._scopes:
            self._members = self._members_in(osd_dump, notes)
            pools = with_progress(
                _by_pool(self._rows, chunks),
                {pgid: pg.snaptrim_queue for pgid, pg in self._pgs.items()},
                stamps,
                lambda pgs: float(len(late_pgs(pgs, now, interval, own))),
            )
        return Reading(
            at=now,
            osds=reports,
            latency=latency,
            queues=queues,
            totals={
                **self._totals,
                "num_objects_degraded": float(status.get("degraded_objects", 0)),
                "num_objects_misplaced": float(status.get("misplaced_objects", 0)),
            },
            raw_bytes=sum(pg.raw_bytes for pg in self._pgs.values()),
            copies_per_object=self._copies,
            coded_recovered=self._coded,
            pg_states=states,
            pgs=fresh,
            snaptrim_queue=float(sum(pg.snaptrim_queue for pg in self._pgs.values())),
            slow_ops=slow_ops(self._ask("health")),
            osds_down=float(len(down)),
            down=down,
            pools=pools,
            pgs_late=float(len(late_pgs(stamps, now, interval, own))),
            notes=tuple(notes),
        )

    def _now(self) -> float:
        return self._ahead + self._clock.monotonic()

    def _notice_clock(self) -> None:
        """Start again when the clock was set, so that samples have its time again."""
        ahead = self._clock.now() - self._clock.monotonic()
        if abs(ahead - self._ahead) > CLOCK_STEP_S:
            self._ahead, self._pgs_at, self._sampling = ahead, float("-inf"), SamplingByScope()

    def _osds(
        self, born: Dict[int, int]
    ) -> Tuple[Dict[int, DaemonReport], Dict[int, Dict[str, Histogram]], Dict[int, Dict[str, float]], List[str]]:
        reports, latency, queues, silent = {}, {}, {}, []
        notes: List[str] = []
        for osd, since in born.items():
            try:
                counters = self._tell(osd, "perf dump")
                at = self._now()
                histograms = self._tell(osd, "perf histogram dump")
                with shaped(f"osd.{osd} perf dump"):
                    report = DaemonReport(at, osd_values(counters.get("osd", {})), since)
                    own_latency, queue_lengths = osd_latency(histograms), osd_queues(counters)
            except (ClusterTimeout, CommandFailed):
                # it went away since the map was read, or says what cannot be read
                silent.append(f"osd.{osd}")
                continue
            except PermissionRefused as refusal:
                # of one as of all: these are the key's capabilities
                notes.append(f"the OSDs' counters are not seen, so nothing of clients is ({refusal})")
                break
            reports[osd], latency[osd] = report, own_latency
            if queue_lengths:
                queues[osd] = queue_lengths
        return reports, latency, queues, [*notes, *([f"no answer of {', '.join(silent)}"] if silent else [])]

    def _details(self, states: Dict[str, int], chunks: Mapping[int, int]) -> Dict[str, PgDetail]:
        """Rows of all PGs, while some scrub, trim or have something to recover, and else once a minute."""
        now = self._now()
        # what is recovered is in no sum of all: it is known by the rows alone
        work_states = {"scrubbing", "snaptrim", "snaptrim_wait", "degraded", "remapped", UNKNOWN}
        # one look more when it is over: the last objects are counted by then
        busy, self._busy = self._busy, any(work_states & set(state.split("+")) for state in states)
        busy = busy or self._busy
        has_queue = any(pg.snaptrim_queue for pg in self._pgs.values())
        # classes and pools have no sums but these
        if not (busy or has_queue or self._scopes) and 0 <= now - self._pgs_at < DETAIL_S:
            return {}
        rows = heard_pg_rows(self._ask("pg ls"))
        self._rows = rows if self._scopes else ()
        self._pgs, self._pgs_at = pg_details(rows, chunks), now
        sums = [row["stat_sum"] for row in rows]
        names = ("num_objects", "num_object_copies", "num_object_clones", "num_objects_recovered")
        self._totals = {name: float(sum(each[name] for each in sums)) for name in names if sums and name in sums[0]}
        self._copies = copies_per_object(sums)
        self._coded = coded_recovered(((pool_of(str(row["pgid"])), row["stat_sum"]) for row in rows), chunks)
        return self._pgs

    def _members_in(self, osd_dump: Mapping[str, Any], notes: List[str]) -> Dict[Scope, Members]:
        """What belongs to each scope. Raises InputError where the one that is sampled alone is not there."""
        layout = layout_of(crush_map(self._ask("osd crush dump")), osd_dump["pools"])
        absent_scopes = layout.missing(self._scopes)
        if self._of is not None and absent_scopes:
            raise InputError("cluster", absent_scopes[0], f"a class of it: {', '.join(layout.classes)}")
        notes += absent_scopes
        members_of = {scope: layout.members(scope) for scope in self._scopes}
        return {scope: members for scope, members in members_of.items() if members is not None}

    def _deep_scrub_interval(self) -> float:
        if self._interval is None:
            self._interval = deep_scrub_interval(self._commander)
        return self._interval

    def _ask(self, prefix: str) -> Any:
        return parsed(self._commander.mon(prefix, {}), prefix)

    def _tell(self, osd: int, prefix: str) -> Any:
        return parsed(self._commander.tell(f"osd.{osd}", prefix, {}), prefix)


def deep_scrub_interval(commander: Commander) -> float:
    """Seconds within which the OSDs deep-scrub a PG whose pool has no interval of its own. Raises TunerError."""
    return option_number(commander, "osd", "osd_deep_scrub_interval")


def _by_pool(rows: Sequence[Mapping[str, Any]], chunks: Mapping[int, int]) -> Dict[int, PoolReading]:
    sums: Dict[int, Counter[str]] = {}
    states: Dict[int, Counter[str]] = {}
    for row in rows:
        pool = pool_of(str(row["pgid"]))
        sums.setdefault(pool, Counter()).update(row["stat_sum"])
        states.setdefault(pool, Counter())[str(row["state"])] += 1
    return pool_readings(sums, chunks, states, {})


def observe(
    sampler: ClusterSampler, clock: Clock, seconds: float, interval: float = 5.0
) -> Tuple[Optional[Window], Sequence[Sample]]:
    """Sample for a while. A sample that fails for a moment is left out: the next one covers its time."""
    samples = []
    end = clock.monotonic() + seconds
    sampler.sample()
    while clock.monotonic() < end:
        clock.sleep(min(interval, max(end - clock.monotonic(), 0.1)))
        try:
            sample = sampler.sample()
        except TunerError:
            continue
        if sample is not None:
            samples.append(sample)
    return window_of(samples), samples
