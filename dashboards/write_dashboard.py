"""Writes `ceph-tuner.json`, the Grafana dashboard: `python dashboards/write_dashboard.py` after a change here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

FILE = Path(__file__).with_name("ceph-tuner.json")

NEVER_S = 315_360_000
"""What the plugin exports as the finish time of work that stands still; left out of the plots."""
WIDTH = 24
"""Columns of Grafana's grid."""

Queries = Tuple[Tuple[str, str], ...]
"""(expression, legend)."""


def of(metric: str, by: str = "", matchers: str = "") -> str:
    """One value per cluster and label, whichever mgr gave it: after a failover it is another one."""
    chosen = f'cluster=~"$cluster"{f", {matchers}" if matchers else ""}'
    return f"max by (cluster{f', {by}' if by else ''}) (ceph_tuner_{metric}{{{chosen}}})"


def panel(
    title: str,
    queries: Queries,
    unit: str = "short",
    width: int = 8,
    kind: str = "timeseries",
    stack: bool = False,
    **options: Any,
) -> Dict[str, Any]:
    """One panel; its place on the grid comes later."""
    custom: Dict[str, Any] = {"fillOpacity": 15, "lineWidth": 1, "showPoints": "never", "spanNulls": False}
    if stack:
        custom["stacking"] = {"mode": "normal"}
    defaults: Dict[str, Any] = {"unit": unit, **options.pop("defaults", {})}
    if kind == "timeseries":
        # what was not seen is a gap, and no rate is below 0
        defaults = {"custom": custom, **({} if "min" in defaults or unit == "percentunit" else {"min": 0}), **defaults}
    targets = [
        {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend, **options.get("target", {})}
        for at, (expression, legend) in enumerate(queries)
    ]
    return {
        "title": title,
        "type": kind,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "gridPos": {"h": 7, "w": width, "x": 0, "y": 0},
        "options": options.get("panel", {"legend": {"displayMode": "list"}, "tooltip": {"mode": "multi"}}),
        "targets": targets,
        **({"transformations": options["transformations"]} if "transformations" in options else {}),
        **({"description": options["description"]} if "description" in options else {}),
    }


