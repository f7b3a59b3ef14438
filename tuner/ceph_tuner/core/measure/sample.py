"""What was seen: a sample of the cluster's rates, and a window of samples with their spread.

Names come from `metrics.METRICS`. A metric that was not seen is absent, never 0.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar

from ceph_tuner.core.measure.histogram import Histogram, pooled
from ceph_tuner.core.measure.metrics import METRICS, PERCENTILES, POOL, Scope, in_order, parted, scoped, work_of
from ceph_tuner.core.moments import LAST_AHEAD_S

_Seen = TypeVar("_Seen")

NEVER_S = 10 * 365 * 86400.0
"""Ten years: the finish time of work that stands still. Finite, so that it can be compared, averaged and stored."""

READ, WRITE = "read", "write"
"""The keys of `Sample.latency`; those of a scope have it behind them, as metrics' names have."""

LARGEST = 1e100
"""No metric is beyond it, in any unit: its square, and sums of squares over all that is kept, are finite."""

_LEFT_AND_RATE = {
    "recovery.finish_s": ("recovery.objects_left", "recovery.copies_s"),
    "backfill.finish_s": ("backfill.objects_left", "backfill.objects_s"),
}
"""Finish time -> the work left, and its rate: both in copies."""

_OPERATIONS = {
    "client.mean_ms": "client.iops",
    "client.read_mean_ms": "client.read_iops",
    "client.write_mean_ms": "client.write_iops",
}
"""A mean latency -> the rate of the operations that it is a mean of."""


def is_fresh(at: float, now: float, overdue_s: float) -> bool:
    """Whether what was seen at a moment says something of now: a clock that was set back leaves it in the future."""
    return abs(now - at) < overdue_s


@dataclass(frozen=True)
class Sample:
    """The cluster over a stretch of time: rates are means over the `seconds` before `at`, the rest is as of `at`."""

    at: float
    seconds: float
    values: Mapping[str, float]
    latency: Mapping[str, Histogram] = field(default_factory=dict)
    pg_states: Mapping[str, int] = field(default_factory=dict)
    notes: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= LARGEST:
            raise ValueError(f"seconds must be > 0 and at most {LARGEST:g}, got {self.seconds}")
        _check(self.values)

    def of(self, scope: Scope, pools: Collection[str] = ()) -> Optional[Sample]:
        """What it shows of a scope, and of `pools`, as `Window.of` does; None where that is nothing."""
        values = within(self.values, scope, pools)
        return replace(self, values=values, latency={}, pg_states={}) if values else None

    def to_dict(self) -> Dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return {
            "at": self.at,
            "seconds": self.seconds,
            "values": dict(self.values),
            "latency": {kind: histogram.to_dict() for kind, histogram in self.latency.items()},
            "pg_states": dict(self.pg_states),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Sample:
        """Inverse of `to_dict`; metrics that this version does not know are dropped."""
        return cls(
            at=float(document["at"]),
            seconds=float(document["seconds"]),
            values={name: float(value) for name, value in document["values"].items() if name in METRICS},
            latency={kind: Histogram.from_dict(entry) for kind, entry in document.get("latency", {}).items()},
            pg_states={state: int(count) for state, count in document.get("pg_states", {}).items()},
            notes=tuple(document.get("notes", ())),
        )


@dataclass(frozen=True)
class Measure:
    """Mean of a metric over `count` samples and their standard deviation (0 when there is one sample)."""

    mean: float
    deviation: float
    count: int

    def __post_init__(self) -> None:
        if not (abs(self.mean) <= LARGEST and 0 <= self.deviation <= LARGEST):
            found = f"{self.mean} and {self.deviation}"
            raise ValueError(f"mean and deviation must be at most {LARGEST:g}, and the deviation >= 0, got {found}")
        if not 1 <= self.count <= LARGEST:
            raise ValueError(f"count must be 1 to {LARGEST:g}, got {self.count}")

    @classmethod
    def of(cls, values: Sequence[float]) -> Measure:
        """Give it for values that count alike. Raises ValueError where there are none."""
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))

    @property
    def error(self) -> float:
        """Standard error of the mean; NaN where there is one sample."""
        return self.deviation / math.sqrt(self.count) if self.count > 1 else math.nan

    def to_list(self) -> List[float]:
        """Plain numbers, ready for JSON: `[mean, deviation, count]`."""
        return [self.mean, self.deviation, self.count]

    @classmethod
    def from_list(cls, numbers: Sequence[Any]) -> Measure:
        """Inverse of `to_list`. Raises TypeError or ValueError for what is none."""
        mean, deviation, count = numbers
        return cls(float(mean), float(deviation), int(count))


