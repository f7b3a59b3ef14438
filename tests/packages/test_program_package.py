"""The package ceph-tuner: built on this Debian, installed by apt on one that nobody has used."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Dict, Tuple

import pytest

import build_debian
import build_rpm
import ceph_tuner
import debian_packages
import pristine
import python_distributions
import release

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 1_790_000_000
GUARDIAN = "usr/lib/systemd/system/ceph-tuner-guardian.service"
WORK = "usr/lib/systemd/system/ceph-tuner@.service"
"""The age of all files: a commit of somebody's meanwhile is no matter."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Path]:
    """All packages, by their names."""
    debian_packages.install(["debhelper", "python3-venv", "rpm"])
    folder = tmp_path_factory.mktemp("packages")
    sdist = python_distributions.build_sdist(ROOT, folder / "sdist")
    (folder / "wheels").mkdir()
    release._download(ROOT, folder / "wheels")
    debian = build_debian.build(sdist, folder, SECONDS, folder / "wheels")
    rpm = build_rpm.build(sdist, folder, SECONDS, folder / "wheels")
    names = {path: "ceph-mgr-tuner" if "-mgr-" in path.name else "ceph-tuner" for path in [*debian, *rpm]}
    return {name + path.suffix: path for path, name in names.items()}


@pytest.mark.timeout(1800)
def test_apt_installs_it_on_a_machine_that_nobody_has_used_and_takes_it_away_again(
    built: Dict[str, Path], tmp_path: Path
) -> None:
    with pristine.machine(_suite()) as machine:
        log = tmp_path / "log"

        def run(*words: str, codes: Tuple[int, ...] = (0,)) -> str:
            before = log.stat().st_size if log.exists() else 0
            code = machine.run(["sh", "-c", " ".join(words)], log, 900)
            text = log.read_bytes()[before:].decode()
            assert code in codes, text[-3000:]
            return text

        subprocess.run(["cp", str(built["ceph-tuner.deb"]), f"{machine.root}/root/"], check=True)
        run("apt-get", "update", "-q")
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", "/root/ceph-tuner_*.deb")
        assert f"ceph-tuner {ceph_tuner.__version__}\n" in run("ceph-tuner", "--version")
        run("mkdir desk && cd desk && ceph-tuner example nvme-node")
        few = "--trials 2 --live-only --processes 1"
        said = run(
            f"cd desk && ceph-tuner recommend cluster-nvme-node.yaml --slo slo-nvme-node.yaml {few}", codes=(0, 1)
        )
        assert "high_client_ops" in said
        assert "ceph config set osd " in said
        # it needs a key first: who makes one enables it
        assert (machine.root / GUARDIAN).is_file()
        assert (machine.root / WORK).is_file()
        assert [*machine.root.glob("etc/systemd/system/*.wants/ceph-tuner*")] == []
        run("apt-get", "remove", "-y", "-q", "ceph-tuner")
        for left in ("usr/lib/ceph-tuner", "usr/bin/ceph-tuner", "usr/share/doc/ceph-tuner", GUARDIAN, WORK):
            assert not (machine.root / left).exists()
        assert "ceph-tuner" not in (machine.root / "var/lib/dpkg/status").read_text("utf-8")


def _suite() -> str:
    """This machine's: its Python is the one that the package is for."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"]


def test_nothing_in_it_says_where_it_was_built(built: Dict[str, Path], tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", str(built["ceph-tuner.deb"]), str(tmp_path)], check=True)
    home = tmp_path / "usr/lib/ceph-tuner"
    assert (home / "bin/ceph-tuner").read_text("utf-8").startswith("#!/usr/lib/ceph-tuner/bin/python\n")
    assert {path.name for path in (home / "bin").iterdir() if "python" not in path.name} == {"ceph-tuner"}
    own = [
        path for path in home.rglob("*") if path.is_file() and ("ceph_tuner" in str(path) or "ceph_lab" in str(path))
    ]
    assert len(own) > 500
    assert [path for path in [*own, home / "pyvenv.cfg"] if b"/debian/ceph-tuner" in path.read_bytes()] == []


@pytest.mark.timeout(1800)
def test_built_again_both_are_the_same_bytes(built: Dict[str, Path], tmp_path: Path) -> None:
    folder = built["ceph-tuner.deb"].parent
    (sdist,) = (folder / "sdist").glob("*.tar.gz")
    debian = build_debian.build(sdist, tmp_path, SECONDS, folder / "wheels")
    again = [*debian, *build_rpm.build(sdist, tmp_path, SECONDS, folder / "wheels")]
    first = {path.name: path for path in built.values()}
    assert {path.name for path in again} == set(first)
    assert [path.name for path in again if path.read_bytes() != first[path.name].read_bytes()] == []


def test_the_rpm_package_holds_the_same_environment(built: Dict[str, Path], tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", str(built["ceph-tuner.deb"]), str(tmp_path / "deb")], check=True)
    root = ["--root", str(tmp_path / "rpm"), "--nodeps", "--noscripts"]
    subprocess.run(["rpm", *root, "-i", str(built["ceph-tuner.rpm"])], check=True)
    trees = [tmp_path / kind / "usr/lib/ceph-tuner" for kind in ("deb", "rpm")]
    files = [{str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()} for tree in trees]
    assert files[0] == files[1]
    for unit, expected in ((GUARDIAN, "guardian --cluster ceph"), (WORK, "$ARGUMENTS")):
        units = [(tmp_path / kind / unit).read_text("utf-8") for kind in ("deb", "rpm")]
        assert units[0] == units[1]
        assert re.findall(r"^ExecStart=/usr/bin/ceph-tuner (.*)$", units[0], re.MULTILINE) == [expected]
