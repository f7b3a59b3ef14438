"""The automatic mode on a real cluster under load: adapts, takes back a bad proposal, and is not fooled by the load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from typing import Any, Callable, Dict, Iterator, List

import pytest

import waiting
from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.teardown import down
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX, Plugin
from ceph_tuner.core.autopilot.audit_log import APPLY, KEPT, PROPOSAL, TAKEN_BACK, Audit, AuditRecord
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import TunerError
from config_dump import osd_entries
from slow_drive import SLOW_NVME

pytestmark = pytest.mark.cluster

WINDOW_S, SETTLE_S, INTERVAL_S, GUARD_WINDOWS = 8.0, 3.0, 2.0, 3
QUICK = {
    "sample_interval": INTERVAL_S,
    "auto_window": WINDOW_S,
    "auto_settle": SETTLE_S,
    "auto_miss_windows": 5,
    "auto_baseline_windows": 4,
    "auto_least_windows": 4,
    "auto_most_windows": 12,
    "auto_hold_windows": 3,
    "auto_quiet": 5,
    "auto_back_off": 15,
    "auto_changes_per_day": 1000,
    "guard_windows": GUARD_WINDOWS,
}
SHORT = {"auto_window": 5.0, "auto_settle": 2.0, "auto_most_windows": 8, "auto_miss_windows": 3}
"""Enough where no gain is to be shown."""
P95, P99 = "client.p95_ms", "client.p99_ms"

PLANTED = """#!/usr/bin/python3
import json
print(json.dumps({{"version": 1, "ok": True, "verdict": {{"state": "searching", "reason": "planted"}},
                   "proposals": [{{"settings": {settings!r}, "why": "planted"}}]}}))
