"""What `ceph report` printed is described as far as it goes, and each assumption is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from test_ceph_report import report

from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.describe.osds import DB, DRIVE_IOPS
from ceph_tuner.files import cluster_file
from ceph_tuner.gather.replay import open_state
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import MIB, Pool
from ceph_tuner_cli.recommend import _description
from running_program import Run

DAY = 86_400.0


def busy_report(days: float = 1.0) -> Dict[str, Any]:
    """The same, of pools made so many days before, with 400 and 100 operations a second since then."""
    made = report()
    for pool in made["osdmap"]["pools"]:
        pool["create_time"] = f"2026-11-{20 - days:02.0f}T03:04:05.678901+0000"
    for row, rate in zip(made["pool_stats"], (400, 100)):
        operations = rate * days * DAY
        row["stat_sum"] = {
            "num_objects": 5000,
            "num_bytes": 5000 * MIB,
            "num_object_clones": 700,
            "num_objects_degraded": 0,
            "num_objects_misplaced": 0,
            "num_read": operations / 4,
            "num_write": operations * 3 / 4,
            "num_read_kb": operations * 2,
            "num_write_kb": operations * 6,
        }
    return made


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Dict[str, Any]], Path]:
    def written(document: Dict[str, Any]) -> Path:
        (tmp_path / "report.json").write_text(json.dumps(document))
        return tmp_path / "report.json"

    return written


@pytest.fixture
def found(write: Callable[[Dict[str, Any]], Path]) -> Callable[..., DescribedCluster]:
    return lambda document, *also: describe(open_state(write(document)), also=frozenset(also))


def test_what_a_report_says_of_osds_and_pools_is_described(found: Callable[..., DescribedCluster]) -> None:
    made = busy_report()
    for row in made["osd_metadata"]:
        row.update(bluefs_dedicated_db="1", bluefs_db_rotational="0")
    made["osdmap"]["pools"][1].update(type=3, erasure_code_profile="wide", size=3)
    made["osdmap"]["erasure_code_profiles"] = {"wide": {"k": "2", "m": "1"}}
    made["osdmap"]["osds"][3]["in"] = 0
    described = found(made, "scrub")
    model = described.model
    assert (model.osds, model.release.name, model.version) == (3, "reef", (18, 2, 7))
    assert model.pools == (Pool("rbd", 32, 2), Pool("other", 16, 3, 2))
    # the drives say of themselves that they turn, whatever their class
    assert (model.osd.kind, model.osd.db) == ("hdd", DB)
    assert described.stored == {"rbd": 5000.0 * MIB, "other": 5000.0 * MIB}
    assert [(work.objects, work.object_bytes) for work in model.scrub] == [(5000, MIB), (5000, MIB)]


def test_clients_do_what_they_did_in_the_mean_since_each_pool_was_made(found: Callable[..., DescribedCluster]) -> None:
    described = found(busy_report(days=4.0))
    assert [(each.pool, each.rate, each.read_share, each.block_bytes) for each in described.model.clients] == [
        ("rbd", 400.0, 0.25, 8192),
        ("other", 100.0, 0.25, 8192),
    ]
    (note,) = [note for note in described.notes if note.startswith("what clients do is assumed to be the mean")]
    assert "(rbd: 4 d ago): at busy hours it is more" in note
    assert not any("the monitors reckon" in note for note in described.notes)


def test_what_a_report_does_not_say_of_osds_is_ceph_s_default_and_named(found: Callable[..., DescribedCluster]) -> None:
    described = found(busy_report())
    osd = described.model.osd
    assert (osd.capacity_iops, osd.shards, osd.threads_per_shard, described.settings) == (315.0, 1, 5, {})
    assert osd.device.iops == pytest.approx(DRIVE_IOPS["hdd"] * 315, rel=1e-3)
    notes = " ".join(described.notes)
    for words in (
        "windows that the plugin keeps are not seen, and latencies with them",
        "what clients do cannot be sampled",
        "the PGs are not seen",
        "what is to be trimmed is not seen",
        "the balancer is not seen, and taken to be on",
        "assumed to be the defaults of reef 18.2.7 for hdd; a file of `ceph-tuner gather` has them",
        "Ceph's default: what was measured is not seen",
    ):
        assert words in notes, words
    assert "was never measured" not in notes


def test_work_that_a_report_tells_of_is_described(found: Callable[..., DescribedCluster]) -> None:
    made = busy_report()
    made["pool_stats"][0]["stat_sum"].update(num_objects_degraded=90_000, num_objects_misplaced=40_000)
    made["num_pg_by_state"] = [{"state": "active+clean+scrubbing+deep", "num": 48}]
    model = found(made).model
    assert [(work.pool, work.objects, work.degraded) for work in model.recovery] == [
        ("rbd", 90_000, True),
        ("rbd", 40_000, False),
    ]
    assert len(model.scrub) == 2
    assert found(busy_report()).model.recovery == found(busy_report()).model.scrub == ()
    # clones in their proportions, for a minute at the least
    trimmed = found(busy_report(), "snaptrim").model.snaptrim
    assert [work.pool for work in trimmed] == ["rbd", "other"]


def test_where_a_report_does_not_say_since_when_its_pools_are_clients_are_left_out(
    found: Callable[..., DescribedCluster],
) -> None:
    described = found(report())
    assert (described.model.clients, described.seen) == ((), {})
    assert [note for note in described.notes if "no objective about them can be predicted" in note]


def test_a_report_of_a_mgr_that_says_nothing_of_pools_is_described(found: Callable[..., DescribedCluster]) -> None:
    made = busy_report()
    del made["pool_stats"]
    described = found(made, "snaptrim")
    assert [pool.name for pool in described.model.pools] == ["rbd", "other"]
    assert (described.model.clients, described.model.snaptrim, described.stored) == ((), (), {})
    assert [note for note in described.notes if "no objective about snaptrim can be predicted" in note]


def test_the_program_writes_a_description_and_says_what_it_assumed(
    write: Callable[[Dict[str, Any]], Path], run: Run, tmp_path: Path
) -> None:
    path, output = write(busy_report()), tmp_path / "described.yaml"
    code, out, err = run("twin", "describe", "--from", str(path), "--output", str(output), "--format", "json")
    assert code == 0, err
    assert any("defaults of reef" in note for note in json.loads(out)["notes"])
    text = " ".join(output.read_text().replace("\n#  ", "").split())
    assert "assumed to be the defaults of reef 18.2.7 for hdd" in text
    assert "the cluster's own SLO is not seen" in " ".join(err.split())
    code, out, err = run("twin", "describe", "--from", str(path), "--format", "json")
    assert code == 0, err
    printed = json.loads(out)
    # what is printed is a description as well, with its notes
    again = cluster_file.from_text(out)
    assert again.model == cluster_file.read(output).model
    assert again.notes == tuple(printed["notes"]) != ()


def test_of_several_device_classes_each_is_described(write: Callable[[Dict[str, Any]], Path], run: Run) -> None:
    made = busy_report()
    for device in made["crushmap"]["devices"][:2]:
        device["class"] = "hdd"
    for row in made["osd_metadata"][2:]:
        row["rotational"] = "0"
    made["osdmap"]["pools"][1]["size"] = 2
    code, out, err = run("twin", "describe", "--from", str(write(made)), "--format", "json")
    assert code == 0, err
    assert [(each["osd"]["device_class"], each["osds"]) for each in json.loads(out)] == [("hdd", 2), ("ssd", 2)]


def test_a_search_by_a_report_says_each_assumption(write: Callable[[Dict[str, Any]], Path], capsys: Any) -> None:
    path = write(busy_report())
    slo = Slo("x", (parse_objective("client.p95_ms <= 60"), parse_objective("recovery.finish_s <= 7 d")))
    described = _description(None, path, "osd", slo)
    assert described.model.recovery != ()
    said = " ".join(capsys.readouterr().err.split())
    assert described.notes
    for note in described.notes:
        assert " ".join(note.split()) in said


@pytest.mark.slow
def test_a_recommendation_by_a_report_has_its_assumptions(
    write: Callable[[Dict[str, Any]], Path], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "slo.yaml").write_text("schema: 1\nobjectives: [client.p95_ms <= 60 ms, scrub.interval_s <= 14 d]\n")
    words = ("--slo", str(tmp_path / "slo.yaml"), "--trials", "1", "--processes", "1", "--live-only")
    code, out, err = run("recommend", "--from", str(write(busy_report())), *words, "--format", "json")
    assert code in (0, 1), err
    document = json.loads(out)
    assert any("defaults of reef 18.2.7" in note for note in document["assumptions"])
    assert any("the mean since each pool was made" in note for note in document["assumptions"])


@pytest.mark.slow
def test_a_week_by_a_report_has_policies_and_no_past(
    write: Callable[[Dict[str, Any]], Path], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "slo.yaml").write_text("schema: 1\nobjectives: [client.p95_ms <= 60 s]\n")
    words = ("--from", str(write(busy_report())), "--trials", "1", "--processes", "1", "--format", "json")
    code, out, err = run("slo", "week", str(tmp_path / "slo.yaml"), *words)
    assert code == 0, err
    document = json.loads(out)
    assert document["predicted"]["base"]["keeps_hard"] is True
    assert document["hours"] == []
    assert "past" not in document
    assert "nothing is kept of the past" in " ".join(err.split())
    assert "the mean since each pool was made" in " ".join(err.split())


def test_objectives_that_a_report_is_not_enough_for_are_refused_each_by_its_name(
    write: Callable[[Dict[str, Any]], Path], run: Run, tmp_path: Path
) -> None:
    wanted: List[str] = ["client.p95_ms <= 60 ms", "snaptrim.drain_s <= 2 h", "scrub.interval_s <= 14 d"]
    (tmp_path / "slo.yaml").write_text(f"schema: 1\nobjectives: [{', '.join(wanted)}]\n")
    code, out, err = run("recommend", "--from", str(write(report())), "--slo", str(tmp_path / "slo.yaml"))
    said = " ".join(err.split())
    assert (code, out) == (2, "")
    assert "client.p95_ms <= 60 ms: found no client in the description" in said
    assert "snaptrim.drain_s <= 2 h: found no snaptrim in the description" in said
    assert "scrub.interval_s <= 14 d: found" not in said
