"""The dashboard, the alerts, and every expression in them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from ruamel.yaml import YAML

FOLDER = Path(__file__).resolve().parents[1] / "dashboards"
sys.path.insert(0, str(FOLDER))

import write_dashboard  # noqa: E402 - it lies beside the file that it writes

WRITTEN = write_dashboard.dashboard()
"""What the generator writes."""
NEVER_S = write_dashboard.NEVER_S

DASHBOARD = json.loads((FOLDER / "ceph-tuner.json").read_text(encoding="utf-8"))
ALERTS = YAML(typ="safe").load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]

SELECTOR = re.compile(r"\b(ceph_tuner_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|without) \(([^)]*)\)")
LEGEND = re.compile(r"\{\{(\w+)\}\}")
OF_THE_SCRAPE = {"cluster", "instance", "job"}
"""Labels that the server adds."""


def chosen(expression: str, cluster: str = ".*") -> str:
    """The query as Grafana sends it, of these clusters, each as a whole."""
    of_all = {"$cluster": cluster, "$device_class": "^$", "$pool": "^$"}
    for name, value in of_all.items():
        expression = expression.replace(name, value)
    return expression


def panels() -> List[Dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[Tuple[str, str]]:
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield f"annotation {annotation['name']}", annotation["expr"]
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
