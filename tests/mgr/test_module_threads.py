"""The module's threads: none is at work once it was shut down, and what several of them tell is told in order."""

from __future__ import annotations

import errno
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any, List, Set

import pytest
from automatic_on_twin import OnTwin
from loaded_module import Loaded
from mgr_stand_in import CommandResult

import tuner.module as module_file
from tuner import threads, worker
from tuner.courier import Courier
from tuner.worker import WorkerError, ask_worker
from waiting import until


def ours(before: Set[threading.Thread]) -> Set[str]:
    """Names of the module's threads that run and did not before."""
    return {thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("tuner-")}


def test_a_module_that_was_shut_down_has_no_thread_at_work() -> None:
    before = set(threading.enumerate())
    module = Loaded(OnTwin())
    serving = threading.Thread(target=module.serve, daemon=True)
    serving.start()
    until(lambda: {"tuner-modes", "tuner-automatic", "tuner-boost"} <= ours(before))
    module.shutdown()
    serving.join(10)
    assert ours(before) == set()


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


def test_work_that_was_begun_is_waited_for_and_the_optimiser_ended() -> None:
    before, module, begun = set(threading.enumerate()), Loaded(OnTwin()), threading.Event()

    def ask() -> None:
        begun.set()
        with pytest.raises(WorkerError, match="signal 9"):
            ask_worker({"version": 1}, sys.executable, 60, program="import time; time.sleep(60)")

    threads.begin("tuner-asking", ask)
    assert begun.wait(10)
    until(lambda: worker._at_work)
    module.shutdown()
    assert ours(before) == set()


def test_what_sends_commands_ends_once_each_is_answered_and_sends_nothing_more() -> None:
    sent: List[CommandResult] = []
    mgr = SimpleNamespace(send_command=lambda result, *rest: sent.append(result))
    courier = Courier(mgr, CommandResult)
    first = courier.send("mon", "", "{}", None)
    until(lambda: sent)
    courier.close(time.monotonic() + 0.2)
    # not answered yet: the thread stays
    assert courier._thread is not None
    assert courier._thread.is_alive()
    assert courier.send("mon", "", "{}", None).wait()[0] == -errno.ESHUTDOWN
    first.complete(0, "", "")
    courier._thread.join(10)
    assert not courier._thread.is_alive()
    assert sent == [first]
