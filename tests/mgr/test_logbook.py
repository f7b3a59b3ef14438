"""What the logbook tells of acts: that what came of one is told, however often the store refuses it."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any, List, Optional, Tuple

import pytest

from ceph_tuner.core.autopilot.audit_log import APPLY, TAKEN_BACK, Audit, without_outcome
from ceph_tuner.core.autopilot.events import Note, TookBack, Wrote
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.core.measure.history import History
from monitors import MemoryStore
from tuner.announce import Announcer
from tuner.logbook import MgrLogbook


class Refusing(MemoryStore):
    """Refuses writes while it is told to."""

    refuses = False

    def set(self, key: str, value: str) -> None:
        if self.refuses:
            raise CommandFailed("config-key set", -5, "no")
        super().set(key, value)


def logbook(store: MemoryStore, told: Optional[List[Tuple[str, int, str]]] = None) -> MgrLogbook:
    log = logging.getLogger("logbook")
    heard: List[Tuple[str, int, str]] = [] if told is None else told
    mgr: Any = SimpleNamespace(
        ClusterLogPrio=SimpleNamespace(INFO=1, WARN=2),
        cluster_log=lambda *line: heard.append(line),
        remote=lambda *call: None,
    )
    return MgrLogbook(Audit(store), Announcer(mgr, log), lambda: History(store), "the mgr", "", log)


def test_an_outcome_that_the_store_refused_is_told_again() -> None:
    store = Refusing()
    told: List[Tuple[str, int, str]] = []
    made, trail = logbook(store, told), Audit(store)
    made.note(Note(APPLY, "to see"), 1.0)
    store.refuses = True
    with pytest.raises(CommandFailed):
        made.came_of(Wrote(2.0, (1,)))
    store.refuses = False
    made.came_of(Wrote(2.0, (1,)))
    made.note(Note(TAKEN_BACK, "harm"), 3.0)
    made.came_of(TookBack(4.0))
    assert without_outcome(trail.newest()) == []
    assert [(record.what, record.outcome, record.refers) for record in trail.newest()] == [
        (APPLY, "", 0),
        (APPLY, "written", 1),
        (TAKEN_BACK, "", 0),
        (TAKEN_BACK, "taken back", 3),
    ]
    # collectors get each of them, once
    collected = [json.loads(words.partition(" ")[2])["number"] for channel, _, words in told if channel == "audit"]
    assert collected == [1, 2, 3, 4]
