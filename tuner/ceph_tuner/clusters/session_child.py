"""The other end of `Session`: runs under the Python of the machine that has librados, one JSON line in, one out.

It is handed over as text (`python3 -c`), so it imports nothing of this project.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import Any, Callable, Dict, Tuple

Answer = Tuple[int, bytes, str]
Run = Callable[[str, str, Dict[str, Any], bytes], Answer]


def _answer(document: Dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def _who(ceph_args: str) -> str:
    """Whose key to use: the ceph program heeds what CEPH_ARGS says of that, librados all of it but that."""
    words = [part for word in shlex.split(ceph_args) for part in word.split("=", 1)]
    found = "client.admin"
    for option, value in zip(words, words[1:]):
        if option in ("--name", "-n"):
            found = value
        elif option in ("--id", "--user"):
            found = f"client.{value}"
    return found


def _connect(timeout: int) -> Any:
    try:
        import rados
    except ImportError as error:
        _answer({"ready": False, "reason": str(error)})
        sys.exit(0)
    cluster = None
    try:
        # conffile=None reads CEPH_CONF or the usual places, as the ceph program does
        path = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else None
        cluster = rados.Rados(
            name=_who(os.environ.get("CEPH_ARGS", "")),
            conffile=rados.Rados.DEFAULT_CONF_FILES if path is None else path,
        )
        cluster.conf_parse_env("CEPH_ARGS")
        for option in ("rados_mon_op_timeout", "rados_osd_op_timeout", "client_mount_timeout"):
            cluster.conf_set(option, str(timeout))
        cluster.connect(timeout=timeout)
    except rados.Error as error:
        _answer({"ready": False, "code": -abs(getattr(error, "errno", 0) or 0), "reason": str(error)})
        sys.exit(0)
    return cluster


class _Types:
    """The monitors and daemons want numbers as numbers: their own descriptions say which arguments are."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: Dict[Tuple[str, str], Dict[str, Dict[str, str]]] = {}

    def typed(self, kind: str, daemon: str, prefix: str, arguments: Dict[str, str]) -> Dict[str, Any]:
        family = (kind, daemon.split(".")[0])
        if family not in self._known:
            code, out, _ = self._run(kind, daemon, {"prefix": "get_command_descriptions", "format": "json"}, b"")
            self._known[family] = self._table(json.loads(out)) if code == 0 else {}
        types = self._known[family].get(prefix, {})
        return {name: self._convert(types.get(name, ""), value) for name, value in arguments.items()}

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
        if kind.startswith("list:"):
            return value.split()
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
    cluster = _connect(max(1, int(float(sys.argv[2]))) if len(sys.argv) > 2 else 30)

    def run(kind: str, daemon: str, command: Dict[str, Any], payload: bytes) -> Any:
        text = json.dumps(command)
        role, _, name = daemon.partition(".")
        if kind == "mon":
            return cluster.mon_command(text, payload)
        if role == "osd":
            return cluster.osd_command(int(name), text, payload)
        if role == "mgr":
            return cluster.mgr_command(text, payload)
        return cluster.mon_command(text, payload, target=name)

    types = _Types(run)
    _answer({"ready": True, "entity": _who(os.environ.get("CEPH_ARGS", ""))})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            kind, daemon, prefix = request["kind"], request.get("daemon", "mon"), request["prefix"]
            command = types.typed(kind, daemon, prefix, request["arguments"])
            command.update(prefix=prefix, format="json")
            code, out, words = run(kind, daemon, command, request.get("payload", "").encode())
            answer = {"code": code, "out": out.decode(errors="replace"), "words": words}
        except Exception as error:  # whatever librados raises becomes an answer: the process must not end
            answer = {"code": -abs(getattr(error, "errno", None) or 5), "out": "", "words": str(error)}
        _answer(dict(answer, id=request["id"]))


if __name__ == "__main__":
    _serve()
