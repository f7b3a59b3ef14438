"""A small HTTP server that nobody can hold: few connections, each for a short time, answers from memory.

Runs inside ceph-mgr as well: standard library only.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Callable, Dict, NamedTuple

TEXT = "text/plain; charset=utf-8"
CROWD = 8
"""Connections at once, each with a thread. One more ends the oldest: an answer takes milliseconds."""
PATIENCE_S = 5.0
"""How long a client may take, however it drips."""
POLL_S = 0.2
"""How long a shutdown may take."""


class HttpPage(NamedTuple):
    """An answer: its status, its type and its text."""

    status: int
    kind: str
    body: str


class BoundedHttpServer(ThreadingHTTPServer):
    """Answers GET and HEAD with what `page` gives for a path, without its query. `serve` begins, `end` ends."""

    daemon_threads = True
    # those who came too late find an answer soon: nobody waits for a slow client
    request_queue_size = CROWD

    def __init__(self, address: str, port: int, page: Callable[[str], HttpPage]) -> None:
        """Listen there: empty is every address. Raises OSError, OverflowError, UnicodeError."""
        self.page = page
        self._free = threading.BoundedSemaphore(CROWD)
        self._since: Dict[socket.socket, float] = {}
        """Connections that are being answered, the oldest first, and when they came."""
        if not address:
            address = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104, as Ceph's own exporter
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def serve(self, name: str) -> None:
        """Answer, from a thread of that name. Raises RuntimeError where there is none to be had."""
        try:
            threading.Thread(target=self.serve_forever, args=(POLL_S,), name=name, daemon=True).start()
        except RuntimeError:
            # a server that was never served could not be shut down
            self.server_close()
            raise

    def end(self) -> None:
        """Stop: the port is free when this returns."""
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking a name server."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # HTTPServer's own would look the host's name up, and a slow name server would hold the caller
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer it in a thread of its own, one of CROWD."""
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
        """Answer it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._release(request)

    def service_actions(self) -> None:
        """End those that take too long."""
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
        """A client that went away is nobody's business here."""


class _Handler(BaseHTTPRequestHandler):
    server: BoundedHttpServer
    server_version, sys_version = "ceph-tuner", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        try:
            status, kind, body = self.server.page(self.path.split("?")[0])
        except Exception as error:
            status, kind, body = 500, TEXT, f"{type(error).__name__}: {error}\n"
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
