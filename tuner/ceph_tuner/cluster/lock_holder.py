"""Who holds a cluster's lock, for those who only look: no claim is removed, not even one of the dead."""

from __future__ import annotations

from typing import Optional

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.changes.lock import Claim, claims
from ceph_tuner.core.changes.lock_owner import may_live


def holder_of(cluster: Cluster) -> Optional[Claim]:
    """The claim of the tuner at work there; None where there is none that may be alive. Raises TunerError."""
    now = cluster.clock.now()
    for claim in claims(cluster.store):
        if claim.held and claim.expires >= now and may_live(claim.holder):
            return claim
    return None


def under_way(entry: Entry, claim: Optional[Claim]) -> bool:
    """Whether a change is half done or on trial because the tuner of this claim is at work on it."""
    return claim is not None and (entry.unfinished or entry.trial) and 0 < entry.generation == claim.generation
