"""From successive readings of a cluster to samples: rates, percentiles, work left and finish times.

A reading is what a collector (the ceph-mgr plugin, or the ceph CLI) saw at one moment: cumulative counters with the
time at which the OSD reported them, and states. `Sampling` remembers just enough of the past to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Optional, Set, Tuple

from ceph_tuner.core.measure.counters import (
    EpisodeProgress,
    Episodes,
    Mended,
    Meter,
    Rise,
    Trend,
    WorkInTurns,
    WorkRates,
)
from ceph_tuner.core.measure.histogram import Histogram, pooled
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.osd_documents import (
    PLAIN_COUNTERS,
    QUEUE_CLASSES,
    SCRUB_COUNTERS,
    SCRUB_READS,
    SCRUB_WRITES,
    preempted_chunks,
    scrubbed_copies,
)
from ceph_tuner.core.measure.reading import Reading
from ceph_tuner.core.measure.sample import READ, WRITE, Sample, drain_s, finish_s, percentiles

CLOCK_STEP_S = 2.0
"""A clock that was set by more than that makes differences of its stamps no time."""


@dataclass(frozen=True)
class SampleCoverage:
    """From how many OSDs a sample's rates came, and from how many its percentiles."""

    rates: int = 0
    histograms: int = 0


class Sampling:
    """Compares each reading with those before it.

    With `per_osd`, rates are those of one OSD, the mean of the OSDs that reported.
    """

    def __init__(self, per_osd: bool = False) -> None:
        self._per_osd = per_osd
        self.coverage = SampleCoverage()
        self._last_at: Optional[float] = None
        self._meter, self._turns = Meter(), WorkInTurns()
        self._up: Optional[Collection[int]] = None
        self._histograms: Dict[Tuple[int, str], Tuple[int, Histogram]] = {}
        self._pgs = Episodes()
        self._degraded, self._misplaced = Mended(), Mended()
        self._clones, self._snaptrim_queue = Trend(), Trend(60.0)
        self._coded = Trend()
        self._chunks, self._preempted = 0.0, Trend(60.0)
        """Chunks of scrubs that clients' writes preempted."""
        self.scrubs_since: Optional[float] = None
        """When the oldest scrub under way began, as far as that is known; None where none is known to be."""

    def take(self, reading: Reading) -> Optional[Sample]:
        """The sample up to this reading; None for the first one, and after a gap or a step of the clock."""
        before, self._last_at = self._last_at, reading.at
        notes = list(reading.notes)
        work = self._work(reading, notes)
        latency, daemons = self._latency(reading)
        self.coverage = SampleCoverage(work.daemons if work else 0, daemons)
        scrub_rates = self._scrub_rates(reading)
        self.scrubs_since = self._scrubs_since(reading)
        self._notice_recovery(reading)
        self._clones.add(reading.at, reading.totals.get("num_object_clones"))
        self._snaptrim_queue.add(reading.at, reading.snaptrim_queue)
        self._coded.add(reading.at, reading.coded_recovered)
        if before is None or not 0 < reading.at - before <= 120:
            return None
        values: Dict[str, float] = {}
        values.update(_client(work))
        values.update(percentiles(latency))
        values.update(_recovery(work, reading, self._degraded.rate(), self._misplaced.rate(), self._coded.rising()))
        if work:
            self._chunks += (reading.at - before) * preempted_chunks(work.rates)
        self._preempted.add(reading.at, self._chunks)
        values.update(_scrub(work, scrub_rates, reading, bool(self._preempted.rising())))
        values.update(_snaptrim(reading, self._clones.falling(), self._snaptrim_queue.falling()))
        values.update(_states(reading))
        metrics = {name: values[name] for name in METRICS if name in values}
        return Sample(reading.at, reading.at - before, metrics, latency, dict(reading.pg_states), tuple(notes))

    def _notice_recovery(self, reading: Reading) -> None:
        """Both counts with the objects that were recovered meanwhile, which the same reports of the PGs have."""
        totals, copies = reading.totals, reading.copies_per_object
        recovered = totals.get("num_objects_recovered") if copies is not None else None
        # one copy is there to recover from; of those that are misplaced all may be
        self._degraded.add(reading.at, totals.get("num_objects_degraded"), recovered, (copies or 0.0) - 1.0)
        self._misplaced.add(reading.at, totals.get("num_objects_misplaced"), recovered, copies or 0.0)

    def _work(self, reading: Reading, notes: List[str]) -> Optional[WorkRates]:
        """Work of all OSDs: of those read now, and the last known of those whose turn it is not."""
        turn = reading.turn
        up = reading.running
        if up is not self._up:
            self._meter.keep_only(up)
            self._up = up
        rises: List[Rise] = []
        silent = []
        for osd, report in sorted(reading.osds.items()):
            if osd % turn.count == turn.part:
                rise = self._meter.look(osd, report, reading.at, 2 * turn.seconds)
                if rise is None:
                    silent.append(f"osd.{osd}")
                else:
                    rises.append(rise)
        if silent and rises:
            notes.append(f"no rates of {', '.join(silent[:5])}{' and more' if len(silent) > 5 else ''}")
        self._turns.put(turn.part, turn.count, reading.at, WorkRates.of(rises))
        work, share = self._turns.together(reading.at - 2 * turn.seconds)
        if work is None:
            return None
        if self._per_osd:
            return work.scaled(1.0 / work.daemons)
        if share < 1:
            notes.append(f"the {work.daemons} OSDs with rates stand for all")
            return work.scaled(1.0 / share)
        return work

    def _latency(self, reading: Reading) -> Tuple[Dict[str, Histogram], int]:
        """Operations per bucket since the last reading over the OSDs whose histograms are read, and their number."""
        rises: Dict[str, List[Histogram]] = {READ: [], WRITE: []}
        osds: Set[int] = set()
        current: Dict[Tuple[int, str], Tuple[int, Histogram]] = {}
        for osd, kinds in reading.latency.items():
            born = reading.osds[osd].born if osd in reading.osds else 0
            for kind, histogram in kinds.items():
                current[osd, kind] = (born, histogram)
                before = self._histograms.get((osd, kind))
                rise = histogram.since(before[1]) if before and before[0] == born else None
                if rise is not None:
                    rises[kind].append(rise)
                    osds.add(osd)
        self._histograms = current
        together = {kind: pooled(histograms) for kind, histograms in rises.items()}
        return {kind: histogram for kind, histogram in together.items() if histogram is not None}, len(osds)

    def _scrub_rates(self, reading: Reading) -> Dict[str, float]:
        """Objects scrubbed per second, by PG."""
        rates = {}
        for pgid, pg in reading.pgs.items():
            running = "scrubbing" in pg.state
            rate = self._pgs.look(pgid, EpisodeProgress(reading.at, pg.scrubbed, running, pg.scrub_ended))
            if rate is not None:
                rates[pgid] = rate
        self._pgs.forget_before(reading.at - 3600.0)
        return rates

    def _scrubs_since(self, reading: Reading) -> Optional[float]:
        if not _any_state(reading, "scrubbing"):
            return None
        if len(reading.pgs) >= sum(reading.pg_states.values()):
            return self._pgs.oldest()
        # of so many PGs some are looked at in turn: one that began long ago lasts no longer than others did
        return None if reading.longest_scrub_s is None else reading.at - reading.longest_scrub_s


