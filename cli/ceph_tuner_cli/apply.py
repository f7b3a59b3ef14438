"""`ceph-tuner apply`: settings onto a target, so that they can be taken back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.cluster.lock_holder import holder_of
from ceph_tuner.cluster.sampler import ClusterSampler, observe
from ceph_tuner.core.ceph.target import classes_of, reach
from ceph_tuner.core.changes.forecast_pairs import (
    SETTLED_S,
    Outcome,
    measured_apart,
    measures_within,
    outcome_record,
    scope_of,
)
from ceph_tuner.core.errors import CommandFailed, InputError, RetryLater, TunerError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE, knob
from ceph_tuner.core.knobs.recovery_limit import LIMIT
from ceph_tuner.core.knobs.settings import Settings, settings_in_force
from ceph_tuner.core.measure.forecast_record import ForecastRecord
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.metrics import Scope
from ceph_tuner.core.measure.quantity import amount, quantity
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.core.profiles.in_force import notes_on_recovery_limit
from ceph_tuner.core.profiles.translation import from_release_units
from ceph_tuner.fleet.portable import Portable
from ceph_tuner.fleet.trust import check_newest, remember
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli import complete, profiles
from ceph_tuner_cli.cluster_option import (
    ClusterOption,
    TargetOption,
    YesOption,
    at_work,
    preview,
    say_leftover,
    say_undone,
    show_commands,
    step_documents,
    step_table,
)
from ceph_tuner_cli.description import read_description
from ceph_tuner_cli.render import Format, FormatOption, console, emit, hint, say, show_lines, warn, working
from ceph_tuner_cli.tables import Columns, columns

PolicyOption = typer.Option(
    None, "--fleet", envvar="CEPH_TUNER_FLEET", help="A fleet file whose trust policy a profile's file has to meet."
)
ModelOption = typer.Option(
    None,
    "--model",
    help="A description of the target (all OSDs, or a device class): what its twin says is shown, and kept.",
)
MeasureOption = typer.Option(
    0.0,
    "--measure",
    min=0,
    max=3600,
    help="With --yes: seconds to measure once it has settled, and to keep beside what the twin said.",
)
OlderOption = typer.Option(False, "--older", help="Also where a newer signed profile of the same origin came before.")


def apply(
    profile: Optional[str] = typer.Argument(
        None, help="A profile: a file, or a built-in one such as balanced.", autocompletion=complete.profiles
    ),
    sets: List[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KNOB=VALUE",
        help="One knob; may be repeated.",
        autocompletion=complete.knobs_to_set,
    ),
    cluster: str = ClusterOption,
    target: str = TargetOption,
    yes: bool = YesOption,
    why: str = typer.Option("", "--why", help="A word for the history."),
    form: Format = FormatOption,
    fleet: Optional[Path] = PolicyOption,
    older: bool = OlderOption,
    model: Optional[Path] = ModelOption,
    measured_s: float = MeasureOption,
) -> None:
    """Set a profile or single knobs: shows the difference and the commands; --yes writes and checks the effect."""
    if profile is None and not sets:
        raise InputError("apply", "neither a profile nor --set", "a profile, or --set KNOB=VALUE")
    if model is not None and not measured_apart(target):
        raise InputError(
            "--model", f"the target {target}, which no window shows by itself", "the target osd or osd/class:CLASS"
        )
    description = None if model is None else read_description(model)
    phase = f"writing to {target}, until its OSDs show it" if yes else f"reading what {target} has"
    with at_work(cluster, phase) as connection:
        if description is not None:
            description = description.for_target(target, str(model), connection.config.places())
        # before anything is taken back, which writes
        settings, portable = wanted(profile, sets, connection, target, fleet, older)
        reason = why or (f"profile {profile}" if profile else "single knobs")
        applier = connection.applier()
        forecast = None
        if description is not None:
            forecast = foretold(description, completed(settings, connection, target), connection)
        if not yes:
            # before the journal is read: what ends meanwhile is not taken for left behind
            claim = holder_of(connection)
            say_leftover(applier.leftover(), claim)
            plan = applier.plan(target, completed(settings, connection, target))
            entry = outcome = None
        else:
            outcome = None
            # under one lock, so that nobody comes between the plan and its steps
            with connection.lock() as lock:
                applier = connection.applier(lock)
                say_undone(applier.recover())
                if portable is not None:
                    # a newer one may have come since
                    check_newest(connection.store, portable, connection.clock.now(), older)
                plan = applier.plan(target, completed(settings, connection, target))
                entry = applier.apply(plan, reason, forecast={} if forecast is None else forecast.to_dict())
                if portable is not None:
                    remember(connection.store, portable)
            if entry is not None and measured_s:
                outcome = measured(connection, measured_s, scope_of(target))
                if outcome is not None:
                    History(connection.store).add_outcome(outcome_record(entry, outcome))
    number = None if entry is None else entry.number
    notes = [] if entry is None or not entry.note else [entry.note]
    warn([*plan.warnings, *notes])
    document: Dict[str, Any] = {
        "cluster": cluster,
        "target": plan.target,
        "osds": list(plan.osds),
        "classes": classes_of(plan.places),
        "steps": step_documents(plan.steps),
        "written": number is not None,
        "change": number,
        "unchecked": notes,
        "forecast": None if forecast is None else forecast.to_dict(),
        "measured": None if outcome is None else {name: one.mean for name, one in outcome.measures.items()},
    }
    if form is Format.table and not plan.steps:
        show_lines([f"{plan.target} of {cluster} has these values already: nothing to write"])
        return
    emit(document, form, lambda: step_table(plan.steps))
    if form is Format.table:
        if forecast is not None:
            console.print(forecast_table(forecast, {} if outcome is None else outcome.measures))
        show_commands(plan.commands)
    if model is None and plan.steps:
        hint(without_model(cluster, target))
    if number is None and plan.steps:
        say([preview(plan.places)])
    elif number is not None:
        where_seen = "seen at the OSDs but for those that are named" if notes else f"seen at {reach(plan.places)}"
        say([f"written as change {number} and {where_seen}; `ceph-tuner rollback --cluster {cluster}` takes it back"])


def without_model(cluster: str, target: str) -> str:
    """Why a change will not be held against a prediction, and what would have it so."""
    if not measured_apart(target):
        return f"no prediction is kept with it: no window shows {target} by itself, as one shows osd or osd/class:CLASS"
    of_target = "" if target == "osd" else f" --target {target}"
    return (
        f"no prediction is kept with it, to be held against what is measured later: --model FILE does so "
        f"(FILE by `ceph-tuner twin describe --cluster {cluster}{of_target} --output FILE`)"
    )


def foretold(description: DescribedCluster, settings: Settings, cluster: Cluster) -> Optional[ForecastRecord]:
    """What the twin of described OSDs says of settings over what they have in force. Raises InputError."""
    # they bring numba and scipy, which who asks no twin does not wait for
    from ceph_tuner.recommend.write_forecast import write_forecasts
    from ceph_tuner.tune.past import written_out
    from ceph_tuner.twin.fit_runs import Runner

    release = cluster.release
    if description.model.release.name != release.name:
        raise InputError(description.name, f"a cluster of {description.model.release.title}", release.title)
    now = cluster.in_force(description.target)
    nine = all(name in settings for name in MCLOCK_NINE)
    own = from_release_units(settings, release, now.hardware) if nine else settings
    with working("asking the twin"), Runner(None) as runner:
        whole = written_out(own, release.profiles, now.settings)
        forecast = write_forecasts(description, runner).of(whole, cluster.clock.now())
    if forecast is None:
        say(["the twin has nothing to say of this: its work is more than it has room for"])
        return None
    return forecast.within(scope_of(description.target))


def measured(cluster: Cluster, seconds: float, scope: Optional[Scope] = None) -> Optional[Outcome]:
    """What the cluster, or a device class of it, shows once it has settled; None where it gave no sample."""
    cluster.clock.sleep(min(SETTLED_S, seconds))
    scopes = () if scope is None else (scope,)
    window, _ = observe(ClusterSampler(cluster.commander, cluster.clock, scopes), cluster.clock, seconds)
    if window is None:
        warn([f"{cluster.name} gave no sample within {seconds:g} s: nothing is kept beside what the twin said"])
        return None
    return Outcome(window.start, window.end, measures_within(window.measures, scope))


def forecast_table(forecast: ForecastRecord, measures: Mapping[str, Measure]) -> Columns:
    """What the twin says, and what was measured where that was done."""
    table = columns("metric", "predicted", f"{forecast.level:.0%} interval", "measured", title="\nThe twin")
    for name, entry in forecast.metrics.items():
        value, ends = amount(name, entry.value, entry.low, entry.high)
        measurement = "" if name not in measures else quantity(name, measures[name].mean)
        inside = name not in measures or entry.holds(measures[name].mean)
        table.add_row(name, value, ends, measurement if inside else f"{measurement} (outside)")
    return table


def wanted(
    profile: Optional[str],
    sets: List[str],
    cluster: Cluster,
    target: str,
    fleet: Optional[Path] = None,
    older: bool = False,
) -> Tuple[Settings, Optional[Portable]]:
    """The profile's settings for this cluster, with single knobs over them, and the file that somebody vouches for."""
    settings: Settings = {}
    portable = None
    if profile is not None:
        source = profiles.read_vouched(profile, cluster.version, fleet)
        portable = source.portable
        if portable is not None:
            check_newest(cluster.store, portable, cluster.clock.now(), older)
        translation = cluster.translated(source.profile, target)
        say(translation.notes)
        settings.update(translation.settings)
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError("--set", f"`{text}`", "KNOB=VALUE")
        settings[name.strip()] = knob(name.strip(), "--set").read(value, f"--set {name.strip()}")
    # of a profile alone its translation says so
    if any(text.partition("=")[0].strip() == LIMIT for text in sets):
        # an OSD that does not answer must not keep anybody from easing a limit
        with suppress(CommandFailed, RetryLater):
            say(notes_on_recovery_limit(settings, target, cluster.commander, cluster.config, cluster.release))
    return settings, portable


def completed(settings: Settings, cluster: Cluster, target: str) -> Settings:
    """Some of the nine mClock values stand for all nine: the others stay as the OSDs have them."""
    rest = [name for name in MCLOCK_NINE if name not in settings]
    if len(rest) in (0, len(MCLOCK_NINE)):
        return settings
    values: Settings = {}
    for _, options in cluster.config.effective_on(cluster.config.osds(target), rest):
        if isinstance(options, TunerError):
            raise options
        own = settings_in_force(options, tuple(rest))
        for name in rest:
            if values.setdefault(name, own[name]) != own[name]:
                raise InputError(
                    "--set",
                    f"some of the nine mClock values, while the OSDs of {target} differ in {name}",
                    "all nine, or a target whose OSDs are alike",
                )
    say([f"the other {len(rest)} mClock values stay as they are"] if values else [])
    return {PROFILE: "custom", **settings, **values}
