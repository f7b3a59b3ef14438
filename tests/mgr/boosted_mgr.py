"""What the tests of boosts inside a mgr share: one on a twin that recovers, at a limited pace."""

from __future__ import annotations

import time
from typing import Any, Dict, Optional

from automatic_on_twin import OnTwin

from ceph_tuner.core.boost.state import OFF
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.twin.model import RecoveryWork
from twin_cluster.cluster import TwinCluster
from twins import small_twin

RULES = "mgr/tuner/boost_rules"
LIMITED: Dict[str, Any] = {PROFILE: "custom", **nine((0.6, 2, 0), (0.1, 1, 0.2), (0.05, 1, 0.2))}


def recovering(objects: int = 30_000) -> TwinCluster:
    return small_twin(LIMITED, recovery=(RecoveryWork("rbd", objects, 1 << 20),))


class Boosted(OnTwin):
    def __init__(self, twin: Optional[TwinCluster] = None, **options: Any) -> None:
        super().__init__(twin, **options)
        if "boost_rules" in options:
            self.service.config.set("mgr", RULES, str(options["boost_rules"]))

    def begin(self, kind: str = "recovery", **more: Any) -> Any:
        return self.during(lambda: self.modes.boosts.begin(kind, **more))

    @property
    def phase(self) -> str:
        return self.modes.boosts.driver.state.phase

    def until_off(self, most: int = 300) -> Dict[str, Any]:
        for _ in range(most):
            if self.phase == OFF:
                return dict(self.modes.boosts.driver.state.last)
            self.sample()
        raise AssertionError(f"{self.phase}: {self.modes.boosts.document()}")


def boosted(twin: Optional[TwinCluster] = None, **options: Any) -> Boosted:
    mgr = Boosted(twin or recovering(), **options)
    mgr.sample(14)
    return mgr


def by_rule(mgr: Boosted, samples: int) -> None:
    for _ in range(samples):
        mgr.sample()
        mgr.during(mgr.modes.boosts.by_rule)


def forbidding(mgr: Boosted, begins_s: float, ends_s: float, *boosts: str) -> Dict[str, Any]:
    """An SLO whose policy `quiet` begins and ends so many seconds from now, to the minute."""
    begin, end = (time.strftime("%H:%M", time.gmtime(mgr.twin.clock.now() + after)) for after in (begins_s, ends_s))
    policy = {"name": "quiet", "hours": f"mon-sun {begin}-{end}", "boosts": list(boosts)}
    return {"objectives": ["client.p95_ms <= 10 s"], "calendar": {"policies": [policy]}}
