from __future__ import annotations

from pathlib import Path

import pytest

from ceph_lab.throttle import Limit, Throttle, find_throttle
from ceph_tuner.core.errors import LabFailed

LIMIT = Limit(iops=1075, bandwidth=62914560)


def test_cgroup_1_is_found_where_blkio_can_throttle(tmp_path: Path) -> None:
    mounts = f"proc /proc proc rw 0 0\ncgroup {tmp_path} cgroup rw,relatime,blkio 0 0\n"
    assert find_throttle(mounts) is None
    (tmp_path / "blkio.throttle.write_iops_device").touch()
    assert find_throttle(mounts) == Throttle(tmp_path, 1)


def test_cgroup_2_is_found_where_it_has_the_io_controller(tmp_path: Path) -> None:
    mounts = f"cgroup2 {tmp_path} cgroup2 rw,relatime 0 0\n"
    assert find_throttle(mounts) is None
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory hugetlb\n")
    assert find_throttle(mounts) is None
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory\n")
    assert find_throttle(mounts) == Throttle(tmp_path, 2)


def test_a_machine_without_either_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from ceph_lab import throttle

    monkeypatch.setattr(throttle, "find_throttle", lambda mounts: None)
    with pytest.raises(LabFailed, match="cannot throttle devices: found neither"):
        throttle.host_throttle()


def test_cgroup_1_limits_reads_and_writes_in_operations_and_bytes(tmp_path: Path) -> None:
    throttle = Throttle(tmp_path, 1)
    throttle.limit("lab", 2, "7:5", LIMIT)
    group = tmp_path / "ceph-tuner.lab.osd.2"
    assert {file.name: file.read_text() for file in group.iterdir()} == {
        "blkio.throttle.read_iops_device": "7:5 1075",
        "blkio.throttle.write_iops_device": "7:5 1075",
        "blkio.throttle.read_bps_device": "7:5 62914560",
        "blkio.throttle.write_bps_device": "7:5 62914560",
    }
    assert throttle.members("lab", 2) == group / "cgroup.procs"


@pytest.mark.parametrize(("before", "after"), [("cpu memory", "+io"), ("cpu io", "cpu io")])
def test_cgroup_2_switches_the_controller_on_where_it_is_off(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "cgroup.subtree_control").write_text(before)
    Throttle(tmp_path, 2).limit("lab", 0, "7:5", LIMIT)
    assert (tmp_path / "cgroup.subtree_control").read_text() == after
    expected = "7:5 riops=1075 wiops=1075 rbps=62914560 wbps=62914560"
    assert (tmp_path / "ceph-tuner.lab.osd.0/io.max").read_text() == expected


def test_a_refusal_of_the_kernel_names_the_group(tmp_path: Path) -> None:
    with pytest.raises(LabFailed, match="cgroup v2 refuses"):
        Throttle(tmp_path / "missing", 2).limit("lab", 0, "7:5", LIMIT)


def test_only_the_lab_s_own_groups_are_removed(tmp_path: Path) -> None:
    for name in ("ceph-tuner.lab.osd.0", "ceph-tuner.lab.osd.11", "ceph-tuner.lab-2.osd.0", "ceph-tuner.lab.osd.x"):
        (tmp_path / name).mkdir()
    assert Throttle(tmp_path, 1).remove("lab") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ceph-tuner.lab-2.osd.0", "ceph-tuner.lab.osd.x"]
