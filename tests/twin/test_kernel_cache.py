"""Machine code is kept by all of the kernel's sources, wherever something can be written, and by several at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import List

import pytest

from ceph_tuner.core.ceph.interpreter import running_text
from ceph_tuner.twin import compiled
from ceph_tuner.twin.kernel_cache import FOLDER, UNUSED_S, digest_of, folder_for
from ceph_tuner.twin.machine_code import MachineCode, keep, kept

USES_THE_QUEUE = """
import sys
sys.path[:0] = sys.argv[1].split(":")
import numpy as np
from ceph_tuner.twin.compiled import functions
from ceph_tuner.twin.kernel.dmclock import Queue
from ceph_tuner.twin.kernel.layout import dtype_of
queues, costs, gaps = np.zeros(1, dtype_of(Queue)), np.full(4, 4096.0), np.full(4, 1e-3)
result = functions().run_queues(queues.ctypes.data, 1, 16, costs.ctypes.data, gaps.ctypes.data, 4)
print(result, "numba" in sys.modules, functions().cached)
"""


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache directory; none is named for numba."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def sources(folder: Path, **texts: str) -> List[Path]:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return sorted(folder.glob("*.py"))


def test_any_file_that_changes_or_comes_or_is_renamed_changes_the_digest(tmp_path: Path) -> None:
    first = digest_of(sources(tmp_path / "a", loop="1", drive="2"))
    assert digest_of(reversed(sources(tmp_path / "b", loop="1", drive="2"))) == first
    others = [
        sources(tmp_path / "c", loop="1", drive="3"),
        sources(tmp_path / "d", loop="1", drives="2"),
        sources(tmp_path / "e", loop="1", drive="2", scrub=""),
        sources(tmp_path / "f", loop="12", drive=""),
    ]
    assert len({first, *map(digest_of, others)}) == 5
    assert digest_of(sources(tmp_path / "a"), "another processor") != first


def test_machine_code_comes_back_as_it_was_kept_and_a_damaged_file_does_not(tmp_path: Path) -> None:
    file, code = tmp_path / "run.code", MachineCode("symbol", b"\x7fELF\n\n\0")
    assert kept(file) is None
    keep(file, MachineCode("older", b""))
    keep(file, code)
    assert kept(file) == code
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole + b"\0", whole.replace(b"symbol", b"symbal"), b"", b"\n", b"\xff\n\n"):
        file.write_bytes(damaged)
        assert kept(file) is None


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed, or switched off")
def test_what_is_not_kept_is_made_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled.code_of(compiled.RUN_QUEUES, tmp_path)
    assert kept(tmp_path / "run_queues.code") == made
    keep(tmp_path / "run_queues.code", MachineCode("another", b""))
    assert compiled.code_of(compiled.RUN_QUEUES, tmp_path) == MachineCode("another", b"")
    # a folder that is gone is no reason to fail
    monkeypatch.setattr("ceph_tuner.twin.kernel_compiler.machine_code", lambda entry: made)
    assert compiled.code_of(compiled.RUN_QUEUES, tmp_path / "gone") == made


def test_a_named_directory_comes_first_then_that_of_the_sources_then_the_user_s(
    homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folder_for("abc", tmp_path / "package") == tmp_path / "package" / "__pycache__" / FOLDER / "abc"
    (tmp_path / "installed").write_text("nothing can be written below a file")
    assert folder_for("abc", tmp_path / "installed") == homes / FOLDER / "abc"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    assert folder_for("abc", tmp_path / "package") == tmp_path / "named" / FOLDER / "abc"


def test_where_nothing_can_be_written_there_is_no_folder(homes: Path, tmp_path: Path) -> None:
    homes.write_text("nothing can be written below a file")
    (tmp_path / "installed").write_text("")
    assert folder_for("abc", tmp_path / "installed") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders to another user")
@pytest.mark.parametrize("planted", ["folder", "below", "link", "open"])
def test_machine_code_that_another_user_may_have_put_there_is_not_run(
    homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    old = victim / "old"
    old.mkdir(parents=True)
    os.utime(old, (time.time() - UNUSED_S - 60,) * 2)
    shared.mkdir()
    shared.chmod(0o1777)
    if planted == "link":
        (shared / FOLDER).symlink_to(victim)
    else:
        (shared / FOLDER / "abc").mkdir(parents=True)
        part = shared / FOLDER / ("abc" if planted == "below" else "")
        if planted == "open":
            part.chmod(0o777)
        else:
            os.chown(part, 12345, 12345)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    assert folder_for("abc", tmp_path) is None
    assert list(victim.iterdir()) == [old]
    assert not list(shared.rglob("*.code"))


def test_folders_that_nobody_used_for_a_week_are_removed_and_younger_ones_stay(homes: Path, tmp_path: Path) -> None:
    old, recent = (folder_for(name, tmp_path) for name in ("old", "recent"))
    assert old is not None
    assert recent is not None
    (old / "code.nbc").write_bytes(b"\0")
    os.utime(old, (time.time() - UNUSED_S - 60,) * 2)
    os.utime(recent, (time.time() - UNUSED_S + 60,) * 2)
    # using one marks it as used
    assert folder_for("recent", tmp_path) == recent
    assert time.time() - recent.stat().st_mtime < 60
    assert sorted(folder.name for folder in old.parent.iterdir()) == ["recent"]


def running(folder: Path) -> subprocess.Popen[str]:
    command = running_text(sys.executable, USES_THE_QUEUE, ":".join(path for path in sys.path if path))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.skipif(not compiled.available(), reason="numba is not installed, or switched off")
def test_isolated_processes_that_compile_at_once_keep_what_the_next_one_finds(tmp_path: Path) -> None:
    together = [running(tmp_path), running(tmp_path)]
    answers = [process.communicate(timeout=300)[0].split() for process in together]
    result, compiled_anew, cached = running(tmp_path).communicate(timeout=300)[0].split()
    assert (compiled_anew, cached) == ("False", "True")
    assert [answer[0] for answer in answers] == [result] * 2
    assert "True" in [answer[1] for answer in answers]
    # one folder, of one digest
    assert len(list((tmp_path / FOLDER).iterdir())) == 1


@pytest.mark.slow
@pytest.mark.skipif(not compiled.available(), reason="numba is not installed, or switched off")
def test_without_a_place_to_write_each_process_compiles_for_itself(tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    result, compiled_anew, cached = running(nowhere).communicate(timeout=300)[0].split()
    assert float(result) > 0
    assert (compiled_anew, cached) == ("True", "False")
