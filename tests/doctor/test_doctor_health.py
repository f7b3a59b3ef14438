from __future__ import annotations

import pytest
from patients import TIB, healthy, osd_facts, set_to

from ceph_tuner.doctor.compression import compression
from ceph_tuner.doctor.encryption import encryption
from ceph_tuner.doctor.facts import PoolFacts
from ceph_tuner.doctor.health import laggy, metadata, versions

# as a cluster's `ceph health detail` gave it, published in an issue of rook
TRIM = (
    "2 MDSs behind on trimming",
    "mds.myfs-a(mds.1): Behind on trimming (6378/128) max_segments: 128, num_segments: 6378",
    "mds.myfs-c(mds.1): Behind on trimming (6560/128) max_segments: 128, num_segments: 6560",
)


def test_a_healthy_cluster_has_no_finding() -> None:
    assert laggy(healthy()) == metadata(healthy()) == compression(healthy()) == []
    assert versions(healthy(versions={"18.2.7": 6})) == encryption(healthy()) == []


def test_laggy_pgs_count_whatever_else_they_are() -> None:
    states = {"active+clean": 90, "active+clean+laggy": 6, "active+clean+wait": 3, "active+clean+snaptrim_wait": 1}
    (found,) = laggy(healthy(pg_states=states))
    assert found.share == pytest.approx(0.09)


def test_a_metadata_server_behind_on_trimming_is_found_with_how_far() -> None:
    (found,) = metadata(healthy(health={"MDS_TRIM": TRIM}))
    assert found.check == "mds-trimming"
    assert found.share == pytest.approx(1 - 128 / 6560)
    assert found.evidence == TRIM
    assert found.commands[0] == "ceph tell mds.myfs-a perf dump mds_log"


def test_slow_metadata_io_is_found() -> None:
    (found,) = metadata(healthy(health={"MDS_SLOW_METADATA_IO": ("1 MDSs report slow metadata IOs",)}))
    assert found.check == "mds-slow-io"


@pytest.mark.parametrize(("rejected", "said"), [(26_669_868, False), (48_190_909, True)])
def test_compression_in_vain_is_said_from_half_on(rejected: float, said: bool) -> None:
    # the published run: 48 190 908 compressed, 26 669 868 in vain
    osd = osd_facts(0, compressed=48_190_908.0, rejected=rejected)
    assert compression(healthy(osds=(osd,))) == []
    found = compression(healthy(osds=(osd,), pools=(PoolFacts(1, "rbd", 64, 3, TIB, compression="aggressive"),)))
    assert bool(found) == said
    assert all(one.share == pytest.approx(0.05, abs=1e-6) for one in found)


def test_a_pool_whose_data_hardly_shrinks_is_named_and_one_that_halves_is_not() -> None:
    vain = PoolFacts(1, "photos", 64, 3, TIB, 0, "aggressive", 100e9, 95e9)
    good = PoolFacts(2, "logs", 64, 3, TIB, 0, "aggressive", 121_976_225_792, 60_988_112_896)
    (found,) = compression(healthy(pools=(vain, good)))
    assert found.evidence == ("photos (aggressive): what is compressed takes 95% of its size",)
    assert found.commands == ("ceph osd pool set photos compression_mode passive",)


def test_a_pool_that_compresses_well_is_named_with_what_it_saves_and_goes_on_compressing() -> None:
    osd = osd_facts(0, compressed=1000.0, rejected=9000.0)
    good = PoolFacts(1, "logs", 64, 3, 2e12, 0, "aggressive", 1e12, 0.4e12)
    (found,) = compression(healthy(osds=(osd,), pools=(good,)))
    assert found.commands == ()
    assert found.evidence[1] == "logs (aggressive) saves 600 GB: 50% of it is compressed"
    assert "What logs saves would be lost" in found.cure
    vain = PoolFacts(2, "photos", 64, 3, TIB, 0, "aggressive", TIB / 100, TIB / 200)
    empty = PoolFacts(3, "new", 64, 3, 0.0, 0, "aggressive")
    (found,) = compression(healthy(osds=(osd,), pools=(good, vain, empty)))
    assert found.commands == ("ceph osd pool set photos compression_mode passive",)


