"""The sampling thread of the module goes on at its interval while a stage is written or taken back by another."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, List

import pytest
from automatic_on_twin import OnTwin
from loaded_module import Loaded

from tuner import module as module_file

INTERVAL_S = 5.0
"""Of the twin's time, that each sample lets go by."""
SAMPLES = 6


class SlowMonitors:
    """Monitors that keep a write of an OSD's option to themselves until they are let go."""

    def __init__(self, aboard: OnTwin) -> None:
        self.writing, self.go_on = threading.Event(), threading.Event()
        self._send = aboard.mgr.send_command
        aboard.mgr.send_command = self.send_command  # type: ignore[method-assign]

    def send_command(self, result: Any, svc_type: str, svc_id: str, command: str, *rest: Any) -> None:
        document = json.loads(command)
        if document["prefix"] in ("config set", "config rm") and document["who"].startswith("osd"):
            self.writing.set()
            # a mgr sends, and goes on: others' commands are answered meanwhile
            answer = threading.Thread(target=self._later, args=(result, svc_type, svc_id, command, *rest), daemon=True)
            answer.start()
        else:
            self._send(result, svc_type, svc_id, command, *rest)

    def _later(self, *command: Any) -> None:
        self.go_on.wait(60)
        self._send(*command)


@pytest.fixture
def aboard() -> OnTwin:
    return OnTwin().on_trial()


def test_no_gap_is_longer_than_an_interval_while_a_trial_is_taken_back(
    aboard: OnTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitors, module, tick = SlowMonitors(aboard), Loaded(aboard), aboard.sampler.tick
    stamps: List[float] = []

    def at_the_next_interval() -> None:
        aboard.twin.clock.sleep(INTERVAL_S)
        tick()
        stamps.append(aboard.sampler.latest().at)  # type: ignore[union-attr]

    monkeypatch.setattr(aboard.sampler, "tick", at_the_next_interval)
    monkeypatch.setattr(module_file, "LEAST_PAUSE_S", 0.05)
    aboard.options["sample_interval"] = 0.0
    serving = threading.Thread(target=module.serve, daemon=True)
    serving.start()
    switching = threading.Thread(target=lambda: module.run("auto_off"), daemon=True)
    try:
        switching.start()
        assert monitors.writing.wait(60)
        before = len(stamps)
        deadline = time.monotonic() + 60
        while len(stamps) < before + SAMPLES and time.monotonic() < deadline:
            time.sleep(0.02)
        assert aboard.driver.state.on_cluster
        during = stamps[max(0, before - 1) :]
        assert len(during) >= SAMPLES
        assert {later - earlier for earlier, later in zip(during, during[1:])} == {INTERVAL_S}
    finally:
        monitors.go_on.set()
        switching.join(60)
        module.shutdown()
        serving.join(60)
    assert not aboard.driver.state.on_cluster
