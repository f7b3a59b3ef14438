"""`ceph-tuner fleet diff|export|import`: what is in force where, and profiles that travel."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

import typer

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.target import reach
from ceph_tuner.core.changes.plan import ChangePlan
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.moments import iso
from ceph_tuner.fleet import fleet_file, portable_file
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Fleet, Member
from ceph_tuner.fleet.descriptions import wanted
from ceph_tuner.fleet.difference import Difference, differences, read_settings
from ceph_tuner.fleet.likeness import with_evidence
from ceph_tuner.fleet.portable import Portable, read_private_key, read_public_key, sealed
from ceph_tuner.fleet.trust import remember
from ceph_tuner_cli import profiles
from ceph_tuner_cli.apply import OlderOption
from ceph_tuner_cli.cluster_option import (
    ForceOption,
    TargetOption,
    YesOption,
    say_undone,
    show_commands,
    step_documents,
    step_table,
)
from ceph_tuner_cli.fleet import FleetOption, LabelOption, MemberArgument, NamesArgument, WithinOption, asked
from ceph_tuner_cli.fleet import app as app
from ceph_tuner_cli.fleet_foresight import (
    Fitter,
    UnpredictedOption,
    check_prediction,
    document_of,
    kept_forecast,
    predict,
    refuse,
)
from ceph_tuner_cli.render import Format, FormatOption, console, emit, say, warn, working
from ceph_tuner_cli.tables import Columns, columns
from ceph_tuner_cli.workers_option import DaskOption, InsecureOption

if TYPE_CHECKING:
    # it brings scipy and scikit-learn
    from ceph_tuner.fleet.forecast import Foreseen

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
    """Show in which knobs clusters differ, by their configuration databases. Exit code 1 where one does not answer."""
    answers = asked(
        fleet_file.read(fleet).chosen(names or (), labels), lambda member: read_settings(member, within), within
    )
    answers_of = {answer.member.name: answer.found for answer in answers if answer.found is not None}
    rows = differences(answers_of)
    document = [{"knob": entry.knob, "values": [_group(*group) for group in entry.values]} for entry in rows]
    none = "no difference" if len(answers_of) > 1 else "nothing to compare"
    emit(document, form, lambda: _table(rows) if rows else none)
    silent = [answer for answer in answers if answer.found is None]
    warn([f"{answer.member.name} is left out: {answer.problem}" for answer in silent])
    say(
        [
            f"{name}: entries under masks count as if for all OSDs, as its REST API hides masks"
            for name, settings in answers_of.items()
            if not settings.certain
        ]
    )
    if silent:
        raise typer.Exit(1)


@app.command("export")
def export_profile(
    name: str = MemberArgument,
    output: Path = typer.Option(..., "--output", "-o", help="The file to write."),
    fleet: Path = FleetOption,
    target: str = TargetOption,
    within: float = WithinOption,
    profile: Optional[str] = typer.Option(None, "--profile", help="A profile instead of what is in force."),
    sign: Optional[Path] = typer.Option(None, "--sign", help="Private key in PEM (Ed25519) to sign with."),
    force: bool = ForceOption,
    form: Format = FormatOption,
) -> None:
    """Write a cluster's profile under a digest, to be brought to others by `fleet import`."""
    (member,) = fleet_file.read(fleet).chosen([name])
    key = None if sign is None else read_private_key(sign)
    if profile is not None:
        content = profiles.read(profile)
    else:
        with working(f"reading what {name} has"), closing(open_member(member, within)) as connection:
            own = wanted(member, connection) if member.slo else None
            content = with_evidence(profiles.profile_of_target(connection, target, name), connection, own)
    portable_file.write(output, sealed(content, {"cluster": name, "exported": iso(time.time())}, key), force)
    document = {"saved": str(output), "cluster": name, "profile": content.name, "release": content.release.name}
    line = f"{output}: {content.name}, for {content.release.title}{', signed' if key else ''}"
    emit({**document, "signed": key is not None}, form, lambda: line)


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
    older: bool = OlderOption,
    unpredicted: bool = UnpredictedOption,
    dask: Optional[str] = DaskOption,
    insecure: bool = InsecureOption,
    yes: bool = YesOption,
    form: Format = FormatOption,
) -> None:
    """Bring a profile to clusters: what their twins say of it, the difference and the commands, then --yes.

    Nothing is written anywhere where a cluster is too unlike, or its twin says that it would be worse off. Then one
    after the other; the first that fails ends the command, and those before it keep it (`ceph-tuner rollback`).
    """
    check_prediction(unpredicted, dask)
    clusters = fleet_file.read(fleet)
    portable = vouched(file, clusters, trust)
    members = clusters.chosen(names or (), labels)
    say([provenance(portable)])
    table, name = form is Format.table, portable.profile.name
    fittings = Fitter(portable, target, within, although_unlike, unpredicted, older).fit(members)
    say([note for entry in fittings.values() for note in entry.notes])
    foreseen = predict(list(fittings.values()), table, dask, insecure)
    documents = [
        {"cluster": member.name, "profile": name, **document_of(foreseen, member.name), "steps": [], "change": None}
        for member in members
    ]
    try:
        refuse(name, list(foreseen.values()))
        for member, document in zip(members, documents):
            with closing(open_member(member, within)) as connection:
                forecast = foreseen.get(member.name)
                settings = fittings[member.name].settings
                document.update(_bring(portable, member, connection, target, settings, yes, table, forecast))
    except TunerError:
        # what was done before it is told
        with_settings = [str(document["cluster"]) for document in documents if document["change"] is not None]
        say(
            [f"{', '.join(with_settings)} {'has' if len(with_settings) == 1 else 'have'} it now, the others do not"]
            if with_settings
            else []
        )
        raise
    finally:
        if not table:
            emit(documents, form)
    if not yes and any(document["steps"] for document in documents):
        say(["nothing is changed: add --yes to write it"])


