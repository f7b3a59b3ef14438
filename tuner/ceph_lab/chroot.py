"""A Debian tree with Ceph in it, built once per release and kept under the user's cache directory.

Labs never change it: each has its own overlay above it (`namespace.py`), so that several share one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, List, Mapping, Tuple

from ceph_lab.debian_tree import BuildSteps, bootstrap, host_proxies, inside
from ceph_lab.mounts import remove_tree
from ceph_lab.places import cache_directory
from ceph_lab.processes import BUILD_MARK, host_environment, kill_all, run
from ceph_lab.state import locked
from ceph_tuner.core.ceph.interpreter import running_module
from ceph_tuner.core.errors import InputError, LabFailed, Locked, PermissionRefused

Report = Callable[[str], None]

MIRROR = ""
"""None named: the one that debootstrap takes by itself."""

_PACKAGES = (
    *("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-common", "ceph-mgr-modules-core", "ceph-mgr-dashboard"),
    *("libsqlite3-mod-ceph", "fio", "procps"),
    # what the tuner's plugin and its worker need
    *("python3-numpy", "python3-scikit-optimize", "python3-typer", "python3-rich", "python3-requests"),
    *("python3-ruamel.yaml", "python3-jsonschema"),
    # compiles the emulated drive against this tree's libc; a host needs no compiler
    *("gcc", "libc6-dev"),
)

_NEEDED = 4 << 30
"""Bytes on disk while a tree is built; a finished one takes about half."""

_APT = """\
// Debian's testing suite is sometimes published late, and a mirror's copy of its index may be past its date.
// The signatures are still checked: this only accepts an index that is signed and old.
Acquire::Check-Valid-Until "false";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "3";
"""


@dataclass(frozen=True)
class TreeRecipe:
    """How one release's tree is made. What changes here makes a new tree, beside the old one."""

    release: str
    suite: str
    bcrypt: str = ""
    """Version to put in the place of Debian's, where that does not work in ceph-mgr."""
    packages: Tuple[str, ...] = _PACKAGES
    mirror: str = MIRROR

    @property
    def name(self) -> str:
        """Directory name: the release and a digest of all that goes in, the mirror excepted."""
        content = json.dumps([self.suite, self.bcrypt and f"bcrypt {self.bcrypt}", self.packages, _APT, 1])
        return f"{self.release}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


_RECIPES = {
    "tentacle": TreeRecipe("tentacle", "forky"),
    # bcrypt 4 is built with PyO3, which refuses the sub-interpreters that ceph-mgr has before 20.2.2:
    # every module fails with "PyO3 modules do not yet support subinterpreters". 3.2.2 is the last one in C.
    "reef": TreeRecipe("reef", "trixie", bcrypt="3.2.2"),
}


def recipe_for(release: str, mirror: str = MIRROR) -> TreeRecipe:
    """The recipe of a release, with another mirror of Debian where one is given."""
    if mirror and not mirror.startswith(("http://", "https://", "file:///")):
        raise InputError("--mirror", repr(mirror), "the address of a Debian mirror (https://…/debian)")
    return replace(_RECIPES[release], mirror=mirror)


def chroots_directory() -> Path:
    """Where the trees are."""
    return cache_directory() / "chroots"


def check_host(os_release: Path = Path("/etc/os-release")) -> None:
    """Refuse early where a lab cannot work: only root on Debian, Ubuntu and what is made of them."""
    if os.geteuid() != 0:
        raise PermissionRefused("ceph-tuner lab", f"user id {os.geteuid()}", "root, for mounts and devices")
    try:
        lines = os_release.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    values = {key: value.strip("\"'") for key, sign, value in (line.partition("=") for line in lines) if sign}
    families = [values.get("ID", ""), *values.get("ID_LIKE", "").split()]
    if "debian" not in families:
        raise InputError("ceph-tuner lab", values.get("ID", "an unknown system"), "Debian or Ubuntu")


def ensure_chroot(recipe: TreeRecipe, marks: Mapping[str, str], report: Report) -> Path:
    """The finished tree's path; built now where it is not there yet. Two builds of the same wait for each other."""
    chroots = chroots_directory()
    tree = chroots / recipe.name
    if set(str(tree)) & set(":,\\"):
        # these separate the options of an overlay mount
        raise InputError("cache directory", str(chroots), "a path without colon, comma and backslash")
    if _complete(tree):
        return tree
    report(f"waiting for another build of {recipe.name}" if _busy(recipe) else f"building {recipe.name}")
    with locked(_lock(recipe), f"{tree} is being built by another command", wait=1800):
        if _complete(tree):
            return tree
        _discard(recipe)
        _build(recipe, tree, marks, report)
    return tree


def discard_unfinished(report: Report) -> None:
    """Clear away what a killed build left. A build that is running is left alone."""
    for recipe in _RECIPES.values():
        if _build_directory(recipe).exists() and not _busy(recipe):
            with locked(_lock(recipe), "a build has just begun"):
                report(f"discarding the unfinished {recipe.name}")
                _discard(recipe)


def _build_directory(recipe: TreeRecipe) -> Path:
    return chroots_directory() / f".{recipe.name}.unfinished"


def _lock(recipe: TreeRecipe) -> Path:
    return chroots_directory() / f".{recipe.name}.lock"