def stat(
    title: str, expression: str, legend: str = "{{cluster}}", unit: str = "short", **options: Any
) -> Dict[str, Any]:
    """A number."""
    shown = {"colorMode": "value", "reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "value_and_name"}
    return panel(title, ((expression, legend),), "short", 4, "stat", panel=shown, **options)


def _steps(below: str, bound: float, above: str) -> Dict[str, Any]:
    """Colours below a bound and from it on."""
    return {"mode": "absolute", "steps": [{"color": below, "value": None}, {"color": above, "value": bound}]}


GOOD_AT_0 = {"thresholds": _steps("green", 1, "red")}
MARGIN = {
    "thresholds": _steps("red", 0, "green"),
    "custom": {"fillOpacity": 0, "showPoints": "never", "thresholdsStyle": {"mode": "line"}},
}

ROWS: List[Tuple[str, List[Dict[str, Any]]]] = [
    (
        "Objectives",
        [
            stat("Objectives missed", f"sum by (cluster) (1 - {of('slo_met', 'metric, kind')})", defaults=GOOD_AT_0),
            stat("Plugin", of("build_info", "version, release"), "{{version}} on {{release}}"),
            panel(
                "Margin: above 0 an objective is kept",
                ((of("slo_margin_ratio", "metric, kind"), "{{metric}} ({{kind}})"),),
                "percentunit",
                16,
                defaults=MARGIN,
            ),
            panel(
                "Seen and bound, in base units",
                ((of("slo_seen", "metric, kind"), "seen"), (of("slo_bound", "metric, kind"), "bound")),
                width=24,
                kind="table",
                target={"format": "table", "instant": True},
                transformations=[{"id": "merge", "options": {}}],
                panel={"showHeader": True},
            ),
        ],
    ),
    (
        "Work",
        [
            panel("Client operations", ((of("client_operations_per_second", "direction"), "{{direction}}"),), "ops"),
            panel("Client bandwidth", ((of("client_bytes_per_second", "direction"), "{{direction}}"),), "Bps"),
            panel("Bandwidth by class", ((of("bytes_per_second", "class"), "{{class}}"),), "Bps"),
            panel(
                "Objects by class",
                (
                    (of("objects_per_second", "class"), "{{class}}"),
                    (of("copies_per_second", "class"), "{{class}}: degraded copies"),
                ),
                "ops",
            ),
            panel(
                "Copies left, snapshots that wait",
                ((of("objects_left", "class"), "{{class}}"), (of("snaptrim_queue"), "snaptrim: snapshots of PGs")),
            ),
            panel(
                "Time until background work is done",
                ((f"{of('finish_seconds', 'class')} < {NEVER_S}", "{{class}}"),),
                "s",
                description="Work that stands still has no line; an alert tells of it.",
            ),
            panel(
                "A round of deep scrub over the cluster",
                ((f"{of('scrub_interval_seconds')} < {NEVER_S}", "at the present rate"),),
                "s",
            ),
            panel("PGs past their deep-scrub date", ((of("scrub_late_pgs"), "PGs"),)),
            panel("All client operations", ((of("operations_per_second", "class"), "{{class}}"),), "ops"),
        ],
    ),
    (
        "Latency and queues",
        [
            panel(
                "Client latency, reads and writes",
                ((of("client_latency_seconds", "quantile", 'direction="all"'), "p{{quantile}}"),),
                "s",
            ),
            panel(
                "99th percentile by direction",
                ((of("client_latency_seconds", "direction", 'quantile="0.99"'), "{{direction}}"),),
                "s",
            ),
            panel("Mean latency", ((of("client_latency_mean_seconds", "direction"), "{{direction}}"),), "s"),
            panel(
                "Items that wait in the mClock queues, mean per OSD",
                ((of("queue_items", "class"), "{{class}}"),),
                width=24,
                stack=True,
            ),
        ],
    ),
    (
        "Automatic mode",
        [
            stat("Mode", f"{of('mode', 'mode')} == 1", "{{mode}}"),
            stat("Phase", f"{of('phase', 'phase')} == 1", "{{phase}}"),
            stat("Paused", of("paused")),
            stat("Changes on trial", of("changes_on_trial")),
            stat("Stage", of("stage")),
            stat("of stages", of("stages")),
            panel(
                "Effect of the trial under way, with its interval",
                (
                    (of("effect_ratio", "metric"), "{{metric}}"),
                    (of("effect_low_ratio", "metric"), "{{metric}} at least"),
                    (of("effect_high_ratio", "metric"), "{{metric}} at most"),
                ),
                "percentunit",
                16,
            ),
            panel("Windows compared", ((of("trial_windows"), "windows"),)),
            panel(
                "Changes and rollbacks in an hour",
                (
                    ('sum by (cluster) (increase(ceph_tuner_changes_total{cluster=~"$cluster"}[1h]))', "changes"),
                    (
                        'sum by (cluster, rule) (increase(ceph_tuner_rollbacks_total{cluster=~"$cluster"}[1h]))',
                        "taken back: {{rule}}",
                    ),
                ),
                width=12,
            ),
            panel(
                "Audit trail, records in an hour",
                (
                    (
                        'sum by (cluster, what) (increase(ceph_tuner_events_total{cluster=~"$cluster"}[1h])) > 0',
                        "{{what}}",
                    ),
                ),
                width=12,
            ),
        ],
    ),
    (
        "Trouble, and the plugin itself",
        [
            panel(
                "Trouble in the cluster",
                (
                    (of("slow_operations"), "slow operations"),
                    (of("inactive_pgs"), "inactive PGs"),
                    (of("laggy_pgs"), "laggy PGs"),
                    (of("down_osds"), "OSDs down"),
                ),
            ),
            panel(
                "Age of the newest sample; how long it took",
                ((f"time() - {of('sample_timestamp_seconds')}", "age"), (of("tick_seconds"), "took")),
                "s",
            ),
            panel(
                "Failures in a row",
                ((of("sampling_failures"), "samples"), (of("worker_failures"), "answers of the optimiser")),
            ),
        ],
    ),
]


def dashboard() -> Dict[str, Any]:
    """The whole document."""
    panels: List[Dict[str, Any]] = []
    y = 0
    for title, own in ROWS:
        panels.append(
            {"type": "row", "title": title, "collapsed": False, "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": y}}
        )
        y, x = y + 1, 0
        for entry in own:
            place = entry["gridPos"]
            if x + place["w"] > WIDTH:
                x, y = 0, y + place["h"]
            panels.append({**entry, "gridPos": {**place, "x": x, "y": y}})
            x += place["w"]
        y += 7
    return {
        "uid": "ceph-tuner",
        "title": "ceph-tuner",
        "tags": ["ceph", "ceph-tuner"],
        "description": "What ceph-tuner's mgr module exports (mgr/tuner/metrics_port).",
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "editable": True,
        "graphTooltip": 1,
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                {
                    "name": "cluster",
                    "type": "query",
                    "label": "Cluster",
                    "datasource": {"type": "prometheus", "uid": "${datasource}"},
                    "query": {"query": "label_values(ceph_tuner_build_info, cluster)", "refId": "cluster"},
                    "refresh": 2,
                    "includeAll": True,
                    # also what a Prometheus without a label `cluster` has
                    "allValue": ".*",
                    "multi": True,
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "annotations": {
            "list": [
                _annotation("Changes", 'increase(ceph_tuner_changes_total{cluster=~"$cluster"}[1m]) > 0', "blue"),
                _annotation(
                    "Taken back",
                    'increase(ceph_tuner_events_total{cluster=~"$cluster", what="taken back"}[1m]) > 0',
                    "red",
                ),
            ]
        },
        "panels": [{"id": number, **entry} for number, entry in enumerate(panels, 1)],
    }


def _annotation(name: str, expression: str, colour: str) -> Dict[str, Any]:
    return {
        "name": name,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "enable": True,
        "expr": expression,
        "iconColor": colour,
        "step": "60s",
        "titleFormat": name,
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(dashboard(), indent=1) + "\n", encoding="utf-8")
