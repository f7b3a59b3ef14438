from __future__ import annotations

from pathlib import Path

import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, SQUID, TENTACLE
from ceph_tuner.files import cluster_file, cluster_text
from ceph_tuner.files.cluster_bounds import MOST_ENTRIES
from ceph_tuner.files.quantities import quantity
from ceph_tuner.twin.model import MIB, ClientStream, Device, ScrubWork, SnaptrimWork

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

GOOD = """\
schema: 1
release: 18.2.7
osds: 12
hosts: 3
osd:
  drive: {iops: 40 kIOPS, bandwidth: 500 MB/s, read_iops: 90000}
  capacity_iops: 18 kIOPS
  throttle: 256 KiB
pools:
  - {name: rbd, pgs: 128, size: 3}
  - {name: archive, pgs: 64, erasure_code: {k: 4, m: 2}}
clients:
  - {pool: rbd, rate: 2 kIOPS, read_share: 0.7, block: 16 KiB}
  - {pool: archive, depth: 32}
background:
  recovery:
    - {pool: rbd, objects: 10 k}
  backfill:
    - {pool: archive, objects: 5000, object_size: 1 MiB}
  scrub:
    - {pool: rbd, objects: 2 M}
  snaptrim:
    - {pool: rbd, clones: 300, object_size: 1048576}
settings:
  osd_max_scrubs: 5
"""


def test_a_file_gives_the_model_in_si_units() -> None:
    found = cluster_file.from_text(GOOD, "small.yaml")
    model = found.model
    assert (found.name, model.release, model.version, model.osds, model.hosts) == ("small", REEF, (18, 2, 7), 12, 3)
    drive = model.osd.device
    assert (drive.iops, drive.bandwidth_bytes_s, drive.read_iops) == (40e3, 500e6, 90e3)
    assert (model.osd.capacity_iops, model.osd.throttle_bytes) == (18e3, 256 * 1024)
    assert [(pool.name, pool.pgs, pool.size, pool.k) for pool in model.pools] == [
        ("rbd", 128, 3, 0),
        ("archive", 64, 6, 4),
    ]
    assert model.clients[0] == ClientStream("rbd", 2000.0, 1024, 0.7, 16384)
    assert (model.clients[1].rate, model.clients[1].depth) == (None, 32)
    assert [(work.pool, work.objects, work.degraded) for work in model.recovery] == [
        ("rbd", 10_000, True),
        ("archive", 5000, False),
    ]
    assert model.scrub == (ScrubWork("rbd", 2_000_000),)
    assert model.snaptrim == (SnaptrimWork("rbd", 300, 2**20),)
    assert found.settings == {"osd_max_scrubs": 5}


def test_what_is_left_out_is_as_the_release_has_it() -> None:
    least = "schema: 1\nrelease: {}\nosds: 4\nosd: {{device_class: {}, drive: {{iops: 200, bandwidth: 150 MB/s}}}}\n"
    least += "pools: [{{name: a, pgs: 8}}]\n"
    flash = cluster_file.from_text(least.format("tentacle", "ssd")).model.osd
    assert (flash.shards, flash.threads_per_shard, flash.capacity_iops) == (8, 2, 21500.0)
    assert flash.bandwidth_bytes_s == 1200 * 2**20
    disk = cluster_file.from_text(least.format("tentacle", "hdd")).model.osd
    assert (disk.shards, disk.threads_per_shard, disk.capacity_iops) == (1, 5, 315.0)
    # its head is on its way for so long where nothing else waits
    assert (flash.device.latency_s, disk.device.latency_s) == (1e-4, 12e-3)
    assert (flash.has_head, disk.has_head, disk.db) == (False, True, None)
    early = cluster_file.from_text(least.format("17.2.0", "hdd")).model
    assert (early.osd.shards, early.release, early.version) == (5, QUINCY_EARLY, (17, 2, 0))


