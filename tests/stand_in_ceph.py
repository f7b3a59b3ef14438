"""A stand-in for the `ceph` program in front of a twin, and for programs that bring a command to another machine.

`ceph` is a program of its own, which takes its arguments as Ceph's does and asks the twin over a socket. The stand-in
for ssh joins its arguments with blanks and has a shell run them; that for `kubectl exec` takes them as they are, and
gives the command no input without `-i`.
"""

from __future__ import annotations

import errno
import json
import os
import socketserver
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import CommandFailed, PermissionRefused

ARGUMENTS: Dict[str, Tuple[str, ...]] = {
    "config set": ("who", "name", "value"),
    "config rm": ("who", "name"),
    "config get": ("who", "key"),
    "config-key set": ("key", "val"),
    "config-key get": ("key",),
    "config-key rm": ("key",),
    "config-key dump": ("key",),
    "osd pool create": ("pool", "pg_num"),
    "osd pool get": ("pool", "var"),
    "osd pool rm": ("pool", "pool2", "yes_i_really_really_mean_it"),
    "osd erasure-code-profile get": ("name",),
    "osd crush rule dump": (),
    "osd crush dump": (),
    "osd pool stats": (),
    "osd dump": (),
    "osd df": (),
    "osd tree": (),
    "osd metadata": (),
    "pg ls": ("pool",),
    "log last": ("num", "level", "channel"),
    "config dump": (),
    "config show": (),
    "config diff": (),
    "perf dump": (),
    "perf histogram dump": (),
    "dump_op_pq_state": (),
    "dump_recovery_reservations": (),
    "balancer status": (),
    "tuner auto explain": (),
    "no such command": (),
    "df": ("detail",),
    "health": ("detail",),
    "status": (),
    "versions": (),
}
"""Command -> its positional arguments."""

_PROGRAM = """#!{python} -SE
import json, socket, sys
listening = "-i" in sys.argv
asked = {{"argv": sys.argv[1:], "input": sys.stdin.buffer.read().decode() if listening else ""}}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({socket!r})
    connection.sendall(json.dumps(asked).encode() + b"\\n")
    answer = json.loads(connection.makefile("rb").readline())
sys.stdout.write(answer["out"])
sys.stderr.write(answer["err"])
sys.exit(answer["code"])
"""
_SSH = """#!/bin/sh
# as ssh does: options and the host, and the rest joined with blanks for the shell over there
while [ "${1#-}" != "$1" ]; do shift; done
[ "$1" = unreachable ] && { echo "ssh: connect to host unreachable port 22: Connection refused" >&2; exit 255; }
shift
exec sh -c "$*"
"""
_SUDO = """#!/bin/sh
exec "$@"
"""
_KUBECTL = """#!/bin/sh
# as `kubectl exec` does: the arguments behind -- as they are, no input without -i, and a word on what ended
input=/dev/null
while [ "$1" != -- ]; do
    [ "$1" = -i ] && input=/dev/stdin
    [ "$1" = deploy/gone ] && { echo 'Error from server (NotFound): deployments.apps "gone" not found' >&2; exit 1; }
    shift
done
shift
"$@" < $input
code=$?
[ $code = 0 ] || echo "command terminated with exit code $code" >&2
exit $code
"""


class StandIn:
    """The programs, in a folder for the PATH, and what `ceph` was given."""

    def __init__(self, folder: Path, commander: Commander) -> None:
        self.folder, self.commander = folder, commander
        self.given: List[List[str]] = []
        self.inputs: List[str] = []

    def answer(self, asked: Any) -> Dict[str, Any]:
        """Exit code, output and errors of one call of the program."""
        self.given.append(asked["argv"])
        self.inputs.append(asked["input"])
        words = list(asked["argv"])
        for option in ("--connect-timeout", "--format", "--conf", "-i"):
            while option in words:
                at = words.index(option)
                del words[at : at + 2]
        try:
            if words[:1] == ["tell"]:
                prefix, arguments = parsed(words[2:])
                out = self.commander.tell(words[1], prefix, arguments)
            else:
                prefix, arguments = parsed(words)
                out = self.commander.mon(prefix, arguments, asked["input"])
        except (CommandFailed, PermissionRefused) as failure:
            code = failure.code if isinstance(failure, CommandFailed) else -errno.EACCES
            words_said = failure.message if isinstance(failure, CommandFailed) else "access denied"
            return {"code": -code, "out": "", "err": f"Error {errno.errorcode[-code]}: {words_said}\n"}
        return {"code": 0, "out": "\n" + out, "err": ""}


def parsed(words: List[str]) -> Tuple[str, Dict[str, str]]:
    """The command, and its arguments by name."""
    for count in range(len(words), 0, -1):
        prefix = " ".join(words[:count])
        if prefix in ARGUMENTS:
            return prefix, dict(zip(ARGUMENTS[prefix], words[count:]))
    raise CommandFailed(" ".join(words), -errno.EINVAL, "invalid command")


@contextmanager
def stand_in(folder: Path, commander: Commander) -> Iterator[StandIn]:
    """The programs, for as long as the block runs."""
    made = StandIn(folder, commander)
    socket = folder / "twin.sock"

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            answer = made.answer(json.loads(self.rfile.readline()))
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    programs = {"ceph": _PROGRAM.format(python=sys.executable, socket=str(socket))}
    programs.update(ssh=_SSH, sudo=_SUDO, kubectl=_KUBECTL)
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    with Server(str(socket), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()


@contextmanager
def programs_on_the_path(commander: Commander, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """The same, found by their names."""
    # a short path: that of a socket has 107 bytes at most
    with tempfile.TemporaryDirectory(prefix="ct-") as folder, stand_in(Path(folder), commander) as made:
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.chdir(folder)
        yield made
