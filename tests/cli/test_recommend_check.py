"""`recommend --check`: all faults at once, and the cluster as it was understood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import List

import pytest

from running_program import Run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

FAULTY = """\
schema: 1
release: 19
osds: 4
osd:
  drive: {iops: 40 MB/s, bandwidth: 500, speed: 3}
pools:
  - {name: rbd, pgs: 128, size: 30}
  - {name: archive, pgs: 0}
clients:
  - {pool: rdb, rate: 2 kIOPS}
background:
  recovery:
    - {pool: rbd, objects: 10 kB, onto: 7}
"""
SETTINGS = """\
schema: 1
release: reef
osds: 4
osd: {drive: {iops: 40 kIOPS, bandwidth: 500 MB/s}}
pools: [{name: rbd, pgs: 128}]
settings:
  osd_max_scrubs: 500
  osd_scrub: 1
  osd_scrub_cost: 5
"""


def written(folder: Path, text: str, name: str = "my.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def places(document: str, key: str = "faults") -> List[str]:
    return [fault["place"].rpartition("/")[2] for fault in json.loads(document)[key]]


def test_every_fault_of_a_description_is_said_in_the_order_of_its_lines(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("recommend", "--check", written(tmp_path, FAULTY), "--format", "json")
    assert code == 2
    assert places(out) == [
        "my.yaml:2 release",
        "my.yaml:5 osd.drive.speed",
        "my.yaml:5 osd.drive.iops",
        "my.yaml:5 osd.drive.bandwidth",
        "my.yaml:7 pools.0.size",
        "my.yaml:8 pools.1.pgs",
        "my.yaml:10 clients.0.pool",
        "my.yaml:13 background.recovery.0.objects",
        "my.yaml:13 background.recovery.0.onto",
    ]


def test_every_setting_at_fault_is_said(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("recommend", "--check", written(tmp_path, SETTINGS), "--format", "json")
    assert places(out) == [
        f"my.yaml:{line} settings.{name}"
        for line, name in ((7, "osd_max_scrubs"), (8, "osd_scrub"), (9, "osd_scrub_cost"))
    ]


def test_a_sound_profile_is_no_fault_beside_one(run: Run, tmp_path: Path) -> None:
    text = SETTINGS.replace("settings:\n", "settings:\n  osd_mclock_profile: high_recovery_ops\n")
    _, out, _ = run("recommend", "--check", written(tmp_path, text), "--format", "json")
    assert "osd_scrub_cost" in out
    assert "osd_mclock_profile" not in " ".join(places(out))


def test_faults_of_the_slo_are_said_beside_those_of_the_cluster(run: Run, tmp_path: Path) -> None:
    slo = "schema: 1\nobjectives:\n  - client.p95 <= 3 ms\n  - client.iops >= 1\n  - client.p99_ms <= 3 GB/s\nlabs: 1\n"
    files = written(tmp_path, FAULTY), "--slo", written(tmp_path, slo, "slo.yaml")
    code, out, err = run("recommend", "--check", *files)
    assert (code, err) == (2, "")
    for place in ("my.yaml:10 clients.0.pool", "slo.yaml:3 objectives.0", "slo.yaml:5 objectives.2", "slo.yaml:6 labs"):
        assert f"{place}: found " in out
    assert out.splitlines()[-1] == "12 faults"


@pytest.mark.parametrize(
    "text",
    ["", "[", "- a\n", "schema: 7\n", pytest.param("osds: [" + "1, " * 60_000 + "]", id="60 000 entries")],
)
def test_a_file_that_is_no_description_is_one_fault(text: str, run: Run, tmp_path: Path) -> None:
    code, out, _ = run("recommend", "--check", written(tmp_path, text), "--format", "json")
    assert code == 2
    assert len(json.loads(out)["faults"]) == 1


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("cluster-*.yaml")), ids=lambda path: path.stem)
def test_the_examples_have_no_fault_and_their_objectives_can_be_predicted(path: Path, run: Run) -> None:
    slo = path.with_name(path.name.replace("cluster-", "slo-"))
    code, out, err = run("recommend", "--check", str(path), "--slo", str(slo))
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "The twin can predict every objective."
    assert max(map(len, out.splitlines())) <= 80


SCOPED = "schema: 1\nobjectives:\n  - client.p95_ms{class=nvme} <= 3 ms\n  - recovery.finish_s <= 9 h\n"


def test_an_objective_of_other_osds_than_those_described_is_not_left_out_in_silence(run: Run, tmp_path: Path) -> None:
    cluster, slo = str(EXAMPLES / "cluster-nvme-node.yaml"), written(tmp_path, SCOPED, "slo.yaml")
    code, out, _ = run("recommend", "--check", cluster, "--slo", slo)
    assert code == 0
    assert out.splitlines()[-2:] == [
        "Left aside, as the description is not of its OSDs: client.p95_ms{class=nvme} <= 3 ms",
        "The twin can predict every other objective.",
    ]
    _, out, _ = run("recommend", "--check", cluster, "--slo", slo, "--format", "json")
    assert json.loads(out)["left_aside"] == ["client.p95_ms{class=nvme} <= 3 ms"]


def test_the_cluster_is_told_back_with_what_the_file_leaves_out(run: Run) -> None:
    _, out, _ = run("recommend", "--check", str(EXAMPLES / "cluster-erasure-coded.yaml"))
    assert " ".join(out.split()) == (
        "erasure-coded: 36 OSDs (ssd) on 12 hosts, Ceph reef. "
        "A drive does 30 kIOPS and 450 MB/s, for reads 80 kIOPS and 530 MB/s. "
        "mClock takes it for 18 kIOPS and 450 MB/s; an OSD has 8 shards of 2 threads. "
        "The network takes 80 us from host to host. "
        "Pool archive: 512 PGs, erasure code 4+2, 60 TB stored. "
        "Clients of archive: 4 kIOPS offered, 1024 at a time at most, 60% reads, 64 KiB. "
        "Recovery of archive: 2,000,000 objects of 4 MiB. In force: profile balanced."
    )


HYBRID = """\
schema: 1
release: tentacle
osds: 6
network: {network}
osd:
  drive: {{iops: 180, bandwidth: 200 MB/s, latency: 12 ms}}
  db: {{iops: 20 kIOPS, bandwidth: 400 MB/s, read_iops: 50 kIOPS}}
  capacity_iops: 300
  bandwidth: 150 MB/s
