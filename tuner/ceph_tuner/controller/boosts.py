"""Boosts, as CephBoosts state them: each is begun once, for each change of its `spec`, and runs to its end.

The module tells boosts apart by the moment at which they began. What the last one was is noted before one is begun, so
that after a restart the module's own words say whether the boost that was asked for came about.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ceph_tuner.cluster.plugin_commands import plugin_answer
from ceph_tuner.controller.kinds import BOOST
from ceph_tuner.controller.part import Changed, Fence, ResourceWriter
from ceph_tuner.controller.resource import VALID, Report, Resource, StatusCondition, record_part, unusable_record
from ceph_tuner.core.autopilot.stored_state import stored_fields
from ceph_tuner.core.boost.events import AT_MOST_S, Request
from ceph_tuner.core.boost.goals import MOST, SEPARATOR
from ceph_tuner.core.boost.state import OFF
from ceph_tuner.core.boost.state_machine import CLEAN
from ceph_tuner.core.ceph.commands import shaped
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import (
    ClusterNotFound,
    ClusterTimeout,
    InputError,
    Locked,
    PermissionRefused,
    RetryLater,
    TunerError,
)
from ceph_tuner.core.goals.slo import parse_objective
from ceph_tuner.core.moments import duration_s, utc

UNTIL = "clean"


@dataclass(frozen=True)
class BoostRun:
    """What a resource noted of its boost."""

    generation: int
    """Of the resource that states it."""
    last_start: float
    """When the boost before it began, as the module said then; 0 for none."""
    start: float = 0.0
    """When it began itself; 0 where no answer has said it yet."""
    outcome: str = ""
    """How it ended; empty while it has not."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for, as `_identity` gives it: somebody else may begin another boost of its kind."""
    is_clean: bool = False
    """Whether it ended because nothing was left."""


@dataclass(frozen=True)
class BoostAtCluster:
    """What the module says of its boost."""

    is_on: bool
    start: float
    request: Mapping[str, Any]
    words: str
    last: Mapping[str, Any]

    @property
    def last_start(self) -> float:
        """When the one before it began; 0 for none."""
        return float(self.last.get("begun") or 0.0)


class BoostTurn:
    """One pass after another over the CephBoosts. One boost is on at a time, in the order of their creation."""

    kind = BOOST

    def __init__(self, commander: Commander, writer: ResourceWriter, fence: Fence) -> None:
        self._commander, self._writer, self._fence = commander, writer, fence

    def turn(self, resources: Sequence[Resource]) -> Dict[str, Report]:
        """One pass; give what was said, by uid. Raises Locked where this controller may not write."""
        reports: Dict[str, Report] = {}
        conflict: Optional[Changed] = None
        for resource in sorted(resources, key=lambda each: (not each.deleted, each.age)):
            if self._fence.is_ending:
                break
            self._fence.check_lease()
            try:
                report = self._end(resource) if resource.deleted else self._follow(resource)
            except Locked:
                raise
            except Changed as fault:
                # one that is changed all the time holds none of the others up
                conflict = fault
                continue
            except TunerError as fault:
                reason = "NotTakenBack" if resource.deleted else "ClusterUnavailable"
                report = Report(VALID, StatusCondition(False, reason, fault.advised))
            if report is not None:
                self._fence.check_lease()
                self._writer.report(resource, report)
                reports[resource.uid] = report
        if conflict is not None:
            raise conflict
        return reports

    def _follow(self, resource: Resource) -> Report:
        before = run_from(resource.record)
        try:
            arguments = arguments_of(resource)
        except InputError as fault:
            return Report.refused("Invalid", str(fault), "A boost that it began before goes on." if before else "")
        if before is not None and before.outcome and before.generation == resource.generation:
            return _ended(before)
        now = self._status()
        if before is not None and before.generation != resource.generation:
            if self._is_on(before, now):
                self._cancel(resource)
                now = self._status()
            before = None
        if before is None:
            if now.is_on:
                words = f"Another boost is on: {now.words}."
                return Report(VALID, StatusCondition(False, "Waiting", words))
            return self._begin(resource, arguments, now)
        return self._go_on(resource, before, now, arguments)

    def _go_on(self, resource: Resource, before: BoostRun, now: BoostAtCluster, arguments: Mapping[str, str]) -> Report:
        if self._is_on(before, now):
            if before.start != now.start:
                self._note(resource, replace(before, start=now.start))
            return Report(VALID, StatusCondition(False, "Running", f"The boost is on: {now.words}."))
        is_over = bool(before.start) or (
            now.last_start != before.last_start and now.last.get("kind") == before.request.get("kind")
        )
        if is_over:
            return self._over(resource, before, now)
        if now.is_on:
            return Report(VALID, StatusCondition(False, "Waiting", f"Another boost is on: {now.words}."))
        return self._begin(resource, arguments, now)

    def _begin(self, resource: Resource, arguments: Mapping[str, str], now: BoostAtCluster) -> Report:
        run = BoostRun(resource.generation, now.last_start, request=_identity(resource))
        resource = self._note(resource, run)
        self._fence.check()
        try:
            plugin_answer(self._commander, f"tuner boost {resource.spec['kind']}", arguments)
        except (ClusterNotFound, ClusterTimeout, PermissionRefused):
            # the module said nothing
            raise
        except RetryLater as fault:
            return Report(VALID, StatusCondition(False, "Waiting", str(fault)))
        except InputError as fault:
            return Report(VALID, StatusCondition(False, "Refused", str(fault)))
        return self._go_on_once(resource, run)

    def _go_on_once(self, resource: Resource, run: BoostRun) -> Report:
        now = self._status()
        if self._is_on(run, now):
            self._note(resource, replace(run, start=now.start))
            return Report(VALID, StatusCondition(False, "Running", f"The boost is on: {now.words}."))
        return self._over(resource, run, now)

    def _over(self, resource: Resource, before: BoostRun, now: BoostAtCluster) -> Report:
        is_last = now.last_start == before.start or (not before.start and now.last_start != before.last_start)
        outcome = str(now.last.get("why") or "") if is_last else ""
        ended = replace(
            before,
            start=before.start or now.last_start,
            outcome=outcome or "another boost began since then",
            is_clean=is_last and now.last.get("rule") == CLEAN,
        )
        self._note(resource, ended)
        return _ended(ended)

    def _end(self, resource: Resource) -> Optional[Report]:
        """End its boost, where it is on; None where nothing of it is left."""
        if not resource.is_held:
            return None
        before = run_from(resource.record)
        if before is not None and not before.outcome and self._is_on(before, self._status()):
            self._cancel(resource)
            now = self._status()
            if self._is_on(before, now):
                return Report(
                    VALID, StatusCondition(False, "NotTakenBack", f"The boost is being taken back: {now.words}.")
                )
        self._fence.check_lease()
        self._writer.release(resource)
        return None

    def _cancel(self, resource: Resource) -> None:
        self._fence.check()
        plugin_answer(self._commander, "tuner boost cancel", {"why": f"{resource} was changed or deleted"})

    def _is_on(self, before: BoostRun, now: BoostAtCluster) -> bool:
        """Whether the boost that is on is the one that was noted."""
        if not now.is_on:
            return False
        if before.start:
            return now.start == before.start
        # no answer said when it began: it is the one that came after the note, if it is what was asked for
        return bool(before.request) and {name: now.request.get(name) for name in before.request} == before.request

    def _note(self, resource: Resource, run: BoostRun) -> Resource:
        record = {"boost": asdict(run)}
        if record == resource.record and resource.is_held:
            return resource
        self._fence.check_lease()
        return self._writer.note(resource, record)

    def _status(self) -> BoostAtCluster:
        answer = plugin_answer(self._commander, "tuner boost status", {})
        with shaped("tuner boost status"):
            return BoostAtCluster(
                answer["phase"] != OFF,
                float(answer["begun"]),
                dict(answer["request"] or {}),
                _words(answer),
                dict(answer["last"]),
            )


