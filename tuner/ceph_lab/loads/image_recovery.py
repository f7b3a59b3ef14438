"""Degraded objects that clients write: their image's own, of which an OSD misses a write while it is away.

Ceph recovers such an object as soon as a client writes it, past every limit, and the client waits for it. The clients
begin first, and what they write has been recovered before norecover is cleared: no flag holds that.
"""

from __future__ import annotations

from typing import Dict, List

from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.pools import Tell, silent
from ceph_lab.loads.recovery import OBJECTS_PER_PG, RecoveryLoad
from ceph_tuner.core.errors import LoadFailed


class ImageRecoveryLoad(RecoveryLoad):
    """Recovery of a share of the clients' objects. It is prepared after the clients, whose image there has to be."""

    def __init__(self, clients: ClientLoad, share: float, tell: Tell = silent) -> None:
        objects, layout = degraded_objects(clients.work, share), clients.pool.layout
        if objects > OBJECTS_PER_PG * layout.pgs:
            raise LoadFailed(
                f"{objects} degraded objects are more than the logs of {layout.pgs} PGs should hold: "
                "take a smaller share, or larger objects",
                "",
            )
        super().__init__(clients.lab, clients.session, objects, clients.work.object_bytes, tell=tell, layout=layout)
        self.pool = clients.pool
        self._clients = clients

    def stores(self) -> Dict[int, float]:
        """Nothing beside the image."""
        return {}

    def _whole_objects(self) -> List[str]:
        """All of them, as which ones clients had recovered is not seen; none where hardly any is missing."""
        if self._degraded_objects() >= 0.95 * self.objects:
            return []
        names = self._clients.objects()
        pgids = self.session.pgs_of(self.pool.name, names)
        on_osd = [(name, pgid) for name, pgid in zip(names, pgids) if self.osd in self.pool.home(pgid)]
        if len(on_osd) < self.objects:
            raise LoadFailed(
                f"osd.{self.osd} has {len(on_osd)} of the image's {len(names)} objects, fewer than {self.objects}",
                "take a smaller degraded_share",
            )
        self._names_by_pg = {}
        for name, pgid in on_osd[: self.objects]:
            self._names_by_pg.setdefault(pgid, []).append(name)
        return [name for own in self._names_by_pg.values() for name in own]


def degraded_objects(work: ClientWork, share: float) -> int:
    """So many objects are to lack a copy, of those that the clients' image has."""
    return max(1, round(share * work.objects))
