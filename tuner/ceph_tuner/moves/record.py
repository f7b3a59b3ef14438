"""What is stored about a move in the cluster itself: what it has paused, and the inverse of each of its writes.

A record is stored before the first write, an inverse before the write that it takes back. So a move that was killed can
be begun again, and another host can give back what it has paused. How long its PGs took is there for later forecasts.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import quote

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Store, contents
from ceph_tuner.moves import LAST_STEPS, Command, Pairs, Steps

RECORDS, UNDOS, HELD = "moves/record/", "moves/undo/", "moves/held/"
UNDER_WAY = "under way"
PGS = "pgs "
"""How names of changes of pg_num begin."""
_MOST_PAIRS = 64
_PGID = re.compile(r"[0-9]{1,10}\.[0-9a-f]{1,8}")
_PAIRS = re.compile(r"[0-9]{1,10} [0-9]{1,10}(?: [0-9]{1,10} [0-9]{1,10}){0,63}")
_OSD = re.compile(r"osd\.[0-9]{1,10}")
_WEIGHT = re.compile(r"[0-9]{1,10}\.[0-9]{6}")
_POOL = re.compile(r"[^-].{0,255}")
_PGS = re.compile(r"pgp?_num")
_COUNT = re.compile(r"[0-9]{1,10}")
_INVERSES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "osd rm-pg-upmap-items": {"pgid": _PGID},
    "osd pg-upmap-items": {"pgid": _PGID, "id": _PAIRS},
    "osd crush reweight": {"name": _OSD, "weight": _WEIGHT},
    "osd pool set": {"pool": _POOL, "var": _PGS, "val": _COUNT},
}
"""Every command that a move stores as an inverse: what is stored may be anybody's, and people paste it into a shell."""


@dataclass(frozen=True)
class MoveRecord:
    """One move: `drain osd.3`, `reweight osd.3 1.5`, `pgs rbd 128`."""

    name: str
    began: float
    touched: float
    state: str = UNDER_WAY
    """UNDER_WAY, or how it ended."""
    balancer: bool = False
    """Whether it has paused the balancer."""
    autoscale: Tuple[str, ...] = ()
    """Pools of which it has paused the autoscaler."""
    weighed: bool = False
    """Whether the weights that come first are written, and PGs are held."""
    steps: Steps = ()
    """The last ones of it."""

    def changed(self, **changes: Any) -> MoveRecord:
        """The same with other values."""
        return replace(self, **changes)

    @property
    def holds_back(self) -> bool:
        """Whether something waits to be given back."""
        return self.balancer or bool(self.autoscale)


