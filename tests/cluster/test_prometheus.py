from __future__ import annotations

import math
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional, Set, Tuple
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ceph_tuner.cluster.prometheus import MOST_POINTS, Prometheus, Span
from ceph_tuner.cluster.promql import matchers, quoted
from ceph_tuner.core.errors import (
    ClusterNotFound,
    ClusterTimeout,
    CommandFailed,
    InputError,
    PermissionRefused,
    TunerError,
)
from ceph_tuner.fleet import fleet_file
from ceph_tuner.fleet.past import past_of
from fake_dashboard import Asked, FakeDashboard, certificates, serving
from monitors import ManualClock

SECRET = "Tr0ub4dor-and-3"  # noqa: S105
SPAN = Span(1_700_000_000_000, 1_700_000_060_000, 15_000)
Value = Callable[[int], Optional[str]]


class FakePrometheus(FakeDashboard):
    """Answers each moment that is asked for with `value` of its milliseconds; refuses more points than it may."""

    def __init__(self, value: Value = lambda at: str(at), most: int = MOST_POINTS) -> None:
        super().__init__({})
        self.value, self.most = value, most
        self.answered: Any = None
        self.status = 200

    def answer(self, asked: Asked, body: bytes) -> Tuple[int, Any]:
        self.asked.append(asked)
        if self.answered is not None:
            return self.status, self.answered
        parameters = {name: values[0] for name, values in parse_qs(urlsplit(asked.path).query).items()}
        start, end, step = (round(float(parameters[key]) * 1000) for key in ("start", "end", "step"))
        if (end - start) // step + 1 > self.most:
            return 400, {"status": "error", "errorType": "bad_data", "error": "exceeded maximum resolution"}
        moments = range(start, end + 1, step)
        points = [[at / 1000, value] for at in moments for value in [self.value(at)] if value is not None]
        return 200, answer_of([{"metric": {"pool": "1"}, "values": points}] if points else [])


def answer_of(result: Any, kind: str = "matrix", **more: Any) -> Dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": result}, **more}


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    with serving(FakePrometheus()) as server:
        assert isinstance(server, FakePrometheus)
        yield server


def client(url: str, **options: Any) -> Prometheus:
    return Prometheus("berlin", url, ManualClock(), **options)


@given(st.integers(0, 2**41), st.integers(0, 10**7), st.integers(1, 10**5), st.integers(1, 500))
def test_pages_have_each_moment_of_a_span_once_and_in_order(start: int, length: int, step: int, points: int) -> None:
    span = Span(start, start + min(length, 3000 * step), step)
    pages = list(span.pages(points))
    assert [at for page in pages for at in range(page.start, page.end + 1, page.step)] == list(
        range(span.start, span.end + 1, span.step)
    )
    assert all(page.count <= points and page.step == step for page in pages)
    assert sum(page.count for page in pages) == span.count
    # none but the last is smaller than it may be
    assert all(page.count == points for page in pages[:-1])


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 30), st.integers(1, 70_000), st.integers(1, 20), st.sets(st.integers(0, 30)))
def test_what_comes_in_pages_is_what_comes_at_once(
    fake: FakePrometheus, count: int, step: int, points: int, gaps: Set[int]
) -> None:
    start = 1_700_000_000_123
    fake.value = lambda at: None if (at - start) // step in gaps else str(at % 977)
    server, span = client(fake.url), Span(start, start + count * step, step)
    at_once, in_pages = (server.query_range("x", span, size).series for size in (500, points))
    server.close()
    assert in_pages == at_once
    assert sum(len(series.points) for series in at_once) == count + 1 - len([gap for gap in gaps if gap <= count])


def test_a_long_span_is_asked_for_in_as_many_pages_as_the_server_takes(fake: FakePrometheus) -> None:
    span = Span(0, 25_000_000, 1000)
    (series,) = client(fake.url).query_range("x", span).series
    assert [at for at, _ in series.points] == list(range(25_001))
    assert len(fake.asked) == 3


def test_a_page_that_is_too_much_for_the_server_is_halved(fake: FakePrometheus) -> None:
    whole = fake.answer

    def forgetful(asked: Asked, body: bytes) -> Tuple[int, Any]:
        status, document = whole(asked, body)
        points = sum(len(series["values"]) for series in document["data"]["result"])
        words = "query processing would load too many samples into memory in query execution"
        return (
            (422, {"status": "error", "errorType": "execution", "error": words}) if points > 2 else (status, document)
        )

    fake.answer = forgetful  # type: ignore[method-assign]
    (series,) = client(fake.url).query_range("x", SPAN).series
    assert [at for at, _ in series.points] == [1_700_000_000 + 15 * index for index in range(5)]


