"""What a simulation did between two moments, as a sample: rates as its OSDs count, latencies as its clients see them.

A cluster's own counters know latencies to a factor of two, and backfill and snaptrim by what is left of them; here they
are exact.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

import numpy as np

from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.sample import READ, WRITE, Sample, finish_s, percentiles
from ceph_tuner.twin.kernel.records import PER_OCTAVE, STREAM_BUCKETS
from ceph_tuner.twin.model import ClusterModel, RecoveryWork, SnaptrimWork
from ceph_tuner.twin.simulation import ClientCounts, CounterRecord, SimulatedCounters, Simulation

LeftOfWork = Union[CounterRecord, SimulatedCounters]

_KINDS = (READ, WRITE)
_RUNS_OUT = {
    "recovery of degraded objects": "degraded_left",
    "backfill": "misplaced_left",
    "snaptrim": "clones_left",
}
"""Work that has an end, and the counter of what is left of it."""

_LOOKS = 40
"""At a run: so exactly it is known when its work has run out."""

_QUEUES = ("queue.client", "queue.background_recovery", "queue.background_best_effort")


class CounterSnapshot(NamedTuple):
    """A simulation's counters at one moment."""

    counters: SimulatedCounters
    clients: List[ClientCounts]


def look(simulation: Simulation) -> CounterSnapshot:
    """Take down where it is now."""
    return _snapshot_of(simulation.record())


def _snapshot_of(record: CounterRecord) -> CounterSnapshot:
    return CounterSnapshot(record.counters(), record.clients())


def ran_out(before: LeftOfWork, after: LeftOfWork) -> List[str]:
    """Name the work of which something was left before, and nothing is any more."""
    return [kind for kind, left in _RUNS_OUT.items() if getattr(before, left) > 0 and getattr(after, left) == 0]


