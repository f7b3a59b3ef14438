"""A Prometheus server asked by its HTTP API: one moment, or a range in pages that fit what it is willing to answer.

What is no finite number (NaN, an infinity, a staleness mark) is left out, so that it is a gap as every time without a
sample is. Resets of counters are the server's business: `rate` and `increase` know them.
"""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ceph_tuner.cluster.promql import promql_duration
from ceph_tuner.cluster.transport import Response, Transport, basic, bearer, host
from ceph_tuner.core.bounded import DOCUMENT, MISREAD, read_json
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import (
    ClusterNotFound,
    ClusterTimeout,
    CommandFailed,
    InputError,
    Malformed,
    PermissionRefused,
)

MOST_POINTS = 11_000
"""Of one series in one answer: the server refuses more."""

_TOO_MANY = "too many samples"
"""In the server's words when a page needs more memory than it allows a query (`--query.max-samples`)."""

Point = Tuple[float, float]
"""Seconds since the epoch, and a finite value."""


@dataclass(frozen=True)
class Span:
    """The moments `start`, `start + step`, … up to `end`, in whole milliseconds, as Prometheus counts time."""

    start: int
    end: int
    step: int

    def __post_init__(self) -> None:
        if self.step < 1 or not 0 <= self.start <= self.end:
            raise ValueError(f"a span has a step > 0 and 0 <= start <= end, not {self}")

    @classmethod
    def of(cls, start_s: float, end_s: float, step_s: float) -> Span:
        """Made of seconds; the server's stamps are milliseconds."""
        return cls(round(start_s * 1000), round(end_s * 1000), max(1, round(step_s * 1000)))

    @property
    def count(self) -> int:
        """How many moments."""
        return (self.end - self.start) // self.step + 1

    def pages(self, points: int = MOST_POINTS) -> Iterator[Span]:
        """Spans of at most so many moments which together have each moment once."""
        if points < 1:
            raise ValueError(f"a page has at least one point, not {points}")
        for first in range(0, self.count, points):
            last = min(first + points, self.count) - 1
            yield Span(self.start + first * self.step, self.start + last * self.step, self.step)


@dataclass(frozen=True)
class Series:
    """One series of an answer. A time without a point is a gap."""

    labels: Mapping[str, str]
    points: Tuple[Point, ...]


@dataclass(frozen=True)
class QueryAnswer:
    """What a query found, and what the server warns of: such an answer may be a part of the whole."""

    series: Tuple[Series, ...]
    warnings: Tuple[str, ...] = ()


