from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from emulated import EmulatedDrive

from ceph_lab.chroot import ensure_chroot, recipe_for
from ceph_lab.drives.build import library
from ceph_lab.processes import host_environment


@pytest.fixture(scope="session")
def emulated(needs_lab: None, tmp_path_factory: pytest.TempPathFactory) -> EmulatedDrive:
    tree = ensure_chroot(recipe_for("tentacle"), {}, lambda line: None)
    directory: Path = tmp_path_factory.mktemp("library")
    shutil.copy(library(tree, host_environment({})), directory / "drive.so")
    return EmulatedDrive(tree, directory / "drive.so")
