"""Dashboard and alerts against what the plugin really exports, and the alerts against made-up days (promtool)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Dict, Set, Tuple

import pytest
from mode_documents import mode
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from ceph_tuner.core.autopilot.audit_log import KINDS
from ceph_tuner.core.autopilot.state import MODES, PHASES
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.measure.metrics import CLASS, METRICS, POOL, Scope, scoped
from ceph_tuner.core.measure.sample import NEVER_S, Measure, Window
from dashboard_queries import (
    ALERTS,
    DASHBOARD,
    FOLDER,
    GROUPING,
    LEGEND,
    MATCHER,
    OF_THE_SCRAPE,
    SELECTOR,
    WRITTEN,
    chosen,
    expressions,
    panels,
)
from dashboard_queries import (
    NEVER_S as NEVER_ON_THE_DASHBOARD_S,
)
from prometheus_server import program
from tuner.exposition import FAMILIES, ExportedState, exposition

ALERT_TESTS = ("alerts_test.yaml", "alerts_of_days_test.yaml")
SEEN = {"client.p95_ms": 91.0, "recovery.bytes_s": 3e6, "client.mean_ms{pool=volumes}": 5.0}


def everything() -> Dict[str, Set[Tuple[Tuple[str, str], ...]]]:
    """What the real exposition makes of a document that has everything: name -> its label sets."""
    slo = Slo(
        "cluster",
        (
            parse_objective("client.p95_ms <= 80"),
            parse_objective("client.mean_ms{pool=volumes} <= 8"),
            parse_objective({"objective": "recovery.bytes_s >= 2 MB/s", "hard": False}),
        ),
    )
    scopes = (None, Scope(CLASS, "hdd"), Scope(POOL, "volumes"))
    names = [scoped(name, scope) for scope in scopes for name in METRICS if scoped(name, scope) in METRICS]
    document: ExportedState = {
        "version": "0.1.0",
        "release": "tentacle",
        "sample": {"at": 1.7e9},
        "window": Window(0.0, 60.0, {name: Measure(1.0, 0.0, 1) for name in names}).to_dict(),
        "modes": [mode(slo, SEEN, name, (*SEEN,)) for name in ("", "hdd")],
        "boost": {"kind": "recovery", "left_s": 3600.0, "finish_s": 900.0},
        "books": [
            {"device_class": name, "regime": "recovering", "on": True, "page": 3, "switches": 2} for name in ("", "hdd")
        ],
        "policies": {"base": False, "office": True},
        "tick_s": 0.2,
        "sampling_failures": 0,
    }
    found: Dict[str, Set[Tuple[Tuple[str, str], ...]]] = {}
    for family in text_string_to_metric_families(exposition(document)):
        for sample in family.samples:
            found.setdefault(sample.name, set()).add(tuple(sorted(sample.labels.items())))
    return found


EXPORTED = everything()


def test_the_document_with_everything_brings_out_every_family() -> None:
    assert set(EXPORTED) == set(FAMILIES)


def test_the_dashboard_is_what_its_generator_writes() -> None:
    assert WRITTEN == DASHBOARD, "run `python dashboards/write_dashboard.py`"


@pytest.mark.parametrize(("where", "expression"), list(expressions()), ids=lambda value: str(value)[:40])
def test_every_query_selects_series_that_the_plugin_exports(where: str, expression: str) -> None:
    selectors = SELECTOR.findall(expression)
    assert selectors, where
    known = set(OF_THE_SCRAPE)
    for metric, matchers in selectors:
        assert metric in EXPORTED, f"{where}: {metric}"
        known |= {name for labels in EXPORTED[metric] for name, _ in labels}
        wanted = {
            name: value
            for name, operator, value in MATCHER.findall(matchers)
            if name not in OF_THE_SCRAPE and value[:1] != "$"
        }
        assert len(MATCHER.findall(matchers)) == len([part for part in matchers.split(",") if part.strip()])
        assert any(wanted.items() <= dict(labels).items() for labels in EXPORTED[metric]), f"{where}: {wanted}"
    for labels in GROUPING.findall(expression):
        assert {label.strip() for label in labels.split(",")} <= known, f"{where}: {labels}"


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_no_panel_draws_two_series_under_one_name_or_adds_up_what_differs(panel: Dict[str, Any]) -> None:
    for target in panel["targets"]:
        kept = {label.strip() for labels in GROUPING.findall(target["expr"])[:1] for label in labels.split(",")}
        assert set(LEGEND.findall(target["legendFormat"])) <= kept
        if panel["type"] == "timeseries":
            assert kept - {"cluster"} <= set(LEGEND.findall(target["legendFormat"])), panel["title"]
        # every label by which a metric's series differ is grouped by or matched, innermost first
        inner = {label.strip() for label in GROUPING.findall(target["expr"])[-1].split(",")}
        for metric, matchers in SELECTOR.findall(target["expr"]):
            matched = {name for name, _, _ in MATCHER.findall(matchers)}
            own = {name for labels in EXPORTED[metric] for name, _ in labels}
            assert own <= matched | inner, f"{panel['title']}: {metric} by {own}"


def test_every_exported_metric_is_on_the_dashboard() -> None:
    shown = {
        metric for panel in panels() for target in panel["targets"] for metric, _ in SELECTOR.findall(target["expr"])
    }
    assert shown == set(FAMILIES)


def test_panels_fill_rows_without_lying_over_each_other() -> None:
    taken: Set[Tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_never_means_the_same_to_the_plugin_the_dashboard_and_the_alerts() -> None:
    assert NEVER_ON_THE_DASHBOARD_S == NEVER_S
    (rule,) = [rule for rule in ALERTS if rule["alert"] == "CephTunerWorkStandsStill"]
    assert f">= {NEVER_S:.0f}" in rule["expr"]


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


def test_matched_modes_phases_and_events_exist() -> None:
    values = {"mode": set(MODES), "phase": set(PHASES), "what": set(KINDS)}
    for where, expression in expressions():
        for name, operator, value in MATCHER.findall(expression):
            if name in values and operator == "=":
                assert value in values[name], f"{where}: {value}"


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *words], capture_output=True, text=True, check=False, timeout=300, cwd=FOLDER
    )


@pytest.mark.cluster
def test_promtool_accepts_the_alerts_and_every_query_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": chosen(expression)}
        for number, (_, expression) in enumerate(expressions())
    ]
    path = tmp_path / "queries.yaml"
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump({"groups": [{"name": "queries", "rules": rules}]}, file)
    for file_name in ("alerts.yaml", str(path)):
        done = promtool("check", "rules", file_name)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.cluster
def test_each_alert_fires_when_it_should_and_no_other_does() -> None:
    done = promtool("test", "rules", *ALERT_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_firing_in_the_unit_tests() -> None:
    text = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ALERT_TESTS)
    fired = set(re.findall(r'ALERTS\{alertname="(\w+)", alertstate="firing"', text))
    assert fired == {rule["alert"] for rule in ALERTS}


def test_the_page_has_every_alert_with_its_severity() -> None:
    page = (FOLDER.parent / "docs" / "dashboards.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(CephTuner\w+)` \|.*\| (\w+) \|$", page, re.MULTILINE)
    assert rows == [(rule["alert"], rule["labels"]["severity"]) for rule in ALERTS]