def looks_while_it_lasts(simulation: Simulation, settle: float, seconds: float, parts: int) -> List[CounterSnapshot]:
    """Let `settle` seconds pass and then `seconds`; give where it was at the ends of so many parts, or of fewer.

    It ends where some work has run out, as a measurement does: what comes after says nothing of how quick the work is,
    and the quicker it is the more. Where it lasted for hardly longer than `settle`, that counts as well.
    """
    fine = parts * math.ceil(_LOOKS / parts)
    before = math.ceil(settle / seconds * fine)
    lengths = [settle / max(1, before)] * before + [seconds / fine] * fine
    looks = [simulation.record()]
    for length in lengths:
        simulation.advance(length)
        looks.append(simulation.record())
        if ran_out(looks[-2], looks[-1]):
            # what came last is none of the work's alone
            looks = looks[:-1] if len(looks) > 2 else looks
            break
    later_looks = looks[before:] if len(looks) > before + fine // parts else looks
    every = max(1, (len(later_looks) - 1) // parts)
    return [_snapshot_of(each) for each in later_looks[::every]]


def sample_between(before: CounterSnapshot, after: CounterSnapshot, model: ClusterModel, at: float) -> Sample:
    """The stretch between two looks at one simulation; `at` is when it ended. Of the whole cluster, as always.

    Metrics of work that the model does not have are absent. Raises ValueError where no time lies between.
    """
    seconds = after.counters.at - before.counters.at
    if not seconds > 0:
        raise ValueError(f"seconds(={seconds}) between two looks must be above 0")
    share = (model.simulated_osds or model.osds) / model.osds
    latency = {kind: _latency(before, after, row) for row, kind in enumerate(_KINDS)}
    values: Dict[str, float] = {}
    if model.clients:
        values.update(_clients(before, after, model, seconds * share))
        values.update(percentiles({kind: histogram for kind, histogram in latency.items() if histogram.total}))
    values.update(_background(before.counters, after.counters, model, seconds * share, share))
    waiting = after.counters.waiting.mean(axis=0)
    values.update({name: float(length) for name, length in zip(_QUEUES, waiting)})
    return Sample(at, seconds, values, latency)


def _clients(before: CounterSnapshot, after: CounterSnapshot, model: ClusterModel, seconds: float) -> Dict[str, float]:
    operations, amounts, busy = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    whole = 0.0
    for stream, old, new in zip(model.clients, before.clients, after.clients):
        whole += new.seconds - old.seconds
        for row in range(2):
            counts = new.latency[row] - old.latency[row]
            operations[row] += float(counts.sum())
            amounts[row] += float(counts.sum()) * stream.block_bytes
            busy[row] += float(counts @ _middles_s())
    values = {
        "client.iops": sum(operations) / seconds,
        "client.read_iops": operations[0] / seconds,
        "client.write_iops": operations[1] / seconds,
        "client.bytes_s": sum(amounts) / seconds,
        "client.read_bytes_s": amounts[0] / seconds,
        "client.write_bytes_s": amounts[1] / seconds,
    }
    if sum(operations):
        values["client.mean_ms"] = 1000.0 * whole / sum(operations)
    # a stream adds its reads and writes up: apart, their means come from its histograms, good to a percent
    for kind, count, spent in zip(_KINDS, operations, busy):
        if count:
            values[f"client.{kind}_mean_ms"] = 1000.0 * spent / count
    return values


def _background(
    before: SimulatedCounters, after: SimulatedCounters, model: ClusterModel, seconds: float, share: float
) -> Dict[str, float]:
    # `seconds` are those in which the whole cluster does what is simulated of it
    def rate(name: str) -> float:
        return float((getattr(after, name) - getattr(before, name)).sum()) / seconds

    values: Dict[str, float] = {}
    if model.recovery:
        backfilled = rate("backfill_ops")
        values["recovery.objects_s"], values["recovery.bytes_s"] = rate("recovery_ops"), rate("recovery_bytes")
        degraded = [work for work in model.recovery if work.degraded]
        misplaced = [work for work in model.recovery if not work.degraded]
        if degraded:
            left = values["recovery.objects_left"] = _left(after.degraded_left / share, degraded)
            values["recovery.copies_s"] = max(before.degraded_left - after.degraded_left, 0.0) / seconds
            values["recovery.finish_s"] = finish_s(left, values["recovery.copies_s"])
        if misplaced:
            values["backfill.objects_s"] = backfilled
            left = values["backfill.objects_left"] = _left(after.misplaced_left / share, misplaced)
            values["backfill.finish_s"] = finish_s(left, backfilled)
    if model.scrub:
        values["scrub.objects_s"], values["scrub.bytes_s"] = rate("scrub_objects"), rate("scrub_bytes")
        values["scrub.preemptions_s"] = rate("preempted_chunks")
        if values["scrub.bytes_s"] > 0:
            pools = {work.pool: model.pool(work.pool) for work in model.scrub}
            pool_bytes = sum(
                work.objects * work.object_bytes * pools[work.pool].size / (pools[work.pool].k or 1)
                for work in model.scrub
            )
            values["scrub.interval_s"] = finish_s(pool_bytes, values["scrub.bytes_s"])
    if model.snaptrim:
        values["snaptrim.objects_s"] = rate("trimmed")
        left = _left(after.clones_left / share, model.snaptrim)
        values["snaptrim.drain_s"] = finish_s(left, values["snaptrim.objects_s"])
    return values


def _left(simulated: float, works: Sequence[Union[RecoveryWork, SnaptrimWork]]) -> float:
    """What is left of works of a kind; of those that are simulated many times over, what there is of them.

    A run uses up some of such work, and what there is does not end with it.
    """
    if all(work.times == 1.0 for work in works):
        return simulated
    return sum(work.there for work in works)


def _latency(before: CounterSnapshot, after: CounterSnapshot, row: int) -> Histogram:
    counts: Any = np.zeros(STREAM_BUCKETS, dtype=np.int64)
    for old, new in zip(before.clients, after.clients):
        counts = counts + (new.latency[row] - old.latency[row])
    return Histogram(edges_ms(), tuple(counts.tolist()))


@cache
def edges_ms() -> Tuple[float, ...]:
    """Where the buckets of `ClientCounts` end, but for the last, which is open: PER_OCTAVE a doubling, from 0.5 us."""
    octaves = ((bucket // PER_OCTAVE, bucket % PER_OCTAVE) for bucket in range(STREAM_BUCKETS - 1))
    return tuple(2.0 ** (octave - 1) * (1.0 + (step + 1) / PER_OCTAVE) / 1000.0 for octave, step in octaves)


@cache
def _middles_s() -> Any:
    edges = np.asarray((0.5e-3, *edges_ms(), edges_ms()[-1]))
    return (edges[:-1] + edges[1:]) / 2000.0
