"""Forecasts beside what was measured after: of lasting changes by the windows that follow them, of trials by their own.

What a change did is seen in the cluster's minutes from SETTLED_S after it on, up to the next change. Minutes are gone
after some hours, so whoever keeps them also keeps what they said of a change (`due`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.history import MINUTE, History, merged
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


def outcome_of(entry: Entry, entries: Sequence[Entry], windows: Sequence[Window]) -> Optional[Outcome]:
    """What the minutes after a change show, before any other change; None where they are too few."""
    begin = entry.at + SETTLED_S
    others = [moment for other in entries if other.number != entry.number for moment in (other.at, other.changed)]
    end = min((moment for moment in others if moment > entry.at), default=begin + LONGEST_S)
    if entry.state == UNDONE:
        end = min(end, entry.changed)
    parts = [window for window in windows if window.start >= begin and window.end <= min(end, begin + LONGEST_S)]
    together = merged(parts)
    if together is None or sum(window.seconds for window in parts) < LEAST_S:
        return None
    return Outcome(together.start, together.end, together.measures)


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
            pairs += _pairs(f"change {entry.number}", record, outcomes[entry.number].measures)
    for trial in trials:
        if trial.run.forecast is not None and trial.failed is None:
            pairs += _pairs(trial.run.label, trial.run.forecast, trial.measures)
    return sorted(pairs, key=lambda pair: (pair.at, pair.subject, pair.metric))


def kept_pairs(history: History, entries: Sequence[Entry]) -> List[ForecastPair]:
    """All that a cluster's store says of it: kept outcomes, those that its minutes still show, and trials."""
    outcomes = outcomes_of(entries, history.outcomes())
    if any(entry.forecast and entry.number not in outcomes for entry in entries):
        windows = history.windows()
        for entry in entries:
            outcome = None if entry.number in outcomes else outcome_of(entry, entries, windows)
            if outcome is not None:
                outcomes[entry.number] = outcome
    trials = (Trial.remembered(record) for record in history.trials())
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
