"""The module's threads: none is at work once it was shut down, and what several of them tell is told in order."""

from __future__ import annotations

import threading
import time
from typing import Any, List, Set

import pytest
from automatic_on_twin import OnTwin
from loaded_module import Loaded

import tuner.module as module_file


def ours(before: Set[threading.Thread]) -> Set[str]:
    """Names of the module's threads that run and did not before."""
    return {thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("tuner-")}


def until(true: Any, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_module_that_was_shut_down_has_no_thread_at_work() -> None:
    before = set(threading.enumerate())
    module = Loaded(OnTwin())
    serving = threading.Thread(target=module.serve, daemon=True)
    serving.start()
    until(lambda: {"tuner-modes", "tuner-automatic", "tuner-boost"} <= ours(before))
    module.shutdown()
    serving.join(10)
    # the one that has sent commands to the mgr must not end as Reef answers one (courier.py)
    assert ours(before) <= {"tuner-courier"}


def test_a_thread_that_waits_for_an_answer_does_not_hold_the_shutdown_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_file, "JOIN_S", 0.2)
    module, answered = Loaded(OnTwin()), threading.Event()
    module._modes_thread = threading.Thread(target=answered.wait, daemon=True)
    module._modes_thread.start()
    begun = time.monotonic()
    module.shutdown()
    assert time.monotonic() - begun < 5.0
    answered.set()


def test_checks_of_several_threads_are_told_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Loaded(OnTwin())
    telling: List[int] = []
    most = [0]

    def tell(checks: Any) -> None:
        telling.append(1)
        most[0] = max(most[0], len(telling))
        time.sleep(0.05)
        telling.pop()

    monkeypatch.setattr(module, "set_health_checks", tell, raising=False)
    number = iter(range(100))
    monkeypatch.setattr(module._service, "health", lambda: {"TUNER_STOPPED": [f"for the {next(number)}. time"]})
    threads = [threading.Thread(target=module._report_health) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most[0] == 1
    assert module._checks["TUNER_STOPPED"]


def test_the_mgr_s_word_of_a_new_map_has_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Loaded(OnTwin())
    told: List[str] = []
    monkeypatch.setattr(module._collector, "map_changed", lambda: told.append("map"))
    module.notify("osd_map", "")
    module.notify("pg_summary", "")
    assert told == ["map"]
    assert [str(kind.value) for kind in module.NOTIFY_TYPES] == ["osd_map"]
