from __future__ import annotations

import json
from pathlib import Path

import pytest

from ceph_tuner.core.goals.stored_slo import SLO_KEY
from ceph_tuner.files import cluster_file
from ceph_tuner.twin.model import MIB, ScrubWork
from ceph_tuner_cli import twin_describe
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import in_classes, small_twin


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    made = small_twin({"osd_max_scrubs": 2}, scrub=(ScrubWork("rbd", 9000, MIB),))
    monkeypatch.setattr(twin_describe, "open_cluster", lambda name: made)
    return made


def test_what_is_printed_is_a_file_that_recommend_reads(run: Run, twin: TwinCluster) -> None:
    code, out, _ = run("twin", "describe", "--cluster", "ceph")
    assert (code, out.startswith("# what clients do was sampled")) == (0, True)
    found = cluster_file.from_text(out)
    assert (found.model.osds, found.settings) == (4, {"osd_max_scrubs": 2})
    # no SLO: a scrub is what every cluster has to do
    assert found.model.scrub != ()
    assert found.model.recovery == ()


def test_a_file_is_written_once_and_its_guesses_are_said(run: Run, twin: TwinCluster, tmp_path: Path) -> None:
    path, before = tmp_path / "here.yaml", twin.config.dump()
    twin.store.set(SLO_KEY, json.dumps({"name": "x", "objectives": ["recovery.bytes_s >= 1 MB/s"]}))
    code, out, err = run("twin", "describe", "--cluster", "ceph", "--output", str(path))
    assert code == 0
    assert "the drive is a guess" in err
    assert f"ceph-tuner recommend {path}" in out
    assert cluster_file.read(path).model.recovery != ()
    assert twin.config.dump() == before
    code, _, err = run("twin", "describe", "--cluster", "ceph", "--output", str(path))
    assert (code, "--force" in err) == (2, True)
    slo = tmp_path / "slo.yaml"
    slo.write_text("schema: 1\nobjectives: [client.p95_ms <= 9 ms]\n")
    arguments = ("--output", str(path), "--slo", str(slo), "--force")
    assert run("twin", "describe", "--cluster", "ceph", *arguments)[0] == 0
    assert cluster_file.read(path).model.recovery == ()


def test_of_two_classes_each_is_a_file_by_itself(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = in_classes(small_twin(osds=8), ("hdd", "ssd"))
    monkeypatch.setattr(twin_describe, "open_cluster", lambda name: made)
    path = tmp_path / "here.yaml"
    code, out, err = run("twin", "describe", "--cluster", "ceph", "--output", str(path))
    assert code == 0, err
    names = ["here-hdd.yaml", "here-ssd.yaml"]
    assert [name for name in names if f"ceph-tuner recommend {tmp_path / name} --slo" in out] == names
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    for name, own in zip(names, ("hdd", "ssd")):
        described = cluster_file.read(tmp_path / name)
        assert (described.model.osds, described.model.osd.device_class) == (4, own)
        assert described.target == f"osd/class:{own}"
    code, out, _ = run("twin", "describe", "--cluster", "ceph")
    assert [cluster_file.from_text(part).model.osd.device_class for part in out.split("---\n")] == ["hdd", "ssd"]
    # one that is there is not replaced, and nothing is written before that is known
    (tmp_path / "here-hdd.yaml").unlink()
    code, _, err = run("twin", "describe", "--cluster", "ceph", "--output", str(path))
    assert (code, "here-ssd.yaml" in err) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["here-ssd.yaml"]
