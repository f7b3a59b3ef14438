"""`ceph-tuner profile`: the profiles that come along, files, and what a cluster has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional

import typer

from ceph_tuner.core.atomic_write import check_free
from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import CLASSES, KNOBS
from ceph_tuner.core.knobs.releases import Release, Settings
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.core.profiles.translation import Translation, translate
from ceph_tuner.files import profile_file
from ceph_tuner.report.words import shown
from ceph_tuner_cli import complete
from ceph_tuner_cli.apply import OlderOption, PolicyOption, apply
from ceph_tuner_cli.cluster_option import (
    AnyClusterOption,
    ClusterOption,
    ForceOption,
    ReleaseOption,
    TargetOption,
    YesOption,
    at_work,
)
from ceph_tuner_cli.profile_page import nine_as_text, page
from ceph_tuner_cli.profiles import (
    can_translate,
    differences,
    era_of,
    level_for,
    notes,
    profile_of_target,
    read,
    read_vouched,
)
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines
from ceph_tuner_cli.tables import Columns, columns
from ceph_tuner_profiles import catalogue

app = typer.Typer(help="Named settings: the built-in ones, files, and what a cluster has.", no_args_is_help=True)

_Profile = typer.Argument(
    help="A file, or a built-in profile such as tentacle/balanced.", autocompletion=complete.profiles
)


@app.command("ls")
def list_profiles(release: Optional[str] = ReleaseOption, form: Format = FormatOption) -> None:
    """List the profiles that come with the program."""
    profiles = [(name, catalogue.load(name)) for name in catalogue.names(era_of(release))]

    def table() -> Columns:
        headings = ("profile", *(name.replace("background_", "") for name in CLASSES))
        rows = columns(*headings, caption="reservation-weight-limit as fractions of the capacity")
        for name, profile in profiles:
            rows.add_row(name, *nine_as_text(profile))
        return rows

    emit([{"profile": name, **profile.to_dict()} for name, profile in profiles], form, table)


@app.command()
def show(
    profile: str = _Profile,
    release: Optional[str] = ReleaseOption,
    cluster: Optional[str] = AnyClusterOption,
    target: Optional[str] = typer.Option(
        None,
        "--target",
        "-t",
        help="With --cluster: the OSDs that it would be for, as of `apply`; else all.",
        autocompletion=complete.targets,
    ),
    form: Format = FormatOption,
) -> None:
    """Show a profile, and what it sets: on its own release, on another one (--release), or on a cluster's OSDs.

    Changes nothing. A target whose OSDs are of several device classes is warned of.
    """
    who = "osd"
    if cluster is not None:
        if release is not None:
            raise InputError("--release", "--cluster beside it", "one of them: a cluster has its own release")
        who = str(Target.parse(target or "osd", "--target"))
        with at_work(cluster, f"asking what {who} is") as connection:
            content, era = read(profile, connection.version), connection.release
            translation: Optional[Translation] = connection.translated(content, who)
    else:
        if target is not None:
            raise InputError("--target", "no --cluster", "both, or neither")
        content = read(profile, release)
        era = era_of(release) or content.release
        translation = (
            translate(content, era, content.hardware, level_for(content, release))
            if can_translate(content, era)
            else None
        )
    document = {**content.to_dict(), "translation": None if translation is None else _plain(translation, era, who)}
    emit(document, form, lambda: page(content))
    if form is Format.table and translation is not None:
        show_lines(_commands(translation.settings, era, who))
        say(notes(translation.notes))


@app.command()
def check(
    files: List[Path] = typer.Argument(help="Profile files."),
    release: Optional[str] = ReleaseOption,
    form: Format = FormatOption,
) -> None:
    """Check files: structure, names, ranges; with --release also whether they carry over to it."""
    documents: List[Dict[str, Any]] = []
    for path in files:
        profile = profile_file.read(path)
        era = era_of(release) or profile.release
        remarks = (
            translate(profile, era, profile.hardware, level_for(profile, release)).notes
            if can_translate(profile, era)
            else ()
        )
        documents.append({"file": str(path), "profile": profile.name, "release": era.name, "notes": list(remarks)})
        if form is Format.table:
            say(notes(remarks))
            show_lines([f"{path}: sound, for {era.title}"])
    if form is not Format.table:
        emit(documents, form)


@app.command()
def diff(
    first: str = _Profile, second: str = _Profile, release: Optional[str] = ReleaseOption, form: Format = FormatOption
) -> None:
    """Show in which knobs two profiles differ; what a profile leaves open has Ceph's default."""
    rows = differences(read(first, release), read(second, release))

    def table() -> Columns:
        difference_table = columns("knob", first, second, comparisons=(first, second))
        for row in rows:
            entry = KNOBS[row["knob"]]
            difference_table.add_row(
                entry.name, *("-" if row[side] is None else shown(entry, row[side]) for side in ("first", "second"))
            )
        return difference_table

    emit(rows, form, table if rows else lambda: "no difference")


@app.command("export")
def export_profile(
    cluster: str = ClusterOption,
    target: str = TargetOption,
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="The file to write; none prints it."),
    name: Optional[str] = typer.Option(None, "--name", help="The profile's name; the cluster's by default."),
    force: bool = ForceOption,
    form: Format = FormatOption,
) -> None:
    """Write what a cluster's OSDs have in force as a profile."""
    if output is not None:
        check_free(output, force)
    with at_work(cluster, f"reading what {target} has") as connection:
        profile = profile_of_target(connection, target, name or _as_name(cluster))
    if output is None:
        # a profile is a YAML file, for people as well
        if form is Format.json:
            emit(profile.to_dict(), form)
        else:
            show_lines([profile_file.to_text(profile).rstrip()])
        return
    profile_file.write(output, profile, force)
    document = {"saved": str(output), "profile": profile.name, "release": profile.release.name}
    emit(document, form, lambda: f"{output}: {profile.name}, for {profile.release.title}")


@app.command("import")
def import_profile(
    profile: str = _Profile,
    cluster: str = ClusterOption,
    target: str = TargetOption,
    yes: bool = YesOption,
    form: Format = FormatOption,
    fleet: Optional[Path] = PolicyOption,
    older: bool = OlderOption,
) -> None:
    """Bring a profile to a cluster, translated to its release: the difference and the commands, then --yes."""
    name = read_vouched(profile, fleet=fleet).profile.name
    apply(profile, [], cluster, target, yes, f"profile {name}", form, fleet, older, None, 0.0)


def _as_name(cluster: str) -> str:
    stem = Path(cluster).stem if "/" in cluster else cluster
    letters = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in stem.lower()).strip("._-")
    return letters[:64] or "exported"


def _commands(settings: Settings, release: Release, who: str) -> List[str]:
    texts = format_settings(settings, release)
    return [f"ceph config set {who} {name} {value}" for name, value in texts.items()]


def _plain(translation: Translation, release: Release, who: str) -> Dict[str, Any]:
    return {
        "release": release.name,
        "target": who,
        "settings": translation.settings,
        "commands": _commands(translation.settings, release, who),
        "notes": list(translation.notes),
    }
