"""The audit trail: who did what, why, and what came of it, kept in the cluster so that no failover can lose it.

A record lies at a place that its number names: line after line, `PER_BLOCK` to a value, so that an append costs one
write, a damaged line costs itself alone, and numbers go on whatever happened. The oldest block makes room first.
"""

from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.ceph.stored_document import versioned

MODE, PROPOSAL, APPROVAL, APPLY = "mode", "proposal", "approval", "apply"
TAKEN_BACK, KEPT, BREACH, GAVE_UP = "taken back", "kept", "breach", "gave up"
PAUSED, RESUMED, FAILOVER, REFUSED = "paused", "resumed", "failover", "refused"
WOULD_TRY, HELD, DRIFT, CONDITION = "would try", "held", "drift", "condition changed"
CAPACITY, STOPPED, POLICY = "capacity", "stopped", "policy"
BOOST, BOOST_ENDED = "boost", "boost ended"
BOOK, BOOK_BACK, BOOK_MODE = "book", "book back", "book mode"

KINDS = {
    MODE: "the mode was changed",
    PROPOSAL: "the optimiser proposed settings",
    APPROVAL: "an operator approved or rejected a proposal",
    APPLY: "settings are written: on the canary, wider, or on all OSDs",
    WOULD_TRY: "a dry run would try these settings now",
    HELD: "settings are on all OSDs and are watched before they stay",
    TAKEN_BACK: "what was written is taken back",
    KEPT: "settings stay",
    BREACH: "the guard stopped what was on the cluster",
    PAUSED: "no forward move until it is resumed",
    RESUMED: "forward moves are permitted again",
    GAVE_UP: "nothing better was found for the present state of the cluster",
    FAILOVER: "another mgr became the active one: what it found and did",
    REFUSED: "an answer of the optimiser was not usable",
    DRIFT: "somebody changed what the tuner had set",
    CONDITION: "load, hardware, release or the OSDs changed: trials start again",
    CAPACITY: "a stored capacity is not believable, or was measured anew",
    POLICY: "another policy of the objectives' calendar holds",
    STOPPED: "the tuner stopped to protect the cluster",
    BOOST: "settings that finish some background work sooner are written, until it is done",
    BOOST_ENDED: "a boost ended: its settings are taken back",
    BOOK: "the settings of a page of the book are written, for the regime that holds",
    BOOK_BACK: "the settings of the book are taken back, to what was there before it",
    BOOK_MODE: "the book was switched on or off",
}
"""What a record can be about."""

ACTS = (APPLY, TAKEN_BACK, KEPT, BOOST, BOOST_ENDED, BOOK, BOOK_BACK)
"""Kinds that announce a write to the cluster; a later record with what came of it refers to them."""

AUDIT_MARK = "ceph-tuner "
"""Before each record in the channel `audit` of the cluster's log."""
PREFIX = "audit/"
PER_BLOCK = 15
BLOCKS = 70
LARGEST_RECORD = 4000
"""Characters, all of them ASCII: a full block stays below the monitors' 64 KiB."""
_LARGEST_BLOCK = 65_000


