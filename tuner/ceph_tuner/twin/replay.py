"""Traces of Ceph's own queue, fed to the twin's: every answer must be the same, times as the same double."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Tuple, cast

from ceph_tuner.core.bounded import decoded, open_file, read_json
from ceph_tuner.core.errors import InputError
from ceph_tuner.twin.queue import DmClockQueue, Later, ServedRequest

LONGEST_LINE, LARGEST = 64 << 10, 1 << 30
"""Bytes of an event, and of a trace when it is unpacked."""


class Mismatch(NamedTuple):
    """A pull that the twin answers otherwise than Ceph did."""

    line: int
    expected: Dict[str, Any]
    found: Dict[str, Any]


class TraceReplay(NamedTuple):
    """What came of one trace file."""

    path: str
    events: int
    pulls: int
    mismatches: List[Mismatch]


def _lines(path: Path) -> Iterator[Tuple[int, str]]:
    """Numbered lines of a plain or gzip file, told apart by their first bytes; none of it is endless."""
    expected = "a readable trace, plain or gzip"
    with open_file(path, expected) as file:
        number, left = 0, LARGEST
        try:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
            while line := stream.readline(LONGEST_LINE + 1):
                number, left = number + 1, left - len(line)
                if len(line) > LONGEST_LINE or left < 0:
                    raise InputError(
                        f"{path}:{number}", "too much text", f"lines of {LONGEST_LINE} bytes, {LARGEST} in all"
                    )
                yield number, decoded(line, f"{path}:{number}")
        except (OSError, EOFError, zlib.error) as exc:
            raise InputError(str(path), str(exc), expected) from exc


def _answer(queue: DmClockQueue, now: float) -> Dict[str, Any]:
    answer = queue.pull(now)
    if isinstance(answer, ServedRequest):
        return {"id": answer.id, "class": answer.class_id, "phase": answer.phase}
    if isinstance(answer, Later):
        return {"future": answer.future}
    return {"none": True}


def _expected_pull(event: Dict[str, Any]) -> Dict[str, Any]:
    if "none" in event:
        return {"none": True}
    return {name: event[name] for name in ("id", "class", "phase", "future") if name in event}


def _parameters(entry: Dict[str, Any]) -> Tuple[int, float, float, float]:
    return int(entry["class"]), float(entry["reservation"]), float(entry["weight"]), float(entry["limit"])


def replay(path: Path) -> TraceReplay:
    """Feed one trace to a fresh queue. Raises InputError for a file that is no trace, with the line."""
    queue = DmClockQueue()
    events = pulls = 0
    mismatches: List[Mismatch] = []
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            event = read_json(line, f"{path}:{number}")
            kind = event["kind"]
            if kind == "config":
                queue = DmClockQueue()
                for entry in event["classes"]:
                    queue.set_class(*_parameters(entry))
            elif kind == "set":
                queue.set_class(*_parameters(event))
            elif kind == "add":
                queue.add(float(event["t"]), int(event["id"]), int(event["class"]), float(event["cost"]))
            elif kind == "pull":
                pulls += 1
                expected, answer = _expected_pull(event), _answer(queue, float(event["t"]))
                if answer != expected:
                    mismatches.append(Mismatch(number, expected, answer))
            else:
                raise InputError(f"{path}:{number}", f"kind {kind!r}", "config, add, set or pull")
        except (ValueError, KeyError, TypeError, IndexError) as exc:
            raise InputError(f"{path}:{number}", f"{type(exc).__name__} ({exc})", "an event of a queue trace") from exc
        events += 1
    if pulls == 0:
        raise InputError(str(path), "no pull in it", "a trace of the queue, one JSON event a line")
    return TraceReplay(str(path), events, pulls, mismatches)
