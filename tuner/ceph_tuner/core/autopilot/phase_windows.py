"""Cuts time into windows and works out of each what the state machine wants to know.

Windows follow one another without a gap. A phase begins a row of its own; after a write the settling time is left out.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Deque, Dict, Iterable, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

from ceph_tuner.core.autopilot import sequential
from ceph_tuner.core.autopilot.contract import Effect, Pair, Rollout, Turn
from ceph_tuner.core.autopilot.demand import asked_for, dwindles, offered, unseen_of
from ceph_tuner.core.autopilot.effect import NOISE_FLOOR, effects, effects_of_turns
from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.autopilot.judgement import allowances, stand_in
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import COMPARING, HOLDING, ON_CLUSTER, TRYING, WAITING, AutopilotState
from ceph_tuner.core.goals.judge import Judge, Verdict, beyond
from ceph_tuner.core.goals.slo import Objective, Slo
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import quantity
from ceph_tuner.core.measure.sample import Window, at_work

Values = Mapping[str, float]
EVERYWHERE = -1
"""Stands for the comparison of the whole cluster with itself before the trial."""

_KEPT_CLOSED = 50
SPARED = 5
"""One window of so many may contradict the others about an objective: scrub comes in bursts."""
STATS_LATE_S = 5.0
"""The mgr hears of a scrub so long after it began (`mgr_stats_period`)."""
OUTLIVED_S = 3600.0
"""Scrubs that began under the old settings are waited for so long."""

MAX_SCRUBS = "osd_max_scrubs"
_LATE = 3
"""Windows that may be closed at once; after a longer gap a row goes on from now."""


class Eyes(Protocol):
    """What was sampled."""

    def between(self, start: float, end: float) -> Optional[Window]:
        """The cluster's samples of that stretch of time as one window; None where there are none."""

    def group_between(self, name: str, start: float, end: float) -> Values:
        """Means of a group's OSDs in that stretch of time; empty where too few of them were seen."""

    @property
    def scrubs_since(self) -> Optional[float]:
        """When the oldest scrub under way began, in seconds since the epoch; None where none is known to be."""


@dataclass(frozen=True)
class Closed:
    """A window that is over: means of the cluster, and how each objective stood in it."""

    start: float
    end: float
    means: Values
    verdicts: Tuple[Verdict, ...]


class _Probation(NamedTuple):
    """Hard objectives, with what was seen."""

    broken: Tuple[str, ...] = ()
    unsure: Tuple[str, ...] = ()


def groups_of(state: AutopilotState) -> Dict[str, Tuple[int, ...]]:
    """Name the groups to watch: OSDs that this stage added and the next one adds, each with its control.

    The next stage's OSDs keep the old settings in this one: what they do now is what they are compared with then.
    """
    if state.proposed is None:
        return {}
    return _groups(state.proposed.rollout, {state.stage, state.stage + (state.phase not in (WAITING, COMPARING))})


def groups_ahead(rollout: Rollout) -> Dict[str, Tuple[int, ...]]:
    """Name those of a trial that may come: watched from now on, nobody has to wait for what they did before it."""
    return _groups(rollout, {0})


def _groups(rollout: Rollout, stages: Iterable[int]) -> Dict[str, Tuple[int, ...]]:
    groups: Dict[str, Tuple[int, ...]] = {}
    for number in stages if not rollout.alternating else ():
        if number < len(rollout.stages) and rollout.stages[number].control:
            had = set(rollout.stages[number - 1].osds) if number else set()
            groups[f"tried {number}"] = tuple(osd for osd in rollout.stages[number].osds if osd not in had)
            groups[f"control {number}"] = rollout.stages[number].control
    return groups


