"""`ceph-tuner profile`: the profiles that come along, files, and what a cluster has."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import typer
from rich.table import Table

from ceph_tuner.clusters import open_cluster
from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.cost import allocation
from ceph_tuner.errors import InputError
from ceph_tuner.files import profile_file
from ceph_tuner.in_force import hardware_of, profile_in_force
from ceph_tuner.knobs import CLASSES, KNOBS, MCLOCK_NINE
from ceph_tuner.profile import Profile
from ceph_tuner.releases import RELEASES, Release, Settings, release_of
from ceph_tuner.settings import format_settings, shares
from ceph_tuner.translate import Translation, to_release_units, translate
from ceph_tuner_cli.knobs import shown
from ceph_tuner_cli.render import Format, FormatOption, console, emit, messages
from ceph_tuner_profiles import catalogue

app = typer.Typer(help="Named settings: the built-in ones, files, and what a cluster has.", no_args_is_help=True)

_ReleaseOption = typer.Option(
    None, "--release", "-r", help=f"A version such as 18.2.7, or one of {', '.join(RELEASES)}."
)
_ClusterOption = typer.Option(..., "--cluster", "-c", help="A lab, a path of a ceph.conf, or `ceph`.")
_TargetOption = typer.Option("osd", "--target", "-t", help="osd, osd/class:…, osd/host:…, osd/rack:… or osd.N.")
_AS_IT_IS: Dict[str, Any] = {"markup": False, "soft_wrap": True}
_NAME = "A file, or a built-in profile such as tentacle/balanced."


@app.command("ls")
def list_profiles(release: Optional[str] = _ReleaseOption, form: Format = FormatOption) -> None:
    """List the profiles that come with the program."""
    era = _era(release)
    found = [(name, catalogue.load(name)) for name in catalogue.names(era)]

    def table() -> Table:
        made = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("profile", *CLASSES):
            made.add_column(heading.replace("background_", ""), no_wrap=True)
        for name, profile in found:
            made.add_row(name, *_shares(profile))
        made.caption = "reservation-weight-limit as fractions of the capacity"
        return made

    emit([{"profile": name, **profile.to_dict()} for name, profile in found], form, table)


@app.command()
def show(
    profile: str = typer.Argument(help=_NAME),
    release: Optional[str] = _ReleaseOption,
    form: Format = FormatOption,
) -> None:
    """Show a profile, and what it sets on a release (its own, unless another one is named)."""
    found = read(profile, release)
    era = _era(release) or found.release
    translation = translate(found, era, found.hardware) if _can_translate(found, era) else None
    document = {**found.to_dict(), "translation": None if translation is None else _plain(translation, era)}
    emit(document, form, lambda: _page(found, era, translation))
    if form is Format.table and translation is not None:
        for command in _commands(translation.settings, era):
            console.print(command, soft_wrap=True, markup=False)
        _say(translation.notes)


@app.command()
def check(
    files: List[Path] = typer.Argument(help="Profile files."),
    release: Optional[str] = _ReleaseOption,
) -> None:
    """Check files: structure, names, ranges; with --release also whether they carry over to it."""
    for path in files:
        found = profile_file.read(path)
        era = _era(release) or found.release
        if _can_translate(found, era):
            _say(translate(found, era, found.hardware).notes)
        console.print(f"{path}: sound, for {era.title}", **_AS_IT_IS)


@app.command()
def diff(
    first: str = typer.Argument(help=_NAME),
    second: str = typer.Argument(help=_NAME),
    release: Optional[str] = _ReleaseOption,
    form: Format = FormatOption,
) -> None:
    """Show in which knobs two profiles differ; what a profile leaves open has Ceph's default."""
    one, other = read(first, release), read(second, release)
    rows = differences(one, other)

    def table() -> Table:
        made = Table(box=None, pad_edge=False, header_style="bold")
        made.add_column("knob", no_wrap=True)
        for heading in (first, second):
            made.add_column(heading, overflow="fold")
        for row in rows:
            entry = KNOBS[row["knob"]]
            made.add_row(
                entry.name, *("-" if row[side] is None else shown(entry, row[side]) for side in ("first", "second"))
            )
        return made

    if form is Format.table and not rows:
        console.print("no difference")
        return
    emit(rows, form, table)


