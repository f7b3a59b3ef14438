"""Moves of a small cluster whose PGs take their time: what is written, when, and how it ends."""

from __future__ import annotations

import errno
from typing import Any, Callable, List, Mapping, Optional, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.lock import break_lock
from ceph_tuner.core.errors import CommandFailed, Locked, RetryLater
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.goals.stored_slo import SLO_KEY, store_slo
from ceph_tuner.core.hours import parse_hours
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.moments import stamp
from ceph_tuner.moves import MovePlan
from ceph_tuner.moves.drain_plan import DrainPlan
from ceph_tuner.moves.map_view import read_map
from ceph_tuner.moves.mover import DONE, HOURS_OVER, INTERRUPTED, STUCK, MoveOutcome, MoveProgress, Mover, MoveTask
from ceph_tuner.moves.pgs_plan import PgsPlan
from ceph_tuner.moves.record import MoveRecord, MoveStore
from ceph_tuner.moves.reweight_plan import ReweightPlan
from ceph_tuner.moves.weights import write_weights
from ceph_tuner.pacing.wanted import WantedObjectives
from ceph_tuner_cli.moves_page import progress_words
from keeping import by_day_and_night, keeping
from moving_cluster import Moving, moving_cluster

pytestmark = pytest.mark.slow

Listener = Callable[[MoveProgress], None]


def move(
    cluster: Cluster, plan: MovePlan, task: Optional[MoveTask] = None, look: Listener = lambda progress: None
) -> MoveOutcome:
    record = MoveStore(cluster.store).record("test") or MoveRecord("test", 0.0, 0.0)
    with cluster.lock("move") as lock:
        return Mover(cluster, task or MoveTask(), plan, record, lock, look).run()


def on(moving: Moving, osd: int) -> List[str]:
    return [pgid for pgid, acting in moving.acting.items() if osd in acting]


def test_a_drained_osd_has_nothing_and_nothing_else_has_moved() -> None:
    cluster, moving = moving_cluster()
    own = on(moving, 3)
    others = {pgid: acting for pgid, acting in moving.acting.items() if pgid not in own}
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True))
    assert (outcome.reason, outcome.moved, on(moving, 3)) == (DONE, len(own), [])
    assert sorted(moving.moved) == sorted(own)
    assert {pgid: moving.acting[pgid] for pgid in others} == others
    assert outcome.moved_bytes == len(own) * 10 * 2**20


def test_the_weight_is_0_at_the_end_and_what_crush_would_move_is_held() -> None:
    cluster, moving = moving_cluster()
    outcome = move(cluster, DrainPlan(frozenset({3})))
    assert (outcome.reason, moving.weights[3], on(moving, 3)) == (DONE, 0.0, [])
    before = {pgid: sorted(acting) for pgid, acting in moving.acting.items()}
    for _ in range(4):
        cluster.clock.sleep(10)
        moving._advance()
    assert {pgid: sorted(acting) for pgid, acting in moving.acting.items()} == before
    assert not moving.moving


def test_pgs_of_which_a_new_mgr_has_not_heard_are_not_taken_for_moved() -> None:
    cluster, moving = moving_cluster(pgs=16)
    own, began, ls = on(moving, 3), cluster.clock.now(), moving._pg_ls
    alike = {pgid: acting for pgid, acting in moving.acting.items() if pgid not in own}

    def pg_ls(arguments: Mapping[str, str]) -> Any:
        answer = ls(arguments)
        if not 30 < cluster.clock.now() - began < 90:
            return answer
        # it is ready after 20 s, whoever has not told it by then
        unheard = {"state": "unknown", "up": [], "acting": []}
        rows = [{**row, **unheard} if {3} & {*row["up"], *row["acting"]} else row for row in answer["pg_stats"]]
        return {**answer, "pg_stats": rows}

    moving._pg_ls = pg_ls
    outcome = move(cluster, DrainPlan(frozenset({3})), MoveTask(at_most=1))
    assert (outcome.reason, outcome.moved, on(moving, 3), moving.weights[3]) == (DONE, len(own), [], 0.0)
    assert moving.moving == {}
    assert {pgid: sorted(moving.acting[pgid]) for pgid in alike} == {pgid: sorted(alike[pgid]) for pgid in alike}


def test_of_one_at_a_time_the_next_begins_once_the_one_before_is_there() -> None:
    cluster, moving = moving_cluster(pgs=16)
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True), MoveTask(at_most=1))
    assert outcome.steps == outcome.moved == len(moving.moved)