def _manifest(tree: Path) -> Path:
    return tree / "etc" / "ceph-tuner-chroot.json"


def _complete(tree: Path) -> bool:
    return _manifest(tree).is_file()


def _busy(recipe: TreeRecipe) -> bool:
    if not _lock(recipe).exists():
        return False
    try:
        with locked(_lock(recipe), "busy"):
            return False
    except Locked:
        return True


def _discard(recipe: TreeRecipe) -> None:
    directory = _build_directory(recipe)
    # whoever was killed may have left debootstrap or apt behind, still writing
    kill_all(directory, BUILD_MARK)
    remove_tree(directory)


def _build(recipe: TreeRecipe, final: Path, marks: Mapping[str, str], report: Report) -> None:
    began = time.monotonic()
    tree = _build_directory(recipe)
    free = shutil.disk_usage(chroots_directory()).free
    if free < _NEEDED:
        raise InputError(str(chroots_directory()), f"{free >> 30} GiB free", f"at least {_NEEDED >> 30} GiB")
    log = chroots_directory() / f"{recipe.name}.log"
    environment = host_environment({**marks, BUILD_MARK: str(tree)})
    step = BuildSteps(log, environment)
    try:
        report(f"{recipe.release}: Debian {recipe.suite} (about half a minute)")
        bootstrap(recipe.suite, tree, step, report, recipe.mirror)
        _configure(recipe, tree)
        report(f"{recipe.release}: Ceph's packages (one to two minutes)")
        install = f"apt-get update -q && apt-get install -y -q --no-install-recommends {' '.join(recipe.packages)}"
        step(inside(tree, f"{install} && apt-get clean && rm -rf /var/lib/apt/lists/*"))
        if recipe.bcrypt:
            _replace_bcrypt(recipe.bcrypt, tree, step)
        version = run(["chroot", str(tree), "ceph-osd", "--version"], environment=environment).strip()
        if recipe.release not in version.split():
            raise LabFailed(
                f"Debian {recipe.suite} has `{version}` by now, expected {recipe.release}",
                "name a --mirror that still has that one, or take the other release",
            )
        (tree / "lab").mkdir()
        (tree / "etc/ceph").mkdir(exist_ok=True)
        (tree / "etc/ceph/ceph.conf").symlink_to("/lab/ceph.conf")
        _manifest(tree).write_text(json.dumps({"ceph": version, "packages": recipe.packages}) + "\n", encoding="utf-8")
        os.rename(tree, final)
    except BaseException:
        _discard(recipe)
        raise
    report(f"{recipe.name} is built ({time.monotonic() - began:.0f} s)")


def _configure(recipe: TreeRecipe, tree: Path) -> None:
    (tree / "etc/apt/apt.conf.d/80ceph-tuner").write_text(_APT + host_proxies(), encoding="utf-8")
    if recipe.mirror:
        (tree / "etc/apt/sources.list").write_text(f"deb {recipe.mirror} {recipe.suite} main\n", encoding="utf-8")
    if recipe.mirror.startswith("https:"):
        # a mirror inside a company may be signed by an authority that only this machine knows
        authorities = Path("/etc/ssl/certs/ca-certificates.crt")
        shutil.copy(authorities, tree / "etc/ssl/ceph-tuner-host.crt")
        with (tree / "etc/apt/apt.conf.d/80ceph-tuner").open("a", encoding="utf-8") as file:
            file.write('Acquire::https::CAInfo "/etc/ssl/ceph-tuner-host.crt";\n')
    # a throwaway tree need not survive a power cut: several times faster
    (tree / "etc/dpkg/dpkg.cfg.d/ceph-tuner").write_text("force-unsafe-io\n", encoding="ascii")
    _executable(tree / "usr/sbin/policy-rc.d", "#!/bin/sh\n# no daemon is started by a package\nexit 101\n")
    _executable(tree / "usr/local/sbin/systemctl", "#!/bin/sh\n# ceph-mon's installation calls it\nexit 0\n")


def _executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="ascii")
    path.chmod(0o755)


def _replace_bcrypt(version: str, tree: Path, step: BuildSteps) -> None:
    """Put PyPI's build in the place of Debian's; fetched by the host's pip, with its configuration."""
    python = next((tree / "usr/lib").glob("python3.*")).name
    wheels = tree / "tmp/wheels"
    machine = os.uname().machine
    platforms = [f"--platform=manylinux{suffix}_{machine}" for suffix in ("_2_28", "_2_24", "_2_17", "2014")]
    options = ["--no-deps", "--only-binary=:all:", "--implementation=cp", "--abi=abi3", *platforms]
    options.append(f"--python-version={python[len('python') :]}")
    step([*_pip(), "download", *options, f"--dest={wheels}", f"bcrypt=={version}"])
    # not below /usr/local, which comes first for python3, but last in ceph-mgr
    target = tree / "usr/lib/python3/dist-packages"
    for debian in target.glob("bcrypt*"):
        shutil.rmtree(debian)
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    shutil.rmtree(wheels)


def _pip() -> List[str]:
    for python in (sys.executable, shutil.which("python3") or "python3"):
        pip = running_module(python, "pip")
        probe = subprocess.run([*pip, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if probe.returncode == 0:
            return pip
    raise InputError("ceph-tuner lab", "no pip for " + sys.executable, "pip (package python3-pip), to fetch bcrypt")
