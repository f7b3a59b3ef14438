"""What was written to the cluster and how it is taken back, kept in the cluster itself.

An entry is stored before its first write, with everything that taking it back needs. Progress is not stored: every key
shows whether its step was done, since its value is either the one before or ours.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ceph_tuner.errors import JournalDamaged
from ceph_tuner.knobs import KNOBS
from ceph_tuner.plan import Key, Restore, Step
from ceph_tuner.ports import Store, contents

PREFIX = "journal/"
APPLYING, APPLIED, UNDOING, UNDONE = "applying", "applied", "undoing", "undone"
STATES = (APPLYING, APPLIED, UNDOING, UNDONE)
KEEP = 50
"""Entries that are kept. Of older ones in force the two oldest become one, so that all can still be taken back."""

_OSD = re.compile(r"osd\.(0|[1-9][0-9]*)\Z", re.ASCII)
_SPANS = re.compile(r"osd\.[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\Z", re.ASCII)
_MOST_OSDS = 1_000_000
"""What is read may be anybody's: it must not fill the memory."""


@dataclass(frozen=True)
class Entry:
    """One change, from before its first write on."""

    number: int
    state: str
    at: float
    changed: float
    """When it came into its state."""
    who: str
    why: str
    release: str
    target: str
    steps: Tuple[Step, ...]
    restores: Tuple[Restore, ...]
    trial: bool = False
    """Whether it ends with its owner: a change that was only tried is taken back when its owner is gone."""
    note: str = ""

    def __post_init__(self) -> None:
        """A state outside of the four would be neither finished nor unfinished."""
        if self.state not in STATES or self.number < 1:
            raise ValueError(f"journal entry {self.number}: state {self.state!r}, expected one of {', '.join(STATES)}")

    @property
    def unfinished(self) -> bool:
        """Whether its writer stopped on the way."""
        return self.state in (APPLYING, UNDOING)

    def to_text(self) -> str:
        """As it is stored."""
        document = asdict(replace(self, restores=()))
        document["restores"] = [_document(alike) for alike in _runs(self.restores)]
        return json.dumps(document, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_text(place: str, text: str) -> Entry:
        """Raises JournalDamaged."""
        try:
            stored: Dict[str, Any] = json.loads(text)
            stored["steps"] = tuple(Step(**step) for step in stored["steps"])
            stored["restores"] = tuple(
                Restore(who, item["name"], item["value"], frozenset(item["ours"]))
                for item in stored["restores"]
                for who in _whos(item["who"])
            )
            entry = Entry(**stored)
            # whoever may write the store must not have a rollback, which may do more, set any option of the cluster
            foreign = sorted({restore.name for restore in entry.restores} - set(KNOBS))
            if foreign:
                raise ValueError(f"restores {', '.join(foreign)}, which no change of ours sets")
            return entry
        except (ValueError, KeyError, TypeError) as exc:
            raise JournalDamaged(
                f"{place}: not an entry of this version's journal ({exc}); nothing is written while it cannot be read"
            ) from exc


class Journal:
    """The entries, oldest first. Written to under the lock only."""

    def __init__(self, store: Store, keep: int = KEEP) -> None:
        self._store, self._keep = store, max(2, keep)

    def entries(self) -> List[Entry]:
        """Raises JournalDamaged."""
        texts = contents(self._store, PREFIX)
        return sorted((Entry.from_text(key, text) for key, text in texts.items()), key=lambda entry: entry.number)

    def next_number(self) -> int:
        """One more than the highest: unique, as only the lock's holder asks."""
        return max((entry.number for entry in self.entries()), default=0) + 1

    def write(self, entry: Entry) -> None:
        """Store an entry; the store answers after the commit."""
        self._store.set(_key(entry), entry.to_text())

    def trim(self, room: int = 0) -> None:
        """Forget the oldest finished entries; join the two oldest in force. Safe to interrupt anywhere.

        `room`: for so many entries to come.
        """
        entries = self.entries()
        excess = len(entries) + room - self._keep
        for entry in [entry for entry in entries if entry.state == UNDONE][: max(0, excess)]:
            self._store.remove(_key(entry))
            excess -= 1
        standing = [entry for entry in entries if entry.state == APPLIED and not entry.trial]
        while excess > 0 and len(standing) >= 2:
            older, newer = standing[:2]
            joined = join(older, newer)
            # first the joined one, then the removal: taking back both again would find nothing left to do
            self.write(joined)
            self._store.remove(_key(older))
            standing[:2] = [joined]
            excess -= 1


def join(older: Entry, newer: Entry) -> Entry:
    """One entry that takes both back at once."""
    restores: Dict[Key, Restore] = {restore.key: restore for restore in older.restores}
    for restore in newer.restores:
        before = restores.get(restore.key)
        restores[restore.key] = replace(restore, value=before.value) if before is not None else restore
    return replace(
        newer,
        steps=_net([*older.steps, *newer.steps]),
        restores=tuple(restores.values()),
        why=newer.why or older.why,
        note=f"with the changes up to {older.number}, joined to keep the journal small",
    )


def _runs(restores: Sequence[Restore]) -> Iterator[List[Restore]]:
    """Restores one after the other that differ in their OSD alone: a cluster has thousands, and a value 64 KiB."""
    run: List[Restore] = []
    for restore in restores:
        if run and replace(run[-1], who=restore.who) == restore and -1 < _osd(run[-1]) < _osd(restore):
            run.append(restore)
        else:
            if run:
                yield run
            run = [restore]
    if run:
        yield run


def _osd(restore: Restore) -> int:
    matched = _OSD.match(restore.who)
    return int(matched[1]) if matched else -1


def _document(alike: Sequence[Restore]) -> Dict[str, Any]:
    first = alike[0]
    who = first.who if len(alike) == 1 else "osd." + _spans([_osd(restore) for restore in alike])
    ours = sorted(first.ours, key=lambda value: (value is not None, value))
    return {"who": who, "name": first.name, "value": first.value, "ours": ours}


def _spans(numbers: Sequence[int]) -> str:
    """`0-3,7` of ascending numbers."""
    spans: List[List[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def _whos(who: str) -> List[str]:
    """The sections that `_document` made one of."""
    if not _SPANS.match(who):
        return [who]
    spans = [span.split("-") for span in who[len("osd.") :].split(",")]
    bounds = [(int(span[0]), int(span[-1])) for span in spans]
    if any(high > _MOST_OSDS for _, high in bounds):
        raise ValueError(f"an OSD above {_MOST_OSDS}")
    return [f"osd.{number}" for low, high in bounds for number in range(low, high + 1)]


def _net(steps: Sequence[Step]) -> Tuple[Step, ...]:
    """One step per key, from its first value to its last."""
    net: Dict[Key, Step] = {}
    for step in steps:
        first = net.get(step.key)
        net[step.key] = step if first is None else replace(step, old=first.old)
    return tuple(net.values())


def _key(entry: Entry) -> str:
    return f"{PREFIX}{entry.number:08d}"
