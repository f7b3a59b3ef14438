from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ceph_tuner.core import atomic_write
from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.core.errors import InputError


def test_a_file_is_written_readable_for_all_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_text(tmp_path / "a", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_text() == "text"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_text(path, "old")
    with pytest.raises(InputError, match="a file of that name, expected another name, or --force"):
        write_text(path, "new")
    assert path.read_text() == "old"
    write_text(path, "new", force=True)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


def test_one_that_appears_meanwhile_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("another's")
    # as if it had not been there yet when we looked
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with pytest.raises(InputError, match="a file of that name"):
        write_text(path, "ours")
    assert path.read_text() == "another's"
    assert os.listdir(tmp_path) == ["a"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    write_text(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write.os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_text(path, "new", force=True)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic_write.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "a", "new")
    assert os.listdir(tmp_path) == []


def test_a_directory_that_is_missing_or_in_the_way_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no directory"):
        write_text(tmp_path / "gone" / "a", "text")
    with pytest.raises(InputError, match="a directory, expected the name of a file"):
        write_text(tmp_path, "text", force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no directory"):
        write_text(tmp_path / "file" / "a", "text")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user")
@pytest.mark.parametrize(("mode", "taken"), [(0o1777, False), (0o775, False), (0o755, True)])
def test_a_link_that_another_user_planted_in_a_shared_directory_is_not_followed(
    tmp_path: Path, mode: int, taken: bool
) -> None:
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    shared.mkdir()
    shared.chmod(mode)
    victim.write_text("mine")
    (shared / "out").symlink_to(victim)
    os.lchown(shared / "out", 12345, 12345)
    if taken:
        write_text(shared / "out", "new", force=True)
    else:
        with pytest.raises(InputError, match="a symbolic link of another user"):
            write_text(shared / "out", "new", force=True)
    assert victim.read_text() == ("new" if taken else "mine")
    # one's own is followed wherever it lies
    (shared / "own").symlink_to(victim)
    write_text(shared / "own", "newer", force=True)
    assert victim.read_text() == "newer"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user")
def test_nor_is_a_directory_that_is_such_a_link(tmp_path: Path) -> None:
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    victim.mkdir()
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "answers").symlink_to(victim)
    os.lchown(shared / "answers", 12345, 12345)
    with pytest.raises(InputError, match="answers: found a symbolic link of another user"):
        write_text(shared / "answers" / "paris.yaml", "new", force=True)
    assert list(victim.iterdir()) == []
