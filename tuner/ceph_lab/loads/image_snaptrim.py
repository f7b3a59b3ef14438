"""Snaptrim of what clients write: clones of their image's own objects.

Trimming keeps its PG while it waits for the OSD's table of snapshots: on a pool of its own no client waits with it.
"""

from __future__ import annotations

from typing import Dict, List

from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.pools import Tell, silent
from ceph_lab.loads.snaptrim import SnaptrimLoad


class ImageSnaptrimLoad(SnaptrimLoad):
    """Trimming in the clients' PGs. It is prepared after the clients, who write the image once."""

    def __init__(self, clients: ClientLoad, clones: int, tell: Tell = silent) -> None:
        work, layout = clients.work, clients.pool.layout
        super().__init__(
            clients.lab, clients.session, work.objects, work.object_bytes, tell=tell, layout=layout, clones=clones
        )
        self.pool = clients.pool
        self._clients = clients

    def stores(self) -> Dict[int, float]:
        """What each clone has of its own: the objects are the image's."""
        return self.pool.spread(float(self.clones * self.overwritten_bytes))

    def fill(self, objects: int) -> List[str]:
        """Give the image's objects, which are there."""
        return self._clients.objects()[:objects]
