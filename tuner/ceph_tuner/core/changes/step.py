"""One write of a change."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Optional

from ceph_tuner.core.changes.custom_resource import resource_of
from ceph_tuner.core.changes.shard_rereading import Key

FIELD_MANAGER = "ceph-tuner"
"""Whose the values are that ceph-tuner states in a resource."""


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
