"""Every command that takes a cluster reaches it behind a prefix command as it does from here."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest
import typer

import ceph_tuner_cli
from ceph_tuner_cli.main import app
from running_program import Run
from stand_in_ceph import StandIn, programs_on_the_path
from twins import small_twin

SSH = ("--prefix-command", "ssh admin@mon1 sudo")


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with programs_on_the_path(small_twin().commander, monkeypatch) as made:
        yield made


def leaves(command: Any, name: str = "") -> Dict[str, Any]:
    inner = getattr(command, "commands", {})
    if not inner:
        return {name: command}
    return {full: each for key in inner for full, each in leaves(inner[key], f"{name} {key}".strip()).items()}


def test_whatever_takes_a_cluster_takes_a_prefix_and_nothing_else_does() -> None:
    found = leaves(typer.main.get_command(app))
    options = {name: {option for each in found[name].params for option in each.opts} for name in found}
    with_cluster = {name for name, own in options.items() if "--cluster" in own}
    assert {"doctor", "watch", "apply", "tune", "twin describe", "twin fit", "lock show"} <= with_cluster
    assert {name for name, own in options.items() if "--prefix-command" in own} == with_cluster
    assert {name for name, own in options.items() if "--prefix-shells" in own} == with_cluster


def test_no_command_opens_a_cluster_past_the_prefix() -> None:
    modules = [path for path in Path(ceph_tuner_cli.__file__).parent.glob("*.py") if path.stem != "prefix_option"]
    past = [
        f"{path.name}:{node.lineno}"
        for path in modules
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ceph_tuner.cluster")
        if "open_cluster" in {each.name for each in node.names}
    ]
    assert past == []


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [SSH[1], "kubectl exec deploy/rook-ceph-tools --"], ids=["ssh", "kubectl"])
def test_a_change_is_written_journalled_and_taken_back_behind_a_prefix(
    programs: StandIn, run: Run, prefix: str
) -> None:
    before = programs.commander.mon("config dump", {})
    reached = ("--cluster", "ceph", "--prefix-command", prefix)
    code, _, err = run("apply", "--set", "osd_max_scrubs=2", *reached, "--yes")
    assert code == 0, err
    assert programs.commander.mon("config dump", {}) != before
    code, out, err = run("history", *reached, "--format", "json")
    assert (code, len(json.loads(out)["changes"] if "changes" in json.loads(out) else json.loads(out))) == (0, 1), err
    code, _, err = run("rollback", *reached)
    assert code == 0, err
    assert programs.commander.mon("config dump", {}) == before


@pytest.mark.slow
def test_the_doctor_looks_behind_a_prefix_by_the_ceph_conf_over_there(programs: StandIn, run: Run) -> None:
    code, out, err = run("doctor", "--cluster", "/etc/ceph/rome.conf", *SSH, "--format", "json")
    assert code in (0, 1), err
    assert json.loads(out)["asked"] == 4
    assert {tuple(argv[:2]) for argv in programs.given} == {("--conf", "/etc/ceph/rome.conf")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "lab", *SSH), "'lab' with --prefix-command"),
        (("--cluster", "ceph", "--prefix-shells", "1"), "no --prefix-command"),
        (("--cluster", "ceph", "--prefix-command", "mussh a"), "of which is not known whether a shell"),
        (("--cluster", "ceph", "--prefix-command", "ssh unreachable"), "Connection refused"),
        (("--cluster", "--x.conf", *SSH), "'--x.conf'"),
    ],
)
def test_a_way_that_cannot_be_gone_is_one_line(programs: StandIn, run: Run, words: Tuple[str, ...], said: str) -> None:
    code, _, err = run("history", *words)
    assert code == 2
    assert said in " ".join(err.split())


def test_the_plugin_is_not_put_onto_the_wrong_machine(programs: StandIn, run: Run) -> None:
    code, _, err = run("mgr", "install", "--cluster", "ceph", *SSH)
    assert code == 2
    assert "whose mgrs are elsewhere" in " ".join(err.split())


def test_one_command_s_prefix_is_not_the_next_one_s(programs: StandIn, run: Run) -> None:
    run("history", "--cluster", "ceph", *SSH)
    calls = len(programs.given)
    code, _, err = run("history", "--cluster", "/nowhere/ceph.conf")
    assert (code, "no file /nowhere/ceph.conf" in " ".join(err.split()), len(programs.given)) == (2, True, calls)
