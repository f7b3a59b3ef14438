"""A member of the fleet as a rollout works on it: the lock is held for as long as the trial is there."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.applier import Applier, Undone
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.errors import Locked, TunerError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.status import Standing, own_slo, standing_of


class MemberSite:
    """Implements `rollout.Site`."""

    def __init__(
        self,
        member: Member,
        connect: Callable[[], Cluster],
        label: str,
        target: str,
        settings_for: Callable[[Cluster], Settings],
        before_keep: Callable[[Cluster], None] = lambda cluster: None,
        forecast: Callable[[Cluster], Mapping[str, Any]] = lambda cluster: {},
    ) -> None:
        """`connect` connects, on first use; `settings_for` gives the settings there, or raises why not.

        `before_keep` is told just before they become permanent; `forecast` is what the cluster's twin says of them.
        """
        self.name, self._connect = member.name, connect
        self._member, self._label, self._target, self._settings_for = member, label, target, settings_for
        self._before_keep, self._forecast = before_keep, forecast
        self._held = ExitStack()
        self._applier: Optional[Applier] = None
        self._entry: Optional[Entry] = None
        self._may_be_written = False
        """Whether it was about to be written."""

    @cached_property
    def _slo(self) -> Optional[Slo]:
        # read where it is looked at: taking back needs none
        return own_slo(self._member)

    @cached_property
    def _cluster(self) -> Cluster:
        return self._connect()

    def close(self) -> None:
        """End the connection, if there is one."""
        if "_cluster" in vars(self):
            self._cluster.close()

    def done(self) -> bool:
        """Whether its journal has this rollout's change for these OSDs, in force and kept."""
        return any(entry.target == self._target for entry in self._in_force())

    def look(self, since: float = 0.0) -> Standing:
        """How it stands, by windows that began after `since` (seconds since the epoch)."""
        return standing_of(self._cluster, self._slo, since)

    def bring(self) -> Sequence[Undone]:
        """Put the settings on trial, if they are not there already. What a run before left is taken back first."""
        try:
            self._applier = self._cluster.applier(self._held.enter_context(self._cluster.lock()))
            undone = self._applier.recover()
            plan = self._applier.plan(self._target, self._settings_for(self._cluster))
            forecast = self._forecast(self._cluster)
            self._may_be_written = True
            self._entry = self._applier.apply(plan, self._label, trial=True, forecast=forecast)
            return undone
        except BaseException:
            self._release()
            raise

    def keep(self) -> None:
        """Make them permanent and let the lock go."""
        if self._applier is not None and self._entry is not None:
            self._before_keep(self._cluster)
            self._applier.keep(self._entry)
        self._release()

    def take_back(self) -> Optional[Sequence[Undone]]:
        """Take them back and let the lock go. None where nothing was ever about to be written."""
        if not self._may_be_written:
            self._release()
            return None
        try:
            if self._applier is not None and self._entry is not None:
                with suppress(Locked):
                    return [self._applier.undo_entry(self._entry)]
        finally:
            self._release()
        # `bring` ended on the way, or the lock was lost: what is left is a trial that nobody owns
        return self._cluster.applier().recover()

    def undo(self) -> Iterator[Undone]:
        """Take back what this rollout left or kept here, in this run or an earlier one, each as it is asked for."""
        # where nothing of it is, nothing is locked, and nothing of others is taken back
        if all(entry.state == UNDONE for entry in self._own()):
            return
        with self._cluster.lock() as lock:
            applier = self._cluster.applier(lock)
            # first: a trial taken back later would bring back what it found, which is what was kept
            yield from applier.recover()
            # anew: before the lock was ours, another run may have kept some of it, taken it back, or joined it
            for entry in reversed(self._in_force()):
                yield applier.undo_entry(entry)

    def _release(self) -> None:
        with suppress(TunerError):
            # a claim that cannot be taken away ends by itself
            self._held.close()

    def _own(self) -> List[Entry]:
        return [entry for entry in self._cluster.applier().history() if entry.why == self._label]

    def _in_force(self) -> List[Entry]:
        return [entry for entry in self._own() if entry.state == APPLIED and not entry.trial]