def watched(moving: Moving) -> List[int]:
    """How many PGs are on their way with each entry that is written, that of the entry among them."""
    counts: List[int] = []

    def counting(write: Callable[[Mapping[str, str]], Optional[Any]]) -> Callable[[Mapping[str, str]], Optional[Any]]:
        def counted(arguments: Mapping[str, str]) -> Optional[Any]:
            counts.append(len({*moving.moving, arguments["pgid"]}))
            return write(arguments)

        return counted

    for name in ("_osd_pg_upmap_items", "_osd_rm_pg_upmap_items"):
        setattr(moving, name, counting(getattr(moving, name)))
    return counts


def seconds_of(slow_s: float, at_most: int) -> Tuple[MoveOutcome, List[int]]:
    """A drain of PGs of 8 s each, every fifth of them slower."""
    cluster, moving = moving_cluster(pgs=96)
    own = on(moving, 3)
    moving.seconds, moving.slow = 8.0, dict.fromkeys(own[::5], slow_s)
    counts = watched(moving)
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True), MoveTask(at_most=at_most))
    assert (outcome.reason, outcome.moved, len(counts)) == (DONE, len(own), len(own))
    return outcome, counts


def test_a_place_that_is_free_is_taken_while_slower_pgs_are_on_their_way() -> None:
    outcome, counts = seconds_of(60.0, at_most=4)
    # of one PG, of two, of three, and then of four: each would last as long as its slowest PG
    firsts = [0, 1, 3, *range(6, outcome.moved, 4), outcome.moved]
    steps = [range(first, last) for first, last in zip(firsts, firsts[1:])]
    stepped_s = sum(60.0 if any(number % 5 == 0 for number in step) else 8.0 for step in steps)
    assert outcome.ended - outcome.began < 0.6 * stepped_s
    assert max(counts) == 4


def test_never_more_are_on_their_way_than_the_pace_allows_also_after_a_kill() -> None:
    cluster, moving = moving_cluster(pgs=96, seconds=30.0)
    own, plan, told = on(moving, 3), DrainPlan(frozenset({3}), keep_weight=True), [1]
    task, waits = MoveTask(at_most=6), [""]
    moving.slow = {pgid: 10.0 + 7 * number % 60 for number, pgid in enumerate(own)}
    write, over = moving._osd_pg_upmap_items, []

    def watch(arguments: Mapping[str, str]) -> Optional[Any]:
        over.append(len({*moving.moving, arguments["pgid"]}) - told[-1])
        return write(arguments)

    moving._osd_pg_upmap_items = watch  # type: ignore[method-assign]

    def look(progress: MoveProgress) -> None:
        told.append(progress.at_once)
        waits.append(progress.waits_for)

    def kill(progress: MoveProgress) -> None:
        look(progress)
        if progress.under_way == 6:
            raise Killed

    with pytest.raises(Killed):
        move(cluster, plan, task, kill)
    assert len(moving.moving) == 6
    written, first = len(over), len(waits)
    told.append(1)
    assert move(cluster, plan, task, look).reason == DONE
    assert len(over) > written
    # the pace may have grown by one since it was told
    assert max(over) <= 1
    assert waits[first].startswith("PGs that are on their way already: 1.")
    assert on(moving, 3) == []


def test_a_pg_that_has_told_of_the_new_map_is_waited_for_no_longer() -> None:
    cluster, moving = moving_cluster(pgs=64, seconds=1.0)
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True), MoveTask(at_most=1))
    assert (outcome.reason, outcome.steps) == (DONE, outcome.moved)
    # a look after each step, one before the first, and one that finds nothing left
    assert outcome.ended - outcome.began <= 5.0 * (outcome.steps + 2)
    assert moving.moved


def test_what_a_pg_told_before_it_was_let_go_of_is_no_arrival() -> None:
    cluster, moving = moving_cluster(pgs=16, seconds=4.0, heard_s=8.0)
    moving.weights[4] = 0.0
    moving.acting = {moving.pgid(number): moving.up(number) for number in range(16)}
    too_early: List[int] = []

    def look(progress: MoveProgress) -> None:
        there = len(set(moving.moved)) - len(moving.moving)
        too_early.append(max(0, progress.moved - there))

    assert move(cluster, ReweightPlan({4: 1.0}), MoveTask(at_most=1), look).reason == DONE
    assert set(too_early) == {0}


