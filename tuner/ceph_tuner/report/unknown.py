"""What a page does not know, in sentences: the reader shall not take silence for certainty."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Tuple

from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.measure.sample import Window

LONGEST_GAP_S = 600.0
"""Between two windows of a minute: longer, and the curve is broken."""


def of_recommendation(data: Mapping[str, Any], slo: Slo) -> Tuple[str, ...]:
    """Of a document of `ceph-tuner recommend`."""
    metrics = dict.fromkeys(slo.metrics)
    with_error = set(data.get("model_error_known_for", []))
    blind = [name for name in metrics if name not in with_error]
    sentences = [
        "Everything here is predicted by a model of the cluster, not measured on it, for the load as described."
    ]
    if blind:
        sentences.append(
            f"How far the model itself is off is not in the intervals of {', '.join(blind)}: "
            "a fit of this cluster would say (ceph-tuner twin fit)."
        )
    if not data.get("confirmed", True):
        sentences.append("The search was interrupted: the numbers are of the seeds that it searched on, and flatter.")
    if data.get("searched"):
        sentences.append(f"Only {len(data['searched'])} knobs were searched: {', '.join(data['searched'])}.")
    if data.get("explanation") is None:
        sentences.append("Which knobs matter is not known: too little was tried, or the run was cut short.")
    if "tried" not in data:
        sentences.append(
            "The trade-off shows only what was compared in the end: the answer does not list what was tried."
        )
    if not data.get("beyond_live_knobs"):
        sentences.append("Whether a restart or a move of data would help was not looked at.")
    alone = [entry["objective"] for entry in data.get("missed", []) if entry.get("without_other_work") is None]
    sentences += [f"What {objective} would be without other work is not known." for objective in alone]
    return tuple(sentences)


def of_trials(trials: Sequence[Trial], search: Mapping[str, Any]) -> Tuple[str, ...]:
    """What a tuning run leaves open: other loads, spoiled windows, settings that were measured once."""
    sentences = ["All of it was measured under the load of that time; of another load it says nothing."]
    failures = [trial for trial in trials if trial.failed is not None]
    if failures:
        sentences.append(
            f"{len(failures)} of {len(trials)} measurements ended early or failed: "
            "their settings are in no comparison here."
        )
    once = {trial.run.label for trial in trials} - {trial.run.label for trial in trials if trial.run.kind == "repeat"}
    if once:
        sentences.append(f"{len(once)} of the settings were measured once only: luck is in their numbers.")
    remarks = sorted({note for trial in trials for note in trial.notes})
    sentences += [f"A window was spoiled: {note}." for note in remarks[:5]]
    trust = {name: scales for name, scales in search.get("trust", {}).items() if min(scales, default=1.0) < 0.5}
    if trust:
        sentences.append(f"The model that was asked first was of little use for {', '.join(sorted(trust))}.")
    return tuple(sentences)


def of_history(windows: Sequence[Window], hours: Sequence[Window]) -> Tuple[str, ...]:
    """Of what a cluster remembers."""
    sentences: List[str] = [
        "Only what ceph-tuner changed is marked: what others did to the cluster or to its load is not known."
    ]
    if not windows and not hours:
        sentences.append("The cluster has kept no windows: the plugin is not enabled, or has not run for a minute.")
    gaps = sum(after.start - before.end > LONGEST_GAP_S for before, after in zip(windows, windows[1:]))
    if gaps:
        sentences.append(f"In {gaps} stretches of the last hours nothing was measured: the curves are broken there.")
    if hours:
        sentences.append(
            "Percentiles of an hour are means of its minutes' percentiles: a trend, no proof of an objective."
        )
    return tuple(sentences)
