"""What was written to the cluster and how it is taken back, kept in the cluster itself.

An entry is stored before its first write, with everything that taking it back needs. Progress is not stored: every key
shows whether its step was done, since its value is either the one before or ours.

Whoever may write the store may write anything here. What cannot be read is set aside and told; what can be read can
still be taken back.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Store, contents
from ceph_tuner.core.ceph.stored_document import unknown_in, versioned
from ceph_tuner.core.changes.custom_resource import is_of_osds
from ceph_tuner.core.changes.plan import Restore, Step
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.errors import InputError, JournalDamaged
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE, ever_set
from ceph_tuner.core.printable import printable

PREFIX = "journal/"
APPLYING, APPLIED, UNDOING, UNDONE = "applying", "applied", "undoing", "undone"
STATES = (APPLYING, APPLIED, UNDOING, UNDONE)
KEEP = 50
"""Entries that are kept. Of older ones in force the two oldest become one, so that all can still be taken back."""

LARGEST = 65_536
"""Characters of an entry, all of them ASCII: what the monitors take (`mon_config_key_max_entry_size`)."""
ROOM = 8_192
"""Of these, what an entry leaves free as it is begun: for its note, and for profiles that are held as it goes back."""

STANDING = ", book"
"""How a writer's name ends whose change has its settings replaced while it stands: it is joined with no other."""