def test_a_missed_objective_holds_the_next_step_back_and_it_goes_on_later() -> None:
    cluster, moving = moving_cluster()
    seen: List[Tuple[str, int]] = []
    # the twin's clients are far below the one bound, and above the other
    tight = MoveTask(keeping("client.p95_ms <= 0.001"))

    def look(progress: MoveProgress) -> None:
        seen.append((progress.waits_for, len(moving.writes)))
        if len(seen) > 20:
            raise KeyboardInterrupt

    outcome = move(cluster, DrainPlan(frozenset({3})), tight, look)
    assert outcome.reason == INTERRUPTED
    assert moving.writes == []
    assert "client.p95_ms at" in seen[-1][0]
    loose = MoveTask(keeping("client.p95_ms <= 10000"))
    outcome = move(cluster, DrainPlan(frozenset({3})), loose)
    assert (outcome.reason, outcome.windows_missed, on(moving, 3)) == (DONE, 0, [])


def test_a_move_whose_objectives_are_removed_goes_on_no_faster() -> None:
    cluster, _ = moving_cluster(pgs=64, seconds=60.0)
    store_slo(cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 1000"),))))
    paces: List[Tuple[str, int]] = []

    def look(progress: MoveProgress) -> None:
        paces.append((progress.keeps, progress.at_once))
        if progress.at_once == 2:
            cluster.store.remove(SLO_KEY)

    move(cluster, DrainPlan(frozenset({3})), MoveTask(WantedObjectives.stored(cluster.store)), look)
    without = [at_once for keeps, at_once in paces if keeps == "keeps nothing: no objective is set"]
    assert len(without) > 20
    assert set(without) <= {2, 3}, "a window may have been judged before the store was read again"
    assert without[-1] == without[0]


def test_a_move_that_is_begun_at_night_keeps_the_day_s_bound_by_day() -> None:
    cluster, moving = moving_cluster(pgs=64, seconds=60.0)
    night_ends = cluster.clock.now() // 60 * 60 + 360
    store_slo(cluster.store, by_day_and_night("0.001", f"00:00-{stamp(night_ends)[11:16]}"))
    writes: List[Tuple[float, int]] = []
    seen: List[MoveProgress] = []

    def look(progress: MoveProgress) -> None:
        writes.append((progress.at, len(moving.writes)))
        seen.append(progress)
        if progress.at > night_ends + 900:
            raise KeyboardInterrupt

    task = MoveTask(WantedObjectives.stored(cluster.store))
    outcome = move(cluster, DrainPlan(frozenset({3})), task, look)
    assert (outcome.reason, bool(outcome.left)) == (INTERRUPTED, True)
    by_night = max(count for at, count in writes if at < night_ends)
    assert by_night > 0
    assert {count for at, count in writes if at >= night_ends} == {by_night}
    assert max(progress.at_once for progress in seen if progress.at < night_ends) > 1
    assert seen[-1].keeps == "keeps client.p95_ms <= 0.001 ms (policy base)"
    assert "client.p95_ms at" in seen[-1].waits_for
    assert {progress.at_once for progress in seen if progress.at >= night_ends + 5} == {1}


@pytest.mark.parametrize("flag", ["norebalance", "nobackfill", "pauserd,pausewr"])
def test_the_operators_flags_are_waited_for_and_never_cleared(flag: str) -> None:
    cluster, moving = moving_cluster(flags=flag)
    reasons: List[str] = []

    def look(progress: MoveProgress) -> None:
        reasons.append(progress.waits_for)
        if len(reasons) == 10:
            moving.flags = ""

    assert move(cluster, DrainPlan(frozenset({3})), look=look).reason == DONE
    assert all(reason.startswith(flag.replace(",", ", ")) for reason in reasons[:9])
    assert not [write for write in moving.writes if "unset" in write]


def test_a_move_whose_dates_have_passed_ends_once_what_is_on_its_way_has_arrived() -> None:
    cluster, moving = moving_cluster(pgs=64, seconds=40.0)
    # a minute is left of the day
    moving.twin.twin.pass_over(86_400.0 - cluster.clock.now() % 86_400.0 - 60.0)
    hours = parse_hours(stamp(cluster.clock.now())[:10])
    seen: List[MoveProgress] = []
    outcome = move(cluster, DrainPlan(frozenset({3})), MoveTask(hours=hours, at_most=1), seen.append)
    assert (outcome.reason, outcome.moved > 0, len(outcome.left) > 0) == (HOURS_OVER, True, True)
    assert moving.moving == {}
    assert outcome.ended - outcome.began < 180.0
    # other hours go on
    assert move(cluster, DrainPlan(frozenset({3})), MoveTask()).reason == DONE


@pytest.mark.parametrize("every_day", [True, False])
def test_a_move_whose_last_pg_arrives_after_its_hours_is_done_then(every_day: bool) -> None:
    cluster, moving = moving_cluster(pgs=8, seconds=90.0)
    moving.twin.twin.pass_over(86_400.0 - cluster.clock.now() % 86_400.0 - 220.0)
    hours = parse_hours("12:00-00:00" if every_day else stamp(cluster.clock.now())[:10])
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True), MoveTask(hours=hours))
    assert (outcome.reason, outcome.left, on(moving, 3), moving.moving) == (DONE, (), [], {})
    # it holds the lock no longer
    assert 220.0 < outcome.ended - outcome.began < 600.0


