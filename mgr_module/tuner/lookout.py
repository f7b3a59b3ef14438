"""One look at the cluster: windows, health, hours, other people's writes, what kind of cluster it is, and the guard."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.core.autopilot.condition import Condition, ConditionChange, changed
from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.autopilot.groups import rollout
from ceph_tuner.core.autopilot.intervention import Interventions, interventions
from ceph_tuner.core.autopilot.permits import Calm, outside_hours, reason_to_wait
from ceph_tuner.core.autopilot.phase_windows import Closed, PhaseWindows, groups_ahead, groups_of
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import OFF, AutopilotState
from ceph_tuner.core.autopilot.watchdog import Watchdog
from ceph_tuner.core.book.state import BookState
from ceph_tuner.core.boost.state import OFF as NO_BOOST
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, Target
from ceph_tuner.core.changes.custom_resource import is_of_osds
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.changes.plan import Restore
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, TunerError
from ceph_tuner.core.goals.guard import Breach, Sight
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.moments import utc

from .aim import Aim
from .capacity import CAPACITY_OPTION, Capacity
from .proto import Mgr
from .service import Service
from .sights import LATE, newest_sight

PLACES_S = 600.0
BOOST = "=boost"
"""Among the executors by device class, the cluster's boost: no class can be called so."""
BOOK = "=book"
"""The book's own among the executors; that of a class is called `=book/CLASS`."""


