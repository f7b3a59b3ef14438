"""A cluster behind the ports: `open_cluster(NAME)` gives its commands, configuration database and store."""

from __future__ import annotations

from ceph_tuner.cluster.connection import Cluster, connect, open_cluster

__all__ = ["Cluster", "connect", "open_cluster"]
