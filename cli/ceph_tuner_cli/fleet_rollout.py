"""`ceph-tuner fleet apply|rollback`: a profile onto many clusters, a canary first, and back."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

import typer

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.applier import Undone
from ceph_tuner.core.errors import Stopped, TunerError
from ceph_tuner.fleet import fleet_file, portable_file
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.rollout import RolloutOutcome, roll_out, waves_of
from ceph_tuner.fleet.site import MemberSite
from ceph_tuner.fleet.trust import remember
from ceph_tuner_cli.apply import OlderOption
from ceph_tuner_cli.cluster_option import TargetOption, code_of, say_undone, undone_documents
from ceph_tuner_cli.fleet import FleetOption, LabelOption, NamesArgument, WithinOption
from ceph_tuner_cli.fleet_foresight import Fitter, UnpredictedOption, check_prediction, kept_forecast, predict, refuse
from ceph_tuner_cli.fleet_profiles import FileArgument, TrustOption, UnlikeOption, provenance, vouched
from ceph_tuner_cli.fleet_profiles import app as app
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn, working
from ceph_tuner_cli.tables import Columns, columns
from ceph_tuner_cli.workers_option import DaskOption, InsecureOption

if TYPE_CHECKING:
    # it brings scipy and scikit-learn
    from ceph_tuner.fleet.forecast import Foreseen

_EVERY_S = 30.0
_NEXT = "`fleet apply` again goes on after what was kept, `fleet rollback` takes that back"


@app.command()
def apply(
    file: Path = FileArgument,
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    canary: Optional[str] = typer.Option(None, "--canary", help="The cluster that goes first; else the file's first."),
    wave: int = typer.Option(5, "--wave", min=1, help="Clusters that go at a time after it."),
    watch: float = typer.Option(
        600.0,
        "--watch",
        min=0.0,
        help="Seconds that each wave is watched before it is kept. Below 120 it is judged by the minute before it.",
    ),
    blind: bool = typer.Option(False, "--blind", help="Also where no objective is set or seen to watch it by."),
    target: str = TargetOption,
    within: float = WithinOption,
    trust: Optional[Path] = TrustOption,
    although_unlike: bool = UnlikeOption,
    older: bool = OlderOption,
    unpredicted: bool = UnpredictedOption,
    dask: Optional[str] = DaskOption,
    insecure: bool = InsecureOption,
    yes: bool = typer.Option(False, "--yes", "-y", help="Do it; without, only show the waves and what twins say."),
    form: Format = FormatOption,
) -> int:
    """Bring a profile to one cluster, then to waves of others; the first breach takes its wave back and stops.

    Nothing is written anywhere where a cluster is too unlike, or its twin says that it would be worse off. The same
    command again goes on after what was kept. Exit code 4 where it stopped.
    """
    check_prediction(unpredicted, dask)
    clusters = fleet_file.read(fleet)
    portable = vouched(file, clusters, trust)
    members = clusters.chosen(names or (), labels)
    by_name = {member.name: member for member in members}
    waves = waves_of(list(by_name), canary or members[0].name, wave)
    say([provenance(portable)])
    fitter = Fitter(portable, target, within, although_unlike, unpredicted, older)
    fittings = fitter.fit(members, lambda member, cluster: _site(member, fitter, lambda: cluster).done())
    say([note for entry in fittings.values() for note in entry.notes])
    foreseen = predict(list(fittings.values()), form is Format.table, dask, insecure)
    predictions = {name: forecast.to_dict() for name, forecast in foreseen.items()}
    plan = {"waves": [list(each) for each in waves], "predictions": predictions}
    if form is not Format.table and any(forecast.refusal for forecast in foreseen.values()):
        emit(plan, form, lambda: "")
    refuse(portable.profile.name, list(foreseen.values()))
    if not yes:
        emit(plan, form, lambda: _waves(waves))
        say(["nothing is changed: `fleet import` shows what would be written; add --yes to do it"])
        return 0
    with ExitStack() as stack, working("preparing") as tell:

        def site(name: str) -> MemberSite:
            member_site = _site(by_name[name], fitter, decided=name in fittings, foreseen=foreseen.get(name))
            stack.callback(member_site.close)
            return member_site

        sites = [[site(name) for name in each] for each in waves]

        def told(line: str) -> None:
            say([line])
            tell(line)

        outcome = roll_out(sites, SystemClock(), watch, min(_EVERY_S, watch), told, blind, lambda line: warn([line]))
    emit({**asdict(outcome), "predictions": predictions}, form, lambda: _result(outcome))
    if outcome.interrupted:
        say([f"interrupted; {_NEXT}"])
        return INTERRUPTED
    if outcome.breach:
        raise Stopped(outcome.breach, f"look into it; {_NEXT}")
    return 0


@app.command()
def rollback(
    file: Path = FileArgument,
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    within: float = WithinOption,
    form: Format = FormatOption,
) -> int:
    """Take back what `fleet apply` of this file kept, cluster by cluster. It acts at once, as it is the safe way.

    Exit code 1 where something is left, as somebody else changed it since; 4 where OSDs do not show it.
    """
    portable = portable_file.read(file)
    members = fleet_file.read(fleet).chosen(names or (), labels)
    fitter = Fitter(portable, "osd", within, although_unlike=True, unpredicted=True)
    done: List[Dict[str, Any]] = []
    everything: List[Undone] = []
    try:
        with working("taking back") as tell:
            for number, member in enumerate(members):
                tell(f"taking back on {member.name}", number, len(members))
                undone: List[Undone] = []
                # until it is known better
                document: Dict[str, Any] = {"cluster": member.name, "undone": [], "problem": "interrupted"}
                done.append(document)
                try:
                    with closing(_site(member, fitter)) as site:
                        for each in site.undo():
                            undone.append(each)
                            say_undone([each])
                    document["problem"] = None
                except TunerError as error:
                    document["problem"] = str(error)
                finally:
                    everything += undone
                    document["undone"] = undone_documents(undone)
    finally:
        # what was done before Ctrl-C is told
        emit(done, form, lambda: "\n".join(map(_taken_back, done)))
    failures = [document["cluster"] for document in done if document["problem"] is not None]
    if failures:
        raise Stopped(f"not taken back on {', '.join(failures)}", "run it again when they answer")
    return code_of(everything)


def _taken_back(document: Dict[str, Any]) -> str:
    if document["problem"] is not None:
        return f"{document['cluster']}: not taken back: {document['problem']}"
    return f"{document['cluster']}: {'taken back' if document['undone'] else 'nothing of it there'}"


def _site(
    member: Member,
    fitter: Fitter,
    connect: Optional[Callable[[], Cluster]] = None,
    decided: bool = False,
    foreseen: Optional[Foreseen] = None,
) -> MemberSite:
    # by the digest: another file of that name is another rollout
    label = f"fleet {fitter.portable.profile.name} {fitter.portable.digest.split(':')[1][:12]}"
    return MemberSite(
        member,
        connect or (lambda: open_member(member, fitter.within)),
        label,
        fitter.target,
        # a load that is another one hours later is no reason to take those of its wave back
        lambda cluster: fitter.settings_of_alike(cluster) if decided else fitter.settings(member, cluster)[0],
        lambda cluster: remember(cluster.store, fitter.portable),
        lambda cluster: kept_forecast(foreseen, fitter.target, cluster),
    )


def _waves(waves: Sequence[Sequence[str]]) -> Columns:
    table = columns(">wave", "clusters")
    for number, names in enumerate(waves):
        table.add_row("canary" if number == 0 else str(number), ", ".join(names))
    return table


def _result(outcome: RolloutOutcome) -> Columns:
    table = columns("outcome", "clusters", keep=("outcome",))
    for words, names in (
        ("kept", outcome.kept),
        ("kept before", outcome.before),
        ("taken back", outcome.taken_back),
        ("NOT taken back", outcome.stuck),
        ("not touched", outcome.left),
    ):
        if names:
            table.add_row(words, ", ".join(names))
    return table
