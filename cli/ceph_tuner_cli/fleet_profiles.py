"""`ceph-tuner fleet diff|export|import`: what is in force where, and profiles that travel."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Optional

import typer
from rich.table import Table

from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.errors import InputError, TunerError
from ceph_tuner.files import fleet_file, portable_file
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.difference import differences, read_settings
from ceph_tuner.fleet.here import here_and_now, with_evidence
from ceph_tuner.fleet.opening import open_member
from ceph_tuner.fleet.portable import Portable, read_private_key, read_public_key, sealed
from ceph_tuner.plan import ChangePlan
from ceph_tuner.releases import Settings
from ceph_tuner.search.transfer import unlike
from ceph_tuner_cli import profile as profiles
from ceph_tuner_cli.cluster_option import TargetOption, say, show_commands, step_documents, step_table
from ceph_tuner_cli.fleet import FleetOption, LabelOption, NamesArgument, WithinOption, asked
from ceph_tuner_cli.fleet import app as app
from ceph_tuner_cli.render import Format, FormatOption, console, emit

FileArgument = typer.Argument(help="A file that `fleet export` wrote.")
TrustOption = typer.Option(None, "--trust", help="Public key in PEM: take what it signed, and no other.")
UnlikeOption = typer.Option(
    False, "--although-unlike", help="Also where hardware, work or load differ too much from its origin."
)


@app.command()
def diff(
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    within: float = WithinOption,
    form: Format = FormatOption,
) -> None:
    """Show in which knobs clusters differ, by their configuration databases; 1 where one does not answer."""
    answers = asked(
        fleet_file.read(fleet).chosen(names or (), labels), lambda member: read_settings(member, within), within
    )
    known = {answer.member.name: answer.found for answer in answers if answer.found is not None}
    found = differences(known)

    def table() -> Table:
        made = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("knob", "value", "clusters"):
            made.add_column(heading, overflow="fold")
        for entry in found:
            for index, (value, clusters) in enumerate(entry.values):
                made.add_row("" if index else entry.knob, value, ", ".join(clusters))
        return made

    if form is Format.table and not found:
        console.print("no difference" if len(known) > 1 else "nothing to compare")
    else:
        document = [{"knob": entry.knob, "values": [_group(*group) for group in entry.values]} for entry in found]
        emit(document, form, table)
    missing = [answer for answer in answers if answer.found is None]
    say([f"{answer.member.name} is left out: {answer.problem}" for answer in missing])
    say(
        [
            f"{name}: entries under masks count as if for all OSDs, as its REST API hides masks"
            for name, settings in known.items()
            if not settings.certain
        ]
    )
    if missing:
        raise typer.Exit(1)


@app.command("export")
def export_profile(
    name: str = typer.Argument(help="The cluster."),
    output: Path = typer.Option(..., "--output", "-o", help="The file to write."),
    fleet: Path = FleetOption,
    target: str = TargetOption,
    within: float = WithinOption,
    profile: Optional[str] = typer.Option(None, "--profile", help="A profile instead of what is in force."),
    sign: Optional[Path] = typer.Option(None, "--sign", help="Private key in PEM (Ed25519) to sign with."),
    force: bool = typer.Option(False, "--force", help="Replace the file if there is one."),
) -> None:
    """Write a cluster's profile under a digest, to be brought to others by `fleet import`."""
    (member,) = fleet_file.read(fleet).chosen([name])
    key = None if sign is None else read_private_key(sign)
    if profile is not None:
        found = profiles.read(profile)
    else:
        with closing(open_member(member, within)) as opened:
            found = with_evidence(profiles.in_force(opened, target, name), opened)
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    portable_file.write(output, sealed(found, {"cluster": name, "exported": now}, key), force)
    say([f"{output}: {found.name}, for {found.release.title}{', signed' if key else ''}"])


@app.command("import")
def import_profile(
    file: Path = FileArgument,
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    target: str = TargetOption,
    within: float = WithinOption,
    trust: Optional[Path] = TrustOption,
    although_unlike: bool = UnlikeOption,
    yes: bool = typer.Option(False, "--yes", "-y", help="Write it; without, only show what would be written."),
    form: Format = FormatOption,
) -> None:
    """Bring a profile to clusters, one after the other: the difference and the commands, then --yes.

    The first cluster that refuses it ends the command; those before it keep it (`ceph-tuner rollback`).
    """
    portable = portable_file.read(file, None if trust is None else read_public_key(trust))
    members = fleet_file.read(fleet).chosen(names or (), labels)
    say([provenance(portable)])
    done: List[Dict[str, Any]] = []
    for member in members:
        try:
            with closing(open_member(member, within)) as opened:
                done.append(_bring(portable, member, opened, target, although_unlike, yes, form))
        except TunerError:  # noqa: PERF203 - what was done before it is told
            say([f"{member.name} does not get it:"])
            left = [later.name for later in members[len(done) + 1 :]]
            kept = [document["cluster"] for document in done if document["change"] is not None]
            say([f"{', '.join(kept)} {'has' if len(kept) == 1 else 'have'} it now"] if kept else [])
            say([f"not asked any more: {', '.join(left)}"] if left else [])
            raise
    if form is not Format.table:
        emit(done, form)
    if not yes and any(document["steps"] for document in done):
        say(["nothing is changed: add --yes to write it"])


def _bring(
    portable: Portable, member: Member, cluster: Cluster, target: str, although_unlike: bool, yes: bool, form: Format
) -> Dict[str, Any]:
    settings = settings_for(portable, member, cluster, target, although_unlike)
    # under one lock, so that nobody comes between the plan and its steps
    if yes:
        with cluster.lock() as lock:
            applier = cluster.applier(lock)
            applier.recover()
            plan = applier.plan(target, settings)
            entry = applier.apply(plan, f"profile {portable.profile.name} of {portable.origin['cluster']}")
    else:
        plan, entry = cluster.applier().plan(target, settings), None
    if form is Format.table:
        _show(member, plan)
    if entry is not None:
        say([f"{member.name}: written as change {entry.number} and seen at {len(plan.osds)} OSDs"])
    return {
        "cluster": member.name,
        "profile": portable.profile.name,
        "steps": step_documents(plan.steps),
        "change": None if entry is None else entry.number,
    }


def settings_for(portable: Portable, member: Member, cluster: Cluster, target: str, although_unlike: bool) -> Settings:
    """What the profile comes to on a cluster. Raises InputError where it is too unlike the one that it is from."""
    here, seen = here_and_now(cluster, target)
    reason = unlike(portable.profile, here, seen)
    if reason and not although_unlike:
        raise InputError(str(portable.profile.name), reason, "a cluster that is alike, or --although-unlike")
    translation = profiles.for_cluster(portable.profile, cluster, target)
    say([f"{member.name}: {note}" for note in (*([f"unlike: {reason}"] if reason else ()), *translation.notes)])
    return translation.settings


def _show(member: Member, plan: ChangePlan) -> None:
    say([f"{member.name}: {warning}" for warning in plan.warnings])
    if not plan.steps:
        say([f"{member.name} has it already: nothing to write"])
        return
    table = step_table(plan.steps)
    table.title, table.title_justify = member.name, "left"
    console.print(table)
    show_commands(plan.commands)


def provenance(portable: Portable) -> str:
    """Where a profile comes from, in one line."""
    origin = portable.origin
    signed = f"signed by {portable.signed_by}" if portable.signed_by else "not signed"
    return f"{portable.profile.name} of {origin['cluster']}, exported {origin['exported']}, {signed}"


def _group(value: str, clusters: Any) -> Dict[str, Any]:
    return {"value": value, "clusters": list(clusters)}
