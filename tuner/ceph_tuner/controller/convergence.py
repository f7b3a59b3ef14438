"""Brings one part of the cluster to what resources state, again and again: nothing is remembered between two passes."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.controller.levels import Hold, Value, course, holds_from, is_same, record_of
from ceph_tuner.controller.part import Changed, Fence, Part, ResourceWriter
from ceph_tuner.controller.resource import VALID, Condition, Report, Resource
from ceph_tuner.core.errors import EffectNotSeen, InputError, Locked, TunerError


class Convergence:
    """One pass after another over the resources of a part's kind."""

    def __init__(self, part: Part, writer: ResourceWriter, fence: Fence) -> None:
        self.kind = part.kind
        self._part, self._writer, self._fence = part, writer, fence

    def turn(self, resources: Sequence[Resource]) -> Dict[str, Report]:
        """One pass over all of them; give what was said, by uid. Raises Locked where this controller may not write."""
        reports: Dict[str, Report] = {}
        # what goes makes room for the next of its scope
        for resource in (each for each in resources if each.deleted and each.is_held):
            report = self._end(resource)
            if report is not None:
                reports[resource.uid] = report
        by_scope: Dict[str, List[Resource]] = {}
        for resource in (each for each in resources if not each.deleted):
            by_scope.setdefault(self._part.scope(resource), []).append(resource)
        leaving = {self._part.scope(each) for each in resources if each.uid in reports}
        for scope, same_scope in by_scope.items():
            reports.update(self._scope(same_scope, resources, scope in leaving))
        for resource in resources:
            if resource.uid in reports:
                self._fence.check_lease()
                self._writer.report(resource, reports[resource.uid])
        return reports

    def _scope(self, rivals: Sequence[Resource], all_: Sequence[Resource], is_left: bool) -> Dict[str, Report]:
        reports: Dict[str, Report] = {}
        holder: Optional[Resource] = None
        # who has something at the cluster comes first, then the oldest
        for resource in sorted(rivals, key=lambda each: (not each.is_held, each.age)):
            try:
                others = [each for each in all_ if each.uid != resource.uid]
                values = self._part.values(resource, others)
            except InputError as fault:
                beside = "What it stated before stays at the cluster." if resource.is_held else ""
                reports[resource.uid] = Report.refused("Invalid", str(fault), beside)
                # it goes on holding what it has
                holder = holder or (resource if resource.is_held else None)
                continue
            except (Locked, Changed):
                raise
            except TunerError as fault:
                reports[resource.uid] = Report(VALID, Condition(False, "ClusterUnavailable", fault.advised))
                holder = holder or resource
                continue
            if holder is not None:
                words = f"{holder} is carried to the cluster, and this one is not."
                reports[resource.uid] = Report.refused("AnotherResource", words)
            elif is_left:
                words = "A resource that is being deleted is not taken back yet."
                reports[resource.uid] = Report(VALID, Condition(False, "Waiting", words))
                holder = resource
            else:
                holder = resource
                reports[resource.uid] = self._carry(resource, values)
        return reports

    def _carry(self, resource: Resource, values: Mapping[str, Value]) -> Report:
        try:
            _, drift = self._follow(resource, values)
        except (Locked, Changed):
            raise
        except InputError as fault:
            return Report(VALID, Condition(False, "Refused", str(fault)))
        except TunerError as fault:
            return Report(VALID, Condition(False, "ClusterUnavailable", fault.advised))
        if drift:
            there = ", ".join(self._part.words(key, value) for key, value in drift.items())
            words = f"Somebody else has set {there}. It is left alone. Change the resource's spec to replace it."
            return Report(VALID, Condition(False, "Drift", words))
        there = ", ".join(self._part.words(key, value) for key, value in values.items()) or "nothing"
        return Report(VALID, Condition(True, "Carried", f"The cluster has {there}."))

    def _end(self, resource: Resource) -> Optional[Report]:
        """Take back what it stated; None where it is gone."""
        try:
            resource, _ = self._follow(resource, {})
            self._fence.check_lease()
            self._writer.release(resource)
            return None
        except (Locked, Changed):
            raise
        except TunerError as fault:
            return Report(VALID, Condition(False, "NotTakenBack", fault.advised))

    def _follow(self, resource: Resource, values: Mapping[str, Value]) -> Tuple[Resource, Mapping[str, Value]]:
        """Do what is to be done; give the resource as it is then, and what somebody else has set."""
        holds = holds_from(resource.record)
        now = self._part.at_cluster([*holds, *(key for key in values if key not in holds)])
        way = course(holds, values, now, resource.generation)
        resource = self._note(resource, way.holds)
        for step in way.steps:
            self._fence.check()
            self._part.write(step.key, step.value)
        self._check([(step.key, step.value) for step in way.steps])
        return self._note(resource, way.holds_after), way.drift

    def _note(self, resource: Resource, holds: Mapping[str, Hold]) -> Resource:
        """The inverse of each write is at the API server before the write."""
        record = record_of(holds)
        if record == resource.record or (not holds and not resource.is_held):
            return resource
        self._fence.check_lease()
        return self._writer.note(resource, record)

    def _check(self, written: Sequence[Tuple[str, Value]]) -> None:
        """Raise EffectNotSeen where the cluster took a value and does not have it."""
        if not written:
            return
        now = self._part.at_cluster([key for key, _ in written])
        for key, value in written:
            if not is_same(now[key], value):
                words = f"the cluster took {self._part.words(key, value)} and has {self._part.words(key, now[key])}"
                raise EffectNotSeen(words, "see `ceph tuner history` for who was at work")
