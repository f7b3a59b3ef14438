"""Put into the lab's copy of the plugin: counts what the automatic mode writes and checks, and dies at a chosen place.

A trial's first boundary is the state with phase `asking`. `boundaries.plan` in the lab says where to die: at the
`nth` boundary of a `name`; `in_flight`: with the command on its way, else just before it is sent, which is just after
the one before was answered. It is read by the mgr itself, so this file is self-contained, for the Pythons of both
releases.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, List, Optional, Set

PLAN, TRACE, DEAD = (Path("/lab") / f"boundaries.{name}" for name in ("plan", "trace", "dead"))
WRITING = "tuner-writing"
"""Name of the threads in which the automatic mode writes."""
ON_ITS_WAY_S = 0.002
"""A write takes 3 to 5 ms: some of them arrive, some do not."""


def boundary(prefix: str, arguments: Any, payload: str) -> Optional[str]:
    """Name a write; None for what is none."""
    if prefix in ("config set", "config rm"):
        return f"step {prefix[7:]} {arguments['who']}"
    if prefix not in ("config-key set", "config-key rm"):
        return None
    kind, _, _ = str(arguments["key"])[len("mgr/tuner/") :].partition("/")
    if prefix == "config-key rm":
        return f"{kind} removed"
    if kind == "audit":
        record = json.loads(payload.split("\n")[-1])
        return f"audit {record['what']}{', outcome' if record['refers'] else ''}"
    if kind not in ("auto", "journal", "lock"):
        return kind
    document = json.loads(payload)
    if kind == "auto":
        return f"state {document['phase']}"
    if kind == "lock":
        return "lock held" if document["held"] else "lock claimed"
    kept = document["state"] == "applied" and not document["trial"]
    return f"journal {'kept' if kept else document['state']}"


class Boundaries:
    """Of the trial under way in this mgr."""

    def __init__(self) -> None:
        self._names: List[str] = []
        self._claims: Set[str] = set()
        self._held: Set[str] = set()

    def passed(self, name: Optional[str], key: str = "") -> bool:
        """Count a boundary before it is passed; whether to die in it, with the command on its way."""
        # other threads sample, and renew the lock
        if name is None or threading.current_thread().name != WRITING:
            return False
        if name == "state asking":
            self._names = []
            TRACE.write_text("")
        if self._by_chance(name, key):
            return False
        self._names.append(name)
        with TRACE.open("a") as trace:
            trace.write(name + "\n")
        if not PLAN.exists():
            return False
        plan = json.loads(PLAN.read_text())
        if name != plan["name"] or self._names.count(name) != plan["nth"]:
            return False
        PLAN.unlink()
        DEAD.write_text(name)
        if not plan["in_flight"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def _by_chance(self, name: str, key: str) -> bool:
        """Whether it is there as often as time wants it: asked again, a claim renewed, one that a dead mgr left."""
        if name == "lock claimed":
            self._claims.add(key)
        renewed = name == "lock held" and key in self._held
        self._held |= {key} if name == "lock held" else set()
        others = name == "lock removed" and key not in self._claims
        states = [other for other in self._names if other.startswith("state ")]
        idle = name == "check" and (self._names[-1:] == ["check"] or states[-1:] != ["state writing"])
        return renewed or others or idle


def install(commander: Any) -> None:
    """Watch the plugin's class of commands."""
    seen, mon, tell, tell_each = Boundaries(), commander.mon, commander.tell, commander.tell_each

    def watched_mon(self: Any, prefix: str, arguments: Any, payload: str = "") -> str:
        if seen.passed(boundary(prefix, arguments, payload), arguments.get("key", "")):
            self._send("mon", "", prefix, arguments, payload)
            time.sleep(ON_ITS_WAY_S)
            os.kill(os.getpid(), signal.SIGKILL)
        return str(mon(self, prefix, arguments, payload))

    def watched_tell(self: Any, daemon: str, prefix: str, arguments: Any) -> str:
        if prefix in ("config show", "config diff") and seen.passed("check"):
            os.kill(os.getpid(), signal.SIGKILL)
        return str(tell(self, daemon, prefix, arguments))

    def watched_tell_each(self: Any, daemons: Any, prefix: str, arguments: Any, within: float, keep: Any = ()) -> Any:
        if prefix in ("config show", "config diff") and seen.passed("check"):
            os.kill(os.getpid(), signal.SIGKILL)
        return tell_each(self, daemons, prefix, arguments, within, keep)

    commander.mon, commander.tell, commander.tell_each = watched_mon, watched_tell, watched_tell_each
