"""Takes a trial back when the mgr that made it is gone: killed, or told to unload the plugin.

On `ceph mgr module disable` the mgr executes itself anew without a word to its modules. So while something is on trial
the plugin keeps this process, which waits at the other end of a pipe: `{...}` in the first line says how to reach the
cluster, each further line is a sign of life, `done` sends it away. When the pipe ends, or is silent for too long,
nobody watches the trial any more. Standard library and python3-rados, on Python 3.9.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import time
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore, answered, osd_versions
from ceph_tuner.core.ceph.ports import Clock, Commander, Store, Told
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.ceph.tell_each import by_threads
from ceph_tuner.core.changes.applier import Applier, Undone
from ceph_tuner.core.changes.lock import Lock, claims, generation_of
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.core.printable import one_line

COMMAND_S = 10
"""Time limit of one command."""

ON_ITS_WAY_S = 1.0
"""What the mgr had sent when it died reaches the monitors before we look."""

ATTEMPTS_S = 300.0
"""How long it tries where the cluster does not answer. Whoever writes next takes the trial back then."""

LOOK_S = 30.0
"""How often it looks whether the mgr's process is there, beside the pipe."""

AT_ONCE = 64
"""OSDs that are asked at a time."""
DONE = "done"


class NoRadosError(Exception):
    """This Python has no python3-rados, or it cannot connect."""


class RadosCommander:
    """`ports.Commander` by librados in this process. `access` is as `tuner/guardian.py` of the plugin gives it."""

    def __init__(self, access: Mapping[str, str]) -> None:
        """Raises NoLibradosError."""
        try:
            import rados
        except ImportError as error:
            raise NoRadosError(str(error)) from error
        conf = access.get("conf", "")
        options = {name: access[name] for name in ("mon_host", "keyring", "keyfile", "key") if access.get(name)}
        # the mgr's own: what ceph.conf says of them by name must not be taken from its successor
        options.update(admin_socket="", log_file="")
        for name in ("rados_mon_op_timeout", "rados_osd_op_timeout", "client_mount_timeout"):
            options[name] = str(COMMAND_S)
        try:
            readable = conf if os.access(conf, os.R_OK) else None
            self._cluster: Any = rados.Rados(name=access["name"], conffile=readable, conf=options)
            self._cluster.connect(timeout=COMMAND_S)
        except rados.Error as error:
            raise NoRadosError(f"{access['name']}: {error}") from error

    def mon(self, prefix: str, arguments: Mapping[str, Any], payload: str = "") -> str:
        """Answer of a monitor command. Raises CommandFailed, ClusterTimeout, PermissionRefused."""
        command = json.dumps({"prefix": prefix, **arguments, "format": "json"})
        return _answer(prefix, self._cluster.mon_command, command, payload.encode())

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of an OSD's command. Raises as `mon` does."""
        command = json.dumps({"prefix": prefix, **arguments, "format": "json"})
        osd = int(daemon.partition(".")[2])
        return _answer(f"tell {daemon} {prefix}", self._cluster.osd_command, osd, command, b"")

    def tell_each(
        self,
        daemons: Iterable[str],
        prefix: str,
        arguments: Mapping[str, str],
        within: float,
        keep: Collection[str] = (),
    ) -> Iterator[Tuple[str, Told]]:
        """As `ports.ManyCommander` says; the time limit is the connection's."""
        return by_threads(lambda daemon: self.tell(daemon, prefix, arguments), daemons, AT_ONCE)

    def close(self) -> None:
        """Leave the cluster."""
        self._cluster.shutdown()


def _answer(command: str, run: Any, *arguments: Any) -> str:
    try:
        code, output, words = run(*arguments)
    except Exception as error:
        # librados raises what it could not even send
        code, output, words = -abs(getattr(error, "errno", None) or errno.EIO), b"", str(error)
    return answered(command, code, output.decode(errors="replace"), words)


