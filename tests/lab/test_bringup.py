"""What `lab up` looks at before it makes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ceph_lab import bringup, memory
from ceph_lab.options import GIB, LabOptions
from ceph_lab.places import LabPlaces
from ceph_tuner.core.errors import InputError


def test_what_does_not_fit_is_refused_before_ceph_s_tree_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(*_: Any) -> Path:
        pytest.fail("Ceph's tree was fetched first")

    monkeypatch.setattr(bringup, "_need_tools", lambda: None)
    monkeypatch.setattr(bringup, "ensure_chroot", fetched)
    short = memory.Need(15 * GIB, 3 * GIB, 8 * GIB)
    monkeypatch.setattr(memory, "memory_need", lambda *_: short)
    places = LabPlaces("lab", tmp_path / "labs")
    needed = r"15\.0 GiB for devices, 0\.5 GiB for monitors and 3\.0 GiB for OSDs; 8\.0 GiB available"
    with pytest.raises(InputError, match=needed):
        bringup._build(places, LabOptions(storage="ram"), "", lambda line: None)
    # nor is anything of the lab there
    assert list((tmp_path / "labs").iterdir()) == []
