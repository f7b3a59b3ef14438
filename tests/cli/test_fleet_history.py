from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from ceph_tuner.fleet.past_series import PLUGIN, SOURCES
from known_past import BUSY, END, START, served_past
from prometheus_server import PrometheusServer
from running_program import Run

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with served_past(tmp_path_factory.mktemp("prometheus")) as made:
        yield made


@pytest.fixture
def fleet(tmp_path: Path, server: PrometheusServer) -> str:
    path = tmp_path / "fleet.yaml"
    path.write_text(
        "schema: 1\nclusters:\n"
        f"  north: {{lab: a, prometheus: {{url: '{server.url}', selector: {{cluster: north}}}}}}\n"
        f"  south: {{lab: b, prometheus: {{url: '{server.url}', selector: {{cluster: south}}}}}}\n"
        "  west: {lab: c}\n"
    )
    return str(path)


def when(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def test_the_command_has_a_row_for_each_cluster_and_metric_on_80_columns(run: Run, fleet: str) -> None:
    code, out, err = run("fleet", "history", "--fleet", fleet, "--since", when(START), "--until", when(END))
    assert code == 0
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in out.splitlines()}
    busy = [time.strftime("%m-%d", time.gmtime(BUSY)), time.strftime("%Hh", time.gmtime(BUSY))]
    assert rows["north", "client.iops"][-4:] == ["/s", *busy, "0%"]
    assert float(rows["north", "client.iops"][3]) == 900
    assert rows["north", "client.p95_ms"][-4] == "ms"
    assert float(rows["south", "client.iops"][3]) == pytest.approx(900, rel=0.01)
    assert rows["south", "client.iops"][-1] != "0%"
    assert max(map(len, out.splitlines())) <= 80
    assert "west: no `prometheus` in" in err
    assert f"south: no client.p95_ms: only {SOURCES[PLUGIN]} would tell" in err
    (busiest,) = re.findall(r"north: its busiest hour: (\d+) operations/s, 25% reads, 8 KiB each", err)
    assert float(busiest) == pytest.approx(900, rel=0.02)


def test_programs_get_the_points(run: Run, fleet: str) -> None:
    words = ("--since", when(START), "--until", when(END), "--step", "1h", "--metric", "client.*iops")
    code, out, _ = run("fleet", "history", "south", "--fleet", fleet, *words, "--format", "json")
    (document,) = json.loads(out)
    past: Dict[str, Any] = document["past"]
    assert code == 0
    assert (past["from"], past["to"], past["step"]) == (START, END, 3600)
    found = {entry["metric"]: entry for entry in past["metrics"]}
    assert list(found) == ["client.iops", "client.read_iops", "client.write_iops"]
    assert found["client.iops"]["busiest_hour"] == BUSY
    at, value = found["client.iops"]["points"][-1]
    assert (at, value) == (END, found["client.iops"]["points"][-1][1])
    assert past["busy_load"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--since", "soon"], "--since: found 'soon'"),
        (["--since", "1h", "--until", "2h"], "an earlier time"),
        (["--step", "1ms"], "--step"),
        (["--since", "52w", "--step", "1s"], "at most 1000000 points"),
        (["--metric", "iops"], "--metric: found 'iops', expected one of client.iops"),
        (["west"], "no `prometheus` of any of these clusters"),
    ],
)
def test_what_cannot_be_asked_is_told_with_what_can(run: Run, fleet: str, words: List[str], told: str) -> None:
    code, out, err = run("fleet", "history", "--fleet", fleet, *words)
    assert (code, out) == (2, "")
    assert told in " ".join(err.split())


def test_a_server_that_is_gone_is_a_row_and_one_line(run: Run, fleet: str, server: PrometheusServer) -> None:
    server.stop(signal.SIGKILL)
    try:
        code, out, err = run("fleet", "history", "--fleet", fleet, "--within", "5")
    finally:
        server.start()
    assert code == 1
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["north", "down"], ["south", "down"]]
    assert f"north: found no Prometheus server at {server.url}" in err
