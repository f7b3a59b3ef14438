from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ceph_lab import chroot, debian_tree
from ceph_lab.processes import BUILD_MARK, marked
from ceph_lab.state import locked
from ceph_tuner.core.errors import InputError, LabFailed, PermissionRefused

RECIPE = chroot.recipe_for("reef")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "ceph-tuner/chroots").mkdir(parents=True)
    return tmp_path / "ceph-tuner/chroots"


def as_root_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, uid: int = 0) -> Path:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    (tmp_path / "os-release").write_text(text)
    return tmp_path / "os-release"


@pytest.mark.parametrize("text", ["ID=debian\n", "ID=ubuntu\nID_LIKE=debian\n", 'ID="x"\nID_LIKE="ubuntu debian"\n'])
def test_debian_and_its_children_are_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    chroot.check_host(as_root_on(monkeypatch, tmp_path, text))


@pytest.mark.parametrize(("text", "named"), [("ID=fedora\n", "fedora"), ("", "unknown")])
def test_another_system_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(InputError, match=named):
        chroot.check_host(as_root_on(monkeypatch, tmp_path, text))


def test_without_root_the_lab_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(PermissionRefused, match="user id 1000, expected root"):
        chroot.check_host(as_root_on(monkeypatch, tmp_path, "ID=debian\n", uid=1000))


def test_a_mirror_must_be_an_address() -> None:
    with pytest.raises(InputError, match="--mirror"):
        chroot.recipe_for("reef", "mirror.example")


def test_what_goes_in_names_the_tree_and_the_mirror_does_not() -> None:
    assert replace(RECIPE, packages=("fio",)).name != RECIPE.name
    assert replace(RECIPE, bcrypt="").name != RECIPE.name
    assert chroot.recipe_for("reef", "https://mirror.example/debian").name == RECIPE.name


def test_a_finished_tree_is_used_as_it_is(cache: Path) -> None:
    (cache / RECIPE.name / "etc").mkdir(parents=True)
    (cache / RECIPE.name / "etc/ceph-tuner-chroot.json").write_text("{}")
    assert chroot.ensure_chroot(RECIPE, {}, pytest.fail) == cache / RECIPE.name


def test_what_a_killed_build_left_is_discarded_with_its_processes(cache: Path) -> None:
    unfinished = cache / f".{RECIPE.name}.unfinished"
    unfinished.mkdir()
    orphan = subprocess.Popen(["sleep", "60"], env={**os.environ, BUILD_MARK: str(unfinished)})
    while not marked(unfinished, BUILD_MARK):
        # the kernel shows no environment for a moment after the start
        time.sleep(0.01)
    chroot.discard_unfinished(lambda line: None)
    assert orphan.wait(5) != 0
    assert list(cache.iterdir()) == []


def test_a_running_build_is_left_alone(cache: Path) -> None:
    (cache / f".{RECIPE.name}.unfinished").mkdir()
    with locked(cache / f".{RECIPE.name}.lock", "busy"):
        chroot.discard_unfinished(pytest.fail)
    assert (cache / f".{RECIPE.name}.unfinished").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_a_failed_build_leaves_its_log_and_quotes_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "mkdir -p $0; echo E: no way to the mirror; exit 4"
    monkeypatch.setattr(debian_tree, "bootstrap_command", lambda suite, tree, *rest: ["sh", "-c", script, str(tree)])
    with pytest.raises(LabFailed, match=r"failed with 4, see .*\.log: E: no way to the mirror"):
        chroot.ensure_chroot(RECIPE, {}, lambda line: None)
    assert [path.name for path in cache.iterdir()] == [f"{RECIPE.name}.log"]
