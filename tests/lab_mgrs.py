"""The mgrs of a lab: which one is active, how one dies, and how the next one goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any, Dict

from ceph_lab.cluster import Lab
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import TunerError
from waiting import until


def kill(lab: Lab, daemon: str) -> None:
    """End a daemon as the kernel would."""
    pid = lab.daemon_pid(daemon)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


class LabMgrs:
    """One that was killed stays dead until it is started here."""

    def __init__(self, lab: Lab, commander: Commander) -> None:
        self._lab, self._commander = lab, commander

    def seen(self) -> Dict[str, Any]:
        """The mgrs, as the monitors see them."""
        found: Dict[str, Any] = json.loads(self._commander.mon("mgr dump", {}))
        return found

    def start(self) -> None:
        """Also again: one that starts while a dead one still holds its pid file ends, and Reef's may die of itself."""
        for mgr in self._lab.mgrs:
            self._lab.start_daemon(f"mgr.{mgr}")

    def revive(self) -> None:
        """Start those that do not run."""
        self.start()
        until(lambda: self.seen()["available"], 90, despite=(TunerError,))

    def kill_active(self) -> None:
        """End the active one as the kernel would, and have the next one go on: a standby where there is one."""
        gone = self.seen()
        kill(self._lab, f"mgr.{gone['active_name']}")
        self.fail_over(gone)

    def fail_over(self, gone: Dict[str, Any]) -> None:
        """Have the next mgr become active after one died, and the dead one come back as a standby.

        `gone` is what the monitors saw while that one was active.
        """
        name = gone["active_name"]
        until(lambda: self._lab.daemon_pid(f"mgr.{name}") is None, 30, pause=0.1)
        if gone["standbys"]:
            # the monitors would notice by themselves, after half a minute
            self._commander.mon("mgr fail", {"who": name})
        until(lambda: self._took_over(gone["active_gid"]), 90, self.seen, pause=0.1, despite=(TunerError,))
        if not gone["standbys"]:
            # Reef's mgr, active again at once, may die of `ceph_assert(ckh)`: a client came before its keys
            time.sleep(1.5)
            self.revive()

    def _took_over(self, gone: int) -> bool:
        self.start()
        found = self.seen()
        return bool(found["available"]) and found["active_gid"] != gone
