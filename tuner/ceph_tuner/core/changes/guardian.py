"""Takes back what a tuner has left whose process is gone, where no other tuner comes to do it.

Whoever tunes next takes it back first. That may be late: on `ceph mgr module disable` the mgr executes itself anew
without a word to its modules, the last mgr may have died, a `tune` may have been killed. So one process that belongs to
no mgr (`ceph-tuner guardian`) looks every few seconds, with a key of its own.
"""

from __future__ import annotations

import contextlib
import json
from typing import List, Optional

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore, osd_versions
from ceph_tuner.core.ceph.ports import Clock, Commander, Store
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.changes.applier import Applier, Undone
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.errors import Locked, TunerError
from ceph_tuner.core.knobs.releases import parse_version, release_of

KEY = "guardian"
"""Of its sign of life in the cluster's store."""

SIGN_S = 600.0
"""How often it gives one: a write to the monitors' store."""

_BELIEVED_S = 3 * SIGN_S


class Guardian:
    """Looks at one cluster. Used by one thread."""

    def __init__(self, commander: Commander, clock: Clock, who: str = "ceph-tuner guardian", entity: str = "") -> None:
        """`entity`: whose key is used."""
        self._commander, self._clock, self._who = commander, clock, who
        self._store = CommandStore(commander)
        self._lock = Lock(self._store, clock, this_process(who, entity), may_live)
        self._signed: Optional[float] = None

    def look(self) -> List[Undone]:
        """Look once; give what was taken back: nothing where nothing is left, or whoever left it may live.

        Raises TunerError where the cluster does not answer, or does not go back; the next look tries again.
        """
        self._sign()
        if not any(entry.is_open for entry in Journal(self._store).entries()) or self._lock.watch():
            return []
        # the cluster may have been upgraded since the last time
        release = release_of(min(osd_versions(self._commander), key=parse_version))
        config = CommandConfig(self._commander)
        try:
            return Applier(config, self._store, self._clock, self._lock, release, self._who).recover()
        except Locked:
            # another tuner came first, and takes it back
            return []

    def leave(self) -> None:
        """Withdraw the sign of life."""
        with contextlib.suppress(TunerError):
            self._store.remove(KEY)

    def _sign(self) -> None:
        now = self._clock.monotonic()
        if self._signed is None or now - self._signed >= SIGN_S:
            self._store.set(KEY, json.dumps(versioned({"at": self._clock.now(), "who": self._who}), sort_keys=True))
            self._signed = now


def unguarded(store: Store, now: float) -> str:
    """Say what is open where no guardian has given a sign of life; empty where one has (`now`: since the epoch)."""
    try:
        at = float(read_json(store.get(KEY) or "", KEY)["at"])
    except MISREAD:
        at = float("-inf")
    if abs(now - at) <= _BELIEVED_S:
        return ""
    return "no `ceph-tuner guardian` watches: if this module is disabled or no mgr is left, a trial stays until one is"
