"""A lab with the plugin of this tree, for tests on real clusters."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import Iterator

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import Plugin
from ceph_tuner.core.ceph.system_clock import SystemClock


@contextmanager
def with_plugin(lab: Lab) -> Iterator[Cluster]:
    """Load it; taken out with everything it stored, unless it was there before."""
    with closing(open_cluster(lab.name)) as cluster:
        plugin = Plugin(cluster, SystemClock())
        was_enabled = plugin.status().enabled
        plugin.install()
        try:
            yield cluster
        finally:
            if not was_enabled:
                plugin.uninstall(purge=True)
