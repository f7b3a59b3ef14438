from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import REEF
from ceph_tuner.files import cluster_file, cluster_text
from ceph_tuner.files.quantities import quantity
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import (
    MIB,
    ClientStream,
    ClusterModel,
    DeleteWork,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("cluster-*.yaml"))

AMOUNTS = st.floats(1e-3, 1e12)
RATES, BANDWIDTHS = st.floats(1.0, 1e7), st.floats(1e4, 1e12)
TIMES = st.just(0.0) | st.floats(1e-7, 1.0)
SIZES, BLOCKS = st.integers(1, 1 << 32), st.integers(1, 1 << 27)
COUNTS = st.integers(1, 10**9)
POOLS = ("rbd", "cold")

DEVICES = st.builds(
    Device,
    iops=RATES,
    bandwidth_bytes_s=BANDWIDTHS,
    read_iops=st.none() | RATES,
    read_bandwidth_bytes_s=st.none() | BANDWIDTHS,
    shared=st.booleans(),
    slice_s=TIMES,
    latency_s=TIMES,
    read_latency_s=TIMES,
    spread=st.floats(0, 1),
    request_bytes=st.integers(512, 1 << 30),
)
OSDS = st.builds(
    OsdModel,
    device=DEVICES,
    capacity_iops=RATES,
    bandwidth_bytes_s=BANDWIDTHS,
    shards=st.integers(1, 16),
    threads_per_shard=st.integers(1, 16),
    device_class=st.sampled_from(("ssd", "hdd")),
    write_cpu_s=TIMES,
    read_cpu_s=TIMES,
    kv_latency_s=TIMES,
    throttle_bytes=st.just(0.0) | AMOUNTS,
    message_cpu_s=TIMES,
    commit_cpu_s=TIMES,
    moved_cpu_s_per_byte=TIMES.map(lambda of_a_mib: of_a_mib / MIB),
    db=st.none() | DEVICES,
)
CLIENTS = st.builds(
    ClientStream,
    pool=st.sampled_from(POOLS),
    rate=st.none() | RATES,
    depth=st.integers(1, 5000),
    read_share=st.floats(0, 1),
    block_bytes=BLOCKS,
    latency_s=TIMES,
    cpu_s=TIMES,
    drains=st.booleans(),
    partial_stripe=st.booleans(),
)
WORKED = st.sampled_from(POOLS)


TO_LAST = st.just(1.0) | st.floats(1, 1e6)


def listed(work: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(work, max_size=2).map(tuple)


def recovery(degraded: bool) -> st.SearchStrategy[Any]:
    target = st.none() | st.integers(0, 5)
    rounds = st.integers(1, 100)
    works = st.builds(RecoveryWork, WORKED, COUNTS, SIZES, st.just(degraded), target, rounds=rounds, times=TO_LAST)
    others = st.none() | st.integers(0, 10_000)
    return listed(st.builds(_beside, works, others) if degraded else works)


def _beside(work: RecoveryWork, others: Optional[int]) -> RecoveryWork:
    """Clients go to its objects and to so many others."""
    return work if others is None else replace(work, among=work.objects + others)


MODELS = st.builds(
    ClusterModel,
    osds=st.integers(6, 400),
    osd=OSDS,
    pools=st.just((Pool("rbd", 64, 3), Pool("cold", 32, 6, 4))),
    clients=listed(CLIENTS),
    # a file lists recovery first
    recovery=st.tuples(recovery(True), recovery(False)).map(lambda both: both[0] + both[1]),
    scrub=listed(st.builds(ScrubWork, WORKED, COUNTS, SIZES, st.booleans())),
    snaptrim=listed(st.builds(SnaptrimWork, WORKED, COUNTS, SIZES, times=TO_LAST)),
    deletion=listed(st.builds(DeleteWork, WORKED, COUNTS)),
    version=st.none() | st.just((20, 2, 4)),
    network_s=TIMES,
    hosts=st.integers(0, 40),
    # without them their times are not written
    processors=st.integers(1, 256),
    scrub_backoff_ratio=st.floats(0, 1),
    upmap_max_deviation=st.integers(0, 100),
    simulated_osds=st.sampled_from((0, 6)),
)


@settings(max_examples=25)
@given(MODELS, st.dictionaries(st.sampled_from(POOLS), AMOUNTS), st.text(max_size=40))
def test_what_is_written_is_read_back_as_the_same_cluster(model: ClusterModel, stored: Any, note: str) -> None:
    # of fewer OSDs than these, all of them cannot be said to stand for all
    if model.simulated_osds == model.osds:
        return
    described = DescribedCluster("here", model, {"osd_max_scrubs": 5}, stored=stored, notes=(note,))
    read = cluster_file.from_text(cluster_text.to_text(described))
    assert (read.name, read.model, read.settings, read.stored) == ("here", model, described.settings, stored)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_survive_it(path: Path) -> None:
    described = cluster_file.read(path)
    again = cluster_file.from_text(cluster_text.to_text(described), path.name)
    assert (again.model, again.settings, again.stored) == (described.model, described.settings, described.stored)


def test_custom_values_keep_their_digits() -> None:
    custom = {"osd_mclock_profile": "custom", **REEF.profiles["high_client_ops"]}
    custom["osd_mclock_scheduler_client_lim"] = 0.987654
    described = DescribedCluster("here", ClusterModel(3, OsdModel(Device(1e3, 1e8)), (Pool("rbd"),)), custom)
    assert cluster_file.from_text(cluster_text.to_text(described)).settings == custom


def test_notes_stand_on_top_and_amounts_have_units(tmp_path: Path) -> None:
    model = ClusterModel(3, OsdModel(Device(90e3, 1e9)), (Pool("rbd"),), release=REEF)
    path = tmp_path / "cluster.yaml"
    cluster_text.write(path, DescribedCluster("here", model, notes=("the drive is a guess",)))
    text = path.read_text()
    assert text.startswith("# the drive is a guess\nschema: 1\n")
    for line in ("iops: 90 kIOPS", "bandwidth: 1 GB/s", "latency: 100 us", "throttle: 64 MiB", "bandwidth: 1200 MiB/s"):
        assert line in text
    with pytest.raises(InputError, match="--force"):
        cluster_text.write(path, DescribedCluster("other", model))


@pytest.mark.parametrize("stored", ["3.5 PiB", "3.5 PB", "20 TiB", "1.1 TB", "7 GiB"])
def test_what_is_stored_is_written_in_the_unit_that_it_was_read_in(stored: str) -> None:
    text = EXAMPLES[0].read_text(encoding="utf-8")
    given = cluster_file.from_text(text)
    own = replace(given, stored={given.model.pools[0].name: quantity(stored, "size", "")})
    assert cluster_text.to_dict(own)["pools"][0]["stored"] == stored
