from __future__ import annotations

import pytest
from patients import TIB, healthy, osd_facts

from ceph_tuner.doctor.compressing import compression
from ceph_tuner.doctor.facts import PoolFacts
from ceph_tuner.doctor.health import laggy, metadata

# as a cluster's `ceph health detail` gave it, published in an issue of rook
TRIM = (
    "2 MDSs behind on trimming",
    "mds.myfs-a(mds.1): Behind on trimming (6378/128) max_segments: 128, num_segments: 6378",
    "mds.myfs-c(mds.1): Behind on trimming (6560/128) max_segments: 128, num_segments: 6560",
)


def test_a_healthy_cluster_has_no_finding() -> None:
    assert laggy(healthy()) == metadata(healthy()) == compression(healthy()) == []


def test_laggy_pgs_count_whatever_else_they_are() -> None:
    states = {"active+clean": 90, "active+clean+laggy": 6, "active+clean+wait": 3, "active+clean+snaptrim_wait": 1}
    (found,) = laggy(healthy(pg_states=states))
    assert found.share == pytest.approx(0.09)


def test_a_metadata_server_behind_on_trimming_is_found_with_how_far() -> None:
    (found,) = metadata(healthy(health={"MDS_TRIM": TRIM}))
    assert found.check == "mds-trimming"
    assert found.share == pytest.approx(1 - 128 / 6560)
    assert found.evidence == TRIM


def test_slow_metadata_io_is_found() -> None:
    (found,) = metadata(healthy(health={"MDS_SLOW_METADATA_IO": ("1 MDSs report slow metadata IOs",)}))
    assert found.check == "mds-slow-io"


@pytest.mark.parametrize(("rejected", "said"), [(26_669_868, False), (48_190_909, True)])
def test_compression_in_vain_is_said_from_half_on(rejected: float, said: bool) -> None:
    # the published run: 48 190 908 compressed, 26 669 868 in vain
    osd = osd_facts(0, compressed=48_190_908.0, rejected=rejected)
    found = compression(healthy(osds=(osd,)))
    assert bool(found) == said
    assert all(one.share == pytest.approx(0.05, abs=1e-6) for one in found)


def test_a_pool_whose_data_hardly_shrinks_is_named_and_one_that_halves_is_not() -> None:
    vain = PoolFacts(1, "photos", 64, 3, TIB, 0, "aggressive", 100e9, 95e9)
    good = PoolFacts(2, "logs", 64, 3, TIB, 0, "aggressive", 121_976_225_792, 60_988_112_896)
    (found,) = compression(healthy(pools=(vain, good)))
    assert found.evidence == ("photos (aggressive): what is compressed takes 95% of its size",)
    assert found.commands == ("ceph osd pool set photos compression_mode passive",)
