"""`ceph-tuner tune`: from an SLO to settings that are measured, written back and can be undone."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

import typer

from ceph_tuner.bayesian import Options
from ceph_tuner.clusters import open_cluster
from ceph_tuner.errors import InputError, TunerError
from ceph_tuner.files import profile_file, slo_file
from ceph_tuner.files.writing import check_free
from ceph_tuner.guard import Limits
from ceph_tuner.history import History
from ceph_tuner.trial import Budget, Trial
from ceph_tuner_cli import complete
from ceph_tuner_cli.cluster_option import ClusterOption, ForceOption, TargetOption, knobs_in_a_row
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, warn, working

if TYPE_CHECKING:
    from ceph_tuner.tuning.past import Lesson


def tune(
    cluster: str = ClusterOption,
    slo: Path = typer.Option(..., "--slo", "-s", help="The SLO file (docs/slo.md)."),
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
        None, "--model", help="The cluster's description (docs/recommend.md): the twin is asked first."
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
    from ceph_tuner.search.transfer import Elsewhere, Here
    from ceph_tuner.tuning.interrupts import Interrupts
    from ceph_tuner.tuning.loop import tune as run_tuning
    from ceph_tuner.tuning.measuring import Measuring, Timing
    from ceph_tuner.tuning.on_cluster import ClusterLookout, JournalledWriter, in_force
    from ceph_tuner.tuning.past import Heading, keep_learnt, lessons, past_runs, to_resume
    from ceph_tuner.tuning.searching import TuningSearch
    from ceph_tuner_cli.elsewhere import gathered, name_of
    from ceph_tuner_cli.tune_page import TuneProgress, announcement, page, what_to_do
    from ceph_tuner_cli.tune_parts import classes_of, commands_of, space_of, task_of, work_of
    from ceph_tuner_cli.tune_prior import Believed, believed
    from ceph_tuner_cli.tune_profile import tuned_profile

    wanted = slo_file.read(slo)
    limits, options = _limits(gross), _options(safe_probability, step_limit, violation_budget)
    if save is not None:
        check_free(save, force)
    if scenario is not None:
        wanted = replace(wanted, scenario=scenario)
    budget, timing = Budget(trials, repeats=repeats, hours=hours), Timing(settle, window)

    with ExitStack() as connection:
        with working(f"{cluster}: reading what {target} has"):
            opened = open_cluster(cluster)
            connection.callback(opened.close)
            now = in_force(opened, target)
        space = space_of(opened, wanted, now, knobs_in_a_row(knobs))
        if opened.lab is None and not yes:
            task = task_of(wanted, opened, now, budget, write_back, profiles)
            words = announcement(cluster, task, timing, space, options)
            emit({"cluster": cluster, "target": target, "would": words.splitlines()}, form, lambda: words)
            return 0
        # it ends before what was learnt is worked out, so that nobody waits for the lock meanwhile
        with ExitStack() as stack:
            lock = opened.lock()
            applier = opened.applier(lock, "ceph-tuner tune")
            # held for the whole run: two tuners would measure each other's trials
            stack.enter_context(lock)
            for undone in applier.recover():
                say([f"taken back what an interrupted run left: change {undone.entry.number}"])
            # now that no trial of an interrupted run is in force any more
            now = in_force(opened, target)
            space = space_of(opened, wanted, now, knobs_in_a_row(knobs))
            task = task_of(wanted, opened, now, budget, write_back, profiles)
            known = believed(opened, wanted, now, timing, model) if prior else Believed()
            others = gathered(profile_from or [], opened.store) if elsewhere else []
            heading = Heading(
                wanted.slo.to_dict(),
                target,
                wanted.scenario if opened.lab is not None else "",
                space.free,
                seed,
                now.settings,
                known.name + name_of(others),
            )
            history = History(opened.store)
            runs = past_runs(history)
            resumed = to_resume(runs, heading) if resume else None
            began = opened.clock.now() if resumed is None else resumed.began
            progress = stack.enter_context(TuneProgress(wanted.slo))
            interrupts = stack.enter_context(Interrupts(progress.interrupted))
            if known.model is not None:
                say(["the twin is asked first: it simulates some hundred settings"])
                progress.working("asking the twin")
            with interrupts():
                priors = known.priors(space, wanted.slo, now, seed)
            transfer = Elsewhere(others, Here(opened.release, now.hardware, now.osds, wanted.slo.work), space)
            search = TuningSearch(
                space, wanted.slo, task.in_force, opened.release.profiles, seed, options, priors, transfer
            )
            work = work_of(opened, wanted, timing, stack)
            writer = JournalledWriter(applier, target, opened.release, now.hardware, f"tune {wanted.slo.name}")
            lookout = ClusterLookout(opened.commander, opened.clock)
            measuring = Measuring(wanted.slo, work, lookout, writer, opened.clock, progress, interrupts, timing, limits)
            earlier = [run for run in runs if run.began < began] if past else []

            def record(trial: Trial) -> None:
                history.add_trial(heading.record(began, trial))

            def learn(baseline: Mapping[str, float]) -> Sequence[Lesson]:
                return lessons(earlier, heading, baseline, began, search.nearest, opened.release)

            outcome = run_tuning(task, measuring, search, record, resumed.trials if resumed else (), learn)
            commands, undo = ([], []) if outcome.written else commands_of(applier, target, outcome, opened, now)
        classes, told = classes_of(outcome, now, known), None
        # what was found is shown, whoever does not want to wait for what was learnt
        with suppress(KeyboardInterrupt), working("working out what was learnt"):
            told = search.explained(outcome.misses_hard, explain or form is not Format.table)
            if told is not None:
                try:
                    keep_learnt(history, began, told.to_dict(), [asdict(entry) for entry in classes])
                except TunerError as fault:
                    warn([f"what was learnt is not kept in the cluster: {fault}"])
    document: Dict[str, Any] = {
        **outcome.to_dict(),
        "cluster": cluster,
        "target": target,
        "release": opened.release.name,
        "before": {"profile": now.profile, "settings": dict(now.settings)},
        "commands": commands,
        "undo": undo,
        "capacity": [asdict(entry) for entry in classes],
        "explanation": None if told is None else told.to_dict(),
        "elsewhere": [entry.to_dict() for entry in transfer.judged],
    }
    if save is not None and outcome.choice.better:
        profile_file.write(save, tuned_profile(outcome, wanted, opened, now), force)
        document["saved"] = str(save)
    emit(document, form, lambda: page(outcome, opened.release, now, classes, told, explain, transfer))
    if form is Format.table:
        show_lines(what_to_do(outcome, cluster, commands, document.get("saved")))
    return 0 if outcome.choice.better and not outcome.withdrawn else 1


def _limits(gross: float) -> Limits:
    try:
        return Limits(gross=gross)
    except ValueError:
        raise InputError("--gross", f"{gross:g}", "a factor above 1") from None


def _options(safe_probability: float, step_limit: float, violation_budget: int) -> Options:
    if not 0 <= safe_probability < 1:
        raise InputError("--safe-probability", f"{safe_probability:g}", "at least 0 and below 1")
    if not 0 < step_limit <= 1:
        raise InputError("--step-limit", f"{step_limit:g}", "above 0 and at most 1")
    return Options(safe_probability=safe_probability, step_limit=step_limit, violation_budget=violation_budget)
