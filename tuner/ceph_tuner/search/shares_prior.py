"""What anybody who knows mClock expects of settings, where no twin of the cluster is at hand: a prior in a page.

Each class gets its reservation, then what is left by weight, up to its limit; background work asks for all that it may
have. What the background gets is its rate; what it and the clients get together is how busy the device is, and the
clients wait as in a queue that is so busy. Only differences between settings count: a search learns how far to trust
them (`bayesian.kernel`).
"""

from __future__ import annotations

import math
from typing import Dict, FrozenSet, Iterable, Mapping, NamedTuple

import numpy as np

from ceph_tuner.core.knobs.recovery_limit import BACKFILLS, DEFAULT_CHUNK, LIMIT, OBJECT_BYTES
from ceph_tuner.core.knobs.releases import CLASSES
from ceph_tuner.core.measure.metrics import METRICS, parted, work_of
from ceph_tuner.optimise.contract import Array
from ceph_tuner.search.entitlements import entitlements
from ceph_tuner.search.space import CHUNK, DEFERRED, KnobSpace

CLIENT, RECOVERY, BEST_EFFORT = CLASSES

CLIENT_DEMAND = 0.4
"""Share of the capacity that clients ask for, where nothing is known of it."""

_BUSIEST = 0.95
_LEAST = 0.01

_BEST_EFFORT_WORK = frozenset({"scrub", "snaptrim", "backfill"})


class _Exponents(NamedTuple):
    """How a knob moves the rate of its work, and the clients' latency beside it."""

    rate: float
    wait: float


_CONCURRENCY: Mapping[str, Mapping[str, _Exponents]] = {
    # 256 KiB in place of 8 MiB: p95 from 46 to 16 ms, recovery from 34 to 26 MB/s
    "recovery": {CHUNK: _Exponents(0.075, 0.25)},
    # docs/ceph-behaviour.md: a third of the chunk took 40% off the clients' p95 at the same scrub rate
    "scrub": {"osd_max_scrubs": _Exponents(0.1, 0.1), "osd_scrub_chunk_max": _Exponents(0.0, 0.45)},
    "snaptrim": {
        "osd_pg_max_concurrent_snap_trims": _Exponents(0.3, 0.1),
        "osd_max_trimming_pgs": _Exponents(0.3, 0.1),
    },
}
"""Knobs that a kind of work runs faster with, or that clients wait longer for."""

_CONCURRENCY_ON_SHARDS: Mapping[str, Mapping[str, _Exponents]] = {
    **_CONCURRENCY,
    # a scrub has one chunk in one shard's queue, and a shard its part of the limit: one at a time in the place of five
    # took the rate from 80 to 16 MB/s, and the p99 from 50 to 20 ms
    "scrub": {**_CONCURRENCY["scrub"], "osd_max_scrubs": _Exponents(0.9, 0.4)},
}
"""The same for OSDs with several shards."""

_SCRUBBED_ALWAYS = 0.3
"""Share of the device that scrub holds, as clients see it, whatever it is given: a limit bounds the rate of scrub,
the chunk bounds the wait (limits of 0.9, 0.5 and 0.2 left the clients' latency where it was)."""


# docs/ceph-behaviour.md: 4 in the place of 64 on emulated hard disks
_TAIL_OF_BATCHES = {"client.p95_ms": 0.2, "client.p99_ms": 0.35}
"""Exponents of a batch of deferred writes."""


_PULLED = 0.1
"""Of the objects that recovery copies, the part whose pulls count as whole chunks against the limit. On one shard, of
objects of 1 MiB: 9.2 MB/s with chunks of 1 MiB and 5.1 with 8 MiB under a limit of 0.1, 21.6 and 13.7 under 0.3
(docs/ceph-behaviour.md)."""


class SharesPrior:
    """Implements `ceph_tuner.optimise.Prior` for latencies, rates and times to finish."""

    def __init__(
        self, space: KnobSpace, metrics: Iterable[str], work: Iterable[str], object_bytes: float = OBJECT_BYTES
    ) -> None:
        """`work`: kinds that run: recovery, backfill, scrub, snaptrim. `object_bytes`: of what is recovered."""
        self._space, self._work, self._object_bytes = space, frozenset(work), object_bytes
        self._metrics = [name for name in metrics if METRICS[name].unit != "1"]

    def predict(self, points: Array) -> Mapping[str, Array]:
        """Give metrics up to a factor of their own, shape (n, size) -> metric -> shape (n,)."""
        constants = {name: np.full(len(points), value) for name, value in self._space.origin.items()}
        knobs = {**constants, **self._space.columns(points)}
        shares = allocation({**knobs, LIMIT: self._recovery_limit(knobs)} if LIMIT in knobs else knobs, self._work)
        background = shares[BEST_EFFORT] if self._work & _BEST_EFFORT_WORK != {"scrub"} else _SCRUBBED_ALWAYS
        busy = np.minimum(shares[CLIENT] + shares[RECOVERY] + background, _BUSIEST)
        rates = {
            "client": shares[CLIENT],
            "recovery": shares[RECOVERY],
            **dict.fromkeys(_BEST_EFFORT_WORK, shares[BEST_EFFORT]),
        }
        # where clients get less than they ask for, they wait for their share
        wait = CLIENT_DEMAND / np.maximum(shares[CLIENT], _LEAST) / (1.0 - busy)
        for kind, exponents in (_CONCURRENCY_ON_SHARDS if self._space.shards > 1 else _CONCURRENCY).items():
            for name in (name for name in exponents if name in knobs):
                rates[kind] = rates[kind] * knobs[name] ** exponents[name].rate
                wait = wait * (knobs[name] ** exponents[name].wait if kind in self._work else 1.0)
        batch = knobs[DEFERRED] / self._space.origin[DEFERRED] if DEFERRED in knobs else np.ones(len(points))
        metrics = {}
        for name in self._metrics:
            rate = np.maximum(rates.get(work_of(name), np.ones(len(points))), _LEAST)
            metrics[name] = wait if name.endswith("_ms") else 1.0 / rate if METRICS[name].unit == "s" else rate
            # a mean stays where it is: fewer writes wait, and more often
            metrics[name] = metrics[name] * batch ** _TAIL_OF_BATCHES.get(parted(name)[0], 0.0)
        return metrics

    def _recovery_limit(self, knobs: Mapping[str, Array]) -> Array:
        """Of the capacity, what recovery never exceeds; 0: nothing bounds it."""
        backfills = np.clip(knobs.get(BACKFILLS, np.ones(1)), 1.0, self._space.shards)
        chunks = np.maximum(knobs.get(CHUNK, np.full(1, DEFAULT_CHUNK)) / self._object_bytes, 1.0)
        bounds: Array = knobs[LIMIT] * backfills / self._space.shards / (1.0 + _PULLED * (chunks - 1.0))
        return bounds


def allocation(knobs: Mapping[str, Array], work: FrozenSet[str]) -> Dict[str, Array]:
    """Give the share of the capacity that each class gets, class -> shape (n,); together at most 1."""
    demands = {
        CLIENT: CLIENT_DEMAND,
        RECOVERY: math.inf if "recovery" in work else 0.0,
        BEST_EFFORT: math.inf if work & _BEST_EFFORT_WORK else 0.0,
    }
    stems = {name: f"osd_mclock_scheduler_{name}_" for name in CLASSES}
    parts = {name: (knobs[stem + "res"], knobs[stem + "wgt"], knobs[stem + "lim"]) for name, stem in stems.items()}
    return entitlements(parts, demands)
