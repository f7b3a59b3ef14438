"""A cluster as profiles from elsewhere are held against it, and as its own go elsewhere: hardware, work and load."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Dict, Mapping, Optional, Tuple

from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.errors import InputError, TunerError
from ceph_tuner.fleet.status import RECENT_S, SLO_KEY
from ceph_tuner.history import History
from ceph_tuner.in_force import hardware_of
from ceph_tuner.profile import Profile
from ceph_tuner.search.transfer import Here
from ceph_tuner.slo import Slo, parse_slo


def here_and_now(cluster: Cluster, target: str) -> Tuple[Here, Mapping[str, float]]:
    """Of a target's OSDs: what they are, and the metrics of the newest window. Raises TunerError."""
    osds = cluster.config.osds(target)
    if not osds:
        raise InputError("--target", f"{target!r}, which covers no running OSD", "one that covers some")
    place = {place.osd: place for place in cluster.config.places()}[osds[0]]
    hardware = hardware_of(cluster.config.effective(osds[0]), place.device_class, f"osd.{osds[0]}")
    slo = _slo(cluster)
    return Here(cluster.release, hardware, len(osds), frozenset() if slo is None else slo.work), _seen(cluster)


def with_evidence(profile: Profile, cluster: Cluster) -> Profile:
    """Add what the cluster wants and what its newest window measured, as far as it knows them."""
    slo, seen = _slo(cluster), _seen(cluster)
    slos = () if slo is None else (slo.to_dict(),)
    return replace(profile, slos=slos, evidence=({"measured": seen},) if seen else ())


def _seen(cluster: Cluster) -> Dict[str, float]:
    windows = History(cluster.store).windows(cluster.clock.now() - RECENT_S)
    return {name: measure.mean for name, measure in windows[-1].measures.items()} if windows else {}


def _slo(cluster: Cluster) -> Optional[Slo]:
    text = cluster.store.get(SLO_KEY)
    try:
        return parse_slo(json.loads(text)) if text else None
    except (ValueError, TunerError):
        # it is said where the cluster's status is shown
        return None
