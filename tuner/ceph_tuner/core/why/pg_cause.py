"""A cause that holds PGs: how much of the work, and how many PGs, follows from which of them wait."""

from __future__ import annotations

from typing import List, Tuple

from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.facts import PgNow, WhyFacts
from ceph_tuner.core.why.work import share


def pg_cause(
    facts: WhyFacts,
    name: str,
    work: str,
    own: List[PgNow],
    whole: List[PgNow],
    title: str,
    evidence: Tuple[Evidence, ...],
    cure: str,
    commands: Tuple[str, ...] = (),
    osds: Tuple[int, ...] = (),
) -> Cause:
    """The cause that its `own` PGs, of the `whole` that have such work, wait for; the others as of `Cause`."""
    waiting = float(len(own))
    return Cause(
        name, work, facts.pool_names(own), title, share(own, whole), waiting, "PGs", evidence, cure, commands, osds
    )
