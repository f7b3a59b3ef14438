"""Machines that nobody has used: fresh copies of a Debian with git, make and python3 alone.

A machine is a directory. What runs on it has mounts and process ids of its own, so it ends with its first process; the
kernel, the network, the loop devices and the cgroups are the host's. Packages come the way they come to the host:
apt's and pip's configuration is carried over.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from ceph_lab.debian_tree import BuildSteps, bootstrap
from ceph_lab.mounts import remove_tree
from ceph_lab.places import LabPlaces, cache_directory
from ceph_lab.processes import host_environment
from ceph_lab.state import lab_names, locked
from ceph_lab.teardown import clear

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("git", "make", "python3")

_ENTER = r"""
set -eu
root=$1; shift
# the root of a machine is mounted, and programs that make namespaces rely on it
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
printf '%s' "$carried" | while read -r path; do
    mount --bind "$path" "$root$path"
    mount -o remount,ro,bind "$root$path"
done
unset carried
cd "$root$folder"
unset folder
# not exec: whoever is process 1 has to wait for orphans, and not every program does
chroot "$root" sh -c 'cd "$0" && exec "$@"' "${PWD#"$root"}" "$@"
"""

_OWN = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}

_ENVIRONMENT = re.compile(r"PIP_.*|(?i:.*_proxy)|SSL_CERT_FILE|.*_CA_BUNDLE|OPENBLAS_.*|CI")
"""Of the host's variables, those that say how packages are reached and what the processor is."""


@dataclass(frozen=True)
class Machine:
    """One of them, for as long as its directory is there."""

    root: Path
    variables: Mapping[str, str]
    folders: Sequence[Path]
    """Of the host, seen at the same path, only to be read."""

    def start(self, words: Sequence[str], folder: str = "/root", **more: object) -> subprocess.Popen[str]:
        """Run a command as root on it. Whoever kills the process kills all that it started."""
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--"]
        return subprocess.Popen(
            [*namespaces, "sh", "-c", _ENTER, "sh", str(self.root), *words],
            stdin=subprocess.DEVNULL,
            text=True,
            env={**self.variables, **_OWN, "carried": "".join(f"{path}\n" for path in self.folders), "folder": folder},
            **more,  # type: ignore[call-overload]
        )

    def run(self, words: Sequence[str], log: Path, timeout: float, folder: str = "/root") -> int:
        """Exit code; what it says is added to the log."""
        with log.open("a", encoding="utf-8") as output:
            process = self.start(words, folder, stdout=output, stderr=output)
            try:
                return process.wait(timeout)
            finally:
                process.kill()
                process.wait()


@contextmanager
def machine(suite: str, *, carried: Sequence[Path] = ()) -> Iterator[Machine]:
    """A new machine with that suite of Debian; it is gone after the block, with the labs on it."""
    for left in _folder().glob(".machine-*"):
        # of a run that was killed
        if not Path(f"/proc/{left.name.split('-')[1]}").exists():
            _discard(left)
    root = _folder() / f".machine-{os.getpid()}-{suite}"
    try:
        subprocess.run(["cp", "--archive", "--reflink=auto", str(_tree(suite)), str(root)], check=True)
        variables, folders = _configure(root)
        yield Machine(root, variables, [*folders, *(_mount_point(root, path) for path in carried)])
    finally:
        _discard(root)


def _folder() -> Path:
    return cache_directory() / "pristine"


def _tree(suite: str) -> Path:
    """The tree that machines are copied from, made on first use."""
    tree = _folder() / "-".join([suite, *PACKAGES])
    with locked(_folder() / f".{suite}.lock", f"{tree} is being made by another process", wait=900):
        if not tree.exists():
            unfinished = tree.with_name(f".{suite}.unfinished")
            remove_tree(unfinished)
            step = BuildSteps(_folder() / f"{suite}.log", host_environment({}))
            bootstrap(suite, unfinished, step, lambda line: None, packages=PACKAGES)
            shutil.rmtree(unfinished / "var/cache/apt/archives", ignore_errors=True)
            (unfinished / "var/cache/apt/archives/partial").mkdir(parents=True)
            os.rename(unfinished, tree)
    return tree


def _discard(root: Path) -> None:
    labs = root / "var/lib/ceph-tuner/labs"
    for name in lab_names(labs):
        # its processes ended with the machine; its devices and cgroups are the host's
        clear(LabPlaces(name, labs), lambda line: None)
    remove_tree(root)


def _configure(root: Path) -> Tuple[Dict[str, str], List[Path]]:
    """Carry over how the host reaches packages: variables for its commands, and folders of the host to show it."""
    for name in ("hosts", "resolv.conf"):
        shutil.copy(Path("/etc") / name, root / "etc" / name)
    variables = {name: value for name, value in os.environ.items() if _ENVIRONMENT.fullmatch(name)}
    apt, pip = _apt_settings(), _pip_settings()
    folders = []
    for word in sorted(set(re.findall(r"(?:file://)?/[^\s\"';]+", "\n".join([apt, pip, *variables.values()])))):
        path = Path(word.replace("file://", "", 1))
        if path.is_file():
            # not at its own place, where a package of the machine may have one
            copy = Path("/etc/host") / path.relative_to("/")
            (root / copy.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / copy.relative_to("/"))
            apt, pip = (text.replace(word, str(copy)) for text in (apt, pip))
            variables = {name: value.replace(word, str(copy)) for name, value in variables.items()}
        elif path.is_dir():
            # the pages of an index in a directory point to its neighbours
            folders.append(_mount_point(root, path.parent if word != str(path) else path))
    (root / "etc/apt/apt.conf.d/80host").write_text(apt, encoding="utf-8")
    (root / "etc/pip.conf").write_text(pip, encoding="utf-8")
    return variables, folders


def _apt_settings() -> str:
    """How apt fetches; not which lists there are."""
    dump = subprocess.run(["apt-config", "dump"], stdout=subprocess.PIPE, text=True, check=True).stdout
    wanted = re.compile(r'Acquire::(?!IndexTargets|CompressionTypes|Changelogs)\S+ "[^"]')
    return "".join(f"{line}\n" for line in dump.splitlines() if wanted.match(line))


def _pip_settings() -> str:
    """What pip's files say, as one file."""
    sections: Dict[str, List[str]] = {}
    pip = subprocess.run([sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True)
    for line in pip.stdout.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.partition(".")
        if section != ":env:":
            sections.setdefault(section, []).append(f"{option} = {ast.literal_eval(value)}\n")
    return "".join(f"[{section}]\n{''.join(options)}" for section, options in sections.items())


def _mount_point(root: Path, folder: Path) -> Path:
    (root / folder.relative_to("/")).mkdir(parents=True, exist_ok=True)
    return folder
