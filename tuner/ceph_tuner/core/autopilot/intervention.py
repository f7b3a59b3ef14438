"""Who else is at work on the settings: what others changed in the configuration database during a trial."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, covered
from ceph_tuner.core.changes.plan import Restore, SettingDrift, text_of
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.knobs.catalogue import KNOBS, NEVER_SET
from ceph_tuner.core.knobs.settings import same

_LEFT_OUT = ("capacity", "pool", *NEVER_SET)
"""Kinds of knobs that are left out: an OSD writes its capacity itself when it boots, pools are no option, and what the
tuner never sets is the operator's at any time."""


class Interventions(NamedTuple):
    """In words, for people."""

    drift: Tuple[str, ...]
    """Keys that are ours."""
    manual: Tuple[str, ...]
    """Other keys of knobs, on OSDs that the trial is on."""


def interventions(
    before: Iterable[ConfigEntry], now: Iterable[ConfigEntry], ours: Iterable[Restore], places: Sequence[Place]
) -> Interventions:
    """Compare the database with what it was when the trial began.

    `ours`: what the journal says of the changes on trial. `places`: the OSDs that the trial is on.
    """
    old, new = _knobs(before), _knobs(now)
    own_values: Dict[Key, FrozenSet[Optional[str]]] = {}
    for restore in ours:
        own_values[restore.key] = own_values.get(restore.key, frozenset()) | restore.ours
    drift = []
    for key, values in sorted(own_values.items()):
        if not any(same(new.get(key), value) for value in values):
            texts = sorted(value for value in values if value is not None)
            drift.append(str(SettingDrift(*key, texts[0] if texts else None, new.get(key))))
    manual: List[str] = []
    for key in sorted(old.keys() | new.keys()):
        if key not in own_values and not same(old.get(key), new.get(key)) and covered(key[0], places):
            now_text, was = (text_of(table.get(key)) for table in (new, old))
            manual.append(f"{key[0]} {key[1]}: {now_text}, before the trial {was}")
    return Interventions(tuple(drift), tuple(manual))


def _knobs(entries: Iterable[ConfigEntry]) -> Dict[Key, str]:
    return {
        (entry.who, entry.name): entry.value
        for entry in entries
        if entry.name in KNOBS and KNOBS[entry.name].work not in _LEFT_OUT
    }
