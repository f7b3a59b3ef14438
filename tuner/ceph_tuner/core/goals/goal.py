"""What an operator wants most of all: one metric to minimise or maximise, once the objectives hold.

minimise: recovery.finish_s
maximise: client.iops
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, List, Mapping, Optional

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.metrics import CLASS, METRICS, OF_POOLS, POOL, Scope, parted, work_of

MINIMISE, MAXIMISE = "minimise", "maximise"

# what is left to do tells the size of the failure, not how well the cluster is tuned; queues are a cause, not a wish
_NO_OBJECTIVE = re.compile(r"^queue\.|_left$|^snaptrim\.queue$")


@dataclass(frozen=True)
class Goal:
    """One metric that is to become as small, or as large, as the objectives allow."""

    metric: str

    def __post_init__(self) -> None:
        if not can_be_wanted(self.metric):
            raise ValueError(f"no goal can be about {self.metric!r}")

    @property
    def verb(self) -> str:
        """`minimise` where less is better, else `maximise`: a metric has one better side."""
        return MINIMISE if METRICS[self.metric].lower_is_better else MAXIMISE

    @property
    def sign(self) -> float:
        """1 where less is better, else -1."""
        return 1.0 if METRICS[self.metric].lower_is_better else -1.0

    @property
    def text(self) -> str:
        """As a page names it."""
        return f"{self.verb} {self.metric}"

    @property
    def scope(self) -> Optional[Scope]:
        """The device class that it is about; None: the whole cluster."""
        return parted(self.metric)[1]


def parse_goal(data: Mapping[str, Any], where: Callable[..., str]) -> Optional[Goal]:
    """Read `minimise: METRIC` or `maximise: METRIC` among an SLO's keys; None where there is neither.

    Raises InputError for two goals, for an unknown metric, and for a metric that is better on its other side.
    """
    verbs = [verb for verb in (MINIMISE, MAXIMISE) if data.get(verb) is not None]
    if not verbs:
        return None
    if len(verbs) > 1:
        raise InputError(where(MAXIMISE), f"{MAXIMISE} beside {MINIMISE}", "one goal; objectives bound the rest")
    (verb,) = verbs
    metric = data[verb]
    if not isinstance(metric, str) or len(metric) > MOST_LETTERS:
        raise InputError(where(verb), f"{type(metric).__name__} {str(metric)[:60]!r}", "the name of one metric")
    metric = metric.replace(" ", "")
    if not can_be_wanted(metric):
        raise InputError(where(verb), f"metric {metric!r}", nearest(metric))
    goal = Goal(metric)
    if goal.verb != verb:
        better = "less" if goal.verb == MINIMISE else "more"
        raise InputError(where(verb), f"{verb} {metric}", f"{goal.verb}: {metric} ({better} of it is better)")
    if goal.scope is not None and goal.scope.kind == POOL:
        raise InputError(where(verb), f"the pool {goal.scope.name}", "a metric of the cluster or of a device class")
    return goal


MOST_LETTERS = 200


def objective_metrics() -> List[str]:
    """Names of the metrics that an objective or a goal can be about."""
    return [name for name in METRICS if not _NO_OBJECTIVE.search(name)]


def can_be_wanted(metric: str) -> bool:
    """Whether an objective or a goal can be about it."""
    return metric in METRICS and not _NO_OBJECTIVE.search(parted(metric)[0])


def nearest(metric: str) -> str:
    """Say what may have been meant by a name that nothing can be wanted of."""
    plain, brace, inside = metric.partition("{")
    if brace and plain in METRICS and not _NO_OBJECTIVE.search(plain):
        kind = inside.partition("=")[0].strip()
        if kind == POOL and plain not in OF_POOLS:
            return f"a device class, such as {plain}{{class=nvme}}: OSDs do not tell it by pool"
        return f"a scope of one device class or one pool: {plain}{{{CLASS}=nvme}} or {plain}{{{POOL}=volumes}}"
    group = [name for name in objective_metrics() if work_of(name) == work_of(metric)]
    return "one of " + ", ".join(group or objective_metrics())
