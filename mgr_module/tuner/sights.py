"""The cluster at one moment, as the guard needs it: the newest sample with what Ceph says of its health."""

from __future__ import annotations

from dataclasses import replace
from typing import FrozenSet, Optional

from ceph_tuner.core.bounded import ANSWER, read_json
from ceph_tuner.core.goals.guard import HEALTH_ERR, Sight
from ceph_tuner.core.measure.sample import Sample, is_fresh

from .aim import Aim
from .proto import Mgr

LATE = 2.5
"""Sampling intervals after which the newest sample is too old to tell anything."""


PEERING = frozenset(("peering", "activating"))
"""States in which a PG serves nothing for a moment, each time its OSDs are others."""


def newest_sight(mgr: Mgr, aim: Aim, now: float, overdue_s: float) -> Optional[Sight]:
    """By the newest sample; None where that is missing."""
    sample = aim.latest()
    return _sight_of(mgr, aim, sample) if sample is not None and is_fresh(sample.at, now, overdue_s) else None


def newest_sight_while_rebuilt(mgr: Mgr, aim: Aim, now: float, overdue_s: float) -> Optional[Sight]:
    """The same, without PGs that peer: each does at the end of its recovery, and on a large cluster some always do.

    One that does not come to its end shows in slow operations.
    """
    sample, sight = aim.latest(), newest_sight(mgr, aim, now, overdue_s)
    if sample is None or sight is None or "pgs.inactive" not in sight.values:
        return sight
    peering_pgs = sum(count for state, count in sample.pg_states.items() if PEERING & set(state.split("+")))
    return replace(sight, values={**sight.values, "pgs.inactive": max(0.0, sight.values["pgs.inactive"] - peering_pgs)})


def _sight_of(mgr: Mgr, aim: Aim, sample: Sample) -> Sight:
    health = read_json(mgr.get("health")["json"], "health", ANSWER)
    # what an operator muted is no news to anybody
    active = {str(name): check for name, check in health.get("checks", {}).items() if not check.get("muted")}
    checks: FrozenSet[str] = frozenset(name for name, check in active.items() if aim.concerns(check))
    status = str(health.get("status", ""))
    if len(checks) < len(active):
        # the cluster's own status is that of other OSDs as well
        errors = any(active[name].get("severity") == HEALTH_ERR for name in checks)
        status = HEALTH_ERR if errors else "HEALTH_WARN" if checks else "HEALTH_OK"
    # our own warnings are no reason to do anything
    names = sorted(name for name in checks if not name.startswith("TUNER_"))
    return Sight(sample.at, status, dict(sample.values), ", ".join(names), checks)
