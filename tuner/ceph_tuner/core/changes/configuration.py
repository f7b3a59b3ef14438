"""What a change needs of the configuration database and of the OSDs that follow it."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Protocol

from ceph_tuner.core.ceph.ports import ConfigDatabase, OsdSources
from ceph_tuner.core.ceph.target import Place


class Configuration(ConfigDatabase, Protocol):
    """The configuration database, and what planning must know beside it. `CommandConfig` is one."""

    def places(self) -> List[Place]:
        """Every OSD, with what masks are matched against."""

    def versions(self) -> List[str]:
        """Versions that the OSDs run."""

    def sources_on(self, osds: Iterable[int]) -> Iterator[OsdSources]:
        """Of many OSDs' options that are not at their default: source -> value, as they answer."""
