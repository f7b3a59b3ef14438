"""`ceph-tuner drain`, `reweight`, `pgs step` and `moves`: data moved a few PGs at a time, at the clients' pace."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Tuple

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.stored_slo import stored_baseline
from ceph_tuner.core.hours import Hours, parse_hours
from ceph_tuner_cli.cluster_option import ClusterOption, at_work, show_commands
from ceph_tuner_cli.interruption import INTERRUPTED as CODE_INTERRUPTED
from ceph_tuner_cli.keep_option import KeepOption, SloOption, wanted_objectives
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn, working

if TYPE_CHECKING:
    from ceph_tuner.core.changes.lock import Lock
    from ceph_tuner.moves import MapView, MovePlan, MovePool
    from ceph_tuner.moves.forecast import RoughTime
    from ceph_tuner.moves.mover import MoveOutcome, MoveProgress, MoveTask
    from ceph_tuner.moves.record import MoveRecord, MoveStore
    from ceph_tuner.pacing.wanted import WantedObjectives

pgs_app = typer.Typer(help="A pool's number of PGs, in small steps.", no_args_is_help=True)
moves_app = typer.Typer(help="Moves of data: what is under way, what they have paused.", no_args_is_help=True)

FIRST_COMMANDS = 15
"""That a preview shows."""
HoursOption = typer.Option("", "--hours", help="Begin moves only then: 'mon-fri 22:00-06:00 Europe/Berlin'.")
AtMostOption = typer.Option(8, "--at-most", min=1, max=1000, help="PGs at a time, at most.")
WindowOption = typer.Option(30.0, "--window", min=10, max=600, help="Seconds that objectives are judged by.")
BalancerOption = typer.Option(False, "--pause-balancer", help="Pause the balancer until the end.")
AutoscalerOption = typer.Option(False, "--pause-autoscaler", help="Pause the PG autoscaler of the pools until the end.")
YesOption = typer.Option(False, "--yes", "-y", help="Move; without, only show what would be moved.")


def drain(
    osd: str = typer.Argument(..., metavar="OSD|HOST", help="osd.N, or a host of the CRUSH map."),
    cluster: str = ClusterOption,
    keep: List[str] = KeepOption,
    slo: Optional[Path] = SloOption,
    hours: str = HoursOption,
    at_most: int = AtMostOption,
    window: float = WindowOption,
    keep_weight: bool = typer.Option(False, "--keep-weight", help="Leave the CRUSH weights at the end, and not 0."),
    pause_balancer: bool = BalancerOption,
    pause_autoscaler: bool = AutoscalerOption,
    yes: bool = YesOption,
    form: Format = FormatOption,
) -> int:
    """Empty an OSD or a host: each copy moves once, by an upmap entry; the CRUSH weight is 0 at the end.

    Waits while an objective is missed; may be ended and begun again at any time. Exit code 1 where PGs are left.
    """
    from ceph_tuner.moves import total_bytes
    from ceph_tuner.moves.drain_plan import DrainPlan
    from ceph_tuner.moves.map_view import osds_named
    from ceph_tuner.moves.pg_limit import crowded_words
    from ceph_tuner.moves.placement import check_upmap

    def planned(view: MapView) -> Tuple[MovePlan, List[str], List[str]]:
        check_upmap(view)
        plan = DrainPlan(frozenset(osds_named(view, osd)), keep_weight)
        bytes_by_pg = plan.left(view, frozenset())
        writes, nowhere, crowded = plan.placed(view, len(view.pgs))
        if nowhere:
            some = ", ".join(nowhere[:8])
            raise InputError(
                osd, f"{len(nowhere)} PGs that no other OSD may have, by rule, room or PGs ({some})", "more OSDs"
            )
        lines = [f"{len(bytes_by_pg)} PGs with {_size(total_bytes(bytes_by_pg))} would leave {osd}, each once."]
        lines += crowded_words(view, crowded)
        if keep_weight:
            lines.append("The CRUSH weight stays: new PGs come there, and a balancer that is on fills it again.")
        else:
            lines.append("The CRUSH weight is 0 then. Entries hold the other PGs where they are.")
        return plan, lines, [_text(write.command) for write in writes]

    fights = "it would move PGs back to what is emptied"
    return _move(f"drain {_osd_name(osd)}", cluster, keep, slo, hours, at_most, window, pause_balancer,
                  pause_autoscaler, yes, form, planned, fights)  # fmt: skip


def reweight(
    osd: str = typer.Argument(..., metavar="OSD|HOST", help="osd.N, or a host of the CRUSH map: each of its OSDs."),
    weight: float = typer.Argument(..., min=0.0, max=1000.0, help="CRUSH weight of an OSD, usually its size in TiB."),
    cluster: str = ClusterOption,
    keep: List[str] = KeepOption,
    slo: Optional[Path] = SloOption,
    hours: str = HoursOption,
    at_most: int = AtMostOption,
    window: float = WindowOption,
    pause_balancer: bool = BalancerOption,
    pause_autoscaler: bool = AutoscalerOption,
    yes: bool = YesOption,
    form: Format = FormatOption,
) -> int:
    """Bring OSDs to a CRUSH weight. All PGs are held by upmap entries at first, and let go of a few at a time.

    Waits while an objective is missed; may be ended and begun again at any time. Exit code 1 where PGs are left.
    """
    from ceph_tuner.moves.map_view import osds_named
    from ceph_tuner.moves.placement import check_upmap
    from ceph_tuner.moves.reweight_plan import ReweightPlan
    from ceph_tuner.moves.weights import weight_command

    def planned(view: MapView) -> Tuple[MovePlan, List[str], List[str]]:
        check_upmap(view)
        weights = dict.fromkeys(osds_named(view, osd), weight)
        # CRUSH keeps whole multiples of 1/65536: less than one of them is 0
        if weight * 65536 < 1.01 and any(osd in pg.up for pg in view.pgs for osd in weights):
            words = f"{weight:g}, and entries to an OSD of weight 0 do not hold"
            raise InputError("WEIGHT", words, f"`ceph-tuner drain {osd}`")
        lines = [f"{name}: CRUSH weight {view.osds[name].weight:.5f} to {weight:.5f}" for name in weights]
        lines = [f"osd.{line}" for line in lines] + ["PGs are held where they are, and let go of a few at a time."]
        return ReweightPlan(weights), lines, [_text(weight_command(each, weight)) for each in weights]

    fights = "it would change the entries that hold PGs"
    return _move(f"reweight {_osd_name(osd)} {weight:g}", cluster, keep, slo, hours, at_most, window, pause_balancer,
                  pause_autoscaler, yes, form, planned, fights)  # fmt: skip


@pgs_app.command("step")
def step(
    pool: str = typer.Argument(..., metavar="POOL", help="Its name."),
    pg_num: int = typer.Argument(..., metavar="PG_NUM", min=1, max=65536, help="A power of two."),
    cluster: str = ClusterOption,
    keep: List[str] = KeepOption,
    slo: Optional[Path] = SloOption,
    hours: str = HoursOption,
    at_most: int = AtMostOption,
    window: float = WindowOption,
    pause_balancer: bool = BalancerOption,
    pause_autoscaler: bool = AutoscalerOption,
    many_pgs: bool = typer.Option(False, "--many-pgs", help="Also more PGs an OSD than mon_max_pg_per_osd."),
    yes: bool = YesOption,
    form: Format = FormatOption,
) -> int:
    """Bring a pool to another number of PGs: PGs are split where they are, then moved a few at a time.

    A split is not undone: the way back merges PGs, and moves their data again. Exit code 1 where PGs are left.
    """
    from ceph_tuner.moves import total_bytes
    from ceph_tuner.moves.pgs_plan import PgsPlan
    from ceph_tuner.moves.record import PGS

    def planned(view: MapView) -> Tuple[MovePlan, List[str], List[str]]:
        own = view.pool(pool)
        if own is None:
            raise InputError("POOL", repr(pool), f"a pool of the cluster ({', '.join(sorted(_pools(view))[:8])})")
        if pg_num & (pg_num - 1):
            raise InputError("PG_NUM", str(pg_num), "a power of two")
        plan = PgsPlan(own.number, pg_num)
        bytes_by_pg = plan.left(view, frozenset())
        lines = [f"pool {pool}: pg_num {own.pg_num}, pgp_num {own.pgp_num}, both to {pg_num}."]
        if bytes_by_pg:
            lines.append(f"{len(bytes_by_pg)} PGs would be moved, {_size(total_bytes(bytes_by_pg))}.")
            lines.append(_later(own, pg_num, at_most))
        if own.pg_num < pg_num:
            lines.append("A split is not undone: the way back merges PGs, and moves their data again.")
        return plan, lines, [_text(write.command) for write in plan.writes(view, at_most, frozenset())]

    return _move(f"{PGS}{pool} {pg_num}", cluster, keep, slo, hours, at_most, window, pause_balancer, pause_autoscaler,
                  yes, form, planned, "", pool, many_pgs)  # fmt: skip


@moves_app.command("ls")
def list_moves(cluster: str = ClusterOption, form: Format = FormatOption) -> None:
    """Show the moves of a cluster: how each ended, what it has paused, and the commands of its way back."""
    from ceph_tuner.moves.record import MoveStore
    from ceph_tuner_cli.moves_page import records_page

    with at_work(cluster, "reading moves") as connection:
        store = MoveStore(connection.store)
        rows = [
            {**record.__dict__, "undo": [_text(command) for command in store.undos(record)]}
            for record in store.records()
        ]
    emit(rows, form, lambda: records_page(rows))


@moves_app.command("give-back")
def give_back_command(cluster: str = ClusterOption, form: Format = FormatOption) -> None:
    """Switch the balancer and autoscalers on again that a move has paused and left so, as one that was interrupted."""
    from ceph_tuner.moves.record import MoveStore
    from ceph_tuner.moves.switches import give_back

    lines: List[str] = []
    with at_work(cluster, "giving back") as connection, connection.lock("ceph-tuner moves give-back"):
        store = MoveStore(connection.store)
        for record in store.records():
            lines += give_back(connection, store, record)[1]
    emit(lines, form, lambda: "\n".join(lines or ["nothing is paused by a move"]))


@moves_app.command("end")
def end(
    move: str = typer.Argument(..., help="Its name, as `moves ls` shows it: 'drain osd.3'."),
    cluster: str = ClusterOption,
    yes: bool = typer.Option(False, "--yes", "-y", help="Do it; without, show what would be forgotten."),
    form: Format = FormatOption,
) -> None:
    """Give back what a move has paused, and forget it with its way back. PGs stay where they are."""
    from ceph_tuner.moves.record import MoveStore
    from ceph_tuner.moves.switches import give_back

    with at_work(cluster, "ending a move") as connection, connection.lock("ceph-tuner moves end"):
        store = MoveStore(connection.store)
        record = store.record(move)
        if record is None:
            names = ", ".join(repr(each.name) for each in store.records()) or "none is known"
            raise InputError("MOVE", repr(move), f"the name of a move ({names})")
        undo = [_text(command) for command in store.undos(record)]
        lines: List[str] = []
        if yes:
            record, lines = give_back(connection, store, record)
            store.remove(record)
    emit({"move": move, "ended": yes, "given_back": lines, "undo": undo}, form, lambda: "\n".join([*lines, *undo]))
    say(["it is forgotten; the commands above lead back" if yes else "nothing is changed: --yes does it"])


def _move(
    name: str,
    cluster: str,
    keep: List[str],
    slo: Optional[Path],
    hours: str,
    at_most: int,
    window: float,
    pause_balancer: bool,
    pause_autoscaler: bool,
    yes: bool,
    form: Format,
    plan_of: Callable[[MapView], Tuple[MovePlan, List[str], List[str]]],
    balancer_fights: str,
    pool: str = "",
    many_pgs: bool = False,
) -> int:
    """Show or carry out one move, and give back at its end what it has paused. Gives the exit code."""
    from ceph_tuner.moves.map_view import read_map
    from ceph_tuner.moves.mover import DONE, INTERRUPTED, MoveTask, never_again, waits_in
    from ceph_tuner.moves.pg_limit import MANY_PGS, beyond_limit, beyond_osds, remarks
    from ceph_tuner.moves.pgs_plan import PgsPlan
    from ceph_tuner.moves.record import UNDER_WAY, MoveRecord, MoveStore
    from ceph_tuner.moves.switches import PAUSE_AUTOSCALER, PAUSE_BALANCER, autoscaled, autoscaler_fights, balancer_on
    from ceph_tuner.moves.switches import balancer_fights as refusal
    from ceph_tuner.moves.weights import nothing_to_do
    from ceph_tuner_cli.moves_page import outcome_page
    from ceph_tuner_cli.moves_preview import MovePreview

    open_hours = parse_hours(hours, "--hours")
    with working(f"{cluster}: connecting"):
        connection = open_cluster(cluster)
    with closing(connection):
        if never_again(open_hours, connection.clock.now()):
            raise InputError("--hours", f"{hours}, which has passed", "hours to come")
        wanted = wanted_objectives(connection, keep, slo)
        with working(f"{cluster}: reading maps and PGs"):
            view = read_map(connection)
            plan, lines, commands = plan_of(view)
            balancer = balancer_on(connection)
            autoscaled_pools = autoscaled(view, _own(view, pool))
            is_so = nothing_to_do(view, plan)
            if is_so:
                lines.append("There is nothing to do.")
            limit = None
            if isinstance(plan, PgsPlan):
                lines += remarks(connection, view, plan)
                limit, beyond = beyond_limit(view, plan), beyond_osds(view, plan)
                if beyond is not None:
                    raise beyond
        refusals: Dict[str, InputError] = {}
        if limit is not None and not many_pgs:
            refusals[MANY_PGS] = limit
        if balancer_fights and balancer and not pause_balancer:
            refusals[PAUSE_BALANCER] = refusal(balancer_fights)
        if pool and autoscaled_pools and not pause_autoscaler:
            refusals[PAUSE_AUTOSCALER] = autoscaler_fights(autoscaled_pools)
        if not yes:
            preview = MovePreview(
                cluster, name, lines, commands, wanted.at(connection.clock.now()).preview, hours,
                _rough(connection, name, plan, view, wanted, open_hours), refusals, () if pool else autoscaled_pools,
                waits_in(view, (pool,)),
            )  # fmt: skip
            emit(preview.to_dict(), form, preview.page)
            if form is Format.table:
                show_commands(commands[:FIRST_COMMANDS])
                if len(commands) > FIRST_COMMANDS:
                    say([f"and {len(commands) - FIRST_COMMANDS} commands more: --format json"])
            say([f"nothing is moved: {'it is so already' if is_so else f'{preview.remedy} does it'}"])
            return 0
        for fault in refusals.values():
            raise fault
        say(lines)
        now = connection.clock.now()
        task = MoveTask(
            wanted, stored_baseline(connection.store), window, open_hours, at_most, balancer_fights,
            frozenset({pool} if pool else ()),
        )  # fmt: skip
        with connection.lock(f"ceph-tuner {name.split()[0]}") as lock:
            # whoever had the lock until now may have changed all of it
            store = MoveStore(connection.store)
            newest, earlier = read_map(connection), store.record(name)
            is_done = earlier is not None and earlier.state == DONE and not earlier.holds_back
            if earlier is not None and is_done and not nothing_to_do(newest, plan):
                # its way back leads to before a move that is done
                store.remove(earlier)
                earlier = None
            record = (earlier or MoveRecord(name, now, now)).changed(state=UNDER_WAY)
            autoscaled_pools = autoscaled(newest, _own(newest, pool)) if pause_autoscaler else ()
            pauses = (pause_balancer and balancer_on(connection), autoscaled_pools)
            outcome = _carry_out(connection, task, plan, record, lock, pauses)
    warn(outcome.remarks)
    emit({"cluster": cluster, "move": name, **outcome.to_dict()}, form, lambda: outcome_page(name, outcome))
    if outcome.reason == INTERRUPTED:
        return CODE_INTERRUPTED
    return 0 if outcome.reason == DONE else 1


def _rough(
    connection: Cluster, name: str, plan: MovePlan, view: MapView, wanted: WantedObjectives, hours: Hours
) -> Optional[RoughTime]:
    """How long it takes, by earlier moves of the kind, else by the windows that the cluster keeps."""
    from ceph_tuner.moves import total_bytes
    from ceph_tuner.moves.forecast import rough_by_moves, rough_time
    from ceph_tuner.moves.record import MoveStore
    from ceph_tuner.pacing.judged_windows import kept_windows
    from ceph_tuner.pacing.objectives import held_bounds

    left = plan.left(view, frozenset())
    now, bytes_to_do = connection.clock.now(), total_bytes(left)
    if not bytes_to_do > 0:
        # of a weight nobody knows before CRUSH was asked
        return None
    by_moves = rough_by_moves(MoveStore(connection.store).steps_like(name), now, len(left), bytes_to_do, hours)
    if by_moves is not None:
        return by_moves
    bounds = held_bounds(wanted.at(now).slo, stored_baseline(connection.store))
    return rough_time(kept_windows(connection), bounds, now, bytes_to_do, hours)


def _carry_out(
    connection: Cluster,
    task: MoveTask,
    plan: MovePlan,
    record: MoveRecord,
    lock: Lock,
    pauses: Tuple[bool, Tuple[str, ...]],
) -> MoveOutcome:
    """Pause, move, and give back at the end."""
    from ceph_tuner.core.ceph.uninterrupted import uninterrupted
    from ceph_tuner.moves.mover import Mover
    from ceph_tuner.moves.record import MoveStore
    from ceph_tuner.moves.switches import pause
    from ceph_tuner_cli.moves_page import progress_words
    from ceph_tuner_cli.progress_line import progress_line

    store = MoveStore(connection.store)
    new_record = record.changed(
        balancer=record.balancer or pauses[0], autoscale=tuple(dict.fromkeys((*record.autoscale, *pauses[1])))
    )
    try:
        with uninterrupted():
            record = pause(connection, store, record, *pauses)
        with progress_line(connection.name, "moving") as show:

            def report(progress: MoveProgress) -> None:
                all_of_it = progress.moved + (progress.left or 0)
                words = progress_words(progress)
                show(words, progress.at, progress.moved, all_of_it, progress.waits_for, progress.keeps)

            return Mover(connection, task, plan, record, lock, report).run()
    finally:
        newest = None
        with suppress(TunerError):
            newest = store.record(record.name)
        # where it cannot be read, all that it was about to pause is on again
        newest = newest or new_record
        if newest.holds_back:
            with uninterrupted():
                _give_back(connection, store, newest)


def _give_back(connection: Cluster, store: MoveStore, record: MoveRecord) -> None:
    """Switch on again what a move has paused, unless data is left that it would move at its own pace, or move back."""
    from ceph_tuner.moves.mover import DONE
    from ceph_tuner.moves.switches import give_back

    until = f"until `ceph-tuner moves give-back --cluster {connection.name}`"
    try:
        if record.state != DONE and store.has_written(record):
            words = "what it has paused stays so, as it would move what is left, or move data back"
            warn([f"{words}: until the same command is done, or {until}"])
            return
        say(give_back(connection, store, record)[1])
    except TunerError:
        warn([f"what it has paused stays so {until}"])
        raise


def _later(pool: MovePool, pg_num: int, at_most: int) -> str:
    """What follows the first commands: which numbers, only the pace of the clients will say."""
    steps = f"by at most {at_most} PGs a step"
    if pool.pg_num < pg_num:
        return f"pgp_num is held at {pool.pgp_num} while PGs are split. Then it goes up to {pg_num}, {steps}."
    if pool.pgp_num < pg_num:
        return f"pgp_num goes up to {pg_num}, {steps}."
    return f"pgp_num goes down to {pg_num}, {steps}. Then pg_num is set to {pg_num}, which merges PGs."


def _osd_name(name: str) -> str:
    """`osd.3` for `3` as well: a move of an OSD has one record."""
    return f"osd.{name}" if name.isascii() and name.isdigit() else name


def _own(view: MapView, pool: str) -> List[MovePool]:
    return [each for each in view.pools.values() if not pool or each.name == pool]


def _pools(view: MapView) -> List[str]:
    return [pool.name for pool in view.pools.values()]


def _text(command: Tuple[str, object]) -> str:
    from ceph_tuner.moves import command_text

    return command_text(command)  # type: ignore[arg-type]


def _size(count: float) -> str:
    from ceph_tuner_cli.moves_page import size

    return size(count)
