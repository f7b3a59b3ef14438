"""What a member's twin is made of, and what is wanted of it: from the files that fleet.yaml names, else from itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Mapping, Optional, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.dashboard import Dashboard
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.stored_slo import stored_slo
from ceph_tuner.core.moments import utc_minute
from ceph_tuner.describe.live_cluster import SAMPLE_S, describe
from ceph_tuner.files import cluster_file, slo_file
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.past import busy_load
from ceph_tuner.twin.described_cluster import DescribedCluster


def described(
    member: Member, cluster: Cluster, slo: Optional[Slo] = None, target: str = "osd", within_s: float = 30.0
) -> DescribedCluster:
    """Describe it to its twin; settings are in Ceph's own units. Raises InputError with what to do, TunerError.

    Work that the SLO (its own, where none is given) is about is assumed where none is under way. Clients do what they
    did in their busiest hour of the last week, where a Prometheus server knows. Of the time (`within_s`) its server
    has a third, and a sampling another one, so that the cluster itself is still asked.
    """
    if member.description:
        return cluster_file.read(member.description)
    if isinstance(cluster.commander, Dashboard):
        raise InputError(
            f"cluster {member.name}",
            "a cluster reached by REST, which does not tell what its OSDs are and what they do",
            "`description:` in fleet.yaml, with a file that describes it (`ceph-tuner twin describe`)",
        )
    with suppress(InputError):
        slo = slo or wanted(member, cluster)
    load, notes = _busiest(member, cluster.clock.now(), within_s / 3)
    also = frozenset() if slo is None else slo.work
    cluster_description = describe(cluster, target, also, min(SAMPLE_S, within_s / 3), load)
    return replace(cluster_description, notes=(*cluster_description.notes, *notes))


def _busiest(member: Member, now: float, timeout: float) -> Tuple[Optional[Mapping[str, float]], Tuple[str, ...]]:
    """What clients did in their busiest hour, and a note of it; none is needed where no server is named."""
    if member.prometheus is None:
        return None, ()
    try:
        load = busy_load(member, now, timeout)
    except TunerError as error:
        return None, (f"what clients do is that of now, not of their busiest hour: {error}",)
    if load is None:
        return None, ("what clients do is that of now: of the last week, its Prometheus server knows no load",)
    when = utc_minute(load.start)
    return load.means, (f"what clients do is that of their busiest hour of the last week, from {when} on",)


def wanted(member: Member, cluster: Cluster) -> Slo:
    """Its SLO. Raises InputError where there is none or it cannot be read, TunerError."""
    if member.slo:
        return slo_file.read(member.slo).slo
    slo = None if isinstance(cluster.commander, Dashboard) else stored_slo(cluster.store)
    if slo is None:
        raise InputError(
            f"cluster {member.name}",
            "no SLO",
            "`slo:` in fleet.yaml, or one that the cluster keeps (`ceph tuner slo set`)",
        )
    return slo
