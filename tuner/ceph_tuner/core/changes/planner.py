"""Reads what a plan needs of a cluster, and has it decided. Writes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import covered
from ceph_tuner.core.changes.change_checks import refuse_versions
from ceph_tuner.core.changes.configuration import Configuration
from ceph_tuner.core.changes.journal import refuse_unreadable
from ceph_tuner.core.changes.osd_poll import OsdPoll
from ceph_tuner.core.changes.plan import ChangePlan, Step, plan_change, plan_rereading
from ceph_tuner.core.changes.resource_steps import BesideOperator, InResource
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Release, parse_version


class Planner:
    """Plans changes of one cluster, for its release."""

    def __init__(self, config: Configuration, poll: OsdPoll, release: Release) -> None:
        self._config, self._poll, self._release = config, poll, release

    def plan(
        self, target: str, settings: Mapping[str, object], current: Optional[Sequence[ConfigEntry]] = None
    ) -> ChangePlan:
        """Read what the decision needs, and decide. Writes nothing. Raises InputError.

        `current`: the database as it will be by then, where that is not as it is now.
        """
        versions = self._config.versions()
        refuse_versions(versions, settings)
        places = self._config.places()
        sources, doubts = self._sources(covered(target, places))
        oldest = min(map(parse_version, versions))
        resource = self._config.resource if isinstance(self._config, InResource) else None
        entries = self._config.dump() if current is None else current
        plan = plan_change(entries, target, settings, self._release, places, sources, oldest, resource)
        self._rehearse(plan.steps)
        refuse_unreadable(plan.restores())
        return replace(plan, warnings=(*plan.warnings, *doubts))

    def _rehearse(self, steps: Sequence[Step]) -> None:
        """Where an operator writes to the monitors too: refuse what it would undo."""
        if isinstance(self._config, BesideOperator):
            self._config.rehearse(steps)

    def _sources(self, osds: Sequence[int]) -> Tuple[Dict[int, Mapping[str, Mapping[str, str]]], List[str]]:
        """What each OSD says of its knobs, and which do not answer: a plan does not hang on one that hangs."""
        by_osd: Dict[int, Mapping[str, Mapping[str, str]]] = {osd: {} for osd in osds}
        doubts = []
        for osd, answer in self._poll.once("the OSDs' own settings are read", osds, self._config.sources_on):
            if isinstance(answer, (CommandFailed, ClusterTimeout)):
                doubts.append(f"osd.{osd} does not answer ({answer}): what its own ceph.conf says was not looked at")
            else:
                by_osd[osd] = {name: levels for name, levels in answer.items() if name in KNOBS}
        return by_osd, doubts

    def plan_rereading(self, target: str) -> ChangePlan:
        """Decide how every shard of a target's OSDs reads its values again. Writes nothing. Raises InputError."""
        refuse_versions(self._config.versions(), {})
        plan = plan_rereading(self._config.dump(), target, self._release, self._config.places())
        refuse_unreadable(plan.restores())
        return plan