def test_the_osds_mode_stays_where_one_of_the_pools_that_go_by_it_compresses_well() -> None:
    osd = osd_facts(0, {"bluestore_compression_mode": "force"}, compressed=1000.0, rejected=9000.0)
    pools = (PoolFacts(1, "rbd", 64, 3, TIB), PoolFacts(2, "logs", 64, 3, 2e12, 0, "", 1e12, 0.4e12))
    (found,) = compression(healthy(osds=(osd,), pools=pools))
    assert found.commands == ("ceph osd pool set rbd compression_mode passive",)


def test_a_mode_of_the_osds_counts_for_pools_that_have_none_of_their_own() -> None:
    osd = osd_facts(0, {"bluestore_compression_mode": "force"}, compressed=1000.0, rejected=9000.0)
    pools = (PoolFacts(1, "rbd", 64, 3, TIB), PoolFacts(2, "plain", 64, 3, TIB, compression="none"))
    (found,) = compression(healthy(osds=(osd,), pools=pools))
    assert found.commands == ("ceph config set osd bluestore_compression_mode passive",)


def test_osds_in_the_middle_of_an_upgrade_are_counted_and_what_changes_is_named() -> None:
    (found,) = versions(healthy(versions={"17.2.6": 2, "18.2.7": 4}))
    assert found.share == pytest.approx(2 / 6)
    assert found.evidence == ("4 of 6 OSDs run 18.2.7", "2 of 6 OSDs run 17.2.6")
    assert "knobs work on some of them only" in found.cost
    (found,) = versions(healthy(versions={"18.2.7": 4, "99.1.0": 1}))
    assert found.evidence[0] == "1 of 5 OSDs run 99.1.0"


def test_messages_are_encrypted_where_secure_comes_first() -> None:
    modes = [{"ms_cluster_mode": "crc secure"}, {"ms_cluster_mode": "secure", "ms_service_mode": "secure crc"}]
    assert encryption(healthy(osds=(osd_facts(0, modes[0]),))) == []
    (found,) = encryption(healthy(osds=tuple(osd_facts(osd, mode) for osd, mode in enumerate(modes))))
    assert found.evidence == (
        "osd.1: ms_cluster_mode is secure, by default",
        "osd.1: ms_service_mode is secure crc, by default",
    )
    assert len(found.commands) == 4


def test_what_encrypts_is_changed_in_the_section_that_decides_and_read_at_the_next_start() -> None:
    osds = tuple(osd_facts(osd, {"ms_cluster_mode": "secure"}) for osd in range(3))
    rows = (("global", "ms_cluster_mode", "secure"), ("osd", "ms_cluster_mode", "secure"))
    (found,) = encryption(healthy(osds=osds, **set_to(*rows, ("osd.2", "ms_cluster_mode", "secure crc"))))
    assert found.commands == (
        "ceph config set osd ms_cluster_mode 'crc secure'",
        "ceph config set osd.2 ms_cluster_mode 'crc secure'",
        "systemctl restart ceph-osd@0",
        "ceph orch daemon restart osd.0",
    )
    assert "then restart the OSDs" in found.cure


def test_what_the_osds_own_file_encrypts_is_to_be_changed_there() -> None:
    own = osd_facts(1, {"ms_service_mode": "secure"}, sources={"ms_service_mode": {"file": "secure", "mon": "crc"}})
    (found,) = encryption(healthy(osds=(own,), **set_to(("osd", "ms_service_mode", "crc"))))
    assert found.evidence == ("osd.1: ms_service_mode is secure, by file",)
    assert "own file" in found.cure
    assert not any(command.startswith("ceph config") for command in found.commands)
