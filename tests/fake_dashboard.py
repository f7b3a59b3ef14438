"""A small real HTTP server that answers as a dashboard does; TLS with certificates of its own."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

USER = "tuner"
PASSWORD = "Tr0ub4dor-and-3"  # noqa: S105

Answer = Tuple[int, Any]
Handle = Callable[[str, str], Answer]


class Asked(NamedTuple):
    method: str
    path: str
    token: str
    accept: str


class FakeDashboard:
    """Logs in; answers GETs from `pages`; `before` may answer first. Tokens are counted and can be forgotten."""

    def __init__(self, pages: Dict[str, Any]) -> None:
        self.pages = pages
        self.before: Callable[[Asked], Optional[Answer]] = lambda asked: None
        self.asked: List[Asked] = []
        self.logins = 0
        self.valid: List[str] = []
        self.url = ""

    def answer(self, asked: Asked, body: bytes) -> Answer:
        self.asked.append(asked)
        early = self.before(asked)
        if early is not None:
            return early
        if asked.path == "/api/auth":
            self.logins += 1
            if json.loads(body) != {"username": USER, "password": PASSWORD}:
                return 400, {"detail": "Invalid credentials", "code": "invalid_credentials"}
            self.valid.append(f"token-{self.logins}")
            return 201, {"token": self.valid[-1], "pwdUpdateRequired": False}
        if asked.token not in self.valid:
            return 401, {"detail": "You are not authorized to access that resource"}
        if asked.path not in self.pages:
            return 404, {"detail": f"The path '{asked.path}' was not found."}
        return 200, self.pages[asked.path]


@contextmanager
def serving(dashboard: FakeDashboard, certificate: Optional[Path] = None) -> Iterator[FakeDashboard]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            token = self.headers.get("Authorization", "").replace("Bearer ", "")
            asked = Asked(self.command, self.path, token, self.headers.get("Accept", ""))
            status, document = dashboard.answer(asked, body)
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Set-Cookie", "token=a-cookie; Path=/")
            if 300 <= status < 400:
                self.send_header("Location", "https://elsewhere.invalid/")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    dashboard.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield dashboard
    finally:
        server.shutdown()
        server.server_close()


def certificates(directory: Path) -> Tuple[Path, Path]:
    """(who signed it, certificate with its key) for 127.0.0.1."""
    now = datetime.datetime.now(datetime.timezone.utc)
    # of another kind the dashboard says "Only RSA keys can currently be checked" and serves nothing
    keys = [rsa.generate_private_key(65537, 2048) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in ("signer", "127.0.0.1")]
    made = []
    for index, (key, name) in enumerate(zip(keys, names)):
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=index == 0, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
        )
        made.append(builder.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    private = keys[1].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signer, certificate = directory / "signer.pem", directory / "certificate.pem"
    signer.write_bytes(made[0])
    certificate.write_bytes(private + made[1])
    return signer, certificate


HEALTH: Dict[str, Any] = {
    "health": {"status": "HEALTH_WARN", "checks": [
        {"type": "TUNER_SLO_MISSED", "severity": "HEALTH_WARN", "summary": {"message": "a hard objective is missed"}},
        {"type": "OSDMAP_FLAGS", "severity": "HEALTH_WARN", "summary": {"message": "noscrub"}},
    ]},
    "osd_map": {
        "fsid": "0d9b9c4e-0000-4000-8000-000000000001",
        "tree": {"nodes": [
            {"id": -1, "name": "default", "type": "root", "children": [-2]},
            {"id": -2, "name": "h0", "type": "host", "children": [1, 0]},
            {"id": 0, "name": "osd.0", "type": "osd", "device_class": "ssd", "status": "up"},
            {"id": 1, "name": "osd.1", "type": "osd", "device_class": "hdd", "status": "down"},
        ]},
        "osd_metadata": {"0": {"ceph_version": "ceph version 20.2.4 (x) tentacle (stable)"}, "1": {}},
    },
}  # fmt: skip

PAGES: Dict[str, Any] = {
    "/api/health/full": HEALTH,
    "/api/summary": {"version": "ceph version 20.2.4 (x) tentacle (stable)"},
    "/api/cluster_conf": [
        {"name": "osd_mclock_profile", "value": [{"section": "osd", "value": "high_client_ops"}]},
        {"name": "osd_max_scrubs"},
        {"name": "osd_mclock_max_capacity_iops_ssd", "value": [{"section": "osd.0", "value": "811.700000"}]},
        {"name": "fsid", "value": [{"section": "mgr", "value": "0d9b"}]},
    ],
}
