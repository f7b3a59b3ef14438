"""The whole cluster's samples, and in them what device classes and pools show by themselves.

A class is sampled as a cluster of its own: its OSDs' counters, and the sums of the pools on it. A pool that lies on
several classes counts with each of them.

OSDs do not count by pool. Rates of a pool are those of its sums, which Ceph adds up from reports of every 5 s or so.
Its mean latencies come from a query that the OSDs answer by pool, and a percentile is an upper bound: were all the
slowest operations of its OSDs those of this pool, it would be this. It is exact where the pool has its OSDs for itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Collection, Dict, FrozenSet, Mapping, Optional, Union

from ceph_tuner.core.measure.counters import Trend
from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.metrics import CLASS, OF_POOLS, Scope, in_order, scoped
from ceph_tuner.core.measure.reading import PoolReading, Reading, ServedOperations
from ceph_tuner.core.measure.sample import READ, WRITE, Sample, percentiles
from ceph_tuner.core.measure.sampling import SampleCoverage, Sampling
from ceph_tuner.core.measure.scopes import Members

_RATES = {
    "client.read_iops": ("num_read", 1.0),
    "client.write_iops": ("num_write", 1.0),
    "client.read_bytes_s": ("num_read_kb", 1024.0),
    "client.write_bytes_s": ("num_write_kb", 1024.0),
    "recovery.bytes_s": ("num_bytes_recovered", 1.0),
}
"""Rate of a pool -> the sum that rises by it, and the sum's unit."""


class SamplingByScope:
    """Compares each reading with those before it, as a whole and for each scope that is asked for."""

    def __init__(self) -> None:
        self._whole = Sampling()
        self._parts: Dict[Scope, Union[Sampling, _PoolSampling]] = {}
        self._osds: Dict[FrozenSet[int], Sampling] = {}
        """Of the OSDs of pools that are no class's OSDs."""
        self._up: Optional[Collection[int]] = None
        self._up_in: Dict[FrozenSet[int], FrozenSet[int]] = {}
        """Scopes' OSDs -> those of them that run, while the same OSDs run: of 10 000 they are not counted each time."""

    @property
    def coverage(self) -> SampleCoverage:
        """Of the whole cluster's newest sample."""
        return self._whole.coverage

    def scrubs_since(self, scope: Optional[Scope] = None) -> Optional[float]:
        """When the oldest scrub under way began, of the whole cluster or of a class; None where none is known to be."""
        part = self._whole if scope is None else self._parts.get(scope)
        return part.scrubs_since if isinstance(part, Sampling) else None

    def take(self, reading: Reading, scopes: Optional[Mapping[Scope, Members]] = None) -> Optional[Sample]:
        """The sample up to this reading; None for the first one, and after a gap or a step of the clock."""
        scopes = scopes or {}
        sample = self._whole.take(reading)
        self._parts = {scope: self._parts.get(scope) or _new_part(scope) for scope in scopes}
        values: Dict[str, float] = {}
        latency: Dict[str, Histogram] = {}
        osds = _SamplesOfOsds(self._osds)
        self._notice_who_runs(reading, scopes)
        for scope, part in sorted(self._parts.items(), key=lambda each: each[0].kind != CLASS):
            members = scopes[scope]
            section = reading.part(members.osds, members.pools, self._osds_up(reading, members))
            if isinstance(part, Sampling):
                own = osds.samples[members.osds] = part.take(section)
            else:
                own = part.take(section, osds.of(members.osds, section))
            if own is not None:
                values.update({scoped(name, scope): value for name, value in own.values.items()})
                latency.update({scoped(kind, scope): histogram for kind, histogram in own.latency.items()})
        self._osds = osds.used
        if sample is None or not values:
            return sample
        together = {**sample.values, **values}
        return replace(
            sample,
            values={name: together[name] for name in in_order(together)},
            latency={**sample.latency, **latency},
        )

    def _notice_who_runs(self, reading: Reading, scopes: Mapping[Scope, Members]) -> None:
        """Keep what is known of scopes whose OSDs all run, or are down, as before."""
        if reading.up is None or reading.up is not self._up:
            osd_sets = {members.osds for members in scopes.values()}
            difference = set(self._up or ()).symmetric_difference(reading.running)
            before = self._up_in.items() if self._up is not None else ()
            self._up_in = {osds: up for osds, up in before if osds in osd_sets and difference.isdisjoint(osds)}
            self._up = reading.up

    def _osds_up(self, reading: Reading, members: Members) -> FrozenSet[int]:
        if members.osds not in self._up_in:
            self._up_in[members.osds] = members.osds.intersection(reading.running)
        return self._up_in[members.osds]


