"""A small HTTP server for Prometheus in the active mgr. It shows what was published last and asks the cluster nothing.

Ceph's own exporter cannot carry another module's metrics (its list of them is fixed, 18.2.7 and 20.2.4), so this is
a port of its own.
"""

from __future__ import annotations

import threading
from typing import Optional, Tuple

from ceph_tuner.core.bounded_http import TEXT, BoundedHttpServer, HttpPage

from .exposition import CONTENT_TYPE, ExportedState, exposition

PATH = "/metrics"


class Endpoint:
    """Serves the document that was published last. `listen` and `close` are called by one thread at a time."""

    def __init__(self) -> None:
        self.note = ""
        """Why it does not listen, although it should."""
        self._document: ExportedState = {}
        self._server: Optional[BoundedHttpServer] = None
        self._address: Optional[Tuple[str, int]] = None
        self._changing = threading.Lock()
        self._closed = False

    def publish(self, document: ExportedState) -> None:
        """Show this from now on; it must not be changed any more."""
        self._document = document

    def listen(self, address: str, port: int) -> None:
        """Listen there if it does not yet: empty is every address, port 0 is nowhere. Called with every tick.

        A port that is in use is a note, and tried again with the next call.
        """
        with self._changing:
            if self._closed or (self._server is not None and self._address == (address, port)):
                return
            self._stop()
            self.note, self._address = "", (address, port)
            if port == 0:
                return
            try:
                server = BoundedHttpServer(address, port, self._page)
                server.serve("tuner-metrics")
                self._server = server
            except (OSError, OverflowError, RuntimeError, UnicodeError) as error:
                self.note = f"no metrics: cannot listen on {address or 'any address'}, port {port}: {error}"

    @property
    def port(self) -> Optional[int]:
        """Where it listens; None where it does not."""
        server = self._server
        return server.server_port if server is not None else None

    def close(self) -> None:
        """Stop for good: the port is free when this returns."""
        with self._changing:
            self._closed = True
            self._stop()

    def _stop(self) -> None:
        if self._server is not None:
            self._server.end()
            self._server = None

    def _page(self, path: str) -> HttpPage:
        if path != PATH:
            return HttpPage(404, TEXT, f"ceph-tuner's metrics are at {PATH}\n")
        return HttpPage(200, CONTENT_TYPE, exposition(self._document))
