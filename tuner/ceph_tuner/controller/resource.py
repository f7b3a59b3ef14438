"""One custom resource as the API server has it, and what is said of it in its status. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Tuple

from ceph_tuner.controller.kinds import FINALIZER, RECORD, ResourceKind
from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.errors import Malformed
from ceph_tuner.core.knobs.settings import dotted
from ceph_tuner.core.printable import one_line
from ceph_tuner.files import schema
from ceph_tuner.files.yaml_document import YamlDocument

LONGEST_MESSAGE = 1000
RECORD_BYTES = 200 << 10
"""Of a record: the API server takes 256 KiB of annotations."""
UNREADABLE = "unreadable"
"""The key of a record that cannot be read."""


class SpecDocument(YamlDocument):
    """A resource's `spec`, whose places have no lines."""

    def place(self, *keys: object) -> str:
        """`CephSLO rook-ceph/main: spec.objectives.0`."""
        return dotted(f"{self.name}: spec", *keys)


@dataclass(frozen=True)
class Resource:
    """A custom resource."""

    kind: ResourceKind
    namespace: str
    name: str
    uid: str
    version: str
    """Another one after each write to it."""
    generation: int
    """Counts changes of `spec`."""
    created: str
    """RFC 3339, in UTC: texts in the order of time."""
    deleted: bool
    """Whether it goes as soon as its finalizer is gone."""
    finalizers: Tuple[str, ...]
    spec: Mapping[str, Any]
    record: Mapping[str, Any]
    """What was noted before the cluster was written to; empty for nothing."""
    status: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_document(cls, kind: ResourceKind, document: Mapping[str, Any]) -> Resource:
        """Read an object of the API server. Raises one of MISREAD for what has another shape."""
        metadata = document["metadata"]
        return cls(
            kind,
            str(metadata["namespace"]),
            str(metadata["name"]),
            str(metadata["uid"]),
            str(metadata["resourceVersion"]),
            int(metadata.get("generation") or 0),
            str(metadata.get("creationTimestamp") or ""),
            metadata.get("deletionTimestamp") is not None,
            tuple(map(str, metadata.get("finalizers") or ())),
            dict(document.get("spec") or {}),
            _record(str((metadata.get("annotations") or {}).get(RECORD) or "{}")),
            dict(document.get("status") or {}),
        )

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"

    @property
    def age(self) -> Tuple[str, str]:
        """Sorts resources, the oldest first."""
        return self.created, self.name

    @property
    def is_held(self) -> bool:
        """Whether our finalizer stands on it."""
        return FINALIZER in self.finalizers

    @property
    def document(self) -> SpecDocument:
        """Its `spec`, checked by the schema of its kind. Raises InputError."""
        document = SpecDocument(str(self), dict(self.spec))
        schema.check(document, self.kind.spec)
        return document


def _record(text: str) -> Mapping[str, Any]:
    """Read what was noted; what is none becomes a record that `noted` refuses, so that the resource says so."""
    try:
        record = read_json(text, f"the annotation {RECORD}", RECORD_BYTES)
    except Malformed as fault:
        return {UNREADABLE: fault.found}
    return record if isinstance(record, dict) else {UNREADABLE: "no mapping"}


def record_part(record: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """A part of a record; empty where nothing was noted. Raises Malformed for what is no record."""
    content = record.get(part, {})
    if UNREADABLE in record or not isinstance(content, dict):
        raise unusable_record(str(record.get(UNREADABLE, f"no mapping under {part}")))
    return content


def unusable_record(words: str) -> Malformed:
    """Give the error for a record that no controller wrote: somebody edited it, and nothing is done by it."""
    expected = "what the controller wrote: without the annotation what is at the cluster stays there"
    return Malformed(f"the annotation {RECORD}", words, expected)


@dataclass(frozen=True)
class StatusCondition:
    """What is said of one condition."""

    is_true: bool
    reason: str
    message: str


@dataclass(frozen=True)
class Report:
    """What is said of a resource."""

    accepted: StatusCondition
    ready: StatusCondition

    @classmethod
    def refused(cls, reason: str, message: str, beside: str = "") -> Report:
        """It is not carried to the cluster."""
        return cls(StatusCondition(False, reason, message), StatusCondition(False, "NotAccepted", beside or message))


VALID = StatusCondition(True, "Valid", "The resource is valid.")


def status_of(resource: Resource, report: Report, now: str) -> Dict[str, Any]:
    """Give the status that says so; what did not change keeps the time of its last change. `now` is RFC 3339."""
    before = {
        str(each.get("type")): each for each in resource.status.get("conditions") or [] if isinstance(each, Mapping)
    }
    conditions = []
    for name, condition in (("Accepted", report.accepted), ("Ready", report.ready)):
        state, earlier = "True" if condition.is_true else "False", before.get(name, {})
        since = earlier.get("lastTransitionTime") if earlier.get("status") == state else None
        conditions.append(
            {
                "type": name,
                "status": state,
                "observedGeneration": resource.generation,
                "lastTransitionTime": since or now,
                "reason": condition.reason,
                "message": one_line(condition.message, LONGEST_MESSAGE),
            }
        )
    return {"observedGeneration": resource.generation, "conditions": conditions}
