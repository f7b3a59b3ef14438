"""Changes of the same keys that lie over one another: what one restores once another one is taken back. No I/O.

A newer entry lies over an older one, but for a change whose settings are replaced while it stands (`standing.py`):
where a replacement adds a key, it lies over whatever newer change has that key. Values do not tell which of the two is
above, as both may have written the same one, so `Restore.over` does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import FrozenSet, Iterable, Mapping, Sequence, Tuple

from ceph_tuner.core.changes.journal import APPLIED, Entry
from ceph_tuner.core.changes.plan import Restore
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.knobs.settings import same


def marked(restores: Iterable[Restore], newer: Sequence[Entry]) -> Tuple[Restore, ...]:
    """Restores with the change whose value each is, among those that are newer than their own entry."""
    return tuple(replace(item, over=_source(item, newer)) for item in restores)


def after_undo(entry: Entry, undone: Entry, entries: Sequence[Entry]) -> Tuple[Restore, ...]:
    """What an entry restores once `undone` is taken back: for a key that it has over that one, what was before both."""
    under = {item.key: item for item in undone.restores}
    between = [change for change in entries if entry.number < change.number < undone.number]
    restores = []
    for item in entry.restores:
        beneath = under.get(item.key)
        if beneath is not None and _lies_over(item, entry, beneath, undone, entries):
            (item,) = marked([replace(item, value=beneath.value)], between)
        restores.append(item)
    return tuple(restores)


def covered(entry: Entry, entries: Sequence[Entry], values: Mapping[Key, str]) -> FrozenSet[Key]:
    """Keys of which a change in force over this one wrote the value that they hold, which may be ours as well."""
    heights = {item.key: _height(item, entry) for item in entry.restores if not same(values.get(item.key), item.value)}
    return frozenset(
        item.key
        for change in entries
        if change.state == APPLIED and change.number != entry.number
        for item in change.restores
        if item.key in heights and heights[item.key] < _height(item, change)
        if any(same(values.get(item.key), value) for value in item.ours)
    )


def _lies_over(item: Restore, entry: Entry, beneath: Restore, undone: Entry, entries: Sequence[Entry]) -> bool:
    if undone.number > entry.number:
        return item.over == undone.number
    if item.over or not any(same(item.value, value) for value in beneath.ours):
        return False
    low, high = _height(beneath, undone), _height(item, entry)
    # a change between the two may have been followed by one that wrote the same value as the lowest
    return low < high and not any(
        other.key == item.key and low < _height(other, change) < high
        for change in entries
        if change.state == APPLIED
        for other in change.restores
    )


def _height(item: Restore, entry: Entry) -> Tuple[int, bool]:
    return (item.over, True) if item.over else (entry.number, False)


def _source(item: Restore, newer: Sequence[Entry]) -> int:
    """The newest change in force that wrote this value, 0 where none did."""
    return max(
        (
            change.number
            for change in newer
            if change.state == APPLIED
            for other in change.restores
            if other.key == item.key and any(same(item.value, value) for value in other.ours)
        ),
        default=0,
    )
