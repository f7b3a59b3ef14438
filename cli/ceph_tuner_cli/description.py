"""A cluster's description, for the commands that take one: what is unlikely in it is told."""

from __future__ import annotations

from pathlib import Path
from typing import List

from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.files import cluster_file
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli.render import say, warn


def read_description(path: Path) -> DescribedCluster:
    """Read and check the file. Raises InputError with the file, the line and the key."""
    description = cluster_file.read(path)
    warn(description.unlikely)
    return description


def objectives_left_aside(description: DescribedCluster, slo: Slo) -> List[str]:
    """Give the objectives about other OSDs than those described, and say so."""
    # a second of imports
    from ceph_tuner.recommend.question import left_aside

    aside = left_aside(description, slo)
    say([f"left aside, as the description is not of its OSDs: {text}" for text in aside])
    return aside
