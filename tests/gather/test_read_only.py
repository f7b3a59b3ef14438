"""What a key may not see is a line in the answer, and never its end: docs/gather.md says what each capability shows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Collection, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.goals.stored_slo import SLO_KEY
from ceph_tuner.core.why import CAUSES
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.doctor import examine
from ceph_tuner.doctor import gather as gather_facts
from ceph_tuner.doctor.examination import CHECKS
from ceph_tuner.gather import state_file
from ceph_tuner.gather.read_commands import gather
from ceph_tuner.gather.replay import open_state
from ceph_tuner_cli import doctor, prefix_option, twin_describe, watch, why
from ceph_tuner_cli import gather as gather_command
from running_program import Run
from twins import answering
from whole_cluster import Limited, over, whole_cluster

ALL = ("mon", "mgr", "config-key", "osd")
NO_OSD = ("mon", "mgr", "config-key")
"""mon 'allow r' with its own keys, mgr 'allow r': a keyring that reads no data and changes nothing."""
MON_AND_MGR = ("mon", "mgr")
MON = ("mon",)


def limited(capabilities: Collection[str], *entries: Tuple[str, str, str]) -> Tuple[Cluster, Limited]:
    cluster = whole_cluster()
    cluster.store.set(SLO_KEY, json.dumps({"name": "x", "objectives": ["client.p95_ms <= 80"]}))
    for entry in (("osd", "osd_max_scrubs", "2"), *entries):
        cluster.config.set(*entry)
    cluster.clock.sleep(5)
    commander = Limited(cluster.commander, capabilities)
    return over(cluster, commander), commander


@pytest.mark.parametrize("capabilities", [ALL, NO_OSD, MON_AND_MGR, MON], ids="+".join)
def test_the_doctor_says_what_it_could_not_see_and_judges_the_rest(capabilities: Collection[str]) -> None:
    cluster, commander = limited(capabilities, ("osd.1", "osd_max_scrubs", "1"))
    facts = gather_facts(cluster.commander, cluster.clock, cluster.release, cluster.version)
    assert "leftovers" in {finding.check for finding in examine(facts)}
    assert bool(commander.refused) == bool(facts.notes) == (capabilities != ALL)
    # five questions to four OSDs are five lines at most
    assert len(facts.notes) <= 12
    if "osd" not in capabilities:
        assert [note for note in facts.notes if note.startswith("options of osd.0, osd.1, osd.2, osd.3: not seen")]
    if "config-key" not in capabilities:
        assert [note for note in facts.notes if note.startswith("the journal: not seen")]
    if "mgr" not in capabilities:
        assert [note for note in facts.notes if note.startswith("the PGs: not seen")]


@pytest.mark.parametrize("capabilities", [NO_OSD, MON_AND_MGR, MON], ids="+".join)
def test_a_file_is_gathered_and_the_doctor_says_the_same_of_it(capabilities: Collection[str], tmp_path: Path) -> None:
    cluster, commander = limited(capabilities)
    state = gather(cluster)
    assert [note for note in state.notes if "refused (access denied)" in note]
    assert len(state.notes) <= 24
    # each OSD is not asked again for what the key may not see
    assert len([command for command in commander.refused if command.startswith("ceph tell")]) <= 20
    state_file.write(tmp_path / "s", state)
    then = open_state(tmp_path / "s")
    live, later = (gather_facts(each.commander, each.clock, each.release, each.version) for each in (cluster, then))
    assert [finding.to_dict() for finding in examine(later)] == [finding.to_dict() for finding in examine(live)]
    assert [note.partition(":")[0] for note in later.notes] == [note.partition(":")[0] for note in live.notes]


@pytest.mark.parametrize("capabilities", [NO_OSD, MON_AND_MGR, MON], ids="+".join)
def test_a_description_goes_by_the_monitors_where_the_osds_do_not_answer(capabilities: Collection[str]) -> None:
    cluster, _ = limited(capabilities)
    whole, _ = limited(ALL)
    found, expected = describe(cluster), describe(whole)
    assert found.settings == expected.settings == {"osd_max_scrubs": 2}
    assert (found.model.osd.capacity_iops, found.model.osd.shards) == (
        expected.model.osd.capacity_iops,
        expected.model.osd.shards,
    )
    assert [note for note in found.notes if note.startswith("the OSDs' options are not seen")]


def test_where_the_monitors_alone_answer_clients_are_described_by_their_mean_or_left_out() -> None:
    cluster, _ = limited(MON)
    found = describe(cluster)
    assert found.model.clients == ()
    assert [note for note in found.notes if note.startswith("clients are left out")]
    map_ = json.loads(cluster.commander.mon("osd dump", {}))
    for pool in map_["pools"]:
        # of 12 operations in each
        made_at = datetime.fromtimestamp(cluster.clock.now() - 6, timezone.utc)
        pool["create_time"] = made_at.strftime("%Y-%m-%dT%H:%M:%S.%f%z")
    known = answering(cluster, {"osd dump": map_})
    assert [stream.rate for stream in describe(known).model.clients] == [2.0, 2.0]


def opened(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    for module in (doctor, why, watch, twin_describe, gather_command, prefix_option):
        monkeypatch.setattr(module, "open_cluster", lambda name: cluster)


@pytest.mark.parametrize("capabilities", [NO_OSD, MON_AND_MGR], ids="+".join)
def test_commands_end_well_and_name_what_they_could_not_see(
    capabilities: Collection[str], monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    cluster, _ = limited(capabilities)
    opened(monkeypatch, cluster)
    code, out, err = run("doctor", "--cluster", "ceph", "--format", "json")
    assert code in (0, 1), err
    assert "not seen" in " ".join(json.loads(out)["notes"])
    code, out, err = run("why", "--cluster", "ceph", "--format", "json")
    assert code == 0, err
    assert "config show of osd.0, osd.1, osd.2, osd.3: not seen" in " ".join(json.loads(out)["notes"])
    code, out, err = run("watch", "--cluster", "ceph", "--once", "--interval", "10", "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    assert "client.iops" not in document["means"] or not document["means"]["client.iops"]
    assert "counters are not seen" in " ".join(document["notes"])
    if "config-key" not in capabilities:
        assert "objectives: not seen" in " ".join(document["notes"])
    code, out, err = run("twin", "describe", "--cluster", "ceph")
    assert code == 0, err
    assert "the OSDs' options are not seen" in " ".join(out.replace("\n#", "").split())
    path = tmp_path / "state.tar.zst"
    code, out, err = run("gather", "--cluster", "ceph", "--output", str(path), "--format", "json")
    assert code == 0, err
    assert "refused (access denied)" in " ".join(json.loads(out)["notes"])
    for words in (["doctor"], ["why"], ["watch", "--once"], ["twin", "describe"], ["knobs"]):
        code, _, err = run(*words, "--from", str(path))
        assert code in (0, 1), (words, err)


@pytest.mark.parametrize("capabilities", [NO_OSD, MON], ids="+".join)
def test_a_key_that_sees_little_gives_no_all_clear(
    capabilities: Collection[str], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    cluster, _ = limited(capabilities)
    opened(monkeypatch, cluster)
    code, out, _ = run("doctor", "--quiet", "--cluster", "ceph", "--format", "json")
    document = json.loads(out)
    unjudged = {entry["check"]: entry["unseen"] for entry in document["not_judged"]}
    assert (code, unjudged["other queue"][0]) == (1, "the OSDs' options")
    assert ("placement" in unjudged) is (capabilities == MON)
    assert "leftovers" not in unjudged
    _, out, _ = run("doctor", "--quiet", "--cluster", "ceph")
    judged = f"{len(CHECKS) - len(unjudged)} of {len(CHECKS)} checks"
    assert f"{judged}; {len(unjudged)} could not be judged: " in " ".join(out.split()).replace(
        ", the dearest first;", ";"
    )
    code, out, _ = run("why", "--quiet", "--cluster", "ceph")
    assert code == 0
    words = " ".join(out.split())
    assert words.startswith("Nothing that was seen holds work now. Causes judged: ")
    assert "stale shards" in words.partition("could not be judged: ")[2]


@pytest.mark.parametrize("part", ["pg ls", "config show", "dump_op_pq_state", "perf dump"])
def test_a_file_with_parts_missing_gives_no_all_clear_and_a_whole_one_does(part: str, tmp_path: Path, run: Run) -> None:
    cluster, _ = limited(ALL)
    state = gather(cluster)
    less = replace(state, answers=tuple(answer for answer in state.answers if answer.command != part))
    for name, content in (("whole", state), ("less", less)):
        state_file.write(tmp_path / name, content)
    _, out, _ = run("why", "--quiet", "--from", str(tmp_path / "whole"))
    assert out == f"Nothing holds work now: {len(CAUSES)} causes were looked for.\n"
    _, out, _ = run("doctor", "--quiet", "--from", str(tmp_path / "whole"))
    assert f" by {len(CHECKS)} checks" in out
    assert "could not be judged" not in out
    for command in ("why", "doctor"):
        _, out, _ = run(command, "--quiet", "--from", str(tmp_path / "less"))
        assert "could not be judged: " in " ".join(out.split()), (command, part)


def test_nobody_who_only_looks_asks_for_a_right_to_change() -> None:
    cluster, commander = limited(ALL)
    gather(cluster)
    gather_facts(cluster.commander, cluster.clock, cluster.release, cluster.version)
    describe(cluster)
    assert commander.refused == []
