from __future__ import annotations

from pathlib import Path

import pytest

from ceph_lab.places import LabPlaces, cache_directory
from ceph_tuner.core.errors import InputError


@pytest.mark.parametrize("name", ["", "..", "a/b", "a.b", "A", "-a", "a b", "a\n", "x" * 41])
def test_a_name_that_would_be_unsafe_in_a_path_or_cgroup_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="lab name"):
        _ = LabPlaces(name).directory


def test_all_of_a_lab_lies_in_its_directory(tmp_path: Path) -> None:
    places = LabPlaces("lab-2", tmp_path)
    inner = (places.state, places.devices, places.shared, places.scratch, places.root)
    assert all(path.parent == places.directory for path in inner)
    assert places.lock.parent == tmp_path


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_directory() == Path("/somewhere/ceph-tuner")
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_directory() == tmp_path / ".cache/ceph-tuner"
