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


def work(metric: str, by: str = "", matchers: str = "") -> str:
    """What the OSDs do, of the scope that is chosen: of the whole cluster, a device class or a pool."""
    scope = 'device_class=~"$device_class", pool=~"$pool"'
    return of(metric, by, f"{matchers}, {scope}" if matchers else scope)


def mode(metric: str, by: str = "") -> str:
    """Of each automatic mode: device classes may have their own."""
    return of(metric, ", ".join(filter(None, (by, "device_class"))))


def in_an_hour(metric: str, matchers: str = "") -> str:
    """By how much a counter rose."""
    return f'increase(ceph_tuner_{metric}{{cluster=~"$cluster"{f", {matchers}" if matchers else ""}}}[1h])'


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


INSTANT = {"instant": True, "range": False}
"""What holds now: over a range, a phase that ended hours ago would have a last value too."""


def stat(title: str, expression: str, legend: str = "{{cluster}}", text: str = "value_and_name", **options: Any) -> Any:
    """A number, or with `text="name"` a word."""
    shown = {
        "colorMode": "value",
        "graphMode": "none",
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "textMode": text,
    }
    return panel(title, ((expression, legend),), "short", 4, "stat", panel=shown, target=INSTANT, **options)


def absent(words: str) -> Dict[str, Any]:
    """What a panel says instead of "No data"."""
    return {"noValue": words}


def _steps(below: str, bound: float, above: str) -> Dict[str, Any]:
    """Colours below a bound and from it on."""
    return {"mode": "absolute", "steps": [{"color": below, "value": None}, {"color": above, "value": bound}]}


GOOD_AT_0 = {"thresholds": _steps("green", 1, "red")}
NO_OBJECTIVES = absent("no objectives")
OBJECTIVE = "metric, kind, device_class, pool"
NO_BOOST = absent("nothing is boosted")
TAKEN_BACK = 'what="taken back"'
OF_EFFECT = "metric, device_class, pool"
MARGIN = {
    "thresholds": _steps("red", 0, "green"),
    "custom": {"fillOpacity": 0, "showPoints": "never", "thresholdsStyle": {"mode": "line"}},
}

