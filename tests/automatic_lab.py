"""A lab whose plugin is in the automatic mode, with trials of one knob that take ten seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, List

import mgr_boundaries
import waiting
from ceph_lab.cluster import Lab
from ceph_lab.processes import command_line
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX, Plugin
from ceph_tuner.core.autopilot.audit_log import KEPT, Audit, AuditRecord
from ceph_tuner.core.autopilot.executor import KEY
from ceph_tuner.core.autopilot.state import OBSERVING, AutopilotState
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.guardian import KEY as GUARDIAN
from ceph_tuner.core.changes.journal import UNDONE, Entry, Journal
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.shipped.plugin_files import LIBRARY, MODULE
from config_dump import osd_entries
from lab_mgrs import LabMgrs

KNOB = "osd_max_scrubs"

MISSED, MET = "scrub.pgs_late <= 0", "scrub.pgs_late <= 100000"
"""An objective that part of the OSDs cannot show: a trial passes its stages, and is kept once the objective is met."""

OPTIONS = {
    "sample_interval": 1,
    "worker_python": "/lab/worker",
    # by itself it would let old and new settings take turns on so small a cluster
    "auto_canary": "host",
    "auto_window": 1,
    "auto_settle": 0,
    "auto_baseline_windows": 1,
    "auto_least_windows": 1,
    "auto_hold_windows": 1,
    "auto_back_off": 0,
    "auto_quiet": 0,
    "auto_trials": 1000,
    "auto_changes_per_day": 10000,
    "guard_windows": 1,
    "auto_miss_windows": 1,
}
WIDER = """

for _item in fields(Policy):
    if _item.metadata["low"] is not None:
        _item.metadata = {**_item.metadata, "low": min(1, _item.metadata["low"])}
"""
"""Appended to the lab's copy of the policy: shorter windows than anybody should want."""

COUNTED = """

from .boundaries import install

install(MgrCommander)
"""
"""Appended to its copy of the commander."""

WORKER = f"""#!/usr/bin/python3
import json, os, time
while os.path.exists("/lab/worker.hangs"):
    time.sleep(0.1)
settings = {{"{KNOB}": int(open("/lab/worker.value").read())}}
print(json.dumps({{"version": 1, "ok": True, "verdict": {{"state": "searching", "reason": "a test"}},
                   "proposals": [{{"settings": settings, "why": "as the test wants it"}}]}}))
"""

_LATE = {"pool": "rbd", "var": "deep_scrub_interval"}


