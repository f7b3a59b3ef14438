"""Who holds a cluster's lock, for those who only look: no claim is removed, not even one of the dead."""

from __future__ import annotations

from typing import Optional

from ceph_tuner.clusters.machine import may_live
from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.journal import Entry
from ceph_tuner.lock import PREFIX, Claim
from ceph_tuner.ports import contents


def holder_of(cluster: Cluster) -> Optional[Claim]:
    """The claim of the tuner at work there; None where there is none that may be alive. Raises TunerError."""
    now = cluster.clock.now()
    for key, text in contents(cluster.store, PREFIX).items():
        claim = Claim.from_text(key, text)
        if claim is not None and claim.held and claim.expires >= now and may_live(claim.holder):
            return claim
    return None


def under_way(entry: Entry, claim: Optional[Claim]) -> bool:
    """Whether a change is half done or on trial because the tuner of this claim is at work on it.

    Told by when it came into its state, as nobody else writes while a claim is held; a run may sign its changes
    otherwise than its claim.
    """
    return claim is not None and (entry.unfinished or entry.trial) and entry.changed >= claim.since