class Prometheus:
    """One server, asked for one cluster. Used by one thread."""

    def __init__(
        self,
        name: str,
        url: str,
        clock: Clock,
        username: str = "",
        password: Callable[[], str] = str,
        token: Callable[[], str] = str,
        ca: str = "",
        verify: bool = True,
        timeout: float = 30.0,
        deadline: Optional[float] = None,
    ) -> None:
        """`name` is the cluster's in errors. A user name goes with a password; secrets are fetched when needed.

        `timeout`: of each query. `deadline`: of all of them together, by the monotonic clock.
        """
        self.name, self.url = name, url
        self._username, self._password, self._token = username, password, token
        self._secrets: Tuple[str, ...] = ()
        self._deadline = math.inf if deadline is None else deadline
        self._transport = Transport(name, "Prometheus server", "its address", clock, ca, verify, timeout)

    def query(self, expression: str, at_s: float) -> QueryAnswer:
        """The values at a moment. Raises ClusterNotFound, ClusterTimeout, PermissionRefused, CommandFailed."""
        moment = Span.of(at_s, at_s, 1)
        return self._query("query", {"query": expression, "time": _seconds(moment.start)}, moment)

    def samples(self, selector: str, at_s: float, over_s: float) -> QueryAnswer:
        """The samples themselves of the series that a selector chooses, from `over_s` before a moment up to it."""
        span = Span.of(at_s - over_s, at_s, 0.001)
        return self._query(
            "query", {"query": f"{selector}[{promql_duration(over_s)}]", "time": _seconds(span.end)}, span, steps=False
        )

    def query_range(self, expression: str, span: Span, points: int = MOST_POINTS) -> QueryAnswer:
        """The values at every moment of a span, each once, asked for in pages. Raises as `query` does."""
        points_by_labels: Dict[Tuple[Tuple[str, str], ...], List[Point]] = {}
        warnings: Dict[str, None] = {}
        for page in span.pages(points):
            answer = self._page(expression, page)
            warnings.update(dict.fromkeys(answer.warnings))
            for series in answer.series:
                points_by_labels.setdefault(tuple(sorted(series.labels.items())), []).extend(series.points)
        return QueryAnswer(
            tuple(Series(dict(labels), tuple(values)) for labels, values in points_by_labels.items()), tuple(warnings)
        )

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def _page(self, expression: str, page: Span) -> QueryAnswer:
        parameters = {
            "query": expression,
            "start": _seconds(page.start),
            "end": _seconds(page.end),
            "step": _seconds(page.step),
        }
        try:
            return self._query("query_range", parameters, page)
        except CommandFailed as refusal:
            if _TOO_MANY not in refusal.message or page.count == 1:
                raise
        return self.query_range(expression, page, (page.count + 1) // 2)

    def _query(self, path: str, parameters: Mapping[str, str], span: Span, steps: bool = True) -> QueryAnswer:
        data, warnings = self._data(path, parameters)
        try:
            return QueryAnswer(tuple(_series(entry, span, steps) for entry in _entries(data)), warnings)
        except MISREAD as error:
            words = self._clean(f"answered what is no series ({type(error).__name__}: {error})")[:200]
            raise CommandFailed(f"GET /api/v1/{path}", -errno.EIO, words) from None

    def _data(self, path: str, parameters: Mapping[str, str]) -> Tuple[Any, Tuple[str, ...]]:
        transport = self._transport
        response = transport.call(
            "GET",
            f"{self.url}/api/v1/{path}",
            min(transport.clock.monotonic() + transport.timeout, self._deadline),
            self._authorization(),
            {"Accept": "application/json"},
            parameters=parameters,
            # a query that took too long would again; a server that still reads its storage will have done so
            final=lambda busy: _error(busy) not in ("", "unavailable"),
        )
        self._check(response)
        command, document = f"GET /api/v1/{path}", _json(response.content)
        if document is _NO_JSON:
            excerpt = response.content[:60].decode(errors="replace")
            words = f"answered {response.status} with {self._clean(excerpt)!r} instead of JSON"
            raise CommandFailed(command, -errno.EIO, words)
        if not isinstance(document, dict) or document.get("status") != "success" or response.status != 200:
            error = document if isinstance(document, dict) else {}
            words = self._clean(f"{error.get('errorType', '')}: {error.get('error', 'no words')}")[:200]
            if error.get("errorType") in ("timeout", "canceled"):
                raise ClusterTimeout(f"cluster {self.name}: its Prometheus server gave a query up ({words})")
            raise CommandFailed(command, -errno.EIO, f"answered {response.status} {words}")
        texts = document.get("warnings")
        warnings = tuple(self._clean(str(words))[:200] for words in texts) if isinstance(texts, list) else ()
        return document.get("data"), warnings

    def _check(self, response: Response) -> None:
        """Refuse what is no answer of Prometheus's own."""
        place, where = f"cluster {self.name}", host(self.url)
        if response.status in (401, 403):
            server = f"a Prometheus server at {where} that refuses us ({response.status})"
            raise PermissionRefused(place, server, "`token`, or `username` and `password`, that it takes")
        if response.redirects or response.status == 404:
            does = "redirects elsewhere" if response.redirects else "knows no /api/v1"
            raise ClusterNotFound(
                place, f"a server at {where} that {does}", "a Prometheus server's own address, with its path"
            )

    def _authorization(self) -> str:
        """The header; fetched once, as a keyring may ask its owner each time."""
        if not self._secrets:
            token = self._token()
            if token and not (token.isascii() and token.isprintable()):
                # the words of whoever refuses it later would show it
                raise InputError(f"cluster {self.name}", "a token with characters that no header takes", "ASCII text")
            password = self._password() if self._username else ""
            header = basic(self._username, password) if self._username else bearer(token)
            self._secrets = (header, header.partition(" ")[2], password)
        return self._secrets[0]

    def _clean(self, text: str) -> str:
        """One line without secrets."""
        for secret in filter(None, self._secrets):
            text = text.replace(secret, "…")
        return " ".join(text.split())


_NO_JSON = object()


def _json(content: bytes) -> Any:
    try:
        if len(content) > DOCUMENT:
            return _NO_JSON
        # a point is a list of two
        return read_json(content, "Prometheus", max(len(content), 1 << 20))
    except Malformed:
        return _NO_JSON


def _error(response: Response) -> str:
    """The type of error that Prometheus itself tells; empty where it is not the one that speaks."""
    document = _json(response.content)
    return str(document.get("errorType", "")) if isinstance(document, dict) else ""


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _entries(data: Any) -> List[Any]:
    kind, result = data["resultType"], data["result"]
    if kind not in ("matrix", "vector", "scalar"):
        raise ValueError(f"a {kind}")
    entries = [{"metric": {}, "value": result}] if kind == "scalar" else result
    if not isinstance(entries, list):
        raise ValueError("no list")
    return entries


def _series(entry: Any, span: Span, steps: bool) -> Series:
    """Checked against what was asked for, as double or foreign points would be counted as seen."""
    labels = {str(name): str(value) for name, value in entry["metric"].items()}
    # a native histogram has neither
    pairs = entry["values"] if "values" in entry else [entry["value"]] if "value" in entry else []
    points: List[Point] = []
    before = span.start - 1
    for at_s, text in pairs:
        at, value = round(float(at_s) * 1000), float(text)
        if not before < at <= span.end or (steps and (at - span.start) % span.step):
            raise ValueError(f"a point at {at_s}, which was not asked for")
        before = at
        if math.isfinite(value):
            points.append((at / 1000, value))
    return Series(labels, tuple(points))
