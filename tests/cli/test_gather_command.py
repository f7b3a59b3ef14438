from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Tuple

import pytest
import zstandard

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.gather import state_file
from ceph_tuner.gather.read_commands import gather as gathered
from ceph_tuner.twin.model import MIB, ScrubWork
from ceph_tuner_cli import doctor, gather, render, twin_describe, watch
from ceph_tuner_cli.recommend import _description
from running_program import Run
from stand_in_ceph import programs_on_the_path
from twins import in_classes, small_twin
from whole_cluster import ALL_SECRETS, WholeCluster, whole_cluster


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = whole_cluster()
    for module in (gather, doctor, watch, twin_describe):
        monkeypatch.setattr(module, "open_cluster", lambda name: made)
    return made


@pytest.fixture
def path(cluster: Cluster, run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "state.tar.zst"
    code, _, err = run("gather", "--cluster", "ceph", "--output", str(path))
    assert code == 0, err
    return path


def test_what_is_in_the_file_is_told_while_it_is_made_and_afterwards(
    cluster: Cluster, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "state.tar.zst"
    code, out, _ = run("gather", "--cluster", "ceph", "--output", str(path), "--format", "json")
    document = json.loads(out)
    assert (code, document["osds"], document["asked"], document["notes"]) == (0, 4, [0, 1, 2, 3], [])
    assert document["bytes"] == path.stat().st_size < document["unpacked_bytes"]
    rows = {row["command"]: row for row in document["contents"]}
    assert rows["ceph tell osd.N config show"]["answers"] == 4
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    code, out, _ = run("gather", "--show", str(path), "--format", "json")
    assert {**json.loads(out), "saved": ""} == {**document, "saved": ""}


def test_the_table_fits_a_terminal(path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.console, "_width", 80)
    code, out, err = run("gather", "--show", str(path))
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "ceph tell osd.N perf histogram dump" in out
    assert "unpacked; cluster twin at 2026-01-01" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "ceph"), "no --output"),
        (("--output", "x"), "no --cluster"),
        (("--show", "nowhere", "--cluster", "ceph"), "beside it"),
        (("--show", "/nowhere"), "no such file"),
        (("--cluster", "ceph", "--output", "/nowhere/x"), "/nowhere"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(cluster: Cluster, run: Run, words: Tuple[str, ...], said: str) -> None:
    code, _, err = run("gather", *words)
    assert (code, said in " ".join(err.split())) == (2, True), err


def test_a_file_that_is_there_is_kept_and_the_cluster_is_not_asked(cluster: Cluster, run: Run, path: Path) -> None:
    before = path.read_bytes()
    code, _, err = run("gather", "--cluster", "ceph", "--output", str(path))
    assert (code, "--force" in err, path.read_bytes()) == (2, True, before)


@pytest.mark.parametrize(
    "words", [["doctor"], ["watch", "--once"], ["twin", "describe"], ["knobs", "osd_max_scrubs"]], ids=" ".join
)
def test_commands_read_the_file_and_say_of_when_it_is(path: Path, run: Run, words: list) -> None:
    code, out, err = run(*words, "--from", str(path))
    assert code in (0, 1), err
    assert out
    assert "as of 2026-01-01 00:0" in err


def test_a_look_at_the_file_has_the_rates_of_its_samples(path: Path, run: Run) -> None:
    code, out, err = run("watch", "--once", "--from", str(path), "--format", "json")
    document = json.loads(out)
    assert code == 0, err
    assert document["seconds"] == pytest.approx(20, rel=0.05)
    assert document["means"]["client.iops"] == pytest.approx(300, rel=0.2)
    assert document["automatic"]["words"] == ["The automatic mode is off."]


def test_a_look_at_a_file_without_a_store_or_without_samples_fails_at_once(path: Path, run: Run) -> None:
    whole = state_file.read(path)
    stores = [answer for answer in whole.answers if answer.command == "config-key dump"]
    assert len(stores) == 1
    for left_out, said in (
        (stores, "config-key dump mgr/tuner/` failed with -61: not gathered"),
        ([answer for answer in whole.answers if answer.look > 1], "found no two samples"),
    ):
        rest = tuple(answer for answer in whole.answers if answer not in left_out)
        state_file.write(path, replace(whole, answers=rest), force=True)
        code, out, err = run("watch", "--once", "--from", str(path))
        assert (code, out) == (2, "")
        assert said in " ".join(err.split())
        assert "waiting" not in err
        assert "try again" not in err


def test_a_search_is_given_what_the_file_describes(tmp_path: Path) -> None:
    made = whole_cluster(scrub=(ScrubWork("rbd", 9000, MIB),))
    state_file.write(tmp_path / "state.tar.zst", gathered(made))
    slo = Slo("x", (parse_objective("scrub.interval_s <= 7 d"),))
    described = _description(None, tmp_path / "state.tar.zst", "osd", slo)
    assert (described.model.osds, described.model.scrub != ()) == (4, True)
    assert described.model.osd == describe(made, also=slo.work).model.osd


def test_settings_of_a_class_are_not_searched_for_osds_of_several(tmp_path: Path) -> None:
    path, slo = tmp_path / "state.tar.zst", Slo("x", (parse_objective("client.p95_ms <= 9"),))
    state_file.write(path, gathered(in_classes(whole_cluster(osds=8), ("hdd", "ssd", "ssd"))))
    assert _description(None, path, None, slo).target == "osd/class:ssd"
    assert _description(None, path, "osd/class:hdd", slo).target == "osd/class:hdd"
    with pytest.raises(InputError, match=r"osd/root:default, 8 OSDs of 2 classes \(3 hdd, 5 ssd\)"):
        _description(None, path, "osd/root:default", slo)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("doctor", "--cluster", "ceph", "--from", "FILE"), "--cluster ceph beside it"),
        (("doctor", "--from", "FILE", "--cure", "stale-shards"), "a live cluster"),
        (("watch", "--from", "FILE"), "no --once"),
        (("watch", "--once"), "a file of `ceph-tuner gather`"),
        (("knobs", "--from", "FILE", "--release", "reef"), "beside it"),
        (("recommend", "--slo", "SLO"), "neither CLUSTER_FILE nor --from"),
        (("recommend", "any.yaml", "--from", "FILE", "--slo", "SLO"), "CLUSTER_FILE and --from"),
        (("doctor", "--from", "/etc/hostname"), "/etc/hostname"),
    ],
)
def test_what_a_file_cannot_do_is_said(path: Path, run: Run, words: Tuple[str, ...], said: str) -> None:
    slo = path.parent / "slo.yaml"
    slo.write_text("schema: 1\nobjectives: [client.p95_ms <= 9 ms]\n")
    code, _, err = run(*(str({"FILE": path, "SLO": slo}.get(word, word)) for word in words))
    assert (code, said in " ".join(err.split())) == (2, True), err


