from __future__ import annotations

from pathlib import Path

import pytest

from ceph_lab import pools_file
from ceph_lab.loads.layout import creation
from ceph_lab.options import LabOptions
from ceph_tuner.core.errors import InputError

POOLS = """
schema: 1
pools:
- name: volumes
  layout: replicated:2
  device_class: ssd
  pgs: 64
- name: archive
  layout: ec:2+1
"""


def read(tmp_path: Path, text: str = POOLS) -> LabOptions:
    path = tmp_path / "pools.yaml"
    path.write_text(text)
    return LabOptions.from_dict({"osds": "3xnvme,3xhdd", "pools": pools_file.read(path)})


def test_pools_lie_as_the_file_says(tmp_path: Path) -> None:
    options = read(tmp_path)
    assert [str(pool) for pool in options.made_pools] == [
        "volumes (replicated:2 on ssd, 64 PGs)",
        "archive (ec:2+1, 32 PGs)",
    ]
    assert LabOptions.from_dict(options.to_dict()) == options
    assert options.differences({"pools": options.pools}) == {}
    assert "pools" in LabOptions.from_dict({"osds": "3xnvme,3xhdd"}).differences({"pools": options.pools})
    rule, pool, _ = creation("volumes", options.pools[0].layout)
    assert (rule["class"], pool["rule"], pool["size"], pool["pg_num"]) == ("ssd", "volumes", 2, 64)
    profile, pool, overwrites, _ = creation("archive", options.pools[1].layout)
    assert profile["profile"] == ["k=2", "m=1", "crush-failure-domain=host"]
    assert (pool["erasure_code_profile"], overwrites["val"]) == ("archive", "true")


def test_without_a_file_each_class_has_a_pool() -> None:
    assert [pool.name for pool in LabOptions().made_pools] == ["rbd"]
    two = LabOptions.from_dict({"osds": "3xnvme,2xhdd"}).made_pools
    assert [str(pool) for pool in two] == [
        "rbd-ssd (replicated:3 on ssd, 32 PGs)",
        "rbd-hdd (replicated:2 on hdd, 32 PGs)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("replicated:2", "raid:5", r"pools.yaml:4.*raid:5.*replicated:N or ec:K\+M"),
        ("archive", "load-x", "pools.yaml:8.*load-x"),
        ("ec:2+1", "ec:8+3", "pool archive: found ec:8\\+3 on 6 OSDs, expected at least 11"),
        ("archive", "volumes", "pool volumes: found it twice"),
        ("device_class: ssd", "device_class: tape", "pool volumes: found device class tape, expected one of hdd, ssd"),
        ("pgs: 64", "pgs: 0", "pools.yaml:7"),
        ("schema: 1", "schema: 2", "pools.yaml:2"),
    ],
)
def test_pools_that_cannot_be_are_refused_with_their_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path, POOLS.replace(old, new))
