"""What the convergence of resources knows of a part of the cluster, and what writes to resources."""

from __future__ import annotations

from typing import Any, Collection, Dict, Mapping, Protocol, Sequence

from ceph_tuner.controller.kinds import ResourceKind
from ceph_tuner.controller.levels import Value
from ceph_tuner.controller.resource import Report, Resource
from ceph_tuner.core.errors import RetryLater


class Part(Protocol):
    """A part of the cluster that resources of one kind state, as values under keys."""

    kind: ResourceKind

    def scope(self, resource: Resource) -> str:
        """Of the resources with the same scope one is carried to the cluster."""

    def values(self, resource: Resource, others: Sequence[Resource]) -> Dict[str, Value]:
        """What a resource states, in the order of the writes; `others` are those of its kind. Raises InputError."""

    def check_noted(self, key: str, value: Value) -> None:
        """Raise InputError for what no resource of this kind notes: who may edit a resource may edit its record."""

    def at_cluster(self, keys: Collection[str]) -> Dict[str, Value]:
        """What is there under each key. Raises TunerError."""

    def write(self, key: str, value: Value) -> None:
        """Bring a value there. Raises TunerError."""

    def words(self, key: str, value: Value) -> str:
        """What a value is, for people."""


class ResourceWriter(Protocol):
    """Writes to resources at the API server. Each gives the resource as it is then, and raises TunerError."""

    def note(self, resource: Resource, record: Mapping[str, Any]) -> Resource:
        """Keep a record on it, and the finalizer that stands as long as there is one."""

    def release(self, resource: Resource) -> None:
        """Take the record and the finalizer off."""

    def report(self, resource: Resource, report: Report) -> None:
        """Say in its status what became of it."""


class Fence(Protocol):
    """Says whether this controller may write. Both checks raise Locked where another one may be at work."""

    @property
    def is_ending(self) -> bool:
        """Whether it is to end: the resource that it is at is completed, and no other one is begun."""

    def check_lease(self) -> None:
        """Called before each write to the API server."""

    def check(self) -> None:
        """Called before each write to the cluster. Raises as the cluster's store, too."""


class Changed(RetryLater):
    """A resource was changed or removed after it was read: the pass is begun anew."""
