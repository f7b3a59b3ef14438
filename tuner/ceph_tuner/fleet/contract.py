"""The nouns of a fleet: its members, how each is reached, and where a password comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Sequence, Tuple, Union

from ceph_tuner.cluster.prefix_command import PrefixCommand
from ceph_tuner.core.errors import InputError
from ceph_tuner.fleet.secret import Secret
from ceph_tuner.fleet.trust import Trust
from ceph_tuner.rook.management import RookChoice


@dataclass(frozen=True)
class ByCeph:
    """Reached by Ceph's own commands, as whom the keyring says."""

    conf: str
    keyring: str = ""
    name: str = "client.admin"

    kind = "ceph"


@dataclass(frozen=True)
class ByPrefix:
    """Reached by the `ceph` program on another machine, behind a prefix command."""

    command: PrefixCommand

    kind = "prefix_command"


@dataclass(frozen=True)
class ByLab:
    """A lab of this machine."""

    lab: str

    kind = "lab"


@dataclass(frozen=True)
class ByDashboard:
    """Reached by the dashboard's REST API, at the first of these addresses that is the active mgr's."""

    urls: Tuple[str, ...]
    username: str
    password: Secret
    ca: str = ""
    """File with the certificates to trust; the system's where empty."""
    verify: bool = True

    kind = "dashboard"


Access = Union[ByCeph, ByPrefix, ByLab, ByDashboard]


@dataclass(frozen=True)
class PrometheusServer:
    """Where a cluster's past is: a Prometheus server that scrapes it, asked by HTTP."""

    url: str
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels and their values that tell this cluster's series from those of others."""
    username: str = ""
    password: Optional[Secret] = None
    token: Optional[Secret] = None
    """A bearer token, in place of user name and password."""
    ca: str = ""
    """File with the certificates to trust; the system's where empty."""
    verify: bool = True


@dataclass(frozen=True)
class Member:
    """One cluster of the fleet."""

    name: str
    access: Access
    labels: Mapping[str, str] = field(default_factory=dict)
    prometheus: Optional[PrometheusServer] = None
    description: str = ""
    """File that describes it to its twin (docs/describing.md); made from what it tells where empty."""
    slo: str = ""
    """File with its SLO; the one that the cluster keeps where empty."""
    rook: RookChoice = field(default_factory=RookChoice)
    """Its CephCluster, where Rook manages it."""


@dataclass(frozen=True)
class Fleet:
    """All clusters, in the order of their file."""

    members: Tuple[Member, ...]
    place: str = "fleet.yaml"
    trust: Optional[Trust] = None
    """Whose profiles are taken; None: anybody's."""

    def chosen(self, names: Sequence[str] = (), labels: Sequence[str] = ()) -> Tuple[Member, ...]:
        """Those of these names (none: all) that carry all of these labels, `KEY=VALUE`. Raises InputError."""
        by_name = {member.name: member for member in self.members}
        for name in names:
            if name not in by_name:
                raise InputError(self.place, f"no cluster {name!r}", f"one of {', '.join(by_name)}")
        pairs = [_label(text) for text in labels]
        members = tuple(
            member
            for member in self.members
            if (not names or member.name in names) and all(member.labels.get(key) == value for key, value in pairs)
        )
        if not members:
            raise InputError("--label", ", ".join(labels), "labels that some cluster carries")
        return members


def _label(text: str) -> Tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError("--label", repr(text), "KEY=VALUE")
    return key, value
