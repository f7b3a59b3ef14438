"""A newer version's store under an older mgr, and back: what is known is acted on, what is not is still there after."""

from __future__ import annotations

import json
import time
from typing import Any, Dict, Tuple

import pytest
from automatic_on_twin import OnTwin
from loaded_module import READ, Loaded

from ceph_tuner.core.autopilot.audit_log import Audit
from ceph_tuner.core.ceph.stored_document import VERSION
from ceph_tuner.core.changes.journal import UNDONE, Journal
from ceph_tuner.core.changes.lock import GENERATION
from ceph_tuner.core.goals.stored_slo import SLO_KEY
from monitors import ManualClock
from tuner import changes, health
from tuner.changes import own_lock

NEWER = {"version": VERSION + 8, "of_tomorrow": {"by": "alice"}}
STATE, TRAIL, ENTRY = "auto/state", "audit/000000", "journal/00000001"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Loaded:
    class Patient(ManualClock):
        def __init__(self) -> None:
            super().__init__(time.time())

    monkeypatch.setattr(changes, "SystemClock", Patient)
    aboard = OnTwin()
    aboard.sample(2)
    loaded = Loaded(aboard)
    for command, arguments in (
        ("slo_set", {"objective": "client.p95_ms <= 80 ms"}),
        ("auto_on", {"mode": "dry-run"}),
        ("profile_apply", {"name": "high_client_ops", "yes": True}),
    ):
        code, words = told(loaded, command, **arguments)
        assert code == 0, (command, words)
    loaded.aboard.sample(2)
    return loaded


def told(module: Loaded, command: str, **arguments: Any) -> Tuple[int, str]:
    code, _, words = module.aboard.during(lambda: module.run(command, **arguments))
    return code, words


def stored(module: Loaded, key: str) -> Dict[str, Any]:
    text = module.aboard.service.store.get(key)
    assert text is not None, key
    document: Dict[str, Any] = json.loads(text.split("\n")[0])
    return document


def test_all_that_is_stored_has_its_version(module: Loaded) -> None:
    for key in (SLO_KEY, STATE, TRAIL, ENTRY, GENERATION):
        assert stored(module, key)["version"] == VERSION, key
    store = module.aboard.service.store
    with own_lock(store, module.aboard.twin.clock, "somebody"):
        (claim,) = store.keys("lock/")
        assert stored(module, claim)["version"] == VERSION


def test_a_newer_version_s_store_under_an_older_mgr_and_back(module: Loaded) -> None:
    store, config = module.aboard.service.store, module.aboard.service.config
    for key in (SLO_KEY, STATE, TRAIL, ENTRY):
        lines = (store.get(key) or "").split("\n")
        store.set(key, "\n".join([json.dumps({**json.loads(lines[0]), **NEWER}), *lines[1:]]))
    slo = stored(module, SLO_KEY)
    slo["objectives"] = [{**item, "unless": "rebuilding"} for item in slo["objectives"]]
    store.set(SLO_KEY, json.dumps(slo))
    older = Loaded(OnTwin(module.aboard.twin))
    older.aboard.sample(2)
    for command, arguments in READ.items():
        code, _, words = older.run(command, **arguments)
        assert code == 0, (command, words)
    older._report_health()
    assert not {health.UNKNOWN, "TUNER_STOPPED"} & set(older.health_checks)
    assert older.aboard.service.slos.read() is not None
    # it writes each of them
    assert told(older, "slo_set", objective="recovery.finish_s <= 1 h") == (0, "")
    assert told(older, "auto_off") == (0, "")
    older.aboard.sample(1)
    assert told(older, "rollback", yes=True) == (0, "")
    assert [entry.state for entry in Journal(store).entries()] == [UNDONE]
    assert not [row for row in config.dump() if row.name == "osd_mclock_profile"]
    assert len(Audit(store).newest()) > 1
    for key in (SLO_KEY, STATE, TRAIL, ENTRY):
        now = stored(older, key)
        assert {name: now[name] for name in NEWER} == NEWER, key
    assert stored(older, STATE)["mode"] == "off"
    objectives = {item["objective"]: item for item in stored(older, SLO_KEY)["objectives"]}
    assert objectives["client.p95_ms <= 80 ms"]["unless"] == "rebuilding"
    assert "unless" not in objectives["recovery.finish_s <= 1 h"]


def test_objectives_that_cannot_be_read_are_a_health_warning_until_they_are_gone(module: Loaded) -> None:
    service = module.aboard.service
    calendar = {"objectives": ["client.p95_ms <= 80 ms"], "calendar": {"policies": [{"name": "night", "forbids": "x"}]}}
    service.store.set(SLO_KEY, json.dumps(calendar))
    module.aboard.sample(1)
    module._report_health()
    (line,) = module.health_checks["TUNER_SLO_DAMAGED"]["detail"]
    assert "forbids" in line
    assert told(module, "slo_rm", metric="all")[0] == 0
    module.aboard.sample(1)
    module._report_health()
    assert "TUNER_SLO_DAMAGED" not in module.health_checks


def test_an_entry_that_cannot_be_read_is_a_health_warning_whatever_the_modes_do(module: Loaded) -> None:
    store, modes = module.aboard.service.store, module.aboard.modes
    store.set("journal/00000009", "{")
    modes.look_at_journal()
    module._report_health()
    assert module.health_checks["TUNER_JOURNAL_DAMAGED"]["count"] == 1
    (line,) = module.health_checks["TUNER_JOURNAL_DAMAGED"]["detail"]
    assert line.startswith("journal/00000009 cannot be read, and is left alone")
    # sampling, commands and the way back go on
    module.aboard.sample(1)
    assert told(module, "rollback", yes=True) == (0, "")
    store.remove("journal/00000009")
    modes.look_at_journal()
    module._report_health()
    assert "TUNER_JOURNAL_DAMAGED" in module.health_checks, "the monitors are asked once a minute"
    module.aboard.twin.clock.sleep(61.0)
    modes.look_at_journal()
    module._report_health()
    assert "TUNER_JOURNAL_DAMAGED" not in module.health_checks
