"""A small HTTP server for Prometheus in the active mgr. It shows what was published last and asks the cluster nothing.

Ceph's own exporter cannot carry another module's metrics (its list of them is fixed, 18.2.7 and 20.2.4), so this is
a port of its own.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Callable, Dict, Optional, Tuple

from .exposition import CONTENT_TYPE, ExportedState, exposition

PATH = "/metrics"
CROWD = 8
"""Connections at once, each with a thread of the mgr. One more ends the oldest: a scrape takes milliseconds."""
PATIENCE_S = 5.0
"""How long a client may take, however it drips."""
POLL_S = 0.2
"""How long a shutdown may take."""


class Endpoint:
    """Serves the document that was published last. `listen` and `close` are called by one thread at a time."""

    def __init__(self) -> None:
        self.note = ""
        """Why it does not listen, although it should."""
        self._document: ExportedState = {}
        self._server: Optional[_Server] = None
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
                self._server = _start(_Server(address, port, lambda: exposition(self._document)))
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
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _start(server: _Server) -> _Server:
    try:
        serve = threading.Thread(target=server.serve_forever, args=(POLL_S,), name="tuner-metrics", daemon=True)
        serve.start()
    except RuntimeError:
        # no thread to be had: a server that was never served could not be shut down
        server.server_close()
        raise
    return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # those who came too late find an answer soon: nobody waits for a slow client
    request_queue_size = CROWD

    def __init__(self, address: str, port: int, text: Callable[[], str]) -> None:
        self.text = text
        self._free = threading.BoundedSemaphore(CROWD)
        self._since: Dict[socket.socket, float] = {}
        """Connections that are being answered, the oldest first, and when they came."""
        if not address:
            address = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104, as Ceph's own exporter
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # HTTPServer's own would look the host's name up, and a slow name server would hold the tick
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self._end(len(self._since) - CROWD + 1)
            if not self._free.acquire(timeout=POLL_S):
                self.shutdown_request(request)
                return
        self._since[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._release(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._release(request)

    def service_actions(self) -> None:
        late = time.monotonic() - PATIENCE_S
        self._end(sum(since < late for since in list(self._since.values())))

    def _end(self, count: int) -> None:
        """End the oldest connections: their threads see it at once."""
        for request in list(self._since)[: max(0, count)]:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def _release(self, request: Any) -> None:
        self._since.pop(request, None)
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of the mgr's business."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "ceph-tuner", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        body, status, kind = f"ceph-tuner's metrics are at {PATH}\n", 404, "text/plain; charset=utf-8"
        if self.path.split("?")[0] == PATH:
            try:
                body, status, kind = self.server.text(), 200, CONTENT_TYPE
            except Exception as error:
                body, status = f"{type(error).__name__}: {error}\n", 500
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: a line for each scrape helps nobody."""