def test_steps_begin_inside_of_the_hours_alone() -> None:
    cluster, moving = moving_cluster()
    began = cluster.clock.now()
    begins = parse_hours("01:00-05:00").begins(began)
    assert begins is not None
    first: List[float] = []

    def look(progress: MoveProgress) -> None:
        if moving.writes and not first:
            first.append(progress.at)

    assert move(cluster, DrainPlan(frozenset({3})), MoveTask(hours=parse_hours("01:00-05:00")), look).reason == DONE
    assert first[0] >= begins


class Killed(BaseException):
    """As kill -9: nothing is cleared up after it."""


def test_a_move_that_was_killed_goes_on_and_the_way_back_stays_that_to_the_beginning() -> None:
    cluster, moving = moving_cluster(pgs=16)
    own = on(moving, 3)

    def kill(progress: MoveProgress) -> None:
        if progress.moved >= 2:
            raise Killed

    with pytest.raises(Killed):
        move(cluster, DrainPlan(frozenset({3}), keep_weight=True), look=kill)
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True))
    assert (outcome.reason, on(moving, 3)) == (DONE, [])
    record = MoveStore(cluster.store).record("test")
    assert record is not None
    undos = MoveStore(cluster.store).undos(record)
    assert {arguments["pgid"] for prefix, arguments in undos if prefix == "osd rm-pg-upmap-items"} == set(own)
    for prefix, arguments in undos:
        moving.mon(prefix, arguments)
    assert moving.upmaps == {}


def test_without_the_lock_nothing_more_is_written() -> None:
    cluster, moving = moving_cluster(pgs=16)
    counts: List[int] = []

    def look(progress: MoveProgress) -> None:
        counts.append(len(moving.writes))
        if len(counts) == 2:
            break_lock(cluster.store)

    with pytest.raises(Locked):
        move(cluster, DrainPlan(frozenset({3})), MoveTask(at_most=1), look)
    assert len(moving.writes) == counts[1]


def test_what_the_monitors_drop_is_passed_over_and_said() -> None:
    cluster, moving = moving_cluster()
    refused = on(moving, 3)[0]
    moving.dropping = (refused,)
    outcome = move(cluster, DrainPlan(frozenset({3})))
    assert (outcome.reason, outcome.left, on(moving, 3)) == (STUCK, (refused,), [refused])
    assert any(refused in remark for remark in outcome.remarks)
    assert moving.weights[3] == 1.0


def test_a_pool_whose_pgs_ceph_is_merging_is_waited_for() -> None:
    cluster, moving = moving_cluster()
    moving.target = 4
    reasons: List[str] = []

    def look(progress: MoveProgress) -> None:
        reasons.append(progress.waits_for)
        if len(reasons) == 4:
            moving.target = 0

    assert move(cluster, DrainPlan(frozenset({3})), look=look).reason == DONE
    assert reasons[0] == "pg_num of rbd, which Ceph is changing"


def test_an_entry_that_was_dropped_once_is_written_again() -> None:
    cluster, moving = moving_cluster()
    moving.dropping = (on(moving, 3)[0],)

    def look(progress: MoveProgress) -> None:
        if len(moving.writes) > 1:
            moving.dropping = ()

    assert move(cluster, DrainPlan(frozenset({3})), look=look).reason == DONE
    assert on(moving, 3) == []