_OSD = re.compile(r"osd\.(0|[1-9][0-9]*)\Z", re.ASCII)
_SPANS = re.compile(r"osd\.[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\Z", re.ASCII)
_NUMBER = re.compile(r"[0-9]{8,12}")
_TEXT_VALUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_LARGEST_VALUE = 100
_FEW, _A_KEY_EACH = 4096, 16
"""Restores of an entry that are read whatever the cluster; so many for each of its OSDs, where there are more."""
_MANY = 200_000
"""Restores of all entries together, where nobody says how many OSDs the cluster has: some 50 MB."""
_BRIEF, _BRIEF_RESTORES = 4096, 64
"""Characters and restores of an entry that stays read: a change reads the journal many times, and writes one entry."""


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
    generation: int = 0
    """Of the lock that it was last written under: which holder is at work on it."""
    forecast: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the twin said before it, as `ForecastRecord.to_dict` gives it; empty where nobody asked a twin."""
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What another version stored beside it, its number among it: kept as it is."""

    def __post_init__(self) -> None:
        """A state outside of the four would be neither finished nor unfinished."""
        if self.state not in STATES or self.number < 1:
            raise ValueError(f"journal entry {self.number}: state {self.state!r}, expected one of {', '.join(STATES)}")

    @property
    def unfinished(self) -> bool:
        """Whether its writer stopped on the way."""
        return self.state in (APPLYING, UNDOING)

    @property
    def is_open(self) -> bool:
        """Whether it ends by itself: half done, or on trial."""
        return self.unfinished or (self.trial and self.state == APPLIED)

    @property
    def replaceable(self) -> bool:
        """Whether its settings are replaced while it stands (`standing.py`)."""
        return self.who.endswith(STANDING)

    def to_text(self) -> str:
        """As it is stored."""
        document = versioned(asdict(replace(self, restores=(), unknown={})), self.unknown)
        del document["unknown"]
        if not self.forecast:
            del document["forecast"]
        document["restores"] = [_document(alike) for alike in _runs(self.restores)]
        return json.dumps(document, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_text(place: str, text: str) -> Entry:
        """Raises JournalDamaged."""
        try:
            return _entry(read_json(text, place))
        except (*MISREAD, InputError) as fault:
            raise JournalDamaged(f"{place}: not an entry of this version's journal ({_words(fault)})") from fault


_OF_A_STEP = frozenset(item.name for item in fields(Step))
_OF_AN_ENTRY = frozenset(item.name for item in fields(Entry)) - {"unknown"}


class SetAside(NamedTuple):
    """A key below the journal's prefix that cannot be read."""

    key: str
    why: str
    number: int
    """Of the change that it may be; 0 where its key is not one of the journal's."""

    def __str__(self) -> str:
        return f"{self.key} cannot be read, and is left alone ({self.why})"


class _Stored(NamedTuple):
    """A key of the store, before its restores take any memory."""

    key: str
    number: int = 0
    restored: int = 0
    """Values that it would restore."""
    document: Any = None
    why: str = ""
    """It cannot be read."""
    content: Union[Entry, SetAside, None] = None
    """What it holds, where it stays read."""

    def read(self, most: int) -> Union[Entry, SetAside]:
        why = self.why or (f"it restores {self.restored} values, more than can be" if self.restored > most else "")
        if not why:
            if self.content is not None:
                return self.content
            try:
                entry = _entry(self.document)
                if entry.number == self.number:
                    return entry
                why = f"it says that it is change {entry.number}"
            except (*MISREAD, InputError) as fault:
                why = _words(fault)
        return SetAside(self.key, why, self.number)


class Contents(NamedTuple):
    """All that the journal holds."""

    entries: List[Entry]
    set_aside: List[SetAside]

    @property
    def trials(self) -> List[Entry]:
        """Entries whose settings are on the cluster for a while."""
        return [entry for entry in self.entries if entry.trial and entry.state in (APPLYING, APPLIED)]

    @property
    def trial_owners(self) -> str:
        """Who has settings on trial, with commas."""
        return ", ".join(dict.fromkeys(entry.who for entry in self.trials))

    def mclock_on_trial(self) -> bool:
        """Whether the values that mClock goes by are among these settings."""
        names = {restore.key[1] for entry in self.trials for restore in entry.restores}
        return bool(names & {PROFILE, *MCLOCK_NINE})

    def check_whole(self) -> None:
        """Raise JournalDamaged where a change may be in force that cannot be read: no other one goes on top of it."""
        damage = [item for item in self.set_aside if item.number]
        if damage:
            raise JournalDamaged(f"{damage[0]}; no new change is written while it is there")


class Journal:
    """The entries, oldest first. Written to under the lock only."""

    def __init__(self, store: Store, keep: int = KEEP, osds: Optional[Callable[[], int]] = None) -> None:
        """`osds` says how many OSDs the cluster has: an entry that would restore more than that is not ours."""
        self._store, self._keep, self._osds = store, max(2, keep), osds

    def read(self) -> Contents:
        """What can be read, oldest first, and what cannot."""
        texts = contents(self._store, PREFIX)
        records = [(_brief_record if len(text) <= _BRIEF else _record_of)(key, text) for key, text in texts.items()]
        records.sort(key=lambda item: (item.restored, item.key))
        room = _MANY
        if self._osds is not None and records and records[-1].restored > _FEW:
            room = max(_MANY // 10, self._osds() * 4 * _A_KEY_EACH)
        most = max(_FEW, room // 4)
        entries: List[Entry] = []
        set_aside: List[SetAside] = []
        # the small ones first: what is made to fill the memory must not push the others out
        for item in records:
            content = item.read(min(most, room))
            if isinstance(content, Entry):
                entries.append(content)
                room -= item.restored
            else:
                set_aside.append(content)
        return Contents(sorted(entries, key=lambda entry: entry.number), sorted(set_aside))

    def entries(self) -> List[Entry]:
        """What can be read, oldest first."""
        return self.read().entries

    def restores_of(self, numbers: Collection[int]) -> Tuple[Restore, ...]:
        """What the entries of these numbers restore."""
        return tuple(item for entry in self.entries() if entry.number in numbers for item in entry.restores)

    def next_number(self) -> int:
        """One more than the highest: unique, as only the lock's holder asks.

        Raises JournalDamaged where that is none that could be read again: somebody wrote the highest there.
        """
        contents = self.read()
        numbers = [entry.number for entry in contents.entries] + [item.number for item in contents.set_aside]
        highest = max(numbers, default=0)
        if not _NUMBER.fullmatch(f"{highest + 1:08d}"):
            raise JournalDamaged(f"{PREFIX}{highest}: no number is left for a new change")
        return highest + 1

    def write(self, entry: Entry) -> None:
        """Store an entry; the store answers after the commit."""
        self._store.set(_key(entry), _fitted(entry))

    def trim(self, room: int = 0) -> None:
        """Forget the oldest finished entries; join the two oldest in force. Safe to interrupt anywhere.

        `room`: for so many entries to come.
        """
        entries = self.entries()
        excess = len(entries) + room - self._keep
        for entry in [entry for entry in entries if entry.state == UNDONE][: max(0, excess)]:
            self._store.remove(_key(entry))
            excess -= 1
        in_force = [entry for entry in entries if entry.state == APPLIED and not entry.trial and not entry.replaceable]
        in_place = [entry for entry in entries if entry.state == APPLIED and entry.replaceable]
        while excess > 0 and len(in_force) >= 2:
            older, newer = in_force[:2]
            union = join(older, newer)
            between = {item.key for entry in in_place for item in entry.restores if item.over == older.number}
            if between & {item.key for item in newer.restores} or len(_fitted(union)) > LARGEST:
                # what lies between them has no place in one; both stay, and so does what takes them back
                del in_force[0]
                continue
            # first the joined one, then the removal: taking back both again would find nothing left to do
            self.write(union)
            for at, standing in enumerate(in_place):
                restores = tuple(
                    replace(item, over=newer.number) if item.over == older.number else item
                    for item in standing.restores
                )
                if restores != standing.restores:
                    in_place[at] = replace(standing, restores=restores)
                    self.write(in_place[at])
            self._store.remove(_key(older))
            in_force[:2] = [union]
            excess -= 1


def refuse_large(entry: Entry) -> None:
    """Raise InputError for a change that could not be stored in each of its states."""
    size = len(entry.to_text())
    if size > LARGEST - ROOM:
        reason = f", {len(entry.why)} characters of reason among them" if len(entry.why) > ROOM else ""
        shorter = "a shorter reason" if reason else "fewer OSDs with sections of their own at a time"
        raise InputError("change", f"{size} characters to store{reason}", f"at most {LARGEST - ROOM}: {shorter}")


def _fitted(entry: Entry) -> str:
    """As it is stored: what only people read is cut short before the change could not be taken back any more."""
    if len(entry.to_text()) > LARGEST:
        entry = replace(entry, forecast={})
    for name in sorted(("why", "note"), key=lambda name: -len(getattr(entry, name))):
        words, excess = getattr(entry, name), len(entry.to_text()) - LARGEST
        if excess > 0:
            entry = replace(entry, **{name: words[: max(0, len(words) - excess)]})
    if len(entry.to_text()) > LARGEST and entry.state != APPLYING:
        # while a change is applied they tell which write may be under way
        entry = replace(entry, steps=())
    return entry.to_text()


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
    match = _OSD.match(restore.who)
    return int(match[1]) if match else -1


def _document(alike: Sequence[Restore]) -> Dict[str, Any]:
    first = alike[0]
    who = first.who if len(alike) == 1 else "osd." + _spans([_osd(restore) for restore in alike])
    ours = sorted(first.ours, key=lambda value: (value is not None, value))
    document = {"who": who, "name": first.name, "value": first.value, "ours": ours}
    return {**document, "over": first.over} if first.over else document


def _spans(numbers: Sequence[int]) -> str:
    """`0-3,7` of ascending numbers."""
    spans: List[List[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def _bounds(who: str) -> List[Tuple[int, int]]:
    """Of `osd.0-3,7`: the first and the last of each span, which ascend as `_spans` writes them."""
    spans = [span.split("-") for span in who[len("osd.") :].split(",")]
    bounds = [(int(span[0]), int(span[-1])) for span in spans]
    flat = [-1] + [end for span in bounds for end in span]
    if any(low > high for low, high in bounds) or any(after <= before for before, after in zip(flat[::2], flat[1::2])):
        raise ValueError("spans of OSDs that do not ascend")
    return bounds


@lru_cache(maxsize=2 * KEEP)
def _brief_record(key: str, text: str) -> _Stored:
    """A record that is taken apart once, for as long as its text stays."""
    record = _record_of(key, text)
    if record.why or record.restored > _BRIEF_RESTORES:
        return record
    return record._replace(document=None, content=record.read(record.restored))


def _record_of(key: str, text: str) -> _Stored:
    name = key[len(PREFIX) :]
    number = int(name) if _NUMBER.fullmatch(name) else 0
    if f"{PREFIX}{number:08d}" != key or not number:
        return _Stored(key, why="its key is not one of the journal's")
    try:
        document = read_json(text, key)
        return _Stored(key, number, _restore_count(document), document)
    except (*MISREAD, InputError) as fault:
        return _Stored(key, number, why=_words(fault))


def _restore_count(document: Any) -> int:
    """How many values an entry would restore, before they take any memory."""
    whos = [item["who"] for item in document["restores"]]
    return sum(high - low + 1 for who in whos if _SPANS.match(who) for low, high in _bounds(who)) + len(whos)


def _whos(who: str) -> List[str]:
    """The sections that `_document` made one of."""
    if not _SPANS.match(who):
        return [who]
    return [f"osd.{number}" for low, high in _bounds(who) for number in range(low, high + 1)]


def _entry(document: Any) -> Entry:
    """An entry out of what JSON reads; one of MISREAD for anything that this version does not write."""
    if _restore_count(document) > _MANY:
        raise ValueError(f"it restores {_restore_count(document)} values")
    steps = tuple(Step(**{name: step[name] for name in step if name in _OF_A_STEP}) for step in document["steps"])
    restores: List[Restore] = []
    for item in document["restores"]:
        name, value, ours = str(item["name"]), _optional(item["value"]), frozenset(map(_optional, item["ours"]))
        over = item.get("over", 0)
        if type(over) is not int or over < 0:
            raise TypeError("a value of another type")
        _check_value(name, value)
        for who in _whos(item["who"]):
            if not is_of_osds(who):
                raise ValueError(f"a section {who[:40]!r}")
            restores.append(Restore(who, name, value, ours, over))
    unknown = unknown_in(document, _OF_AN_ENTRY)
    own = {name: value for name, value in document.items() if name in _OF_AN_ENTRY}
    if not isinstance(own.get("forecast", {}), dict):
        # it is read when it is shown: nothing in it may stand in the way of taking the change back
        del own["forecast"]
    entry = Entry(**{**own, "steps": steps, "restores": tuple(restores), "unknown": unknown})
    texts = [getattr(entry, name) for name in ("who", "why", "release", "target", "note")]
    texts += [text for step in steps for text in (step.who, step.name)]
    for step in steps:
        _optional(step.old)
        _optional(step.new)
    numbers = (entry.at, entry.changed, entry.number, entry.generation)
    # a text such as "no" would count as true, and a change in force be taken back as a trial whose owner is gone
    switches = (entry.trial, *(step.settled for step in steps))
    right = (isinstance(text, str) for text in texts), map(_is_number, numbers), (type(one) is bool for one in switches)
    if not all(map(all, right)):
        raise TypeError("a value of another type")
    return entry


def refuse_unreadable(restores: Iterable[Restore]) -> None:
    """Raise InputError for a value that an entry could not be read with: its change could not be taken back."""
    for restore in restores:
        if not _is_readable(restore):
            kind = KNOBS[restore.name].expected()
            raise InputError(
                f"{restore.name} at `{restore.who}`",
                f"{printable(str(restore.value)[:80])!r}, which could not be put back",
                f"{kind}, or none: `{Step(*restore.key, restore.value, None).command}`",
            )


def _is_readable(restore: Restore) -> bool:
    try:
        _check_value(restore.name, restore.value)
    except (ValueError, InputError):
        return False
    return True


def _check_value(name: str, value: Optional[str]) -> None:
    """Whoever may write the store must not have a rollback, which may do more, set anything but a knob to its kind."""
    entry = ever_set(name)
    if entry is None:
        raise ValueError(f"restores {name[:60]}, which no change of ours sets")
    if value is None:
        return
    if len(value) > _LARGEST_VALUE or (entry.kind == "categorical" and not _TEXT_VALUE.fullmatch(value)):
        raise ValueError(f"{name} = {value[:40]!r}")
    entry.read(value)


def _optional(value: Any) -> Optional[str]:
    if value is not None and not isinstance(value, str):
        raise TypeError("a value that is no text")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _words(fault: BaseException) -> str:
    return fault.found if isinstance(fault, InputError) else f"{type(fault).__name__}: {fault}"[:160]


def _net(steps: Sequence[Step]) -> Tuple[Step, ...]:
    """One step per key, from its first value to its last."""
    net: Dict[Key, Step] = {}
    for step in steps:
        first = net.get(step.key)
        net[step.key] = step if first is None else replace(step, old=first.old)
    return tuple(net.values())


def _key(entry: Entry) -> str:
    return f"{PREFIX}{entry.number:08d}"