"""

STARVED = {
    **{f"osd_mclock_scheduler_client_{part}": value for part, value in (("res", 0.0), ("wgt", 1), ("lim", 0.02))},
    **{
        f"osd_mclock_scheduler_background_recovery_{part}": value
        for part, value in (("res", 0.5), ("wgt", 1), ("lim", 0.0))
    },
    **{
        f"osd_mclock_scheduler_background_best_effort_{part}": value
        for part, value in (("res", 0.5), ("wgt", 9), ("lim", 0.0))
    },
}
"""Clients get a fiftieth of the capacity, though there is more."""

WITHOUT_EFFECT = {"osd_max_trimming_pgs": 3}
"""Nothing is trimmed in these tests."""


class Flown:
    """A lab in the automatic mode, and the loads on it."""

    def __init__(self, lab: Lab, cluster: Cluster, **options: Any) -> None:
        self.lab, self.cluster = lab, cluster
        self.plugin = Plugin(cluster, SystemClock())
        self._load: List[subprocess.Popen[bytes]] = []
        self.plugin.install()
        for name, value in {**QUICK, **options}.items():
            self.mon("config set", who="mgr", name=OPTION_PREFIX + name, value=str(value))

    def close(self) -> None:
        self.stop_load()
        with suppress(TunerError):
            self.mon("tuner auto off")
        with suppress(TunerError):
            self.cluster.applier().undo(everything=True)
        self.plugin.uninstall(purge=True)

    def mon(self, prefix: str, **arguments: str) -> str:
        return self.cluster.commander.mon(prefix, arguments)

    def wants(self, *objectives: str, soft: str = "") -> None:
        listed: List[Any] = [*objectives, *([{"objective": soft, "hard": False}] if soft else [])]
        self.cluster.store.set("slo", json.dumps({"name": "flown", "objectives": listed}))

    def load(self, scenario: str, **options: Any) -> None:
        """Put other work on the cluster."""
        self.stop_load()
        chosen = [word for name, value in options.items() for word in ("--option", f"{name}={value}")]
        program = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()"]
        # longer than any test: clients that end in mid-trial are another case
        command = [*program, "lab", "load", "scenario", scenario, "--name", self.lab.name, "--seconds", "3600", *chosen]
        self._load.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def stop_load(self) -> None:
        while self._load:
            running = self._load.pop()
            running.send_signal(signal.SIGINT)
            running.wait(120)

    def plant(self, settings: Dict[str, Any]) -> None:
        """Have the optimiser propose this from now on."""
        worker = self.lab.mgr_modules.parent / "planted"
        worker.write_text(PLANTED.format(settings=settings))
        worker.chmod(0o755)
        inside = f"/lab/{worker.name}"
        self.mon("config set", who="mgr", name=OPTION_PREFIX + "worker_python", value=inside)

    def explained(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(self.mon("tuner auto explain"))
        return found

    def seen(self, metric: str) -> float:
        """Mean over the last minute."""
        return float(json.loads(self.mon("tuner status"))["window"]["measures"].get(metric, [0.0])[0])

    def meets_all(self) -> bool:
        """Whether clients and scrub are at work, and both objectives met."""
        clients = self.seen("client.iops") > 200 and 0 < self.seen(P99) <= 60
        return clients and self.seen("scrub.bytes_s") > 30e6

    def records(self, what: str = "") -> List[AuditRecord]:
        return [record for record in Audit(self.cluster.store).newest() if what in ("", record.what)]

    def settings(self) -> List[ConfigEntry]:
        return osd_entries(self.cluster.config)

    def until(self, condition: Callable[[], Any], seconds: float) -> Any:
        def words() -> str:
            lines = "\n".join(self.explained()["words"])
            return f"{lines}\n{self.records()[-5:]}"

        # a mgr that is being restarted does not answer
        return waiting.until(condition, seconds, words, pause=1, despite=(TunerError, KeyError, TypeError))


@pytest.fixture(scope="module")
def lab(needs_lab: None) -> Iterator[Lab]:
    """One of its own: what others do on a shared one would be taken for the load."""
    name = f"test-{os.getpid()}-automatic"
    try:
        yield up(name, SLOW_NVME, lambda line: None)
    finally:
        down(name, lambda line: None)


@pytest.fixture
def flown(lab: Lab) -> Iterator[Flown]:
    with closing(Flown(lab, open_cluster(lab.name))) as found:
        yield found


@pytest.fixture
def flown_alone(needs_lab: None) -> Iterator[Flown]:
    """On the default drive: on a slower one scrub outlasts the turns, which cannot be told then."""
    name = f"test-{os.getpid()}-alone"
    try:
        lab = up(name, {}, lambda line: None)
        with closing(Flown(lab, open_cluster(name))) as found:
            yield found
    finally:
        down(name, lambda line: None)


DONE = {APPLY: "written", TAKEN_BACK: "taken back", KEPT: "kept"}


def done(flown: Flown, what: str, after: int) -> List[AuditRecord]:
    """Records of what succeeded, after that number: one that failed has an outcome too."""
    records = flown.records(what)
    return [record for record in records if record.number > after and record.refers and record.outcome == DONE[what]]


@pytest.mark.quiet
@pytest.mark.timeout(1800)
def test_it_holds_the_objectives_adapts_to_another_load_and_takes_a_planted_proposal_back(flown_alone: Flown) -> None:
    flown = flown_alone
    # clients alone: the objectives are met, and nothing is touched
    before = flown.settings()
    flown.wants(f"{P99} <= 60 ms", "scrub.bytes_s >= 30 MB/s")
    flown.load("client", rate=250)
    flown.until(lambda: flown.seen("client.iops") > 200, 120)
    flown.mon("tuner auto on")
    time.sleep(6 * WINDOW_S)
    assert flown.explained()["missed"] == []
    assert flown.settings() == before
    assert not flown.records(PROPOSAL)

    # scrub begins, and clients wait for its chunks: the real optimiser finds settings that are kept
    flown.load("client-scrub", rate=250)
    flown.until(lambda: P99 in " ".join(flown.explained()["missed"]), 240)
    # on a busy machine the first verdict may be that nothing can be told; it pauses, and another proposal follows
    flown.until(lambda: done(flown, KEPT, 0), 1000)
    kept = flown.settings()
    assert kept != before
    flown.until(lambda: flown.meets_all(), 120)
    time.sleep(4 * WINDOW_S)
    # both kinds of work still run: what is not seen is not missed either
    assert flown.meets_all()
    assert flown.explained()["missed"] == []

    # a planted proposal starves the clients: taken back before the objective was broken for more than three windows
    flown.plant(STARVED)
    last = flown.records()[-1].number
    flown.wants(f"{P99} <= 60 ms", "scrub.bytes_s >= 30 MB/s", soft=f"{P95} <= 1 ms")
    (applied, *_) = flown.until(lambda: done(flown, APPLY, last), 240)
    (back, *_) = flown.until(lambda: done(flown, TAKEN_BACK, last), 120)
    # for what it did to the clients, and for nothing else
    (decided,) = [record for record in flown.records(TAKEN_BACK) if record.number == back.refers]
    assert decided.detail["rule"] == "slo", decided
    assert back.at - applied.at <= SETTLE_S + GUARD_WINDOWS * WINDOW_S + 3 * INTERVAL_S
    assert flown.settings() == kept
    flown.mon("tuner auto off")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_load_that_becomes_lighter_in_mid_trial_is_not_taken_for_an_effect(flown: Flown) -> None:
    before = flown.settings()
    flown.plant(WITHOUT_EFFECT)
    for name, value in SHORT.items():
        flown.mon("config set", who="mgr", name=OPTION_PREFIX + name, value=str(value))
    # side by side, as an operator may ask for on so small a cluster
    flown.mon("config set", who="mgr", name=OPTION_PREFIX + "auto_canary", value="host")
    flown.wants(f"{P95} <= 5000 ms", soft=f"{P95} <= 0.1 ms")
    flown.load("client", rate=100)
    flown.until(lambda: flown.seen("client.iops") > 75, 120)
    flown.mon("tuner auto on")
    flown.until(lambda: done(flown, APPLY, 0), 240)
    flown.load("client", rate=30)
    (back, *_) = flown.until(lambda: done(flown, TAKEN_BACK, 0), 600)
    assert not flown.records(KEPT)
    assert flown.settings() == before
    (decided,) = [record for record in flown.records() if record.number == back.refers]
    # where latency fell on all OSDs, that is not credited to the settings: there is less to do
    assert "inconclusive" in decided.why
    assert "clients " in decided.why or "lower" not in decided.why, decided.why
