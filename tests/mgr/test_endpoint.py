from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from contextlib import closing
from typing import Iterator, Tuple

import pytest

from ceph_tuner.core.bounded_http import CROWD
from prometheus_server import free_port
from tuner.endpoint import Endpoint
from tuner.exposition import CONTENT_TYPE, exposition

LOOPBACK = "127.0.0.1"
TIMEOUT_S = 30.0


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint()
    yield served
    served.close()


def ask(port: int, path: str = "/metrics", method: str = "GET", host: str = LOOPBACK) -> Tuple[int, str, str]:
    with closing(http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, str(answer.getheader("Content-Type")), answer.read().decode()


def refused(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(TIMEOUT_S)
        return probe.connect_ex((LOOPBACK, port)) != 0


def test_what_was_published_last_is_shown(endpoint: Endpoint) -> None:
    port = free_port()
    endpoint.listen(LOOPBACK, port)
    assert (endpoint.port, endpoint.note) == (port, "")
    assert ask(port) == (200, CONTENT_TYPE, "")
    for tick in (0.25, 0.5):
        endpoint.publish({"tick_s": tick})
        assert ask(port) == (200, CONTENT_TYPE, exposition({"tick_s": tick}))
    assert "0.5" in ask(port, "/metrics?name=x")[2]


def test_other_pages_say_where_the_metrics_are(endpoint: Endpoint) -> None:
    port = free_port()
    endpoint.listen(LOOPBACK, port)
    status, _, text = ask(port, "/")
    assert status == 404
    assert "/metrics" in text
    assert ask(port, "/metrics", "HEAD") == (200, CONTENT_TYPE, "")
    assert ask(port, "/metrics", "POST")[0] == 501


def test_a_document_that_cannot_be_shown_costs_that_answer_alone(endpoint: Endpoint) -> None:
    port = free_port()
    endpoint.listen(LOOPBACK, port)
    endpoint.publish({"modes": [{"slo": [{}]}]})
    status, _, text = ask(port)
    assert status == 500
    assert "KeyError" in text
    endpoint.publish({"tick_s": 0.5})
    assert ask(port)[0] == 200


def test_a_port_in_use_is_a_note_and_is_tried_again(endpoint: Endpoint) -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as other:
        port = int(other.getsockname()[1])
        endpoint.listen(LOOPBACK, port)
        assert endpoint.port is None
        assert str(port) in endpoint.note
        assert "Address already in use" in endpoint.note
    endpoint.listen(LOOPBACK, port)
    assert (endpoint.port, endpoint.note) == (port, "")
    assert ask(port)[0] == 200


@pytest.mark.parametrize("address", ["no.such.host.invalid", "256.1.1.1", "192.0.2.1", "not:an:address", "a" * 300])
def test_an_address_that_is_none_is_a_note(endpoint: Endpoint, address: str) -> None:
    endpoint.listen(address, free_port())
    assert endpoint.port is None
    assert address in endpoint.note


def test_it_moves_when_the_options_change_and_port_0_is_off(endpoint: Endpoint) -> None:
    first, second = free_port(), free_port()
    endpoint.listen(LOOPBACK, first)
    endpoint.listen(LOOPBACK, first)
    assert ask(first)[0] == 200
    endpoint.listen(LOOPBACK, second)
    assert refused(first)
    assert ask(second)[0] == 200
    endpoint.listen(LOOPBACK, 0)
    assert refused(second)
    assert (endpoint.port, endpoint.note) == (None, "")


def test_once_closed_its_port_is_free_and_it_listens_no_more() -> None:
    endpoint = Endpoint()
    port = free_port()
    endpoint.listen(LOOPBACK, port)
    # a client that says nothing must not hold the shutdown up
    with closing(socket.create_connection((LOOPBACK, port), TIMEOUT_S)):
        endpoint.close()
        assert refused(port)
    endpoint.close()
    endpoint.listen(LOOPBACK, port)
    assert endpoint.port is None
    successor = Endpoint()
    successor.listen(LOOPBACK, port)
    assert successor.port == port
    successor.close()


def test_every_address_is_the_default_and_ipv4_reaches_it(endpoint: Endpoint) -> None:
    port = free_port()
    endpoint.listen("", port)
    assert ask(port)[0] == 200
    if socket.has_dualstack_ipv6():
        assert ask(port, host="::1")[0] == 200


def dripping(port: int, stop: threading.Event) -> None:
    """A client that sends a byte of its request now and then, and comes again when it is turned away."""
    while not stop.is_set():
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), TIMEOUT_S) as talking:
            talking.sendall(b"GET /metrics HTTP/1.1\r\nX-A: ")
            while not stop.wait(0.05):
                talking.sendall(b"a")


def test_clients_that_drip_neither_stop_a_scrape_nor_hold_more_threads(endpoint: Endpoint) -> None:
    port = free_port()
    endpoint.listen(LOOPBACK, port)
    before, stop = threading.active_count(), threading.Event()
    drips = [threading.Thread(target=dripping, args=(port, stop), daemon=True) for _ in range(CROWD)]
    for drip in drips:
        drip.start()
    try:
        for _ in range(16):
            # each of the clients has its place again
            stop.wait(0.1)
            assert ask(port)[0] == 200
        assert threading.active_count() <= before + 2 * CROWD
    finally:
        stop.set()
        for drip in drips:
            drip.join(TIMEOUT_S)


def test_a_client_that_drips_is_ended_when_its_time_is_up(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ceph_tuner.core.bounded_http.PATIENCE_S", 0.3)
    port = free_port()
    endpoint.listen(LOOPBACK, port)
    with socket.create_connection((LOOPBACK, port), TIMEOUT_S) as talking:
        for _ in range(200):
            try:
                talking.sendall(b"a")
            except OSError:
                return
            threading.Event().wait(0.05)
    pytest.fail("it drips on")