def run_from(record: Mapping[str, Any]) -> Optional[BoostRun]:
    """Read a resource's record; None where it began none. Raises Malformed for what is none."""
    part = record_part(record, "boost")
    try:
        run = BoostRun(**stored_fields(BoostRun, part)) if part else None
        if run is not None and not isinstance(run.request, Mapping):
            raise TypeError(f"request is {run.request!r:.60}")
        return run
    except TypeError as fault:
        raise unusable_record(str(fault)[:100]) from None


def _identity(resource: Resource) -> Dict[str, Any]:
    """What tells the boost of a valid resource from another of its kind, as the module says it of a request."""
    spec = resource.spec
    at_most = duration_s(spec["atMost"], "spec.atMost") if "atMost" in spec else AT_MOST_S
    return {"kind": spec["kind"], "at_most_s": float(f"{at_most:g}"), "target": spec.get("target", "osd")}


def arguments_of(resource: Resource) -> Dict[str, str]:
    """Give the arguments of the command, in the order in which the module declares them. Raises InputError."""
    spec, place = resource.document.data, f"{resource}: spec"
    at_most = duration_s(spec["atMost"], f"{place}.atMost") if "atMost" in spec else AT_MOST_S
    keep: List[str] = list(spec.get("keep") or [])
    if len(keep) > MOST:
        raise InputError(f"{place}.keep", f"{len(keep)} objectives", f"at most {MOST}")
    for index, line in enumerate(keep):
        parse_objective(line, lambda *keys, index=index: f"{place}.keep.{index}")
    # refuses what makes no sense before anything is noted
    request = Request(spec["kind"], at_most, tuple(keep), spec.get("target", "osd"))
    arguments = {"until": UNTIL, "at_most": f"{request.at_most_s:g}s", "who": request.target}
    return {**arguments, **({"keep": SEPARATOR.join(keep)} if keep else {})}


def _words(answer: Mapping[str, Any]) -> str:
    """What is on and since when, without what changes from moment to moment: each change of a status is an event."""
    request = answer["request"]
    if request is None:
        return str(answer["phase"])
    problem = f"; it is tried again: {answer['problem']}" if answer["problem"] else ""
    return f"{request['kind']} since {utc(float(answer['begun']))}, {answer['phase']}{problem}"


def _ended(run: BoostRun) -> Report:
    words = f"The boost is over: {run.outcome}."
    return Report(VALID, StatusCondition(run.is_clean, "Complete" if run.is_clean else "Ended", words))
