"""A Commander that keeps one connection to the cluster: about 2 ms a command, and many of them at a time.

librados belongs to the system's Python where Ceph is installed, often not to ours, and never to a lab's chroot. So the
connection lives in a child process there, which speaks JSON lines: a question has a number, and so has its answer.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import IO, Any, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, cast

from ceph_tuner.cluster.cephcli import Launcher, failure
from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.ceph.interpreter import running_text
from ceph_tuner.core.ceph.ports import Told
from ceph_tuner.core.ceph.tell_each import AT_ONCE, outcome
from ceph_tuner.core.errors import ClusterTimeout

_CHILD = Path(__file__).with_name("session_child.py")
_GREETING = 0
"""Number of what the child says first."""
_MORE_S = 5.0
"""What an answer may take beside the time limit of librados before the child is taken for dead."""

Answer = Dict[str, Any]
Box = queue.SimpleQueue[Tuple[int, Optional[Answer]]]


class NoLibradosError(Exception):
    """There is no librados for the Python over there: use the `ceph` program."""


class _Child:
    """The process, and the thread that hands what it says to whoever waits for it."""

    def __init__(self, argv: List[str], greeting_box: Box) -> None:
        """What it says first comes into the box. Raises OSError."""
        # a session of its own: Ctrl-C must reach the tuner, which undoes, not the connection that it undoes with
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._boxes: Dict[int, Box] = {_GREETING: greeting_box}
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self.fault = ""
        """Why it answers no more; empty while it does."""
        threading.Thread(target=self._listen, name="ceph-tuner-session", daemon=True).start()

    def wait_for(self, number: int, box: Box) -> None:
        """Put the answer of that number into the box; None where there will be none."""
        with self._lock:
            if not self.fault:
                self._boxes[number] = box
                return
        box.put((number, None))

    def send(self, line: bytes) -> None:
        """Write a question. Raises OSError."""
        stdin = cast("IO[bytes]", self._process.stdin)
        with self._writing:
            stdin.write(line)
            stdin.flush()

    def kill(self, fault: str) -> None:
        """End it, also one that hangs in librados."""
        self._end(fault)
        self._process.kill()

    def close(self) -> None:
        """End it: its input ends."""
        with contextlib.suppress(OSError):
            cast("IO[bytes]", self._process.stdin).close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _end(self, fault: str) -> None:
        with self._lock:
            self.fault = self.fault or fault
            boxes, self._boxes = self._boxes, {}
        for number, box in boxes.items():
            box.put((number, None))

    def _listen(self) -> None:
        stdout = cast("IO[bytes]", self._process.stdout)
        with stdout:
            try:
                for line in _lines(stdout):
                    answer = read_json(line, "an answer", ANSWER)
                    if isinstance(answer, dict):
                        self._hand_over(answer)
            except _TooLongError:
                self.kill(f"said more than {ANSWER >> 20} MiB")
            except ValueError:
                self.kill("spoke nonsense")
        self._end("has ended")

    def _hand_over(self, answer: Answer) -> None:
        number = answer.get("id", _GREETING)
        with self._lock:
            # nobody waits any more where whoever asked was interrupted
            box = self._boxes.pop(number, None) if isinstance(number, int) else None
        if box is not None:
            box.put((number, answer))


class _TooLongError(Exception):
    pass


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    parts: List[bytes] = []
    size = 0
    while True:
        read = os.read(stream.fileno(), 1 << 16)
        if not read:
            return
        *lines, rest = read.split(b"\n")
        for end in lines:
            yield b"".join([*parts, end])
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > ANSWER:
            raise _TooLongError


class Session:
    """`ports.ManyCommander` by a child process with librados. Safe to use from several threads at a time."""

    def __init__(self, launch: Launcher = list, conf: str = "", timeout: float = 30.0) -> None:
        """Connect at once. Raises NoLibradosError, ClusterNotFound, ClusterTimeout, PermissionRefused."""
        self._argv = launch(running_text("python3", _CHILD.read_text(encoding="utf-8"), conf, str(timeout)))
        self._timeout = timeout
        self._lock = threading.RLock()
        self._numbers = itertools.count(_GREETING + 1)
        self._child: Optional[_Child] = None
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

    def tell_each(
        self,
        daemons: Iterable[str],
        prefix: str,
        arguments: Mapping[str, str],
        within: float,
        keep: Collection[str] = (),
    ) -> Iterator[Tuple[str, Told]]:
        """As `ports.ManyCommander` says."""
        request = {"kind": "tell", "prefix": prefix, "arguments": dict(arguments), "within": within, "keep": list(keep)}
        box: Box = queue.SimpleQueue()
        daemon_by_number: Dict[int, str] = {}
        rest = iter(daemons)
        while True:
            for daemon in itertools.islice(rest, AT_ONCE - len(daemon_by_number)):
                daemon_by_number[self._send(dict(request, daemon=daemon), box)] = daemon
            if not daemon_by_number:
                return
            number, answer = self._next_answer(
                box, within, f"ceph tell {next(iter(daemon_by_number.values()))} {prefix}"
            )
            daemon = daemon_by_number.pop(number)
            yield daemon, outcome(partial(self._text, answer, _command_line(dict(request, daemon=daemon))))

    def close(self) -> None:
        """End the child. A later command starts a new one."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _start(self) -> None:
        box: Box = queue.SimpleQueue()
        try:
            self._child = _Child(self._argv, box)
        except OSError as exc:
            raise NoLibradosError(str(exc)) from exc
        greeting = self._next_answer(box, self._timeout, "connect")[1]
        if greeting is None:
            self.close()
            raise NoLibradosError("its process ended before it was ready")
        if greeting.get("ready"):
            self.entity = str(greeting.get("entity", ""))[:100]
            return
        self.close()
        if "code" in greeting:
            raise failure("connect", int(greeting["code"]), str(greeting["reason"]))
        raise NoLibradosError(str(greeting.get("reason")))

    def _ask(self, request: Answer) -> str:
        box: Box = queue.SimpleQueue()
        self._send(request, box)
        return self._text(self._next_answer(box, self._timeout, _command_line(request))[1], _command_line(request))

    def _send(self, request: Answer, box: Box) -> int:
        """Send a question, whose answer comes into the box. Gives its number."""
        with self._lock:
            if self._child is None or self._child.fault:
                self.close()
                self._start_again(_command_line(request))
            child = cast("_Child", self._child)
            number = next(self._numbers)
            child.wait_for(number, box)
            with contextlib.suppress(OSError):
                # one that has ended says so into the box
                child.send(json.dumps(dict(request, id=number)).encode() + b"\n")
            return number

    def _start_again(self, command: str) -> None:
        try:
            self._start()
        except NoLibradosError as fault:
            # it was there a moment ago: no reason to end as if there were none, with a change half taken back
            raise ClusterTimeout(f"`{command}`: no new connection ({fault})") from fault

    def _next_answer(self, box: Box, limit: float, command: str) -> Tuple[int, Optional[Answer]]:
        """What comes next. A child that does not even say that librados waited in vain is ended."""
        try:
            return box.get(timeout=limit + _MORE_S)
        except queue.Empty:
            child = self._child
            if child is not None:
                child.kill("hung")
            raise ClusterTimeout(f"`{command}` did not answer within {limit:g} s") from None

    def _text(self, answer: Optional[Answer], command: str) -> str:
        if answer is None:
            fault = self._child.fault if self._child is not None else ""
            raise ClusterTimeout(f"`{command}`: the connection's process {fault or 'has ended'}")
        try:
            code, out, words = int(answer["code"]), str(answer["out"]), str(answer.get("words", ""))
        except MISREAD as exc:
            raise ClusterTimeout(f"`{command}`: the connection's process spoke nonsense") from exc
        if code:
            raise failure(command, code, words)
        return out


def _command_line(request: Mapping[str, Any]) -> str:
    daemon = ["tell", request["daemon"]] if "daemon" in request else []
    return " ".join(["ceph", *daemon, request["prefix"], *request["arguments"].values()])
