"""What a lab's mgr shows to Prometheus: Ceph's own module, and the tuner's plugin."""

from __future__ import annotations

import json
import time
from contextlib import closing, contextmanager
from typing import Iterator

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.plugin import MODULE, OPTION_PREFIX, Plugin
from ceph_tuner.core.ceph.system_clock import SystemClock
from prometheus_server import free_port

CEPHS_OPTION_PREFIX = "mgr/prometheus/"
PLUGIN_OPTIONS = {"metrics_address": "127.0.0.1", "sample_interval": "1"}


@contextmanager
def ceph_exporter(lab: Lab, perf_counters: bool) -> Iterator[int]:
    """The port of Ceph's module; it looks anew every two seconds."""
    was_enabled = "prometheus" in lab.json(["ceph", "mgr", "module", "ls"])["enabled_modules"]
    excluded = {True: "false", False: "true"}[perf_counters]
    for name, value in (("scrape_interval", "2"), ("exclude_perf_counters", excluded)):
        _set(lab, f"{CEPHS_OPTION_PREFIX}{name}", value)
    if not was_enabled:
        lab.run(["ceph", "mgr", "module", "enable", "prometheus"])
    try:
        end_s = time.monotonic() + 120
        while "prometheus" not in (services := json.loads(lab.run(["ceph", "mgr", "services"]))):
            assert time.monotonic() < end_s, lab.run(["ceph", "health", "detail"])
            time.sleep(0.5)
        yield int(services["prometheus"].rstrip("/").rpartition(":")[2])
    finally:
        if not was_enabled:
            lab.run(["ceph", "mgr", "module", "disable", "prometheus"])
        for name in ("scrape_interval", "exclude_perf_counters"):
            lab.run(["ceph", "config", "rm", "mgr", f"{CEPHS_OPTION_PREFIX}{name}"])


@contextmanager
def plugin_exporter(lab: Lab) -> Iterator[int]:
    """The port of the plugin, which has an objective; its rates are of 20 s in place of a minute: loads are short."""
    port = free_port()
    with closing(open_cluster(lab.name)) as cluster:
        plugin = Plugin(cluster, SystemClock())
        plugin.install(enable=False)
        with (lab.mgr_modules / MODULE / "service.py").open("a") as installed:
            installed.write("\n\nSTATUS_WINDOW_S = 20.0\n")
        for name, value in {**PLUGIN_OPTIONS, "metrics_port": str(port)}.items():
            _set(lab, f"{OPTION_PREFIX}{name}", value)
        cluster.store.set("slo", json.dumps({"name": "lab", "objectives": ["client.p95_ms <= 30 s"]}))
        if plugin.status().enabled:
            cluster.commander.mon("mgr module disable", {"module": MODULE})
        cluster.commander.mon("mgr module enable", {"module": MODULE, "force": "--force"})
        try:
            yield port
        finally:
            plugin.uninstall(purge=True)


def _set(lab: Lab, name: str, value: str) -> None:
    # forced, as no mgr has said yet which options its modules have
    lab.run(["ceph", "config", "set", "mgr", name, value, "--force"])