def take_back(commander: Commander, clock: Clock, process: Tuple[str, str], generation: int, who: str) -> List[Undone]:
    """Take back what a `process` (host, process) left when the lock was at `generation` (`generation_of`).

    Nothing where somebody else has done so. Raises TunerError; Locked while another tuner is at work.
    """
    store = CommandStore(commander)
    withdraw(store, process, generation)
    release = release_of(min(osd_versions(commander), key=parse_version))
    lock = Lock(store, clock, this_process(who), may_live)
    applier = Applier(CommandConfig(commander), store, clock, lock, release, who)
    # what was begun later is a trial of a mgr that lives
    if all(entry.generation > generation for entry in applier.leftover()):
        return []
    return applier.recover()


def withdraw(store: Store, process: Tuple[str, str], generation: int) -> None:
    """Remove the claims that a process has left. It may go on under the same id, without its modules.

    Were it alive all the same, `Lock.check()` would stop it.
    """
    for claim in claims(store):
        if (claim.holder.host, claim.holder.process) == process and claim.generation <= generation:
            store.remove(claim.key)


class _Mgr:
    """The pipe from the mgr, and its process."""

    def __init__(self, parent: int) -> None:
        self._parent, self._buffer, self._ended = parent, b"", False

    def next_line(self, silence_s: float) -> Optional[str]:
        """None where the mgr is gone or silent for so long."""
        deadline = time.monotonic() + silence_s
        while b"\n" not in self._buffer:
            seconds = deadline - time.monotonic()
            if seconds <= 0 or self._ended or os.getppid() != self._parent:
                return None
            if select.select([0], [], [], min(seconds, LOOK_S))[0]:
                read = os.read(0, 1 << 16)
                self._ended = not read
                self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")


def _problem(access: Mapping[str, str]) -> str:
    """Why the cluster cannot be reached from here; in a process of its own, as librados takes much memory."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        words = "its trial ended without a word"
        try:
            RadosCommander(access).close()
            words = ""
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
        finally:
            os.write(sink, words.encode())
            os._exit(0)
    os.close(sink)
    with os.fdopen(source) as answer:
        words = answer.read()
    os.waitpid(child, 0)
    return words


def _withdraw_trial(task: Mapping[str, Any]) -> None:
    """Try until it is done or time is up. `SIGALRM` ends it in any case."""
    signal.alarm(int(ATTEMPTS_S + 3 * COMMAND_S))
    clock, deadline = SystemClock(), time.monotonic() + ATTEMPTS_S
    who = f"guardian of {task['who']}"
    generation: Optional[int] = None
    while time.monotonic() < deadline:
        with contextlib.suppress(TunerError, NoRadosError):
            commander = RadosCommander(task["access"])
            try:
                if generation is None:
                    # by order and not by time: clocks are set, and a mgr that is back needs minutes for its next trial
                    generation = generation_of(CommandStore(commander))
                    clock.sleep(ON_ITS_WAY_S)
                undos = take_back(commander, clock, (task["host"], task["process"]), generation, who)
                if undos:
                    _log(commander, who, undos)
                return
            finally:
                commander.close()
        clock.sleep(2.0)


def _log(commander: RadosCommander, who: str, undos: List[Undone]) -> None:
    numbers = ", ".join(str(undone.entry.number) for undone in undos)
    words = f"{who}: the plugin was unloaded or its mgr died during a trial: took back change {numbers}"
    command: Dict[str, Any] = {"level": "warn", "channel": "cluster", "logtext": [one_line(words)]}
    with contextlib.suppress(TunerError):
        commander.mon("log", command)


def main() -> None:
    """Watch over one trial."""
    # systemd ends what is left of a mgr's service with SIGTERM, just when this is needed; it kills it after 90 s
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    mgr = _Mgr(os.getppid())
    first = mgr.next_line(LOOK_S)
    if first is None:
        return
    task: Dict[str, Any] = read_json(first, "the mgr")
    problem = _problem(task["access"])
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps({"problem": problem}) + "\n").encode())
        os.close(1)
    if problem:
        return
    line: Optional[str] = ""
    while line is not None and line != DONE:
        line = mgr.next_line(float(task["silence_s"]))
    if line is None:
        _withdraw_trial(task)


if __name__ == "__main__":
    main()
