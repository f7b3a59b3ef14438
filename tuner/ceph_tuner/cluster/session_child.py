"""The other end of `Session`, under the Python of the machine that has librados: a JSON line for each command.

Commands run at the same time, each in a thread, which is where librados waits. It is handed over as text
(`python3 -c`), so it imports nothing of this project.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Tuple

Answer = Tuple[int, bytes, str]
Run = Callable[[str, str, Dict[str, Any], bytes, float], Answer]

THREADS = 160
"""What `Session` sends at a time, and some more for who is not one of many."""
_TURN_S = 1.0
"""Daemons of a kind are asked once what arguments their commands have; so long the others wait for the first one."""
_speaking = threading.Lock()


def _answer(document: Dict[str, Any]) -> None:
    line = json.dumps(document) + "\n"
    with _speaking:
        sys.stdout.write(line)
        sys.stdout.flush()


def _who(ceph_args: str) -> str:
    """Whose key to use: the ceph program heeds what CEPH_ARGS says of that, librados all of it but that."""
    words = [part for word in shlex.split(ceph_args) for part in word.split("=", 1)]
    entity = "client.admin"
    for option, value in zip(words, words[1:]):
        if option in ("--name", "-n"):
            entity = value
        elif option in ("--id", "--user"):
            entity = f"client.{value}"
    return entity


class _Connections:
    """One for each time limit: librados has one for all commands of a connection."""

    def __init__(self, timeout: float) -> None:
        self.usual = timeout
        self._opening = threading.Lock()
        self._open: Dict[float, Any] = {}

    def within(self, seconds: float) -> Any:
        """A connection whose commands end after so long. Raises rados.Error."""
        with self._opening:
            if seconds not in self._open:
                self._open[seconds] = _connection(seconds, self.usual)
            return self._open[seconds]


def _connection(limit: float, timeout: float) -> Any:
    import rados

    # conffile=None reads CEPH_CONF or the usual places, as the ceph program does
    path = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else None
    cluster = rados.Rados(
        name=_who(os.environ.get("CEPH_ARGS", "")),
        conffile=rados.Rados.DEFAULT_CONF_FILES if path is None else path,
    )
    cluster.conf_parse_env("CEPH_ARGS")
    for option in ("rados_mon_op_timeout", "rados_osd_op_timeout", "client_mount_timeout"):
        seconds = limit if option == "rados_osd_op_timeout" else timeout
        cluster.conf_set(option, str(max(1, round(seconds))))
    cluster.connect(timeout=int(timeout))
    return cluster


def _open(timeout: float) -> _Connections:
    try:
        import rados
    except ImportError as error:
        _answer({"ready": False, "reason": str(error)})
        sys.exit(0)
    connections = _Connections(timeout)
    try:
        connections.within(timeout)
    except rados.Error as error:
        _answer({"ready": False, "code": -abs(getattr(error, "errno", 0) or 0), "reason": str(error)})
        sys.exit(0)
    return connections


class _Types:
    """The monitors and daemons want numbers as numbers: their own descriptions say which arguments are."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._reading = threading.Lock()
        self._known: Dict[Tuple[str, str], Dict[str, Dict[str, str]]] = {}

    def typed(self, kind: str, daemon: str, prefix: str, arguments: Dict[str, str], within: float) -> Dict[str, Any]:
        # where there is nothing to convert nobody is asked, least of all a daemon that may hang
        types = self._of((kind, daemon.split(".")[0]), daemon, within).get(prefix, {}) if arguments else {}
        return {name: self._convert(types.get(name, ""), value) for name, value in arguments.items()}

    def _of(self, family: Tuple[str, str], daemon: str, within: float) -> Dict[str, Dict[str, str]]:
        if family in self._known:
            return self._known[family]
        # one asks for all of them, unless it asks one that hangs: then each asks its own
        first = self._reading.acquire(timeout=_TURN_S)
        try:
            if family not in self._known:
                command = {"prefix": "get_command_descriptions", "format": "json"}
                code, out, words = self._run(family[0], daemon, command, b"", within)
                if abs(code) == errno.ETIMEDOUT:
                    # it would not answer the command either
                    raise OSError(errno.ETIMEDOUT, words)
                if code:
                    return {}
                self._known[family] = self._table(json.loads(out))
            return self._known[family]
        finally:
            if first:
                self._reading.release()

    @staticmethod
    def _table(descriptions: Dict[str, Any]) -> Dict[str, Dict[str, str]]:
        table: Dict[str, Dict[str, str]] = {}
        for entry in descriptions.values():
            words, types = [], {}
            for part in entry["sig"]:
                if isinstance(part, str):
                    words.append(part)
                else:
                    types[part["name"]] = ("list:" if part.get("n") == "N" else "") + part.get("type", "")
            table.setdefault(" ".join(words), {}).update(types)
        return table

    @staticmethod
    def _convert(kind: str, value: str) -> Any:
        words = value.split()
        if kind == "list:CephOsdName" and all(word.isdigit() for word in words):
            return [int(word) for word in words]
        if kind.startswith("list:"):
            return words
        try:
            if kind == "CephInt":
                return int(value)
            if kind == "CephFloat":
                return float(value)
        except ValueError:
            return value
        if kind == "CephBool":
            # a flag is given as the ceph program takes it: --force
            return value.startswith("--") or value.lower() in ("true", "1", "yes", "on")
        return value


def _serve() -> None:
    connections = _open(max(1.0, float(sys.argv[2])) if len(sys.argv) > 2 else 30.0)

    def run(kind: str, daemon: str, command: Dict[str, Any], payload: bytes, within: float = connections.usual) -> Any:
        text = json.dumps(command)
        role, _, name = daemon.partition(".")
        cluster = connections.within(within)
        if kind == "mon":
            return cluster.mon_command(text, payload)
        if role == "osd":
            return cluster.osd_command(int(name), text, payload)
        if role == "mgr":
            return cluster.mgr_command(text, payload)
        return cluster.mon_command(text, payload, target=name)

    types = _Types(run)

    def respond(request: Dict[str, Any]) -> None:
        try:
            kind, daemon, prefix = request["kind"], request.get("daemon", "mon"), request["prefix"]
            payload, within = request.get("payload", "").encode(), request.get("within", connections.usual)
            command = types.typed(kind, daemon, prefix, request["arguments"], within)
            command.update(prefix=prefix, format="json")
            code, out, words = run(kind, daemon, command, payload, within)
            if request.get("keep") and not code:
                # to read and write the other thousands of options twice takes most of the time otherwise
                document = json.loads(out)
                out = json.dumps({key: document[key] for key in request["keep"] if key in document}).encode()
            answer = {"code": code, "out": out.decode(errors="replace"), "words": words}
        except Exception as error:  # whatever librados raises becomes an answer: the process must not end
            answer = {"code": -abs(getattr(error, "errno", None) or 5), "out": "", "words": str(error)}
        _answer(dict(answer, id=request["id"]))

    _answer({"ready": True, "entity": _who(os.environ.get("CEPH_ARGS", ""))})
    with ThreadPoolExecutor(THREADS) as threads:
        for line in sys.stdin:
            threads.submit(respond, json.loads(line))


if __name__ == "__main__":
    _serve()
