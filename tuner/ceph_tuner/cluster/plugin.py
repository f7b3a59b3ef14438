"""Puts the ceph-mgr plugin in place and takes it out again.

A mgr scans its module path only when it starts. Enabling or disabling a module makes every mgr start anew by itself,
so that `mgr module enable --force` right after copying is all it takes: no daemon is stopped from outside. `--force`
is needed because the mgrs that run have not seen the module yet.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

import ceph_tuner
from ceph_tuner.cluster.opening import Cluster
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.changes.journal import UNDONE, Journal
from ceph_tuner.core.changes.lock import PREFIX as LOCK_PREFIX
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import (
    ClusterTimeout,
    CommandFailed,
    InputError,
    PermissionRefused,
    RetryLater,
    TunerError,
)

MODULE = "tuner"
LIBRARY = "ceph_tuner"
OPTION_PREFIX = f"mgr/{MODULE}/"
BUILD_FILE = "build.txt"
WAIT_S = 90.0

_ROOT_OF_LIBRARY = Path(ceph_tuner.__file__).resolve().parent
_PARTS = ("core", "search", "optimise")
"""What of the library is installed beside the plugin: it runs the first, and the optimiser's worker the others, in a
Python of its own."""


@dataclass(frozen=True)
class Installed:
    """What is there."""

    path: Path
    build: Optional[str]
    """Build of the files; None where there are none."""
    enabled: bool
    running: Optional[str]
    """Build that the active mgr runs; None where it does not answer."""
    active: str
    standbys: Tuple[str, ...]
    ours: str
    """Build that `install` would put there."""

    def to_dict(self) -> Dict[str, Any]:
        """For programs."""
        return {
            "path": str(self.path),
            "build": self.build,
            "current": self.build == self.ours,
            "enabled": self.enabled,
            "running": self.running,
            "active": self.active,
            "standbys": list(self.standbys),
        }


class Plugin:
    """The plugin of one cluster. `path` is the module path of its mgrs, as seen from here."""

    def __init__(self, cluster: Cluster, clock: Clock, path: Optional[Path] = None) -> None:
        self._cluster, self._clock = cluster, clock
        self.path = path or self._module_path()

    def status(self) -> Installed:
        """Look, and change nothing."""
        mgr_map = self._mon("mgr dump")
        build = self.path / MODULE / BUILD_FILE
        return Installed(
            path=self.path,
            build=build.read_text().strip() if build.is_file() else None,
            enabled=MODULE in mgr_map["modules"],
            running=self._running(),
            active=str(mgr_map["active_name"]),
            standbys=tuple(sorted(str(mgr["name"]) for mgr in mgr_map["standbys"])),
            ours=build_of(sources()),
        )

    def install(self, enable: bool = True) -> Installed:
        """Copy the files, and load them; what runs already is left alone. Raises TunerError."""
        files = sources()
        before = self.status()
        self.copy(files)
        if not enable or (before.enabled and before.running == build_of(files)):
            return self.status()
        if before.enabled:
            # a module that is enabled is loaded anew only when the mgr starts, as it does on this
            self._mon("mgr module disable", {"module": MODULE})
        self._mon("mgr module enable", {"module": MODULE, "force": "--force"})
        self._await(build_of(files))
        return self.status()

    def uninstall(self, purge: bool = False) -> List[str]:
        """Take everything out; the store's keys (SLO, journal, history, profiles) only with `purge`.

        Returns what was removed. Raises InputError where purging would lose the way back of a change, Locked where a
        tuner is at work; both before anything is touched.
        """
        if not purge:
            return self._take_out()
        # held from the look until the end: no change begins meanwhile, least of all in the mgr that is still there
        with self._cluster.lock() as lock:
            self._refuse_standing()
            return [*self._take_out(), *self._purge(lock)]

    def copy(self, files: Dict[str, str]) -> None:
        """Put the files in place, so that nothing of another version stays. Raises PermissionRefused, InputError.

        Directories that are there stay the same ones: a container into which one is mounted goes on seeing it when it
        is removed, and never the one that takes its name. All is written beside them before the first file is replaced;
        `module.py`, by which a mgr knows a module, comes after what it imports, and the build last of all.
        """
        for directory in (self.path / LIBRARY, self.path / MODULE):
            if directory.is_symlink():
                raise InputError(str(directory), "a symbolic link", "a directory, or nothing")
        fresh, build = self.path / f".{MODULE}.new", f"{MODULE}/{BUILD_FILE}"
        in_order = sorted(files, key=lambda inside: (inside.startswith(f"{MODULE}/"), inside == f"{MODULE}/module.py"))
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            for inside, text in {**files, build: build_of(files) + "\n"}.items():
                (fresh / inside).parent.mkdir(parents=True, exist_ok=True)
                (fresh / inside).write_text(text, encoding="utf-8")
                (fresh / inside).chmod(0o644)
            (self.path / build).unlink(missing_ok=True)
            for directory in sorted({(self.path / inside).parent for inside in files}):
                directory.mkdir(parents=True, exist_ok=True)
                directory.chmod(0o755)
            for inside in in_order:
                os.replace(fresh / inside, self.path / inside)
            for name in (LIBRARY, MODULE):
                _prune(self.path / name, {self.path / inside for inside in files})
            os.replace(fresh / build, self.path / build)
        except PermissionError as exc:
            raise PermissionRefused(
                str(self.path), f"{exc.strerror}", "root, or --path of a directory to write"
            ) from exc
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _refuse_standing(self) -> None:
        """A change that was begun is one to take back, whether its writer came to the end or not."""
        journal = Journal(self._cluster.store).read()
        journal.check_whole()
        standing = [entry for entry in journal.entries if entry.state != UNDONE]
        if standing:
            newest = standing[-1]
            raise InputError(
                "--purge",
                f"change {newest.number} {'half done' if newest.unfinished else 'in force'}",
                "`ceph-tuner rollback` before its journal is removed",
            )

    def _take_out(self) -> List[str]:
        removed = []
        if MODULE in self._mon("mgr dump")["modules"]:
            self._mon("mgr module disable", {"module": MODULE})
            removed.append(f"module {MODULE} disabled")
        for name in (MODULE, LIBRARY):
            if (self.path / name).exists():
                self._remove(self.path / name)
                removed.append(str(self.path / name))
        for entry in self._cluster.config.dump():
            if entry.name.startswith(OPTION_PREFIX):
                self._cluster.config.remove(entry.who, entry.name)
                removed.append(f"{entry.who} {entry.name}")
        return removed

    def _purge(self, lock: Lock) -> List[str]:
        """Remove the store's keys, but no claim that lives: ours goes with the lock, others' are theirs."""
        removed = []
        lock.check()
        for key in self._cluster.store.keys(""):
            if not key.startswith(LOCK_PREFIX):
                self._cluster.store.remove(key)
                removed.append(f"{OPTION_PREFIX}{key}")
        lock.others()  # which removes the dead ones
        return removed

    def _remove(self, directory: Path) -> None:
        try:
            if directory.exists():
                shutil.rmtree(directory)
        except PermissionError as exc:
            raise PermissionRefused(str(directory), f"{exc.strerror}", "root") from exc

    def _await(self, build: str) -> None:
        deadline = self._clock.monotonic() + WAIT_S
        while self._running() != build:
            if self._clock.monotonic() >= deadline:
                raise ClusterTimeout(
                    f"the mgr does not answer `ceph tuner status` within {WAIT_S:g} s{self._complaint()}",
                    "see the log of the active mgr, then try again",
                )
            self._clock.sleep(1.0)

    def _running(self) -> Optional[str]:
        try:
            return str(self._mon("tuner status")["build"])
        except (CommandFailed, RetryLater, KeyError, TypeError):
            return None

    def _complaint(self) -> str:
        """What the mgr says of the module, if it could not load it."""
        try:
            checks = self._mon("health", {"detail": "detail"})["checks"]
        except TunerError:
            return ""
        lines = [
            detail["message"]
            for name, check in checks.items()
            if name.startswith("MGR_MODULE")
            for detail in check["detail"]
            if f"'{MODULE}'" in detail["message"]
        ]
        return f": {lines[0]}" if lines else ""

    def _module_path(self) -> Path:
        if self._cluster.run_here is not None:
            return self._cluster.run_here.mgr_modules
        shown = parsed(
            self._cluster.commander.mon("config get", {"who": "mgr", "key": "mgr_module_path"}), "config get"
        )
        path = Path(str(shown))
        if not path.is_dir():
            raise InputError(
                "mgr_module_path", f"no directory {path} here", "to be run on each host that has a mgr, or --path"
            )
        return path

    def _mon(self, prefix: str, arguments: Optional[Dict[str, str]] = None) -> Any:
        answer = self._cluster.commander.mon(prefix, arguments or {})
        return parsed(answer, prefix) if answer.strip() else {}


def _prune(directory: Path, kept: Set[Path]) -> None:
    """Remove every other file below it, and the directories that this empties."""
    for path in sorted(directory.rglob("*"), reverse=True):  # what is inside of a directory before it
        if path.is_symlink() or not path.is_dir():
            if path not in kept:
                path.unlink(missing_ok=True)
        elif not any(path.iterdir()):
            path.rmdir()


def sources() -> Dict[str, str]:
    """The files to install: path below the module path -> text. Raises InputError where this program has no plugin."""
    places = (
        _ROOT_OF_LIBRARY.parent.parent / "mgr_module" / MODULE,
        Path(sys.prefix) / "share" / "ceph-tuner" / "mgr" / MODULE,
    )
    plugin = next((place for place in places if (place / "module.py").is_file()), None)
    if plugin is None:
        raise InputError("plugin", f"no module.py in {' or '.join(map(str, places))}", "a whole installation")
    paths = {f"{MODULE}/{path.name}": path for path in sorted(plugin.glob("*.py"))}
    library = [
        _ROOT_OF_LIBRARY / "__init__.py",
        *(path for part in _PARTS for path in (_ROOT_OF_LIBRARY / part).rglob("*.py")),
    ]
    paths.update({f"{LIBRARY}/{path.relative_to(_ROOT_OF_LIBRARY)}": path for path in sorted(library)})
    return {inside: path.read_text(encoding="utf-8") for inside, path in paths.items()}


def build_of(files: Dict[str, str]) -> str:
    """Version and a hash of the files, to tell what runs from what is installed."""
    digest = hashlib.sha256()
    for inside, text in sorted(files.items()):
        digest.update(f"{inside}\0{text}\0".encode())
    return f"{ceph_tuner.__version__}+{digest.hexdigest()[:12]}"
