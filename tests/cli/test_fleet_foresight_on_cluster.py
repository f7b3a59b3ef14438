"""Real clusters, described while clients write: their twins decide what comes to them."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.knobs.releases import nine, parse_version
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.pg_documents import pg_rows
from ceph_tuner.core.measure.reading import pool_of
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.files import cluster_file, cluster_text
from ceph_tuner.fleet import portable_file
from ceph_tuner.fleet.portable import sealed
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import KIB, Pool
from running_program import Run

pytestmark = pytest.mark.long_on_reef


CLIENTS = ["rados", "bench", "-p", "rbd", "90", "write", "-b", "65536", "-t", "4", "--no-cleanup"]
"""For longer than a test: a cluster whose settings were changed a minute before is sampled anew."""
SLO = "schema: 1\nname: night\nobjectives:\n  - client.p95_ms <= 10 s\n  - recovery.bytes_s >= 500 kB/s\n"
STARVED = nine((0.5, 8, 0.0), (0.01, 1, 0.02), (0.05, 1, 0.3))
"""Recovery at 2% of the capacity: a twentieth of a MB/s on this device, and a tenth of the objective."""
OTHERS = nine((0.5, 2, 0.0), (0.4, 1, 0.0), (0.05, 1, 0.9))


@pytest.fixture
def cluster(any_lab: Lab) -> Iterator[Cluster]:
    with closing(open_cluster(any_lab.name)) as opened:
        kept = opened.store.items("history/")
        yield opened
        for key in opened.store.keys("history/"):
            opened.store.remove(key)
        for key, value in kept.items():
            opened.store.set(key, value)
        any_lab.run(["rados", "-p", "rbd", "cleanup", "--prefix", "benchmark_data"])


@pytest.fixture
def under_load(any_lab: Lab, cluster: Cluster) -> Iterator[DescribedCluster]:
    """What the cluster tells while clients write 64 KiB objects, until the test is over."""
    with subprocess.Popen(any_lab.argv(CLIENTS), stdout=subprocess.DEVNULL) as clients:
        try:
            time.sleep(2)
            yield describe(cluster, sample_s=5)
        finally:
            clients.send_signal(signal.SIGINT)
            clients.wait(timeout=60)


def test_a_profile_comes_to_a_cluster_only_where_its_own_twin_has_nothing_against_it(
    any_lab: Lab, cluster: Cluster, under_load: DescribedCluster, run: Run, tmp_path: Path
) -> None:
    before = cluster.config.dump()
    model = under_load.model
    assert (model.osds, model.hosts, model.release) == (3, 0, cluster.release)
    assert model.version == parse_version(cluster.version)
    maps, listed = (parsed(cluster.commander.mon(prefix, {}), prefix) for prefix in ("osd dump", "pg ls"))
    number = next(row["pool"] for row in maps["pools"] if row["pool_name"] == "rbd")
    acting = tuple(tuple(row["acting"]) for row in pg_rows(listed) if pool_of(row["pgid"]) == number)
    assert Pool("rbd", 32, 3, acting=acting) in model.pools
    capacity = cluster.config.effective(0)["osd_mclock_max_capacity_iops_ssd"]
    assert model.osd.capacity_iops == pytest.approx(float(capacity))
    assert (model.osd.shards, model.osd.throttle_bytes) == (8, 256 * KIB)
    written = [stream for stream in model.clients if stream.pool == "rbd"]
    assert [round(stream.block_bytes / KIB) for stream in written] == pytest.approx([64], rel=0.1)
    assert (written[0].rate or 0) > 20
    assert written[0].read_share < 0.1
    # nobody sees how they wait
    assert not written[0].drains
    assert under_load.settings == {}
    again = cluster_file.from_text(cluster_text.to_text(under_load))
    assert (again.model, again.stored) == (model, under_load.stored)

    # as the plugin would have kept it
    now, measures = cluster.clock.now(), {name: Measure(value, 0.0, 5) for name, value in under_load.seen.items()}
    History(cluster.store).add_window(Window(now - 60, now, measures))
    (tmp_path / "slo.yaml").write_text(SLO)
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(f"schema: 1\nclusters:\n  paris: {{lab: {any_lab.name}, slo: slo.yaml}}\n")

    def brought(settings: object, *more: str) -> Tuple[int, str, str]:
        profile = Profile.make("other", cluster.release, settings)  # type: ignore[arg-type]
        origin = {"cluster": "rome", "exported": "2026-11-21T19:00:00Z"}
        portable_file.write(tmp_path / "other.yaml", sealed(profile, origin), force=True)
        file = str(tmp_path / "other.yaml")
        return run("fleet", "import", file, "--fleet", str(fleet), "--although-unlike", *more)

    code, out, err = brought(STARVED, "--yes")
    assert code == 2
    assert "recovery.bytes_s >= 500 kB/s, kept now" in err
    assert "the loss of an OSD is assumed" in err
    assert "✗" in out
    assert cluster.config.dump() == before
    code, out, err = brought(OTHERS, "--yes", "--format", "json")
    (document,) = json.loads(out)
    predicted: List[bool] = [entry["profile"]["met"] for entry in document["prediction"]["objectives"]]
    assert (code, predicted, document["prediction"]["refused"]) == (0, [True, True], None)
    assert cluster.config.dump() != before
    assert run("rollback", "--cluster", any_lab.name)[0] == 0
    assert sorted(cluster.config.dump()) == sorted(before)