def test_a_weight_changes_while_all_is_held_and_then_let_go_of() -> None:
    cluster, moving = moving_cluster(pgs=16)
    moving.weights[4] = 0.0
    moving.acting = {moving.pgid(number): moving.up(number) for number in range(16)}
    before = {pgid: sorted(acting) for pgid, acting in moving.acting.items()}
    held: List[int] = []
    told: List[MoveProgress] = []

    def look(progress: MoveProgress) -> None:
        told.append(progress)
        if moving.weights[4] == 1.0:
            held.append(len(moving.upmaps))

    task = MoveTask(keeping("client.p95_ms <= 10000"), at_most=2)
    outcome = move(cluster, ReweightPlan({4: 1.0}), task, look)
    # what is to be moved nobody knows before CRUSH has the weight
    assert told[0].waits_for.startswith("a first window")
    assert {progress.finish for progress in told if not progress.moved} == {None}
    assert told[0].left is None
    assert "what moves is known once CRUSH has the weights" in progress_words(told[0])
    assert all(progress.left is not None for progress in told if progress.moved)
    assert (outcome.reason, moving.weights[4], moving.upmaps) == (DONE, 1.0, {})
    assert on(moving, 4)
    now = {pgid: sorted(acting) for pgid, acting in moving.acting.items()}
    changed = [pgid for pgid in now if now[pgid] != before[pgid]]
    assert outcome.moved == len(changed) == held[0] + 1
    assert outcome.held == 0
    assert held == sorted(held, reverse=True)
    # each moves once: what began between the weight and its entry was sent back, and began again
    assert set(moving.moved) == set(changed)


def test_pgs_are_split_where_they_are_and_moved_a_few_at_a_time() -> None:
    cluster, moving = moving_cluster(osds=7)
    told: List[MoveProgress] = []
    outcome = move(cluster, PgsPlan(1, 16), MoveTask(at_most=2), told.append)
    assert (outcome.reason, moving.pg_num, moving.pgp_num) == (DONE, 16, 16)
    assert moving.writes[:2] == ["osd pool set rbd pg_num 16", "osd pool set rbd pgp_num 8"]
    numbers = [int(write.split()[-1]) for write in moving.writes[2:]]
    assert numbers == sorted(numbers)
    # what a split takes tells nothing of how fast data moves
    ends = [progress.finish for progress in told if progress.finish is not None]
    assert all(end.high is not None for end in ends)
    assert max(second - first for first, second in zip(numbers, numbers[1:])) <= 2


def test_a_move_with_nothing_to_move_is_done_at_once_and_measures_nothing() -> None:
    cluster, moving = moving_cluster(pgs=16)
    before = cluster.clock.now()
    (pool,) = (number for number, each in read_map(cluster).pools.items() if each.pg_num == 16)

    def look(progress: MoveProgress) -> None:
        raise AssertionError(f"waits for {progress.waits_for}")

    outcome = move(cluster, PgsPlan(pool, 16), MoveTask(keeping("client.p95_ms <= 0.001")), look)
    assert (outcome.reason, outcome.windows, moving.writes, cluster.clock.now() - before) == (DONE, 0, [], 0.0)
    record = MoveStore(cluster.store).record("test")
    assert record is not None
    assert record.state == DONE


def test_a_reweight_is_not_done_while_pgs_that_were_let_go_of_before_a_kill_are_on_their_way() -> None:
    cluster, moving = moving_cluster(pgs=16, seconds=60.0)
    moving.weights[4] = 0.0
    moving.acting = {moving.pgid(number): moving.up(number) for number in range(16)}

    def kill(progress: MoveProgress) -> None:
        if progress.left is not None and not moving.upmaps and moving.moving:
            raise Killed

    with pytest.raises(Killed):
        move(cluster, ReweightPlan({4: 1.0}), look=kill)
    told: List[MoveProgress] = []
    outcome = move(cluster, ReweightPlan({4: 1.0}), look=told.append)
    assert (outcome.reason, outcome.moved, moving.moving) == (DONE, 0, {})
    assert told[0].left == told[0].under_way > 0
    assert told[0].left_bytes >= 10 * 2**20


def test_an_interrupted_reweight_counts_the_pgs_that_are_held_and_not_those_on_their_way() -> None:
    cluster, moving = moving_cluster(pgs=16, seconds=60.0)
    moving.weights[4] = 0.0
    moving.acting = {moving.pgid(number): moving.up(number) for number in range(16)}

    def look(progress: MoveProgress) -> None:
        if progress.moved == 1 and progress.under_way:
            raise KeyboardInterrupt

    outcome = move(cluster, ReweightPlan({4: 1.0}), look=look)
    assert outcome.reason == INTERRUPTED
    assert outcome.held == len(moving.upmaps) > 0
    assert len(outcome.left) == len(moving.upmaps) + len(moving.moving)


