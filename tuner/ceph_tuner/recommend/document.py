"""A recommendation for programs: what `ceph-tuner recommend --format json` prints, and `ceph-tuner report` reads."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, Optional

from ceph_tuner.core.wording import rounded
from ceph_tuner.recommend import Prediction
from ceph_tuner.recommend.answer import evidence
from ceph_tuner.recommend.demand import demand
from ceph_tuner.recommend.knob_worth import KnobWorth
from ceph_tuner.recommend.limits import Missed
from ceph_tuner.recommend.measured import measured_in_force
from ceph_tuner.recommend.recommendation import Recommendation
from ceph_tuner.recommend.search import SearchedSettings
from ceph_tuner.twin.knobs_in_force import completed


def document(recommendation: Recommendation, name: str) -> Dict[str, Any]:
    """Everything that is known of a recommendation for the cluster `name`, but for what lies beyond live knobs."""
    search_result, instructions, transfer = (
        recommendation.searched,
        recommendation.instructions,
        recommendation.elsewhere,
    )
    slo, model = search_result.question.slo, search_result.question.model
    return {
        "cluster": name,
        "release": model.release.name,
        "slo": slo.to_dict(),
        "recommended": {
            **search_result.choice.to_dict(),
            "settings": dict(instructions.settings),
            "target": instructions.target,
            "why": search_result.winner.why,
        },
        "in_force": {"profile": search_result.question.profile_in_force, "settings": search_result.question.before},
        "measured_in_force": [
            {**entry._asdict(), "outside": entry.outside} for entry in measured_in_force(search_result)
        ],
        "predictions": [_prediction(entry, search_result) for entry in search_result.compared],
        "tried": [_trial(entry, search_result) for entry in search_result.tried],
        "front": _front(search_result),
        "knobs": [_knob(entry) for entry in recommendation.worths],
        "missed": [_shortfall(entry) for entry in recommendation.missed],
        "needed": {entry.name: entry.needed for entry in recommendation.accounts} or _demand(search_result),
        "evidence": evidence(search_result),
        "searched": list(search_result.space),
        "model_error_known_for": sorted(search_result.question.errors),
        "confirmed": search_result.confirmed,
        "interrupted": search_result.interrupted,
        "notes": list(instructions.notes),
        "commands": list(instructions.commands),
        "undo": list(instructions.undo),
        "capacity": [asdict(entry) for entry in recommendation.accounts],
        "explanation": None if recommendation.explanation is None else recommendation.explanation.to_dict(),
        "elsewhere": [entry.to_dict() for entry in transfer.judged] if transfer is not None else [],
        "beyond_live_knobs": None,
    }


def _demand(search_result: SearchedSettings) -> Dict[str, float]:
    """Without the scheduler there are no accounts, but there is work."""
    question, winner = search_result.question, search_result.winner
    settings = completed(winner.settings, question.model.release)
    return demand(search_result.judge, question.model, settings, winner.means)


def _prediction(entry: Prediction, search_result: SearchedSettings) -> Dict[str, Any]:
    means = entry.means
    return {
        "label": entry.label,
        "settings": dict(entry.settings),
        "runs": len(entry.runs),
        "means": {metric: rounded(value) for metric, value in means.items()},
        "intervals": {metric: entry.interval(metric) for metric in means},
        "verdicts": [verdict.to_dict() for verdict in search_result.judge.verdicts(means)],
    }


def _trial(entry: Prediction, search_result: SearchedSettings) -> Dict[str, Any]:
    """What the search saw, on its own seeds."""
    means, metrics = entry.means, search_result.question.slo.metrics
    return {"label": entry.label, "means": {name: rounded(means[name]) for name in metrics if name in means}}


def _front(search_result: SearchedSettings) -> Optional[Dict[str, Any]]:
    """Settings of the front with both metrics, on the seeds of the search."""
    front = search_result.front
    if front is None:
        return None
    entries = [
        {
            "label": entry.label,
            "settings": dict(entry.settings),
            "means": {metric: rounded(entry.means[metric]) for metric in (front.one, front.other)},
            "intervals": {metric: entry.interval(metric) for metric in (front.one, front.other)},
        }
        for entry in front.entries
    ]
    return {"metrics": [front.one, front.other], "entries": entries}


def _knob(entry: KnobWorth) -> Dict[str, Any]:
    """What a knob is worth; a ratio is that of the metric without it to the metric with it."""
    return {
        "name": entry.name,
        "in_force": entry.in_force,
        "value": entry.value,
        "beside": list(entry.beside),
        "put_back": entry.put_back,
        "without": [
            {
                "metric": effect.metric,
                "with": rounded(effect.before),
                "without": rounded(effect.after),
                "ratio": None if effect.ratio is None else rounded(effect.ratio[0]),
                "interval": None if effect.ratio is None else [rounded(end) for end in effect.ratio[1:]],
            }
            for effect in entry.without
        ],
    }


def _shortfall(entry: Missed) -> Dict[str, Any]:
    return {
        "objective": entry.verdict.objective.text,
        "predicted": entry.verdict.seen,
        "without_other_work": entry.alone,
        "met_without_other_work": entry.alone_met,
        "best_seen": entry.best,
        "best_seen_with": entry.best_label,
        "which_misses": list(entry.best_misses),
    }
