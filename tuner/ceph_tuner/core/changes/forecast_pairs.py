"""Forecasts beside what was measured after: of lasting changes by the windows that follow them, of trials by their own.

What a change did is seen in the cluster's minutes from SETTLED_S after it on, up to the next change. Minutes are gone
after some hours, so whoever keeps them also keeps what they said of a change (`due`). A change for a device class is
held against what the minutes show of that class, under names such as `client.p95_ms{class=ssd}`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.ceph.target import section_of
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.history import MINUTE, History, merged
from ceph_tuner.core.measure.metrics import CLASS, POOL, Scope, parted, scoped
from ceph_tuner.core.measure.sample import Measure, Window

SETTLED_S = 60.0
"""After a change, so long passes before a window counts."""

LEAST_S, LONGEST_S = 5 * MINUTE, 10 * MINUTE
"""Of the stretch after it that is held against the forecast: shorter ones are chance, in longer ones loads change."""


class Outcome(NamedTuple):
    """What was measured after a change."""

    start: float
    end: float
    measures: Mapping[str, Measure]


@dataclass(frozen=True)
class ForecastPair:
    """One metric of one write: said before, and measured after."""

    at: float
    """When it was said (seconds since the epoch)."""
    subject: str
    """`change 12`, or a trial's label."""
    metric: str
    level: float
    interval: ForecastInterval
    measured: float
    model: str = ""

    @property
    def inside(self) -> bool:
        """Whether the interval holds the measurement."""
        return self.interval.holds(self.measured)


class IntervalCoverage(NamedTuple):
    """How often intervals of one level held what was measured."""

    metric: str
    level: float
    inside: int
    pairs: int


def scope_of(target: str) -> Optional[Scope]:
    """What is measured of a change for this target: its device class by itself; None: the whole cluster."""
    section = section_of(target)
    return Scope(CLASS, section.device_class) if section is not None and section.device_class else None


def measured_apart(target: str) -> bool:
    """Whether windows show what a change for this target did: they have the whole cluster and device classes."""
    return target == "osd" or scope_of(target) is not None


def awaited_scopes(entries: Sequence[Entry], now: float) -> Tuple[Scope, ...]:
    """Device classes about which a twin was asked before a change, while what the change does is being measured."""
    young = (entry for entry in entries if entry.forecast and now - entry.at <= SETTLED_S + LONGEST_S + MINUTE)
    scopes = (scope_of(entry.target) for entry in young if entry.state in (APPLIED, UNDONE))
    return tuple(dict.fromkeys(scope for scope in scopes if scope is not None))


def outcome_of(entry: Entry, entries: Sequence[Entry], windows: Sequence[Window]) -> Optional[Outcome]:
    """What the minutes after a change show, before any other change; None where they are too few."""
    begin = entry.at + SETTLED_S
    others = [moment for other in entries if other.number != entry.number for moment in (other.at, other.changed)]
    end = min((moment for moment in others if moment > entry.at), default=begin + LONGEST_S)
    if entry.state == UNDONE:
        end = min(end, entry.changed)
    parts = [window for window in windows if window.start >= begin and window.end <= min(end, begin + LONGEST_S)]
    scope = scope_of(entry.target)
    if scope is not None:
        # minutes in which the class was not sampled show nothing of it
        parts = [window for window in parts if any(parted(name)[1] == scope for name in window.measures)]
    together = merged(parts)
    if together is None or sum(window.seconds for window in parts) < LEAST_S:
        return None
    return Outcome(together.start, together.end, measures_within(together.measures, scope))


def due(entries: Sequence[Entry], outcomes: Mapping[int, Outcome], windows: Sequence[Window]) -> Dict[int, Outcome]:
    """Changes with a forecast whose outcome the minutes show and nobody kept yet, by number."""
    outcomes_due: Dict[int, Outcome] = {}
    for entry in entries:
        if entry.forecast and entry.number not in outcomes and entry.state in (APPLIED, UNDONE):
            outcome = outcome_of(entry, entries, windows)
            # until the stretch is over a later look knows more
            if outcome is not None and windows and windows[-1].end >= outcome.start + LONGEST_S - MINUTE:
                outcomes_due[entry.number] = outcome
    return outcomes_due