def test_what_is_no_number_is_a_gap(fake: FakePrometheus) -> None:
    told = iter(["1", "NaN", "+Inf", "-Inf", "2e3"])
    fake.value = lambda at: next(told)
    (series,) = client(fake.url).query_range("x", SPAN).series
    assert [value for _, value in series.points] == [1.0, 2000.0]
    assert all(math.isfinite(value) for _, value in series.points)


def test_warnings_are_told_once_however_many_pages_have_them(fake: FakePrometheus) -> None:
    fake.answered = answer_of([], warnings=["a store\nis away", "a store is away"])
    found = client(fake.url).query_range("x", SPAN, 1)
    assert (found.series, found.warnings) == ((), ("a store is away",))


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({"token": lambda: SECRET}, SECRET),
        ({"username": "täner", "password": lambda: SECRET}, "Basic dMOkbmVyOlRyMHViNGRvci1hbmQtMw=="),
        ({}, ""),
    ],
)
def test_it_shows_what_fleet_yaml_says_and_nothing_else(
    fake: FakePrometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Dict[str, Any], header: str
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    client(fake.url, **options).query_range("x", SPAN)
    assert [asked.token for asked in fake.asked] == [header]


@pytest.mark.parametrize("options", [{"token": lambda: SECRET}, {"username": "u", "password": lambda: SECRET}])
@pytest.mark.parametrize("status", [200, 400, 401, 404, 422, 500])
def test_a_server_that_repeats_what_it_was_told_gives_nothing_away(
    fake: FakePrometheus, options: Dict[str, Any], status: int
) -> None:
    server = client(fake.url, **options)
    sent = server._authorization()
    assert SECRET in sent or "Basic" in sent
    fake.status = status
    for answered in (
        {"status": "error", "errorType": sent, "error": sent + SECRET},
        (sent + SECRET).encode(),
        answer_of([{"metric": {}, "values": [[sent, SECRET]]}]),
    ):
        fake.answered = answered
        with pytest.raises(TunerError) as refusal:
            server.query_range("x", SPAN)
        shown = f"{refusal.value!r} {refusal.value} {refusal.value.__cause__!r}"
        assert SECRET not in shown
        assert sent.split()[1] not in shown
        assert "\n" not in str(refusal.value)


def test_a_token_that_no_header_takes_is_refused_without_being_shown(fake: FakePrometheus) -> None:
    with pytest.raises(InputError, match="a token with characters that no header takes") as refusal:
        client(fake.url, token=lambda: f"{SECRET}\nx").query("x", 1.0)
    assert SECRET not in str(refusal.value)
    assert fake.asked == []


@pytest.mark.parametrize(
    "answered",
    [
        b"<html>", b"", b"\xff\xfe", b"[" * 100_000, [], None, {"status": "success"},
        answer_of({}), answer_of([], "streams"), answer_of([{}]), answer_of([{"metric": {}, "values": [[1.0]]}]),
        answer_of([{"metric": {}, "values": [[1e999, "1"]]}]), answer_of([{"metric": {}, "values": [["x", "y"]]}]),
        # moments that were not asked for, twice, or backwards
        answer_of([{"metric": {}, "values": [[1_600_000_000, "1"]]}]),
        answer_of([{"metric": {}, "values": [[1_700_000_001, "1"]]}]),
        answer_of([{"metric": {}, "values": [[1_700_000_000, "1"], [1_700_000_000, "1"]]}]),
        answer_of([{"metric": {}, "values": [[1_700_000_015, "1"], [1_700_000_000, "1"]]}]),
    ],
)  # fmt: skip
def test_nonsense_is_one_line(fake: FakePrometheus, answered: Any) -> None:
    fake.answered = answered if answered is not None else b"null"
    with pytest.raises(CommandFailed, match="GET /api/v1/query_range") as refusal:
        client(fake.url).query_range("x", SPAN)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("status", "answered", "error", "words"),
    [
        (401, {}, PermissionRefused, "refuses us .401.*`token`, or `username`"),
        (403, b"no", PermissionRefused, "refuses us .403"),
        (404, b"404 page not found", ClusterNotFound, "knows no /api/v1"),
        (302, b"", ClusterNotFound, "redirects elsewhere"),
        (400, {"status": "error", "errorType": "bad_data", "error": "1:3: parse error"}, CommandFailed, "1:3: parse"),
        (422, {"status": "error", "errorType": "timeout", "error": "too long"}, ClusterTimeout, "gave a query up"),
        (503, {"status": "error", "errorType": "timeout", "error": "too long"}, ClusterTimeout, "gave a query up"),
        (503, {"status": "error", "errorType": "unavailable", "error": "starts"}, ClusterTimeout, "busy or stands by"),
        (503, b"Service Unavailable", ClusterTimeout, r"busy or stands by \(503 within 30 s\)"),
    ],
)
def test_each_refusal_is_an_error_of_our_own(
    fake: FakePrometheus, status: int, answered: Any, error: type, words: str
) -> None:
    fake.status, fake.answered = status, answered
    with pytest.raises(error, match=words):
        client(fake.url).query("x", 1.0)


