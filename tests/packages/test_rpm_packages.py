"""The RPM package of the module, built by Debian's rpm and installed into an empty system."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import List

import pytest
from built_once import sdist

import build_rpm
import ceph_tuner
import debian_packages
import python_distributions
from ceph_tuner.cluster.plugin import LIBRARY, MODULE, build_of, sources

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = "usr/share/ceph/mgr"
HARMLESS = ("no-buildroot-tag", "invalid-url", "hardcoded-library-path", "invalid-license", "no-packager-tag")
"""What rpmlint holds against a spec by itself: the source is ours, and the environment is no library."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    debian_packages.install(["rpm", "rpmlint"])
    (package,) = build_rpm.build(
        sdist(tmp_path_factory), tmp_path_factory.mktemp("rpm"), python_distributions.epoch(ROOT)
    )
    return package


def said(*command: str) -> List[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_it_fits_every_architecture_and_needs_a_mgr(package: Path) -> None:
    assert package.name == f"ceph-mgr-tuner-{ceph_tuner.__version__}-1.noarch.rpm"
    assert "ceph-mgr >= 2:17.2" in said("rpm", "-qp", "--requires", str(package))


def test_it_is_installed_into_an_empty_system_and_leaves_nothing(package: Path, tmp_path: Path) -> None:
    root = ["--root", str(tmp_path), "--nodeps", "--noscripts"]
    subprocess.run(["rpm", *root, "-i", str(package)], check=True)
    modules = tmp_path / MODULES
    files = {str(path.relative_to(modules)): path.read_text("utf-8") for path in modules.rglob("*") if path.is_file()}
    assert files.pop(f"{MODULE}/package.txt") == "ceph-mgr-tuner\n"
    assert files.pop(f"{MODULE}/build.txt") == build_of(sources()) + "\n"
    assert files == sources()
    subprocess.run(["rpm", *root, "-e", "ceph-mgr-tuner"], check=True)
    assert not any((modules / name).exists() for name in (MODULE, LIBRARY))


def test_rpmlint_finds_no_fault_in_the_spec() -> None:
    debian_packages.install(["rpm", "rpmlint"])
    found = subprocess.run(["rpmlint", str(ROOT / build_rpm.SPEC)], capture_output=True, text=True, check=False).stdout
    faults = [line for line in found.splitlines() if ": E: " in line or ": W: " in line]
    assert faults  # it has looked
    assert [line for line in faults if not any(f": {name}" in line for name in HARMLESS)] == []
