"""A Commander that keeps one connection to the cluster: about 2 ms a command.

librados belongs to the system's Python where Ceph is installed, often not to ours, and never to a lab's chroot. So the
connection lives in a child process there, which speaks JSON lines.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Any, Dict, List, Mapping, Optional, cast

from ceph_tuner.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.clusters.cephcli import Launcher, failure
from ceph_tuner.errors import ClusterTimeout
from ceph_tuner.interpreter import running_text

_CHILD = Path(__file__).with_name("session_child.py")


class NoLibradosError(Exception):
    """There is no librados for the Python over there: use the `ceph` program."""


class Session:
    """`ports.Commander` by a child process with librados. Safe to use from several threads; one command at a time."""

    def __init__(self, launch: Launcher = list, conf: str = "", timeout: float = 30.0) -> None:
        """Connect at once. Raises NoLibradosError, ClusterNotFound, ClusterTimeout, PermissionRefused."""
        self._argv = launch(running_text("python3", _CHILD.read_text(encoding="utf-8"), conf, str(timeout)))
        self._timeout = timeout
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._buffer = b""
        self.entity = ""
        """Whose key the connection uses."""
        with self._lock:
            self._start()

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """Answer of a monitor command. Raises CommandFailed, ClusterTimeout, PermissionRefused."""
        return self._ask({"kind": "mon", "prefix": prefix, "arguments": dict(arguments), "payload": payload})

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of a daemon's command. Raises as `mon` does."""
        return self._ask({"kind": "tell", "daemon": daemon, "prefix": prefix, "arguments": dict(arguments)})

    def close(self) -> None:
        """End the child. A later command starts a new one."""
        with self._lock:
            child, self._child, self._buffer = self._child, None, b""
            if child is None:
                return
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            try:
                child.wait(2)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _start(self) -> None:
        try:
            # a session of its own: Ctrl-C must reach the tuner, which undoes, not the connection that it undoes with
            self._child = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:
            raise NoLibradosError(str(exc)) from exc
        self._buffer = b""
        try:
            greeting = self._read("connect", time.monotonic() + self._timeout + 5)
        except ClusterTimeout as exc:
            if self._child is None:
                raise NoLibradosError("its process ended before it was ready") from exc
            raise
        if greeting.get("ready"):
            self.entity = str(greeting.get("entity", ""))[:100]
            return
        self.close()
        if "code" in greeting:
            raise failure("connect", int(greeting["code"]), str(greeting["reason"]))
        raise NoLibradosError(str(greeting.get("reason")))

    def _start_again(self, shown: str) -> None:
        try:
            self._start()
        except NoLibradosError as fault:
            # it was there a moment ago: no reason to end as if there were none, with a change half taken back
            raise ClusterTimeout(f"`{shown}`: no new connection ({fault})") from fault

    def _ask(self, request: Dict[str, Any]) -> str:
        arguments: List[str] = list(request["arguments"].values())
        shown = " ".join(["ceph", *(["tell", request["daemon"]] if "daemon" in request else []), request["prefix"]])
        shown = " ".join([shown, *arguments])
        with self._lock:
            if self._child is None:
                self._start_again(shown)
            number = next(self._numbers)
            self._write(json.dumps(dict(request, id=number)).encode() + b"\n", shown)
            deadline = time.monotonic() + self._timeout + 5
            while True:
                answer = self._read(shown, deadline)
                # an answer to an earlier question, whose reader was interrupted, is thrown away
                if answer.get("id") == number:
                    break
        try:
            code, out, words = int(answer["code"]), str(answer["out"]), str(answer.get("words", ""))
        except MISREAD as exc:
            raise ClusterTimeout(f"`{shown}`: the connection's process spoke nonsense") from exc
        if code:
            raise failure(shown, code, words)
        return out

    def _write(self, line: bytes, shown: str) -> None:
        try:
            stdin = cast("IO[bytes]", cast("subprocess.Popen[bytes]", self._child).stdin)
            stdin.write(line)
            stdin.flush()
        except OSError as exc:
            self.close()
            raise ClusterTimeout(f"`{shown}`: the connection's process has ended") from exc

    def _read(self, shown: str, deadline: float) -> Dict[str, Any]:
        stdout = cast("IO[bytes]", cast("subprocess.Popen[bytes]", self._child).stdout)
        while b"\n" not in self._buffer:
            readable, _, _ = select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                self._kill()
                raise ClusterTimeout(f"`{shown}` did not answer within {self._timeout:g} s")
            read = os.read(stdout.fileno(), 1 << 16)
            if not read:
                self.close()
                raise ClusterTimeout(f"`{shown}`: the connection's process has ended")
            self._buffer += read
            if len(self._buffer) > ANSWER:
                self._kill()
                raise ClusterTimeout(f"`{shown}`: the connection's process said more than {ANSWER >> 20} MiB")
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = read_json(line, shown, ANSWER)
        except ValueError as exc:
            self._kill()
            raise ClusterTimeout(f"`{shown}`: the connection's process spoke nonsense") from exc
        return answer if isinstance(answer, dict) else {}

    def _kill(self) -> None:
        """A child that hangs in librados does not see that its input has ended."""
        if self._child is not None:
            self._child.kill()
        self.close()
