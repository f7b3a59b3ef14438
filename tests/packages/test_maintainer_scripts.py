"""What the packages' scripts do to the files of a system: installed, upgraded, removed, and where dpkg breaks off."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Tuple

import pytest

PACKAGES = Path(__file__).resolve().parent.parent.parent / "packages"
SPEC = (PACKAGES / "rpm/ceph-tuner.spec").read_text("utf-8")
MODULES = ("usr/share/ceph/mgr/tuner", "usr/share/ceph/mgr/ceph_tuner")
PROGRAM = "usr/lib/ceph-tuner"


def run(text: str, root: Path, *arguments: str) -> int:
    """A script with its paths below another root, and a systemd that does nothing."""
    tools = root / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "deb-systemd-invoke").write_text("#!/bin/sh\n", "utf-8")
    (tools / "deb-systemd-invoke").chmod(0o755)
    moved = re.sub(r"(?<![\w.])/usr/(share|lib)/", rf"{root}/usr/\1/", text)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    return subprocess.run(["sh", "-ec", moved, "script", *arguments], env=environment, check=False).returncode


def debian(name: str, root: Path, *arguments: str) -> int:
    script = PACKAGES / "debian" / name
    return run(script.read_text("utf-8"), root, *arguments) if script.is_file() else 0


def scriptlet(section: str, root: Path, left: int) -> int:
    """One of the spec's; rpm says how many of the package will be there after it."""
    found = re.search(rf"^%{re.escape(section)}\n(.*?)\n(?:\n|%)", SPEC, re.MULTILINE | re.DOTALL)
    return 0 if found is None else run(found[1], root, str(left))


def byte_code(root: Path, *folders: str) -> None:
    for folder in folders:
        (root / folder / "__pycache__").mkdir(parents=True)
        (root / folder / "__pycache__/one.pyc").write_text("", "utf-8")


def known_to_dpkg(root: Path, *paths: Path) -> None:
    (root / "tools").mkdir()
    said = "\n".join(str(path) for path in paths)
    (root / "tools/dpkg").write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n", "utf-8")
    (root / "tools/dpkg").chmod(0o755)


def copied(root: Path) -> None:
    """As `mgr install` leaves it."""
    for folder in MODULES:
        (root / folder).mkdir(parents=True)
        (root / folder / "module.py").write_text("copied", "utf-8")
    (root / MODULES[0] / "build.txt").write_text("build", "utf-8")


@pytest.mark.parametrize(
    ("script", "folders"), [("ceph-mgr-tuner.prerm", MODULES), ("ceph-tuner.prerm", (PROGRAM, f"{PROGRAM}/lib"))]
)
@pytest.mark.parametrize("action", ["remove", "upgrade"])
def test_byte_code_goes_and_a_missing_folder_keeps_no_package_from_being_removed(
    script: str, folders: Tuple[str, ...], action: str, tmp_path: Path
) -> None:
    byte_code(tmp_path, folders[-1])
    assert debian(script, tmp_path, action) == 0
    assert not list(tmp_path.rglob("*.pyc"))
    subprocess.run(["rm", "-rf", str(tmp_path / folders[0])], check=True)
    assert debian(script, tmp_path, action) == 0


def test_copied_files_are_there_until_the_package_is_unpacked(tmp_path: Path) -> None:
    """dpkg calls nothing of a package that has no postrm where the unpacking fails; one would keep a trace of it."""
    copied(tmp_path)
    assert debian("ceph-mgr-tuner.preinst", tmp_path, "install") == 0
    assert all((tmp_path / folder / "module.py").is_file() for folder in MODULES)
    assert not (PACKAGES / "debian/ceph-mgr-tuner.postrm").exists()


def test_copied_files_are_gone_once_the_package_is_installed(tmp_path: Path) -> None:
    copied(tmp_path)
    byte_code(tmp_path, *MODULES)
    (tmp_path / MODULES[1] / "gone").mkdir()
    (tmp_path / MODULES[1] / "gone/older file.py").write_text("copied", "utf-8")
    owned = [tmp_path / MODULES[0] / "module.py", tmp_path / MODULES[1] / "__init__.py"]
    owned[1].write_text("the package's", "utf-8")
    known_to_dpkg(tmp_path, *owned)
    # an upgrade leaves what an administrator put there
    assert debian("ceph-mgr-tuner.postinst", tmp_path, "configure", "0.1.0-1") == 0
    assert (tmp_path / MODULES[1] / "gone/older file.py").is_file()
    assert debian("ceph-mgr-tuner.postinst", tmp_path, "configure", "") == 0
    assert sorted(path for path in (tmp_path / "usr").rglob("*") if path.is_file()) == sorted(owned)
    assert not (tmp_path / MODULES[1] / "gone").exists()


def test_a_dpkg_that_cannot_say_whose_the_files_are_has_none_removed(tmp_path: Path) -> None:
    copied(tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/dpkg").write_text("#!/bin/sh\nexit 2\n", "utf-8")
    (tmp_path / "tools/dpkg").chmod(0o755)
    assert debian("ceph-mgr-tuner.postinst", tmp_path, "configure", "") != 0
    assert (tmp_path / MODULES[0] / "module.py").is_file()


@pytest.mark.parametrize(("package", "folders"), [("", (PROGRAM, f"{PROGRAM}/lib")), (" -n ceph-mgr-tuner", MODULES)])
def test_rpm_leaves_the_new_packages_byte_code_when_it_removes_the_old_one(
    package: str, folders: Tuple[str, ...], tmp_path: Path
) -> None:
    byte_code(tmp_path, *folders)
    # before the new one is unpacked
    assert scriptlet(f"pre{package}", tmp_path, 2) == 0
    assert not list(tmp_path.rglob("*.pyc"))
    subprocess.run(["rm", "-rf", str(tmp_path / "usr")], check=True)
    byte_code(tmp_path, *folders)
    # after it: rpm removes the old package last
    assert scriptlet(f"preun{package}", tmp_path, 1) == 0
    assert len(list(tmp_path.rglob("*.pyc"))) == len(folders)
    assert scriptlet(f"preun{package}", tmp_path, 0) == 0
    assert not list(tmp_path.rglob("*.pyc"))
