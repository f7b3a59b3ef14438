"""Tells the regime of each sample, with hysteresis: (state, sample, bounds) to the next state. Pure.

A marker turns when every sample of `hold_s` was at or beyond its other bound. The regime changes when a marker turns,
and at the earliest `dwell_s` after its last change: what turned meanwhile turns then, unless it turned back before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.measure.sample import is_fresh
from ceph_tuner.core.regimes.bounds import IDLE, Marker, RegimeBounds

GAP_S = 60.0
"""After a longer time without a sample nothing is known of the time between."""
UNSEEN_S = 300.0
"""A marker whose metric is missing for so long is off: what nobody sees is no regime."""


@dataclass(frozen=True)
class MarkerState:
    """A marker as the samples showed it."""

    on: bool
    against: Optional[float] = None
    """Since when every sample speaks against it being so; None where the newest does not."""
    seen: Optional[float] = None
    """When its metric was seen last."""


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

    @property
    def turning(self) -> bool:
        """Whether the newest sample speaks against a marker, so that the regime may be another one already."""
        return any(marker.against is not None for marker in self.markers.values())

    def is_told(self, now: float, overdue_s: float) -> bool:
        """Whether it may be acted on: more than the first sample tells it, and the newest is that fresh."""
        return self.settled and is_fresh(self.at, now, overdue_s)

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for people and programs."""
        return {"regime": self.name, "since": self.since, "evidence": dict(self.evidence)}


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


def turns(
    state: RegimeState,
    values: Mapping[str, float],
    bounds: RegimeBounds,
    capacity_iops: Optional[float] = None,
) -> Tuple[MarkerTurn, ...]:
    """What would turn each marker, by the values of the newest sample; `state` is of the same bounds."""
    return tuple(
        MarkerTurn(
            marker.name,
            marker.metric,
            state.markers[marker.name].on,
            _absolute(marker.leave if state.markers[marker.name].on else marker.enter, marker, capacity_iops),
            values.get(marker.metric),
            marker.hold_s,
            state.markers[marker.name].against,
        )
        for marker in bounds.markers
        if marker.name in state.markers
    )


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
) -> RegimeState:
    """Take a sample's values. `capacity_iops`: what the OSDs can do together; None where that is not known.

    `before` is of the same bounds; None at the first sample, which decides at once.
    """
    readings = {marker.name: _value(marker, values, capacity_iops) for marker in bounds.markers}
    evidence = {marker.metric: values[marker.metric] for marker in bounds.markers if marker.metric in values}
    if before is None or at < before.since:
        # a clock that was set back: what it said of durations is worth nothing
        first = {marker.name: _first(marker, at, readings[marker.name]) for marker in bounds.markers}
        return RegimeState(_regime_name(first, bounds), at, at, evidence, first, settled=False)
    continuous = 0 <= at - before.at <= GAP_S
    markers = {
        marker.name: _next(marker, before.markers[marker.name], at, readings[marker.name], continuous)
        for marker in bounds.markers
    }
    due = {marker.name for marker in bounds.markers if _due(marker, markers[marker.name], at)}
    if due and at - before.since >= bounds.dwell_s:
        next_markers = {
            name: MarkerState(not each.on, None, each.seen) if name in due else each for name, each in markers.items()
        }
        return RegimeState(_regime_name(next_markers, bounds), at, at, evidence, next_markers)
    is_clear = at - before.since >= bounds.dwell_s and not any(each.against is not None for each in markers.values())
    return RegimeState(before.name, before.since, at, before.evidence, markers, before.settled or is_clear)


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


def _due(marker: Marker, state: MarkerState, at: float) -> bool:
    if state.against is not None:
        return at - state.against >= marker.hold_s
    return state.on and (state.seen is None or at - state.seen >= UNSEEN_S)


def _regime_name(markers: Mapping[str, MarkerState], bounds: RegimeBounds) -> str:
    return "+".join(marker.name for marker in bounds.markers if markers[marker.name].on) or IDLE