class Lookout:
    """Looks at the cluster and guards what is on trial, in the driver's thread; `watch` in that of the writes."""

    def __init__(
        self,
        mgr: Mgr,
        service: Service,
        aim: Aim,
        osds_up: Callable[[], Mapping[int, int]],
        executors: Mapping[str, TrialExecutor[Any]],
        now: Callable[[], float],
    ) -> None:
        """`osds_up` gives the OSDs that are up with the map since which each is.

        `executors` has those of all modes by device class, this one's too: a cluster has one trial at a time.
        """
        self._mgr, self._service, self._aim = mgr, service, aim
        self._running, self._executors, self._now = osds_up, executors, now
        self._windows = PhaseWindows(aim)
        self._begun = 0.0
        self._calm = Calm()
        self._change = ConditionChange()
        self._condition: Optional[Condition] = None
        self.sight = Sight(0.0, "")
        """The newest; any thread may read it."""
        self.release = ""
        """The oldest version among the OSDs, as of the newest window."""
        self._policy = Policy()
        """That of the newest look."""
        self._slo: Optional[Slo] = None
        self._calendar_policy = ""
        self._calendar_ends: Optional[float] = None
        """The policy that the objectives are of, and when another one takes over."""
        self._reference: Mapping[str, float] = {}
        self._watchdog: Optional[Watchdog] = None
        self._placed: Tuple[float, Set[int], Sequence[Place]] = (0.0, set(), ())
        self._reckoned: Tuple[Any, bool, Sequence[Capacity]] = (None, False, ())
        self._next_groups: Tuple[Any, Mapping[str, Sequence[int]]] = (None, {})
        """Groups of the next trial, after what they were planned by."""
        self._settings: Optional[List[ConfigEntry]] = None
        """What the configuration database had for OSDs at the end of the newest window."""
        self._dump: List[ConfigEntry] = []
        self._ours: Tuple[Tuple[int, ...], Tuple[Restore, ...]] = ((), ())

    def look(self, state: AutopilotState, policy: Policy) -> Optional[Look]:
        """Give all that is known once a sample was taken or missed; None while nothing is to be known.

        That is so while the mode is off and has nothing on the cluster.
        """
        self._policy = policy
        self._aim.watch(self._groups(state, policy))
        if state.mode == OFF:
            self._keep_up()
            if not state.on_cluster:
                return None
        if state.begun != self._begun:
            # the condition was taken for a new one
            self._begun, self._change = state.begun, ConditionChange()
        now, sample, sight = self._now(), self._aim.latest(), self._newest_sight()
        if sight is not None:
            self.sight = sight
            self._calm = self._calm.after(sight, self._aim.running(self._running()))
        slo, reference = self._goals()
        other_trial = "" if state.on_cluster else self._other_trial()
        reasons = self._reasons_to_wait(now, sight, state, policy, other_trial)
        self._windows.disturbed(now if sight is None or other_trial else self._calm.unrest)
        upset, breach = self._upset(state), self._breach(sight, state)
        windows = self._windows.close(sample.at, state, slo, reference, policy) if sample is not None else []
        for window in windows:
            # what the sample says outranks what the windows say
            breach = breach or self.take(window, state, policy)
        look, condition = self._windows.see(self._now(), state, slo, policy), self._condition
        return replace(
            look,
            wait="; ".join(filter(None, (*reasons, _blind_spot(look.unseen)))),
            policy=self._calendar_policy,
            outside=outside_hours(now, policy) is not None,
            condition=condition.to_dict() if condition is not None else {},
            idle_iops=condition.idle_iops if condition is not None else 0.0,
            changed=self._change.lasting(policy),
            upset=upset,
            breach=breach,
        )

    def _groups(self, state: AutopilotState, policy: Policy) -> Mapping[str, Sequence[int]]:
        """OSDs to watch side by side: those of what is proposed, else those that a proposal would take first.

        Where not all OSDs are asked for histograms, those of groups come first. So nobody is watched ahead there until
        an objective is missed: the percentiles are to be of all.
        """
        if state.proposed is not None or state.mode == OFF:
            return groups_of(state)
        newest = self._windows.newest
        missed = newest is not None and any(verdict.met is False for verdict in newest.verdicts)
        if self._slo is None or not (missed or len(self._running()) <= float(self._service.option("histogram_osds"))):
            return {}
        # monitors that do not answer, or a target that covers nothing: it is compared later then
        with contextlib.suppress(TunerError):
            cause = (self._places(), policy, self._aim.target)
            if self._next_groups[0] != cause:
                places, _, target = cause
                device_class = Target.parse(target).device_class
                plan = rollout(places, device_class, target, policy, self._service.replicas())
                self._next_groups = (cause, groups_ahead(plan))
            return self._next_groups[1]
        return {}

    def guard(self, state: AutopilotState) -> Optional[Breach]:
        """Look at the newest sample alone, while settings are being written: what is ours among the writes is open."""
        watchdog = self._watchdog
        return watchdog.look(self._newest_sight(), in_force=not state.old_turn) if watchdog is not None else None

    def take(self, window: Closed, state: AutopilotState, policy: Policy) -> Optional[Breach]:
        """Take a window that was closed; say whether the guard objects to it."""
        # first the guard: what follows asks the cluster, which may not answer
        breach = self._watchdog.close(window.means, not state.old_turn) if self._watchdog is not None else None
        entries = self._service.config.dump()
        self._heed_settings(entries, window)
        condition = self._condition = self._condition_of(window.means, entries)
        if state.condition:
            self._change = self._change.after(Condition.from_dict(state.condition), condition, policy)
        if self._slo is not None and self._slo.needs_baseline and not state.on_cluster:
            self._aim.refer(self._slo, window.means)
        return breach

    def watch(self, state: AutopilotState) -> None:
        """Settings are about to be on trial, or are so no more: watch them, and who else writes."""
        self._change = ConditionChange()
        if state.proposed is None or not state.on_cluster:
            self._watchdog = None
            return
        self._dump = self._service.config.dump()
        if self._slo is not None:
            self._watchdog = Watchdog(self._slo, state.baseline, self.sight, self._policy)

    def overdue_s(self) -> float:
        """Seconds without a sample after which one is missing."""
        return LATE * float(self._service.option("sample_interval"))

    def verdicts(self, window: Optional[Window]) -> List[Dict[str, Any]]:
        """The SLO held against a window, without asking the cluster."""
        verdicts = Judge(self._slo).verdicts_at_work(window.means) if window is not None else ()
        return [verdict.to_dict() for verdict in verdicts]

    def _reasons_to_wait(
        self, now: float, sight: Optional[Sight], state: AutopilotState, policy: Policy, other_trial: str
    ) -> Tuple[Optional[str], ...]:
        return (
            "no fresh sample" if sight is None else "",
            reason_to_wait(now, policy, self._calm, state.moves, state.failures, state.failed_at, state.declined_at),
            other_trial,
            "" if state.on_cluster else self._soon_another_policy(now, policy),
        )

    def _soon_another_policy(self, now: float, policy: Policy) -> str:
        """Whether the calendar wants something else before a trial could come to its end, in words."""
        ends = self._calendar_ends
        if ends is None or ends - now >= policy.least_trial_s:
            return ""
        return f"the policy {self._calendar_policy} ends at {utc(ends)}, before a trial could"

    def _other_trial(self) -> str:
        """Which other mode, or boost, has something on the cluster, in words; empty where none has."""
        for device_class, executor in list(self._executors.items()):
            # one that waits to go on in this mgr comes first as well
            if device_class == BOOST and executor.state.phase != NO_BOOST:
                return "a boost is on, and a cluster has one of both at a time (`ceph tuner boost status`)"
            if isinstance(executor.state, BookState):
                whose = device_class.partition("/")[2]
                if executor.state.stands and (not whose or self._aim.device_class in ("", whose)):
                    return (
                        "a page of the book is in force, and settings are tried beneath none (`ceph tuner book show`)"
                    )
                continue
            if device_class != self._aim.device_class and executor.state.on_cluster:
                of = f"class {device_class}" if device_class else "the cluster as a whole"
                return f"the mode of {of} has settings on trial, and a cluster has one trial at a time"
        return ""

    def _keep_up(self) -> None:
        """Keep what is exported as it is, while nobody looks."""
        if self._service.option("metrics_port"):
            with contextlib.suppress(TunerError):
                self._goals()
                self.release = self._service.release_version()

    def _goals(self) -> Tuple[Optional[Slo], Mapping[str, float]]:
        # monitors that do not answer blind nobody: samples come from the mgr's memory
        with contextlib.suppress(ClusterTimeout, CommandFailed):
            self._slo = self._aim.absolute_slo(self._read_reference)
            self._calendar_policy, self._calendar_ends = self._aim.policy()
        return self._slo, self._reference

    def _read_reference(self) -> Mapping[str, float]:
        self._reference = self._aim.part_of(self._service.reference())
        return self._reference

    def _newest_sight(self) -> Optional[Sight]:
        """By the newest sample; None where that is missing."""
        return newest_sight(self._mgr, self._aim, self._now(), self.overdue_s())

    def _breach(self, sight: Optional[Sight], state: AutopilotState) -> Optional[Breach]:
        if self._watchdog is None:
            return None
        interventions = Interventions((), ())
        with contextlib.suppress(ClusterTimeout, CommandFailed):
            interventions = self._interventions(state)
        return self._watchdog.look(sight, interventions.drift, interventions.manual, not state.old_turn)

    def _interventions(self, state: AutopilotState) -> Interventions:
        if self._ours[0] != state.changes:
            self._ours = (state.changes, Journal(self._service.store).restores_of(state.changes))
        proposed = state.proposed
        osds = set(proposed.rollout.stages[state.stage].osds) if proposed is not None else set()
        places = [place for place in self._places() if place.osd in osds]
        return interventions(self._dump, self._service.config.dump(), self._ours[1], places)

    def _places(self) -> Sequence[Place]:
        """The CRUSH tree, read anew when other OSDs run and now and then: of 10 000 OSDs it is megabytes of text."""
        up_since, now = self._running(), self._now()
        if up_since.keys() != self._placed[1] or now > self._placed[0] + PLACES_S:
            self._placed = (now, set(up_since), tuple(self._service.config.places()))
        return self._placed[2]

    def _heed_settings(self, entries: Sequence[ConfigEntry], window: Closed) -> None:
        """What OSDs did under other settings is no time before a trial. Their capacities they write themselves."""
        settings = [each for each in entries if is_of_osds(each.who) and not each.name.startswith(CAPACITY_OPTION)]
        if self._settings is not None and settings != self._settings:
            self._windows.disturbed(window.end)
        self._settings = settings

    def _condition_of(self, means: Mapping[str, float], entries: Sequence[ConfigEntry]) -> Condition:
        # down OSDs count: one that restarts makes no other cluster
        classes = {place.osd: place.device_class or "none" for place in self._places() if self._aim.tunes(place)}
        capacities: Dict[str, List[float]] = {}
        for capacity in self._capacities(entries):
            capacities.setdefault(classes.get(capacity.osd, "none"), []).append(capacity.iops)
        self.release = self._service.release_version()
        return Condition.of(
            self.release,
            Counter(classes.values()),
            {name: sum(iops) / len(iops) for name, iops in capacities.items()},
            means,
        )

    def _capacities(self, entries: Sequence[ConfigEntry]) -> Sequence[Capacity]:
        """Those of some OSDs, asked again only after an entry about them changed or an OSD started.

        And once more in the window after that: an OSD tells the mgr some seconds later what it reckons with now.
        """
        capacities_stored = [entry for entry in entries if entry.name.startswith(CAPACITY_OPTION)]
        cause = (capacities_stored, dict(self._aim.running(self._running())))
        if self._reckoned[0] != cause or not self._reckoned[1]:
            capacities = self._service.capacities(None, self._aim.device_class)
            self._reckoned = (cause, self._reckoned[0] == cause, capacities)
        return self._reckoned[2]

    def _upset(self, state: AutopilotState) -> str:
        """What makes the trial pointless at once, without waiting whether it lasts: nothing to compare, or no aim."""
        metrics = {item.metric for item in self._slo.objectives} if self._slo is not None else set()
        given_up = sorted(set(state.aims) - metrics)
        if given_up:
            return f"there is no objective any more on {', '.join(given_up)}"
        if not state.condition or self._condition is None:
            return ""
        before = Condition.from_dict(state.condition)
        now = replace(self._condition, iops=None, work=before.work)
        return "; ".join(changed(before, now))


def _blind_spot(metrics: Sequence[str]) -> str:
    return f"no trial could show what it does to clients, as {' and '.join(metrics)} is not seen" if metrics else ""
