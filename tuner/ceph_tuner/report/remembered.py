"""What a cluster itself remembers: windows, the last tuning run, changes and the automatic mode's audit trail."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

from ceph_tuner.autopilot import audit
from ceph_tuner.autopilot.audit import Audit
from ceph_tuner.errors import InputError
from ceph_tuner.history import History
from ceph_tuner.journal import APPLIED, UNDONE, Entry
from ceph_tuner.knobs import PROFILE
from ceph_tuner.ports import Store
from ceph_tuner.releases import Release
from ceph_tuner.report import HISTORY, TUNING, Findings, Mark, unknown
from ceph_tuner.report.answer_file import cleaned
from ceph_tuner.report.measured import headline, measured_options
from ceph_tuner.slo import Slo, all_met, evaluate, parse_slo
from ceph_tuner.trial import IN_FORCE, Trial, candidates_of
from ceph_tuner.tuning.past import PastRun, past_runs
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.winner import choose

SLO_KEY = "slo"
"""Where the plugin keeps the cluster's objectives."""

MOST_MARKS = 60

_SAME_S = 10.0
"""A write so near to a record of the audit trail is what that record is about."""

_TOLD = (
    *(audit.MODE, audit.APPLY, audit.HELD, audit.TAKEN_BACK, audit.KEPT, audit.BREACH, audit.GAVE_UP, audit.PAUSED),
    *(audit.RESUMED, audit.FAILOVER, audit.DRIFT, audit.CONDITION, audit.CAPACITY, audit.STOPPED),
)
"""Of the audit trail, what changed something."""


def remembered(name: str, store: Store, entries: Sequence[Entry], release: Release, since: float) -> Findings:
    """Read a cluster's store; `entries` are its journal's. Windows and changes from `since` (seconds, epoch) on."""
    history = History(store)
    windows, hours = history.windows(since), history.hours(since)
    runs = past_runs(history)
    found = _of_run(name, runs[-1], release) if runs else _of_objectives(name, store, release)
    in_force = [entry for entry in entries if entry.state == APPLIED and not entry.trial]
    return replace(
        found,
        windows=tuple(windows),
        hours=tuple(hours),
        marks=_marks(store, entries, [trial for run in runs for trial in run.trials], since),
        commands=tuple(step.command for step in in_force[-1].steps) if in_force else (),
        undo=(shlex.join(["ceph-tuner", "rollback", "--cluster", name]),) if in_force else (),
        written=bool(in_force),
        unknown=(*found.unknown, *unknown.of_history(windows, hours)),
    )


def with_history(found: Findings, kept: Findings) -> Findings:
    """Put what a cluster remembers of its past beside an answer."""
    return replace(
        found,
        windows=kept.windows,
        hours=kept.hours,
        marks=kept.marks,
        unknown=(*found.unknown, *unknown.of_history(kept.windows, kept.hours)),
    )


def _of_run(name: str, run: PastRun, release: Release) -> Findings:
    """Of the last run, chosen among its trials as it was."""
    slo = parse_slo(run.heading.slo)
    counted = [trial for trial in run.trials if trial.run.kind != "check"]
    first = next((trial for trial in counted if trial.run.kind == "baseline"), None)
    if first is None:
        return Findings(HISTORY, name, "The last tuning run ended before anything was measured.", slo, release)
    candidates = candidates_of(counted)
    in_force = next((entry for entry in candidates if entry.label == IN_FORCE), None)
    if in_force is None:
        return Findings(HISTORY, name, "The last tuning run could not measure what was in force.", slo, release)
    choice = choose(slo, first.means, in_force, [entry for entry in candidates if entry is not in_force])
    options, meaning = measured_options(run.trials, choice.winner.label)
    settings = next((trial.run.settings for trial in run.trials if trial.run.label == choice.winner.label), {})
    missed = [entry.objective.text for entry in choice.verdicts if entry.objective.hard and not entry.met]
    return Findings(
        TUNING,
        name,
        "Last tuning run. " + headline(choice.winner.label, choice.better, choice.reason, missed),
        slo,
        release,
        first.means,
        options,
        meaning,
        better=choice.better,
        before={PROFILE: first.run.why or "custom", **completed(dict(run.heading.in_force), release)},
        after=dict(settings) if choice.better else {},
        trials=run.trials,
        evidence=(
            f"{len(run.trials)} measurements on {name}, target {run.heading.target}, as the cluster keeps them.",
        ),
        unknown=(
            *unknown.of_trials(run.trials, {}),
            "What the search had learnt is not kept in the cluster: --format json of `ceph-tuner tune` has it.",
        ),
    )


def _of_objectives(name: str, store: Store, release: Release) -> Findings:
    """Without a run, the objectives held against the newest window are all that there is."""
    slo, windows = _stored_slo(store), History(store).windows()
    if slo is None or not windows:
        words = "No tuning run is remembered." if slo is not None else "No tuning run and no objectives are remembered."
        return Findings(HISTORY, name, words, slo, release)
    verdicts = evaluate(slo, {metric: measure.mean for metric, measure in windows[-1].measures.items()})
    words = "keeps all objectives" if all_met(verdicts) else "does not keep all objectives"
    return Findings(HISTORY, name, f"No tuning run is remembered. The last minute {words}.", slo, release)


def _stored_slo(store: Store) -> Optional[Slo]:
    try:
        text = store.get(SLO_KEY)
        return parse_slo(json.loads(text)) if text else None
    except ValueError as error:
        raise InputError("the stored SLO", str(error)[:100], "`ceph tuner slo rm all`, then set it anew") from error


def _marks(store: Store, entries: Sequence[Entry], trials: Sequence[Trial], since: float) -> Tuple[Mark, ...]:
    """Give what the automatic mode did and other lasting changes, in the order of time: the newest MOST_MARKS.

    A tuning run's trials are left out: they are drawn as what they are.
    """
    trail = Audit(store).newest()
    outcomes = {record.refers: record.outcome for record in trail if record.refers}
    found: List[Mark] = [
        Mark(record.at, record.what, record.why, record.who, outcomes.get(record.number, record.outcome))
        for record in trail
        if record.what in _TOLD and not record.refers
    ]
    told = [mark.at for mark in found]
    spans = [(trial.at, trial.at + trial.seconds) for trial in trials]
    for entry in entries:
        tried = entry.trial or (entry.state == UNDONE and any(start <= entry.at <= end for start, end in spans))
        if not tried and all(abs(entry.at - at) > _SAME_S for at in told):
            words = f"{len(entry.steps)} writes for {entry.target}"
            found.append(Mark(entry.at, words, entry.why, entry.who, f"{entry.state}. {entry.note}".rstrip(". ")))
    kept = sorted((mark for mark in found if mark.at >= since), key=lambda mark: mark.at)[-MOST_MARKS:]
    return tuple(
        Mark(mark.at, *(cleaned(text) for text in (mark.what, mark.why, mark.who, mark.outcome))) for mark in kept
    )
