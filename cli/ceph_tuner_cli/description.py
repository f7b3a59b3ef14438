"""A cluster's description, for the commands that take one: what is unlikely in it is told."""

from __future__ import annotations

from pathlib import Path

from ceph_tuner.files import cluster_file
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli.render import warn


def read_description(path: Path) -> DescribedCluster:
    """Read and check the file. Raises InputError with the file, the line and the key."""
    description = cluster_file.read(path)
    warn(description.unlikely)
    return description
