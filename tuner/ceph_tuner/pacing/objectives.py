"""The objectives that background work is held to, and what a window says of them."""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import parsed, shaped
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge, beyond
from ceph_tuner.core.goals.slo import Bound, Objective, Slo
from ceph_tuner.core.measure.metrics import Scope, scoped
from ceph_tuner.core.measure.sample import clients_wait
from ceph_tuner.core.measure.scopes import crush_map, layout_of

NO_OBJECTIVE = Slo("none", (Objective("scrub.bytes_s", ">=", Bound(0.0), hard=False),))
"""What everything keeps, for what takes an SLO."""


def about_clients(slo: Optional[Slo]) -> Tuple[Objective, ...]:
    """The hard objectives that background work is held to."""
    objectives = slo.objectives if slo is not None else ()
    return tuple(each for each in objectives if each.hard and each.metric.startswith("client."))


def bounds_of(slo: Optional[Slo], baseline: Mapping[str, float]) -> Dict[Objective, Optional[float]]:
    """Objective that background work is held to -> its bound; None where its baseline is not known."""
    judge = Judge(slo, baseline)
    return {each: judge.bound(each) for each in about_clients(slo)}


def held_bounds(slo: Optional[Slo], baseline: Mapping[str, float]) -> Dict[Objective, float]:
    """The same where one is known."""
    return {each: bound for each, bound in bounds_of(slo, baseline).items() if bound is not None}


def missed(
    bounds: Mapping[Objective, float], means: Mapping[str, float], usual: Optional[Mapping[str, float]] = None
) -> List[Objective]:
    """The objectives that a window is beyond; where clients wait and none is served, all about them."""
    return beyond(bounds, means, clients_wait(means, usual or {}))


def unseen(objectives: Iterable[Objective], means: Mapping[str, float]) -> List[Objective]:
    """The objectives of which a window does not say whether they were kept: without a client, they were."""

    def idle(objective: Objective) -> bool:
        return 0 in (means.get("client.iops"), means.get(scoped("client.iops", objective.scope)))

    return [objective for objective in objectives if objective.metric not in means and not idle(objective)]


def metrics_of(objectives: Sequence[Objective]) -> str:
    """Their metrics in a row."""
    return ", ".join(objective.metric for objective in objectives)


def check_scopes(cluster: Cluster, scopes: Sequence[Scope], place: str) -> None:
    """Raise InputError where the cluster has no such device class or pool; `place` is where it was named."""
    if not scopes:
        return
    osd_map = parsed(cluster.commander.mon("osd dump", {}), "osd dump")
    crush = parsed(cluster.commander.mon("osd crush dump", {}), "osd crush dump")
    with shaped("osd crush dump"):
        layout = layout_of(crush_map(crush), osd_map["pools"])
    absent_scopes = layout.missing(scopes)
    if absent_scopes:
        some = ", ".join(sorted(layout.pools)[:8]) + (", …" if len(layout.pools) > 8 else "")
        there = f"a device class ({', '.join(layout.classes)}) or a pool ({some}) of the cluster"
        raise InputError(place, f"that {absent_scopes[0]}", there)
