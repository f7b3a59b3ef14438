"""Keeps a process beside the mgr while something is on trial, which takes it back when the mgr is gone.

`ceph_tuner.core.changes.guardian` is that process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, Mapping, Optional, Protocol

from ceph_tuner.core.autopilot.executor import Working
from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.interpreter import running_module
from ceph_tuner.core.changes.guardian import DONE
from ceph_tuner.core.changes.lock_owner import this_process

from .worker import LIBRARY

MODULE = "ceph_tuner.core.changes.guardian"

READY_S = 15.0
"""How long it may take to try the way to the cluster; 0.2 s where all is well."""

SILENCE_S = 900.0
"""After so long without a sign of life the trial is taken back: the plugin hangs."""


class Connected(Protocol):
    """What MgrModule knows of the way to the monitors."""

    def get(self, data_name: str) -> Any:
        """`mon_map`."""

    def get_ceph_option(self, key: str) -> Any:
        """An option of the mgr itself, whether from ceph.conf, its command line or elsewhere."""

    def get_ceph_conf_path(self) -> str:
        """Path of the ceph.conf that it read."""

    def get_mgr_id(self) -> str:
        """`x` of `mgr.x`."""


def access(mgr: Connected) -> Dict[str, str]:
    """How another process on this host reaches the cluster as this mgr does, in a container as well.

    Not for a log or a command line: it may hold a key.
    """
    monitors = []
    for monitor in mgr.get("mon_map")["mons"]:
        addresses = (f"{address['type']}:{address['addr']}/0" for address in monitor["public_addrs"]["addrvec"])
        monitors.append(f"[{','.join(addresses)}]")
    options = {name: str(mgr.get_ceph_option(name) or "") for name in ("keyring", "keyfile", "key")}
    return {
        "conf": mgr.get_ceph_conf_path() or "",
        "name": f"mgr.{mgr.get_mgr_id()}",
        # as they are now: the file may name others, or none
        "mon_host": " ".join(monitors),
        **{name: value for name, value in options.items() if value},
    }


class Guardian:
    """One process at a time. Any thread may call."""

    def __init__(self, reach: Callable[[], Mapping[str, str]], who: str, silence_s: float = SILENCE_S) -> None:
        """`reach` gives what `access` does; `who` is the one that acts, for the cluster's log."""
        self._reach, self._who, self._silence_s = reach, who, silence_s
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._lock = threading.RLock()
        self.problem = ""
        """Why nobody would take a trial back at once if this mgr went away; empty where somebody would."""

    def watch(self, state: Working) -> None:
        """Start where something is on trial, stop where nothing is."""
        if state.on_cluster:
            self.start()
        else:
            self.stop()

    def start(self) -> None:
        """Have a process watch over this one. What goes wrong is in `problem`: the trial goes on."""
        with self._lock:
            self.stop()
            try:
                self._process = self._spawn()
                self.problem = self._hand_over(self._process)
            except Exception as error:
                self.problem = f"{type(error).__name__}: {error}"
            if self.problem:
                self.stop()

    def beat(self) -> None:
        """Give a sign of life, some times in `silence_s`; a guardian that died gets a successor."""
        with self._lock:
            if self._process is not None:
                try:
                    _write(self._process, "")
                except OSError:
                    self.start()

    def stop(self) -> None:
        """Send it away: nothing is on trial."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                _dismiss(process)

    def _spawn(self) -> subprocess.Popen[bytes]:
        # the Python that the mgr brings along has python3-rados
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        # the pipe's end is closed when the mgr executes itself anew, as all that Python opens
        return subprocess.Popen(
            running_module(shutil.which(version) or "python3", MODULE, [LIBRARY]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            start_new_session=True,
            close_fds=True,
        )

    def _hand_over(self, process: subprocess.Popen[bytes]) -> str:
        """Tell it what it needs, and give its word on whether that is enough."""
        holder = this_process(self._who)
        task = {
            "access": dict(self._reach()),
            "who": self._who,
            "host": holder.host,
            "process": holder.process,
            "silence_s": self._silence_s,
        }
        _write(process, json.dumps(task))
        output = process.stdout
        if output is None:
            return "it has no pipe"
        answer, deadline = b"", time.monotonic() + READY_S
        while b"\n" not in answer:
            if not select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return f"it did not reach the cluster within {READY_S:g} s"
            read = os.read(output.fileno(), 1 << 16)
            if not read:
                return "its process ended before it was ready"
            answer += read
        return str(read_json(answer, "the guardian")["problem"])


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        _write(process, DONE)
    try:
        process.wait(2.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _write(process: subprocess.Popen[bytes], line: str) -> None:
    if process.stdin is not None:
        # where it is suspended and the pipe full, the line is lost, which is nothing to wait for
        os.set_blocking(process.stdin.fileno(), False)
        process.stdin.write(line.encode() + b"\n")
