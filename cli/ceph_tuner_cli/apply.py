"""`ceph-tuner apply`: settings onto a target, so that they can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.cluster.lock_holder import holder_of
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE, knob
from ceph_tuner.core.knobs.settings import Settings, settings_in_force
from ceph_tuner.fleet.portable import Portable
from ceph_tuner.fleet.trust import check_newest, remember
from ceph_tuner_cli import complete, profiles
from ceph_tuner_cli.cluster_option import (
    ClusterOption,
    TargetOption,
    YesOption,
    at_work,
    say_leftover,
    say_undone,
    show_commands,
    step_documents,
    step_table,
)
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, warn

PolicyOption = typer.Option(
    None, "--fleet", envvar="CEPH_TUNER_FLEET", help="A fleet file whose trust policy a profile's file has to meet."
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
) -> None:
    """Set a profile or single knobs: shows the difference and the commands; --yes writes and checks the effect."""
    if profile is None and not sets:
        raise InputError("apply", "neither a profile nor --set", "a profile, or --set KNOB=VALUE")
    doing = f"writing to {target}, until its OSDs show it" if yes else f"reading what {target} has"
    with at_work(cluster, doing) as opened:
        # before anything is taken back, which writes
        settings, portable = wanted(profile, sets, opened, target, fleet, older)
        reason = why or (f"profile {profile}" if profile else "single knobs")
        applier = opened.applier()
        if not yes:
            # before the journal is read: what ends meanwhile is not taken for left behind
            claim = holder_of(opened)
            say_leftover(applier.leftover(), claim)
            plan = applier.plan(target, completed(settings, opened, target))
            entry = None
        else:
            # under one lock, so that nobody comes between the plan and its steps
            with opened.lock() as lock:
                applier = opened.applier(lock)
                say_undone(applier.recover())
                if portable is not None:
                    # a newer one may have come since
                    check_newest(opened.store, portable, older)
                plan = applier.plan(target, completed(settings, opened, target))
                entry = applier.apply(plan, reason)
                if portable is not None:
                    remember(opened.store, portable)
    number = None if entry is None else entry.number
    unchecked = [] if entry is None or not entry.note else [entry.note]
    warn([*plan.warnings, *unchecked])
    document: Dict[str, Any] = {
        "cluster": cluster,
        "target": plan.target,
        "osds": list(plan.osds),
        "steps": step_documents(plan.steps),
        "written": number is not None,
        "change": number,
        "unchecked": unchecked,
    }
    if form is Format.table and not plan.steps:
        show_lines([f"{plan.target} of {cluster} has these values already: nothing to write"])
        return
    emit(document, form, lambda: step_table(plan.steps))
    if form is Format.table:
        show_commands(plan.commands)
    if number is None and plan.steps:
        say(["nothing is changed: add --yes to write it"])
    elif number is not None:
        count = f"{len(plan.osds)} OSD{'s' if len(plan.osds) != 1 else ''}"
        where_seen = "seen at the OSDs but for those that are named" if unchecked else f"seen at {count}"
        say([f"written as change {number} and {where_seen}; `ceph-tuner rollback --cluster {cluster}` takes it back"])


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
        vouched = profiles.read_vouched(profile, cluster.version, fleet)
        portable = vouched.portable
        if portable is not None:
            check_newest(cluster.store, portable, older)
        translation = profiles.for_cluster(vouched.profile, cluster, target)
        say(translation.notes)
        settings.update(translation.settings)
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError("--set", f"`{text}`", "KNOB=VALUE")
        settings[name.strip()] = knob(name.strip(), "--set").read(value, f"--set {name.strip()}")
    return settings, portable


def completed(settings: Settings, cluster: Cluster, target: str) -> Settings:
    """Some of the nine mClock values stand for all nine: the others stay as the OSDs have them."""
    missing = [name for name in MCLOCK_NINE if name not in settings]
    if len(missing) in (0, len(MCLOCK_NINE)):
        return settings
    values: Settings = {}
    for _, options in cluster.config.effective_on(cluster.config.osds(target), missing):
        if isinstance(options, TunerError):
            raise options
        own = settings_in_force(options, tuple(missing))
        for name in missing:
            if values.setdefault(name, own[name]) != own[name]:
                raise InputError(
                    "--set",
                    f"some of the nine mClock values, while the OSDs of {target} differ in {name}",
                    "all nine, or a target whose OSDs are alike",
                )
    say([f"the other {len(missing)} mClock values stay as they are"] if values else [])
    return {PROFILE: "custom", **settings, **values}
