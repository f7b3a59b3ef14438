"""`ceph-tuner tune`: from an SLO to settings that are measured, written back and can be undone."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Dict, List, Optional

import typer

from ceph_tuner.core.atomic_write import check_free
from ceph_tuner.core.ceph.target import Target, reach, running
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.guard import GuardLimits
from ceph_tuner.core.goals.slo import wanted_of
from ceph_tuner.core.goals.trial import TrialBudget
from ceph_tuner.files import profile_file, slo_file
from ceph_tuner.optimise import Options
from ceph_tuner_cli import complete
from ceph_tuner_cli.cluster_option import ClusterOption, ForceOption, TargetOption, knobs_in_a_row
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, warn, working


def tune(
    cluster: str = ClusterOption,
    slo: Path = typer.Option(
        ..., "--slo", "-s", help="The SLO file; `ceph-tuner slo metrics` lists what it can be about."
    ),
    trials: int = typer.Option(8, "--trials", "-n", min=1, max=200, help="Settings to try."),
    hours: Optional[float] = typer.Option(None, "--hours", min=0.01, help="Time for all of it."),
    target: str = TargetOption,
    window: float = typer.Option(25.0, "--window", min=5, max=3600, help="Seconds of a measurement."),
    settle: float = typer.Option(5.0, "--settle", min=0, max=600, help="Seconds between a write and its measurement."),
    repeats: int = typer.Option(1, "--repeats", min=0, max=10, help="How often the best are measured again."),
    profiles: bool = typer.Option(False, "--profiles", help="Measure the built-in profiles as well, to compare with."),
    knobs: Optional[str] = typer.Option(
        None,
        "--knobs",
        help="Knobs to search, with commas; by default the SLO's.",
        autocompletion=complete.knobs_in_a_row,
    ),
    safe_probability: float = typer.Option(
        Options.safe_probability, "--safe-probability", help="How surely a trial must keep every hard objective."
    ),
    step_limit: float = typer.Option(
        Options.step_limit, "--step-limit", help="Furthest step from the best so far, as a share of a knob's range."
    ),
    violation_budget: int = typer.Option(
        2, "--violation-budget", min=0, help="Trials that may break a hard objective before the search freezes."
    ),
    model: Optional[Path] = typer.Option(
        None,
        "--model",
        help="The description (`ceph-tuner twin describe`) of the target's OSDs: the twin is asked first.",
    ),
    prior: bool = typer.Option(
        True, "--prior/--no-prior", help="Whether a model is asked first: a lab's own twin, else mClock's rules."
    ),
    profile_from: Optional[List[Path]] = typer.Option(
        None, "--profile-from", help="A profile of another cluster, to begin with where that is alike; may be repeated."
    ),
    elsewhere: bool = typer.Option(
        True, "--elsewhere/--no-elsewhere", help="Whether profiles of other clusters are considered at all."
    ),
    past: bool = typer.Option(True, "--past/--no-past", help="Whether to learn from earlier runs on this target."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the last run on this target, from its history."),
    scenario: Optional[str] = typer.Option(
        None, "--scenario", help="A lab's load; by default the SLO file's.", autocompletion=complete.scenarios
    ),
    gross: float = typer.Option(2.0, "--gross", help="A client objective missed by this factor ends a trial."),
    seed: int = typer.Option(1, "--seed", min=0, help="The same seed proposes the same for the same measurements."),
    canary: Optional[str] = typer.Option(
        None,
        "--canary",
        metavar="host:NAME",
        help="Where settings are written first; `none`, or rack:NAME. By default a host, above 50 OSDs.",
    ),
    save: Optional[Path] = typer.Option(None, "--save", help="Write the winner as a profile file."),
    force: bool = ForceOption,
    write_back: bool = typer.Option(True, "--write-back/--no-write-back", help="Whether the winner stays in place."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Consent to writes on a cluster that is no lab."),
    explain: bool = typer.Option(False, "--explain", help="Show all that the search has learnt, curves included."),
    form: Format = FormatOption,
) -> int:
    """Try safe settings under load, keep the best: measured, guarded, every trial taken back, the winner written back.

    Exit code 1 where nothing is better than what is in force.
    """
    # a second of imports, which --help and completion do not wait for
    from ceph_tuner.tune.measurement import Timing
    from ceph_tuner.tune.past import keep_learnt
    from ceph_tuner_cli.tune_page import announcement, page, what_to_do
    from ceph_tuner_cli.tune_parts import TuneRequest, canary_of, capacity_accounts
    from ceph_tuner_cli.tune_prior import ModelFile
    from ceph_tuner_cli.tune_profile import tuned_profile
    from ceph_tuner_cli.tune_run import run_locked

    scenario_slo = slo_file.read(slo)
    if scenario_slo.calendar is not None:
        say([f"objectives of the policy {scenario_slo.policy}, which holds now, for the whole run"])
    scenario_slo = replace(scenario_slo, slo=wanted_of(scenario_slo.slo, Target.parse(target).device_class))
    model_file = None if model is None else ModelFile.read(model)
    if save is not None:
        check_free(save, force)
    request = TuneRequest(
        wanted=scenario_slo if scenario is None else replace(scenario_slo, scenario=scenario),
        target=target,
        knobs=knobs_in_a_row(knobs),
        budget=TrialBudget(trials, repeats=repeats, hours=hours),
        timing=Timing(settle, window),
        limits=_limits(gross),
        options=_options(safe_probability, step_limit, violation_budget),
        seed=seed,
        prior=prior,
        profiles_from=profile_from or [],
        elsewhere=elsewhere,
        past=past,
        resume=resume,
        write_back=write_back,
        compare=profiles,
    )
    with working(f"{cluster}: connecting"):
        connection = open_cluster(cluster)
    with closing(connection):
        with working(f"{cluster}: reading what {target} has"):
            now = connection.in_force(target)
        # knobs that the release ignores are refused before anybody has to wait for the lock
        space = request.space(connection, now)
        places = connection.config.places()
        described = None if model_file is None else model_file.believed(connection.release, target, places)
        request = replace(request, canary=canary_of(canary, target, places), described=described)
        if connection.run_here is None and not yes:
            reached = reach(running(target, places))
            task = request.task(connection, now)
            first = None if request.canary is None else request.canary.name
            words = announcement(cluster, task, request.timing, space, request.options, reached, first)
            emit({"cluster": cluster, "target": target, "would": words.splitlines()}, form, lambda: words)
            return 0
        ran = run_locked(connection, request)
        now, outcome = ran.now, ran.outcome
        classes, explanation = capacity_accounts(outcome, now, ran.known), None
        # the lock is free again: nobody waits for it meanwhile
        # an interrupt leaves out what was learnt, not what was found
        with suppress(KeyboardInterrupt), working("working out what was learnt"):
            explanation = ran.search.explained(outcome.misses_hard, explain or form is not Format.table)
            if explanation is not None:
                try:
                    keep_learnt(ran.history, ran.began, explanation.to_dict(), [asdict(entry) for entry in classes])
                except TunerError as fault:
                    warn([f"what was learnt is not kept in the cluster: {fault}"])
    document: Dict[str, Any] = {
        **outcome.to_dict(),
        "cluster": cluster,
        "target": target,
        "release": connection.release.name,
        "before": {"profile": now.built_in, "settings": dict(now.settings)},
        "commands": ran.commands,
        "undo": ran.undo,
        "capacity": [asdict(entry) for entry in classes],
        "explanation": None if explanation is None else explanation.to_dict(),
        "elsewhere": [entry.to_dict() for entry in ran.transfer.judged],
    }
    unsaved: Optional[TunerError] = None
    if save is not None and outcome.choice.better:
        try:
            profile_file.write(save, tuned_profile(outcome, request.wanted, connection, now), force)
            document["saved"] = str(save)
        except TunerError as fault:
            # what took hours to find is shown first
            unsaved = fault
    emit(document, form, lambda: page(outcome, connection.release, now, classes, explanation, explain, ran.transfer))
    if form is Format.table:
        show_lines(what_to_do(outcome, cluster, ran.commands, document.get("saved")))
    if unsaved is not None:
        raise unsaved
    return 0 if outcome.choice.better and not outcome.withdrawn else 1


def _limits(gross: float) -> GuardLimits:
    try:
        return GuardLimits(gross=gross)
    except ValueError:
        raise InputError("--gross", f"{gross:g}", "a factor above 1") from None


def _options(safe_probability: float, step_limit: float, violation_budget: int) -> Options:
    if not 0 <= safe_probability < 1:
        raise InputError("--safe-probability", f"{safe_probability:g}", "at least 0 and below 1")
    if not 0 < step_limit <= 1:
        raise InputError("--step-limit", f"{step_limit:g}", "above 0 and at most 1")
    return Options(safe_probability=safe_probability, step_limit=step_limit, violation_budget=violation_budget)