@pytest.mark.parametrize(("before", "after"), [(8, 32), (32, 8)])
def test_no_more_pgs_move_at_a_time_than_the_pace_allows_where_pg_num_is_four_times_as_large(
    before: int, after: int
) -> None:
    cluster, moving = moving_cluster(osds=7, pgs=before, seconds=20.0)
    most = [0]
    told: List[MoveProgress] = []

    def look(progress: MoveProgress) -> None:
        most.append(len(moving.moving))
        told.append(progress)

    outcome = move(cluster, PgsPlan(1, after), MoveTask(at_most=4), look)
    assert (outcome.reason, moving.pg_num, moving.pgp_num) == (DONE, after, after)
    assert 1 < max(most) <= 4
    # from 8 to 32 PGs, eight PGs move twice: as much as there is, and not three quarters of it
    assert told[0].left_bytes == pytest.approx(before * 2 * 10 * 2**20)


def test_pgs_are_merged_after_their_data_has_moved() -> None:
    cluster, moving = moving_cluster(osds=7)
    outcome = move(cluster, PgsPlan(1, 4))
    assert (outcome.reason, moving.pg_num, moving.pgp_num) == (DONE, 4, 4)
    assert moving.writes[-1] == "osd pool set rbd pg_num 4"
    assert all("pgp_num" in write for write in moving.writes[:-1])


def test_the_balancer_that_comes_on_meanwhile_is_waited_for() -> None:
    cluster, moving = moving_cluster(balancer=True)
    reasons: List[str] = []

    def look(progress: MoveProgress) -> None:
        reasons.append(progress.waits_for)
        moving.balancer = len(reasons) < 5

    task = MoveTask(balancer_fights="it would move PGs back")
    assert move(cluster, DrainPlan(frozenset({3})), task, look).reason == DONE
    assert reasons[0] == "the balancer to be off: it would move PGs back"


def test_the_end_is_told_with_an_interval_and_corrected() -> None:
    cluster, _ = moving_cluster(pgs=32)
    told: List[Any] = []
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True), MoveTask(at_most=1), told.append)
    assert told[0].finish is None
    known = [progress for progress in told if progress.finish is not None and progress.left]
    assert known[-1].finish.low - 15 <= outcome.ended <= known[-1].finish.high + 15
    assert abs(known[len(known) // 2].finish.mean - outcome.ended) < 0.3 * (outcome.ended - outcome.began)


def test_a_number_of_pgs_that_the_monitors_refuse_ends_the_move() -> None:
    cluster, moving = moving_cluster(osds=7)
    tried: List[str] = []

    def refused(arguments: Mapping[str, str]) -> None:
        tried.append(f"{arguments['var']} {arguments['val']}")
        raise CommandFailed("osd pool set", -errno.ERANGE, "exceeds mon_max_pg_per_osd")

    moving._osd_pool_set = refused  # type: ignore[method-assign]
    told: List[MoveProgress] = []

    def look(progress: MoveProgress) -> None:
        told.append(progress)
        assert len(told) < 50, "it goes on for ever"

    outcome = move(cluster, PgsPlan(1, 16), look=look)
    assert (outcome.reason, tried) == (STUCK, ["pg_num 16"])
    assert any("mon_max_pg_per_osd" in remark for remark in outcome.remarks)


@pytest.mark.parametrize("lost", ["pg_num", "pgp_num"])
def test_pgp_num_is_held_at_the_next_look_where_a_monitor_did_not_answer(lost: str) -> None:
    cluster, moving = moving_cluster(osds=7)
    tried: List[str] = []
    set_it = moving._osd_pool_set

    def once_silent(arguments: Mapping[str, str]) -> None:
        said = f"{arguments['var']} {arguments['val']}"
        first, held = said not in tried, moving.pgp_num
        tried.append(said)
        if not first or arguments["var"] != lost or len(tried) > 2:
            set_it(arguments)
        elif lost == "pg_num":
            set_it(arguments)
            # the mgr raises it some seconds later
            moving.pgp_num = held
        if first and arguments["var"] == lost and len(tried) <= 2:
            raise RetryLater("no answer", "again")

    moving._osd_pool_set = once_silent  # type: ignore[method-assign]
    assert move(cluster, PgsPlan(1, 16), MoveTask(at_most=1)).reason == DONE
    assert tried[: tried.index("pgp_num 9")].count("pgp_num 8") >= (2 if lost == "pgp_num" else 1)
    numbers = [int(said.split()[1]) for said in tried if said.startswith("pgp_num")]
    assert max(second - first for first, second in zip(numbers, numbers[1:])) <= 1


class FeltMoves:
    """Windows of clients who feel every PG that is on its way, as a sampler's: of looks after a moment, 30 s in all."""

    seconds = 30.0

    def __init__(self, cluster: Cluster, moving: Moving, bearable: int) -> None:
        self._clock, self._moving, self._bearable = cluster.clock, moving, bearable
        self._looks: List[Tuple[float, int]] = []

    def look(self) -> None:
        now = self._clock.now()
        self._looks = [each for each in self._looks if each[0] > now - self.seconds]
        # a move that begins and ends between two looks was felt
        self._looks.append((now, max(len(self._moving.moving), self.begun_since())))

    def begun_since(self) -> int:
        before, self._seen = getattr(self, "_seen", 0), len(self._moving.moved)
        return self._seen - before

    def window(self, since: float) -> Optional[Window]:
        own = [each for each in self._looks if each[0] - 5 >= since - 0.5]
        if 5 * len(own) < 24:
            return None
        latency = 40.0 if max(count for _, count in own) > self._bearable else 10.0
        means = {"client.p95_ms": Measure(latency, 0.0, 5), "client.iops": Measure(100.0, 0.0, 5)}
        return Window(own[0][0] - 5, own[-1][0], means)


def test_steps_that_are_shorter_than_a_window_are_judged_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, moving = moving_cluster(pgs=128, seconds=3.0)
    felt = FeltMoves(cluster, moving, bearable=2)
    monkeypatch.setattr("ceph_tuner.pacing.client_watch.judged_windows", lambda *_: felt)
    task = MoveTask(keeping("client.p95_ms <= 20"))
    paces: List[int] = []
    waits: List[str] = []

    def look(progress: MoveProgress) -> None:
        paces.append(progress.at_once)
        waits.append(progress.waits_for)

    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True), task, look)
    assert outcome.reason == DONE
    assert 2 <= max(paces) <= 3
    assert outcome.windows_missed >= 1
    assert not [words for words in waits if "not seen" in words]


