"""Tells the regime of each sample, with hysteresis: (state, sample, bounds) to the next state. Pure.

A marker turns when every sample of `hold_s` was at or beyond its other bound. The regime changes when a marker turns,
and at the earliest `dwell_s` after its last change: what turned meanwhile turns then, unless it turned back before.
A marker of a policy turns with its policy, as objectives change at that moment. That neither waits for `dwell_s` nor
begins it: markers of metrics turn as if there were no others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Union

from ceph_tuner.core.measure.sample import is_fresh
from ceph_tuner.core.moments import utc_minute
from ceph_tuner.core.regimes.bounds import IDLE, AnyMarker, Marker, PolicyMarker, RegimeBounds

GAP_S = 60.0
"""After a longer time without a sample nothing is known of the time between."""
UNSEEN_S = 300.0
"""A marker whose metric, or the calendar, is missing for so long is off: what nobody sees is no regime."""
UNREADABLE = "?"
"""In the place of a policy's name: nobody can read the calendar."""


@dataclass(frozen=True)
class MarkerState:
    """A marker as the samples showed it."""

    on: bool
    against: Optional[float] = None
    """Since when every sample speaks against it being so; None where the newest does not."""
    seen: Optional[float] = None
    """When its metric, or the calendar, was seen last."""


@dataclass(frozen=True)
class RegimeState:
    """The regime that holds. Times are seconds since the epoch."""

    name: str
    since: float
    at: float
    """Of the newest sample."""
    evidence: Mapping[str, float] = field(default_factory=dict)
    """What the markers' metrics were when it began."""
    markers: Mapping[str, MarkerState] = field(default_factory=dict)
    settled: bool = True
    """Whether more than the first sample tells it: a new mgr hears of some OSDs seconds later, and they seem idle."""
    turned: float = -math.inf
    """When a marker of a metric turned last, or the first sample came."""
    by_policy: Optional[str] = None
    """Of the calendar, which holds since the regime does; empty where the calendar ended, UNREADABLE where nobody could
    read it for a while. None: no policy turned it."""

    @property
    def turning(self) -> bool:
        """Whether the newest sample speaks against a marker, so that the regime may be another one already."""
        return any(marker.against is not None for marker in self.markers.values())

    def is_told(self, now: float, overdue_s: float) -> bool:
        """Whether it may be acted on: more than the first sample tells it, and the newest is that fresh."""
        return self.settled and is_fresh(self.at, now, overdue_s)

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for people and programs."""
        document = {"regime": self.name, "since": self.since, "by_policy": self.by_policy}
        return {**document, "evidence": dict(self.evidence)}


class MarkerTurn(NamedTuple):
    """A marker, and what would turn it. Bound and value are in the metric's unit; None where they are not known."""

    name: str
    metric: str
    on: bool
    bound: Optional[float]
    """At or below it, if it is on, it turns off; else at or above it on."""
    value: Optional[float]
    hold_s: float
    against: Optional[float]
    """Since when every sample speaks for a turn; None where the newest does not."""


class PolicyTurn(NamedTuple):
    """A marker of a policy, and when the calendar turns it."""

    name: str
    policy: str
    on: bool
    at: Optional[float]
    """When the policy begins, or ends where it holds; None: not within a year."""
    in_calendar: bool
    """Whether the calendar has such a policy."""


AnyTurn = Union[MarkerTurn, PolicyTurn]


def turns(
    state: RegimeState,
    values: Mapping[str, float],
    bounds: RegimeBounds,
    capacity_iops: Optional[float] = None,
    policy_turns: Mapping[str, Optional[float]] = MappingProxyType({}),
) -> Tuple[AnyTurn, ...]:
    """What would turn each marker, by the values of the newest sample; `state` is of the same bounds.

    `policy_turns`: when each policy of the calendar begins, or ends where it holds.
    """

    def turn(marker: AnyMarker, on: bool, against: Optional[float]) -> AnyTurn:
        if isinstance(marker, PolicyMarker):
            in_calendar = marker.policy in policy_turns
            return PolicyTurn(marker.name, marker.policy, on, policy_turns.get(marker.policy), in_calendar)
        bound = _absolute(marker.leave if on else marker.enter, marker, capacity_iops)
        return MarkerTurn(marker.name, marker.metric, on, bound, values.get(marker.metric), marker.hold_s, against)

    states = ((marker, state.markers.get(marker.name)) for marker in bounds.markers)
    return tuple(turn(marker, own.on, own.against) for marker, own in states if own is not None)


