"""A past that is known to the point, read back from a real Prometheus server."""

from __future__ import annotations

import signal
from typing import Iterator, List

import pytest

from ceph_tuner.cluster.prometheus import Prometheus, Span
from ceph_tuner.cluster.promql import matchers, quoted
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, CommandFailed, InputError
from ceph_tuner.core.measure.exported_metrics import EXPORTED
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.fleet.contract import ByLab, Member
from ceph_tuner.fleet.contract import PrometheusServer as PrometheusServerOf
from ceph_tuner.fleet.descriptions import described
from ceph_tuner.fleet.past import HOUR_S, Course, PastMetrics, load_of, read_past
from ceph_tuner.fleet.past_series import COUNTERS, PLUGIN, POOLS, SOURCES, expressions
from ceph_tuner.twin.described_cluster import DescribedCluster
from known_past import AWAY, BUSY, DOWN, END, HOURS, RESTART, SILENCE, START, STEP_S, iops, served_past
from prometheus_server import PrometheusServer, free_port
from twin_cluster.cluster import TwinCluster
from twins import small_twin

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with served_past(tmp_path_factory.mktemp("prometheus")) as made:
        yield made


@pytest.fixture
def client(server: PrometheusServer) -> Iterator[Prometheus]:
    made = Prometheus("north", server.url, SystemClock())
    yield made
    made.close()


def read(client: Prometheus, cluster: str, *metrics: str, step_s: float = STEP_S) -> PastMetrics:
    return read_past(client, {"cluster": cluster}, metrics or list(METRICS), Span.of(START, END, step_s))


def test_what_the_plugin_exported_comes_back_in_the_metrics_own_units(client: Prometheus) -> None:
    past = read(client, "north", "client.iops", "client.p95_ms", "client.bytes_s", "client.write_iops")
    course = past.courses["client.iops"]
    assert course.source == PLUGIN
    # a point is the mean of the two samples since the step before
    assert dict(course.points)[BUSY + 1800] == 900.0
    for at, value in course.points[1:]:
        low, high = sorted([iops(int(at) - 2 * STEP_S), iops(int(at) - STEP_S), iops(int(at))])[::2]
        assert low - 1e-6 <= value <= high + 1e-6, at
    assert course.gaps == 0
    assert past.courses["client.p95_ms"].to_dict()["maximum"] == pytest.approx(50.0)
    assert "client.write_iops" in past.unknown
    assert not past.warnings


def test_rates_of_counters_are_those_that_were_through_a_restart(client: Prometheus) -> None:
    past = read(client, "south", step_s=300)
    course, reads = past.courses["client.iops"], past.courses["client.read_iops"]
    assert course.source == reads.source == POOLS
    quiet = [point for point in course.points if not SILENCE[0] - 300 < point[0] <= SILENCE[1] + 300]
    for at, value in quiet[1:]:
        window = range(int(at) - 240, int(at) + 1, STEP_S)
        beside = [iops(moment) for moment in (*window, int(at) - 300)]
        if not RESTART <= at <= RESTART + 300:
            assert 0.99 * min(beside) <= value <= 1.01 * max(beside), at
        # what was counted between the last sample before it and the first one after is not known
        assert 0 <= value <= 1.3 * max(beside)
    assert dict(reads.points)[BUSY + 1800] == pytest.approx(225, rel=0.001)


def test_a_time_without_scrapes_is_a_gap_and_no_zero(client: Prometheus) -> None:
    course = read(client, "south", "client.iops").courses["client.iops"]
    # rates reach over four minutes
    inside = [at for at, _ in course.points if SILENCE[0] + 240 < at <= SILENCE[1]]
    assert inside == []
    # a failover and the first moments are gaps as well
    assert 3600 - 240 <= course.gaps * HOURS * 3600 <= 3600 + 480
    assert min(course.values) > 99


@pytest.mark.parametrize("cluster", ["west", "bare"])
def test_sums_over_osds_of_which_an_exporter_was_away_are_gaps(client: Prometheus, cluster: str) -> None:
    course = read(client, cluster, "client.iops").courses["client.iops"]
    assert course.source == COUNTERS
    assert [at for at, _ in course.points if AWAY[0] + 120 <= at <= AWAY[1]] == []
    # two of four OSDs are never taken for all
    assert min(course.values) > 95
    assert course.busiest_hour() == BUSY


