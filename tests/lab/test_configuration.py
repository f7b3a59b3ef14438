from __future__ import annotations

from ceph_tuner.lab.configuration import ceph_conf, database
from ceph_tuner.lab.options import LabOptions

OPTIONS = LabOptions(osds=2, size=2, mgrs=2, bandwidth=1 << 20)


def test_every_osd_is_a_crush_host_of_its_own() -> None:
    conf = ceph_conf(OPTIONS, "f", 16790)
    assert "[osd.0]\ncrush location = root=default host=h0" in conf
    assert "[osd.1]\ncrush location = root=default host=h1" in conf
    assert "[osd.2]" not in conf


def test_what_a_tuner_changes_is_in_the_database_and_not_in_the_file() -> None:
    osd = {each["name"]: each["value"] for each in database(OPTIONS, 16790) if each["who"] == "osd"}
    assert osd["osd_mclock_max_sequential_bandwidth_ssd"] == "1048576"
    conf = ceph_conf(OPTIONS, "f", 16790)
    for name in osd:
        # ceph.conf outranks the database, whichever way a name is written there
        assert name not in conf
        assert name.replace("_", " ") not in conf


def test_no_two_services_of_a_lab_share_a_port() -> None:
    ports = [each["value"] for each in database(OPTIONS, 16790) if each["name"].endswith("server_port")]
    assert len({*ports, "16790"}) == 5
    assert all(16790 <= int(port) < 16800 for port in ports)