def test_clients_that_bear_it_let_a_move_go_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, moving = moving_cluster(pgs=128, seconds=3.0)
    felt = FeltMoves(cluster, moving, bearable=64)
    monkeypatch.setattr("ceph_tuner.pacing.client_watch.judged_windows", lambda *_: felt)
    task = MoveTask(keeping("client.p95_ms <= 20"))
    paces: List[int] = []
    outcome = move(
        cluster, DrainPlan(frozenset({3}), keep_weight=True), task, lambda progress: paces.append(progress.at_once)
    )
    assert (outcome.reason, outcome.windows_missed) == (DONE, 0)
    assert max(paces) >= 4


def test_hours_in_which_nothing_begins_are_not_what_a_step_took() -> None:
    cluster, _ = moving_cluster(pgs=16)
    told: List[MoveProgress] = []
    task = MoveTask(hours=parse_hours("01:00-05:00"), at_most=1)
    outcome = move(cluster, DrainPlan(frozenset({3}), keep_weight=True), task, told.append)
    known = [progress for progress in told if progress.finish is not None and progress.left]
    # all is moved within some minutes of the first night
    assert known[0].finish is not None
    assert known[0].finish.mean is not None
    assert abs(known[0].finish.mean - outcome.ended) < 120


@pytest.mark.parametrize("failure", [RetryLater("no answer", "again"), Killed()])
def test_what_a_weight_would_move_is_held_though_the_monitors_fall_silent_half_way(failure: BaseException) -> None:
    cluster, moving = moving_cluster(pgs=32, osds=6, seconds=40.0)
    write, failed = moving._osd_pg_upmap_items, []

    def once(arguments: Mapping[str, str]) -> Optional[Any]:
        if moving.weights[3] == 0 and len(failed) < 3:
            failed.append(arguments["pgid"])
            if len(failed) == 3:
                raise failure
        return write(arguments)

    moving._osd_pg_upmap_items = once  # type: ignore[method-assign]
    before: List[Any] = []

    def look(progress: MoveProgress) -> None:
        before[:] = [{pgid: sorted(acting) for pgid, acting in moving.acting.items()}]

    plan, flags = DrainPlan(frozenset({3})), MoveTask(at_most=64)
    if isinstance(failure, Killed):
        with pytest.raises(Killed):
            move(cluster, plan, flags, look)
        cluster.clock.sleep(3)
        closed = MoveTask(hours=parse_hours("01:00-05:00"))
        outcome = move(cluster, plan, closed)
    else:
        outcome = move(cluster, plan, flags, look)
    assert (len(failed), outcome.reason) == (3, DONE)
    for _ in range(20):
        cluster.clock.sleep(10)
        moving._advance()
    held = {pgid: sorted(acting) for pgid, acting in moving.acting.items()}
    assert {pgid for pgid in held if 3 in held[pgid]} == set()
    assert len([pgid for pgid in held if held[pgid] != before[0][pgid] and 3 not in before[0][pgid]]) == 0


