"""What each class of mClock asks for, is owed and gets, and what holds it: the capacity of an OSD, class by class.

Shares are of one OSD's capacity as mClock believes it, averaged over the OSDs (`demand.py`). What a drive gives beyond
or below that belief shows in the sum of what the classes got.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.knobs.releases import CLASSES, Settings
from ceph_tuner.core.knobs.settings import shares
from ceph_tuner.recommend.demand import demand
from ceph_tuner.recommend.turns import turns
from ceph_tuner.search.entitlements import entitlements
from ceph_tuner.twin.knobs_in_force import class_of
from ceph_tuner.twin.model import WPQ, ClusterModel

NOTHING, LOAD, LIMIT, SHARE, BELOW = "no work", "its own load", "its limit", "its share", "drive or concurrency"
"""What holds a class: it has no work; it gets all that it asks for; its limit; reservations and weights, its own and
the others'; or mClock would give it more, but the drive, or how much of the work is under way at a time, does not."""

_NEAR = 0.9
"""Share of what it is owed from which a class counts as having it: queues are not always full."""


@dataclass(frozen=True)
class Account:
    """One class. `limit` is None where there is none, `asked` where the work takes whatever it is given."""

    name: str
    reserved: float
    limit: Optional[float]
    asked: Optional[float]
    owed: float
    """What mClock gives it beside the other classes, all of them asking for what they do."""
    got: float
    """What was simulated, or measured."""
    needed: float
    """What its work costs at the objectives' bounds; where none bounds it, as much as it got."""
    held_by: str

    @property
    def enough(self) -> bool:
        """Whether what mClock gives it covers what it needs."""
        return self.needed <= self.owed * (1 + 1e-9)

    @property
    def starved(self) -> bool:
        """Whether it is owed too little: never where it gets all that it asks for, whatever the rounding."""
        return not self.enough and self.held_by != LOAD


def accounts(judge: Judge, model: ClusterModel, settings: Settings, metrics: Mapping[str, float]) -> List[Account]:
    """One for each class, by all nine values of `settings` and the `metrics` under them; none under WPQ.

    Of work that takes turns: those of the turn in which a class lacks something, else of the one that needs more.
    """
    if model.scheduler == WPQ:
        return []
    by_turn = [_of_turn(judge, turn, settings, metrics) for turn in turns(model)]
    return max(
        by_turn,
        key=lambda entries: (any(entry.starved for entry in entries), sum(entry.needed for entry in entries)),
    )


def _of_turn(judge: Judge, model: ClusterModel, settings: Settings, metrics: Mapping[str, float]) -> List[Account]:
    needs = demand(judge, model, settings, metrics)
    # without hard bounds all work counts as it was seen to go
    unbound = Judge(None)
    throughput = demand(unbound, model, settings, metrics)
    streams = model.clients
    rates = [stream.rate for stream in streams if stream.rate is not None]
    offered_load = demand(unbound, model, settings, {**metrics, "client.iops": sum(rates)})
    demands: Dict[str, Optional[float]] = dict.fromkeys(CLASSES, 0.0)
    for kind in _kinds(model):
        number = class_of(kind, model)
        if number < len(CLASSES):
            is_bounded = kind == "client" and len(rates) == len(streams)
            demands[CLASSES[number]] = offered_load[CLASSES[number]] if is_bounded else None
    parts = shares(settings)
    owed = entitlements(parts, {name: math.inf if wish is None else wish for name, wish in demands.items()})
    entries = []
    for name in CLASSES:
        reservation, _, limit = parts[name]
        ceiling = limit if limit > 0 else None
        own = float(owed[name][0])
        constraint = _constraint(throughput[name], demands[name], ceiling, own)
        entries.append(
            Account(name, reservation, ceiling, demands[name], own, throughput[name], needs[name], constraint)
        )
    return entries


def _kinds(model: ClusterModel) -> List[str]:
    kinds = {
        "client": any(model.clients),
        "recovery": any(work.degraded for work in model.recovery),
        "backfill": any(not work.degraded for work in model.recovery),
        "scrub": any(model.scrub),
        "snaptrim": any(model.snaptrim),
        "pg deletion": any(model.deletion),
    }
    return [kind for kind, has in kinds.items() if has]


def _constraint(throughput: float, demand_share: Optional[float], limit: Optional[float], owed: float) -> str:
    if demand_share == 0 and throughput == 0:
        return NOTHING
    if demand_share is not None and throughput >= _NEAR * demand_share:
        return LOAD
    if limit is not None and throughput >= _NEAR * limit:
        return LIMIT
    return SHARE if throughput >= _NEAR * owed else BELOW
