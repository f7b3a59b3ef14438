from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ceph_tuner.clusters.plugin import BUILD_FILE, LIBRARY, MODULE, Plugin, build_of, sources
from ceph_tuner.errors import PermissionRefused


class NoCluster:
    """A cluster that must not be asked."""

    lab = None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def plugin(path: Path) -> Plugin:
    return Plugin(NoCluster(), NoCluster(), path)  # type: ignore[arg-type]


def test_what_is_installed_is_a_module_and_a_library_that_is_none() -> None:
    files = sources()
    assert {f"{MODULE}/__init__.py", f"{MODULE}/module.py", f"{LIBRARY}/sampling.py"} <= set(files)
    # Ceph takes every directory with a module.py for a module
    assert [name for name in files if name.endswith("/module.py")] == [f"{MODULE}/module.py"]
    assert {Path(name).parts[0] for name in files} == {MODULE, LIBRARY}
    compile(files[f"{LIBRARY}/clusters/__init__.py"], "init", "exec")


def test_a_copy_replaces_all_of_an_older_one(tmp_path: Path) -> None:
    (tmp_path / LIBRARY).mkdir()
    (tmp_path / LIBRARY / "gone.py").write_text("")
    (tmp_path / "balancer").mkdir()
    files: Dict[str, str] = sources()
    plugin(tmp_path).copy(files)
    assert not (tmp_path / LIBRARY / "gone.py").exists()
    assert (tmp_path / MODULE / BUILD_FILE).read_text().strip() == build_of(files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["balancer", LIBRARY, MODULE]
    found: List[str] = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.py")]
    assert sorted(found) == sorted(files)
    assert (tmp_path / MODULE / "module.py").stat().st_mode & 0o777 == 0o644


def test_a_build_names_the_very_files() -> None:
    files = sources()
    assert build_of(files) == build_of(dict(reversed(list(files.items()))))
    assert build_of(files) != build_of({**files, f"{MODULE}/module.py": "pass"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(PermissionRefused, match="root"):
        plugin(tmp_path).copy(sources())
