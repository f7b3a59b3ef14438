from __future__ import annotations

import json
from pathlib import Path
from typing import Tuple

import pytest
from ruamel.yaml import YAML

from ceph_tuner_cli import cluster_option, doctor, render
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import prefixes_sent, small_twin

READS = (
    "balancer status, config dump, config get, config-key dump, df, health, log last, osd df, osd dump, osd metadata, "
    "osd tree, pg ls, status, versions, config diff, config show, dump_op_pq_state, perf dump"
)
"""Commands that change nothing, of the monitors and of the OSDs."""


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    opened = small_twin()
    monkeypatch.setattr(doctor, "open_cluster", lambda name: opened)
    monkeypatch.setattr(render.console, "width", 80, raising=False)
    return opened


def plant(twin: TwinCluster, *rows: Tuple[str, str, str]) -> None:
    for who, name, value in rows:
        twin.config.set(who, name, value)
    twin.clock.sleep(5)


def test_what_is_planted_is_found_and_nothing_is_written(twin: TwinCluster, run: Run) -> None:
    plant(twin, ("osd", "osd_scrub_cost", "1048576"), ("osd.1", "osd_max_scrubs", "1"))
    before = twin.commander.mon("config dump", {})
    code, out, _ = run("doctor", "--cluster", "twin", "--format", "json")
    document = json.loads(out)
    checks = [finding["check"] for finding in document["findings"]]
    assert {"ignored-knobs", "leftovers"} <= set(checks)
    assert code == int(any(finding["severity"] == "pointless" for finding in document["findings"]))
    assert document["asked"] == document["osds"] == 4
    assert twin.commander.mon("config dump", {}) == before


def test_only_commands_that_read_are_sent(twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = prefixes_sent(twin, monkeypatch)
    run("doctor", "--cluster", "twin")
    assert set(sent) <= set(READS.split(", "))
    assert "config dump" in sent


def test_yaml_says_the_same_as_json(twin: TwinCluster, run: Run) -> None:
    _, as_json, _ = run("doctor", "-c", "twin", "-f", "json")
    _, as_yaml, _ = run("doctor", "-c", "twin", "-f", "yaml")
    assert YAML(typ="safe").load(as_yaml) == json.loads(as_json)


def test_the_page_fits_80_columns_and_names_every_finding(twin: TwinCluster, run: Run) -> None:
    plant(twin, ("osd", "osd_scrub_cost", "1048576"), ("osd.1", "osd_max_scrubs", "1"))
    _, out, _ = run("doctor", "--cluster", "twin")
    page, _, commands = out.partition("Commands by finding")
    assert max(len(line) for line in page.splitlines()) <= 80
    assert "osd_scrub_cost 1048576" in " ".join(page.split())
    assert "ceph config rm osd osd_scrub_cost" in commands
    assert "touches 4 OSDs" in page
    assert "touches 1 OSD " in page


def test_a_host_alone_needs_no_cluster(run: Run, tmp_path: Path) -> None:
    group = tmp_path / "sys/kernel/iommu_groups/0/type"
    group.parent.mkdir(parents=True)
    group.write_text("DMA\n")
    code, out, err = run("doctor", "--host", "--tree", str(tmp_path), "--format", "json")
    assert code == 0
    assert [finding["check"] for finding in json.loads(out)["findings"]] == ["iommu"]
    assert "no OSD runs on this host" in err


def test_neither_cluster_nor_host_is_an_error(run: Run) -> None:
    code, _, err = run("doctor")
    assert code == 2
    assert "--host" in err


@pytest.fixture
def reached(twin: TwinCluster, monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    """The same, where a command writes."""
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    return twin


def test_the_cure_of_stale_shards_is_shown_and_then_run(reached: TwinCluster, run: Run) -> None:
    before = reached.commander.mon("config dump", {})
    code, out, err = run("doctor", "--cluster", "twin", "--cure", "stale-shards")
    assert code == 0
    assert "osd_mclock_max_sequential_bandwidth" in out
    assert "nothing is changed: add --yes to write it" in err
    assert reached.commander.mon("config dump", {}) == before
    code, out, err = run("doctor", "--cluster", "twin", "--cure", "stale-shards", "--yes", "--format", "json")
    assert code == 0
    document = json.loads(out)
    assert (document["written"], document["osds"]) == (True, [0, 1, 2, 3])
    assert len(document["steps"]) == 2
    assert "every shard of 4 OSDs has read its values again" in err
    assert reached.commander.mon("config dump", {}) == before
    (entry,) = reached.applier().history()
    assert entry.why == "doctor --cure stale-shards"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "twin", "--cure", "everything"), "--cure: found 'everything'"),
        (("--cure", "stale-shards"), "doctor --cure: found no --cluster"),
        (("--cluster", "twin", "--cure", "stale-shards", "--target", "osd/host:nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_cured_is_refused(reached: TwinCluster, run: Run, words: Tuple[str, ...], said: str) -> None:
    code, _, err = run("doctor", *words)
    assert code == 2
    assert said in " ".join(err.split())