class MoveStore:
    """The records of a cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def records(self) -> List[MoveRecord]:
        """All that can be read, the oldest first."""
        entries = [_record(key, text) for key, text in contents(self._store, RECORDS).items()]
        return sorted((record for record in entries if record is not None), key=lambda each: (each.began, each.name))

    def record(self, name: str) -> Optional[MoveRecord]:
        """The one of that name."""
        place = RECORDS + _key(name)
        text = self._store.get(place)
        return None if text is None else _record(place, text)

    def steps_like(self, name: str) -> Steps:
        """The last steps of moves of that kind, the oldest first: upmap entries take other times than pgp_num."""
        moves = [each for each in self.records() if each.name.startswith(PGS) == name.startswith(PGS)]
        return tuple(step for move in sorted(moves, key=lambda each: each.touched) for step in move.steps)[-LAST_STEPS:]

    def save(self, record: MoveRecord, now: float) -> MoveRecord:
        """Store it."""
        record = replace(record, touched=now)
        self._store.set(RECORDS + _key(record.name), json.dumps({"schema": 1, **asdict(record)}, sort_keys=True))
        return record

    def remember_undo(self, record: MoveRecord, key: str, undo: Command) -> None:
        """Store the inverse of a write that is about to be made; the first one of a key is what was there before."""
        if not self.has_undo(record, key):
            self._store.set(_undo_place(record, key), json.dumps([undo[0], dict(undo[1])]))

    def has_undo(self, record: MoveRecord, key: str) -> bool:
        """Whether the write about that was begun."""
        return self._store.get(_undo_place(record, key)) is not None

    def undos(self, record: MoveRecord) -> List[Command]:
        """All that a move writes; the write-order is not kept, as each is about another thing."""
        commands = [_command(key, text) for key, text in contents(self._store, f"{UNDOS}{_key(record.name)}/").items()]
        return [command for command in commands if command is not None]

    def remember_held(self, record: MoveRecord, pgid: str, before: Pairs) -> None:
        """Store that a PG is about to be held, and the pairs that letting go leaves."""
        self._store.set(f"{HELD}{_key(record.name)}/{pgid}", json.dumps(before))

    def held(self, record: MoveRecord) -> Dict[str, Pairs]:
        """PGs that the move holds -> their pairs without it."""
        prefix = f"{HELD}{_key(record.name)}/"
        pairs_by_pg = {key[len(prefix) :]: _pairs(key, text) for key, text in contents(self._store, prefix).items()}
        return {pgid: pairs for pgid, pairs in pairs_by_pg.items() if pairs is not None}

    def has_written(self, record: MoveRecord) -> bool:
        """Whether some write of it was begun."""
        return bool(self._store.keys(f"{UNDOS}{_key(record.name)}/"))

    def remove(self, record: MoveRecord) -> None:
        """Forget a move."""
        for prefix in (UNDOS, HELD):
            for key in self._store.keys(f"{prefix}{_key(record.name)}/"):
                self._store.remove(key)
        self._store.remove(RECORDS + _key(record.name))


def _undo_place(record: MoveRecord, key: str) -> str:
    return f"{UNDOS}{_key(record.name)}/{_key(key)}"


def _key(name: str) -> str:
    """A name as a key of the store: CRUSH and pool names are anybody's."""
    return quote(name, safe="", errors="surrogatepass")


def _record(place: str, text: str) -> Optional[MoveRecord]:
    """None for what is no record: somebody else's key must not stop every move."""
    try:
        document = read_json(text, place)
        name, pools = document["name"], document["autoscale"]
        switches = document["balancer"], document["weighed"]
        texts = [name, document["state"], *pools]
        if not isinstance(pools, list) or not all(isinstance(text, str) for text in texts):
            return None
        if {type(switch) for switch in switches} != {bool} or _key(name) != place.rpartition("/")[2]:
            # a word is not whether something was paused, and another name's inverses are not its own
            return None
        began, last_touch = float(document["began"]), float(document["touched"])
        steps = _steps(document.get("steps", []))
        return MoveRecord(name, began, last_touch, document["state"], switches[0], tuple(pools), switches[1], steps)
    except MISREAD:
        return None


def _steps(rows: Any) -> Steps:
    """None of what says no times: they are for forecasts alone, and the record counts without them."""
    try:
        steps = tuple((int(pgs), float(moved_bytes), float(seconds)) for pgs, moved_bytes, seconds in rows)
    except MISREAD:
        return ()
    sound = all(pgs > 0 and 0 <= moved < math.inf and 0 < seconds < math.inf for pgs, moved, seconds in steps)
    return steps[-LAST_STEPS:] if sound else ()


def _command(place: str, text: str) -> Optional[Command]:
    try:
        prefix, arguments = read_json(text, place)
        patterns = _INVERSES[prefix]
        if len(arguments) == len(patterns) and all(each.fullmatch(arguments[name]) for name, each in patterns.items()):
            return prefix, {name: arguments[name] for name in patterns}
    except MISREAD:
        pass
    return None


def _pairs(place: str, text: str) -> Optional[Pairs]:
    try:
        document = read_json(text, place)
        pairs = tuple((int(first), int(last)) for first, last in document)
    except MISREAD:
        return None
    return pairs if len(pairs) <= _MOST_PAIRS else None
