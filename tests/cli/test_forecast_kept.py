"""A write carries what the twin said before, and what was measured after: `apply` keeps both, `history` shows both."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Optional

import pytest

from ceph_tuner.core.changes.forecast_pairs import ForecastPair, kept_pairs
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.metrics import CLASS, Scope, parted
from ceph_tuner.report.plots_of_forecasts import coverage
from ceph_tuner_cli import cluster_option, render
from ceph_tuner_cli.apply import without_model
from ceph_tuner_cli.fleet_foresight import kept_forecast
from ceph_tuner_cli.tune_prior import RULES, Believed
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import OSD, small_model, small_twin

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]

CLUSTER = """\
schema: 1
name: here
release: {}
osds: 4
osd:
  drive: {{iops: 1075, bandwidth: 60 MiB/s}}
  capacity_iops: 935
  bandwidth: 60 MiB/s
  shards: 1
  threads_per_shard: 5
  throttle: 256 KiB
pools:
  - {{name: rbd, pgs: 32, size: 2}}
clients:
  - {{pool: rbd, rate: 300, depth: 64, read_share: 0.2}}
"""


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    made = small_twin()
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: made)
    return made


@pytest.fixture
def of_ssds(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    made = small_twin(osd=replace(OSD, device_class="ssd"))
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: made)
    return made


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "here.yaml"
    path.write_text(CLUSTER.format("tentacle"))
    return str(path)


def applied(run: Run, *more: str) -> Dict[str, Any]:
    code, out, err = run("apply", "--set", "osd_max_scrubs=2", "--cluster", "a", *more, "--format", "json")
    assert code == 0, err
    found: Dict[str, Any] = json.loads(out)
    return found


def test_a_write_keeps_what_the_twin_said_and_what_was_measured(run: Run, twin: TwinCluster, model: str) -> None:
    document = applied(run, "--model", model, "--measure", "60", "--yes")
    said = document["forecast"]
    assert said["level"] == 0.9
    value, low, high = said["metrics"]["client.iops"]
    assert low <= value <= high
    assert value == pytest.approx(300, rel=0.1)
    assert document["measured"]["client.iops"] == pytest.approx(300, rel=0.15)
    _, out, _ = run("history", "--cluster", "a", "--format", "json")
    (change,) = json.loads(out)
    assert change["forecast"] == said
    assert change["measured"]["client.iops"]["inside"]
    pairs = kept_pairs(History(twin.store), twin.applier().history(), twin.clock.now())
    assert {pair.subject for pair in pairs} == {"change 1"}


def test_a_write_to_a_device_class_is_held_against_what_is_measured_of_that_class(
    run: Run, of_ssds: TwinCluster, tmp_path: Path
) -> None:
    path = tmp_path / "ssd.yaml"
    path.write_text(CLUSTER.format("tentacle") + "target: osd/class:ssd\n")
    words = ("--target", "osd/class:ssd", "--model", str(path), "--measure", "60", "--yes")
    document = applied(run, *words)
    scope = Scope(CLASS, "ssd")
    for names in (document["forecast"]["metrics"], document["measured"]):
        assert {parted(name)[1] for name in names} == {scope}
    assert document["measured"]["client.iops{class=ssd}"] == pytest.approx(300, rel=0.15)
    (entry,) = of_ssds.applier().history()
    assert entry.forecast == document["forecast"]
    pairs = {pair.metric: pair for pair in kept_pairs(History(of_ssds.store), [entry], of_ssds.clock.now())}
    assert pairs["client.iops{class=ssd}"].measured == document["measured"]["client.iops{class=ssd}"]
    _, out, _ = run("history", "--cluster", "a")
    assert "client.iops{class=ssd}" in "".join(out.split())


@pytest.mark.parametrize(("of", "target"), [("osd", "osd/class:ssd"), ("osd/class:ssd", "osd")])
def test_the_same_osds_may_have_another_name_in_a_description(
    run: Run, of_ssds: TwinCluster, tmp_path: Path, of: str, target: str
) -> None:
    path = tmp_path / "here.yaml"
    path.write_text(CLUSTER.format("tentacle") + f"target: {of}\n")
    document = applied(run, "--target", target, "--model", str(path), "--yes")
    (entry,) = of_ssds.applier().history()
    assert entry.forecast == document["forecast"]
    # of what is written to, as windows show it
    names = {name for name in map(str, document["forecast"]["metrics"]) if name.startswith("client.")}
    assert names
    assert all(("class=ssd" in name) == (target != "osd") for name in names)


def test_a_description_of_hard_disks_says_nothing_of_a_write_to_ssds(
    run: Run, of_ssds: TwinCluster, tmp_path: Path
) -> None:
    path = tmp_path / "hdd.yaml"
    path.write_text(CLUSTER.format("tentacle") + "target: osd/class:hdd\n")
    for target in ("osd", "osd/class:ssd"):
        code, _, err = run(
            *("apply", "--set", "osd_max_scrubs=2", "--cluster", "a", "--target", target, "--model", str(path), "--yes")
        )
        assert (code, f"a description of osd/class:hdd, while {target} is written to" in err) == (2, True)
    assert of_ssds.applier().history() == []


def test_history_shows_both_in_80_columns(
    run: Run, twin: TwinCluster, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(run, "--model", model, "--measure", "30", "--yes")
    monkeypatch.setattr(render.console, "_width", 80)
    for words in ((), ("--change", "1")):
        _, out, _ = run("history", "--cluster", "a", *words)
        assert max(map(len, out.splitlines())) <= 80
        assert "client.p95_ms" in out
        assert "(90%)" in out


def test_a_tuning_run_asks_the_twin_that_it_knows_and_none_where_there_is_none(twin: TwinCluster) -> None:
    now = twin.in_force("osd")
    with Believed(RULES).foretelling(now) as foretell:
        assert foretell(now.settings, 5.0) is None
    with Believed("here", small_model()).foretelling(now) as foretell:
        one, other = foretell(now.settings, 5.0), foretell(now.settings, 9.0)
    assert one is not None
    # the same settings are simulated once, and said of another moment
    assert other == replace(one, at=9.0)
    assert one.metrics["client.iops"].holds(300.0)
    assert one.model.startswith("here ")


def test_without_yes_it_is_only_said(run: Run, twin: TwinCluster, model: str) -> None:
    code, out, err = run(
        *("apply", "--set", "osd_max_scrubs=2", "--cluster", "a", "--model", model, "--format", "json")
    )
    document = json.loads(out)
    assert (code, "no prediction is kept" in err) == (0, False)
    assert (document["written"], document["measured"]) == (False, None)
    assert "client.p95_ms" in document["forecast"]["metrics"]
    assert twin.applier().history() == []


def test_a_write_without_a_model_carries_nothing(run: Run, twin: TwinCluster) -> None:
    code, out, err = run("apply", "--set", "osd_max_scrubs=2", "--cluster", "a", "--yes", "--format", "json")
    assert (code, json.loads(out)["forecast"]) == (0, None)
    assert "no prediction is kept with it, to be held against what is measured later: --model FILE does so" in err
    assert "`ceph-tuner twin describe --cluster a --output FILE`" in err
    assert [entry.forecast for entry in twin.applier().history()] == [{}]
    _, out, _ = run("history", "--cluster", "a", "--format", "json")
    assert (json.loads(out)[0]["forecast"], json.loads(out)[0]["measured"]) == (None, None)


@pytest.mark.parametrize(
    ("release", "target", "message"),
    [
        ("reef", "osd", "a cluster of Reef"),
        ("tentacle", "osd.1", "which no window shows by itself"),
        (
            "tentacle\ntarget: osd/host:h1",
            "osd/class:ssd",
            "a description of osd/host:h1, while osd/class:ssd is written to",
        ),
        ("tentacle\ntarget: osd/class:hdd", "osd", "a description of osd/class:hdd, while osd is written to"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_anything_is_written(
    run: Run, twin: TwinCluster, tmp_path: Path, release: str, target: str, message: str
) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(CLUSTER.format(release))
    words = ("apply", "--set", "osd_max_scrubs=2", "--cluster", "a", "--target", target, "--model", str(path), "--yes")
    code, _, err = run(*words)
    assert (code, message in err) == (2, True)
    assert twin.applier().history() == []


@pytest.mark.parametrize(
    ("of", "target", "metric"),
    [
        ("osd", "osd", "client.p95_ms"),
        ("osd/class:ssd", "osd/class:ssd", "client.p95_ms{class=ssd}"),
        # a mixed cluster's twin is of the class of most OSDs
        ("osd/class:ssd", "osd", None),
        ("osd/rack:r1", "osd/rack:r1", None),
    ],
)
def test_a_fleet_s_write_keeps_what_is_said_of_just_its_osds(
    twin: TwinCluster, of: str, target: str, metric: Optional[str]
) -> None:
    said = ForecastRecord(5.0, "twin of a", 0.9, {"client.p95_ms": ForecastInterval(5.0, 4.0, 8.0)})
    foreseen: Any = SimpleNamespace(target=of, record=lambda at: said)
    kept = kept_forecast(foreseen, target, twin)
    assert list(kept.get("metrics", {None: 0})) == [metric]
    assert kept_forecast(None, target, twin) == {}


def test_what_would_keep_a_prediction_is_said_by_the_target() -> None:
    assert "--cluster a --output FILE" in without_model("a", "osd")
    assert "--cluster a --target osd/class:ssd --output FILE" in without_model("a", "osd/class:ssd")
    assert "no window shows osd/host:h0 by itself" in without_model("a", "osd/host:h0")


def test_the_report_draws_what_was_said_of_a_device_class() -> None:
    interval = ForecastInterval(5.0, 4.0, 8.0)
    drawn = coverage("client.p95_ms{class=ssd}", [ForecastPair(1.0, "change 1", "m", 0.9, interval, 6.0)])
    names = re.findall(r'\bid="([^"]*)"', drawn)
    assert names
    assert not any(set("{}=") & set(name) for name in names)
