"""The automatic mode inside a mgr on a twin: real code but for the mgr, the clock and the driver's thread."""

from __future__ import annotations

import contextlib
import enum
import json
import logging
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest
from mgr_stand_in import CommandResult

from ceph_tuner.core.autopilot.contract import Rollout, Stage
from ceph_tuner.core.autopilot.events import Answered
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.ceph.ports import Clock, Store
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.measure.sample import Window
from tuner import compat
from tuner.collect import Collector
from tuner.commander import MgrCommander
from tuner.guard_windows import GuardWindows
from tuner.inventory import MgrInventory
from tuner.modes import Modes
from tuner.options import DEFAULTS
from tuner.sampler import Sampler
from tuner.service import Service
from twin_cluster.cluster import TwinCluster
from twin_cluster.mgr import TwinMgr
from twins import small_twin

QUICK: Dict[str, Any] = {
    "auto_window": 10.0,
    "auto_settle": 5.0,
    "auto_quiet": 0.0,
    "auto_baseline_windows": 2,
    "auto_least_windows": 2,
    "auto_most_windows": 6,
    "auto_hold_windows": 2,
}
ALTERNATING = Rollout("osd", (Stage(("osd",), (0, 1, 2, 3)),), alternating=True)
ROLLOUT = Rollout("osd", (Stage(("osd.0",), (0,), (1, 2, 3)), Stage(("osd",), (0, 1, 2, 3))))


class RunningMgr(TwinMgr):
    """`MgrModule`, as far as the plugin uses it; `checks` are health checks beside the twin's own."""

    class ClusterLogPrio(enum.Enum):
        """As Ceph's."""

        INFO = 1
        WARN = 2

    def __init__(self, twin: TwinCluster) -> None:
        super().__init__(twin.twin)
        self._cluster = twin
        self.log = logging.getLogger("tuner")
        self.lines: List[str] = []
        self.progress: List[Any] = []
        self.checks: Dict[str, Dict[str, Any]] = {}
        self.status = ""
        self.osd_stat: Dict[str, Any] = {}

    def get(self, data_name: str) -> Any:
        if data_name == "health":
            health = json.loads(self._cluster.commander.mon("health", {}))
            health["checks"].update(self.checks)
            return {"json": json.dumps({**health, **({"status": self.status} if self.status else {})})}
        return super().get(data_name)

    def send_command(
        self, result: Any, svc_type: str, svc_id: str, command: str, tag: str, inbuf: Optional[str] = None
    ) -> None:
        prefix = json.loads(command)["prefix"]
        if svc_type == "mon" and prefix == "health":
            result.complete(0, self.get("health")["json"], "")
        elif svc_type == "mon" and prefix == "osd stat" and self.osd_stat:
            result.complete(0, json.dumps(self.osd_stat), "")
        else:
            super().send_command(result, svc_type, svc_id, command, tag, inbuf)

    def get_mgr_id(self) -> str:
        return "a"

    def cluster_log(self, channel: str, priority: Any, message: str) -> None:
        self.lines.append(message)

    def remote(self, module_name: str, method_name: str, *arguments: Any, **named: Any) -> None:
        self.progress.append((method_name, *arguments))


class OnTwin:
    """One active mgr. Time goes on by `sample` alone."""

    def __init__(self, twin: Optional[TwinCluster] = None, **options: Any) -> None:
        self.twin = twin or small_twin()
        self.options = {**DEFAULTS, **QUICK, **options}
        self.mgr = RunningMgr(self.twin)
        self.commander = MgrCommander(self.mgr, CommandResult)
        self.collector = Collector(self.mgr, self.commander, compat.counters(self.mgr))
        self.blind = False
        self.sampler = Sampler(self.collector, lambda: self.service.history(), self.twin.clock.now)
        self.service = Service(
            self.commander,
            self.sampler,
            MgrInventory(self.mgr, lambda: self.collector.born),
            self.options.__getitem__,
            "ceph tuner in mgr.a",
            self.twin.clock.now,
        )
        self.modes = Modes(
            self.mgr,
            self.service,
            self.sampler,
            lambda: self.collector.born,
            lambda osd: compat.latest_counter(self.mgr, osd, "osd.op_w"),
            self.options.__getitem__,
            self.twin.clock,
            new_lock,
        )
        self.driver = self.modes.whole.driver

    def sample(self, count: int = 1) -> None:
        """Samples, each with the turn that follows it; missed ones while it is blind."""
        for _ in range(count):
            self.twin.clock.sleep(5.0)
            if not self.blind:
                self.sampler.tick()
            self.modes.attempt()
            self.modes.sampled()
            with contextlib.suppress(TunerError):
                self.modes.keep_regimes()
            self.turn()

    def turn(self) -> None:
        """One of each driver."""
        for part in (*self.modes.all, self.modes.boosts, *self.modes.books.all):
            part.driver.attempt()

    def during(self, work: Callable[[], Any]) -> Any:
        """Do an operator's work in a thread of its own, while the drivers take their turns."""
        found: List[Any] = []

        def run() -> None:
            try:
                found.append(work())
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            self.turn()
            thread.join(0.01)
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def until(self, phase: str, most: int = 100) -> None:
        for _ in range(most):
            if self.driver.state.phase == phase:
                return
            self.sample()
        raise AssertionError(f"{self.driver.state.phase}, not {phase}: {self.driver.problem}")

    def on_trial(self, objective: str = "client.p95_ms<=0.01", rollout: Rollout = ROLLOUT, **settings: Any) -> OnTwin:
        """Switched on, with an objective that is missed, and a proposal of these settings on the cluster."""
        self.service.slo_commands.set(objective, False, 1.0, "")
        self.options["worker_python"] = "/no/such/python"
        self.during(lambda: self.modes.switch("auto"))
        self.until("asking")
        for thread in threading.enumerate():
            if thread.name == "tuner-asking":
                # its refusal is not taken: the answer below comes first
                thread.join()
        self.driver.inbox.clear()
        self.driver.inbox.post(Answered(self.twin.clock.now(), settings or {"osd_max_scrubs": 3}, "a test", rollout))
        self.until("trying")
        return self

    def entries(self) -> List[Any]:
        return self.twin.applier().history()

    def table(self) -> Dict[Any, str]:
        return {(row.who, row.name): row.value for row in self.service.config.dump()}

    def trail(self) -> List[str]:
        return [record["what"] for record in self.modes.past(100) if not record["refers"]]


def new_lock(store: Store, clock: Clock, who: str) -> Lock:
    return Lock(store, clock, this_process(who), may_live, heartbeat=False)


def answering(directory: Path, text: str) -> str:
    """A worker that gives this answer, whatever it is asked: a program for `worker_python`."""
    answer, program = directory / "answer", directory / "worker"
    answer.write_text(text)
    program.write_text(f"#!/bin/sh\nexec cat {answer}\n")
    program.chmod(0o755)
    return str(program)


def closed_windows(monkeypatch: pytest.MonkeyPatch) -> List[Window]:
    """The guard's windows, put into this list as they close from now on."""
    windows: List[Window] = []
    closed = GuardWindows.closed

    def kept_too(self: GuardWindows, at: float, policy: Policy) -> List[Window]:
        own = closed(self, at, policy)
        windows.extend(own)
        return own

    monkeypatch.setattr(GuardWindows, "closed", kept_too)
    return windows
