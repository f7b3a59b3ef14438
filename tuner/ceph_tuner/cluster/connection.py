"""Opens a cluster by the name that the operator gives: a ceph.conf, this machine's own cluster, or one that runs here.

Clusters that run on this machine, such as labs, are opened by the packages that run them. These name their function as
an entry point of the group `ceph_tuner.cluster`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Callable, List, Optional, Protocol, Sequence, Union

from ceph_tuner.cluster.cephcli import CephCli, Launcher
from ceph_tuner.cluster.prefix_command import PrefixCommand, PrefixedCephCli
from ceph_tuner.cluster.session import NoLibradosError, Session
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore, osd_versions
from ceph_tuner.core.ceph.ports import Clock, Commander
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.changes.osd_poll import Progress, silent
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, PermissionRefused
from ceph_tuner.core.knobs.releases import Release, parse_version, release_of
from ceph_tuner.core.profiles.in_force import InForce, in_force, translated_for
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.profiles.translation import Translation
from ceph_tuner.twin.model import Device

SYSTEM_CONF = Path("/etc/ceph/ceph.conf")

RUN_HERE = "ceph_tuner.cluster"
"""Group of entry points; each is a function from a name to a `RunHere`, and raises ClusterNotFound."""


class RunHere(Protocol):
    """A cluster whose daemons run on this machine."""

    @property
    def mgr_modules(self) -> Path:
        """Where its mgrs look for modules, as this machine sees it."""

    def argv(self, command: Sequence[str]) -> List[str]:
        """Command line that runs a command where the cluster is, with its ceph.conf."""

    def drive(self, osd: int) -> Optional[Device]:
        """What an OSD's drive does, where that is no guess; None: nobody knows."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that answers, behind the ports."""

    name: str
    commander: Commander
    config: CommandConfig
    store: CommandStore
    release: Release
    """Of the OSDs; the oldest where they differ, since only its knobs work everywhere."""
    version: str
    run_here: Optional[RunHere] = None
    """What runs it, where that is a program of this machine."""
    clock: Clock = field(default_factory=SystemClock)
    """The cluster's time: a twin has its own."""
    progress: Progress = silent
    """Told of what takes long on many OSDs."""

    @classmethod
    def of(cls, name: str, commander: Commander, release: Release, version: str, **rest: Any) -> Cluster:
        """Everything that follows from a commander."""
        return cls(name, commander, CommandConfig(commander), CommandStore(commander), release, version, **rest)

    @property
    def entity(self) -> str:
        """Whose key is used; empty where that is not known."""
        return str(getattr(self.commander, "entity", ""))

    def lock(self, who: str = "") -> Lock:
        """One tuner at a time: hold it around whatever must not be mixed with another's writes."""
        return Lock(self.store, self.clock, this_process(who, self.entity), may_live)

    def applier(self, lock: Optional[Lock] = None, who: str = "") -> Applier:
        """What writes settings and takes them back."""
        tuner_lock = lock or self.lock(who)
        name = this_process(who, self.entity).name
        return Applier(self.config, self.store, self.clock, tuner_lock, self.release, name, progress=self.progress)

    def in_force(self, target: str, name: str = "in-force") -> InForce:
        """What a target's running OSDs have. Raises InputError where there are none, or they do not agree."""
        return in_force(self.commander, self.config, self.release, self.version, target, name)

    def translated(self, profile: Profile, target: str) -> Translation:
        """Give a profile's settings for a target's OSDs. Raises InputError where it cannot be translated."""
        return translated_for(profile, target, self.commander, self.config, self.release, self.version)

    def close(self) -> None:
        """End the connection."""
        # one that runs a program for each command has nothing to end
        getattr(self.commander, "close", lambda: None)()


def open_cluster(name: str, timeout: float = 30.0, prefix: Optional[PrefixCommand] = None) -> Cluster:
    """Open a cluster by the path of its ceph.conf, `ceph` for /etc/ceph/ceph.conf, or one that runs here by its name.

    With a prefix command the `ceph` program runs behind it; its ceph.conf, if any, is over there.
    Raises ClusterNotFound (nothing there, or nothing answers there), PermissionRefused.
    """
    if prefix is not None:
        return _opened_with(name, PrefixedCephCli(prefix, timeout))
    if name == "ceph":
        return connect(name, list, _readable(SYSTEM_CONF), timeout)
    if "/" in name or name.endswith(".conf"):
        return connect(name, list, _readable(Path(name)), timeout)
    run_here = _run_here(name)
    return connect(name, run_here.argv, "", timeout, run_here)


def connect(
    name: str, launch: Launcher = list, conf: str = "", timeout: float = 30.0, run_here: Optional[RunHere] = None
) -> Cluster:
    """Connect to the cluster of a ceph.conf; without one, to that which `launch` provides for."""
    try:
        commander = _commander(launch, conf, timeout)
    except ClusterTimeout as exc:
        raise _silent(name) from exc
    return _opened_with(name, commander, run_here)


def _opened_with(name: str, commander: Commander, run_here: Optional[RunHere] = None) -> Cluster:
    try:
        version = min(osd_versions(commander), key=parse_version)
    except ClusterTimeout as exc:
        raise _silent(name, str(exc) if isinstance(commander, PrefixedCephCli) else "") from exc
    return Cluster.of(name, commander, release_of(version), version, run_here=run_here)


def _silent(name: str, why: str = "") -> ClusterNotFound:
    return ClusterNotFound(f"cluster {name}", why or "no answer from its monitors", "a running cluster")


def _run_here(name: str) -> RunHere:
    """The cluster of that name. Raises ClusterNotFound as the last of those who run clusters says it."""
    refusal = ClusterNotFound(f"cluster {name}", "nothing that runs clusters here", "`ceph` or the path of a ceph.conf")
    points: Any = entry_points()
    # a plain mapping on Python 3.9
    runners = points.select(group=RUN_HERE) if hasattr(points, "select") else points.get(RUN_HERE, [])
    for point in runners:
        run_here = _run_here_or_fault(point.load(), name)
        if not isinstance(run_here, ClusterNotFound):
            return run_here
        refusal = run_here
    raise refusal


def _run_here_or_fault(runner: Callable[[str], RunHere], name: str) -> Union[RunHere, ClusterNotFound]:
    try:
        return runner(name)
    except ClusterNotFound as exc:
        return exc


def _commander(launch: Launcher, conf: str, timeout: float) -> Union[CephCli, Session]:
    try:
        return Session(launch, conf, timeout)
    except NoLibradosError:

        def with_conf(command: Sequence[str]) -> List[str]:
            return launch([command[0], *(["--conf", conf] if conf else []), *command[1:]])

        return CephCli(with_conf, timeout)


def _readable(path: Path) -> str:
    if not path.is_file():
        raise ClusterNotFound(
            "cluster", f"no file {path}", "the name of a lab, `ceph` for /etc/ceph/ceph.conf, or a path of a ceph.conf"
        )
    if not os.access(path, os.R_OK):
        raise PermissionRefused(f"cluster {path}", "an unreadable file", "read permission (run as root?)")
    return str(path.resolve())