def test_what_moves_for_another_reason_is_not_sent_back_as_a_weight_changes() -> None:
    cluster, moving = moving_cluster(pgs=16, osds=6, seconds=1e6)
    pgid = next(pgid for pgid, acting in moving.acting.items() if 3 not in acting)
    wanted = sorted(moving.acting[pgid])
    # it comes from elsewhere, as from an OSD that somebody empties
    moving.acting[pgid] = [osd for osd in range(6) if osd not in wanted and osd != 3][:2]
    moving._advance()
    store, record = MoveStore(cluster.store), MoveRecord("test", 0.0, 0.0)
    with cluster.lock("move") as lock:
        assert write_weights(cluster, lock, store, record, read_map(cluster), {3: 0.5}) == []
    assert sorted(moving.up(int(pgid.split(".")[1], 16))) == wanted
    assert pgid not in moving.upmaps


def test_on_a_large_cluster_what_a_weight_moves_is_held_without_asking_for_every_pg() -> None:
    cluster, moving = moving_cluster(pgs=128, osds=8, seconds=600.0)
    moving.weights[4] = 0.0
    moving.acting = {moving.pgid(number): moving.up(number) for number in range(128)}
    before = {pgid: sorted(acting) for pgid, acting in moving.acting.items()}
    view, pg_map, listed = read_map(cluster), moving._pg_map, moving._pg_ls
    asked: List[str] = []
    began = cluster.clock.now()

    def slowly(arguments: Mapping[str, str]) -> Any:
        asked.append(arguments["pgid"])
        cluster.clock.sleep(0.5)
        return pg_map(arguments)

    def late(arguments: Mapping[str, str]) -> Any:
        # some peer for a while before they tell where they are to be
        rows, now = listed(arguments)["pg_stats"], cluster.clock.now()
        since = {row["pgid"]: 5.0 + 20.0 * (int(row["pgid"][2:], 16) % 7 == 0) for row in rows}
        rows = [{**row, "up": before[row["pgid"]]} if now - began < since[row["pgid"]] else row for row in rows]
        return {"pg_ready": True, "pg_stats": rows}

    moving._pg_map, moving._pg_ls = slowly, late  # type: ignore[method-assign]
    store, record = MoveStore(cluster.store), MoveRecord("test", 0.0, 0.0)
    with cluster.lock("move") as lock:
        assert write_weights(cluster, lock, store, record, view, {4: 1.0}) == []
    assert cluster.clock.now() - began < 60
    assert len(asked) == len(set(asked)) < 80
    assert {moving.pgid(number): sorted(moving.up(number)) for number in range(128)} == before
    assert set(store.held(record)) == set(moving.upmaps) != set()


def test_a_step_of_pgp_num_is_not_over_before_pgs_tell_that_they_move() -> None:
    cluster, moving = moving_cluster(osds=7, seconds=20.0)
    set_it, dump, listed = moving._osd_pool_set, moving._osd_dump, moving._pg_ls
    wanted: List[Tuple[float, int]] = []
    told: List[Tuple[float, Any]] = []
    early: List[str] = []

    def pool_set(arguments: Mapping[str, str]) -> None:
        if arguments["var"] != "pgp_num" or int(arguments["val"]) <= 8:
            set_it(arguments)
            return
        early.extend(moving.moving)
        # the mgr brings pgp_num to its target some seconds later
        wanted[:] = [(cluster.clock.now() + 13.0, int(arguments["val"]))]

    def osd_dump(arguments: Mapping[str, str]) -> Any:
        if wanted and cluster.clock.now() >= wanted[0][0]:
            moving.pgp_num = wanted.pop()[1]
            moving._advance()
        found = dump(arguments)
        if wanted:
            found["pools"][0]["pg_placement_num_target"] = wanted[0][1]
        return found

    def pg_ls(arguments: Mapping[str, str]) -> Any:
        now = cluster.clock.now()
        told.append((now, listed(arguments)))
        # PGs are as they were some seconds ago
        return next(answer for at, answer in reversed(told) if at <= now - 4 or at == told[0][0])

    moving._osd_pool_set, moving._osd_dump, moving._pg_ls = pool_set, osd_dump, pg_ls  # type: ignore[method-assign]
    assert move(cluster, PgsPlan(1, 16), MoveTask(at_most=1)).reason == DONE
    assert early == []
