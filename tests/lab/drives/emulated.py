"""Runs the drive's C code where it lives: in Ceph's tree, by that tree's own Python, on a virtual clock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Sequence, Tuple

from ceph_lab.processes import host_environment, run

READ, WRITE, FLUSH = 0, 1, 2

Request = Tuple[float, int, int, int]
"""When it is issued (seconds), what it is, offset and size in bytes."""

_VIRTUAL = """
import ctypes, json, sys
words, requests = json.load(sys.stdin)
drive = ctypes.CDLL("/mnt/drive.so")
drive.drive_new.restype = ctypes.c_void_p
drive.drive_new.argtypes = [ctypes.c_char_p]
drive.drive_submit.restype = ctypes.c_long
drive.drive_submit.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
drive.drive_advance.argtypes = [ctypes.c_void_p, ctypes.c_double]
drive.drive_done_at.restype = ctypes.c_double
drive.drive_done_at.argtypes = [ctypes.c_void_p, ctypes.c_long]
made = drive.drive_new(words.encode())
if not made:
    json.dump(None, sys.stdout)
    sys.exit()
tickets = [drive.drive_submit(made, at, kind, offset, size) for at, kind, offset, size in requests]
drive.drive_advance(made, 1e9)
json.dump([drive.drive_done_at(made, ticket) for ticket in tickets], sys.stdout)
"""

_MOUNTED = 'mount --bind "$library" "$tree/mnt" && exec chroot "$tree" "$@"'


@dataclass(frozen=True)
class EmulatedDrive:
    """The library, and the tree that it was compiled for."""

    tree: Path
    library: Path

    def inside(self, command: Sequence[str], payload: str = "", **values: str) -> str:
        """What a command prints in the tree, where the library is /mnt/drive.so."""
        environment = host_environment({"tree": str(self.tree), "library": str(self.library.parent), **values})
        argv = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", _MOUNTED, "sh", *command]
        return run(argv, environment=environment, payload=payload)

    def done(self, words: str, requests: Sequence[Request]) -> List[float]:
        """When each request is done, in seconds."""
        found: Any = json.loads(self.inside(["python3", "-c", _VIRTUAL], json.dumps([words, list(requests)])))
        assert found is not None, f"refused: {words}"
        return [float(each) for each in found]

    def refuses(self, words: str) -> bool:
        """Whether no drive is made of these words."""
        return self.inside(["python3", "-c", _VIRTUAL], json.dumps([words, []])) == "null"
