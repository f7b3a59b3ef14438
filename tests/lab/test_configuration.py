from __future__ import annotations

from typing import Dict

from ceph_lab.configuration import ceph_conf, database, monitor_addresses
from ceph_lab.options import LabOptions

OPTIONS = LabOptions.from_dict({"osds": 2, "mgrs": 2, "bandwidth": 1 << 20})


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


def values(options: LabOptions) -> Dict[str, Dict[str, str]]:
    found: Dict[str, Dict[str, str]] = {}
    for command in database(options, 16790):
        found.setdefault(command["who"], {})[command["name"]] = command["value"]
    return found


def test_queues_are_ceph_s_own_unless_stated() -> None:
    assert not {"osd_op_num_shards", "osd_op_num_threads_per_shard"} & set(values(LabOptions())["osd"])
    stated = values(LabOptions(shards=4, threads=2))["osd"]
    assert (stated["osd_op_num_shards"], stated["osd_op_num_threads_per_shard"]) == ("4", "2")
    throttled = values(LabOptions.from_dict({"drive": "throttle"}))["osd"]
    assert (throttled["osd_op_num_shards"], throttled["osd_op_num_threads_per_shard"]) == ("1", "5")


def test_unlike_drives_are_told_apart_and_like_ones_are_told_once() -> None:
    told = values(LabOptions.from_dict({"osds": "2xnvme,1xsata-ssd,1xhdd"}))
    assert told["osd"]["osd_mclock_max_sequential_bandwidth_ssd"] == "56250000"
    assert told["osd.2"] == {"osd_mclock_max_sequential_bandwidth_ssd": "30625000"}
    assert told["osd"]["osd_mclock_max_sequential_bandwidth_hdd"] == "171000000"
    assert told["osd"]["bluestore_throttle_bytes"] == str(256 << 10)
    assert told["osd.3"] == {
        "bluestore_throttle_bytes": str(64 << 20),
        "bluestore_throttle_deferred_bytes": str(128 << 20),
    }
    assert set(told) == {"osd", "osd.2", "osd.3", "mgr"}


def test_three_monitors_have_addresses_of_their_own() -> None:
    options = LabOptions(mons=3, mgrs=3)
    addresses = monitor_addresses(options, 16790)
    assert list(addresses) == ["a", "b", "c"]
    services = {each["value"] for each in database(options, 16790) if each["name"].endswith("server_port")}
    ports = [address.split(":")[2].split("/")[0] for address in addresses.values()]
    assert len({*ports, *services}) == 3 + 6
    assert all(16790 <= int(port) < 16800 for port in ports)
    assert f"mon host = {','.join(addresses.values())}\n" in ceph_conf(options, "f", 16790)
