"""The plugin on a twin whose store anybody may write: it goes on, says what it cannot read, and takes its own back."""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import Any, Dict, Iterator, List

import pytest
from automatic_on_twin import OnTwin
from loaded_module import GARBAGE, KEYS, NUMBERS, READ, SLO, Loaded, record

import tuner
from ceph_tuner.core.autopilot.audit_log import TAKEN_BACK, AuditRecord
from ceph_tuner.core.changes.journal import UNDONE, Journal
from monitors import ManualClock
from tuner import changes, health

pytestmark = pytest.mark.slow


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Loaded:
    class Patient(ManualClock):
        def __init__(self) -> None:
            super().__init__(time.time())

    # a claim that seems out of date is watched for a lease
    monkeypatch.setattr(changes, "SystemClock", Patient)
    aboard = OnTwin()
    aboard.service.slos.replace(SLO)
    aboard.sample(2)
    return Loaded(aboard)


def values(key: str, randomness: random.Random) -> Iterator[str]:
    """Each kind of garbage under every third key, and what is like a sound value. `make fuzz` goes on with them."""
    sound = KEYS[key]
    yield from GARBAGE[list(KEYS).index(key) % 3 :: 3]
    for _ in range(4):
        place = randomness.randrange(len(sound) + 1)
        yield (
            sound[:place]
            + randomness.choice([*NUMBERS, "[" * 500, '"\x1b[2J\\n"', "null", "{}", "", ","])
            + sound[place + 1 :]
        )
    for number in NUMBERS[list(KEYS).index(key) % 2 :: 2]:
        for old in ("1.0", "61.0", " 0", " 1"):
            if old in sound:
                yield sound.replace(old, f" {number}", 1)


@pytest.mark.parametrize("key", KEYS)
def test_whatever_lies_in_the_store_sampling_commands_and_the_way_back_go_on(
    module: Loaded, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    aboard, store = module.aboard, module.aboard.service.store
    config = aboard.service.config
    code, _, words = module.run("profile_apply", name="high_client_ops", yes=True)
    assert code == 0, words
    kept = store.items("")
    for value in values(key, random.Random(key)):
        store.set(key, value)
        before = config.dump()
        caplog.clear()
        began = time.monotonic()
        aboard.sample(1)
        # and one that becomes the active mgr now
        module = Loaded(OnTwin(aboard.twin))
        module.aboard.sample(1)
        for command, arguments in READ.items():
            code, out, words = module.run(command, **arguments)
            assert "internal error" not in words, (value[:100], command, words)
            assert all(one.isprintable() or one == "\n" for one in out + words), (value[:100], command)
        # what is not asked for is not written
        assert config.dump() == before, value[:100]
        code, _, words = module.run("rollback", yes=True)
        assert "internal error" not in words, (value[:100], words)
        assert (code, words) == (0, ""), (value[:100], words)
        assert all(entry.state == UNDONE for entry in Journal(store).entries())
        if key == "slo":
            assert module.run("slo_rm", metric="all")[0] in (0, -22)
        assert not [line for line in caplog.records if line.levelno >= logging.ERROR], (value[:100], caplog.text)
        assert health.UNKNOWN not in module.health_checks
        assert time.monotonic() - began < 30
        for name in store.keys(""):
            store.remove(name)
        for name, text in kept.items():
            store.set(name, text)
        config.set("osd", "osd_mclock_profile", "high_client_ops")


@pytest.mark.parametrize("at", [1e300, -1e300, 1e18])
def test_a_record_of_no_time_costs_nothing_but_itself(module: Loaded, at: float) -> None:
    module.aboard.service.store.set("audit/000000", record(at))
    module._modes.whole.logbook.remember()
    module._modes.whole.logbook.recent += [AuditRecord(2, at, "x", TAKEN_BACK, "a\x1b[2J\nforged", {"rule": "slo"})]
    module._report_health()
    assert health.UNKNOWN not in module.health_checks
    assert module.run("history")[0] == 0


class Sabotage(Exception):
    """Raised where nobody thinks of it."""


def test_no_exception_ends_sampling_or_makes_a_command_fail(module: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: List[str] = []

    def fail(*_: object, **__: object) -> Any:
        turns.append("x")
        if len(turns) > 40:
            module._stop.set()
        raise Sabotage("\x1b[31mforged\nline \ud800")

    def start() -> None:
        raise RuntimeError("can't start new thread")

    for owner, name in [
        (module._sampler, "tick"),
        (module._modes, "sampled"),
        (module._modes, "health"),
        (module._service, "health"),
        (module, "set_health_checks"),
        (module, "get_module_option"),
        (module.log, "exception"),
    ]:
        monkeypatch.setattr(owner, name, fail)
    monkeypatch.setattr(threading.Thread, "start", lambda self: start())
    monkeypatch.setattr(tuner.module, "LEAST_PAUSE_S", 0.0)
    module.serve()
    assert len(turns) > 40
    monkeypatch.undo()
    for owner in (module._modes, module._service):
        monkeypatch.setattr(owner, "health", fail)
    assert module.run("auto_explain")[0] == 0
    unknown = module.health_checks[health.UNKNOWN]
    assert unknown["count"] == 2
    assert all("cannot be told (Sabotage" in line and line.isprintable() for line in unknown["detail"])
    monkeypatch.undo()
    assert module.run("auto_explain")[0] == 0
    assert health.UNKNOWN not in module.health_checks


def test_what_a_command_fails_of_is_told_in_one_line_that_can_be_printed(
    module: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Dict[str, Any]:
        raise Sabotage("\x1b[31mforged\nline \ud800")

    monkeypatch.setattr(module._service, "status", fail)
    code, out, words = module.run("status")
    assert (code, out) == (-5, "")
    assert words.isprintable()
    words.encode()