def _client(work: Optional[WorkRates]) -> Dict[str, float]:
    """Operations that the OSDs answered; read-modify-write operations count as writes, their answers as read bytes."""
    if work is None:
        return {}
    rate = {name: work.rates.get(name, 0.0) for name in PLAIN_COUNTERS}
    read_iops, write_iops = rate["op_r"], rate["op_w"] + rate["op_rw"]
    read_bytes = rate["op_r_out_bytes"] + rate["op_rw_out_bytes"]
    write_bytes = rate["op_w_in_bytes"] + rate["op_rw_in_bytes"]
    values = {
        "client.iops": read_iops + write_iops,
        "client.read_iops": read_iops,
        "client.write_iops": write_iops,
        "client.bytes_s": read_bytes + write_bytes,
        "client.read_bytes_s": read_bytes,
        "client.write_bytes_s": write_bytes,
    }
    reads, writes = ("op_r_latency",), ("op_w_latency", "op_rw_latency")
    for metric, names in (("mean_ms", reads + writes), ("read_mean_ms", reads), ("write_mean_ms", writes)):
        seconds = sum(work.rates.get(f"{name}.sum", 0.0) for name in names)
        count = sum(work.rates.get(f"{name}.count", 0.0) for name in names)
        if count > 0:
            values[f"client.{metric}"] = 1000.0 * seconds / count
    return values


