"""What a cluster itself remembers: windows, the last tuning run, changes and the automatic mode's audit trail."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot import audit_log as audit
from ceph_tuner.core.autopilot.audit_log import AuditRecord, TrailRecord, every_trail
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.changes.forecast_pairs import kept_pairs
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge, all_met
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.stored_slo import stored_judge
from ceph_tuner.core.goals.trial import Trial, choice_among
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings
from ceph_tuner.core.knobs.settings import fitting_reservations, moves_alone, same_value
from ceph_tuner.core.measure.history import RECENT_S, History
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.core.measure.timeline import TimelineEntry, timeline
from ceph_tuner.core.printable import printable
from ceph_tuner.report import HISTORY, TUNING, Findings, Mark, unknown
from ceph_tuner.report.answers import kept_learnt
from ceph_tuner.report.regimes_in_time import spans_of
from ceph_tuner.report.trial_options import custom, headline, measured_options
from ceph_tuner.report.words import spoken
from ceph_tuner.tune.past import PastRun, learnt_of, past_runs
from ceph_tuner.twin.knobs_in_force import completed

MOST_MARKS, MOST_SETTINGS = 60, 3
MOST_TURNS = 20
"""Changes of regime and policy among the marks: they come often."""

_SAME_S = 10.0
"""A write so near to a record of the audit trail is what that record is about."""

_TOLD = (
    *(audit.MODE, audit.APPLY, audit.HELD, audit.TAKEN_BACK, audit.KEPT, audit.BREACH, audit.GAVE_UP, audit.PAUSED),
    *(audit.BOOST, audit.BOOST_ENDED, audit.BOOK, audit.BOOK_BACK, audit.BOOK_MODE),
    *(audit.RESUMED, audit.FAILOVER, audit.DRIFT, audit.CONDITION, audit.CAPACITY, audit.STOPPED),
)
"""Of the audit trail, what changed something."""


def remembered(
    name: str, store: Store, entries: Sequence[Entry], release: Release, since: float, now: float
) -> Findings:
    """Read a cluster's store; `entries` are its journal's. Windows and changes from `since` (seconds, epoch) on."""
    history = History(store)
    windows, hours = history.windows(now, since), history.hours(now, since)
    runs = past_runs(history)
    if runs:
        findings = _with_learnt(_of_run(name, runs[-1], release), learnt_of(history, runs[-1].began))
    else:
        findings = _of_objectives(name, store, release, now)
    in_force = [entry for entry in entries if entry.state == APPLIED and not entry.trial]
    turns, trails = timeline(history), every_trail(store)
    return replace(
        findings,
        windows=tuple(windows),
        hours=tuple(hours),
        spans=tuple(spans_of(turns, [each.record for each in trails], windows, hours, _stored(store), since, now)),
        marks=_marks(trails, turns, entries, [trial for run in runs for trial in run.trials], since),
        forecasts=tuple(kept_pairs(history, entries, now)),
        commands=tuple(step.command for step in in_force[-1].steps) if in_force else (),
        undo=(shlex.join(["ceph-tuner", "rollback", "--cluster", name]),) if in_force else (),
        written=bool(in_force),
        unknown=(*findings.unknown, *unknown.of_history(windows, hours)),
    )


def with_history(findings: Findings, history: Findings) -> Findings:
    """Put what a cluster remembers of its past beside an answer."""
    return replace(
        findings,
        windows=history.windows,
        hours=history.hours,
        marks=history.marks,
        spans=history.spans,
        forecasts=history.forecasts,
        # an answer that was written says so, and the cluster knows by which commands, if nobody changed more since
        commands=history.commands
        if findings.written and _bring(history.commands, findings.after)
        else findings.commands,
        unknown=(*findings.unknown, *unknown.of_history(history.windows, history.hours)),
    )


def _bring(commands: Sequence[str], settings: Settings) -> bool:
    values = {words[-2]: words[-1] for words in map(shlex.split, commands) if len(words) > 2}
    return all(name in values and same_value(values[name], str(value)) for name, value in settings.items())


def _of_run(name: str, run: PastRun, release: Release) -> Findings:
    """Of the last run, chosen among its trials as it was."""
    slo = parse_slo(run.heading.slo)
    measurements = [trial for trial in run.trials if trial.run.kind != "check"]
    first = next((trial for trial in measurements if trial.run.kind == "baseline"), None)
    if first is None:
        return Findings(HISTORY, name, "The last tuning run ended before anything was measured.", slo, release)
    choice = choice_among(Judge(slo, first.means), measurements, run.heading.in_force)
    if choice is None:
        return Findings(HISTORY, name, "The last tuning run could not measure what was in force.", slo, release)
    options, meaning = measured_options(run.trials, choice.winner.label)
    settings = next((trial.run.settings for trial in run.trials if trial.run.label == choice.winner.label), {})
    moves = moves_alone(settings, fitting_reservations(run.heading.in_force), release)
    misses = [entry.objective.text for entry in choice.verdicts if entry.objective.hard and not entry.met]
    return Findings(
        TUNING,
        name,
        "Last tuning run. " + headline(choice.winner.label, choice.better, choice.reason, misses),
        slo,
        release,
        first.means,
        options,
        meaning,
        better=choice.better,
        before={PROFILE: first.run.why or "custom", **completed(dict(run.heading.in_force), release)},
        after=custom(moves) if choice.better else {},
        trials=run.trials,
        evidence=(
            f"{len(run.trials)} measurements on {name}, target {run.heading.target}, as the cluster keeps them.",
        ),
        unknown=unknown.of_trials(run.trials, {}),
    )


def _with_learnt(findings: Findings, record: Optional[Mapping[str, Any]]) -> Findings:
    if findings.kind != TUNING or findings.slo is None:
        return findings
    stored_lesson = kept_learnt(record, findings.slo)
    if stored_lesson is None:
        words = "The cluster keeps nothing of what the search had learnt: the run was broken off, or is an older one."
        return replace(findings, unknown=(*findings.unknown, words))
    learnt, capacity = stored_lesson
    return replace(findings, learnt=learnt, capacity=capacity)


def _of_objectives(name: str, store: Store, release: Release, now: float) -> Findings:
    """Without a run, the objectives held against the last minute are all that there is."""
    judge = stored_judge(store)
    if judge.slo is None:
        return Findings(HISTORY, name, "No tuning run and no objectives are remembered.", None, release)
    newest = History(store).newest(now)
    if newest is None:
        words = f"No tuning run is remembered, and no window of the last {RECENT_S / 60:.0f} min is kept."
        return Findings(HISTORY, name, words, judge.slo, release, judge.reference)
    keeps_all = all_met(judge.verdicts_at_work(newest.means))
    words = "keeps all objectives" if keeps_all else "does not keep all objectives"
    words = f"No tuning run is remembered. The last minute {words}."
    return Findings(HISTORY, name, words, judge.slo, release, judge.reference)


def _stored(store: Store) -> Judge:
    """By the objectives that the cluster has; none where nobody can read them."""
    try:
        return stored_judge(store)
    except InputError:
        return Judge(None)


def _evidence(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {amount(name, value)[0]}" for name, value in values.items() if name in METRICS)


def _what(record: AuditRecord, settings: Mapping[str, Any]) -> str:
    """What was done, of a write with what it wrote where."""
    if record.what != audit.APPLY:
        return record.what
    values = [f"{spoken(name)} {value}" for name, value in settings.items()]
    more = [f"{len(values) - MOST_SETTINGS} more"] if len(values) > MOST_SETTINGS else []
    where = ", ".join(map(str, record.detail.get("targets", ())))
    return f"{record.what}: {', '.join([*values[:MOST_SETTINGS], *more])}" + (f" for {where}" if where else "")


def _marks(
    trails: Sequence[TrailRecord],
    turns: Sequence[TimelineEntry],
    entries: Sequence[Entry],
    trials: Sequence[Trial],
    since: float,
) -> Tuple[Mark, ...]:
    """Give what the automatic mode did and other lasting changes, in the order of time: the newest MOST_MARKS.

    A tuning run's trials are left out: they are drawn as what they are.
    """
    outcomes = {(trail, record.refers): record.outcome for trail, record in trails if record.refers}
    marks: List[Mark] = []
    proposal: Mapping[str, Any] = {}
    for trail, record in trails:
        if record.what == audit.PROPOSAL:
            settings = record.detail.get("settings")
            proposal = settings if isinstance(settings, dict) else {}
        if record.what in _TOLD and not record.refers:
            outcome = outcomes.get((trail, record.number), record.outcome)
            marks.append(Mark(record.at, _what(record, proposal), record.why, record.who, outcome))
    times = [mark.at for mark in marks]
    spans = [(trial.at, trial.at + trial.seconds) for trial in trials]
    for entry in entries:
        of_trial = entry.trial or (entry.state == UNDONE and any(start <= entry.at <= end for start, end in spans))
        if not of_trial and all(abs(entry.at - at) > _SAME_S for at in times):
            words = f"{len(entry.steps)} write{'s' * (len(entry.steps) != 1)} for {entry.target}"
            marks.append(Mark(entry.at, words, entry.why, entry.who, f"{entry.state}. {entry.note}".rstrip(". ")))
    marks += [
        Mark(entry.at, f"{entry.kind} {entry.scope}".rstrip(), _evidence(entry.evidence), "", entry.name)
        for entry in turns[-MOST_TURNS:]
    ]
    newest = sorted((mark for mark in marks if mark.at >= since), key=lambda mark: mark.at)[-MOST_MARKS:]
    return tuple(
        Mark(mark.at, *(printable(text) for text in (mark.what, mark.why, mark.who, mark.outcome))) for mark in newest
    )
