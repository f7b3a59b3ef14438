"""Expressions over series that are known to the point, answered by a real Prometheus server."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Iterator

import pytest

from ceph_tuner.cluster.prometheus import Prometheus
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.fleet.past_series import POOLS, expressions
from known_past import END
from prometheus_server import Lines, PrometheusServer, remembering

pytestmark = pytest.mark.cluster

STEP_S, LASTS_S = 15, 600
RECOVERING = {"peering": 0.0, "recovering": 5.0, "limited": 2.0}
"""Cluster -> objects a second that recovery finishes; degraded copies fall by 10 a second in each."""


def lines() -> Lines:
    found: Lines = {}

    def put(name: str, labels: str, value: float, at: int) -> None:
        found.setdefault(f"ceph_{name}", []).append((labels, value, float(at)))

    for at in range(END - LASTS_S, END + 1, STEP_S):
        for cluster in (*RECOVERING, "alone"):
            own = f'cluster="{cluster}"'
            for what in ("degraded", "misplaced"):
                put(f"num_objects_{what}", own, 10.0 * (END - at), at)
            if cluster == "alone":
                # as of a server that keeps few series
                continue
            for pool in (1, 2):
                # two pools have what is recovered, and 32 PGs of three copies each on six OSDs
                put("pool_recovering_objects_per_sec", f'{own},pool_id="{pool}"', RECOVERING[cluster] / 2, at)
                put("pg_total", f'{own},pool_id="{pool}"', 32.0, at)
            for osd in range(6):
                put("osd_numpg", f'{own},ceph_daemon="osd.{osd}"', 32.0, at)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with remembering(Path(tmp_path_factory.mktemp("prometheus")), lines(), "--storage.tsdb.retention.time=90d") as made:
        yield made


@pytest.mark.parametrize(
    ("metric", "cluster", "rate"),
    [
        ("recovery.copies_s", "peering", 0.0),
        ("recovery.copies_s", "recovering", 10.0),
        ("recovery.copies_s", "limited", 4.0),
        ("recovery.copies_s", "alone", 10.0),
        ("backfill.objects_s", "peering", 0.0),
        ("backfill.objects_s", "recovering", 10.0),
        ("backfill.objects_s", "limited", 6.0),
        ("backfill.objects_s", "alone", 10.0),
    ],
)
def test_a_fall_counts_as_far_as_recovery_was_at_work(
    server: PrometheusServer, metric: str, cluster: str, rate: float
) -> None:
    client = Prometheus("lab", server.url, SystemClock())
    try:
        (way,) = (each for each in expressions(metric) if each.source == POOLS)
        text = Template(way.text).substitute(sel=f'cluster="{cluster}",', over="300s", rate="300s", enough="3")
        (series,) = client.query(text, END).series
    finally:
        client.close()
    assert series.points[-1][1] == pytest.approx(rate)