class AutomaticLab:
    """Begins trials, and looks at what they leave. Reads the store itself, so that it sees as much without a mgr."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self.lab, self.cluster = lab, cluster
        self.plugin = Plugin(cluster, SystemClock())
        self.mgrs = LabMgrs(lab, cluster.commander)
        self.dead = self._file("boundaries.dead")
        self._plan, self._trace = self._file("boundaries.plan"), self._file("boundaries.trace")
        self.worker_hangs = self._file("worker.hangs")

    def set_up(self) -> None:
        """Install the plugin with the boundaries' counter in it, and switch the automatic mode on."""
        self.plugin.install(enable=False)
        tuner, policy = (self.lab.mgr_modules / name for name in (MODULE, f"{LIBRARY}/core/autopilot/policy.py"))
        for path, more in ((policy, WIDER), (tuner / "commander.py", COUNTED)):
            with path.open("a") as installed:
                installed.write(more)
        (tuner / "boundaries.py").write_text(Path(mgr_boundaries.__file__).read_text())
        worker = self._file("worker")
        worker.write_text(WORKER)
        worker.chmod(0o755)
        if self.plugin.status().enabled:
            self.disable()
        self.enable()
        for name, value in OPTIONS.items():
            self.mon("config set", who="mgr", name=OPTION_PREFIX + name, value=str(value))
        self.mon("osd pool set", **_LATE, val="1")
        self.objective(MET)
        self.until(lambda: bool(self.mon("tuner auto on")), 30)

    def close(self) -> None:
        """Take everything out, whatever a test that failed has left dead."""
        self.mgrs.revive()
        for path in (self.dead, self._plan, self._trace, self.worker_hangs):
            path.unlink(missing_ok=True)
        with suppress(TunerError):
            self.mon("tuner auto off")
        self.until(self._undone, 60)
        self.plugin.uninstall(purge=True)
        self.mon("osd pool set", **_LATE, val="0")

    def mon(self, prefix: str, **arguments: str) -> str:
        """Answer of a command."""
        return self.cluster.commander.mon(prefix, arguments)

    def enable(self) -> None:
        """Load the plugin, and wait until it answers."""
        self.mon("mgr module enable", module=MODULE, force="--force")
        self.until(self._answers, 60)

    def disable(self) -> None:
        """Unload it: the mgr executes itself anew."""
        self.mon("mgr module disable", module=MODULE)

    # what there is

    def config(self) -> List[ConfigEntry]:
        """The configuration of the OSDs."""
        return osd_entries(self.cluster.config)

    def shown(self) -> List[str]:
        """The knob's value at each running OSD."""
        return [self.cluster.config.effective(osd)[KNOB] for osd in self.cluster.config.osds("osd")]

    def state(self) -> AutopilotState:
        """As it is stored."""
        return AutopilotState.from_dict(json.loads(self.cluster.store.get(KEY) or "{}"))

    def records(self) -> List[AuditRecord]:
        """The audit trail."""
        return Audit(self.cluster.store).newest()

    def entries(self) -> List[Entry]:
        """The journal."""
        return Journal(self.cluster.store).entries()

    def settled(self) -> bool:
        """Whether nothing is on trial, nor half written."""
        state = self.state()
        return (
            state.phase == OBSERVING
            and not state.on_cluster
            and not any(entry.unfinished or entry.trial for entry in self.entries())
        )

    def processes(self, words: str) -> List[int]:
        """Ids of the processes inside the lab whose command line has these words."""
        assert self.lab.state.keeper is not None
        inside, found = os.readlink(f"/proc/{self.lab.state.keeper.pid}/ns/mnt"), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            # whatever ends meanwhile is none of them
            with suppress(OSError):
                if words in " ".join(command_line(int(pid))) and os.readlink(f"/proc/{pid}/ns/mnt") == inside:
                    found.append(int(pid))
        return found

    # what is done to it

    def objective(self, text: str) -> None:
        """Want something else, whether a mgr runs or not."""
        wanted = parse_slo({"objectives": [{"objective": text, "hard": False}]}, "cluster")
        self.cluster.store.set("slo", json.dumps(wanted.to_dict()))

    def begin(self, phase: str = "", seconds: float = 60.0) -> None:
        """Have a trial begin that will be kept, and wait until it is in a phase, or its mgr dead."""
        self.dead.unlink(missing_ok=True)
        now = [entry.value for entry in self.config() if entry.name == KNOB]
        self._file("worker.value").write_text("4" if now == ["2"] else "2")
        self.objective(MISSED)
        # a proposal is dropped where the objective is met before anything is written
        self.until(lambda: self.dead.exists() or self.state().on_cluster or self.state().phase == phase, seconds)
        self.objective(MET)
        if phase:
            self.until(lambda: self.state().phase == phase, seconds)

    def boundaries(self) -> List[str]:
        """Of one whole trial, which is kept."""
        self.begin()
        self.until(self.settled, 60)
        assert self.records()[-1].what == KEPT, self.records()[-1]
        # what it does at the end of a trial comes after its state
        time.sleep(1.5)
        return self._trace.read_text().splitlines()

    @contextmanager
    def guardian(self) -> Iterator[None]:
        """Have the program watch meanwhile."""
        words = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", "guardian", "--every", "1"]
        with subprocess.Popen([*words, "--cluster", self.lab.name], stderr=subprocess.PIPE, text=True) as process:
            try:
                self.until(lambda: self.cluster.store.get(GUARDIAN) is not None, 30)
                yield
            finally:
                process.terminate()
                _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert self.cluster.store.get(GUARDIAN) is None

    def die_at(self, name: str, nth: int, in_flight: bool) -> None:
        """Have the mgr die at the nth boundary of that name in the next trial."""
        self._plan.write_text(json.dumps({"name": name, "nth": nth, "in_flight": in_flight}))
        self.begin()
        self.until(self.dead.exists, 60)

    def until(self, condition: Callable[[], bool], seconds: float) -> float:
        """Wait, and give the seconds that it took; a cluster that does not answer is asked again."""
        began = time.monotonic()
        waiting.until(condition, seconds, self._last_words, pause=0.1, despite=(TunerError,))
        return time.monotonic() - began

    def _undone(self) -> bool:
        if any(entry.state != UNDONE for entry in self.entries()):
            self.cluster.applier().undo(everything=True)
        return True

    def _answers(self) -> bool:
        self.mgrs.start()
        return bool(self.mon("tuner auto explain"))

    def _last_words(self) -> str:
        with suppress(TunerError, ValueError, KeyError):
            explained = json.loads(self.mon("tuner auto explain"))
            return "; ".join(f"{name}: {explained.get(name)}" for name in ("words", "phase", "waits_for", "problem"))
        return ""

    def _file(self, name: str) -> Path:
        return self.lab.host_path(f"/lab/{name}")
