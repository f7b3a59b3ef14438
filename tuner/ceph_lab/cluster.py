"""A running lab, as the rest of the program sees it."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ContextManager, Dict, List, Mapping, Optional, Sequence

from ceph_lab import namespace
from ceph_lab.configuration import MGR_IDS, MON_IDS
from ceph_lab.drives import Flash, preload
from ceph_lab.flash_device import flash_device
from ceph_lab.places import LABS, LabPlaces
from ceph_lab.processes import MARK, ProcessId, command_line, host_environment, kill, marked, run, wait_gone
from ceph_lab.state import UP, LabState, lab_names, read_state
from ceph_lab.supervision import supervised, supervises
from ceph_lab.throttle import host_throttle
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, CommandFailed, LabFailed, PermissionRefused
from ceph_tuner.twin.model import Device

_COMMANDS = """
import json, sys, rados
cluster = rados.Rados(conffile="/lab/ceph.conf", name="client.admin")
cluster.connect(timeout=30)
answers = []
for command in json.load(sys.stdin):
    code, output, words = cluster.mon_command(json.dumps(command), b"")
    answers.append([code, output.decode(errors="replace"), words])
    if code < 0:
        break
json.dump(answers, sys.stdout)
cluster.shutdown()
"""


@dataclass(frozen=True)
class Lab:
    """A throwaway cluster on this machine. Its daemons live in a namespace of their own; `argv` leads into it."""

    places: LabPlaces
    state: LabState

    @staticmethod
    def open(name: str, labs: Path = LABS) -> Lab:
        """The running lab of that name. Raises ClusterNotFound."""
        places = LabPlaces(name, labs)
        state = read_state(places)
        if state is None or state.phase != UP:
            names = ", ".join(lab_names(labs)) or "none"
            raise ClusterNotFound(f"lab {name}", "no running lab", f"one of this machine's labs ({names})")
        if os.geteuid() != 0:
            raise PermissionRefused(f"lab {name}", f"user id {os.geteuid()}", "root, to enter its namespace")
        lab = Lab(places, state)
        if not lab.alive:
            raise ClusterNotFound(f"lab {name}", "only the remains of a lab", "`ceph-tuner lab up` to be run again")
        return lab

    @property
    def name(self) -> str:
        """As given to `--name`."""
        return self.state.name

    @property
    def release(self) -> str:
        """`tentacle` or `reef`."""
        return self.state.options.release

    @property
    def osds(self) -> List[int]:
        """Ids of all OSDs, running or not."""
        return list(range(self.state.options.osds))

    @property
    def classes(self) -> Dict[str, List[int]]:
        """Device class -> ids of its OSDs."""
        return self.state.options.classes

    @property
    def mons(self) -> List[str]:
        """Ids of all monitors, running or not."""
        return list(MON_IDS[: self.state.options.mons])

    @property
    def mgrs(self) -> List[str]:
        """Ids of all mgr daemons, running or not."""
        return list(MGR_IDS[: self.state.options.mgrs])

    @property
    def daemon_names(self) -> List[str]:
        """All daemons, running or not: `mon.a`, `mgr.x`, `osd.0`."""
        kinds = {"mon": self.mons, "mgr": self.mgrs, "osd": map(str, self.osds)}
        return [f"{kind}.{identity}" for kind, identities in kinds.items() for identity in identities]

    @property
    def conf(self) -> str:
        """Path of ceph.conf inside the lab."""
        return namespace.CONF

    @property
    def mgr_modules(self) -> Path:
        """The host's path of the directory that the mgr loads modules from."""
        return self.places.shared / "mgr-modules"

    def drive(self, osd: int) -> Optional[Device]:
        """What an OSD's drive does. None of a hard disk, whose ways depend on how full it is, and of a loop device."""
        drive = self.state.options.drive_of(osd)
        return flash_device(drive.data) if drive is not None and isinstance(drive.data, Flash) else None

    @property
    def alive(self) -> bool:
        """Whether the lab's namespace is there."""
        return self.state.keeper is not None and namespace.alive(self.state.keeper, self.places)

    def host_path(self, inside: str) -> Path:
        """The host's path of a path inside the lab; good for as long as the lab runs."""
        path = Path(inside)
        if not path.is_absolute():
            raise ValueError(f"path inside a lab (={inside}) must be absolute")
        if Path("/lab") in (path, *path.parents):
            return self.places.shared / path.relative_to("/lab")
        return Path(f"/proc/{self._keeper.pid}/root") / path.relative_to("/")

    def argv(self, command: Sequence[str]) -> List[str]:
        """Host command line that runs a command inside the lab, with the lab's ceph.conf.

        The process that it starts becomes the command itself, so a signal to it reaches the command.
        """
        return namespace.enter(self._keeper, self.places, command)

    def run(self, command: Sequence[str], payload: Optional[str] = None, timeout: float = 60) -> str:
        """Standard output of a command inside the lab. Raises CommandFailed, ClusterTimeout."""
        return run(
            self.argv(command), environment=self.environment, payload=payload, timeout=timeout, title=list(command)
        )

    def json(self, command: Sequence[str]) -> Any:
        """What a `ceph` command answers with `--format json`."""
        return json.loads(self.run([*command, "--format", "json"]))

    def mon_commands(self, commands: Sequence[Mapping[str, Any]]) -> List[str]:
        """Answers of monitor commands sent over one connection: much cheaper than a `ceph` for each.

        Raises CommandFailed at the first one that is refused; those before it are done.
        """
        request = json.dumps(list(commands))
        answers = json.loads(self.run(["python3", "-c", _COMMANDS], request, timeout=60 + len(commands)))
        code, _, words = answers[-1] if answers else (0, "", "")
        if code < 0:
            raise CommandFailed(str(commands[len(answers) - 1]["prefix"]), code, words)
        return [output for _, output, _ in answers]

    @property
    def environment(self) -> Dict[str, str]:
        """For processes on the host that work for this lab, so that `down` finds them."""
        return host_environment({MARK: str(self.places.directory)})

    def daemon_pid(self, daemon: str) -> Optional[int]:
        """Process id of `osd.0`, `mon.a` or `mgr.x`; None where it does not run."""
        return self.daemons().get(daemon)

    def daemons(self) -> Dict[str, int]:
        """Daemon name to process id, of those that run."""
        states = {}
        for pid in marked(self.places.directory):
            words = command_line(pid)
            program = Path(words[0]).name if words else ""
            if program in ("ceph-mon", "ceph-mgr", "ceph-osd") and "--mkfs" not in words and "-i" in words:
                states[f"{program[len('ceph-') :]}.{words[words.index('-i') + 1]}"] = pid
        return states

    def in_haste(self) -> ContextManager[None]:
        """Meanwhile emulated drives take no time: for what is written only to be there."""
        return preload.in_haste(self.places)

    def stop_osd(self, osd: int, wait: float = 30) -> None:
        """Stop an OSD and wait until the monitors call it down. Stopping one that does not run is no error."""
        self._check_osd(osd)
        self.stop_daemon(f"osd.{osd}", wait)
        self.wait_osd(osd, up=False)

    def start_osd(self, osd: int) -> None:
        """Start an OSD under its device's limits and wait until it is up. Starting a running one is no error."""
        self._check_osd(osd)
        self.start_daemon(f"osd.{osd}")
        self.wait_osd(osd, up=True)

    def stop_daemon(self, daemon: str, wait: float = 30) -> None:
        """End a daemon, by force where it does not end in time."""
        self._end_supervision(daemon)
        pid = self.daemon_pid(daemon)
        if pid is None:
            return
        kill(pid, self.places.directory, signal.SIGTERM)
        if not wait_gone(pid, wait):
            kill(pid, self.places.directory, signal.SIGKILL)
            if not wait_gone(pid, wait):
                raise LabFailed(f"{daemon} of lab {self.name} (process {pid}) does not end")

    def start_daemon(self, daemon: str) -> None:
        """Start a daemon that does not run; an OSD on its emulated drive, or inside its cgroup.

        The drive takes no time until the OSD is there. Since 20.2 it reads the head of each record of RocksDB's log by
        itself, which in slow motion takes minutes where a real drive needs a second.
        """
        if self.daemon_pid(daemon) is not None:
            return
        # a supervisor may be about to start the daemon itself, or just have done so
        self._end_supervision(daemon)
        if self.daemon_pid(daemon) is not None:
            return
        kind, _, identity = daemon.partition(".")
        argv = self.argv(["env", *preload.environment(self.places, daemon), f"ceph-{kind}", "-i", identity])
        if kind == "osd" and self.state.options.throttled:
            members = host_throttle().members(self.name, int(identity))
            argv = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(members), *argv]
        argv = supervised(daemon, self.places.shared / "log" / "supervision.log", argv)
        try:
            with preload.in_haste(self.places, daemon):
                run(argv, environment=self.environment, timeout=120, title=[f"ceph-{kind}", "-i", identity])
        except (CommandFailed, ClusterTimeout) as error:
            raise LabFailed(f"{daemon} of lab {self.name} does not start: {error}{self._log_end(daemon)}") from error

    def wait_osd(self, osd: int, up: bool, seconds: float = 90) -> None:
        """Wait until the monitors see an OSD up or down."""
        self.wait_osds([osd], up, seconds)

    def wait_osds(self, osds: Sequence[int], up: bool, seconds: float = 90) -> None:
        """Wait until the monitors see all of these OSDs up, or all of them down."""
        deadline = time.monotonic() + seconds
        while True:
            (answer,) = self.mon_commands([{"prefix": "osd dump", "format": "json"}])
            osds_so_far = {entry["osd"] for entry in json.loads(answer)["osds"] if bool(entry["up"]) == up}
            rest = [osd for osd in osds if osd not in osds_so_far]
            if not rest:
                return
            if time.monotonic() > deadline:
                names = ", ".join(f"osd.{osd}" for osd in rest)
                words = self._log_end(f"osd.{rest[0]}") if up else ""
                raise LabFailed(f"{names} of lab {self.name} not {'up' if up else 'down'} in {seconds:.0f} s{words}")
            time.sleep(0.2)

    def _end_supervision(self, daemon: str) -> None:
        for pid in marked(self.places.directory):
            if supervises(command_line(pid), daemon) and kill(pid, self.places.directory, signal.SIGKILL):
                wait_gone(pid, 10)

    @property
    def _keeper(self) -> ProcessId:
        if self.state.keeper is None:
            raise LabFailed(f"lab {self.name} has no namespace yet")
        return self.state.keeper

    def _check_osd(self, osd: int) -> None:
        if osd not in self.osds:
            raise ClusterNotFound(f"lab {self.name}", f"no osd.{osd}", f"osd.0 to osd.{self.osds[-1]}")

    def _log_end(self, daemon: str) -> str:
        log = self.places.shared / "log" / f"{daemon}.log"
        try:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        errors = [line for line in lines if " -1 " in line][-2:]
        return f" ({log}: {' / '.join(errors)})" if errors else ""


def lab_of(cluster: Cluster) -> Optional[Lab]:
    """The lab that an open cluster is; None where it is none."""
    return cluster.run_here if isinstance(cluster.run_here, Lab) else None