pools:
  - {{name: archive, pgs: 64, size: 3, stored: 3.5 PiB}}
"""


@pytest.mark.parametrize(
    ("network", "told"), [("200 us", "takes 200 us from"), ("0", "takes no time from"), ("1.5 ms", "takes 1.5 ms from")]
)
def test_the_drive_of_rocksdb_the_network_and_what_is_stored_are_told_as_they_were_written(
    network: str, told: str, run: Run, tmp_path: Path
) -> None:
    _, out, _ = run("recommend", "--check", written(tmp_path, HYBRID.format(network=network)))
    text = " ".join(out.split())
    assert "A drive does 180 IOPS and 200 MB/s. RocksDB and its log are on another drive, of which" in text
    assert "an OSD's part does 20 kIOPS and 400 MB/s, for reads 50 kIOPS. " in text
    assert f"The network {told} host to host. " in text
    assert "Pool archive: 64 PGs, 3 copies, 3.5 PiB stored." in text


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ("", ""),
        ("processors: 16", "Each OSD has 16 cores of its own."),
        ("processors: 1\nhosts: 2", "Each host has 1 core, which its OSDs share."),
    ],
)
def test_it_is_told_whose_the_processors_are(stated: str, told: str, run: Run, tmp_path: Path) -> None:
    _, out, _ = run("recommend", "--check", written(tmp_path, HYBRID.format(network="0") + stated))
    text = " ".join(out.split())
    assert told in text
    assert ("core" in text) == bool(told)


def test_objectives_that_the_twin_cannot_predict_are_named_each_with_the_reason(run: Run, tmp_path: Path) -> None:
    lines = ("client.p95_ms <= 3 ms", "scrub.pgs_late <= 0", "snaptrim.objects_s >= 3", "osds.down <= 0")
    slo = written(tmp_path, "schema: 1\nobjectives:\n" + "".join(f"  - {line}\n" for line in lines))
    code, out, _ = run(
        "recommend", "--check", str(EXAMPLES / "cluster-975-osds.yaml"), "--slo", slo, "--format", "json"
    )
    assert code == 2
    said = {fault["place"]: fault["found"] for fault in json.loads(out)["unpredictable"]}
    assert said == {
        "scrub.pgs_late <= 0": "a metric that the twin does not predict",
        "snaptrim.objects_s >= 3 /s": "no snaptrim in the description of the cluster",
        "osds.down <= 0": "a metric that the twin does not predict",
    }


def test_nothing_is_simulated(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import ceph_tuner.recommend.search as search

    monkeypatch.setattr(search, "search", lambda *_: pytest.fail("searched"))
    assert run("recommend", "--check", str(EXAMPLES / "cluster-nvme-node.yaml"))[0] == 0


def test_without_an_slo_and_without_check_the_command_says_what_is_missing(run: Run) -> None:
    code, _, err = run("recommend", str(EXAMPLES / "cluster-nvme-node.yaml"))
    assert code == 2
    assert err == "error: --slo: found nothing, expected an SLO file, or --check\n"


def test_a_text_of_the_file_is_no_command_to_the_terminal(run: Run, tmp_path: Path) -> None:
    text = SETTINGS.partition("settings")[0] + 'name: "\\x1b[2J"\n'
    _, out, _ = run("recommend", "--check", written(tmp_path, text))
    assert "\x1b" not in out
