"""Deep scrub of what clients write: their image's own objects.

A write to an object of the chunk that is scrubbed stops that scrub, or waits for it: on a pool of their own, scrub and
clients never meet.
"""

from __future__ import annotations

from typing import Dict

from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.pools import Tell, silent
from ceph_lab.loads.scrub import ScrubLoad


class ImageScrubLoad(ScrubLoad):
    """Deep scrub of the clients' PGs. It is prepared after the clients, who write the image once."""

    def __init__(self, clients: ClientLoad, kind: str = "periodic", tell: Tell = silent) -> None:
        work, layout = clients.work, clients.pool.layout
        super().__init__(clients.lab, clients.session, kind, work.objects, work.object_bytes, layout.pgs, tell, layout)
        self.pool = clients.pool

    def stores(self) -> Dict[int, float]:
        """Nothing beside the image."""
        return {}

    def prepare(self) -> None:
        """Nothing: the image is there."""

    def _bytes_scrubbed(self) -> float:
        """OSDs also count what they read of chunks that a write preempts."""
        return self._whole_objects()
