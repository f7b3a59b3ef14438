"""What a cluster's journal says that ceph-tuner changed there, and what became of it since. Changes nothing there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.lock_holder import holder_of, under_way
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.journal import APPLIED, Entry, Journal
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.knobs.settings import same


@dataclass(frozen=True)
class NewestChange:
    """The newest change of the journal."""

    number: int
    at: float
    """When it came into its state, in seconds since the epoch."""
    state: str
    target: str
    who: str
    why: str
    trial: bool


def changes_of(
    cluster: Cluster, entries: Sequence[ConfigEntry], notes: List[str]
) -> Tuple[Optional[Tuple[str, ...]], Optional[NewestChange]]:
    """Keys that drifted from the changes in force (`drifted`), and the newest change; None where nobody can tell.

    `entries`: the configuration database. What the journal has to be told of is added to `notes`.
    """
    read = Journal(cluster.store).read()
    notes += map(str, read.set_aside)
    if any(item.number for item in read.set_aside):
        return None, None
    journal = read.entries
    half_done = [entry for entry in journal if entry.unfinished]
    claim = holder_of(cluster) if half_done else None
    notes += [
        f"change {entry.number} is under way ({entry.state}), by {claim.words}"
        if claim is not None and under_way(entry, claim)
        else f"change {entry.number} was left half done ({entry.state})"
        for entry in half_done
    ]
    notes += [
        f"change {entry.number} is on trial ({entry.who}): if that is gone, the next tuner there takes it back"
        for entry in journal
        if entry.trial and entry.state == APPLIED
    ]
    in_force = [entry for entry in journal if entry.state == APPLIED]
    last = max(journal, key=lambda entry: (entry.changed, entry.number), default=None)
    if last is None:
        return (), None
    change = NewestChange(last.number, last.changed, last.state, last.target, last.who, last.why, last.trial)
    return tuple(drifted(entries, in_force)), change


def drifted(entries: Sequence[ConfigEntry], in_force: Sequence[Entry]) -> List[str]:
    """Keys that are not as the changes in force left them."""
    ours: Dict[Key, Optional[str]] = {}
    for entry in in_force:
        # an entry in force restores what it left changed
        keys = {restore.key for restore in entry.restores}
        ours.update({step.key: step.new for step in entry.steps if step.key in keys})
    now = {(entry.who, entry.name): entry.value for entry in entries}
    return [
        f"{who} {name}: {_value_text(now.get((who, name)))} instead of {_value_text(value)}"
        for (who, name), value in ours.items()
        if not same(now.get((who, name)), value)
    ]


def _value_text(value: Optional[str]) -> str:
    return "nothing" if value is None else value
