"""Puts the ceph-mgr plugin in place and takes it out again.

A mgr scans its module path only when it starts. Enabling or disabling a module makes every mgr start anew by itself,
so that `mgr module enable --force` right after copying is all it takes: no daemon is stopped from outside. `--force`
is needed because the mgrs that run have not seen the module yet.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ceph_tuner import __version__
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.book.executor import BY as BY_BOOK
from ceph_tuner.core.boost.executor import BY as BY_BOOST
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.changes.journal import UNDONE, Entry, Journal
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
from ceph_tuner.core.goals.stored_slo import stored_calendar
from ceph_tuner.core.knobs.releases import parse_version
from ceph_tuner.shipped.plugin_files import (
    BUILD_FILE,
    LIBRARY,
    MODULE,
    build_of,
    package_of,
    put_in_place,
    sources,
)

OPTION_PREFIX = f"mgr/{MODULE}/"
WAIT_S = 90.0


@dataclass(frozen=True)
class Installed:
    """The plugin on this host: its files, and what the mgr that is active runs of them."""

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
        """As `mgr status --format json` has it."""
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
            running=self._loaded_version(),
            active=str(mgr_map["active_name"]),
            standbys=tuple(sorted(str(mgr["name"]) for mgr in mgr_map["standbys"])),
            ours=build_of(sources()),
        )

    def install(self, enable: bool = True) -> Installed:
        """Copy the files, and load them; what runs already is left alone. Raises TunerError."""
        files = sources()
        before = self.status()
        owner = package_of(self.path)
        if owner is None:
            self.copy(files)
        elif before.build != build_of(files):
            raise InputError(str(self.path / MODULE), f"files of the package {owner}", f"{owner} of this version")
        if not enable or (before.enabled and before.running == build_of(files)):
            return self.status()
        if before.enabled:
            # a module that is enabled is loaded anew only when the mgr starts, as it does on this
            self._mon("mgr module disable", {"module": MODULE})
        self._mon("mgr module enable", {"module": MODULE, "force": "--force"})
        self._await(build_of(files))
        return self.status()

    def left_to_an_older_one(self) -> List[str]:
        """What stands that the version which runs knows, where `install` puts an older one there that may not.

        To be asked before, in words; changes nothing. Empty where the version is no older one.
        """
        running = self._loaded_version()
        try:
            is_older = running is not None and parse_version(__version__) < parse_version(running)
        except InputError:
            return []
        if not is_older:
            return []
        older = f"{__version__} is older than {running}, which runs"
        lines = [
            f"{older}, and may not take back what stands: change {entry.number}, {what}. Install that again, and "
            f"`{command}` first"
            for entry, (what, command) in ((each, _standing(each)) for each in Journal(self._cluster.store).entries())
            if what
        ]
        if self._calendar_has_boosts():
            lines.append(
                f"{older}, and may not read the stored SLO: policies of its calendar have `boosts`. Install that again "
                "and set the SLO without them first by `ceph tuner slo set -i FILE --yes`"
            )
        return lines

    def _calendar_has_boosts(self) -> bool:
        """Whether a policy of the stored SLO says which boosts may run: others refuse all of it."""
        try:
            calendar = stored_calendar(self._cluster.store)
        except InputError:
            # it has to be set anew in any case
            return False
        return calendar is not None and any(policy.boosts is not None for policy in calendar.policies)

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
        """Put the files in place. Raises PermissionRefused, InputError."""
        put_in_place(self.path, files)

    def _refuse_standing(self) -> None:
        """A change that was begun is one to take back, whether its writer came to the end or not."""
        journal = Journal(self._cluster.store).read()
        journal.check_whole()
        in_force = [entry for entry in journal.entries if entry.state != UNDONE]
        if in_force:
            newest = in_force[-1]
            raise InputError(
                "--purge",
                f"change {newest.number} {'half done' if newest.unfinished else 'in force'}",
                "`ceph-tuner rollback` before its journal is removed",
            )

    def _take_out(self) -> List[str]:
        lines = []
        if MODULE in self._mon("mgr dump")["modules"]:
            self._mon("mgr module disable", {"module": MODULE})
            lines.append(f"module {MODULE} disabled")
        # those of a package go with it
        for name in (MODULE, LIBRARY) if package_of(self.path) is None else ():
            if (self.path / name).exists():
                self._remove(self.path / name)
                lines.append(str(self.path / name))
        for entry in self._cluster.config.dump():
            if entry.name.startswith(OPTION_PREFIX):
                self._cluster.config.remove(entry.who, entry.name)
                lines.append(f"{entry.who} {entry.name}")
        return lines

    def _purge(self, lock: Lock) -> List[str]:
        """Remove the store's keys, but no claim that lives: ours goes with the lock, others' are theirs."""
        keys = []
        lock.check()
        for key in self._cluster.store.keys(""):
            if not key.startswith(LOCK_PREFIX):
                self._cluster.store.remove(key)
                keys.append(f"{OPTION_PREFIX}{key}")
        lock.others()  # which removes the dead ones
        return keys

    def _remove(self, directory: Path) -> None:
        try:
            if directory.exists():
                shutil.rmtree(directory)
        except PermissionError as exc:
            raise PermissionRefused(str(directory), f"{exc.strerror}", "root") from exc

    def _await(self, build: str) -> None:
        deadline = self._clock.monotonic() + WAIT_S
        while self._loaded_version() != build:
            if self._clock.monotonic() >= deadline:
                raise ClusterTimeout(
                    f"the mgr does not answer `ceph tuner status` within {WAIT_S:g} s{self._complaint()}",
                    "see the log of the active mgr, then try again",
                )
            self._clock.sleep(1.0)

    def _loaded_version(self) -> Optional[str]:
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
        options = parsed(
            self._cluster.commander.mon("config get", {"who": "mgr", "key": "mgr_module_path"}), "config get"
        )
        path = Path(str(options))
        if not path.is_dir():
            raise InputError(
                "mgr_module_path", f"no directory {path} here", "to be run on each host that has a mgr, or --path"
            )
        return path

    def _mon(self, prefix: str, arguments: Optional[Dict[str, str]] = None) -> Any:
        answer = self._cluster.commander.mon(prefix, arguments or {})
        return parsed(answer, prefix) if answer.strip() else {}


def _standing(entry: Entry) -> Tuple[str, str]:
    """What a change is that a version of the plugin takes back by itself, and how to have it do so; empty for none."""
    if entry.state == UNDONE:
        return "", ""
    if entry.who.endswith(BY_BOOK):
        return "a page of the book", "ceph tuner book off"
    if entry.who.endswith(BY_BOOST):
        return "a boost", "ceph tuner boost cancel"
    return ("a trial", "ceph tuner auto off") if entry.trial else ("", "")
