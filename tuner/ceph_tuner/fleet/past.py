"""A cluster's past in the tuner's own metrics, from a Prometheus server that scrapes it.

A point stands for the step before it. What was not seen is a gap, never 0.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from string import Template
from typing import AbstractSet, Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster.prometheus import Point, Prometheus, Span
from ceph_tuner.cluster.promql import matchers, promql_duration
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import ClusterNotFound, InputError
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.moments import utc_minute
from ceph_tuner.describe.clients import client_load
from ceph_tuner.fleet.contract import Member, PrometheusServer
from ceph_tuner.fleet.past_series import COUNTERS, POOLS, PRESENCES, REMAINING, SOURCES, UP, Expression, expressions

HOUR_S, WEEK_S, WEEK_STEP_S = 3600.0, 7 * 86400.0, 300.0
_UNKNOWN_INTERVAL_S = 60.0
"""Prometheus's default, where it cannot be seen how often a cluster is scraped."""
_RATE_SAMPLES, _SHORTEST_RATE_S = 4, 30.0
"""What the window of a rate holds at least. OSDs tell the mgr, and ceph-exporter asks them, every 5 s: within fewer
seconds a counter jumps or stands still."""
_ENOUGH = 0.8
"""Share of a window's samples that must be there."""
_ALL_BUT_FEW = 0.95
"""Share of the OSDs whose counters must be there, for their sums to be the cluster's."""


