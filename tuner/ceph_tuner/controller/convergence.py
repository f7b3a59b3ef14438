"""Brings one part of the cluster to what resources state, again and again: nothing is remembered between two passes."""

from __future__ import annotations

from typing import Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.controller.levels import Hold, Value, course, holds_from, is_same, record_of
from ceph_tuner.controller.part import Changed, Fence, Part, ResourceWriter
from ceph_tuner.controller.resource import VALID, Report, Resource, StatusCondition, unusable_record
from ceph_tuner.core.errors import (
    ClusterNotFound,
    EffectNotSeen,
    InputError,
    Locked,
    PermissionRefused,
    Stopped,
    TunerError,
)


class Convergence:
    """One pass after another over the resources of a part's kind."""

    def __init__(self, part: Part, writer: ResourceWriter, fence: Fence) -> None:
        self.kind = part.kind
        self._part, self._writer, self._fence = part, writer, fence

    def turn(self, resources: Sequence[Resource]) -> Dict[str, Report]:
        """One pass over all of them; give what was said, by uid. Raises Locked where this controller may not write."""
        reports: Dict[str, Report] = {}
        current = {each.uid: each for each in resources}
        leaving: Set[str] = set()
        conflict: Optional[Changed] = None
        # what goes makes room for the next of its scope
        for resource in (each for each in resources if each.deleted and each.is_held):
            if self._fence.is_ending:
                break
            self._fence.check_lease()
            try:
                report = self._end(resource)
            except Changed as fault:
                conflict = fault
                leaving.add(self._part.scope(resource))
                continue
            if report is None:
                del current[resource.uid]
            else:
                reports[resource.uid] = report
                leaving.add(self._part.scope(resource))
        by_scope: Dict[str, List[Resource]] = {}
        for resource in (each for each in resources if not each.deleted):
            by_scope.setdefault(self._part.scope(resource), []).append(resource)
        # the one without a class first: what it gives up to that of a class is as it was before both
        for scope, same_scope in sorted(by_scope.items()):
            is_left = scope in leaving
            try:
                reports.update(self._scope(same_scope, current, is_left))
            except Changed as fault:
                # one that is changed all the time holds none of the others up
                conflict = fault
        for resource in resources:
            if resource.uid in reports:
                self._fence.check_lease()
                self._writer.report(resource, reports[resource.uid])
        if conflict is not None:
            raise conflict
        return reports

    def _scope(self, rivals: Sequence[Resource], current: Dict[str, Resource], is_left: bool) -> Dict[str, Report]:
        reports: Dict[str, Report] = {}
        holder: Optional[Resource] = None
        # who has something at the cluster comes first, then the oldest
        for resource in sorted(rivals, key=lambda each: (not each.is_held, each.age)):
            if self._fence.is_ending:
                break
            # the values of one may take some calls, and there may be many of one scope
            self._fence.check_lease()
            try:
                others = [each for each in current.values() if each.uid != resource.uid]
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
                reports[resource.uid] = Report(VALID, StatusCondition(False, "ClusterUnavailable", fault.advised))
                holder = holder or resource
                continue
            if holder is not None:
                words = f"{holder} is carried to the cluster, and this one is not."
                reports[resource.uid] = Report.refused("AnotherResource", words)
            elif is_left:
                words = "A resource that is being deleted is not taken back yet."
                reports[resource.uid] = Report(VALID, StatusCondition(False, "Waiting", words))
                holder = resource
            else:
                holder = resource
                reports[resource.uid] = self._carry(resource, values, current)
        return reports

    def _carry(self, resource: Resource, values: Mapping[str, Value], current: Dict[str, Resource]) -> Report:
        keeper = _keeper(resource, values, current)
        if keeper is not None:
            # its record alone has what was there before both
            words = f"{keeper} has not given up yet what this one states."
            return Report(VALID, StatusCondition(False, "Waiting", words))
        try:
            current[resource.uid], drift = self._follow(resource, values)
        except (Locked, Changed):
            raise
        except (ClusterNotFound, PermissionRefused) as fault:
            return Report(VALID, StatusCondition(False, "ClusterUnavailable", fault.advised))
        except InputError as fault:
            return Report(VALID, StatusCondition(False, "Refused", str(fault)))
        except TunerError as fault:
            return Report(VALID, StatusCondition(False, "ClusterUnavailable", fault.advised))
        if drift:
            there = ", ".join(self._part.words(key, value) for key, value in drift.items())
            words = f"Somebody else has set {there}. It is left alone. Change the resource's spec to replace it."
            return Report(VALID, StatusCondition(False, "Drift", words))
        there = ", ".join(self._part.words(key, value) for key, value in values.items()) or "nothing"
        return Report(VALID, StatusCondition(True, "Carried", f"The cluster has {there}."))

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
            return Report(VALID, StatusCondition(False, "NotTakenBack", fault.advised))

    def _follow(self, resource: Resource, values: Mapping[str, Value]) -> Tuple[Resource, Mapping[str, Value]]:
        """Do what is to be done; give the resource as it is then, and what somebody else has set."""
        holds = self._holds(resource)
        now = self._at_cluster([*holds, *(key for key in values if key not in holds)])
        way = course(holds, values, now, resource.generation)
        resource = self._note(resource, way.holds)
        for step in way.steps:
            self._fence.check()
            self._part.write(step.key, step.value)
        self._check([(step.key, step.value) for step in way.steps])
        return self._note(resource, way.holds_after), way.drift

    def _at_cluster(self, keys: Collection[str]) -> Mapping[str, Value]:
        try:
            return self._part.at_cluster(keys)
        except InputError as fault:
            # nothing in a resource is to blame for what can only be read
            raise Stopped(str(fault), "") from fault

    def _holds(self, resource: Resource) -> Dict[str, Hold]:
        """What it noted. Raises Malformed for what a controller never writes."""
        holds = holds_from(resource.record)
        try:
            for key, hold in holds.items():
                for value in (hold.before, *hold.earlier, hold.value):
                    self._part.check_noted(key, value)
        except InputError as fault:
            words = f"{fault.place} with {fault.found} (expected {fault.expected})"
            raise unusable_record(words) from None
        return holds

    def _note(self, resource: Resource, holds: Mapping[str, Hold]) -> Resource:
        """The inverse of each write is at the API server before the write."""
        record = record_of(holds)
        # a finalizer that somebody took off is put on again
        is_noted = record == resource.record if resource.is_held else not holds
        if is_noted:
            return resource
        self._fence.check_lease()
        return self._writer.note(resource, record)

    def _check(self, written: Sequence[Tuple[str, Value]]) -> None:
        """Raise EffectNotSeen where the cluster took a value and does not have it."""
        if not written:
            return
        now = self._at_cluster([key for key, _ in written])
        for key, value in written:
            if not is_same(now[key], value):
                words = f"the cluster took {self._part.words(key, value)} and has {self._part.words(key, now[key])}"
                raise EffectNotSeen(words, "see `ceph tuner history` for who was at work")


def _keeper(resource: Resource, values: Mapping[str, Value], current: Mapping[str, Resource]) -> Optional[Resource]:
    """Another resource of the kind whose record has a key that this one is to take."""
    new = values.keys() - _noted_keys(resource)
    others = (each for each in current.values() if each.uid != resource.uid and each.is_held)
    return next((each for each in others if new & _noted_keys(each)), None)


def _noted_keys(resource: Resource) -> Set[str]:
    holds = resource.record.get("holds")
    return set(holds) if isinstance(holds, dict) else set()