@dataclass(frozen=True)
class Window:
    """Samples over a stretch of time, metric by metric. `start` is where the first sample's rates begin."""

    start: float
    end: float
    measures: Mapping[str, Measure]

    def __post_init__(self) -> None:
        if not self.end > self.start:
            raise ValueError(f"end must be after start, got {self.start} to {self.end}")
        _check(self.means)

    @property
    def means(self) -> Dict[str, float]:
        """Metric -> mean."""
        return {name: measure.mean for name, measure in self.measures.items()}

    @property
    def seconds(self) -> float:
        """From the first sample's beginning to the last one's end."""
        return self.end - self.start

    def of(self, scope: Scope, pools: Collection[str] = ()) -> Window:
        """What it shows of a scope, under the names of a whole cluster, and of `pools` under their own."""
        return Window(self.start, self.end, within(self.measures, scope, pools))

    def to_dict(self) -> Dict[str, Any]:
        """Plain numbers, ready for JSON: a measure is `[mean, deviation, count]`."""
        measures = {name: measure.to_list() for name, measure in self.measures.items()}
        return {"start": self.start, "end": self.end, "measures": measures}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Window:
        """Inverse of `to_dict`; metrics that this version does not know are dropped.

        Raises ValueError also where it is of no moments that a calendar has.
        """
        measures = {name: Measure.from_list(row) for name, row in document["measures"].items() if name in METRICS}
        start, end = float(document["start"]), float(document["end"])
        if not 0 <= start < end <= LAST_AHEAD_S:
            raise ValueError(f"start and end must be moments of a calendar, got {start} to {end}")
        return cls(start, end, measures)


def within(values: Mapping[str, _Seen], scope: Scope, pools: Collection[str] = ()) -> Dict[str, _Seen]:
    """What is known of a scope, under the names of a whole cluster, and of `pools` under their own."""
    of_scope: Dict[str, _Seen] = {}
    for name, value in values.items():
        plain, own = parted(name)
        if own == scope:
            of_scope[plain] = value
        elif own is not None and own.kind == POOL and own.name in pools:
            of_scope[name] = value
    return of_scope


def window_of(samples: Iterable[Sample]) -> Optional[Window]:
    """All samples as one window; None when there are none.

    Rates and states are means over time, mean latencies are means over operations, and percentiles come from the
    histograms of all samples together: the mean of many 95th percentiles is not the 95th percentile of the whole.
    Finish times are what was left at the end over the mean rate.
    """
    by_time = sorted(samples, key=lambda sample: sample.at)
    if not by_time:
        return None
    measures = {}
    for name in in_order({name for sample in by_time for name in sample.values}):
        measures[name] = _measure(name, [sample for sample in by_time if name in sample.values])
    _pool_percentiles(by_time, measures)
    _finish_times(by_time, measures)
    return Window(by_time[0].at - by_time[0].seconds, by_time[-1].at, measures)


def window_within(samples: Iterable[Sample], start: float, end: float, slack_s: float) -> Optional[Window]:
    """The samples that begin and end between two moments, to `slack_s`, as one window; None when there are none."""
    return window_of(s for s in samples if s.at - s.seconds >= start - slack_s and s.at <= end + slack_s)


def measured_once(values: Mapping[str, float]) -> Dict[str, Measure]:
    """Values, by metric, as measures of one sample: nothing is known of their spread."""
    return {name: Measure(value, 0.0, 1) for name, value in values.items()}


def percentiles(latency: Mapping[str, Histogram]) -> Dict[str, float]:
    """Metrics `client.p95_ms`, `client.read_p95_ms` and so on from the histograms of reads and writes, by scope."""
    metrics = {}
    for scope in dict.fromkeys(parted(f"client.{key}")[1] for key in latency):
        reads, writes = (latency.get(scoped(kind, scope)) for kind in (READ, WRITE))
        together = pooled(histogram for histogram in (reads, writes) if histogram is not None)
        for kind, histogram in (("", together), ("read_", reads), ("write_", writes)):
            for suffix, fraction in PERCENTILES.items():
                value = histogram.quantile(fraction) if histogram else None
                if value is not None and f"client.{kind}{suffix}" in METRICS:
                    metrics[scoped(f"client.{kind}{suffix}", scope)] = value
    return metrics


def finish_s(amount: float, rate: float) -> float:
    """Seconds until `amount` is done at `rate` per second, at most NEVER_S."""
    if amount <= 0:
        return 0.0
    return min(amount / rate, NEVER_S) if rate > 0 else NEVER_S


def drain_s(queue: float, fall_rate: float, trim_rate: float) -> Optional[float]:
    """Seconds until the snaptrim queue is empty; None where that is not seen.

    A PG's queue falls only when a whole snapshot is done: while objects are trimmed, one that stays is no standstill.
    """
    return None if queue > 0 and fall_rate <= 0 and trim_rate > 0 else finish_s(queue, fall_rate)


_SIGNS_OF_WORK = {
    "recovery": ("recovery.objects_left", "recovery.objects_s"),
    "backfill": ("backfill.objects_left", "backfill.objects_s"),
    "scrub": ("scrub.objects_s", "scrub.pgs_late"),
    "snaptrim": ("snaptrim.queue", "snaptrim.objects_s"),
}