def test_an_osd_that_is_down_lacks_no_counters(client: Prometheus) -> None:
    settled = range(DOWN[0] + 300, DOWN[1] + 1, STEP_S)
    seen = dict(read(client, "west", "client.iops").courses["client.iops"].points)
    for at in settled:
        assert seen[at] == pytest.approx(iops(at), rel=0.03)
    # who does not know that it is down takes its exporter for away
    assert not set(settled) & set(dict(read(client, "bare", "client.iops").courses["client.iops"].points))


def test_trouble_is_not_averaged_away(client: Prometheus) -> None:
    assert read(client, "north", "ops.slow", step_s=900).courses["ops.slow"].to_dict()["maximum"] == 3
    past = read(client, "south", "pgs.inactive", "osds.down", step_s=900)
    assert past.courses["pgs.inactive"].to_dict()["maximum"] == 2
    down = dict(past.courses["osds.down"].points)
    assert (down[BUSY - 900], down[BUSY + 1800]) == (0, 1)


def test_a_finish_time_is_no_mean_of_never_and_a_minute(client: Prometheus) -> None:
    course = read(client, "north", "recovery.finish_s", step_s=900).courses["recovery.finish_s"]
    # at the first moment nothing but a never was seen
    assert set(course.values[1:]) == {60.0}


def test_both_sources_name_the_same_busiest_hour_and_load(client: Prometheus) -> None:
    for cluster, size in (("north", 8192), ("south", 4096)):
        past = read(client, cluster, "client.iops", "client.read_iops", "client.bytes_s", step_s=300)
        assert past.courses["client.iops"].busiest_hour() == BUSY
        load = past.busy_load()
        assert load is not None
        assert load.start == BUSY
        assert load.iops == pytest.approx(900, rel=0.03)
        assert load.read_share == pytest.approx(0.25, rel=0.01)
        assert load.operation_bytes == pytest.approx(size, rel=0.01)


def test_the_plugin_gives_way_to_what_goes_back_much_further(client: Prometheus) -> None:
    # of the north, Ceph's module was scraped for two hours only, of which it has no pools
    assert read(client, "north", "client.iops").courses["client.iops"].source == PLUGIN
    whole = read_past(client, {"instance": "mgr-b:9283"}, ["client.iops", "client.p95_ms"], Span.of(START, END, 300))
    assert whole.courses["client.iops"].source == POOLS
    assert SOURCES[PLUGIN] in whole.unknown["client.p95_ms"]


def test_labels_that_leave_two_clusters_or_none_are_refused(client: Prometheus) -> None:
    span = Span.of(END - 3600, END, 60)
    with pytest.raises(InputError, match=r"3 clusters, or one scraped 3 times, under \{\}"):
        read_past(client, {}, ["client.iops"], span)
    with pytest.raises(ClusterNotFound, match=r'nothing of it at .* under \{cluster="east"\}'):
        read_past(client, {"cluster": "east"}, ["client.iops"], span)
    with pytest.raises(ClusterNotFound, match="nothing of it"):
        read_past(client, {"cluster": "north"}, ["client.iops"], Span.of(START - 7200, START - 3600, 60))


def test_pages_of_a_real_server_are_joined_to_what_one_query_gives(client: Prometheus) -> None:
    span = Span.of(START, END, 300)
    expression = 'rate(ceph_pool_rd{cluster="south"}[5m])'
    at_once = client.query_range(expression, span)
    assert len(at_once.series) == 2
    assert client.query_range(expression, span, 7).series == at_once.series
    # finer than it answers at a time
    fine = Span.of(END - 13_000, END, 1)
    (series,) = client.query_range('ceph_tuner_build_info{cluster="north"}', fine).series
    assert len(series.points) == 13_001
    with pytest.raises(CommandFailed, match=r"answered 400 bad_data: exceeded maximum resolution of 11,000 points"):
        client.query_range("vector(1)", fine, 13_001)


def test_the_server_reads_what_we_quote(client: Prometheus) -> None:
    for text in ("plain", 'a"b\\c\n\t\r\b\f\0\x7f', "naïve 🐙 \u2028", "$sel {}", "'", "`"):
        # a label that is not there equals nothing but the empty text
        (series,) = client.query(f'label_replace(vector(1), "x", {quoted(text)}, "", "") ', END).series
        # in a replacement, $NAME stands for a group
        assert series.labels.get("x", "") == text.replace("$sel", "")
        assert client.query(f"up{{{matchers({'a': text})}}}", END).series == ()


