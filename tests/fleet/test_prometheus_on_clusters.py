"""A real Prometheus server scrapes two real clusters: what it tells of their past against what their clients did."""

from __future__ import annotations

import json
import re
import signal
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Tuple

import pytest
import requests

from ceph_lab.cluster import Lab
from ceph_tuner.cluster.prometheus import Prometheus, Span
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.fleet.past import Course, PastMetrics, read_past
from ceph_tuner.fleet.past_series import COUNTERS, PLUGIN, POOLS, expressions
from dashboard_queries import ALERTS, FOLDER, chosen
from dashboard_queries import expressions as panel_expressions
from lab_exporters import ceph_exporter, plugin_exporter
from prometheus_server import PrometheusServer, Target, serving

LOAD_S = 50
RATES = {"tentacle": (20, 60), "reef": (40, 20)}
"""Reads and writes a second."""
BLOCK = 8192

COMPARISON = re.compile(r" (>|>=|==|<) [0-9.]+(?![0-9.])")
SILENT = {
    "Boost: until it is done, and until its time is up",
    "A round of deep scrub over the cluster",  # no scrub runs in a lab
    "Effect of the trial under way, with its interval",  # nothing is on trial
    "Policy",  # no calendar
    "Changes and rollbacks in an hour",  # nothing was taken back; its other query has series
    "CephTunerGone",  # the plugin is there
    "CephTunerSoftObjectiveMissed",  # the objective is a hard one
}
"""What has no series in a lab in which nobody tunes, and why."""

PROGRAM = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()"]


class Watched(NamedTuple):
    server: PrometheusServer
    measured: Dict[str, Dict[str, Any]]
    """What fio says, by cluster."""
    span: Span
    """While both loads ran."""

    def past(self, **selector: str) -> PastMetrics:
        client = Prometheus("lab", self.server.url, SystemClock())
        try:
            return read_past(client, selector, list(METRICS), self.span)
        finally:
            client.close()


