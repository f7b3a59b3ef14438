"""One connection into a lab that stays open, because `ceph` itself takes 0.3 s of CPU for each question.

The other end is `agent.py`, started inside the lab with the lab's own Python and librados. It leaves when its standard
input closes, so nothing stays behind when this process dies. Any thread may ask: questions wait for each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_lab.loads import LabUnderLoad
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, LoadFailed

_AGENT = Path(__file__).with_name("agent.py")


class LabSession:
    """Asks monitors, the mgr, OSDs and PGs, and writes objects. A context manager."""

    def __init__(self, lab: LabUnderLoad, timeout: float = 60.0) -> None:
        self._lab = lab
        self._timeout = timeout
        self._lock = threading.RLock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._buffer = b""

    def __enter__(self) -> LabSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the agent. A later question starts it again."""
        with self._lock:
            process, self._process, self._buffer = self._process, None, b""
            if process is None:
                return
            with contextlib.suppress(OSError):
                if process.stdin:
                    process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()

    def mon(self, prefix: str, **arguments: Any) -> Any:
        """Answer of a monitor command: parsed where it is JSON, else text."""
        return self._command("mon", None, prefix, arguments)

    def mons(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """Monitor commands whose order does not matter. Raises CommandFailed where one is refused."""
        self.ask({"do": "mons", "commands": list(commands)}, timeout=max(120.0, self._timeout))

    def mgr(self, prefix: str, **arguments: Any) -> Any:
        """Answer of a mgr command."""
        return self._command("mgr", None, prefix, arguments)

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        """Answer of one OSD."""
        return self._command("osd", osd, prefix, arguments)

    def pg(self, pgid: str, prefix: str, **arguments: Any) -> Any:
        """Answer of a PG's primary, at this moment (the mgr's view is up to 5 s old)."""
        return self._command("pg", pgid, prefix, {**arguments, "pgid": pgid})

    def pgs(self, pgids: List[str]) -> List[Dict[str, Any]]:
        """State, acting set, statistics and scrubber as the primaries know them; PGs without an answer are left out."""
        return list(self.ask({"do": "pgs", "pgids": pgids}))

    def place(self, pool: str, prefix: str, osd: int, count: int) -> List[Tuple[str, str]]:
        """The first `count` names `prefix.0`, `prefix.1`, … whose PG has that OSD, each with its PG."""
        pairs = self.ask({"do": "place", "pool": pool, "prefix": prefix, "osd": osd, "count": count})
        return [(str(name), str(pgid)) for name, pgid in pairs]

    def pgs_of(self, pool: str, names: List[str]) -> List[str]:
        """The PG of each of these objects, whether it exists or not."""
        return list(self.ask({"do": "pgs_of", "pool": pool, "names": names}, timeout=max(120.0, self._timeout)))

    def size(self, pool: str, name: str) -> Optional[int]:
        """Bytes of an object; None where there is none."""
        answer = self.ask({"do": "size", "pool": pool, "name": name})
        return None if answer is None else int(answer)

    def write(self, pool: str, names: List[str], size: int, offset: Optional[int] = None, depth: int = 32) -> None:
        """Write objects of `size` bytes: whole, or at `offset` over what is there."""
        request = {"do": "write", "pool": pool, "names": names, "size": size, "offset": offset, "depth": depth}
        self.ask(request, timeout=max(120.0, self._timeout))

    def ask(self, request: Dict[str, Any], timeout: Optional[float] = None) -> Any:
        """One question to the agent, one answer. Raises ClusterTimeout, CommandFailed, LoadFailed."""
        with self._lock:
            process = self._live_process()
            assert process.stdin is not None  # noqa: S101 - opened with a pipe below
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                answer = json.loads(self._line(process, timeout or self._timeout))
            except (OSError, ValueError) as error:
                words = self._last_words(process)
                self.close()
                raise LoadFailed(f"the lab {self._lab.name!r} does not answer: {words or error}") from error
            except BaseException:
                # a late answer must not be taken for the next one
                self.close()
                raise
        if "error" in answer:
            raise CommandFailed(answer.get("command", request["do"]), int(answer["code"]), str(answer["error"]))
        return answer["result"]

    def _command(self, kind: str, target: Any, prefix: str, arguments: Dict[str, Any]) -> Any:
        command = {"prefix": prefix, "format": "json", **arguments}
        text = self.ask({"do": kind, "target": target, "command": command})
        try:
            return json.loads(text)
        except ValueError:
            return text

    def _live_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = self._lab.argv(["python3", "-c", _AGENT.read_text(encoding="utf-8"), str(self._lab.conf)])
            # its own session: Ctrl-C must not take away what the cleaning up needs
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        return self._process

    def _line(self, process: subprocess.Popen[bytes], timeout: float) -> bytes:
        assert process.stdout is not None  # noqa: S101 - opened with a pipe above
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(timeout):
                    raise ClusterTimeout(f"the lab {self._lab.name!r} did not answer within {timeout:.0f} s")
                piece = os.read(process.stdout.fileno(), 1 << 20)
                if not piece:
                    raise OSError("its agent ended")
                self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    @staticmethod
    def _last_words(process: subprocess.Popen[bytes]) -> str:
        """The last line that a dead agent wrote to standard error."""
        if process.stderr is None:
            return ""
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return ""
        lines = process.stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
