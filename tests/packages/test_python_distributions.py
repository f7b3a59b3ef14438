"""The wheel and the source distribution: whole, and the same bytes wherever and whenever they are built."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

import ceph_tuner
import python_distributions

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = {"mgr_module/tuner": "mgr/tuner", "examples": "examples"}
SECONDS = 1700000000
DASHBOARDS = ("dashboards/alerts.yaml", "dashboards/ceph-tuner.json")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuple[Path, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(SECONDS))
        yield python_distributions.build(ROOT, tmp_path_factory.mktemp("built"))


def tracked(folder: str) -> List[str]:
    listed = python_distributions._output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    return [name for name in listed.split("\0") if name.startswith(f"{folder}/") and (ROOT / name).is_file()]


def test_every_file_of_the_program_is_in_the_wheel(built: Tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        inside = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    data = f"ceph_tuner-{ceph_tuner.__version__}.data/data/share/ceph-tuner"
    expected: Dict[str, bytes] = {f"{data}/{name}": (ROOT / name).read_bytes() for name in DASHBOARDS}
    for role in ("tuner", "cli", "profiles"):
        expected.update({name.partition("/")[2]: (ROOT / name).read_bytes() for name in tracked(role)})
    for folder, installed in SHARED.items():
        places = {name: f"{data}/{installed}{name[len(folder) :]}" for name in tracked(folder)}
        expected.update({place: (ROOT / name).read_bytes() for name, place in places.items()})
    assert set(inside) == set(expected)
    assert inside == expected


def test_the_source_distribution_has_what_packages_are_built_with_and_no_tests(built: Tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"setup.py", "pyproject.toml", "LICENSE", "CHANGELOG.md", "requirements/program.txt"}
    assert wanted | set(tracked("packages")) <= names
    assert not [name for name in names if name.startswith(("tests", "docs", ".")) or "__pycache__" in name]


def test_a_later_build_under_another_umask_gives_the_same_bytes(
    built: Tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    before = os.umask(0o077)
    try:
        again = python_distributions.build(ROOT, tmp_path)
    finally:
        os.umask(before)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


def test_files_are_as_old_as_they_are_said_to_be(built: Tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        assert {member.mtime for member in archive.getmembers()} == {SECONDS}
    with zipfile.ZipFile(built[1]) as opened:
        assert {entry.date_time for entry in opened.infolist()} == {(2023, 11, 14, 22, 13, 20)}
