"""`ceph-tuner recommend`: settings for a cluster that is described in a file, found on the twin. Needs no cluster."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import typer
from rich.console import Group

from ceph_tuner.errors import InputError
from ceph_tuner.files import cluster_file, fit_file, profile_file, slo_file
from ceph_tuner.files.writing import check_free
from ceph_tuner.knobs import MCLOCK_NINE
from ceph_tuner.recommendation import Effort, Prediction, Question
from ceph_tuner.recommendation.accounts import Account, accounts
from ceph_tuner.recommendation.answer import Answer, answer, evidence, profile, rounded
from ceph_tuner.recommendation.demand import demand
from ceph_tuner.recommendation.limits import Missed, missed_objectives
from ceph_tuner.recommendation.rebuild_plan import plan_rebuild
from ceph_tuner.recommendation.searching import Found, missed, search
from ceph_tuner.search.explaining import explained
from ceph_tuner.slo import evaluate
from ceph_tuner.translate import from_release_units
from ceph_tuner.tuning.interrupts import Interrupts
from ceph_tuner.twin.compiled import available
from ceph_tuner.twin.discrepancy import spread_and_freedom
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner_cli import recommend_rebuild
from ceph_tuner_cli.elsewhere import gathered
from ceph_tuner_cli.recommend_page import RecommendProgress, page, what_to_do
from ceph_tuner_cli.render import Format, FormatOption, console, emit, messages

INTERRUPTED = 130


def recommend(
    cluster: Path = typer.Argument(..., metavar="CLUSTER_FILE", help="A described cluster (docs/recommend.md)."),
    slo: Path = typer.Option(..., "--slo", "-s", help="The SLO file (docs/slo.md)."),
    trials: int = typer.Option(Effort.trials, "--trials", "-n", min=1, max=500, help="Settings to try on the twin."),
    seed: int = typer.Option(1, "--seed", min=0, max=2**31, help="The same seed gives the same answer."),
    knobs: Optional[str] = typer.Option(None, "--knobs", help="Knobs to search, with commas; else the work's own."),
    profile_from: Optional[List[Path]] = typer.Option(
        None, "--profile-from", help="A profile of another cluster, to try first where that is alike; may be repeated."
    ),
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="Write the winner as a profile file."),
    force: bool = typer.Option(False, "--force", help="Replace the profile file if there is one."),
    live_only: bool = typer.Option(False, "--live-only", help="No plan for what needs a restart or moves data."),
    explain: bool = typer.Option(False, "--explain", help="Show all that the search has learnt, curves included."),
    form: Format = FormatOption,
) -> int:
    """Search settings for a described cluster on the twin: no cluster is needed, and none is touched.

    Exit code 1 where nothing is better than what is in force, or a hard objective is still missed.
    """
    described = cluster_file.read(cluster)
    wanted = slo_file.read(slo).slo
    if output is not None:
        check_free(output, force)
    if not available():
        messages.print("without numba the model runs uncompiled, many times slower", markup=False)
    release, hardware = described.model.release, described.model.osd.hardware
    in_force = described.settings
    if MCLOCK_NINE[0] in in_force:
        in_force = from_release_units(in_force, release, hardware)
    question = _fitted(Question(described.model, wanted, in_force, _names(knobs)), described.calibration)
    others = gathered(profile_from or [])
    with RecommendProgress(wanted) as progress, Interrupts(progress.interrupted) as interrupts:
        with interrupts():
            effort = replace(Effort(), trials=trials, seed=seed)
            found = search(question, effort, progress, processes, profiles_elsewhere=others)
        plan, cut_short = None, found.interrupted
        # what is found is shown, whatever becomes of the plan
        with suppress(KeyboardInterrupt):
            cut_short = True
            with interrupts():
                plan = (
                    None
                    if live_only or not found.confirmed
                    else plan_rebuild(found, described.stored, progress, processes)
                )
            cut_short = found.interrupted
    # not again what took long, where somebody does not want to wait
    why = [] if cut_short else missed_objectives(found, processes)
    whole = explain or form is not Format.table
    unmet = bool(missed(found, found.winner))
    told = None
    if not cut_short and found.learnt is not None:
        with suppress(KeyboardInterrupt):
            told = explained(found.learnt, wanted, unmet, curves=whole)
    classes, transfer = _classes(found), found.learnt.elsewhere if found.learnt is not None else None
    chosen = answer(found)
    document = {
        **_document(found, chosen, why, described.name),
        "capacity": [asdict(entry) for entry in classes],
        "explanation": None if told is None else told.to_dict(),
        "elsewhere": [entry.to_dict() for entry in transfer.judged] if transfer is not None else [],
        "beyond_live_knobs": recommend_rebuild.document(plan),
    }
    if output is not None and found.choice.better:
        profile_file.write(output, profile(found, described.name), force)
        document["saved"] = str(output)
    beyond = [] if plan is None else recommend_rebuild.section(plan)
    emit(document, form, lambda: Group(page(found, chosen, why, classes, told, explain, transfer), *beyond))
    if form is Format.table:
        lines = what_to_do(found, chosen, document.get("saved"))
        for line in lines if plan is None else [*lines, *recommend_rebuild.commands(plan)]:
            console.print(line, markup=False, soft_wrap=True)
    if cut_short:
        return INTERRUPTED
    return 0 if found.choice.better and not unmet else 1


def _fitted(question: Question, calibration: Optional[Path]) -> Question:
    """Replace what a fit knows better: parameters of drive, OSD and clients, and how far off the twin is."""
    if calibration is None:
        return question
    fit = fit_file.read(calibration)
    errors = {metric: spread_and_freedom(entry) for metric, entry in fit.discrepancy.metrics.items()}
    return replace(question, model=fit.applied(question.model), errors=errors)


def _names(knobs: Optional[str]) -> Optional[Tuple[str, ...]]:
    if knobs is None:
        return None
    names = tuple(name.strip() for name in knobs.split(",") if name.strip())
    if not names:
        raise InputError("--knobs", repr(knobs), "names of knobs, with commas")
    return names


def _classes(found: Found) -> List[Account]:
    question = found.question
    settings = completed(found.winner.settings, question.model.release)
    return accounts(question.slo, question.model, settings, found.winner.candidate.means, found.baseline)


def _document(found: Found, chosen: Answer, why: list[Missed], name: str) -> Dict[str, Any]:
    slo, model = found.question.slo, found.question.model
    means = found.winner.candidate.means
    return {
        "cluster": name,
        "release": model.release.name,
        "slo": slo.to_dict(),
        "recommended": {**found.choice.to_dict(), "settings": dict(chosen.settings), "why": found.winner.why},
        "in_force": {"profile": found.question.profile_in_force, "settings": found.question.before},
        "predictions": [_prediction(entry, found) for entry in found.compared],
        "tried": [_tried(entry, found) for entry in found.tried],
        "missed": [_missed(entry) for entry in why],
        "needed": demand(slo, model, completed(found.winner.settings, model.release), means, found.baseline),
        "evidence": evidence(found),
        "searched": list(found.space),
        "model_error_known_for": sorted(found.question.errors),
        "confirmed": found.confirmed,
        "interrupted": found.interrupted,
        "notes": list(chosen.notes),
        "commands": list(chosen.commands),
        "undo": list(chosen.undo),
    }


def _prediction(entry: Prediction, found: Found) -> Dict[str, Any]:
    means = entry.candidate.means
    return {
        "label": entry.label,
        "settings": dict(entry.settings),
        "runs": len(entry.runs),
        "means": {metric: rounded(value) for metric, value in means.items()},
        "intervals": {metric: entry.interval(metric) for metric in means},
        "verdicts": [verdict.to_dict() for verdict in evaluate(found.question.slo, means, found.baseline)],
    }


def _tried(entry: Prediction, found: Found) -> Dict[str, Any]:
    """What the search saw, on its own seeds."""
    means, metrics = entry.candidate.means, [objective.metric for objective in found.question.slo.objectives]
    return {"label": entry.label, "means": {name: rounded(means[name]) for name in metrics if name in means}}


def _missed(entry: Missed) -> Dict[str, Any]:
    return {
        "objective": entry.verdict.objective.text,
        "predicted": entry.verdict.seen,
        "without_other_work": entry.alone,
        "met_without_other_work": entry.alone_met,
        "best_seen": entry.best,
        "best_seen_with": entry.best_label,
        "which_misses": list(entry.best_misses),
    }
