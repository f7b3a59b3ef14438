"""A cluster as profiles from elsewhere are held against it, and as its own go elsewhere: hardware, work and load."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Mapping, Optional, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.target import running
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.stored_slo import stored_slo
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.profiles.in_force import hardware_on
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.describe.clients import described_load
from ceph_tuner.search.transfer import Here
from ceph_tuner.twin.model import ClusterModel


def here_and_now(
    cluster: Cluster, target: str, slo: Optional[Slo] = None, model: Optional[ClusterModel] = None
) -> Tuple[Here, Mapping[str, float]]:
    """Of a target's OSDs: what they are, and the metrics of the newest window. Raises TunerError.

    `slo`: what is wanted, if not what the cluster itself keeps. `model`: whose clients stand for those of no window.
    """
    places = running(target, cluster.config.places())
    hardware = hardware_on(cluster.commander, cluster.config, places[0])
    slo, means = slo or _slo(cluster), _newest_means(cluster)
    if not means and model is not None:
        means = described_load(model.clients)
    return Here(cluster.release, hardware, len(places), frozenset() if slo is None else slo.work), means


def with_evidence(profile: Profile, cluster: Cluster, slo: Optional[Slo] = None) -> Profile:
    """Add what is wanted (what the cluster keeps, if not given) and what its newest window measured, if known."""
    slo, means = slo or _slo(cluster), _newest_means(cluster)
    slos = () if slo is None else (slo.to_dict(),)
    return replace(profile, slos=slos, evidence=({"measured": means},) if means else ())


def _newest_means(cluster: Cluster) -> Dict[str, float]:
    window = History(cluster.store).newest(cluster.clock.now())
    return {} if window is None else window.means


def _slo(cluster: Cluster) -> Optional[Slo]:
    try:
        return stored_slo(cluster.store)
    except InputError:
        # it is said where the cluster's status is shown
        return None