@pytest.mark.slow
def test_behind_a_prefix_the_same_is_gathered_without_secrets(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    commander = WholeCluster(small_twin().commander)
    path = tmp_path / "state.tar.zst"
    with programs_on_the_path(commander, monkeypatch):
        reached = ("--cluster", "ceph", "--prefix-command", "kubectl exec deploy/rook-ceph-tools --")
        code, out, err = run("gather", *reached, "--output", str(path), "--interval", "1", "--format", "json")
    assert code == 0, err
    assert json.loads(out)["asked"] == [0, 1, 2, 3]
    texts = "".join(answer.text for answer in state_file.read(path).answers)
    assert not [secret for secret in ALL_SECRETS if secret in texts]


@pytest.mark.slow
def test_a_prefix_that_fails_amid_it_leaves_its_password_nowhere(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "state.tar.zst"
    with programs_on_the_path(WholeCluster(small_twin().commander), monkeypatch) as programs:
        # the way is cut for one command, and says all that it was given
        (programs.folder / "sshpass").write_text(
            '#!/bin/sh\nall="$*"\nshift 2\n'
            'case "$all" in *"osd df"*) echo "sshpass $all" >&2; exit 3;; esac\nexec "$@"\n'
        )
        (programs.folder / "sshpass").chmod(0o755)
        reached = ("--cluster", "ceph", "--prefix-command", "sshpass -p hunter2 ssh root@mon1", "--prefix-shells", "1")
        code, out, err = run("gather", *reached, "--output", str(path), "--interval", "1")
    assert code == 0, err
    faults = [answer.fault for answer in state_file.read(path).answers if answer.command == "osd df"]
    assert faults
    assert all(fault is not None and "`sshpass` to mon1 ended with 3" in fault.words for fault in faults)
    unpacked = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    assert b"ended with 3" in unpacked
    assert b"hunter2" not in unpacked
    shown = "".join(run("gather", "--show", str(path))[1:])
    assert "hunter2" not in out + err + shown


def test_values_that_lead_nowhere_are_the_files_fault(path: Path, run: Run) -> None:
    state = state_file.read(path)
    spoilt = tuple(
        replace(answer, text='{"osd_mclock_max_capacity_iops_ssd":"many","name":"osd.0"}')
        if answer.command == "config show"
        else answer
        for answer in state.answers
    )
    state_file.write(path, replace(state, answers=spoilt), force=True)
    code, _, err = run("doctor", "--from", str(path))
    assert (code, "an answer that no cluster gives" in " ".join(err.split())) == (2, True), err
