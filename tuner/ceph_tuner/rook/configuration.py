"""The configuration database of a cluster that Rook manages: at the monitors, and in its CephCluster.

A value in `spec.cephConfig` is set at the monitors whenever Rook reconciles, from what it read at the beginning of that
run. So what leaves the resource may come to the monitors once more: `settle` waits for the run that began after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence

from ceph_tuner.core.ceph.commands import CommandConfig, parsed
from ceph_tuner.core.ceph.ports import Clock, Commander, ConfigEntry
from ceph_tuner.core.changes.custom_resource import CustomResource, of_another, resource_of
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.errors import InputError, RetryLater, Stopped
from ceph_tuner.rook.ceph_config import CephConfig, ceph_config, refuse_conflict

if TYPE_CHECKING:
    from ceph_tuner.rook.ceph_cluster_api import CephClusterApi

SETTLE_S = 180.0
"""How long Rook has for a run over the whole cluster."""
LOOK_S = 1.0
_ROUNDS = 10
"""Rook writes to the status each minute, so that two of its writes are hardly met."""


class RookConfig(CommandConfig):
    """`resource_steps.InResource`, and all that `CommandConfig` is."""

    def __init__(self, commander: Commander, api: CephClusterApi, clock: Clock) -> None:
        super().__init__(commander)
        self._api, self._clock = api, clock
        self._given_up = 0
        """The generation that Rook was waited for in vain."""
        self._checked: Optional[str] = None
        """The uid of the resource that was seen to be this cluster's."""

    @property
    def resource(self) -> CustomResource:
        """Which it is."""
        return self._api.resource

    def dump(self) -> List[ConfigEntry]:
        """The monitors' entries, and after them the resource's."""
        now = self._ceph_config()
        rows = [
            ConfigEntry(
                self.resource.who(section),
                name,
                of_another(value, now.others[section, name]) if (section, name) in now.others else value,
            )
            for (section, name), value in sorted(now.values.items())
        ]
        return [*super().dump(), *rows]

    def set(self, who: str, name: str, value: str) -> None:
        """Write one entry, to where its row is. Raises as `CommandConfig.set`, and as the resource does."""
        row = resource_of(who)
        if row is None:
            super().set(who, name, value)
        else:
            self._state(Step(who, name, None, value))

    def remove(self, who: str, name: str) -> None:
        """Remove one entry from where its row is."""
        row = resource_of(who)
        if row is None:
            super().remove(who, name)
        else:
            self._state(Step(who, name, None, None))

    def rehearse(self, steps: Sequence[Step]) -> None:
        """Have the API server check the whole change. Raises InputError: another field manager states a value."""
        now = self._ceph_config()
        changes = {(row[1], step.name): step.new for step in steps if (row := resource_of(step.who)) is not None}
        last = {**{(step.who, step.name): step.new for step in steps if resource_of(step.who) is None}, **changes}
        for key in sorted(last):
            refuse_conflict(self.resource, now, key, last[key])
        if changes:
            self._apply(now, changes, rehearsal=True)

    def settle(self) -> str:
        """Wait until Rook has done all that the resource says. What others state as well is left to them alone."""
        now = self._ceph_config()
        if now.ours & set(now.others):
            now = self._apply(now, {})
        deadline = self._clock.monotonic() + (0.0 if now.generation == self._given_up else SETTLE_S)
        while not now.is_observed:
            if self._clock.monotonic() >= deadline:
                self._given_up = now.generation
                return (
                    f"Rook is not done with generation {now.generation} of CephCluster {self.resource} "
                    f"(with {now.observed}): it may still set what it read before"
                )
            self._clock.sleep(LOOK_S)
            now = self._ceph_config()
        return ""

    def _state(self, step: Step) -> None:
        row = resource_of(step.who)
        if row is None or row[0] != self.resource:
            raise InputError(step.who, "a row of another resource", f"one of {self.resource}")
        key = (row[1], step.name)
        now = self._ceph_config()
        if step.new is None and key not in now.ours:
            return
        after = self._apply(now, {key: step.new})
        if step.new is not None and after.values.get(key) != step.new:
            raise Stopped(f"CephCluster {self.resource} took {step.name} = {step.new} and does not have it")

    def _apply(self, now: CephConfig, changes: Mapping[Key, Optional[str]], rehearsal: bool = False) -> CephConfig:
        """State our values with these changes; from what stands there by then, where somebody wrote meanwhile."""
        for _ in range(_ROUNDS):
            answer = self._api.apply(now.spec_with(changes), now, rehearsal)
            if answer is not None:
                return ceph_config(answer)
            now = self._ceph_config()
        raise RetryLater(f"CephCluster {self.resource} is written to by others again and again", "look at who does")

    def _ceph_config(self) -> CephConfig:
        now = ceph_config(self._api.read())
        if now.uid != self._checked:
            self._check_identity(now)
            self._checked = now.uid
        return now

    def _check_identity(self, now: CephConfig) -> None:
        """Raise InputError where the resource is another cluster's."""
        own = str(parsed(self._commander.mon("status", {}), "status")["fsid"])
        if now.fsid != own:
            raise InputError(
                f"CephCluster {self.resource}",
                f"the Ceph cluster {now.fsid[:60] or 'of which its status says nothing'}",
                f"that of the cluster that is written to ({own[:60]})",
            )
