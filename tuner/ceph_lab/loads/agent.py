"""Runs inside a lab, under the lab's own Python: JSON questions by line on standard input, answers on standard output.

Started by `session.py` as text (`python3 -c`), so it stands alone: standard library and librados only.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional

import rados

AT_ONCE = 32


class RefusedError(Exception):
    """The cluster refused a command."""

    def __init__(self, command: str, code: int, message: str) -> None:
        super().__init__(message)
        self.command, self.code = command, code


def _output(command: Dict[str, Any], answer: Any) -> str:
    code, output, message = answer
    if code:
        raise RefusedError(str(command["prefix"]), int(code), str(message))
    return bytes(output).decode(errors="replace")


class Agent:
    """Answers one kind of question a method."""

    def __init__(self, conf: str) -> None:
        self.cluster = rados.Rados(conffile=conf, rados_id="admin")
        self.cluster.connect(timeout=30)

    def mon(self, target: None, command: Dict[str, Any]) -> str:
        """A monitor command."""
        return _output(command, self.cluster.mon_command(json.dumps(command), b"", timeout=30))

    def mons(self, commands: List[Dict[str, Any]]) -> int:
        """Monitor commands at once, which the monitors then carry out in few steps."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return len(list(threads.map(lambda command: self.mon(None, command), commands)))

    def mgr(self, target: None, command: Dict[str, Any]) -> str:
        """A mgr command."""
        return _output(command, self.cluster.mgr_command(json.dumps(command), b"", timeout=30))

    def osd(self, target: int, command: Dict[str, Any]) -> str:
        """A command to one OSD."""
        return _output(command, self.cluster.osd_command(target, json.dumps(command), b"", timeout=30))

    def pg(self, target: str, command: Dict[str, Any]) -> str:
        """A command to a PG's primary."""
        self._look_at_latest_osdmap()
        return _output(command, self.cluster.pg_command(target, json.dumps(command), b"", timeout=30))

    def pgs(self, pgids: List[str]) -> List[Dict[str, Any]]:
        """State and statistics of PGs as their primaries know them."""
        self._look_at_latest_osdmap()
        rows = []
        for pgid in pgids:
            # a short limit: a PG without a primary answers nobody, and the others must not wait for it
            code, output, _ = self.cluster.pg_command(
                pgid, json.dumps({"prefix": "query", "pgid": pgid}), b"", timeout=3
            )
            if code:
                continue
            query = json.loads(output)
            stats = query["info"]["stats"]
            rows.append(
                {
                    "pgid": pgid,
                    "state": query["state"],
                    "up": query["up"],
                    "acting": query["acting"],
                    "stats": {key: value for key, value in stats.items() if not isinstance(value, list)},
                    "scrubber": query.get("scrubber", {}),
                }
            )
        return rows

    def place(self, pool: str, prefix: str, osd: int, count: int) -> List[List[str]]:
        """Names whose PG has an OSD, each with that PG."""
        places: List[List[str]] = []
        # two in three objects of a size-2 pool on three OSDs fit; the bound is for an OSD that has no PG at all
        for number in range(100 * count + 1000):
            if len(places) == count:
                break
            name = f"{prefix}.{number}"
            location = self._map(pool, name)
            if osd in location["up"]:
                places.append([name, location["pgid"]])
        return places

    def pgs_of(self, pool: str, names: List[str]) -> List[str]:
        """The PG of each object."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return [location["pgid"] for location in threads.map(lambda name: self._map(pool, name), names)]

    def _map(self, pool: str, name: str) -> Dict[str, Any]:
        command = {"prefix": "osd map", "pool": pool, "object": name, "format": "json"}
        return dict(json.loads(self.mon(None, command)))

    def size(self, pool: str, name: str) -> Optional[int]:
        """Bytes of an object; None where there is none."""
        with self.cluster.open_ioctx(pool) as context:
            try:
                return int(context.stat(name)[0])
            except rados.ObjectNotFound:
                return None

    def write(self, pool: str, names: List[str], size: int, offset: Optional[int], depth: int) -> int:
        """Write objects, `depth` of them at a time."""
        # a snapshot made just now may be in a later map than this client's: its writes would make no clones
        self._look_at_latest_osdmap()
        data = os.urandom(size)
        free, failures, completions = threading.Semaphore(depth), [], []

        def done(completion: Any) -> None:
            if completion.get_return_value() < 0:
                failures.append(completion.get_return_value())
            free.release()

        context = self.cluster.open_ioctx(pool)
        try:
            for name in names:
                free.acquire()
                if offset is None:
                    completions.append(context.aio_write_full(name, data, oncomplete=done))
                else:
                    completions.append(context.aio_write(name, data, offset, oncomplete=done))
            for completion in completions:
                completion.wait_for_complete_and_cb()
        finally:
            context.close()
        if failures:
            raise RefusedError(f"write to {pool}", failures[0], f"{len(failures)} of {len(names)} writes failed")
        return len(names)

    def _look_at_latest_osdmap(self) -> None:
        # an idle client's map gets old, and the former primary of an erasure-coded PG answers for good with ENOENT
        self.cluster.wait_for_latest_osdmap()


def serve() -> None:
    """Answer until standard input closes."""
    agent = Agent(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(agent, request.pop("do"))(**request)}
        except RefusedError as refusal:
            answer = {"error": str(refusal), "code": refusal.code, "command": refusal.command}
        except rados.Error as error:
            answer = {"error": str(error), "code": -abs(getattr(error, "errno", None) or 5)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    # no shutdown: it waits for answers that may never come, and the process ends here anyway
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    serve()
