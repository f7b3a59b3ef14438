"""The lock files are of setup.py, whole, and name no place that packages come from."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Dict, List

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import pins

if sys.version_info >= (3, 11):
    import tomllib
else:
    # pytest brings it there
    import tomli as tomllib

LOCKS = (pins.PROGRAM, pins.DEVELOPMENT, pins.LOWEST)
PYTHONS = ("3.9.2", "3.9.25", "3.10.12", "3.11.2", "3.12.3", "3.13.5", "3.14.0")
LOWEST_PYTHON = "3.11.2"
EXTRAS = {pins.PROGRAM: ("",), pins.DEVELOPMENT: ("", "dask", "dev", "docs", "keyring", "test")}


def environment(python: str) -> Dict[str, str]:
    return {
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
    }


def applying(lock: Path, python: str) -> Dict[str, List[pins.Pin]]:
    by_name: Dict[str, List[pins.Pin]] = {}
    for pin in pins.read(lock):
        if pin.applies(environment(python)):
            by_name.setdefault(pin.name, []).append(pin)
    return by_name


def required(*extras: str) -> List[Requirement]:
    declared = pins.declared()
    return [requirement for extra in extras for requirement in declared[extra]]


def build_requirements() -> List[str]:
    document = tomllib.loads((pins.FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))
    requirements: List[str] = document["build-system"]["requires"]
    return requirements


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", EXTRAS, ids=lambda lock: lock.stem)
def test_a_lock_pins_each_declared_requirement_once_within_its_range(lock: Path, python: str) -> None:
    pinned = applying(lock, python)
    for requirement in [*required(*EXTRAS[lock]), *map(Requirement, build_requirements())]:
        if requirement.marker is None or requirement.marker.evaluate(environment(python)):
            (pin,) = pinned[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin.version, prereleases=True), requirement


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", EXTRAS, ids=lambda lock: lock.stem)
def test_no_python_gets_two_versions_of_a_package(lock: Path, python: str) -> None:
    assert [name for name, of_it in applying(lock, python).items() if len(of_it) > 1] == []


@pytest.mark.parametrize("python", PYTHONS)
def test_the_tools_change_nothing_about_the_program(python: str) -> None:
    development = applying(pins.DEVELOPMENT, python)
    for name, (pin,) in applying(pins.PROGRAM, python).items():
        assert [(each.version, each.hashes) for each in development[name]] == [(pin.version, pin.hashes)]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_each_pin_has_hashes(lock: Path) -> None:
    of_lock = pins.read(lock)
    assert len(of_lock) > 50
    for pin in of_lock:
        assert pin.hashes, pin
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in pin.hashes), pin


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_names_no_index_and_no_folder(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert re.findall(r"://|file:|^\s*(?:-\w|--(?!hash=))\S*|@ ", text, re.MULTILINE) == []


def test_the_lowest_versions_are_the_ones_that_setup_py_declares() -> None:
    pinned = applying(pins.LOWEST, LOWEST_PYTHON)
    for requirement in required("", "dask", "keyring"):
        (lowest,) = [Version(each.version) for each in requirement.specifier if each.operator == ">="]
        assert [pin.version for pin in pinned[canonicalize_name(requirement.name)]] == [lowest], requirement


def test_the_build_backend_that_is_locked_is_the_one_of_pyproject() -> None:
    lines = (pins.FOLDER / "build.in").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == build_requirements()


@pytest.mark.parametrize("line", ["numpy>=1.24", "numpy", "numpy==2.*", "numpy @ file:///tmp/numpy.whl"])
def test_a_line_that_pins_nothing_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "lock.txt").write_text(f"# a comment\njinja2==3.1.6\n{line}\n")
    with pytest.raises(ValueError, match="expected name==version"):
        pins.read(tmp_path / "lock.txt")
