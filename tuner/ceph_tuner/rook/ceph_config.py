"""What a CephCluster states in `spec.cephConfig`, and who states it. No I/O.

Kubernetes keeps, field by field, which manager set it (`metadata.managedFields`). By server-side apply a manager names
all of its fields each time: what it leaves out is removed, unless another one states it too.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Mapping, Optional

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.changes.custom_resource import CustomResource
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.changes.step import FIELD_MANAGER
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.knobs.settings import same


@dataclass(frozen=True)
class CephConfig:
    """A CephCluster, as far as it concerns Ceph's configuration."""

    values: Mapping[Key, str]
    """(section, option) -> what it states."""
    ours: FrozenSet[Key]
    """Of these what ceph-tuner states."""
    others: Mapping[Key, str]
    """Of these what somebody else states, as well or alone -> the field manager's name."""
    secrets: FrozenSet[Key]
    """Stated by `cephConfigFromSecret`, whose values nobody sees here."""
    fsid: str
    """Of the Ceph cluster; empty where Rook has not said it yet."""
    generation: int
    """Counts changes of the spec."""
    observed: int
    """The generation that Rook was done with last; 0 where it never was."""
    uid: str = ""
    """Of the resource: another one of its name has another."""
    version: str = ""
    """Another one after each write to it, of whatever part."""

    @property
    def is_observed(self) -> bool:
        """Whether Rook has done all that the resource says."""
        return self.observed >= self.generation

    def spec_with(self, changes: Mapping[Key, Optional[str]]) -> Dict[str, Any]:
        """What ceph-tuner states from now on: its own values, changed. What others state as well is left to them."""
        own = {key: self.values[key] for key in self.ours if key not in self.others}
        own_values = {**own, **changes}
        sections: Dict[str, Dict[str, str]] = {}
        for (section, name), value in sorted(own_values.items()):
            if value is not None:
                sections.setdefault(section, {})[name] = value
        return {"cephConfig": sections} if sections else {}


def ceph_config(document: Mapping[str, Any]) -> CephConfig:
    """Read it out of the API server's answer. Raises CommandFailed for what has another shape."""
    try:
        return _ceph_config(document)
    except MISREAD as fault:
        words = f"answered what cannot be read ({type(fault).__name__}: {fault})"
        raise CommandFailed("GET cephclusters", -errno.EIO, words[:200]) from fault


def _ceph_config(document: Mapping[str, Any]) -> CephConfig:
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    values = {
        (section, option_name(name)): str(value)
        for section, names in (spec.get("cephConfig") or {}).items()
        for name, value in (names or {}).items()
    }
    ours: List[Key] = []
    others: Dict[Key, str] = {}
    for entry in metadata.get("managedFields") or []:
        fields = entry.get("fieldsV1", {}).get("f:spec", {}).get("f:cephConfig", {})
        keys = [
            (section[2:], option_name(name[2:]))
            for section, names in fields.items()
            for name in names
            if section.startswith("f:") and name.startswith("f:")
        ]
        present = [key for key in keys if key in values]
        is_named_as_we = entry["manager"] == FIELD_MANAGER
        # what our name was given for in another way (`kubectl patch --field-manager`) no apply of ours takes out again
        if is_named_as_we and entry.get("operation") == "Apply":
            ours += present
        else:
            others.update(dict.fromkeys(present, f"{entry['manager']}{' by hand' if is_named_as_we else ''}"))
    for key in values.keys() - {*ours, *others}:
        others[key] = "nobody who is known"
    return CephConfig(
        values,
        frozenset(ours),
        others,
        frozenset(
            (section, option_name(name))
            for section, names in (spec.get("cephConfigFromSecret") or {}).items()
            for name in names or {}
        ),
        str((status.get("ceph") or {}).get("fsid") or ""),
        int(metadata.get("generation") or 0),
        int(status.get("observedGeneration") or 0),
        str(metadata.get("uid") or ""),
        str(metadata.get("resourceVersion") or ""),
    )


def option_name(name: str) -> str:
    """An option's name as Ceph knows it: Rook takes blanks and hyphens too."""
    return name.replace(" ", "_").replace("-", "_")


def refuse_conflict(resource: CustomResource, now: CephConfig, key: Key, value: Optional[str]) -> None:
    """Refuse to write what somebody else states in the resource with another value: Rook would set that again."""
    section, name = key
    if key in now.secrets:
        conflict = f"{name} of `{section}` under `cephConfigFromSecret`, which Rook sets again"
    elif key in now.others and not same(now.values[key], value):
        conflict = f"{name} of `{section}` = {now.values[key]}, stated by {now.others[key]}, which Rook sets again"
    else:
        return
    raise InputError(f"CephCluster {resource}", conflict, "that option taken out of what states it there")
