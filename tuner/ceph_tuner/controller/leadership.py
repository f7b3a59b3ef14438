"""Leading: the Lease of Kubernetes says who may begin, and a lock in the cluster's own store keeps all others out.

A controller that was asleep past its lease finds another one's claim in the cluster, and writes nothing more. It is a
lock of its own beside the tuner's: the commands that are sent take that one themselves, inside the mgr.
"""

from __future__ import annotations

from typing import Callable

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller.lease import Lease
from ceph_tuner.core.ceph.commands import STORE_PREFIX, CommandStore
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.errors import Locked

PREFIX = f"{STORE_PREFIX}controller/"
"""Of the keys of the controllers' lock."""


def controllers_lock(cluster: Cluster, identity: str) -> Lock:
    """The lock that one controller of a cluster holds while it leads."""
    holder = this_process(f"ceph-tuner controller {identity}", cluster.entity)
    return Lock(CommandStore(cluster.commander, PREFIX), cluster.clock, holder, may_live)


class Leadership:
    """`part.Fence` of a controller that holds both."""

    def __init__(self, lease: Lease, lock: Lock, move: Callable[[], None], is_told_to_end: Callable[[], bool]) -> None:
        """`move` is called at each look: between two of them are some calls of 30 s at most."""
        self._lease, self._lock, self._move, self._is_told_to_end = lease, lock, move, is_told_to_end

    @property
    def is_ending(self) -> bool:
        """Whether no other resource is begun."""
        return self._is_told_to_end()

    def check_lease(self) -> None:
        """Raise Locked where the lease is over."""
        self._move()
        if not self._lease.is_held:
            raise Locked("the lease of the controllers is lost: nothing more is written", "")

    def check(self) -> None:
        """Raise Locked where the lease or the lock is lost, and what the cluster's store raises."""
        self.check_lease()
        self._lock.check()
        # the store may have taken its time
        self.check_lease()
