from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import ContextManager, List, Mapping, Optional, Sequence


class HostLab:
    """Runs small programs on the host in the place of those inside a lab."""

    name, conf = "host", "/nowhere/ceph.conf"
    osds: List[int] = [0, 1, 2]  # noqa: RUF012 - replaced whole, never changed
    classes: Mapping[str, Sequence[int]] = {"ssd": (0, 1, 2)}

    def __init__(self, program: str) -> None:
        self.program = program

    def argv(self, command: Sequence[str]) -> List[str]:
        return [sys.executable, "-c", self.program]

    def run(self, command: Sequence[str], payload: Optional[str] = None, timeout: float = 60) -> str:
        return ""

    def in_haste(self) -> ContextManager[None]:
        return nullcontext()

    def stop_osd(self, osd: int) -> None:
        raise AssertionError("not asked for")

    def start_osd(self, osd: int) -> None:
        raise AssertionError("not asked for")
