"""Names of what a Kubernetes resource states beside the monitors: Rook's CephCluster, in `spec.cephConfig`.

Its entries are rows beside those of the configuration database, `cephcluster/NAMESPACE/NAME:SECTION`. So they have
steps, inverses in the journal, and drift, as any key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Tuple

from ceph_tuner.core.ceph.pods import NAMESPACE
from ceph_tuner.core.ceph.target import section_of
from ceph_tuner.core.errors import InputError

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_BARE = {ord(bracket): None for bracket in "()"}
_NAMED = re.compile(rf"({NAMESPACE})/({_NAME})")
_OF_OTHERS = re.compile(r"(.*) \(stated by ([^()]*)\)", re.DOTALL)
_WHO = re.compile(rf"cephcluster/({NAMESPACE})/({_NAME}):(.{{1,300}})", re.DOTALL)


@dataclass(frozen=True)
class CustomResource:
    """A CephCluster, by its namespace and name."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        """Both become parts of an address, and the second may be anybody's word."""
        if _NAMED.fullmatch(str(self)) is None:
            raise InputError("CephCluster", repr(str(self)[:80]), "names as Kubernetes has them")

    @classmethod
    def parse(cls, text: str, place: str) -> CustomResource:
        """Read NAMESPACE/NAME. Raises InputError."""
        match = _NAMED.fullmatch(text)
        if match is None:
            raise InputError(place, repr(text[:80]), "NAMESPACE/NAME of a CephCluster, such as rook-ceph/rook-ceph")
        return cls(match[1], match[2])

    def who(self, section: str) -> str:
        """The name of a row for one of its sections."""
        return f"cephcluster/{self}:{section}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def resource_of(who: str) -> Optional[Tuple[CustomResource, str]]:
    """The resource and the section that a row names; None for one of the monitors'."""
    match = _WHO.fullmatch(who)
    return None if match is None else (CustomResource(match[1], match[2]), match[3])


def is_of_osds(who: str) -> bool:
    """Whether a row states something for OSDs: at the monitors, or in a resource."""
    resource_address = resource_of(who)
    return section_of(who if resource_address is None else resource_address[1]) is not None


def of_another(value: str, manager: str) -> str:
    """The row's value where somebody else states it: no value of ours, whatever it says."""
    return f"{value} (stated by {manager.translate(_BARE)})"


def stated_by_another(value: Optional[str]) -> Optional[str]:
    """What somebody else states by such a value; None where nobody does."""
    match = _OF_OTHERS.fullmatch(value or "")
    return None if match is None else match[1]
