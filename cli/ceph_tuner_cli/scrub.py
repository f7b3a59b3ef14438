"""`ceph-tuner scrub`: when deep scrubs come, and to have them done by a date."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.stored_slo import stored_baseline
from ceph_tuner.core.hours import zone_of
from ceph_tuner.core.moments import moment_ahead
from ceph_tuner_cli.cluster_option import AnyClusterOption, show_commands
from ceph_tuner_cli.fleet import FleetOption
from ceph_tuner_cli.from_option import FromOption, cluster_or_state
from ceph_tuner_cli.keep_option import KeepOption, SloOption, wanted_objectives
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn, working

if TYPE_CHECKING:
    from ceph_tuner.scrub_plan import ScrubPg, ScrubView
    from ceph_tuner.scrub_plan.drain import DrainProgress

app = typer.Typer(help="Deep scrubs: when they come, and to have them done by a date.", no_args_is_help=True)

PastOption = typer.Option(
    None,
    "--past",
    metavar="NAME",
    help="This cluster's name in fleet.yaml: rates by its Prometheus server's last week.",
)
ZoneOption = typer.Option(
    "UTC", "--time-zone", help="Of the OSDs' hosts, such as Europe/Berlin: Ceph's scrub hours are in it."
)


@app.command("plan")
def plan_command(
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromOption,
    keep: List[str] = KeepOption,
    slo: Optional[Path] = SloOption,
    days: Optional[float] = typer.Option(
        None, "--days", min=0.05, max=60, help="Days ahead; by default the longest interval, 28 at most."
    ),
    zone: str = ZoneOption,
    every: bool = typer.Option(False, "--all", help="Every PG and hour, in the place of the first ones."),
    past: Optional[str] = PastOption,
    fleet: Path = FleetOption,
    form: Format = FormatOption,
) -> int:
    """Show which PGs are late or will be, what the objectives leave for scrub, and when each comes. Changes nothing.

    Exit code 1 where the backlog is not gone within these days. --from plans from the time of the file on.
    """
    from ceph_tuner_cli.scrub_page import plan_page
    from ceph_tuner_cli.scrub_rates import past_windows, planned

    where = zone_of(zone, "--time-zone")
    with (
        working(f"{cluster or state}: reading PGs and rules"),
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        name = connection.name if state else cluster
        wanted = wanted_objectives(connection, keep, slo)
        windows = past_windows(past, fleet, wanted, connection.clock.now())
        scrub_plan = planned(connection, wanted, days, where, windows)
    emit({"cluster": name, **scrub_plan.to_dict()}, form, lambda: plan_page(scrub_plan, where, every))
    commands = [obstacle.command for obstacle in scrub_plan.obstacles if obstacle.command]
    if commands and form is Format.table:
        show_commands(commands)
    return 0 if scrub_plan.schedule.gone_at is not None and not scrub_plan.flagged else 1


@app.command()
def drain(
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromOption,
    by: str = typer.Option(
        ..., "--by", help="Until when: 2030-12-01 (its beginning, in UTC), 2030-12-01T06:00, or 8h."
    ),
    keep: List[str] = KeepOption,
    slo: Optional[Path] = SloOption,
    per_osd: Optional[int] = typer.Option(
        None, "--per-osd", min=1, max=100, help="Scrubs at a time on an OSD, whoever asked; by default osd_max_scrubs."
    ),
    per_host: int = typer.Option(8, "--per-host", min=1, max=1000, help="Scrubs at a time on a host, whoever asked."),
    window: float = typer.Option(30.0, "--window", min=10, max=600, help="Seconds that objectives are judged by."),
    zone: str = ZoneOption,
    any_hour: bool = typer.Option(False, "--any-hour", help="Also outside of Ceph's own scrub hours."),
    despite_flags: bool = typer.Option(False, "--despite-flags", help="Also what nodeep-scrub is set for."),
    dry_run: bool = typer.Option(False, "--dry-run", help="As without --yes, whatever else is given."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Ask for them; without, show in which order, and end."),
    past: Optional[str] = PastOption,
    fleet: Path = FleetOption,
    form: Format = FormatOption,
) -> int:
    """Ask Ceph for the deep scrubs that are late or due by a date, in the plan's order, as fast as objectives allow.

    Without --yes it shows the order and asks for nothing. Waits while an objective is missed; changes no setting and no
    PG's date. May be ended and begun again at any time. Exit code 1 where PGs are left when time is up.
    """
    if state is not None and yes and not dry_run:
        raise InputError("--from", "a drain, which asks for scrubs", "a live cluster (--cluster), or no --yes")
    from ceph_tuner.scrub_plan.drain import DONE, INTERRUPTED, Drain, DrainTask, foretold_end
    from ceph_tuner.scrub_plan.pace import ScrubLimits, due_until
    from ceph_tuner_cli.interruption import INTERRUPTED as CODE_INTERRUPTED
    from ceph_tuner_cli.progress_line import progress_line
    from ceph_tuner_cli.scrub_page import drain_page, order_page, progress_words
    from ceph_tuner_cli.scrub_rates import past_windows, planned

    where = zone_of(zone, "--time-zone")
    with cluster_or_state(cluster, state, _connected) as connection:
        name = connection.name if state else str(cluster)
        until = moment_ahead(by, connection.clock.now(), "--by")
        wanted = wanted_objectives(connection, keep, slo)
        with working(f"{name}: reading PGs and rules"):
            windows = past_windows(past, fleet, wanted, connection.clock.now())
            scrub_plan = planned(connection, wanted, None, where, windows, window)
        order = due_until(scrub_plan.view, until)
        refusals: List[InputError] = []
        if not despite_flags:
            order, flagged = _without_flag(scrub_plan.view, order)
            refusals += [flagged] if flagged is not None else []
        at_most = scrub_plan.view.rules.max_scrubs if per_osd is None else per_osd
        if at_most < 1:
            why = "osd_max_scrubs is 0, so that nothing is to be scrubbed"
            refusals.append(InputError("the cluster", why, "--per-osd"))
        say(scrub_plan.notes)
        task = DrainTask(
            tuple(order),
            until,
            ScrubLimits(max(1, at_most), per_host),
            wanted,
            scrub_plan.rates,
            stored_baseline(connection.store),
            any_hour,
            despite_flags,
            window,
        )
        if dry_run or not yes:
            done_by = foretold_end(task, scrub_plan.view)
            keeps = wanted.at(connection.clock.now()).preview
            document = {
                "cluster": name,
                "by": until,
                "would": [pg.pgid for pg in order],
                "keeps": keeps,
                "done_by": done_by,
                "refused": [str(refusal) for refusal in refusals],
                "commands": [f"ceph pg deep-scrub {pg.pgid}" for pg in order],
            }
            emit(document, form, lambda: order_page(order, until, keeps, done_by, refusals))
            remedy = "add --yes" if order else "there is nothing to do"
            remedy = "with --yes it is refused, as said" if refusals else remedy
            say([f"nothing is asked for: {remedy if state is None else 'that is a file'}"])
            return 0
        for refusal in refusals:
            raise refusal
        with connection.lock("ceph-tuner scrub drain") as lock, progress_line(name, "draining") as show:

            def report(progress: DrainProgress) -> None:
                words = progress_words(progress, until)
                show(words, progress.at, progress.done, progress.total, progress.waits_for, progress.keeps)

            outcome = Drain(connection, scrub_plan.view, task, lock, report).run()
    warn(outcome.remarks)
    emit({"cluster": name, "by": until, **outcome.to_dict()}, form, lambda: drain_page(outcome))
    if outcome.reason == INTERRUPTED:
        return CODE_INTERRUPTED
    return 0 if outcome.reason == DONE else 1


def _connected(cluster: str) -> Cluster:
    with working(f"{cluster}: connecting"):
        return open_cluster(cluster)


def _without_flag(view: ScrubView, order: Sequence[ScrubPg]) -> Tuple[Tuple[ScrubPg, ...], Optional[InputError]]:
    """Without the PGs of pools with nodeep-scrub; where nothing else is left, all of them and the refusal."""
    pools = [pool for pool in dict.fromkeys(pg.pool for pg in order) if view.rules.forbids_deep(pool)]
    rest = tuple(pg for pg in order if pg.pool not in pools)
    if pools and not rest:
        everywhere = "nodeep-scrub" in view.rules.flags
        own = ["ceph", "osd", "pool", "set", pools[0], "nodeep-scrub", "0"]
        command = "ceph osd unset nodeep-scrub" if everywhere else shlex.join(own)
        place = "the cluster" if everywhere else f"the pool {pools[0]}"
        return tuple(order), InputError(place, "nodeep-scrub is set", f"`{command}`, or --despite-flags")
    if pools:
        say([f"left out, as nodeep-scrub is set: {', '.join(pools)}"])
    return rest, None