@dataclass(frozen=True)
class Course:
    """One metric over a span, from one source (`past_series.SOURCES`)."""

    metric: str
    source: str
    span: Span
    points: Tuple[Point, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError(f"the course of {self.metric} has no point")

    @property
    def values(self) -> List[float]:
        """Without their times."""
        return [value for _, value in self.points]

    @property
    def gaps(self) -> float:
        """Share of the span's moments that have no point."""
        return 1 - len(self.points) / self.span.count

    def quantile(self, fraction: float) -> float:
        """The smallest value that so many of all are not above."""
        values = sorted(self.values)
        return values[max(0, math.ceil(fraction * len(values)) - 1)]

    def busiest_hour(self) -> float:
        """When the full hour of the highest mean began; of hours that are seen in part only if there are no others."""
        hours: Dict[float, List[float]] = defaultdict(list)
        for at, value in self.points:
            # a point stands for what was before it
            hours[math.ceil(at / HOUR_S) * HOUR_S - HOUR_S].append(value)
        half = HOUR_S * 1000 / self.span.step / 2
        full_hours = {hour: values for hour, values in hours.items() if len(values) >= half} or hours
        return max(full_hours, key=lambda hour: statistics.fmean(full_hours[hour]))

    def to_dict(self) -> Dict[str, Any]:
        """Plain numbers, for programs; the points are pairs of seconds since the epoch and a value."""
        return {
            "metric": self.metric,
            "unit": METRICS[self.metric].unit,
            "source": self.source,
            "minimum": min(self.values),
            "median": statistics.median(self.values),
            "p95": self.quantile(0.95),
            "maximum": max(self.values),
            "busiest_hour": self.busiest_hour(),
            "gaps": self.gaps,
            "points": [list(point) for point in self.points],
        }


@dataclass(frozen=True)
class PastLoad:
    """What clients asked a cluster for, over a stretch of time."""

    start: float
    """Seconds since the epoch."""
    seconds: float
    iops: float
    read_share: float
    """Of the operations."""
    operation_bytes: float
    """Mean size of an operation."""

    @property
    def means(self) -> Dict[str, float]:
        """As metrics, for a described cluster."""
        reads = self.iops * self.read_share
        return client_load(reads, self.iops - reads, self.iops * self.operation_bytes)


@dataclass(frozen=True)
class PastMetrics:
    """What a server knows of a cluster's metrics over a span."""

    cluster: str
    span: Span
    courses: Mapping[str, Course]
    unknown: Mapping[str, str]
    """Metrics without a point, and why."""
    warnings: Tuple[str, ...] = ()

    def window(self, start_s: float, end_s: float) -> Optional[Window]:
        """What was seen between two moments; None for nothing."""
        measures = {}
        for metric, course in self.courses.items():
            values = [value for at, value in course.points if start_s < at <= end_s]
            if values:
                measures[metric] = Measure.of(values)
        return Window(start_s, end_s, measures) if measures else None

    def busy_load(self) -> Optional[PastLoad]:
        """The load of the hour in which clients were served most; None where operations or bytes were not seen."""
        busy = self.courses.get("client.iops")
        start = busy.busiest_hour() if busy is not None else 0.0
        window = self.window(start, start + HOUR_S)
        return load_of(window) if window is not None else None


LOAD_METRICS = ("client.iops", "client.read_iops", "client.bytes_s")
"""What a load is made of."""


def load_of(window: Window) -> Optional[PastLoad]:
    """The load of a window; None where it shows none."""
    means = [window.measures[name].mean for name in LOAD_METRICS if name in window.measures]
    if len(means) < len(LOAD_METRICS) or not means[0] > 0:
        return None
    iops, reads, size = means
    return PastLoad(window.start, window.seconds, iops, min(reads / iops, 1.0), size / iops)


def past_of(member: Member, metrics: Sequence[str], span: Span, timeout: float = 30.0) -> PastMetrics:
    """Ask a member's Prometheus server, which has `timeout` seconds for all of it.

    Raises InputError where it has none, and as `Prometheus` does.
    """
    if member.prometheus is None:
        raise InputError(f"cluster {member.name}", "no `prometheus` in fleet.yaml", "the server that scrapes it")
    with closing(open_server(member.name, member.prometheus, timeout)) as server:
        return read_past(server, member.prometheus.selector, metrics, span)


def busy_load(member: Member, now: float, timeout: float = 30.0) -> Optional[PastLoad]:
    """The load of a member's busiest hour in the week before; None where nobody knows. Raises as `past_of` does."""
    span = Span.of(now - WEEK_S, now, WEEK_STEP_S)
    return past_of(member, LOAD_METRICS, span, timeout).busy_load()


def open_server(name: str, server: PrometheusServer, timeout: float = 30.0) -> Prometheus:
    """A client of a member's server, with so many seconds for all that it will be asked; nothing is sent yet."""
    clock = SystemClock()
    return Prometheus(
        name,
        server.url,
        clock,
        server.username,
        server.password.read if server.password else str,
        server.token.read if server.token else str,
        server.ca,
        server.verify,
        timeout,
        clock.monotonic() + timeout,
    )


def read_past(server: Prometheus, selector: Mapping[str, str], metrics: Sequence[str], span: Span) -> PastMetrics:
    """The past of the one cluster that these labels choose. Raises InputError where they choose none, or several."""
    return _SeriesReader(server, selector, span).past(metrics)


class _SeriesReader:
    def __init__(self, server: Prometheus, selector: Mapping[str, str], span: Span) -> None:
        self._server, self._span = server, span
        self._warnings: Dict[str, None] = {}
        self._selector = matchers(selector)

    def past(self, metrics: Sequence[str]) -> PastMetrics:
        sources = self._sources()
        partial = self._partial(sources)
        courses: Dict[str, Course] = {}
        unknown: Dict[str, str] = {}
        for metric in metrics:
            ways = expressions(metric)
            answers = [self._course(metric, way, sources[way.source], partial) for way in ways if way.source in sources]
            candidates = [course for course in answers if course is not None]
            if candidates:
                # the best one, unless another one goes back much further
                most = max(len(course.points) for course in candidates)
                courses[metric] = next(course for course in candidates if 2 * len(course.points) >= most)
            else:
                sources_text = " or ".join(SOURCES[way.source] for way in ways)
                has_source = any(way.source in sources for way in ways)
                unknown[metric] = "not seen in that time" if has_source else f"only {sources_text} would tell"
        return PastMetrics(self._server.name, self._span, courses, unknown, tuple(self._warnings))

    def _sources(self) -> Dict[str, Dict[str, str]]:
        """Those that were scraped in that time, with what fills the gaps of their expressions."""
        points_by_source: Dict[str, List[Point]] = {}
        for source, text in PRESENCES.items():
            # of counters there is one for each OSD
            expression = f"count by (ceph_daemon) ({text})" if source == COUNTERS else f"count({text})"
            points = self._points(f"max({expression})", {})
            if points:
                points_by_source[source] = points
        place = f"cluster {self._server.name}"
        selector = f"{{{self._selector.rstrip(',')}}}"
        if not points_by_source:
            between = f"between {utc_minute(self._span.start / 1000)} and {utc_minute(self._span.end / 1000)}"
            raise ClusterNotFound(
                place,
                f"nothing of it at {self._server.url} {between} under {selector}",
                "a time when it was scraped, and a `selector` with the labels that its targets have",
            )
        for source, points in points_by_source.items():
            number = statistics.median(value for _, value in points)
            # one mgr may be scraped beside ceph-exporter, but only one mgr of a cluster is active
            if number > 1 and (source != COUNTERS or len(points_by_source) == 1):
                raise InputError(
                    place,
                    f"{number:g} clusters, or one scraped {number:g} times, under {selector} ({SOURCES[source]})",
                    "a `selector` in fleet.yaml that leaves one of them",
                )
        return {source: self._times(source, points[-1][0]) for source, points in points_by_source.items()}

    def _partial(self, sources: Mapping[str, Mapping[str, str]]) -> FrozenSet[float]:
        """Times at which an exporter of OSDs' counters was away, so that sums over the others are too low.

        An OSD that is down lacks nothing; where it is not seen which are up, it is held against the most there were.
        """
        if COUNTERS not in sources:
            return frozenset()
        counts = self._points(REMAINING, sources[COUNTERS])
        up = dict(self._points(UP, {})) if POOLS in sources else {}
        most = max((number for _, number in counts), default=0.0)
        return frozenset(at for at, number in counts if number < _ALL_BUT_FEW * up.get(at, most))

    def _times(self, source: str, at_s: float) -> Dict[str, str]:
        """How long values and rates are of, by how often its samples show it to be scraped."""
        presence = self._expression(PRESENCES[source], {})
        if source == COUNTERS:
            # one of thousands of OSDs will do
            for series in self._server.query(f"topk(1, {presence})", at_s).series:
                presence = f"{presence[:-1]}{matchers({'ceph_daemon': series.labels['ceph_daemon']})}}}"
        answer = self._server.samples(presence, at_s, 15 * _UNKNOWN_INTERVAL_S)
        times = max(([at for at, _ in series.points] for series in answer.series), key=len, default=[])
        apart = [later - earlier for earlier, later in zip(times, times[1:])]
        interval_s = statistics.median(apart) if apart else _UNKNOWN_INTERVAL_S
        step_s = self._span.step / 1000
        rate_s = max(step_s, _RATE_SAMPLES * interval_s, _SHORTEST_RATE_S)
        return {
            "over": promql_duration(max(step_s, 2 * interval_s)),
            "rate": promql_duration(rate_s),
            "enough": str(math.ceil(_ENOUGH * rate_s / interval_s)),
        }

    def _course(
        self, metric: str, way: Expression, times: Mapping[str, str], partial: AbstractSet[float]
    ) -> Optional[Course]:
        points = self._points(way.text, times)
        if way.source == COUNTERS:
            points = [point for point in points if point[0] not in partial]
        return Course(metric, way.source, self._span, tuple(points)) if points else None

    def _points(self, text: str, times: Mapping[str, str]) -> List[Point]:
        answer = self._server.query_range(self._expression(text, times), self._span)
        self._warnings.update(dict.fromkeys(answer.warnings))
        return list(answer.series[0].points) if answer.series else []

    def _expression(self, text: str, times: Mapping[str, str]) -> str:
        return Template(text).substitute(times, sel=self._selector)
