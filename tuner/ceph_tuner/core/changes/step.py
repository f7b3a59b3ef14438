"""One write of a change."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Iterable, List, Optional, Sequence, Set, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.custom_resource import resource_of
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.knobs.settings import same

FIELD_MANAGER = "ceph-tuner"
"""Whose the values are that ceph-tuner states in a resource."""

SETTLING_S = 10
"""Whoever types the commands waits so long where the OSDs must show the earlier ones; OSDs follow within 2 s."""


@dataclass(frozen=True)
class Step:
    """One write. None stands for no entry."""

    who: str
    name: str
    old: Optional[str]
    new: Optional[str]
    settled: bool = False
    """Whether the OSDs must show the earlier steps before this one: it ends the state that those needed."""

    @property
    def key(self) -> Key:
        """What it writes to."""
        return self.who, self.name

    @property
    def command(self) -> str:
        """The command that an operator would type."""
        resource_address = resource_of(self.who)
        if resource_address is not None:
            resource, section = resource_address
            patch = json.dumps({"spec": {"cephConfig": {section: {self.name: self.new}}}}, separators=(",", ":"))
            words = ["kubectl", "-n", resource.namespace, "patch", "cephcluster", resource.name, "--type=merge"]
            # under kubectl's own name: what was typed by hand is its operator's, as it is at the monitors
            words += ["-p", patch]
        elif self.new is None:
            words = ["ceph", "config", "rm", self.who, self.name]
        else:
            words = ["ceph", "config", "set", self.who, self.name, self.new]
        return " ".join(shlex.quote(word) for word in words)


def typed(steps: Iterable[Step]) -> Tuple[str, ...]:
    """Give the commands that an operator would type one after the other, with the waits between them."""
    commands: List[str] = []
    for step in steps:
        if step.settled and commands:
            commands.append(f"sleep {SETTLING_S}")
        commands.append(step.command)
    return tuple(commands)


def doubtful_keys(steps: Sequence[Step], rows: Iterable[ConfigEntry]) -> Set[Key]:
    """After a crash while applying: the first step not seen may still be under way to the monitors.

    `rows` are those of the database now. Where a key is written twice, several numbers of steps done look alike: the
    next of each.
    """
    values = {(row.who, row.name): row.value for row in rows}
    values_by_key = {step.key: step.old for step in reversed(steps)}
    unlike = [sum(not same(values.get(key), value) for key, value in values_by_key.items())]
    for step in steps:
        # of one key at a time, as a rollout over thousands of OSDs has as many steps
        unlike.append(
            unlike[-1] + same(values.get(step.key), values_by_key[step.key]) - same(values.get(step.key), step.new)
        )
        values_by_key[step.key] = step.new
    return {step.key for step, count in zip(steps, unlike) if count == min(unlike)}
