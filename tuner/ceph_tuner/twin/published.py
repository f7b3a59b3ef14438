"""Measurements that others published, which the twin is held against. Figures and orderings only, as data.

Tables A1 and A2: "QoS in Quincy: Comparison of mClock and WPQ schedulers with background operations - Part 1", ceph.io,
8 August 2022. Tables B1 to B3: Part 2 of the same, 10 August 2022. C1: "Ceph: A Journey to 1 TiB/s", ceph.io, 2024.
Tables F1 (NVMe) and F2 (hard disks): "QoS Study with mClock and WPQ Schedulers", Ceph's documentation for developers
(doc/dev/osd_internals/mclock_wpq_cmp_study.rst), 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, Tuple

from ceph_tuner.core.measure.metrics import work_of

WPQ = "WPQ"
CLIENT, BALANCED, RECOVERY = "high_client_ops", "balanced", "high_recovery_ops"
PROFILES = (CLIENT, BALANCED, RECOVERY)
TABLES = ("A1", "A2", "B1", "B2", "B3", "C1", "F1", "F2")
NODE_OF = {"A1": "A", "A2": "A", "B1": "B", "B2": "B", "B3": "B", "F1": "F1", "F2": "F2"}
"""The node of a table, by its baseline; C1 has none."""

TEN_SCRUBS = f"{CLIENT}, 10 scrubs"
REQUESTED = "WPQ, requested scrub"
BOOSTED = "WPQ, 1000 backfills"
CHEAP = {name: f"{name}, scrub cost 20 MiB" for name in PROFILES}
READS, WRITES = "random reads", "random writes"
PG_COUNTS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)

IOPS, MEAN_MS, BUSY_MS = "client IOPS", "client mean ms", "client mean ms in background"
FIRST_MS = "client mean ms at first"
TRIM_RATE, TRIM_S = "trimmed objects/s", "trim s"
RECOVERY_RATE, RECOVERY_S = "recovered objects/s", "recovery s"
SCRUB_S, OF_WPQ_SCRUB_S, OF_WPQ_IOPS = "scrub s", "scrub s of WPQ's", "client IOPS of WPQ's"
GAIN = "gain from 2 048 to 16 384 PGs"


def with_pgs(kind: str, pgs: int) -> str:
    """Name of a case of table C1."""
    return f"{kind}, {pgs} PGs"


@dataclass(frozen=True)
class Baseline:
    """Clients of a node without background work: what the device is fitted to, and the only thing."""

    iops: float
    mean_ms: float


BASELINES: Dict[str, Baseline] = {
    "A": Baseline(23_323.71, 2.747),
    # the article names no latency: 64 operations under way, by Little's law
    "B": Baseline(15_007.17, 64 / 15_007.17 * 1000),
    "F1": Baseline(21_500.0, 64 / 21_500.0 * 1000),
    "F2": Baseline(340.0, 64 / 340.0 * 1000),
}
"""By node. Fio, 4 KiB random writes, queue depth 64."""


@dataclass(frozen=True)
class Figure:
    """A published number: table, case, metric and value; `derived` where it follows from others."""

    table: str
    case: str
    metric: str
    value: float
    derived: str = ""
    """How it follows from what is printed, where it is not printed itself."""


@dataclass(frozen=True)
class Ordering:
    """Cases from the highest to the lowest, as published."""

    table: str
    metric: str
    falling: Tuple[str, ...]

    @property
    def between_profiles(self) -> bool:
        """Whether it compares mClock with mClock; the others compare with WPQ."""
        return not any(case.startswith(WPQ) for case in self.falling)


def _rows(table: str, metrics: Tuple[str, ...], rows: Dict[str, Tuple[float, ...]]) -> Iterator[Figure]:
    for case, values in rows.items():
        for metric, value in zip(metrics, values):
            yield Figure(table, case, metric, value)


FIGURES: Tuple[Figure, ...] = (
    *_rows(
        "A1",
        (IOPS, MEAN_MS, BUSY_MS, TRIM_RATE, TRIM_S),
        {
            WPQ: (17_520.63, 3.280, 6.2, 671.0, 121.83),
            CLIENT: (19_217.59, 3.323, 4.506, 747.0, 111.34),
            BALANCED: (18_998.55, 3.364, 5.074, 804.0, 100.0),
            RECOVERY: (18_293.20, 3.506, 5.270, 766.0, 108.0),
        },
    ),
    *_rows(
        "A2",
        (IOPS, MEAN_MS, BUSY_MS),
        {
            WPQ: (12_939.71, 4.945, 7.385),
            CLIENT: (13_651.66, 4.677, 8.020),
            BALANCED: (10_541.26, 6.118, 8.223),
            RECOVERY: (9_168.12, 6.998, 9.932),
        },
    ),
    *_rows("A2", (TRIM_RATE, TRIM_S), {WPQ: (431.0, 164.24), CLIENT: (528.0, 133.59), BALANCED: (495.0,)}),
    *_rows("A2", (RECOVERY_RATE, RECOVERY_S), {WPQ: (83.0, 224.0), BALANCED: (125.0, 144.0), RECOVERY: (140.0, 130.0)}),
    Figure("A2", CLIENT, RECOVERY_RATE, 83.0, "about as WPQ"),
    Figure("A2", CLIENT, RECOVERY_S, 224.0, "about as WPQ"),
    Figure("B1", WPQ, IOPS, 0.73 * 15_007.17, "27% below the baseline"),
    Figure("B1", CLIENT, IOPS, 0.76 * 15_007.17, "about 24% below the baseline"),
    Figure("B1", CLIENT, MEAN_MS, 5.62),
    Figure("B1", WPQ, MEAN_MS, 5.62 / 0.97, "high_client_ops is about 3% below it"),
    Figure("B2", TEN_SCRUBS, OF_WPQ_SCRUB_S, 0.56, "44% shorter"),
    Figure("B2", TEN_SCRUBS, OF_WPQ_IOPS, 0.94, "6% lower"),
    Figure("B2", TEN_SCRUBS, BUSY_MS, 7.0, "about 7"),
    Figure("B2", WPQ, BUSY_MS, 5.8),
    *(Figure("B3", CHEAP[name], OF_WPQ_SCRUB_S, 1.0, "similar to WPQ's") for name in PROFILES),
    Figure("C1", WRITES, GAIN, 1.0, "writes gain up to about 2 048 PGs"),
    *_rows(
        "F1",
        (IOPS, MEAN_MS, RECOVERY_RATE, RECOVERY_S),
        {
            WPQ: (18_000.0, 3.535, 97.0),
            BOOSTED: (2_544.0, 25.0, 350.0),
            CLIENT: (11_209.0, 5.688, 80.0, 966.0),
            BALANCED: (11_017.0, 5.75, 120.0, 647.0),
            RECOVERY: (11_153.0, 5.75, 159.0, 488.0),
        },
    ),
    *_rows(
        "F2",
        (IOPS, MEAN_MS, RECOVERY_S),
        {
            WPQ: (308.0, 208.0, 647.0),
            BOOSTED: (146.0, 433.0),
            CLIENT: (271.0, 235.0, 1_409.0),
            BALANCED: (248.0, 258.0, 966.0),
            RECOVERY: (240.0, 265.0, 747.0),
        },
    ),
    Figure("F2", WPQ, RECOVERY_RATE, 5.8),
    *(
        Figure("F2", case, RECOVERY_RATE, mib_s / 4, f"~{mib_s:g} MiB/s, in objects of 4 MiB")
        for case, mib_s in ((CLIENT, 11.0), (BALANCED, 16.5), (RECOVERY, 21.0))
    ),
)

ORDERINGS: Tuple[Ordering, ...] = (
    Ordering("A1", IOPS, (CLIENT, BALANCED, RECOVERY)),
    Ordering("A1", MEAN_MS, (RECOVERY, BALANCED, CLIENT)),
    Ordering("A1", BUSY_MS, (RECOVERY, BALANCED, CLIENT)),
    Ordering("A1", TRIM_RATE, (BALANCED, RECOVERY, CLIENT)),
    Ordering("A1", TRIM_S, (CLIENT, RECOVERY, BALANCED)),
    Ordering("A1", IOPS, (RECOVERY, WPQ)),
    Ordering("A1", BUSY_MS, (WPQ, RECOVERY)),
    Ordering("A1", TRIM_RATE, (CLIENT, WPQ)),
    Ordering("A2", IOPS, (CLIENT, BALANCED, RECOVERY)),
    Ordering("A2", MEAN_MS, (RECOVERY, BALANCED, CLIENT)),
    Ordering("A2", BUSY_MS, (RECOVERY, BALANCED, CLIENT)),
    Ordering("A2", TRIM_RATE, (CLIENT, BALANCED, RECOVERY)),
    Ordering("A2", RECOVERY_RATE, (RECOVERY, BALANCED, CLIENT)),
    Ordering("A2", RECOVERY_S, (CLIENT, BALANCED, RECOVERY)),
    Ordering("A2", IOPS, (CLIENT, WPQ, BALANCED)),
    Ordering("A2", BUSY_MS, (CLIENT, WPQ)),
    Ordering("A2", TRIM_RATE, (BALANCED, WPQ)),
    Ordering("A2", RECOVERY_RATE, (BALANCED, WPQ)),
    Ordering("B1", IOPS, (CLIENT, BALANCED)),
    Ordering("B1", IOPS, (CLIENT, RECOVERY)),
    Ordering("B1", SCRUB_S, (RECOVERY, BALANCED, CLIENT)),
    Ordering("B1", IOPS, (BALANCED, WPQ)),
    Ordering("B1", IOPS, (RECOVERY, WPQ)),
    Ordering("B1", MEAN_MS, (WPQ, CLIENT)),
    Ordering("B1", SCRUB_S, (CLIENT, WPQ)),
    Ordering("B2", SCRUB_S, (CLIENT, TEN_SCRUBS)),
    Ordering("B2", BUSY_MS, (TEN_SCRUBS, CLIENT)),
    Ordering("B2", IOPS, (WPQ, TEN_SCRUBS)),
    *(Ordering("B3", SCRUB_S, (name, CHEAP[name])) for name in PROFILES),
    Ordering("B3", IOPS, (CHEAP[CLIENT], CHEAP[BALANCED])),
    Ordering("B3", IOPS, (CHEAP[CLIENT], CHEAP[RECOVERY])),
    *(Ordering("B3", IOPS, (CHEAP[name], REQUESTED)) for name in PROFILES),
    Ordering("C1", IOPS, tuple(with_pgs(READS, pgs) for pgs in reversed(PG_COUNTS) if pgs >= 512)),
    Ordering("C1", IOPS, tuple(with_pgs(WRITES, pgs) for pgs in (2048, 512, 128))),
    Ordering("C1", GAIN, (READS, WRITES)),
    # the IOPS and means of F1's profiles are printed as alike
    Ordering("F1", FIRST_MS, (RECOVERY, BALANCED, CLIENT)),
    Ordering("F1", RECOVERY_RATE, (RECOVERY, BALANCED, CLIENT)),
    Ordering("F1", RECOVERY_S, (CLIENT, BALANCED, RECOVERY)),
    *(Ordering("F1", IOPS, (WPQ, name, BOOSTED)) for name in PROFILES),
    *(Ordering("F1", MEAN_MS, (BOOSTED, name, WPQ)) for name in PROFILES),
    Ordering("F1", RECOVERY_RATE, (BOOSTED, RECOVERY)),
    Ordering("F1", RECOVERY_RATE, (BALANCED, WPQ)),
    Ordering("F1", RECOVERY_RATE, (WPQ, CLIENT)),
    Ordering("F2", IOPS, (CLIENT, BALANCED, RECOVERY)),
    Ordering("F2", MEAN_MS, (RECOVERY, BALANCED, CLIENT)),
    Ordering("F2", FIRST_MS, (RECOVERY, BALANCED, CLIENT)),
    Ordering("F2", RECOVERY_RATE, (RECOVERY, BALANCED, CLIENT)),
    Ordering("F2", RECOVERY_S, (CLIENT, BALANCED, RECOVERY)),
    *(Ordering("F2", IOPS, (WPQ, name, BOOSTED)) for name in PROFILES),
    *(Ordering("F2", MEAN_MS, (BOOSTED, name, WPQ)) for name in PROFILES),
    *(Ordering("F2", RECOVERY_RATE, (WPQ, name)) for name in PROFILES),
)

TOLD_AGAINST_WPQ: Dict[str, Tuple[int, int]] = {
    IOPS: (8, 14),
    MEAN_MS: (8, 9),
    TRIM_RATE: (0, 2),
    RECOVERY_RATE: (4, 7),
    SCRUB_S: (1, 1),
}
"""Published orders against WPQ: so many the twin tells as they were measured, of so many (`twin validate`;
benchmarks/results/twin-published.md). Latencies of clients are counted together."""

_OF_METRICS = {"snaptrim": TRIM_RATE, "recovery": RECOVERY_RATE, "backfill": RECOVERY_RATE, "scrub": SCRUB_S}


def published_metric(metric: str) -> str:
    """The published metric that a metric of ours is nearest to."""
    if metric.startswith("client."):
        return MEAN_MS if metric.endswith("_ms") else IOPS
    return _OF_METRICS.get(work_of(metric), "")