class _SamplesOfOsds:
    """What OSDs did for all pools, each set of them sampled once in a reading: pools lie on the OSDs of classes."""

    def __init__(self, samplings: Mapping[FrozenSet[int], Sampling]) -> None:
        self._samplings = samplings
        self.samples: Dict[FrozenSet[int], Optional[Sample]] = {}
        """Those of classes, put in by who takes them, and of other sets of OSDs."""
        self.used: Dict[FrozenSet[int], Sampling] = {}

    def of(self, osds: FrozenSet[int], section: Reading) -> Optional[Sample]:
        if osds not in self.samples:
            self.used[osds] = self._samplings.get(osds) or Sampling()
            self.samples[osds] = self.used[osds].take(replace(section, pgs={}, pools={}))
        return self.samples[osds]


class _PoolSampling:
    """Takes what a reading says of one pool, and the sample of the OSDs that it lies on."""

    def __init__(self) -> None:
        self._background = Sampling()
        self._rates = {name: Trend() for name in _RATES}
        self._served = {name: Trend() for name in ServedOperations._fields}
        # what its OSDs did for all pools, over the same stretch of time as what they did for this one
        self._done = dict.fromkeys((READ, WRITE), 0.0)
        self._of_osds = {kind: Trend() for kind in self._done}

    def take(self, reading: Reading, osds: Optional[Sample]) -> Optional[Sample]:
        background = self._background.take(replace(reading, osds={}, up=(), latency={}, queues={}))
        pool = next(iter(reading.pools.values()), PoolReading({}, 0.0))
        for name, (counter, unit) in _RATES.items():
            total = pool.sums.get(counter)
            self._rates[name].add(reading.at, None if total is None else unit * total)
        for name, trend in self._served.items():
            trend.add(reading.at, None if pool.served is None else getattr(pool.served, name))
        for kind, trend in self._of_osds.items():
            self._done[kind] += osds.seconds * osds.values.get(f"client.{kind}_iops", 0.0) if osds is not None else 0.0
            trend.add(reading.at, self._done[kind])
        if background is None or osds is None or not pool.sums:
            return None
        values = {name: value for name, value in background.values.items() if name in OF_POOLS}
        values.update(self._clients())
        latency = self._bounds(osds)
        values.update(percentiles(latency))
        return Sample(reading.at, background.seconds, values, latency)

    def _clients(self) -> Dict[str, float]:
        values = _present({name: trend.rising() for name, trend in self._rates.items()})
        for kind in ("iops", "bytes_s"):
            both = [f"client.{direction}_{kind}" for direction in (READ, WRITE)]
            if all(name in values for name in both):
                values[f"client.{kind}"] = sum(values[name] for name in both)
        rates = _present({name: trend.rising() for name, trend in self._served.items()})
        if rates:
            for metric, kinds in (("mean_ms", (READ, WRITE)), ("read_mean_ms", (READ,)), ("write_mean_ms", (WRITE,))):
                operations = sum(rates[f"{kind}s"] for kind in kinds)
                if operations > 0:
                    values[f"client.{metric}"] = 1000.0 * sum(rates[f"{kind}_s"] for kind in kinds) / operations
        return values

    def _bounds(self, osds: Sample) -> Dict[str, Histogram]:
        """The slowest operations of the OSDs, as many as the pool's share of them is."""
        histograms = {}
        for kind, trend in self._of_osds.items():
            own, of_osds = self._served[f"{kind}s"].rising(), trend.rising()
            if own and of_osds and kind in osds.latency:
                histograms[kind] = osds.latency[kind].slowest(own / of_osds)
        return histograms


def _new_part(scope: Scope) -> Union[Sampling, _PoolSampling]:
    return Sampling() if scope.kind == CLASS else _PoolSampling()


def _present(rates: Mapping[str, Optional[float]]) -> Dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate is not None}
