"""`ceph-tuner fleet apply|rollback`: a profile onto many clusters, a canary first, and back."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import typer
from rich.table import Table

from ceph_tuner.clusters.machine import SystemClock
from ceph_tuner.errors import Stopped, TunerError
from ceph_tuner.files import fleet_file, portable_file
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.opening import open_member
from ceph_tuner.fleet.portable import Portable, read_public_key
from ceph_tuner.fleet.rollout import Outcome, roll_out, waves_of
from ceph_tuner.fleet.site import MemberSite
from ceph_tuner_cli.cluster_option import TargetOption, say, say_undone
from ceph_tuner_cli.fleet import FleetOption, LabelOption, NamesArgument, WithinOption
from ceph_tuner_cli.fleet_profiles import FileArgument, TrustOption, UnlikeOption, provenance, settings_for
from ceph_tuner_cli.fleet_profiles import app as app
from ceph_tuner_cli.render import Format, FormatOption, emit

_EVERY_S = 30.0


@app.command()
def apply(
    file: Path = FileArgument,
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    canary: Optional[str] = typer.Option(None, "--canary", help="The cluster that goes first; else the file's first."),
    wave: int = typer.Option(5, "--wave", min=1, help="Clusters that go at a time after it."),
    watch: float = typer.Option(600.0, "--watch", min=0.0, help="Seconds that each wave is watched before it is kept."),
    blind: bool = typer.Option(False, "--blind", help="Also where no objective is set or seen to watch it by."),
    target: str = TargetOption,
    within: float = WithinOption,
    trust: Optional[Path] = TrustOption,
    although_unlike: bool = UnlikeOption,
    yes: bool = typer.Option(False, "--yes", "-y", help="Do it; without, only show the waves."),
    form: Format = FormatOption,
) -> None:
    """Bring a profile to one cluster, then to waves of others; the first breach takes its wave back and stops.

    The same command again goes on after what was kept. Exit code 4 where it stopped.
    """
    portable = portable_file.read(file, None if trust is None else read_public_key(trust))
    members = fleet_file.read(fleet).chosen(names or (), labels)
    by_name = {member.name: member for member in members}
    waves = waves_of(list(by_name), canary or members[0].name, wave)
    say([provenance(portable)])
    if not yes:
        emit([list(each) for each in waves], form, lambda: _waves(waves))
        say(["nothing is changed: `fleet import` shows what would be written; add --yes to do it"])
        return
    with ExitStack() as stack:

        def site(name: str) -> MemberSite:
            made = _site(by_name[name], portable, target, within, although_unlike)
            stack.callback(made.close)
            return made

        sites = [[site(name) for name in each] for each in waves]
        outcome = roll_out(sites, SystemClock(), watch, min(_EVERY_S, watch), lambda line: say([line]), blind)
    emit(asdict(outcome), form, lambda: _result(outcome))
    if outcome.breach:
        raise Stopped(outcome.breach)


@app.command()
def rollback(
    file: Path = FileArgument,
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    within: float = WithinOption,
) -> None:
    """Take back what `fleet apply` of this file kept, cluster by cluster. It acts at once, as it is the safe way."""
    portable = portable_file.read(file)
    failures: Dict[str, TunerError] = {}
    for member in fleet_file.read(fleet).chosen(names or (), labels):
        site = _site(member, portable, "osd", within, although_unlike=True)
        try:
            undone = site.undo()
            say_undone(undone)
            say([f"{member.name}: {'taken back' if undone else 'nothing of it there'}"])
        except TunerError as error:
            failures[member.name] = error
            say([f"{member.name}: not taken back: {error}"])
        finally:
            site.close()
    if failures:
        raise Stopped(f"not taken back on {', '.join(failures)}")


def _site(member: Member, portable: Portable, target: str, within: float, although_unlike: bool) -> MemberSite:
    # by the digest: another file of that name is another rollout
    label = f"fleet {portable.profile.name} {portable.digest.split(':')[1][:12]}"
    return MemberSite(
        member,
        lambda: open_member(member, within),
        label,
        target,
        lambda cluster: settings_for(portable, member, cluster, target, although_unlike),
    )


def _waves(waves: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("wave", justify="right")
    table.add_column("clusters", overflow="fold")
    for number, names in enumerate(waves):
        table.add_row("canary" if number == 0 else str(number), ", ".join(names))
    return table


def _result(outcome: Outcome) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("outcome", no_wrap=True)
    table.add_column("clusters", overflow="fold")
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