@app.command("export")
def export_profile(
    cluster: str = _ClusterOption,
    target: str = _TargetOption,
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="The file to write; none prints it."),
    name: Optional[str] = typer.Option(None, "--name", help="The profile's name; the cluster's by default."),
    force: bool = typer.Option(False, "--force", help="Replace the file if there is one."),
) -> None:
    """Write what a cluster's OSDs have in force as a profile."""
    with closing(open_cluster(cluster)) as opened:
        found = in_force(opened, target, name or _as_name(cluster))
    if output is None:
        print(profile_file.to_text(found), end="")  # noqa: T201 - a file's text, not for people
        return
    profile_file.write(output, found, force)
    messages.print(f"{output}: {found.name}, for {found.release.title}", **_AS_IT_IS)


@app.command("import")
def import_profile(
    profile: str = typer.Argument(help=_NAME),
    cluster: str = _ClusterOption,
    target: str = _TargetOption,
    yes: bool = typer.Option(False, "--yes", "-y", help="Write it; without, only show what would be written."),
) -> None:
    """Bring a profile to a cluster, translated to its release: the difference and the commands, then --yes."""
    found = read(profile)
    with closing(open_cluster(cluster)) as opened:
        translation = for_cluster(found, opened, target)
        applier = opened.applier()
        plan = applier.plan(target, translation.settings)
        _say((*translation.notes, *plan.warnings))
        if not plan.steps:
            console.print(f"{target} of {cluster} has it already", **_AS_IT_IS)
            return
        for step in plan.steps:
            console.print(f"{step.who} {step.name}: {_or_nothing(step.old)} -> {_or_nothing(step.new)}", **_AS_IT_IS)
        for command in plan.commands:
            console.print(command, **_AS_IT_IS)
        if not yes:
            messages.print("nothing is changed: add --yes to write it", **_AS_IT_IS)
            return
        applier.apply(plan, why=f"profile {found.name}")
        messages.print(f"written, and seen at {len(plan.osds)} OSDs; `ceph-tuner rollback` takes it back", **_AS_IT_IS)


def _or_nothing(text: Optional[str]) -> str:
    return "nothing" if text is None else text


def read(text: str, release: Optional[str] = None) -> Profile:
    """Read a file, or a profile that comes along (`balanced` alone where the release is known)."""
    if os.path.sep not in text and not text.endswith((".yaml", ".yml")) and not os.path.isfile(text):
        return catalogue.load(text, _era(release))
    if text in catalogue.names():
        return catalogue.load(text)
    return profile_file.read(text)


def differences(one: Profile, other: Profile) -> List[Dict[str, Any]]:
    """Knobs in which two profiles differ, with both values; a default where a profile leaves it open."""
    rows = []
    for name, entry in KNOBS.items():
        if name not in one.settings and name not in other.settings:
            continue
        values = [each.settings.get(name, entry.default(each.release)) for each in (one, other)]
        if values[0] != values[1]:
            rows.append({"knob": name, "first": values[0], "second": values[1]})
    return rows


def in_force(cluster: Cluster, target: str, name: str) -> Profile:
    """Make a profile of what a target's OSDs have. Raises InputError where they do not agree."""
    places = {place.osd: place for place in cluster.config.places()}
    osds = cluster.config.osds(target)
    if not osds:
        raise InputError("--target", f"{target!r}, which covers no running OSD", "one that covers some")
    found = {}
    for osd in osds:
        made = profile_in_force(
            name,
            cluster.config.effective(osd),
            cluster.release,
            cluster.version,
            places[osd].device_class,
            osds=len(osds),
        )
        found[osd] = made
    first = found[osds[0]]
    for osd in osds[1:]:
        if found[osd].profile.settings != first.profile.settings:
            differing = ", ".join(row["knob"] for row in differences(first.profile, found[osd].profile))
            raise InputError("--target", f"osd.{osds[0]} and osd.{osd} that differ in {differing}", "OSDs that agree")
    _say(first.notes)
    return first.profile


