"""A member of the fleet as a rollout works on it: the lock is held for as long as the trial is there."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import Callable, List, Optional

from ceph_tuner.applier import Applier, Undone
from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.status import Status, status_of
from ceph_tuner.journal import APPLIED, Entry
from ceph_tuner.releases import Settings


class MemberSite:
    """Implements `rollout.Site`."""

    def __init__(
        self,
        member: Member,
        opening: Callable[[], Cluster],
        label: str,
        target: str,
        wanted: Callable[[Cluster], Settings],
    ) -> None:
        """`opening` connects, on first use; `wanted` gives the settings there, or raises why it must not have them."""
        self.name, self._opening = member.name, opening
        self._label, self._target, self._wanted = label, target, wanted
        self._held = ExitStack()
        self._applier: Optional[Applier] = None
        self._entry: Optional[Entry] = None

    @cached_property
    def _cluster(self) -> Cluster:
        return self._opening()

    def close(self) -> None:
        """End the connection, if there is one."""
        if "_cluster" in vars(self):
            self._cluster.close()

    def done(self) -> bool:
        """Whether its journal has this rollout's change, in force and kept."""
        return bool(self._standing())

    def look(self) -> Status:
        """How it stands."""
        return status_of(self._cluster)

    def bring(self) -> None:
        """Put the settings on trial, if they are not there already."""
        try:
            self._applier = self._cluster.applier(self._held.enter_context(self._cluster.lock()))
            self._applier.recover()
            plan = self._applier.plan(self._target, self._wanted(self._cluster))
            self._entry = self._applier.apply(plan, self._label, trial=True)
        except BaseException:
            self._held.close()
            raise

    def keep(self) -> None:
        """Make them permanent and let the lock go."""
        if self._applier is not None and self._entry is not None:
            self._applier.keep(self._entry)
        self._held.close()

    def take_back(self) -> None:
        """Take them back and let the lock go."""
        with self._held:
            if self._applier is not None and self._entry is not None:
                self._applier.undo_entry(self._entry)

    def undo(self) -> List[Undone]:
        """Take back what this rollout kept here, in this run or an earlier one."""
        applier = self._cluster.applier()
        return [applier.undo_entry(entry) for entry in reversed(self._standing())]

    def _standing(self) -> List[Entry]:
        history = self._cluster.applier().history()
        return [entry for entry in history if entry.why == self._label and entry.state == APPLIED and not entry.trial]
