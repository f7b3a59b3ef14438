"""A server that is slow on purpose, or packs a thousandfold: the limits are over a whole call."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import re
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, Optional

import pytest

from ceph_tuner.cluster.dashboard_api import DashboardApi
from ceph_tuner.cluster.transport import LARGEST_ANSWER, Response, Transport
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, TunerError
from fake_dashboard import certificates

pytestmark = pytest.mark.slow

LIMIT_S = 1.0
Speak = Callable[[socket.socket], None]


@contextmanager
def serving(speak: Speak, certificate: Optional[Path] = None) -> Iterator[str]:
    """Whoever connects is spoken to, in a thread of its own."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

    def one(connection: socket.socket) -> None:
        try:
            with context.wrap_socket(connection, server_side=True) if context else connection as talking:
                talking.recv(65536)
                speak(talking)
        except OSError:
            pass

    def accept() -> None:
        for _ in itertools.count():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.close()


def ask(url: str, seconds: float = LIMIT_S) -> Response:
    clock = SystemClock()
    transport = Transport("berlin", "dashboard", "an address", clock, verify=False, timeout=seconds)
    try:
        return transport.call("GET", f"{url}/api/x", clock.monotonic() + seconds)
    finally:
        transport.close()


def dripping(before: bytes, drop: bytes) -> Speak:
    def speak(talking: socket.socket) -> None:
        talking.sendall(before)
        for _ in range(400):
            talking.sendall(drop)
            time.sleep(0.05)

    return speak


OK = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "its status": dripping(b"", b"H"),
    "a header": dripping(OK + b"X-A: ", b"a"),
    "headers": dripping(OK, b"X-A: b\r\n"),
    "continuations": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": dripping(OK + b"Content-Length: 100000\r\n\r\n", b"a"),
    "a body without an end": dripping(OK + b"\r\n", b"a"),
    "chunks": dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    "the length of a chunk": dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "nothing": dripping(b"", b""),
}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("what", DRIPS)
def test_a_server_that_drips_is_late_when_time_is_up(what: str, tls: bool, tmp_path: Path) -> None:
    with serving(DRIPS[what], certificates(tmp_path)[1] if tls else None) as url:
        began = time.monotonic()
        with pytest.raises(ClusterTimeout, match="did not answer within 1 s"):
            ask(url)
        assert time.monotonic() - began < LIMIT_S + 6.0


def test_a_server_that_drips_its_handshake_is_late_as_well() -> None:
    def speak(talking: socket.socket) -> None:
        for _ in range(200):
            talking.sendall(b"\x16")
            time.sleep(0.05)

    with serving(speak) as url:
        began = time.monotonic()
        with pytest.raises(TunerError):
            ask(url.replace("http:", "https:"))
        assert time.monotonic() - began < LIMIT_S + 6.0


def peak(reset: bool = False) -> int:
    """Bytes that this process took at most, since it was reset to what it takes now."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    return int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0]) << 10


def packed(times: int) -> bytes:
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as out:
        for _ in range(times):
            out.write(b"0" * (1 << 20))
    return stream.getvalue()


def answering(encoding: str, body: bytes) -> Speak:
    head = OK + f"Content-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return lambda talking: talking.sendall(head + body)


def test_what_is_packed_is_unpacked_and_what_is_cut_short_or_packed_otherwise_is_not_taken() -> None:
    text = b'{"a": 1}' * 1000
    with serving(answering("gzip", gzip.compress(text))) as url:
        assert ask(url).content == text
    for encoding, body, words in [
        ("gzip", gzip.compress(text)[:-20], "cut short"),
        ("gzip", b"no gzip", "no gzip"),
        ("gzip, gzip", gzip.compress(gzip.compress(text)), "not asked for"),
        ("br", b"x", "not asked for"),
    ]:
        with serving(answering(encoding, body)) as url, pytest.raises(CommandFailed, match=words):
            ask(url)


def test_32_clusters_that_answer_with_gigabytes_take_less_than_512_mib() -> None:
    bomb = packed(256)
    assert len(bomb) < 3 << 20
    refused = []

    def one(url: str) -> None:
        with pytest.raises(CommandFailed, match=f"more than {LARGEST_ANSWER} bytes"):
            ask(url, 60.0)
        refused.append(url)

    before = peak(reset=True)
    with serving(answering("gzip", bomb)) as url, ThreadPoolExecutor(32) as pool:
        list(pool.map(one, [url] * 32))
    assert len(refused) == 32
    assert peak() - before < 512 << 20


def page_of(osds: int) -> bytes:
    """As a dashboard answers of so many OSDs: 5 KiB and 166 values for each."""
    metadata = {f"key_{number:02}": "x" * 40 for number in range(60)}
    osd = {f"part_{number:02}": [number, "192.168.100.101:6800/1234567890"] for number in range(35)}
    each = {str(number): {**metadata, "osd": osd} for number in range(osds)}
    return json.dumps({"osd_map": {"osd_metadata": each}}).encode()


def test_a_cluster_of_thousands_osds_is_read() -> None:
    page = page_of(6500)
    assert 28 << 20 < len(page) < LARGEST_ANSWER
    with serving(answering("identity", page)) as url, closing(dashboard(url, 30.0)) as api:
        assert len(api.get("health/full")["osd_map"]["osd_metadata"]) == 6500


def dashboard(url: str, seconds: float) -> DashboardApi:
    api = DashboardApi("berlin", [url], "u", lambda: "p", SystemClock(), timeout=seconds)
    api._token = "t"  # noqa: S105 - of this test
    return api


def test_32_clusters_that_answer_with_millions_of_values_take_less_than_512_mib() -> None:
    # as large as is taken, and as many values as are held, in dictionaries, which take most
    item = '{"a":0,"b":"' + "x" * 40 + '"},'
    values = ("[" + item * (LARGEST_ANSWER // len(item) - 1) + "0]").encode()
    done = []

    def one(url: str) -> None:
        # each is held until all have been asked, or time is up
        with closing(dashboard(url, 6.0)) as api, suppress(TunerError):
            done.append(len(api.get("health/full")))

    before = peak(reset=True)
    with serving(answering("gzip", gzip.compress(values, 1))) as url, ThreadPoolExecutor(32) as pool:
        list(pool.map(one, [url] * 32))
    assert done
    assert peak() - before < 512 << 20
