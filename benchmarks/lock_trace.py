"""Notes when a process gets into the tuner's lock, finds that it may write, and leaves: for measurements alone.

Put beside the library in a lab's mgr, and imported by the program's processes. Each note is a line of JSON in one file,
with the time of CLOCK_BOOTTIME, which all processes of a machine share and no step of a wall clock moves. Runs inside
ceph-mgr: standard library only, and nothing of the library.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

ENTERED, MAY_WRITE, LEFT = "entered", "may write", "left"
_VARIABLE = "CEPH_TUNER_LOCK_TRACE"
_IN_A_LAB = "/lab/lock.trace"


def install(lock: Any, path: Optional[str] = None) -> None:
    """Watch that class of locks."""
    trace = path or os.environ.get(_VARIABLE, _IN_A_LAB)
    acquire, release, check = lock._acquire, lock._release, lock.check

    def note(what: str, self: Any, at: float) -> None:
        line = {"at": at, "pid": os.getpid(), "who": self._holder.name, "what": what, "generation": self.generation}
        # one write of a few bytes: lines of several processes do not mix
        descriptor = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.write(descriptor, (json.dumps(line) + "\n").encode())
        finally:
            os.close(descriptor)

    def traced_acquire(self: Any, *arguments: Any) -> None:
        acquire(self, *arguments)
        note(ENTERED, self, now())

    def traced_check(self: Any) -> None:
        began = now()
        check(self)
        note(MAY_WRITE, self, began)

    def traced_release(self: Any) -> None:
        note(LEFT, self, now())
        release(self)

    lock._acquire, lock.check, lock._release = traced_acquire, traced_check, traced_release


def now() -> float:
    """Seconds since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def environment(path: Path) -> Dict[str, str]:
    """For a process that is to write its notes there."""
    return {_VARIABLE: str(path)}


def read(path: Path) -> List[Dict[str, Any]]:
    """All notes, in the order of their times. A last line that its writer did not finish is none."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = text.split("\n")[:-1]
    return sorted((json.loads(line) for line in lines), key=lambda note: float(note["at"]))


def two_inside(notes: Sequence[Mapping[str, Any]]) -> List[str]:
    """Where one was inside the lock while another was, in words; `notes` in the order of their times."""
    found: List[str] = []
    holders: Dict[int, str] = {}
    newest: Optional[Mapping[str, Any]] = None
    for note in notes:
        generation, who = int(note["generation"]), f"process {note['pid']} ({note['who']})"
        if note["what"] == ENTERED:
            if generation in holders:
                found.append(f"{who} entered as holder {generation}, and so had {holders[generation]}")
            holders[generation] = who
            if newest is None or generation > newest["generation"]:
                newest = note
        elif note["what"] == MAY_WRITE and newest is not None and generation < newest["generation"]:
            found.append(
                f"{who} was let write as holder {generation}, {note['at'] - newest['at']:.3f} s after "
                f"{holders[newest['generation']]} had entered as holder {newest['generation']}"
            )
    return found