def test_processors_and_what_work_takes_of_them_are_read() -> None:
    text = GOOD.replace("hosts: 3\n", "hosts: 3\nprocessors: 16\n").replace(
        "  throttle: 256 KiB\n", "  throttle: 256 KiB\n  message_cpu: 30 us\n  commit_cpu: 90 us\n  mib_cpu: 1 ms\n"
    )
    model = cluster_file.from_text(text.replace("depth: 32}", "depth: 32, cpu: 50 us}")).model
    assert model.processors == 16
    assert (model.osd.message_cpu_s, model.osd.commit_cpu_s) == (30e-6, 90e-6)
    assert model.osd.moved_cpu_s_per_byte * MIB == 1e-3
    assert [client.cpu_s for client in model.clients] == [0.0, 50e-6]
    assert cluster_file.from_text(GOOD).model.processors == 0


def test_rocksdb_may_lie_on_a_drive_of_its_own() -> None:
    text = GOOD.replace("  capacity_iops:", "  db: {iops: 20 kIOPS, bandwidth: 300 MB/s}\n  capacity_iops:")
    osd = cluster_file.from_text(text).model.osd
    assert osd.db == Device(20_000.0, 300e6)
    with pytest.raises(InputError, match=r"osd\.db\.iops"):
        cluster_file.from_text(text.replace("20 kIOPS", "fast"))


@pytest.mark.parametrize("written", ["19.2", "'19.2'", "squid"])
def test_a_series_is_the_newest_of_its_releases(written: str) -> None:
    model = cluster_file.from_text(GOOD.replace("release: 18.2.7", f"release: {written}")).model
    assert (model.release, model.version) == (SQUID, None)


