"""What a boost must keep: the operator's own objectives for it, and those of the cluster's SLO."""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot.learning import absolute
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Objective, Slo, parse_objective
from ceph_tuner.core.measure.quantity import quantity

SEPARATOR = ";"
"""Between the objectives of one `--keep`."""
MOST = 10


def parse_keep(text: str, means: Mapping[str, float]) -> Tuple[Objective, ...]:
    """Read `client.p95_ms<=20; client.iops>=100`; bounds relative to the baseline refer to `means`, what is seen now.

    Raises InputError: what is no objective, is about a part of the cluster, or is missed already.
    """
    lines = [line for line in map(str.strip, text.split(SEPARATOR)) if line]
    if len(lines) > MOST:
        raise InputError("--keep", f"{len(lines)} objectives", f"at most {MOST}")
    objectives = [parse_objective(line, lambda *keys: "--keep") for line in lines]
    if not objectives:
        return ()
    try:
        slo = absolute(Slo("keep", tuple(objectives)), means)
    except ValueError as error:
        raise InputError("--keep", repr(text), str(error)) from error
    for verdict in Judge(slo).verdicts_at_work(means):
        objective = verdict.objective
        if objective.scope is not None:
            raise InputError(
                "--keep", objective.metric, "an objective on the whole cluster; set this one by `ceph tuner slo set`"
            )
        if objective.bound.relative:
            raise InputError("--keep", f"{objective.text}, and no {objective.metric} is seen", "a bound with a unit")
        if verdict.seen is None and not objective.metric.startswith("client."):
            # clients that are away are guarded as they come back; of other work there is nothing to compare with
            raise InputError("--keep", f"{objective.text}, and no {objective.metric} is seen", "what is seen now")
        if verdict.met is False:
            now = quantity(objective.metric, verdict.seen)
            raise InputError("--keep", f"{objective.text}, and {objective.metric} is {now} now", "a bound that is kept")
    return slo.objectives


def goals_of(keep: Sequence[str], slo: Optional[Slo]) -> Optional[Slo]:
    """Give all that must be kept: those of `keep` in place of the SLO's on the same metric; None where nothing must."""
    own = [parse_objective(line) for line in keep]
    metrics = {objective.metric for objective in own}
    others: List[Objective] = [each for each in slo.objectives if each.metric not in metrics] if slo else []
    return Slo("boost", (*own, *others)) if own or others else None