def test_every_expression_of_every_metric_is_understood(client: Prometheus) -> None:
    from string import Template

    for metric in METRICS:
        for way in expressions(metric):
            text = Template(way.text).substitute(sel='cluster="north",', over="300s", rate="300s", enough="3")
            client.query(text, END)
            assert len(client.query(text.replace('cluster="north",', ""), END).series) <= 1, text


def test_every_metric_has_a_place_at_the_plugin() -> None:
    assert set(EXPORTED) == set(METRICS)
    assert {way.source for metric in METRICS for way in expressions(metric)} == {PLUGIN, COUNTERS, POOLS}


def test_a_load_needs_operations() -> None:
    def window(**means: float) -> Window:
        measures = {f"client.{name}": Measure(mean, 0.0, 1) for name, mean in means.items()}
        return Window(0.0, HOUR_S, measures)

    assert load_of(window(iops=0.0, read_iops=0.0, bytes_s=0.0)) is None
    assert load_of(window(iops=10.0, read_iops=5.0)) is None
    load = load_of(window(iops=10.0, read_iops=11.0, bytes_s=40960.0))
    assert load is not None
    assert (load.iops, load.read_share, load.operation_bytes) == (10.0, 1.0, 4096.0)


def test_an_hour_of_which_little_was_seen_is_not_the_busiest() -> None:
    span = Span.of(0, 4 * 3600, 600)
    points = [(600.0 * index, 10.0) for index in range(1, 13)] + [(600.0 * 13, 99.0)]
    assert Course("client.iops", PLUGIN, span, tuple(points)).busiest_hour() == 0.0
    assert Course("client.iops", PLUGIN, span, tuple(points[-1:])).busiest_hour() == 7200.0


def test_a_server_that_ends_amid_the_pages_is_one_line(server: PrometheusServer) -> None:
    client = Prometheus("north", server.url, SystemClock(), timeout=5)
    span = Span.of(START, END, 60)
    pages = iter(range(100))

    class Pages(Span):
        def pages(self, points: int = 1) -> Iterator[Span]:
            for page in super().pages(points):
                if next(pages) == 2:
                    server.stop(signal.SIGKILL)
                yield page

    assert client.query_range("vector(1)", span, 100).series
    try:
        with pytest.raises((ClusterNotFound, ClusterTimeout), match=r"north.*Prometheus server") as lost:
            client.query_range("vector(1)", Pages(span.start, span.end, span.step), 100)
        assert len(str(lost.value).splitlines()) == 1
    finally:
        server.start()
    assert client.query_range("vector(1)", span, 100).series


@pytest.fixture
def later_twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    """A cluster that lives now, when the known past is over."""
    twin = small_twin()
    now = twin.clock.now
    ahead = END - now()
    monkeypatch.setattr(twin.clock, "now", lambda: now() + ahead)
    return twin


def of_clients(found: DescribedCluster) -> List[float]:
    return [sum(stream.rate for stream in found.model.clients), *sorted({s.block_bytes for s in found.model.clients})]


def test_a_member_is_described_with_the_load_of_its_busiest_hour(
    later_twin: TwinCluster, server: PrometheusServer
) -> None:
    at = PrometheusServerOf(server.url, {"cluster": "north"})
    found = described(Member("north", ByLab("north"), prometheus=at), later_twin)
    iops, size = of_clients(found)
    assert iops == pytest.approx(900, rel=0.02)
    assert size == 8192
    assert {stream.read_share for stream in found.model.clients} == {0.25}
    assert any(
        note.startswith("what clients do is that of their busiest hour of the last week") for note in found.notes
    )
    assert not any("sampled" in note for note in found.notes)


def test_a_member_whose_server_is_away_is_described_as_it_is_now(later_twin: TwinCluster) -> None:
    away = PrometheusServerOf(f"http://127.0.0.1:{free_port()}")
    now, then = (described(Member("rome", ByLab("rome"), prometheus=at), later_twin) for at in (None, away))
    assert of_clients(now) == pytest.approx(of_clients(then), rel=0.05)
    assert of_clients(now)[0] < 400
    assert any("not of their busiest hour: cluster rome: found no Prometheus server" in note for note in then.notes)