@pytest.mark.parametrize(("osds", "simulated"), [(48, 0), (975, 24)])
def test_of_a_large_cluster_a_part_is_simulated(osds: int, simulated: int) -> None:
    assert cluster_file.from_text(GOOD.replace("osds: 12", f"osds: {osds}")).model.simulated_osds == simulated


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("schema: 1", "schema: 2", "some.yaml:1 schema", "expected 1"),
        ("release: 18.2.7", "release: pacific", "some.yaml:2 release", "'pacific'"),
        ("osds: 12", "osds: many", "some.yaml:3 osds", "a whole number"),
        ("osds: 12\n", "", "some.yaml:1", "osds"),
        ("osds: 12", "osds: 0", "some.yaml:3 osds", "found 0, expected 1 to"),
        ("40 kIOPS", "40 MB/s", "some.yaml:6 osd.drive.iops", "a rate above 0"),
        ("40 kIOPS", "0", "some.yaml:6 osd.drive.iops", "a rate above 0"),
        ("bandwidth: 500 MB/s, ", "", "some.yaml:6 osd.drive", "bandwidth"),
        ("read_iops", "reads", "some.yaml:6 osd.drive.reads", "unknown key"),
        ("throttle: 256 KiB", "throttle: -1", "some.yaml:8 osd.throttle", "a size of 0 or more"),
        ("size: 3}", "size: 0}", "some.yaml:10 pools.0.size", "found 0, expected 1 to 10: Ceph takes"),
        ("size: 3}", "size: 13}", "some.yaml:10 pools.0.size", "found 13, expected 1 to 10"),
        ("osds: 12\nhosts: 3", "osds: 2", "some.yaml:1", "3 copies need as many OSDs (=2)"),
        (
            "osd:\n",
            "osd:\n  device_class: nvme\n",
            "some.yaml:6 osd.device_class",
            "found 'nvme', expected one of ssd, hdd",
        ),
        ("osd:\n", "osd:\n  device_class: [ssd]\n", "some.yaml:6 osd.device_class", "expected one of ssd, hdd"),
        ("hosts: 3", "hosts: 3\nprocessors: 0", "some.yaml:5 processors", "found 0, expected 1 to 4096"),
        ("hosts: 3", "hosts: 3\nprocessors: 2.5", "some.yaml:5 processors", "a whole number"),
        ("throttle: 256 KiB", "mib_cpu: 2 MB", "some.yaml:8 osd.mib_cpu", "a time of 0 or more"),
        ("osds: 12", "osds: 4.0", "some.yaml:3 osds", "found 4.0, expected a whole number"),
        ("osds: 12", "osds: 1000000000000000000", "some.yaml:3 osds", "1 to 100000: Ceph has been run with"),
        ("capacity_iops: 18 kIOPS", "capacity_iops: 1e-9", "some.yaml:7 osd.capacity_iops", "1 to 1e+07"),
        ("block: 16 KiB", "block: 1e308", "some.yaml:13 clients.0.block", "found 1e+308, expected 1 to 1.34218e+08"),
        ("rate: 2 kIOPS", "rate: 1e300", "some.yaml:13 clients.0.rate", "1e-06 to 1e+09"),
        ("depth: 32", "depth: 10000000000", "some.yaml:14 clients.1.depth", "1 to 1e+06"),
        ("pgs: 128", "pgs: 1000000000", "some.yaml:10 pools.0.pgs", "mon_max_pool_pg_num"),
        ("objects: 10 k", "objects: 10 k, onto: 99", "some.yaml:17 background.recovery.0.onto", "OSD 99"),
        ("objects: 10 k", "objects: 10 k, onto: -1", "some.yaml:17 background.recovery.0.onto", "one of the 12"),
        ("objects: 10 k", "objects: 10 k, rounds: 0", "some.yaml:17 background.recovery.0.rounds", "1 to 1000"),
        ("objects: 10 k", "objects: 10 k, among: 9 k", "some.yaml:1", "those 10000 included"),
        ("objects: 10 k", "objects: 10 k, among: 20 kB", "some.yaml:17 background.recovery.0.among", "a count above 0"),
        ("objects: 5000", "objects: 5000, among: 9 k", "some.yaml:19 background.backfill.0.among", "unknown key"),
        ("objects: 2 M", "objects: 1e300", "some.yaml:21 background.scrub.0.objects", "any cluster"),
        ("object_size: 1 MiB", "object_size: 1e30", "some.yaml:19 background.backfill.0.object_size", "32 bits"),
        ("{k: 4, m: 2}", "{k: 4}", "some.yaml:11 pools.1.erasure_code", "m"),
        ("erasure_code", "size: 3, erasure_code", "some.yaml:11 pools.1.size", "one of them"),
        ("size: 3", "acting: '0,1,2'", "some.yaml:10 pools.0", "3 OSDs for each of 128 PGs"),
        ("size: 3", "acting: '[0,1,2]'", "some.yaml:10 pools.0", "acting must name each PG's OSDs by their numbers"),
        ("hosts: 3", "upmap_max_deviation: -1", "some.yaml:4 upmap_max_deviation", "0"),
        ("read_share: 0.7", "read_share: 7", "some.yaml:13 clients.0", "read_share(=7)"),
        ("pool: archive, depth", "pool: archiv, depth", "some.yaml:14 clients.1.pool", "rbd, archive"),
        ("depth: 32", "block: 4 KiB", "some.yaml:14 clients.1", "neither rate nor depth"),
        ("objects: 10 k", "objects: 10 kB", "some.yaml:17 background.recovery.0.objects", "a count above 0"),
        ("osd_max_scrubs: 5", "osd_max_scrubs: 500", "some.yaml:25 settings.osd_max_scrubs", "1 to"),
        ("osd_max_scrubs: 5", "osd_scrub_cost: 5", "some.yaml:25 settings.osd_scrub_cost", "does nothing"),
        ("osd_max_scrubs: 5", "osd_mclock_profile: custom", "some.yaml:25 settings.osd_mclock_profile", "nine"),
    ],
)
def test_a_fault_is_told_with_its_line(old: str, new: str, place: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        cluster_file.from_text(GOOD.replace(old, new, 1), "some.yaml")
    assert str(refusal.value).startswith(place), str(refusal.value)
    assert words in str(refusal.value)


def test_lists_are_of_bounded_length() -> None:
    more = "".join(f"  - {{name: p{number}, pgs: 1, size: 1}}\n" for number in range(MOST_ENTRIES))
    with pytest.raises(InputError, match=r"some\.yaml:9 pools: found 1002 entries, expected at most 1000"):
        cluster_file.from_text(GOOD.replace("pools:\n", f"pools:\n{more}"), "some.yaml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("capacity_iops: 18 kIOPS", "capacity_iops: 18", "osd.capacity_iops: 18 is unlikely, 20 to 5e+06 is usual"),
        ("bandwidth: 500 MB/s", "bandwidth: 500 kB/s", "osd.drive.bandwidth: 500000 is unlikely"),
        ("object_size: 1 MiB", "object_size: 1 GiB", "backfill.0.object_size: 1.07374e+09 is unlikely"),
        ("throttle: 256 KiB", "throttle: 256 KiB\nnetwork: 50", "network: 50 is unlikely, 0 to 1 is usual (in SI"),
        ("hosts: 3", "hosts: 30", "hosts: 30 hosts for 12 OSDs"),
    ],
)
def test_what_is_possible_and_most_often_a_mistake_is_told(old: str, new: str, words: str) -> None:
    assert cluster_file.from_text(GOOD).unlikely == ()
    (told,) = cluster_file.from_text(GOOD.replace(old, new)).unlikely
    assert words in told