class PhaseWindows:
    """Feed it the time and the state; it gives the windows that were closed and what they say."""

    def __init__(self, eyes: Eyes) -> None:
        self._eyes = eyes
        self._row: Tuple[str, float] = ("", 0.0)
        self._edge = self._sampled = 0.0
        self._windows = 0
        self._outlived = False
        self._steady_since = 0.0
        self._pairs: Dict[int, List[Pair]] = {}
        self._trial = 0
        self._turns: List[Turn] = []
        self._turn_row: Tuple[str, float] = ("", 0.0)
        """The state's phase and its beginning, in which the last turn was."""
        self._before_turns: List[Values] = []
        """What windows under the old settings showed before the first turn."""
        self._closed: Deque[Closed] = deque(maxlen=_KEPT_CLOSED)
        self._reckoned: Tuple[object, Dict[str, Effect]] = (None, {})

    def disturbed(self, at: float) -> None:
        """What the cluster did up to then is nothing to compare a trial with: it was not steady, or nobody looked."""
        self._steady_since = max(self._steady_since, at)

    def close(
        self, newest: float, state: AutopilotState, slo: Optional[Slo], baseline: Values, policy: Policy
    ) -> List[Closed]:
        """Close the windows that are over at `newest`, the time of the newest sample; give them, oldest first."""
        self._follow(newest, state, policy)
        self._outlived = not self._windows and self._old_scrubs_go_on(newest, state, slo)
        windows: List[Closed] = []
        while newest >= self._edge + policy.window:
            start, self._edge = self._edge, self._edge + policy.window
            window = self._eyes.between(start, self._edge)
            if window is None:
                continue
            means = at_work(window.means)
            verdicts = tuple(Judge(slo, baseline).verdicts(means))
            windows.append(Closed(start, self._edge, means, verdicts))
            if self._outlived:
                # the guard takes it; of the settings it says nothing yet
                continue
            self._windows += 1
            self._compare(start, self._edge, state, means)
        self._closed.extend(windows)
        return windows

    def see(self, at: float, state: AutopilotState, slo: Optional[Slo], policy: Policy) -> Look:
        """Give what the windows say; whoever watches the cluster adds the rest."""
        objectives = slo.objectives if slo is not None else ()
        misses, met = self._misses(policy.miss_windows)
        means = self._means(state, policy)
        probation = self._on_probation(state, slo, policy, means)
        hard = tuple(dict.fromkeys(item.metric for item in objectives if item.hard))
        return Look(
            at,
            means=means,
            wanted=slo is not None,
            missed=tuple(_in_words(verdict.objective, verdict.seen) for verdict in misses),
            metrics_missed=tuple(verdict.objective.metric for verdict in misses),
            met=met,
            allowed=allowances(slo, state.baseline, policy.tolerance) if slo is not None else {},
            hard_metrics=hard,
            unseen=unseen_of(hard, [row.means for row in self._rows(state, policy)]),
            windows=self._windows,
            pairs=self._comparable_windows(state),
            effects=self._effects(state, [item.metric for item in objectives], policy),
            outlived=self._outlived,
            broken=probation.broken,
            unsure=probation.unsure,
        )

    def _old_scrubs_go_on(self, newest: float, state: AutopilotState, slo: Optional[Slo]) -> bool:
        """Whether scrubs of the old settings go on that show in an objective: `osd_max_scrubs` is about new ones."""
        if state.phase != HOLDING or state.proposed is None or MAX_SCRUBS not in state.proposed.settings:
            return False
        if slo is None or not any(item.metric.startswith("scrub.") for item in slo.objectives):
            return False
        began = self._eyes.scrubs_since
        return began is not None and began < state.since + STATS_LATE_S and newest < state.since + OUTLIVED_S

    def _on_probation(self, state: AutopilotState, slo: Optional[Slo], policy: Policy, means: Values) -> _Probation:
        """What the windows on probation, of these means, say about the hard objectives; each in words."""
        if slo is None or state.phase != HOLDING or not self._windows:
            return _Probation()
        bounds = Judge(slo, state.baseline).must_hold(policy.guard_tolerance)
        of_work_there = asked_for(means, state.baseline, policy.guard_tolerance, {})
        means_at_work = {
            name: mean for name, mean in of_work_there.items() if not dwindles(name, means, state.baseline)
        }
        broken = beyond(bounds, means_at_work)
        unsure = [
            each
            for each in bounds
            if each not in broken and each.metric in means_at_work
            if not self._surely_held(each, bounds[each], state, policy)
        ]
        return _Probation(
            *(tuple(_in_words(each, means_at_work[each.metric]) for each in kind) for kind in (broken, unsure))
        )

    def _surely_held(self, objective: Objective, bound: float, state: AutopilotState, policy: Policy) -> bool:
        """Whether each window on probation keeps the bound, or their mean does with the confidence of a verdict."""
        seen = [row.means[objective.metric] for row in self._rows(state, policy) if objective.metric in row.means]
        if all(objective.margin(value, bound) >= 0 for value in seen):
            return True
        floor = NOISE_FLOOR * max(abs(bound), *map(abs, seen))
        interval = sequential.mean(seen, policy.confidence, floor)
        worst = interval.high if objective.comparison == "<=" else interval.low
        return objective.margin(worst, bound) >= 0

    def _rows(self, state: AutopilotState, policy: Policy) -> List[Closed]:
        """Give the windows of this phase where it is about them (a turn: those of this turn), else the last ones."""
        turns = state.phase == TRYING and state.proposed is not None and state.proposed.rollout.alternating
        about_them = state.phase in (COMPARING, HOLDING) or turns
        count = self._windows if about_them and self._windows else policy.guard_windows
        return list(self._closed)[-count:]

    def _means(self, state: AutopilotState, policy: Policy) -> Values:
        """Means over these windows."""
        rows = self._rows(state, policy)
        values: Dict[str, List[float]] = {}
        for row in rows:
            for name, value in row.means.items():
                values.setdefault(name, []).append(value)
        # work that ended has no more than the newest window shows; what clients at work lack is only not seen there
        newest = rows[-1].means if rows else {}
        of_earlier_windows = [name for name in values if name not in newest and offered(name, newest)]
        return {name: math.fsum(values[name]) / len(values[name]) for name in [*newest, *of_earlier_windows]}

    @property
    def newest(self) -> Optional[Closed]:
        """The window that was closed last."""
        return self._closed[-1] if self._closed else None

    def _follow(self, newest: float, state: AutopilotState, policy: Policy) -> None:
        """Begin a new row of windows with each phase, and forget the pairs of the trial before."""
        row = (state.phase, state.since)
        anew = row != self._row
        if anew:
            # a taking back that needs no second attempt is over before anybody looks
            if self._row[0] in ON_CLUSTER and state.phase not in ON_CLUSTER:
                # what the trial did says nothing of the settings in force, nor does what it left in the queues
                self._closed.clear()
                self._edge = max(self._edge, state.since + policy.settle)
            self._row, self._windows = row, 0
            if state.phase in (COMPARING, TRYING, HOLDING):
                # phases in which nothing is written go on with the window that is under way
                self._edge = state.since + (0.0 if state.phase == COMPARING else policy.settle)
        if newest < self._sampled or newest > self._edge + _LATE * policy.window:
            # the clock was set back, or nobody looked for a while: what was before makes no row with what comes
            self._edge, self._windows, anew = newest, 0, True
            self._closed.clear()
        self._sampled = newest
        number = state.proposed.number if state.proposed is not None else 0
        if number != self._trial or (state.phase == COMPARING and anew):
            self._trial, self._pairs, self._turns, self._before_turns = number, {}, [], []
            self._recall(state, policy)

    def _recall(self, state: AutopilotState, policy: Policy) -> None:
        """Compare in the windows that are over already: the settings in force were the same in them."""
        if state.phase == COMPARING:
            over = [
                window for window in self._closed if self._steady_since <= window.start and window.end <= state.since
            ]
            for window in over[-policy.baseline_windows :]:
                self._compare(window.start, window.end, state, window.means)

    def _compare(self, start: float, end: float, state: AutopilotState, means: Values) -> None:
        if state.proposed is None or state.phase not in (COMPARING, TRYING, HOLDING):
            return
        rollout = state.proposed.rollout
        if state.phase != TRYING:
            # the whole cluster before the trial, and with the settings everywhere
            self._pairs.setdefault(EVERYWHERE, []).append(
                Pair(end, state.phase == HOLDING, means, dict.fromkeys(means, 1.0))
            )
        if rollout.alternating:
            self._turn(end, state, means)
            return
        for name in groups_of(state):
            kind, _, number = name.partition(" ")
            canary, control = (
                self._eyes.group_between(f"{side} {number}", start, end) for side in ("tried", "control")
            )
            if kind == "tried" and canary and control and state.phase != HOLDING:
                during = state.phase == TRYING and int(number) == state.stage
                self._pairs.setdefault(int(number), []).append(Pair(end, during, canary, control))

    def _turn(self, end: float, state: AutopilotState, means: Values) -> None:
        """A window of a turn is over; one that did not show everything is followed by another of the same turn."""
        row = (state.phase, state.since)
        if self._turns and self._turn_row == row:
            means = {**self._turns.pop().means, **means}
        if not self._turns:
            self._before_turns = [window.means for window in self._closed]
        self._turn_row = row
        self._turns.append(Turn(end, state.leg, means))

    def _comparable_windows(self, state: AutopilotState) -> int:
        """Windows of this phase that can be compared, recalled ones too; where nothing stands beside, each one."""
        if not groups_of(state):
            return len(self._pairs.get(EVERYWHERE, [])) if state.phase == COMPARING else self._windows
        pairs = self._pairs.get(state.stage, [])
        return sum(pair.during == (state.phase == TRYING) for pair in pairs)

    def _effects(self, state: AutopilotState, metrics: Sequence[str], policy: Policy) -> Dict[str, Effect]:
        if state.proposed is None or state.phase not in (TRYING, HOLDING):
            return {}
        in_turns = state.proposed.rollout.alternating and state.phase == TRYING
        pairs = self._pairs.get(EVERYWHERE if state.phase == HOLDING else state.stage, [])
        windows: Sequence[Union[Pair, Turn]] = self._turns if in_turns else pairs
        # a window is many samples long, and nothing is new before the next one
        cause = (state.phase, state.stage, len(windows), windows[-1].at if windows else None, tuple(metrics), policy)
        if self._reckoned[0] != cause:
            names = dict.fromkeys([*metrics, *filter(None, map(stand_in, metrics))])
            # any of these metrics may end the trial: together they have the confidence that was asked for
            confidence = 1.0 - (1.0 - policy.confidence) / max(1, len(names))
            directions = {name: METRICS[name].lower_is_better for name in names}
            effect_by_metric = (
                effects_of_turns(self._turns, self._before_turns, directions, confidence, policy.tolerance)
                if in_turns
                else effects(pairs, directions, confidence, policy.tolerance)
            )
            self._reckoned = (cause, effect_by_metric)
        return self._reckoned[1]

    def _misses(self, count: int) -> Tuple[List[Verdict], bool]:
        """Objectives that all but a fifth of the last windows missed; whether all but a fifth of them met every one."""
        recent = list(self._closed)[-count:]
        newest = [verdict.objective for verdict in recent[-1].verdicts if verdict.met is not None] if recent else []
        if newest and len(recent) < count:
            return [], False
        misses: Dict[Objective, List[Verdict]] = {}
        for verdict in (each for row in recent for each in row.verdicts if each.met is False):
            misses.setdefault(verdict.objective, []).append(verdict)
        exceptions = count // SPARED
        lasting_misses = [misses[each][-1] for each in newest if len(misses.get(each, ())) >= count - exceptions]
        return lasting_misses, all(len(misses.get(each, ())) <= exceptions for each in newest)


def _in_words(objective: Objective, value: Optional[float]) -> str:
    return f"{objective.text} (seen {quantity(objective.metric, value)})"