def test_only_a_busy_server_is_asked_again_not_one_whose_query_took_too_long(fake: FakePrometheus) -> None:
    fake.status = 503
    for kind, again in (("timeout", False), ("canceled", False), ("unavailable", True)):
        fake.asked.clear()
        fake.answered = {"status": "error", "errorType": kind, "error": "words"}
        with pytest.raises(ClusterTimeout):
            client(fake.url).query("x", 1.0)
        assert (len(fake.asked) > 1) is again


def test_all_queries_together_have_one_deadline(fake: FakePrometheus) -> None:
    clock, whole = ManualClock(), fake.answer

    def slow(asked: Asked, body: bytes) -> Tuple[int, Any]:
        clock.sleep(4.0)
        return whole(asked, body)

    fake.answer = slow  # type: ignore[method-assign]
    server = Prometheus("berlin", fake.url, clock, deadline=clock.monotonic() + 10.0)
    for _ in range(2):
        assert server.query_range("x", SPAN).series
    with pytest.raises(ClusterTimeout, match="did not answer within"):
        server.query_range("x", SPAN)


def test_where_nothing_listens_is_told(fake: FakePrometheus) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ClusterNotFound, match=rf"berlin: found no Prometheus server at {nobody} \(.*refused"):
            client(nobody).query("x", 1.0)


def test_certificates_are_verified_unless_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    signer, certificate = certificates(tmp_path)
    with serving(FakePrometheus(), certificate) as fake:
        with pytest.raises(PermissionRefused, match="cannot be trusted"):
            client(fake.url, token=lambda: SECRET).query_range("x", SPAN)
        assert fake.asked == []
        assert client(fake.url, ca=str(signer)).query_range("x", SPAN).series
        assert client(fake.url, verify=False).query_range("x", SPAN).series


def test_labels_are_put_into_queries_in_quotes() -> None:
    assert matchers({}) == ""
    assert matchers({"cluster": "north", "site": 'a"} or vector(1) #\\\n'}) == (
        'cluster="north",site="a\\"} or vector(1) #\\\\\\n",'
    )
    assert quoted("naïve 🐙") == '"naïve 🐙"'
    with pytest.raises(ValueError, match="a label"):
        matchers({'x="",y': "1"})


@pytest.mark.parametrize("numbers", [(0, -1, 1), (0, 1, 0), (-1, 5, 1)])
def test_spans_that_are_none_cannot_be_made(numbers: Tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="a span has"):
        Span(*numbers)
    with pytest.raises(ValueError, match="at least one point"):
        list(SPAN.pages(0))


@pytest.mark.parametrize(
    ("written", "header"),
    [
        ("token: {env: METRICS}", SECRET),
        ("username: u, password: {file: secret}", "Basic dTpUcjB1YjRkb3ItYW5kLTM="),
        ("selector: {}", ""),
    ],
)
def test_a_member_s_server_is_asked_as_its_file_says(
    fake: FakePrometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, header: str
) -> None:
    monkeypatch.setenv("METRICS", SECRET)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "secret").chmod(0o600)
    text = f"schema: 1\nclusters:\n  rome: {{lab: r, prometheus: {{url: '{fake.url}/p', verify: false, {written}}}}}\n"
    (member,) = fleet_file.from_text(text, str(tmp_path / "fleet.yaml")).members
    fake.answered = answer_of([])
    with pytest.raises(ClusterNotFound, match=r"rome: found nothing of it at .*/p between .* under \{\}"):
        past_of(member, ["client.iops"], SPAN)
    assert {asked.token for asked in fake.asked} == {header}
    assert all(asked.path.startswith("/p/api/v1/query_range?") for asked in fake.asked)
    with pytest.raises(InputError, match=r"no `prometheus` in fleet\.yaml"):
        past_of(replace(member, prometheus=None), ["client.iops"], SPAN)
