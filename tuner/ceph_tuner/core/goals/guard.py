"""The rules that stop a trial: what must not happen while settings are tried on a live cluster.

Two kinds of rules. States of the cluster (an OSD down, inactive PGs, slow operations, HEALTH_ERR, an OSD or a pool that
became nearly full) count where they are worse than they were just before the trial. Hard objectives on clients count
where they are broken grossly: by a factor of the bound, and clearly worse than the baseline too, since a baseline that
misses its bound is why people tune. Background work that is too slow for half a minute hurts nobody, so its objectives
stop no trial.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Mapping, Optional

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.measure.quantity import quantity
from ceph_tuner.core.measure.sample import clients_wait

HEALTH_ERR = "HEALTH_ERR"

_FILLING = (
    ("OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL"),
    ("POOL_NEAR_FULL", "POOL_BACKFILLFULL", "POOL_FULL"),
)
"""Health checks of Ceph that say that space runs out, the worse ones later: an OSD, or a pool, is in one of them."""
NEAR_FULL: FrozenSet[str] = frozenset(name for family in _FILLING for name in family)
FULL: FrozenSet[str] = frozenset(family[-1] for family in _FILLING)
"""Those under which clients cannot write."""


def fuller(checks: FrozenSet[str], before: FrozenSet[str]) -> List[str]:
    """Checks on space that are raised now, and worse than any of their family before: a lesser one is no new fault."""
    worse: List[str] = []
    for family in _FILLING:
        worst = max((rank for rank, name in enumerate(family) if name in before), default=-1)
        worse += [name for rank, name in enumerate(family) if rank > worst and name in checks]
    return sorted(worse)


WAITING = "clients wait, and no operation of theirs ends"


@dataclass(frozen=True)
class Sight:
    """The cluster at one moment, as the guard needs it; a metric that was not seen is absent."""

    at: float
    health: str
    values: Mapping[str, float] = field(default_factory=dict)
    words: str = ""
    """What Ceph says about its health, for people."""
    checks: FrozenSet[str] = frozenset()
    """Names of the health checks that are raised and not muted; empty as well where nobody looked."""


class Streaks:
    """How often in a row each rule was seen broken."""

    def __init__(self) -> None:
        self._counts: Dict[str, int] = {}

    def count(self, rule: str, broken: bool) -> int:
        """One more in a row, or none."""
        self._counts[rule] = self._counts.get(rule, 0) + 1 if broken else 0
        return self._counts[rule]


@dataclass(frozen=True)
class GuardLimits:
    """How much is too much. `patience` is how many sights in a row must show it.

    PGs get more of it: the mgr's view of them is up to 5 s old, so that peering which ended before the trial (an OSD
    that came back) may still be shown some seconds into it. So do clients: percentiles of a few seconds are coarse.
    """

    gross: float = 2.0
    worse_than_baseline: float = 1.25
    patience: int = 2
    patience_pgs: int = 4
    patience_clients: int = 3
    blind: int = 3
    """Failed looks in a row after which a trial is not safe any more."""
    patience_laggy: Optional[int] = None
    """Of laggy PGs; None: they stop nothing."""
    slow_ops: float = 0.0
    """Slow operations beyond those before that are borne."""

    def __post_init__(self) -> None:
        if not self.gross > 1 or not self.worse_than_baseline >= 1:
            raise ValueError(
                f"gross (={self.gross}) must be above 1, worse_than_baseline (={self.worse_than_baseline}) at least 1"
            )
        if min(self.patience, self.patience_pgs, self.patience_clients, self.blind) < 1:
            raise ValueError(
                f"patience (={self.patience}, of PGs ={self.patience_pgs}, of clients ={self.patience_clients}) "
                f"and blind (={self.blind}) must be at least 1"
            )
        if (self.patience_laggy is not None and self.patience_laggy < 1) or not self.slow_ops >= 0:
            raise ValueError(
                f"patience_laggy (={self.patience_laggy}) must be at least 1, slow_ops (={self.slow_ops}) at least 0"
            )


@dataclass(frozen=True)
class Breach:
    """Why a trial was stopped."""

    rule: str
    reason: str


class Guard:
    """Watches one trial. Feed it every sight; it answers with a breach once there is one."""

    def __init__(
        self,
        judge: Judge,
        before: Sight,
        limits: Optional[GuardLimits] = None,
        streaks: Optional[Streaks] = None,
    ) -> None:
        self._judge, self._before = judge, before
        self._usual = {**before.values, **judge.reference}
        self._limits = limits or GuardLimits()
        self._streaks = streaks or Streaks()

    def watch(self, sight: Optional[Sight]) -> Optional[Breach]:
        """Take a sight (None: the cluster did not answer) and say whether the trial must end."""
        if self._streaks.count("blind", sight is None) >= self._limits.blind:
            return Breach("blind", f"the cluster did not answer {self._limits.blind} times in a row")
        if sight is None:
            return None
        return self._health(sight) or self._states(sight) or self._objectives(sight)

    def _health(self, sight: Sight) -> Optional[Breach]:
        if sight.health == HEALTH_ERR and self._before.health != HEALTH_ERR:
            return Breach("health", f"the cluster went to HEALTH_ERR {sight.words}".rstrip())
        names = fuller(sight.checks, self._before.checks)
        if names:
            return Breach("near-full", f"{', '.join(names)} {'were' if len(names) > 1 else 'was'} raised")
        return None

    def _states(self, sight: Sight) -> Optional[Breach]:
        # a down OSD is certain at once; the others may pass within seconds
        limits = self._limits
        breaches = []
        for name, words, patience, borne in (
            ("osds.down", "OSDs down", 1, 0.0),
            ("pgs.inactive", "inactive PGs", limits.patience_pgs, 0.0),
            ("ops.slow", "slow operations", limits.patience, limits.slow_ops),
            ("pgs.laggy", "laggy PGs", limits.patience_laggy, 0.0),
        ):
            if name not in sight.values:
                # the streak stays as it is
                continue
            now, before = sight.values[name], self._before.values.get(name, 0.0)
            streak = self._streaks.count(name, patience is not None and now > before + borne)
            if patience is not None and streak >= patience:
                more = f", {borne:g} more are borne" if borne else ""
                breaches.append(Breach(name, f"{now:g} {words}, {before:g} before{more}"))
        return breaches[0] if breaches else None

    def _objectives(self, sight: Sight) -> Optional[Breach]:
        waiting = clients_wait(sight.values, self._usual)
        for objective in self._judge.objectives:
            if not objective.hard or not objective.metric.startswith("client."):
                continue
            value = sight.values.get(objective.metric)
            baseline, bound = self._judge.reference.get(objective.metric), self._judge.bound(objective)
            if bound is None or (value is None and not (waiting and objective.metric in self._usual)):
                continue
            beyond = value is None or self._beyond(objective.comparison, value, bound, baseline)
            if self._streaks.count(objective.text, beyond) >= self._limits.patience_clients:
                if value is None:
                    return Breach("slo", f"{objective.metric} is not seen: {WAITING}")
                found, wanted = (quantity(objective.metric, each) for each in (value, bound))
                return Breach(
                    "slo", f"{objective.metric} at {found}, more than {self._limits.gross:g} times off {wanted}"
                )
        return None

    def _beyond(self, comparison: str, value: float, bound: float, baseline: Optional[float]) -> bool:
        gross, worse = self._limits.gross, self._limits.worse_than_baseline
        if comparison == "<=":
            return value > bound * gross and (baseline is None or value > baseline * worse)
        return value < bound / gross and (baseline is None or value < baseline / worse)
