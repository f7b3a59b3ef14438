"""Programs out of Debian's packages, for the tests alone.

Either unpacked into the cache and not installed, with apt's lists in a folder of their own, so that the machine's own
are left as they are and root is not needed; or installed, where a program needs half of Debian with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Sequence

import pytest

from ceph_lab.host_packages import ensure_packages
from ceph_lab.places import cache_directory
from ceph_lab.state import locked
from ceph_tuner.core.errors import TunerError


def on_debian_as_root() -> bool:
    """Where the tests install what they need, and so have no reason to leave any out."""
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and _system() == "debian"


def _system() -> str:
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        if line.startswith("ID="):
            return line[len("ID=") :].strip("\"'")
    return ""


def install(packages: Sequence[str]) -> None:
    """Install them; skips the test on a machine where we cannot."""
    if not on_debian_as_root():
        pytest.skip(f"not installed here, and only installed by itself on Debian as root: {' '.join(packages)}")
    ensure_packages(packages, print)


def unpacked(packages: Sequence[str], suite: str = "") -> Path:
    """The directory that they are unpacked in; of this machine's suite of Debian, or of another one."""
    if not shutil.which("apt-get"):
        pytest.skip(f"no apt here: Debian's package {packages[0]} cannot be fetched")
    cache = cache_directory() / packages[0]
    tree = cache / "package"
    cache.mkdir(parents=True, exist_ok=True)
    # tests run in several processes
    with locked(cache / ".lock", f"{cache} is being filled by another process", wait=300):
        if not tree.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                _fetch(packages, suite, Path(scratch))
                os.rename(Path(scratch) / "package", tree)
    return tree


def source(package: str, suite: str, folder: Path) -> Path:
    """The original archive of a source package, in that folder; apt checks its signature."""
    if not shutil.which("apt-get"):
        pytest.skip(f"no apt here: Debian's source {package} cannot be fetched")
    _apt(suite, folder, ["source", "--download-only", package], "deb-src")
    return next(folder.glob(f"{package}_*.orig.tar.gz"))


def _fetch(packages: Sequence[str], suite: str, scratch: Path) -> None:
    _apt(suite, scratch, ["download", *packages])
    for package in scratch.glob("*.deb"):
        _run(["dpkg-deb", "-x", str(package), "package"], scratch)


def _apt(suite: str, scratch: Path, action: Sequence[str], kind: str = "deb") -> None:
    for folder in ("lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    settings = {
        "Dir::State::lists": scratch / "lists",
        "Dir::Cache": scratch / "cache",
        "Acquire::Languages": "none",
        "Acquire::Retries": 3,
        # a mirror's copy of the index may be past its date; the signatures are checked all the same
        "Acquire::Check-Valid-Until": "false",
        # apt's own user cannot write here
        "APT::Sandbox::User": "root",
    }
    if suite:
        keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
        targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main"]
        mirror = _run(targets, scratch).split()[0]
        (scratch / "sources.list").write_text(f"{kind} [signed-by={keys}] {mirror} {suite} main\n", encoding="utf-8")
        settings = {**settings, "Dir::Etc::sourcelist": scratch / "sources.list", "Dir::Etc::sourceparts": "-"}
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    _run(["apt-get", "-q", *options, "update"], scratch)
    _run(["apt-get", "-q", *options, *action], scratch)


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    words = f"{done.stdout[-500:]}{done.stderr[-500:]}"
    if done.returncode:
        raise TunerError(f"`{' '.join(command[:1])}` failed with {done.returncode}: {words}")
    return done.stdout
