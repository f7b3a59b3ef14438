"""A past that is known to the point, given to a real Prometheus server's storage: north, south, west and bare."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from ceph_tuner.core.measure.exported_metrics import PREFIX
from ceph_tuner.fleet.past import HOUR_S
from prometheus_server import Lines, PrometheusServer, remembering

STEP_S = 60
HOURS = 26
END = int(time.time() // HOUR_S) * 3600 - 7200
START = END - HOURS * 3600
BUSY = START + 20 * 3600
"""When both clusters' busiest hour begins."""
SILENCE = (START + 5 * 3600, START + 6 * 3600)
"""Of the south nothing was scraped then."""
RESTART = START + 10 * 3600
"""The south's counters begin anew."""

AWAY = (START + 3 * 3600, START + 4 * 3600)
"""One of two exporters of OSDs' counters was away then."""
DOWN = (START + 14 * 3600, START + 15 * 3600)
"""An OSD was down then, and the others took its load."""


def iops(at: int) -> float:
    """Of both clusters, at the end of a minute: a slow wave, and one hour that stands out."""
    wave = 200 + 100 * math.sin((at - START) / 7200)
    return 900.0 if BUSY < at <= BUSY + 3600 else round(wave, 3)


def past_of_the_north(lines: Lines) -> None:
    """The plugin's gauges; only since two hours its mgr is also scraped by Ceph's module."""
    labels = 'cluster="north",instance="mgr-a:9285"'
    for at in range(START, END + 1, STEP_S):
        values = {
            "build_info": 1.0,
            'operations_per_second{class="client"}': iops(at),
            'client_operations_per_second{direction="read"}': 0.25 * iops(at),
            'bytes_per_second{class="client"}': 8192 * iops(at),
            'client_latency_seconds{direction="all",quantile="0.95"}': 0.02 if at <= BUSY else 0.05,
            "slow_operations": 3.0 if at == BUSY else 0.0,
            'finish_seconds{class="recovery"}': 315360000.0 if at % 300 == 0 else 60.0,
        }
        for series, value in values.items():
            name, _, own = series.rstrip("}").partition("{")
            _put(lines, f"{PREFIX}{name}", ",".join(filter(None, (own, labels))), value, at)
        if at > END - 7200:
            _put(lines, "ceph_health_status", 'cluster="north",instance="mgr-a:9283"', 0, at)


def past_of_the_south(lines: Lines) -> None:
    """Two pools of a mgr's module; another mgr answers after a failover, and its counters begin anew."""
    reads = writes = 0.0
    for at in range(START, END + 1, STEP_S):
        if at == RESTART:
            reads = writes = 0.0
        reads, writes = reads + 0.25 * iops(at) * STEP_S, writes + 0.75 * iops(at) * STEP_S
        if SILENCE[0] < at <= SILENCE[1]:
            continue
        labels = 'cluster="south",instance="mgr-b:9283"'
        _put(lines, "ceph_health_status", labels, 1, at)
        for pool, share in (("1", 0.5), ("2", 0.5)):
            of = f'{labels},pool_id="{pool}"'
            for name, value in (("rd", reads), ("wr", writes), ("rd_bytes", 4096 * reads), ("wr_bytes", 4096 * writes)):
                _put(lines, f"ceph_pool_{name}", of, share * value, at)
            _put(lines, "ceph_pg_total", of, 32, at)
            _put(lines, "ceph_pg_active", of, 30 if at == BUSY + 60 and pool == "2" else 32, at)
        for osd in (0, 1, 2):
            _put(lines, "ceph_osd_in", f'{labels},ceph_daemon="osd.{osd}"', 1, at)
            _put(lines, "ceph_osd_up", f'{labels},ceph_daemon="osd.{osd}"', float(osd != 2 or at <= BUSY), at)


def past_of_osds(lines: Lines, cluster: str, module: bool) -> None:
    """Four OSDs on two hosts, each with its exporter; only the mgr's module tells which ones are up."""
    done = dict.fromkeys(range(10, 14), 0.0)
    for at in range(START, END + 1, STEP_S):
        down = 13 if DOWN[0] < at <= DOWN[1] else None
        for osd in done:
            done[osd] = 0.0 if osd == down else done[osd] + iops(at) * STEP_S / (4 if down is None else 3)
            of = f'cluster="{cluster}",ceph_daemon="osd.{osd}"'
            if module:
                _put(lines, "ceph_osd_up", f'{of},instance="mgr-{cluster}:9283"', float(osd != down), at)
            if osd == down or (osd > 11 and AWAY[0] < at <= AWAY[1]):
                continue
            for name, share in (("op_r", 0.25), ("op_w", 0.5), ("op_rw", 0.25)):
                _put(lines, f"ceph_osd_{name}", f'{of},instance="host-{osd // 12}:9926"', share * done[osd], at)
        if module:
            _put(lines, "ceph_health_status", f'cluster="{cluster}",instance="mgr-{cluster}:9283"', 1, at)


def _put(lines: Lines, name: str, labels: str, value: float, at: int) -> None:
    lines.setdefault(name, []).append((labels, value, at))


@contextmanager
def served_past(directory: Path) -> Iterator[PrometheusServer]:
    """A real server that finds this past in its storage and scrapes nobody."""
    lines: Lines = {}
    past_of_the_north(lines)
    past_of_the_south(lines)
    past_of_osds(lines, "west", module=True)
    past_of_osds(lines, "bare", module=False)
    with remembering(directory, lines) as made:
        yield made