def _recovery(
    work: Optional[WorkRates],
    reading: Reading,
    copies_s: Optional[float],
    backfill: Optional[float],
    coded_bytes_s: Optional[float],
) -> Dict[str, float]:
    """An OSD counts an object once as its recovery begins, however many copies it lacks; what is left counts copies."""
    values = {}
    if work:
        values["recovery.objects_s"] = work.rates.get("recovery_ops", 0.0)
        # the OSDs count what they push of copies, and nothing of erasure-coded objects
        values["recovery.bytes_s"] = work.rates.get("recovery_bytes", 0.0) + (coded_bytes_s or 0.0)
    degraded = reading.totals.get("num_objects_degraded")
    if degraded is not None:
        values["recovery.objects_left"] = degraded
        if copies_s is not None:
            values["recovery.copies_s"] = copies_s
            values["recovery.finish_s"] = finish_s(degraded, copies_s)
    misplaced = reading.totals.get("num_objects_misplaced")
    if misplaced is not None:
        values["backfill.objects_left"] = misplaced
        if backfill is not None:
            values["backfill.objects_s"] = backfill
            values["backfill.finish_s"] = finish_s(misplaced, backfill)
    return values


def _scrub(
    work: Optional[WorkRates], scrub_rates: Mapping[str, float], reading: Reading, preempted: bool
) -> Dict[str, float]:
    """From the OSDs' own counters where they have them (Tentacle), else from the PGs' progress.

    OSDs also count what they read of chunks that clients' writes preempt. While there are some, PGs tell what is
    scrubbed, where all of them are looked at. OSDs of a group have no PGs to themselves.
    """
    values = {}
    objects, copies = reading.totals.get("num_objects", 0.0), reading.totals.get("num_object_copies", 0.0)
    per_object = copies / objects if objects and copies else 1.0
    rates: Mapping[str, float] = work.rates if work else {}
    pgs = sum(reading.pg_states.values())
    if any(name in rates for name in SCRUB_WRITES):
        values["scrub.preemptions_s"] = preempted_chunks(rates)
    by_pgs = preempted and 0 < pgs <= len(scrub_rates)
    if not by_pgs and any(name in rates for name in SCRUB_COUNTERS):
        values["scrub.objects_s"] = scrubbed_copies(rates) / per_object
        values["scrub.bytes_s"] = sum(rates.get(name, 0.0) for name in SCRUB_READS)
    elif scrub_rates:
        # where only some PGs were looked at, they stand for all
        scale = max(pgs / len(scrub_rates), 1.0)
        deep = {pgid: reading.pgs[pgid] for pgid in scrub_rates if reading.pgs[pgid].deep}
        values["scrub.objects_s"] = scale * sum(scrub_rates.values())
        values["scrub.bytes_s"] = scale * sum(
            scrub_rates[pgid] * pg.raw_bytes / pg.objects for pgid, pg in deep.items() if pg.objects
        )
    elif work and reading.pg_states and not _any_state(reading, "scrubbing"):
        values["scrub.objects_s"] = values["scrub.bytes_s"] = 0.0
    if values.get("scrub.bytes_s", 0.0) > 0 and reading.raw_bytes:
        values["scrub.interval_s"] = finish_s(reading.raw_bytes, values["scrub.bytes_s"])
    if reading.pgs_late is not None:
        values["scrub.pgs_late"] = reading.pgs_late
    return values


def _snaptrim(reading: Reading, clones_s: Optional[float], queue_fall_rate: Optional[float]) -> Dict[str, float]:
    """Clones that went away; those that clients' writes made meanwhile are missing from the rate."""
    values = {}
    if clones_s is not None:
        values["snaptrim.objects_s"] = clones_s
    if reading.snaptrim_queue is not None:
        values["snaptrim.queue"] = reading.snaptrim_queue
        drain = None
        if queue_fall_rate is not None:
            drain = drain_s(reading.snaptrim_queue, queue_fall_rate, clones_s or 0.0)
        if drain is not None:
            values["snaptrim.drain_s"] = drain
    return values


def _states(reading: Reading) -> Dict[str, float]:
    values = {}
    if reading.queues:
        for metric in QUEUE_CLASSES.values():
            values[metric] = sum(queue.get(metric, 0.0) for queue in reading.queues.values()) / len(reading.queues)
    if reading.pg_states:
        values["pgs.inactive"] = sum(
            count for state, count in reading.pg_states.items() if "active" not in state.split("+")
        )
        values["pgs.laggy"] = sum(count for state, count in reading.pg_states.items() if "laggy" in state.split("+"))
    states = {"ops.slow": reading.slow_ops, "osds.down": reading.osds_down}
    values.update({name: value for name, value in states.items() if value is not None})
    return values


def _any_state(reading: Reading, word: str) -> bool:
    return any(word in state.split("+") for state in reading.pg_states)