def _absolute(bound: float, marker: Marker, capacity_iops: Optional[float]) -> Optional[float]:
    if not marker.of_capacity:
        return bound
    return bound * capacity_iops if capacity_iops else None


def tell(
    before: Optional[RegimeState],
    at: float,
    values: Mapping[str, float],
    bounds: RegimeBounds,
    capacity_iops: Optional[float] = None,
    policy: Optional[str] = "",
) -> RegimeState:
    """Take a sample's values. `capacity_iops`: what the OSDs can do together; None where that is not known.

    `policy`: that of the calendar at that moment; empty without a calendar, None where nobody knows.
    `before` is of the same bounds; None at the first sample, which decides at once.
    """
    if before is not None and at < before.since:
        # a clock that was set back: what it said of durations is worth nothing
        before = None
    readings = {marker.name: _value(marker, values, capacity_iops) for marker in bounds.of_metrics}
    evidence = {marker.metric: values[marker.metric] for marker in bounds.of_metrics if marker.metric in values}
    of_policies = {marker.name: _of_policy(marker, before, at, policy) for marker in bounds.of_policies}
    if before is None:
        first = {marker.name: _first(marker, at, readings[marker.name]) for marker in bounds.of_metrics}
        first.update(of_policies)
        return RegimeState(_regime_name(first, bounds), at, at, evidence, first, False, at)
    continuous = 0 <= at - before.at <= GAP_S
    markers = {
        marker.name: _next(marker, before.markers[marker.name], at, readings[marker.name], continuous)
        for marker in bounds.of_metrics
    }
    is_free = at - before.turned >= bounds.dwell_s
    due = [marker.name for marker in bounds.of_metrics if is_free and _due(marker, markers[marker.name], at)]
    is_clear = is_free and not any(each.against is not None for each in markers.values())
    settled = before.settled or bool(due) or is_clear
    for name in due:
        markers[name] = MarkerState(not markers[name].on, None, markers[name].seen)
    markers.update(of_policies)
    by_calendar = any(before.markers[name].on != each.on for name, each in of_policies.items())
    if not due and not by_calendar:
        return replace(before, at=at, markers=markers, settled=settled)
    by_policy = (UNREADABLE if policy is None else policy) if by_calendar else None
    turned = at if due else before.turned
    return RegimeState(_regime_name(markers, bounds), at, at, evidence, markers, settled, turned, by_policy)


def calendar_turned(by_policy: Optional[str]) -> str:
    """In words, by what of the calendar a regime began; empty where it is not by that."""
    if by_policy is None:
        return ""
    if by_policy == UNREADABLE:
        return "the calendar, as nobody can read it"
    return f"the calendar, as {f'the policy {by_policy} began' if by_policy else 'none holds any more'}"


def calendar_turn(turns_at: Optional[float]) -> str:
    """In words, when the calendar will turn a regime; empty where it will not."""
    return "" if turns_at is None else f"the calendar turns it at {utc_minute(turns_at)}"


def _value(marker: Marker, values: Mapping[str, float], capacity_iops: Optional[float]) -> Optional[float]:
    value = values.get(marker.metric)
    if value is None or not marker.of_capacity:
        return value
    return value / capacity_iops if capacity_iops else None


def _first(marker: Marker, at: float, value: Optional[float]) -> MarkerState:
    return MarkerState(value is not None and value >= marker.enter, None, None if value is None else at)


def _next(marker: Marker, before: MarkerState, at: float, value: Optional[float], continuous: bool) -> MarkerState:
    if value is None:
        return MarkerState(before.on, None, before.seen)
    against = value <= marker.leave if before.on else value >= marker.enter
    since = before.against if continuous else None
    return MarkerState(before.on, (at if since is None else since) if against else None, at)


def _of_policy(marker: PolicyMarker, state: Optional[RegimeState], at: float, policy: Optional[str]) -> MarkerState:
    if policy is not None:
        return MarkerState(policy == marker.policy, None, at)
    before = state.markers[marker.name] if state is not None else MarkerState(False)
    return MarkerState(before.on and not _is_unseen(before, at), None, before.seen)


def _due(marker: Marker, state: MarkerState, at: float) -> bool:
    if state.against is not None:
        return at - state.against >= marker.hold_s
    return state.on and _is_unseen(state, at)


def _is_unseen(state: MarkerState, at: float) -> bool:
    return state.seen is None or at - state.seen >= UNSEEN_S


def _regime_name(markers: Mapping[str, MarkerState], bounds: RegimeBounds) -> str:
    return "+".join(marker.name for marker in bounds.markers if markers[marker.name].on) or IDLE
