from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ceph_lab import mounts
from ceph_lab.mounts import mounted_below, remove_tree
from ceph_tuner.core.errors import LabFailed

_LINE = "36 35 98:0 /mnt1 {point} rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"


def test_mounts_below_a_tree_come_deepest_first_and_neighbours_not_at_all(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    points = ["/", "/tree/dev", "/tree", "/tree/dev/pts", "/treehouse", r"/tree/with\040blank"]
    table.write_text("".join(_LINE.format(point=point) for point in points))
    assert [str(point) for point in mounted_below(Path("/tree"), table)] == [
        "/tree/dev/pts",
        "/tree/dev",
        "/tree/with blank",
        "/tree",
    ]


def test_a_tree_is_removed(tmp_path: Path) -> None:
    (tmp_path / "tree/a").mkdir(parents=True)
    (tmp_path / "tree/a/file").write_text("x")
    remove_tree(tmp_path / "tree")
    remove_tree(tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_removed_while_something_stays_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(mounts, "mounted_below", lambda tree: [tree / "dev"])
    with pytest.raises(LabFailed, match="not removed, because something is mounted at"):
        remove_tree(tmp_path)
    assert (tmp_path / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_what_is_mounted_below_is_unmounted_and_kept(tmp_path: Path) -> None:
    precious, tree = tmp_path / "precious", tmp_path / "tree"
    (tree / "mnt").mkdir(parents=True)
    precious.mkdir()
    (precious / "file").write_text("x")
    subprocess.run(["mount", "--bind", precious, tree / "mnt"], check=True)
    assert mounted_below(tree) == [tree / "mnt"]
    remove_tree(tree)
    assert not tree.exists()
    assert (precious / "file").exists()