def test_of_osds_that_are_not_simulated_another_one_gets_the_objects() -> None:
    text = GOOD.replace("osds: 12", "osds: 975").replace("objects: 10 k", "objects: 10 k, onto: 700")
    model = cluster_file.from_text(text).model
    assert model.recovery[0].target == 700 % model.simulated_osds


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("4 KiB", "size", 4096.0),
        ("1.2 GB/s", "bandwidth", 1.2e9),
        ("80us", "time", 80e-6),
        ("6 kIOPS", "rate", 6000.0),
        ("2.5 M", "count", 2.5e6),
        (7, "count", 7.0),
        ("1e3", "rate", 1000.0),
        ("3.5 PB", "size", 3.5e15),
        ("2 PiB", "size", 2.0**51),
        ("7 d", "time", 604800.0),
        ("7 days", "time", 604800.0),
        ("1 week", "time", 604800.0),
        ("1.5 hours", "time", 5400.0),
        ("2minutes", "time", 120.0),
        ("1 second", "time", 1.0),
        ("1.5 MIOPS", "rate", 1.5e6),
        ("2.5 G", "count", 2.5e9),
        ("3 billion", "count", 3e9),
    ],
)
def test_an_amount_is_read_in_its_unit(text: object, kind: str, value: float) -> None:
    assert quantity(text, kind, "here") == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "KiB", "4 parsec", "-4", True, None, "nan", "inf", "4 4", float("inf")])
def test_what_is_no_amount_is_refused(text: object) -> None:
    with pytest.raises(InputError, match=r"^here: found"):
        quantity(text, "size", "here")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("cluster-*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_right_and_say_where_their_figures_come_from(path: Path) -> None:
    found = cluster_file.read(path)
    assert found.unlikely == ()
    assert found.model.clients
    assert found.model.release in (REEF, SQUID, TENTACLE)
    assert (EXAMPLES / path.name.replace("cluster-", "slo-")).is_file()
    text = path.read_text(encoding="utf-8")
    for command in ("ceph versions", "ceph osd stat", "ceph osd pool ls detail", "ceph osd pool stats"):
        assert command in text


def test_sleeps_are_settings_of_wpq_alone() -> None:
    text = GOOD.replace("settings:\n", "settings:\n  osd_recovery_sleep_hdd: 0.05\n")
    assert text != GOOD
    found = cluster_file.from_text(text)
    assert found.settings == {"osd_max_scrubs": 5}
    assert found.sleeps == {"osd_recovery_sleep_hdd": 0.05}
    assert "osd_recovery_sleep_hdd: 0.05" in cluster_text.to_text(found)
    with pytest.raises(InputError, match="osd_recovery_sleep_hdd"):
        cluster_file.from_text(text.replace("0.05", "-1"))