ROWS: List[Tuple[str, List[Dict[str, Any]]]] = [
    (
        "Objectives",
        [
            stat(
                "Objectives missed",
                f"sum by (cluster) (1 - {of('slo_met', OBJECTIVE)})",
                defaults={**GOOD_AT_0, **NO_OBJECTIVES},
            ),
            stat("Plugin", of("build_info", "version, release"), "{{version}} on {{release}}", "name"),
            panel(
                "Margin: above 0 an objective is kept",
                ((of("slo_margin_ratio", OBJECTIVE), "{{metric}} {{device_class}}{{pool}} ({{kind}})"),),
                "percentunit",
                16,
                defaults={**MARGIN, **NO_OBJECTIVES},
            ),
            panel(
                "Seen and bound, in base units",
                ((of("slo_seen", OBJECTIVE), "seen"), (of("slo_bound", OBJECTIVE), "bound")),
                width=24,
                kind="table",
                target={"format": "table", **INSTANT},
                # a table names a query's column by its letter, whatever the legend is
                transformations=[
                    {"id": "merge", "options": {}},
                    {
                        "id": "organize",
                        "options": {
                            "excludeByName": {"Time": True},
                            "renameByName": {"Value #A": "seen", "Value #B": "bound"},
                        },
                    },
                ],
                panel={"showHeader": True},
                defaults=NO_OBJECTIVES,
            ),
        ],
    ),
    (
        "Work",
        [
            panel("Client operations", ((work("client_operations_per_second", "direction"), "{{direction}}"),), "ops"),
            panel("Client bandwidth", ((work("client_bytes_per_second", "direction"), "{{direction}}"),), "Bps"),
            panel("Bandwidth by class", ((work("bytes_per_second", "class"), "{{class}}"),), "Bps"),
            panel(
                "Objects by class",
                (
                    (work("objects_per_second", "class"), "{{class}}"),
                    (work("copies_per_second", "class"), "{{class}}: degraded copies"),
                ),
                "ops",
            ),
            panel(
                "Copies left, snapshots that wait",
                ((work("objects_left", "class"), "{{class}}"), (work("snaptrim_queue"), "snaptrim: snapshots of PGs")),
            ),
            panel(
                "Time until background work is done",
                ((f"{work('finish_seconds', 'class')} < {NEVER_S}", "{{class}}"),),
                "s",
                description="Work that stands still has no line; an alert tells of it.",
            ),
            panel(
                "A round of deep scrub over the cluster",
                ((f"{work('scrub_interval_seconds')} < {NEVER_S}", "at the present rate"),),
                "s",
                defaults=absent("nothing is scrubbed"),
            ),
            panel(
                "PGs past their deep-scrub date",
                (
                    (work("scrub_late_pgs"), "PGs"),
                    (work("scrub_preemptions_per_second"), "chunks that writes preempt, per second"),
                ),
            ),
            panel("All client operations", ((work("operations_per_second", "class"), "{{class}}"),), "ops"),
        ],
    ),
    (
        "Latency and queues",
        [
            panel(
                "Client latency, reads and writes",
                ((work("client_latency_seconds", "quantile", 'direction="all"'), "p{{quantile}}"),),
                "s",
            ),
            panel(
                "99th percentile by direction",
                ((work("client_latency_seconds", "direction", 'quantile="0.99"'), "{{direction}}"),),
                "s",
            ),
            panel("Mean latency", ((work("client_latency_mean_seconds", "direction"), "{{direction}}"),), "s"),
            panel(
                "Items that wait in the mClock queues, mean per OSD",
                ((work("queue_items", "class"), "{{class}}"),),
                width=24,
                stack=True,
            ),
        ],
    ),
    (
        "Automatic mode",
        [
            stat("Mode", f"{mode('mode', 'mode')} == 1", "{{mode}} {{device_class}}", "name"),
            stat("Phase", f"{mode('phase', 'phase')} == 1", "{{phase}} {{device_class}}", "name"),
            stat("Paused", mode("paused"), "{{cluster}} {{device_class}}"),
            stat("Changes on trial", mode("changes_on_trial"), "{{cluster}} {{device_class}}"),
            stat("Stage", mode("stage"), "{{cluster}} {{device_class}}"),
            stat("of stages", mode("stages"), "{{cluster}} {{device_class}}"),
            panel(
                "Effect of the trial under way, with its interval",
                (
                    (of("effect_ratio", OF_EFFECT), "{{metric}} {{device_class}}{{pool}}"),
                    (of("effect_low_ratio", OF_EFFECT), "{{metric}} {{device_class}}{{pool}} at least"),
                    (of("effect_high_ratio", OF_EFFECT), "{{metric}} {{device_class}}{{pool}} at most"),
                ),
                "percentunit",
                12,
                defaults=absent("nothing is on trial"),
            ),
            stat("Boosted", f"{of('boost', 'class')} == 1", "{{class}} {{cluster}}", "name", defaults=NO_BOOST),
            stat("Regime", f"{mode('regime', 'regime')} == 1", "{{regime}} {{cluster}} {{device_class}}", "name"),
            stat(
                "Policy",
                f"{of('policy', 'policy')} == 1",
                "{{policy}} {{cluster}}",
                "name",
                defaults=absent("no calendar"),
            ),
            panel(
                "Boost: until it is done, and until its time is up",
                (
                    (of("boost_finish_seconds"), "done {{cluster}}"),
                    (of("boost_limit_seconds"), "time is up {{cluster}}"),
                ),
                "s",
                12,
                defaults=NO_BOOST,
            ),
            panel(
                "Book: page in force, and switches of the last hour",
                (
                    (mode("book_page"), "page {{cluster}} {{device_class}}"),
                    (mode("book_switches"), "switches {{cluster}} {{device_class}}"),
                    (mode("book_on"), "on {{cluster}} {{device_class}}"),
                ),
                "none",
                12,
            ),
            panel("Windows compared", ((mode("trial_windows"), "windows {{device_class}}"),)),
            panel(
                "Changes and rollbacks in an hour",
                (
                    (
                        f"sum by (cluster, device_class) ({in_an_hour('changes_total')})",
                        "changes {{device_class}}",
                    ),
                    (
                        # from 0 on, while a rule's own counter begins with its first event
                        f"sum by (cluster, device_class) ({in_an_hour('events_total', TAKEN_BACK)})",
                        "taken back {{device_class}}",
                    ),
                    (
                        f"sum by (cluster, rule, device_class) ({in_an_hour('rollbacks_total')})",
                        "taken back: {{rule}} {{device_class}}",
                    ),
                ),
            ),
            panel(
                "Audit trail, records in an hour",
                (
                    (
                        f"sum by (cluster, what, device_class) ({in_an_hour('events_total')}) > 0",
                        "{{what}} {{device_class}}",
                    ),
                ),
                defaults=absent("nothing happened"),
            ),
        ],
    ),
    (
        "Trouble, and the plugin itself",
        [
            panel(
                "Trouble in the cluster",
                (
                    (work("slow_operations"), "slow operations"),
                    (work("inactive_pgs"), "inactive PGs"),
                    (work("laggy_pgs"), "laggy PGs"),
                    (work("down_osds"), "OSDs down"),
                ),
            ),
            panel(
                "Age of the newest sample; how long it took",
                ((f"time() - {of('sample_timestamp_seconds')}", "age"), (of("tick_seconds"), "took")),
                "s",
            ),
            panel(
                "Failures in a row",
                (
                    (of("sampling_failures"), "samples"),
                    (mode("worker_failures"), "answers of the optimiser {{device_class}}"),
                ),
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
                _scope("device_class", "Device class (All: the cluster as a whole)"),
                _scope("pool", "Pool (All: the cluster as a whole)"),
            ]
        },
        "annotations": {
            "list": [
                _annotation("Changes", "changes_total", "", "blue"),
                _annotation("Taken back", "events_total", f", {TAKEN_BACK}", "red"),
            ]
        },
        "panels": [{"id": number, **entry} for number, entry in enumerate(panels, 1)],
    }


def _scope(label: str, words: str) -> Dict[str, Any]:
    """Chooses a device class or a pool with series of its own; what is about the whole cluster has no such label."""
    return {
        "name": label,
        "type": "query",
        "label": words,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": f"label_values(ceph_tuner_operations_per_second, {label})", "refId": label},
        "refresh": 2,
        "includeAll": True,
        "allValue": "^$",
        "multi": False,
        "current": {"text": "All", "value": "$__all"},
    }


def _annotation(name: str, counter: str, matchers: str, colour: str) -> Dict[str, Any]:
    # two scrapes, where Prometheus scrapes once a minute as by default
    expression = f'increase(ceph_tuner_{counter}{{cluster=~"$cluster"{matchers}}}[2m]) > 0'
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