@dataclass(frozen=True)
class AuditRecord:
    """One line of the trail. `detail` is plain data: settings, targets, effects, the guard's numbers."""

    number: int
    at: float
    """Seconds since the epoch."""
    who: str
    """An operator, or `automatic mode` with the mgr that acted."""
    what: str
    """One of KINDS; newer versions may know more."""
    why: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = ""
    """What came of it; empty where that is not known yet."""
    refers: int = 0
    """Number of the record that this one tells the outcome of; 0: none."""

    def __post_init__(self) -> None:
        if self.number < 1 or self.refers < 0 or not math.isfinite(self.at) or not self.what:
            raise ValueError(
                f"a record has a number (={self.number}) of at least 1, refers (={self.refers}) to a number or 0, "
                f"is of a time (={self.at}) and of a kind (={self.what!r})"
            )

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store and for programs."""
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "detail": dict(self.detail)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> AuditRecord:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        return cls(
            int(document["number"]),
            float(document["at"]),
            str(document["who"]),
            str(document["what"]),
            str(document["why"]),
            dict(document["detail"]),
            str(document["outcome"]),
            int(document["refers"]),
        )


class Audit:
    """The trail in a store. Any thread may append; of several mgrs only the active one."""

    def __init__(self, store: Store, prefix: str = PREFIX) -> None:
        """Of all automatic modes' trails that one whose keys begin with the prefix."""
        self._store, self._prefix = store, prefix
        self._appending = threading.Lock()

    def append(
        self,
        at: float,
        who: str,
        what: str,
        why: str,
        detail: Mapping[str, Any] = {},
        outcome: str = "",
        refers: int = 0,
    ) -> AuditRecord:
        """Add a record and return it as it is stored: when this returns, the monitors have committed it.

        What is too long is cut short rather than refused. Raises CommandFailed or ClusterTimeout as the store does;
        the record may be there all the same, and the next append goes on after it.
        """
        with self._appending:
            blocks = self._blocks()
            newest = blocks[-1] if blocks else 0
            lines = self._lines(newest)
            if len(lines) >= PER_BLOCK or len("\n".join(lines).encode()) > _LARGEST_BLOCK - LARGEST_RECORD:
                newest, lines = newest + 1, []
                # before the write: once that is done nothing may fail, or the caller took it for not done
                for old in blocks[: max(0, len(blocks) - BLOCKS + 1)]:
                    self._store.remove(self._key(old))
            number = newest * PER_BLOCK + len(lines) + 1
            line = as_line(AuditRecord(number, at, who, what, why, detail, outcome, refers))
            self._store.set(self._key(newest), "\n".join([*lines, line]))
            return AuditRecord.from_dict(read_json(line, PREFIX))

    def tell(
        self, of: AuditRecord, at: float, outcome: str, why: str = "", detail: Mapping[str, Any] = {}
    ) -> AuditRecord:
        """Add what came of an act."""
        return self.append(at, of.who, of.what, why or of.why, detail, outcome, of.number)

    def newest(self, count: int = PER_BLOCK * BLOCKS) -> List[AuditRecord]:
        """The last `count` records, the newest last."""
        records: List[AuditRecord] = []
        for block in reversed(self._blocks()):
            if len(records) >= count:
                break
            records = [*self._records(block), *records]
        return records[max(0, len(records) - count) :]

    def _blocks(self) -> List[int]:
        names = [key[len(self._prefix) :] for key in self._store.keys(self._prefix)]
        # only names as `_key` writes them: what else lies there is not ours, and is left alone
        return sorted(int(name) for name in names if name.isdecimal() and f"{int(name):06d}" == name)

    def _key(self, block: int) -> str:
        return f"{self._prefix}{block:06d}"

    def _lines(self, block: int) -> List[str]:
        text = self._store.get(self._key(block))
        return [] if text is None else text.split("\n")

    def _records(self, block: int) -> List[AuditRecord]:
        records = []
        for place, line in enumerate(self._lines(block), start=block * PER_BLOCK + 1):
            try:
                record = AuditRecord.from_dict(read_json(line, PREFIX))
            except MISREAD:
                # cut short, or written by something else: the others are still true
                continue
            if record.number == place:
                records.append(record)
        return records


class TrailRecord(NamedTuple):
    """A record, and whose trail it is of: numbers count within one."""

    trail: str
    """`auto`, `boost` or `book`; that of a device class ends with its name."""
    record: AuditRecord


def every_trail(store: Store) -> List[TrailRecord]:
    """The records of all automatic modes, boosts and books, the cluster's and device classes' own, the newest last."""
    prefixes = {PREFIX, *(key[: key.rindex("/") + 1] for key in store.keys(PREFIX))}
    records = [
        TrailRecord(_trail_name(prefix), record)
        for prefix in sorted(prefixes)
        for record in Audit(store, prefix).newest()
    ]
    return sorted(records, key=lambda each: each.record.at)


def _trail_name(prefix: str) -> str:
    """`audit/=book/hdd/` is of the book of a class, `audit/hdd/` of its automatic mode."""
    names = prefix[len(PREFIX) :].rstrip("/").split("/")
    whose = names[0][1:] if names[0].startswith("=") else f"auto {names[0]}"
    return " ".join([whose, *names[1:]]).rstrip()


def without_outcome(records: Sequence[AuditRecord]) -> List[AuditRecord]:
    """Acts that were announced and of which nobody told what came of them: a mgr that died on the way."""
    act_numbers = {record.refers for record in records}
    return [
        record for record in records if record.what in ACTS and not record.refers and record.number not in act_numbers
    ]


def _json(document: Any) -> str:
    # one line and ASCII whatever is in it, so characters are bytes; what has no form in JSON must not cost the record
    return json.dumps(_finite(document), separators=(",", ":"), default=str, skipkeys=True)


def _finite(value: Any) -> Any:
    """Numbers that are none, and those of more than 64 bits, as the words for them: readers refuse them as numbers."""
    if isinstance(value, dict):
        return {key: _finite(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(below) for below in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:
        return f"{value:.3g}" if value.bit_length() < 1000 else "a number of many digits"
    return value


def _text(record: AuditRecord) -> str:
    return _json(versioned(record.to_dict()))


def as_line(record: AuditRecord) -> str:
    """The record as it is stored: a line of JSON in ASCII.

    It is cut down to LARGEST_RECORD: first the largest of its details, then its words.
    """
    detail = dict(record.detail)
    line = _text(record)
    for left_out, name in enumerate(sorted(detail, key=lambda name: -len(_json(detail[name]))), start=1):
        if len(line) <= LARGEST_RECORD:
            return line
        del detail[name]
        line = _text(replace(record, detail={**detail, "left_out": left_out}))
    for width in (1000, 200, 50):
        if len(line) <= LARGEST_RECORD:
            break
        short = {name: getattr(record, name)[:width] for name in ("who", "what", "why", "outcome")}
        line = _text(replace(record, detail={"left_out": len(record.detail)}, **short))
    return line