@pytest.fixture(scope="module")
def watched(tentacle_lab: Lab, reef_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Of Tentacle the plugin and Ceph's module are scraped, of Reef the module with the OSDs' counters."""
    directory = tmp_path_factory.mktemp("prometheus")
    labs = {"tentacle": tentacle_lab, "reef": reef_lab}
    with ExitStack() as stack:
        plugin = stack.enter_context(plugin_exporter(tentacle_lab))
        modules = {
            name: stack.enter_context(ceph_exporter(lab, perf_counters=name == "reef")) for name, lab in labs.items()
        }
        targets = [
            Target(plugin, {"cluster": "tentacle", "of": "plugin"}),
            *(Target(port, {"cluster": name, "of": "ceph"}) for name, port in modules.items()),
        ]
        server = stack.enter_context(serving(directory, targets, FOLDER / "alerts.yaml"))
        server.wait_for_scrapes()
        measured = _loaded(labs, stack)
        end = time.time()
        # rates reach over 30 s, and what the exporters say is of up to 7 s before
        yield Watched(server, measured, Span.of(end - LOAD_S + 38, end - 2, 1))


def _loaded(labs: Dict[str, Lab], stack: ExitStack) -> Dict[str, Dict[str, Any]]:
    running = {}
    for lab in labs.values():
        lab.run(["rbd", "create", "--size", "64M", "rbd/past"])
        stack.callback(lab.run, ["rbd", "rm", "rbd/past"])
    for name, lab in labs.items():
        reads, writes = RATES[name]
        words = (
            "name=past ioengine=rbd clientname=admin pool=rbd rbdname=past rw=randrw "
            f"rwmixread={100 * reads // (reads + writes)} bs={BLOCK} iodepth=8 rate_iops={reads},{writes} "
            f"time_based runtime={LOAD_S} output-format=json"
        )
        command = lab.argv(["fio", *(f"--{word}" for word in words.split())])
        running[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return {name: json.loads(fio.communicate(timeout=LOAD_S + 60)[0])["jobs"][0] for name, fio in running.items()}


def mean(past: PastMetrics, metric: str) -> float:
    return mean_of(past.courses[metric])


def mean_of(course: Course) -> float:
    return statistics.fmean(course.values)


@pytest.mark.parametrize(
    ("cluster", "of", "source"),
    [("tentacle", "plugin", PLUGIN), ("tentacle", "ceph", POOLS), ("reef", "ceph", COUNTERS)],
)
def test_rates_are_those_that_the_clients_measured(watched: Watched, cluster: str, of: str, source: str) -> None:
    past, fio = watched.past(cluster=cluster, of=of), watched.measured[cluster]
    for kind in ("read", "write"):
        course = past.courses[f"client.{kind}_iops"]
        assert course.source == source
        assert course.gaps < 0.5
        assert mean(past, course.metric) == pytest.approx(fio[kind]["iops"], rel=0.15)
        assert mean(past, f"client.{kind}_bytes_s") == pytest.approx(fio[kind]["iops"] * BLOCK, rel=0.15)


def test_latencies_come_from_the_counters_and_percentiles_from_the_plugin_alone(watched: Watched) -> None:
    counters, plugin = watched.past(cluster="reef"), watched.past(cluster="tentacle", of="plugin")
    for past, cluster, source in ((counters, "reef", COUNTERS), (plugin, "tentacle", PLUGIN)):
        for kind in ("read", "write"):
            course, fio = past.courses[f"client.{kind}_mean_ms"], watched.measured[cluster][kind]["clat_ns"]
            assert course.source == source
            # the OSD cannot see the client's own share; in another unit it would be a thousand times as much or little
            assert 0.02 * fio["mean"] / 1e6 < mean_of(course) < 1.3 * fio["mean"] / 1e6 + 0.5
    percentiles = {f"client.p{number}_ms" for number in (50, 95, 99)}
    assert not percentiles & set(counters.courses)
    assert {plugin.courses[metric].source for metric in percentiles} == {PLUGIN}
    p50, p95, p99 = (mean(plugin, f"client.p{number}_ms") for number in (50, 95, 99))
    slowest = max(watched.measured["tentacle"][kind]["clat_ns"]["max"] for kind in ("read", "write")) / 1e6
    # the buckets that they are from double
    assert 0 < p50 < p95 <= p99 < 2 * slowest + 0.5


def test_metrics_come_from_where_the_docs_say(watched: Watched) -> None:
    found = {
        PLUGIN: watched.past(cluster="tentacle", of="plugin"),
        COUNTERS: watched.past(cluster="reef"),
        POOLS: watched.past(cluster="tentacle", of="ceph"),
    }
    for source, past in found.items():
        known = {metric for metric in METRICS if source in {way.source for way in expressions(metric)}}
        # the OSDs of Reef count no scrubs; without one there is no pace of scrubs
        silent = {"scrub.bytes_s"} if source == COUNTERS else {"scrub.interval_s"} if source == PLUGIN else set()
        assert {metric for metric, course in past.courses.items() if course.source == source} == known - silent
        assert not past.warnings


def test_two_clusters_of_one_server_are_told_apart_by_their_labels(watched: Watched) -> None:
    loads = {name: watched.past(cluster=name).courses for name in RATES}
    for name, (reads, writes) in RATES.items():
        share = mean_of(loads[name]["client.read_iops"]) / mean_of(loads[name]["client.iops"])
        assert share == pytest.approx(reads / (reads + writes), rel=0.15)
    with pytest.raises(InputError, match=r'2 clusters, or one scraped 2 times, under \{of="ceph"\}'):
        watched.past(of="ceph")


def test_pages_are_joined_to_what_one_query_gives(watched: Watched) -> None:
    client = Prometheus("lab", watched.server.url, SystemClock())
    for expression in ("ceph_osd_up", "rate(ceph_pool_wr[30s])", "ceph_tuner_client_latency_seconds"):
        at_once = client.query_range(expression, watched.span)
        assert len(at_once.series) > 1
        assert client.query_range(expression, watched.span, 2).series == at_once.series
    client.close()


def test_the_command_shows_both_and_what_is_left_when_the_server_is_killed(watched: Watched, tmp_path: Path) -> None:
    members = {
        name: {"lab": name, "prometheus": {"url": watched.server.url, "selector": {"cluster": name}}} for name in RATES
    }
    file = tmp_path / "fleet.yaml"
    # JSON is YAML
    file.write_text(json.dumps({"schema": 1, "clusters": members}))
    words = ["fleet", "history", "--fleet", str(file), "--since", "10min", "--step", "15s", "--within", "10"]

    def run(*more: str) -> Tuple[int, str, str]:
        done = subprocess.run([*PROGRAM, *words, *more], capture_output=True, text=True, check=False, timeout=60)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    code, out, _ = run("--format", "json")
    past = {row["cluster"]: row["past"] for row in json.loads(out)}
    assert code == 0
    for name, (reads, writes) in RATES.items():
        seen = {entry["metric"]: entry for entry in past[name]["metrics"]}
        assert seen["client.iops"]["maximum"] == pytest.approx(reads + writes, rel=0.2)
        assert 0.5 < seen["client.iops"]["gaps"] < 1
        assert past[name]["busy_load"]["operation_bytes"] == pytest.approx(BLOCK, rel=0.2)
    watched.server.stop(signal.SIGKILL)
    try:
        code, out, err = run()
    finally:
        watched.server.start()
    assert code == 1
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["tentacle", "down"], ["reef", "down"]]
    assert f"reef: found no Prometheus server at {watched.server.url}" in err


def test_every_query_of_the_dashboard_and_of_the_alerts_finds_what_the_plugin_exports(watched: Watched) -> None:
    client = Prometheus("lab", watched.server.url, SystemClock())
    silent = set()
    for where, text in panel_expressions():
        for clusters in ("tentacle|reef", "tentacle", ".*"):
            assert not client.query_range(chosen(text, clusters), watched.span).warnings
        # what is compared with a bound has no series while all is well
        if not client.query_range(chosen(COMPARISON.sub("", text)), watched.span).series:
            silent.add(where)
    client.close()
    assert silent == SILENT


def test_the_server_evaluates_every_alert_and_none_fires_where_all_is_well(watched: Watched) -> None:
    deadline = time.monotonic() + 120
    while True:
        groups = requests.get(f"{watched.server.url}/api/v1/rules", timeout=10).json()["data"]["groups"]
        rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
        # its turn comes once in an interval
        if all(rule["health"] != "unknown" for rule in rules.values()) or time.monotonic() > deadline:
            break
        time.sleep(1)
    assert set(rules) == {rule["alert"] for rule in ALERTS}
    assert {(rule["health"], rule.get("lastError", "")) for rule in rules.values()} == {("ok", "")}
    assert {name for name, rule in rules.items() if rule["state"] == "firing"} == set()
