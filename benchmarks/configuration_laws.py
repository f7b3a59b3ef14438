"""What the configuration database may hold, by the journal: what was there before, or what a change plans."""

from __future__ import annotations

from typing import Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.knobs.settings import same

Key = Tuple[str, str]
"""Section and option."""
Table = Mapping[Key, str]


class Breach(NamedTuple):
    """A law that does not hold."""

    law: str
    words: str


def breaches(
    table: Table, entries: Sequence[Entry], others: Table, others_since: Optional[Mapping[Key, int]] = None
) -> Iterator[Breach]:
    """Of a database and the journal that was stored at that moment, oldest entry first.

    `others`: what the database would hold without any change of the journal; `others_since`: the newest change when
    somebody else wrote a key.
    """
    yield from _differences("inverse", taken_back(table, entries), others)
    if not any(entry.unfinished for entry in entries):
        yield from _differences("quiet", table, planned(table, entries, others, others_since or {}))


def taken_back(table: Table, entries: Sequence[Entry]) -> Dict[Key, str]:
    """What is left once every change that is not undone is taken back, whether or not its writer came to the end."""
    folded = dict(table)
    for entry in reversed(entries):
        if entry.state != UNDONE:
            for restore in entry.restores:
                now = folded.get(restore.key)
                if now != restore.value and any(same(now, value) for value in restore.ours):
                    folded.pop(restore.key, None)
                    if restore.value is not None:
                        folded[restore.key] = restore.value
    return folded


def planned(table: Table, entries: Sequence[Entry], others: Table, others_since: Mapping[Key, int]) -> Dict[Key, str]:
    """What the changes in force make of it.

    Steps of a change whose settings were replaced are those of the last time alone: a key that they leave out has any
    value that it ever had of that change, as `table` has it.
    """
    made = dict(others)
    for entry in (entry for entry in entries if entry.state == APPLIED):
        values = {step.key: step.new for step in entry.steps}
        for restore in entry.restores if entry.replaceable else ():
            if restore.key not in values and any(same(table.get(restore.key), value) for value in restore.ours):
                values[restore.key] = table.get(restore.key)
        for key, value in values.items():
            if others_since.get(key, 0) < entry.number:
                made.pop(key, None)
                if value is not None:
                    made[key] = value
    return made


def _differences(law: str, table: Table, wanted: Table) -> Iterator[Breach]:
    for key in sorted({*table, *wanted}):
        if not same(table.get(key), wanted.get(key)):
            yield Breach(law, f"{key[0]} {key[1]} is {table.get(key)}, and should be {wanted.get(key)}")