def _bring(
    portable: Portable,
    member: Member,
    cluster: Cluster,
    target: str,
    settings: Settings,
    yes: bool,
    shown: bool,
    foreseen: Optional[Foreseen],
) -> Dict[str, Any]:
    # under one lock, so that nobody comes between the plan and its steps
    if yes:
        with cluster.lock() as lock:
            applier = cluster.applier(lock)
            say_undone(applier.recover())
            plan = applier.plan(target, settings)
            why = f"profile {portable.profile.name} of {portable.origin['cluster']}"
            entry = applier.apply(plan, why, forecast=kept_forecast(foreseen, target, cluster))
            remember(cluster.store, portable)
    else:
        plan, entry = cluster.applier().plan(target, settings), None
    if shown:
        _show(member, plan)
    if entry is not None:
        say([f"{member.name}: written as change {entry.number} and seen at {reach(plan.places)}"])
    elif plan.steps and not yes:
        say([f"{member.name}: would write to {reach(plan.places)}"])
    return {"steps": step_documents(plan.steps), "change": None if entry is None else entry.number}


def _show(member: Member, plan: ChangePlan) -> None:
    warn([f"{member.name}: {warning}" for warning in plan.warnings])
    if not plan.steps:
        say([f"{member.name} has it already: nothing to write"])
        return
    table = step_table(plan.steps)
    table.title = member.name
    console.print(table)
    show_commands(plan.commands)


def vouched(file: Path, fleet: Fleet, trust: Optional[Path]) -> Portable:
    """Read a file that `--trust` and the fleet's policy let in. Raises InputError."""
    portable = portable_file.read(file, None if trust is None else read_public_key(trust))
    if fleet.trust is not None:
        fleet.trust.check(portable, str(file), time.time())
    return portable


def provenance(portable: Portable) -> str:
    """Where a profile comes from, in one line."""
    origin = portable.origin
    signature = f"signed by {portable.signed_by}" if portable.signed_by else "not signed"
    # the file says the rest of itself, and could say that somebody had signed it
    return f"{signature}: {portable.profile.name} of {origin['cluster']!r}, exported {str(origin['exported'])!r}"


def _table(rows: Sequence[Difference]) -> Columns:
    table = columns("knob", "value", "clusters")
    for entry in rows:
        for index, (value, clusters) in enumerate(entry.values):
            table.add_row("" if index else entry.knob, value, ", ".join(clusters))
    return table


def _group(value: str, clusters: Any) -> Dict[str, Any]:
    return {"value": value, "clusters": list(clusters)}