def outcome_record(entry: Entry, outcome: Outcome) -> Dict[str, Any]:
    """As it is stored. `at` tells a change from another one that had its number in another life of the store."""
    return {
        "version": 1,
        "change": entry.number,
        "at": entry.at,
        "start": outcome.start,
        "end": outcome.end,
        "measures": {name: [one.mean, one.deviation, one.count] for name, one in outcome.measures.items()},
    }


def outcomes_of(entries: Sequence[Entry], records: Sequence[Mapping[str, Any]]) -> Dict[int, Outcome]:
    """Stored outcomes of these changes, the newest record of each; what another version wrote is passed over."""
    began = {entry.number: entry.at for entry in entries}
    outcomes: Dict[int, Outcome] = {}
    for record in records:
        read = _read(record)
        if read is not None and began.get(read[0]) == read[1]:
            outcomes[read[0]] = read[2]
    return outcomes


def forecast_pairs(
    entries: Sequence[Entry], outcomes: Mapping[int, Outcome], trials: Sequence[Trial]
) -> List[ForecastPair]:
    """Every metric that was both foretold and measured, oldest first."""
    pairs: List[ForecastPair] = []
    for entry in entries:
        record = ForecastRecord.from_dict(entry.forecast)
        if record is not None and entry.number in outcomes:
            said = record.within(scope_of(entry.target))
            pairs += _pairs(f"change {entry.number}", said, outcomes[entry.number].measures)
    for trial in trials:
        if trial.run.forecast is not None and trial.failed is None:
            pairs += _pairs(trial.run.label, trial.run.forecast, trial.measures)
    return sorted(pairs, key=lambda pair: (pair.at, pair.subject, pair.metric))


def kept_pairs(history: History, entries: Sequence[Entry], now: float) -> List[ForecastPair]:
    """All that a cluster's store says of it: kept outcomes, those that its minutes still show, and trials."""
    outcomes = outcomes_of(entries, history.outcomes())
    if any(entry.forecast and entry.number not in outcomes for entry in entries):
        windows = history.windows(now)
        for entry in entries:
            outcome = None if entry.number in outcomes else outcome_of(entry, entries, windows)
            if outcome is not None:
                outcomes[entry.number] = outcome
    trials = (_trial(record) for record in history.trials())
    return forecast_pairs(entries, outcomes, [trial for trial in trials if trial is not None])


def coverage(pairs: Sequence[ForecastPair]) -> List[IntervalCoverage]:
    """By metric and level, in the order of the metrics' names."""
    groups: Dict[Tuple[str, float], List[ForecastPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.metric, pair.level), []).append(pair)
    return [
        IntervalCoverage(metric, level, sum(pair.inside for pair in own), len(own))
        for (metric, level), own in sorted(groups.items())
    ]


def measures_within(measures: Mapping[str, Measure], scope: Optional[Scope]) -> Dict[str, Measure]:
    """What a target's windows show: without a scope all of it, of a device class its own metrics and those of pools."""
    if scope is None:
        return dict(measures)
    scopes = {name: parted(name)[1] for name in measures}
    return {
        name: one for name, one in measures.items() if (scopes[name] or scope).kind == POOL or scopes[name] == scope
    }


def _trial(record: Mapping[str, Any]) -> Optional[Trial]:
    """A trial of a device class was said and measured of that class alone: its metrics get the class's name."""
    trial = Trial.remembered(record)
    if trial is None or trial.run.forecast is None:
        return trial
    scope = Scope(CLASS, trial.device_class) if trial.device_class else scope_of(str(record.get("target", "")))
    if scope is None:
        return trial
    measures = {scoped(name, scope) if parted(name)[1] is None else name: one for name, one in trial.measures.items()}
    return replace(trial, run=replace(trial.run, forecast=trial.run.forecast.within(scope)), measures=measures)


def _read(record: Mapping[str, Any]) -> Optional[Tuple[int, float, Outcome]]:
    """Number and time of a change, and its outcome; None for what another version wrote."""
    try:
        measures = {
            str(name): Measure(float(mean), float(deviation), int(count))
            for name, (mean, deviation, count) in dict(record["measures"]).items()
        }
        outcome = Outcome(float(record["start"]), float(record["end"]), measures)
        return int(record["change"]), float(record["at"]), outcome
    except MISREAD:
        return None


def _pairs(subject: str, record: ForecastRecord, measures: Mapping[str, Measure]) -> List[ForecastPair]:
    return [
        ForecastPair(record.at, subject, name, record.level, interval, measures[name].mean, record.model)
        for name, interval in record.metrics.items()
        if name in measures
    ]