def at_work(means: Mapping[str, float]) -> Dict[str, float]:
    """Leave out the rates of work that is not there: nothing to recover is no missed recovery rate."""

    def idle(name: str) -> bool:
        signs = _SIGNS_OF_WORK.get(work_of(name))
        return signs is not None and not any(means.get(scoped(sign, parted(name)[1])) for sign in signs)

    return {name: value for name, value in means.items() if not (METRICS[name].unit.endswith("/s") and idle(name))}


def clients_wait(values: Mapping[str, float], usual: Mapping[str, float]) -> bool:
    """Whether clients, who worked before (`usual`), have operations under way and none of them ends.

    Then no latency is seen, and nothing is well. What waits for its turn stands in the mClock queues; where these are
    not seen, operations that Ceph calls slow tell.
    """
    if values.get("client.iops") != 0 or not usual.get("client.iops"):
        return False
    queue = values.get("queue.client")
    return queue > 0 if queue is not None else values.get("ops.slow", 0.0) > usual.get("ops.slow", 0.0)


def _check(values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if name not in METRICS:
            raise ValueError(f"{name} is no metric")
        if not 0 <= value <= LARGEST:
            raise ValueError(f"{name} must be 0 to {LARGEST:g}, got {value}")


def _measure(name: str, samples: Sequence[Sample]) -> Measure:
    plain, scope = parted(name)
    rate = scoped(_OPERATIONS.get(plain, ""), scope)
    weights = [sample.seconds * sample.values.get(rate, 1.0) for sample in samples]
    values = [sample.values[name] for sample in samples]
    if sum(weights) <= 0:
        weights = [1.0] * len(values)
    # fsum, and clamped: rounding must not carry a mean outside of what was seen
    mean = math.fsum(weight * value for weight, value in zip(weights, values)) / math.fsum(weights)
    mean = min(max(mean, min(values)), max(values))
    spread = math.fsum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(spread / (len(values) - 1)) if len(values) > 1 else 0.0
    return Measure(mean, deviation, len(values))


def _pool_percentiles(samples: Sequence[Sample], measures: Dict[str, Measure]) -> None:
    latency = {}
    for kind in dict.fromkeys(kind for sample in samples for kind in sample.latency):
        together = pooled(sample.latency[kind] for sample in samples if kind in sample.latency)
        if together is not None:
            latency[kind] = together
    for name, value in percentiles(latency).items():
        measure = measures.get(name, Measure(value, 0.0, 1))
        measures[name] = Measure(value, measure.deviation, measure.count)


def _finish_times(samples: Sequence[Sample], measures: Dict[str, Measure]) -> None:
    """Times to finish from the rates of the whole window: one sample that stood still would make their mean "never"."""
    for scope in dict.fromkeys(parted(name)[1] for name in measures):
        for name, (amount, rate) in _LEFT_AND_RATE.items():
            _finish_time(samples, measures, *(scoped(each, scope) for each in (name, amount, rate)))
        _drain_time(samples, measures, scope)
        _scrub_time(samples, measures, scope)


def _finish_time(samples: Sequence[Sample], measures: Dict[str, Measure], name: str, amount: str, rate: str) -> None:
    last: List[float] = [sample.values[amount] for sample in samples if amount in sample.values][-1:]
    if last and rate in measures:
        measure = measures.get(name, Measure(0.0, 0.0, 1))
        measures[name] = Measure(finish_s(last[0], measures[rate].mean), measure.deviation, measure.count)


def _drain_time(samples: Sequence[Sample], measures: Dict[str, Measure], scope: Optional[Scope]) -> None:
    name, queue, rate = (scoped(f"snaptrim.{each}", scope) for each in ("drain_s", "queue", "objects_s"))
    queues = [(sample.at, sample.values[queue]) for sample in samples if queue in sample.values]
    if len(queues) > 1 and name in measures:
        fall_rate = (queues[0][1] - queues[-1][1]) / (queues[-1][0] - queues[0][0])
        trim_rate = measures[rate].mean if rate in measures else 0.0
        drain = drain_s(queues[-1][1], fall_rate, trim_rate)
        if drain is None:
            del measures[name]
        else:
            measures[name] = replace(measures[name], mean=drain)


def _scrub_time(samples: Sequence[Sample], measures: Dict[str, Measure], scope: Optional[Scope]) -> None:
    interval, rate = (scoped(f"scrub.{each}", scope) for each in ("interval_s", "bytes_s"))
    scrubs = [sample.values for sample in samples if {interval, rate} <= set(sample.values)]
    if scrubs and measures[rate].mean > 0:
        pool_bytes = scrubs[-1][interval] * scrubs[-1][rate]
        measures[interval] = replace(measures[interval], mean=finish_s(pool_bytes, measures[rate].mean))
