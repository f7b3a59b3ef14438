"""Lets the plugin be imported without a ceph-mgr: a stand-in for Ceph's own framework module `mgr_module`.

It has what the plugin takes from it, in the form of Reef (one registry of commands for the interpreter). What the
frameworks of both releases really do is tested on real clusters.
"""

from __future__ import annotations

import enum
import sys
import threading
import types
from typing import Any, Callable, Dict, Optional, Tuple

REGISTRY: Dict[str, Tuple[str, Callable[..., Any]]] = {}


class CommandResult:
    """As Ceph's: completed from elsewhere."""

    def __init__(self, tag: Optional[str] = None) -> None:
        self.ev = threading.Event()
        self.answer = (0, "", "")

    def complete(self, code: int, output: str, message: str) -> None:
        self.answer = (code, output, message)
        self.ev.set()

    def wait(self) -> Tuple[int, str, str]:
        self.ev.wait()
        return self.answer


def _command(permission: str) -> Callable[[str], Callable[[Any], Any]]:
    def prefix(name: str) -> Callable[[Any], Any]:
        def register(handler: Any) -> Any:
            REGISTRY[name] = (permission, handler)
            return handler

        return register

    return prefix


class MgrModule:
    """As much of it as is there without a mgr."""

    def __init__(self, *args: Any) -> None:
        raise RuntimeError("the module itself runs on real clusters only")


class NotifyType(str, enum.Enum):
    """What Ceph tells a module of; it passes the plain words."""

    osd_map = "osd_map"


framework: Any = types.ModuleType("mgr_module")
framework.CommandResult = CommandResult
framework.MgrModule = MgrModule
framework.NotifyType = NotifyType
framework.Option = dict
framework.CLICommand = object
framework.CLIReadCommand = _command("r")
framework.CLIWriteCommand = _command("w")
sys.modules.setdefault("mgr_module", framework)
