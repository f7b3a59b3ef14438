"""The part of `ceph-tuner tune` that holds the lock: from what an interrupted run left to the winner written back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Mapping, Sequence

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.search.transfer import Elsewhere, Here
from ceph_tuner.tune.interrupts import Interrupts
from ceph_tuner.tune.loop import tune
from ceph_tuner.tune.measurement import Canary, TrialRunner
from ceph_tuner.tune.on_cluster import ClusterLookout, JournalledWriter
from ceph_tuner.tune.outcome import TuneOutcome
from ceph_tuner.tune.past import Heading, Lesson, lessons, past_runs, to_resume
from ceph_tuner.tune.search import TuningSearch
from ceph_tuner_cli.elsewhere import gathered, name_of
from ceph_tuner_cli.render import say
from ceph_tuner_cli.tune_page import TuneProgress
from ceph_tuner_cli.tune_parts import TuneRequest, commands_of, work_of
from ceph_tuner_cli.tune_prior import Believed, believed


@dataclass(frozen=True)
class Ran:
    """What a run came to, and what it knew."""

    now: InForce
    """Before the first trial."""
    known: Believed
    transfer: Elsewhere
    search: TuningSearch
    history: History
    began: float
    """Seconds since the epoch; of a run that was gone on with, its first beginning."""
    outcome: TuneOutcome
    commands: List[str]
    """They bring a winner into force that was not left in place; `undo` takes them back."""
    undo: List[str]


def run_locked(connection: Cluster, request: TuneRequest) -> Ran:
    """Tune under the lock: two tuners would measure each other's trials. It is given back however this ends."""
    scenario_slo, target, timing = request.wanted, request.target, request.timing
    with connection.lock() as lock:
        applier = connection.applier(lock, "ceph-tuner tune")
        for undone in applier.recover():
            say([f"taken back what an interrupted run left: change {undone.entry.number}"])
        # now that no trial of an interrupted run is in force any more
        now = connection.in_force(target)
        space, task = request.space(connection, now), request.task(connection, now)
        why = f"tune {scenario_slo.slo.name}"
        writer = JournalledWriter(applier, (target,), connection.release, now.hardware, why, task.moves)
        writer.check()
        canary = None
        if request.canary is not None:
            on_canary = JournalledWriter(
                applier, request.canary.targets, connection.release, now.hardware, f"{why}, canary", task.moves
            )
            on_canary.check()
            canary = Canary(request.canary.name, on_canary)
        belief = Believed()
        if request.prior:
            belief = request.described or believed(connection, scenario_slo, now, timing)
        others = gathered(request.profiles_from, connection.store) if request.elsewhere else []
        heading = Heading(
            scenario_slo.slo.to_dict(),
            target,
            scenario_slo.scenario if connection.run_here is not None else "",
            space.free,
            request.seed,
            now.settings,
            belief.name + name_of(others),
        )
        history = History(connection.store)
        runs = past_runs(history)
        past_run = to_resume(runs, heading) if request.resume else None
        began = connection.clock.now() if past_run is None else past_run.began
        earlier = [run for run in runs if run.began < began] if request.past else []
        with TuneProgress(scenario_slo.slo) as progress, Interrupts(progress.interrupted) as interrupts:
            if belief.model is not None:
                say(["the twin is asked first: it simulates some hundred settings"])
                progress.working("asking the twin")
            with interrupts():
                priors = belief.priors(space, scenario_slo.slo, now, request.seed)
            transfer = Elsewhere(others, Here(connection.release, now.hardware, now.osds, scenario_slo.slo.work), space)
            profiles = connection.release.profiles
            search = TuningSearch(
                space, scenario_slo.slo, task.in_force, profiles, request.seed, request.options, priors, transfer
            )

            def record(trial: Trial) -> None:
                history.add_trial(heading.record(began, trial))

            def learn(baseline: Mapping[str, float]) -> Sequence[Lesson]:
                return lessons(earlier, heading, baseline, began, search.nearest, connection.release)

            lookout = ClusterLookout(connection.commander, connection.clock)
            device_class = Target.parse(target).device_class
            with work_of(connection, scenario_slo, timing, device_class) as work, belief.foretelling(now) as foretell:
                runner = TrialRunner(
                    scenario_slo.slo,
                    work,
                    lookout,
                    writer,
                    connection.clock,
                    progress,
                    interrupts,
                    timing,
                    request.limits,
                    canary,
                )
                try:
                    outcome = tune(task, runner, search, record, past_run.trials if past_run else (), learn, foretell)
                finally:
                    runner.take_back_leftovers()
                commands, undo = commands_of(applier, target, outcome, connection, now)
    return Ran(now, belief, transfer, search, history, began, outcome, commands, undo)