def for_cluster(profile: Profile, cluster: Cluster, target: str) -> Translation:
    """Translate a profile for a target's OSDs."""
    osds = cluster.config.osds(target)
    if not osds:
        raise InputError("--target", f"{target!r}, which covers no running OSD", "one that covers some")
    device_class = {place.osd: place.device_class for place in cluster.config.places()}[osds[0]]
    hardware = hardware_of(cluster.config.effective(osds[0]), device_class, f"osd.{osds[0]}")
    return translate(profile, cluster.release, hardware)


def _era(release: Optional[str]) -> Optional[Release]:
    return None if release is None else release_of(release, "--release")


def _as_name(cluster: str) -> str:
    stem = Path(cluster).stem if "/" in cluster else cluster
    kept = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in stem.lower()).strip("._-")
    return kept[:64] or "exported"


def _can_translate(profile: Profile, release: Release) -> bool:
    """IOPS per shard need the hardware, which a built-in profile has not."""
    return release.units == "fraction" or profile.hardware is not None or profile.built_in


def _commands(settings: Settings, release: Release) -> List[str]:
    texts = format_settings(settings, release)
    return [f"ceph config set osd {name} {value}" for name, value in texts.items()]


def _plain(translation: Translation, release: Release) -> Dict[str, Any]:
    return {
        "release": release.name,
        "settings": translation.settings,
        "commands": _commands(translation.settings, release),
        "notes": list(translation.notes),
    }


def _shares(profile: Profile) -> List[str]:
    if not all(name in profile.settings for name in MCLOCK_NINE):
        return ["-"] * len(CLASSES)
    return [f"{reservation:g}-{weight}-{limit:g}" for reservation, weight, limit in shares(profile.settings).values()]


def _page(profile: Profile, release: Release, translation: Optional[Translation]) -> Table:
    """The profile as people read it: the nine values by class, what they come to, then the other knobs."""
    made = Table(title=_title(profile), title_justify="left", box=None, pad_edge=False, header_style="bold")
    headings: Tuple[str, ...] = ("class", "reservation", "weight", "limit")
    rates = None
    if profile.hardware is not None and all(name in profile.settings for name in MCLOCK_NINE):
        rates = allocation(
            to_release_units(profile.settings, profile.release, profile.hardware), profile.hardware, profile.release
        )
        headings += ("reserved per OSD", "at most per OSD")
    for heading in headings:
        made.add_column(heading, no_wrap=True)
    if all(name in profile.settings for name in MCLOCK_NINE):
        for service_class, (reservation, weight, limit) in shares(profile.settings).items():
            # as in the list: the whole names do not fit 80 columns beside the rates
            row = [
                service_class.replace("background_", ""),
                f"{reservation:g}",
                str(weight),
                f"{limit:g}" if limit else "none",
            ]
            if rates is not None:
                rate = rates[service_class]
                row.append(_rate(rate.reserved_bytes_s, rate.reserved_iops))
                row.append("-" if rate.limit_bytes_s is None else _rate(rate.limit_bytes_s, rate.limit_iops or 0.0))
            made.add_row(*row)
    others = [name for name in profile.settings if name not in MCLOCK_NINE]
    for name in others:
        made.add_row(name, shown(KNOBS[name], profile.settings[name]))
    return made


def _title(profile: Profile) -> str:
    parts = [profile.name, f"{profile.release.title}{f' ({profile.version})' if profile.version else ''}"]
    parts += [part for part in (profile.description, profile.workload) if part]
    return ", ".join(parts)


def _rate(bytes_s: float, iops: float) -> str:
    megabytes = bytes_s / 1e6
    return f"{megabytes:.{0 if megabytes >= 10 else 1}f} MB/s, {iops:.0f} IOPS"


def _say(notes: Tuple[str, ...]) -> None:
    for note in notes:
        messages.print(f"note: {note}", **_AS_IT_IS)
