"""`ceph-tuner tune`: from an SLO to settings that are measured, written back and can be undone."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import typer

from ceph_tuner.applier import Applier
from ceph_tuner.clusters import open_cluster
from ceph_tuner.clusters.machine import SystemClock, may_live, this_process
from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.clusters.sampler import ClusterSampler
from ceph_tuner.errors import InputError
from ceph_tuner.files import profile_file, slo_file
from ceph_tuner.guard import Limits
from ceph_tuner.history import History
from ceph_tuner.knobs import PROFILE
from ceph_tuner.lab.recipes import options_for_window
from ceph_tuner.lab.scenarios import scenario as make_scenario
from ceph_tuner.lock import Lock
from ceph_tuner.profile import Profile
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.objective import Score
from ceph_tuner.search.optimiser import Optimiser
from ceph_tuner.search.skopt_optimiser import SkoptOptimiser
from ceph_tuner.search.space import Space, space_for
from ceph_tuner.translate import to_release_units
from ceph_tuner.trial import Budget, Trial
from ceph_tuner.tuning import Work
from ceph_tuner.tuning.interrupts import Interrupts
from ceph_tuner.tuning.live_work import LiveWork
from ceph_tuner.tuning.loop import Outcome, Task
from ceph_tuner.tuning.loop import tune as run_tuning
from ceph_tuner.tuning.measuring import Measuring, Timing
from ceph_tuner.tuning.on_cluster import ClusterLookout, InForce, JournalledWriter, in_force
from ceph_tuner_cli.render import Format, FormatOption, console, emit, messages
from ceph_tuner_cli.tune_page import TuneProgress, page, what_to_do


def tune(
    cluster: str = typer.Option(..., "--cluster", "-c", help="A lab, a path of a ceph.conf, or `ceph`."),
    slo: Path = typer.Option(..., "--slo", "-s", help="The SLO file (docs/slo.md)."),
    trials: int = typer.Option(8, "--trials", "-n", min=1, max=200, help="Settings to try."),
    target: str = typer.Option("osd", "--target", "-t", help="osd, osd/class:…, osd/host:…, osd/rack:… or osd.N."),
    window: float = typer.Option(25.0, "--window", min=5, max=3600, help="Seconds of a measurement."),
    settle: float = typer.Option(5.0, "--settle", min=0, max=600, help="Seconds between a write and its measurement."),
    repeats: int = typer.Option(1, "--repeats", min=0, max=10, help="How often the best are measured again."),
    knobs: Optional[str] = typer.Option(None, "--knobs", help="Knobs to search, with commas; by default the SLO's."),
    scenario: Optional[str] = typer.Option(None, "--scenario", help="A lab's load; by default the SLO file's."),
    gross: float = typer.Option(2.0, "--gross", help="A client objective missed by this factor ends a trial."),
    seed: int = typer.Option(1, "--seed", min=0, help="The same seed proposes the same for the same measurements."),
    save: Optional[Path] = typer.Option(None, "--save", help="Write the winner as a profile file."),
    force: bool = typer.Option(False, "--force", help="Replace the profile file if there is one."),
    write_back: bool = typer.Option(True, "--write-back/--no-write-back", help="Whether the winner stays in place."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Consent to writes on a cluster that is no lab."),
    form: Format = FormatOption,
) -> int:
    """Try settings under load, keep the best: measured, guarded, every trial taken back, the winner written back."""
    wanted = slo_file.read(slo)
    limits = _limits(gross)
    if save is not None:
        _check_free(save, force)
    with ExitStack() as stack:
        opened = open_cluster(cluster)
        stack.callback(opened.close)
        now = in_force(opened, target)
        space = space_for(opened.release, wanted.slo.work, now.settings, _names(knobs))
        if scenario is not None:
            wanted = replace(wanted, scenario=scenario)
        task = Task(
            wanted.slo,
            opened.release.profiles,
            now.settings,
            now.profile,
            Budget(trials, repeats=repeats),
            write_back,
        )
        timing = Timing(settle, window)
        if opened.lab is None and not yes and write_back:
            messages.print(_announcement(cluster, task, timing, space), markup=False, soft_wrap=True)
            return 0
        clock = SystemClock()
        lock = Lock(opened.store, clock, this_process(), may_live)
        applier = Applier(opened.config, opened.store, clock, lock, opened.release, "ceph-tuner tune")
        # held for the whole run: two tuners would measure each other's trials
        stack.enter_context(lock)
        for undone in applier.recover():
            messages.print(f"taken back what an interrupted run left: change {undone.entry.number}", markup=False)
        work = _work(opened, wanted, timing, clock, stack)
        progress = stack.enter_context(TuneProgress(wanted.slo))
        interrupts = stack.enter_context(Interrupts(progress.interrupted))
        writer = JournalledWriter(applier, target, opened.release, now.hardware, f"tune {wanted.slo.name}")
        lookout = ClusterLookout(opened.commander, clock)
        measuring = Measuring(wanted.slo, work, lookout, writer, clock, progress, interrupts, timing, limits)
        history = History(opened.store)

        def optimiser_for(baseline: Mapping[str, float]) -> Optimiser:
            return SkoptOptimiser(space, Score(wanted.slo, baseline), informed_designs(space, wanted.slo.work), seed)

        def record(trial: Trial) -> None:
            history.add_trial({**trial.to_dict(), "slo": wanted.slo.to_dict(), "target": target})

        outcome = run_tuning(task, measuring, optimiser_for, record)
        commands = [] if outcome.written else _commands(applier, target, outcome, opened, now)
    document: Dict[str, Any] = {**outcome.to_dict(), "cluster": cluster, "target": target, "commands": commands}
    if save is not None and outcome.choice.better:
        profile_file.write(save, _profile(outcome, wanted, opened, now), force)
        document["saved"] = str(save)
    emit(document, form, lambda: page(outcome, opened.release, now))
    if form is Format.table:
        for line in what_to_do(outcome, cluster, commands, document.get("saved")):
            console.print(line, markup=False, soft_wrap=True)
    return 0 if outcome.choice.better and not outcome.withdrawn else 1


def _names(knobs: Optional[str]) -> Optional[List[str]]:
    if knobs is None:
        return None
    names = [name.strip() for name in knobs.split(",") if name.strip()]
    if not names:
        raise InputError("--knobs", repr(knobs), "names of knobs, with commas")
    return names


def _limits(gross: float) -> Limits:
    try:
        return Limits(gross=gross)
    except ValueError:
        raise InputError("--gross", f"{gross:g}", "a factor above 1") from None


def _check_free(save: Path, force: bool) -> None:
    """Say before the trials, not after them, that the file cannot be written."""
    if save.exists() and not force:
        raise InputError(str(save), "a file of that name", "another name, or --force to replace it")
    if not save.absolute().parent.is_dir():
        raise InputError(str(save), f"no directory {save.parent}", "a directory that exists")
    if not os.access(save.absolute().parent, os.W_OK):
        raise InputError(str(save), "no permission to write there", "a directory to write to")


def _work(opened: Cluster, wanted: slo_file.SloFile, timing: Timing, clock: SystemClock, stack: ExitStack) -> Work:
    if opened.lab is not None and wanted.scenario:
        options = options_for_window(wanted.scenario, wanted.options, timing.settle + timing.window)
        return stack.enter_context(make_scenario(wanted.scenario, opened.lab, **options))
    if wanted.scenario and opened.lab is None:
        messages.print(f"{opened.name} is no lab: its own load is measured, no scenario is started", markup=False)
    return LiveWork(ClusterSampler(opened.commander, clock.now), clock)


def _announcement(cluster: str, task: Task, timing: Timing, space: Space) -> str:
    profiles = [name for name in task.profiles if name != task.profile_in_force]
    runs = 1 + len(profiles) + task.budget.trials + (task.budget.finalists + 1) * task.budget.repeats + 1
    minutes = runs * (timing.settle + timing.window + 5) / 60
    return (
        f"{cluster} is no lab, so nothing was changed. With --yes this measures the settings in force and "
        f"{', '.join(profiles)}, tries {task.budget.trials} settings of {len(space.free)} knobs "
        f"({', '.join(space.free)}), one after the other and each taken back, and writes the winner: "
        f"about {minutes:.0f} minutes under the cluster's own load. --no-write-back takes the winner back as well."
    )


def _commands(applier: Applier, target: str, outcome: Outcome, opened: Cluster, now: InForce) -> List[str]:
    """Give the exact commands for a winner that was not left in place."""
    if not outcome.choice.better or not outcome.settings:
        return []
    return applier.plan(target, to_release_units(outcome.settings, opened.release, now.hardware)).commands


def _profile(outcome: Outcome, wanted: slo_file.SloFile, opened: Cluster, now: InForce) -> Profile:
    """Make a profile of the winner, with what was measured as its evidence."""
    named = outcome.settings.get(PROFILE)
    built_in = named in opened.release.profiles
    settings = opened.release.profiles[str(named)] if built_in else outcome.settings
    best = outcome.best_built_in
    evidence: Dict[str, Any] = {
        "measured": _rounded(outcome.choice.winner.means),
        "repeats": outcome.choice.winner.repeats,
        "before": _rounded(outcome.baseline),
        "verdicts": [f"{v.objective.text}: {'met' if v.met else 'missed'}" for v in outcome.choice.verdicts],
    }
    if best is not None:
        evidence["best_built_in"] = {"profile": best.label, "measured": _rounded(best.means)}
    return Profile.make(
        str(named) if built_in else f"tuned-{wanted.slo.name}"[:64],
        opened.release,
        {name: value for name, value in settings.items() if name != PROFILE},
        version=opened.version,
        built_in=built_in,
        description=f"{outcome.choice.reason} ({outcome.choice.winner.label})",
        hardware=now.hardware,
        osds=now.osds,
        workload=wanted.scenario or "the cluster's own",
        slos=(wanted.slo.to_dict(),),
        evidence=(evidence,),
    )


def _rounded(means: Mapping[str, float]) -> Dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in means.items()}
