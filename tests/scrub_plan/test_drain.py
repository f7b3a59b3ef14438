"""Drains of twins: what is asked for, when, and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple
from unittest.mock import patch

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.changes.lock import break_lock
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, InputError, Locked, PermissionRefused, RetryLater
from ceph_tuner.core.goals.stored_slo import store_slo
from ceph_tuner.core.knobs.releases import REEF, TENTACLE
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.pacing.wanted import WantedObjectives
from ceph_tuner.scrub_plan.beginning import Beginning, places_for
from ceph_tuner.scrub_plan.cluster_view import read_again, read_view
from ceph_tuner.scrub_plan.drain import (
    DONE,
    INTERRUPTED,
    TIME_UP,
    Drain,
    DrainOutcome,
    DrainProgress,
    DrainTask,
    foretold_end,
)
from ceph_tuner.scrub_plan.pace import ScrubLimits, due_until, finished
from ceph_tuner.scrub_plan.rates import usual_pace
from ceph_tuner.twin.model import MIB, ClientStream, RecoveryWork
from ceph_tuner_cli.scrub_page import progress_words
from keeping import by_day_and_night, keeping
from overdue import DAY, HOUR, MB, NOW, daily, overdue_twin, rate
from twin_cluster.cluster import TwinClock, TwinCluster
from twin_cluster.pgs import stamp
from twins import SLOW, answering

pytestmark = pytest.mark.slow

LATE = {f"1.{number:x}": 20.0 - number for number in range(12)}
"""Of 16 PGs: the first is the longest late."""

Listener = Callable[[DrainProgress], None]


def silent(progress: DrainProgress) -> None:
    """Of no interest."""


def slow_twin(**changes: Any) -> TwinCluster:
    """Drives on which scrubs are felt: p95 of 21 ms without any, 92 with one at a time, 158 with three."""
    clients = (ClientStream("rbd", rate=250.0, depth=64, read_share=0.2),)
    profile = {"osd_mclock_profile": "high_recovery_ops"}
    return overdue_twin(LATE, profile, **{"objects": 6400, "osd": SLOW, "clients": clients, **changes})


def task(cluster: Cluster, keep: str = "", per_osd: int = 3, seconds: float = DAY, **changes: Any) -> DrainTask:
    seen = read_view(cluster)
    order = due_until(seen, seen.at + HOUR)
    return DrainTask(order, seen.at + seconds, ScrubLimits(per_osd, 80), keeping(keep), daily(rate(20 * MB)), **changes)


def drain(cluster: Cluster, wanted: DrainTask, listen: Listener = silent) -> DrainOutcome:
    with cluster.lock("drain") as lock:
        return Drain(cluster, read_view(cluster), wanted, lock, listen).run()


def test_a_drain_of_nothing_ends_at_once() -> None:
    twin = slow_twin()
    began = twin.clock.now()
    outcome = drain(twin, replace(task(twin, "client.p95_ms<=40"), order=()))
    assert (outcome.reason, outcome.total, outcome.windows, twin.clock.now()) == (DONE, 0, 0, began)


@pytest.mark.parametrize("keep", ["", "client.p95_ms<=1000"])
def test_the_date_before_it_begins_is_that_of_its_first_look(keep: str) -> None:
    twin, dates = slow_twin(), []
    wanted = task(twin, keep, window_s=30.0)
    foretold = foretold_end(wanted, read_view(twin))
    drain(twin, wanted, lambda progress: dates.append(progress.finish_at))
    assert foretold is not None
    # it connects and looks before, and measures where it has objectives
    assert foretold == pytest.approx(dates[0], abs=35.0 if keep else 5.0)
    assert foretold_end(replace(wanted, rates=daily(rate(0.0))), read_view(twin)) is None


def asked(twin: TwinCluster) -> List[str]:
    return [pgid for _, pgid in twin.twin.requested_scrubs]


def stamps(twin: TwinCluster) -> Dict[str, str]:
    rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
    return {row["pgid"]: row["last_deep_scrub_stamp"] for row in rows}


@pytest.mark.parametrize("release", [TENTACLE, REEF])
def test_what_is_late_is_asked_for_once_in_its_order_and_nothing_else_is(release: Any) -> None:
    twin = overdue_twin(LATE, release=release)
    before = stamps(twin)
    outcome = drain(twin, task(twin))
    assert (outcome.reason, outcome.done, outcome.left) == (DONE, 12, ())
    assert sorted(asked(twin)) == sorted(LATE)
    assert asked(twin)[0] == "1.0"
    assert {pgid for pgid, text in stamps(twin).items() if text != before[pgid]} == set(LATE)


def test_a_pg_whose_stamp_is_of_a_clock_that_was_ahead_is_scrubbed_first_and_once() -> None:
    twin = overdue_twin({**LATE, "1.0": -400})
    assert [note for note in read_view(twin).notes if "PGs count as late" in note and ": 1.0;" in note]
    outcome = drain(twin, task(twin))
    assert (outcome.reason, outcome.done, outcome.left) == (DONE, 12, ())
    assert (asked(twin)[0], len(asked(twin))) == ("1.0", 12)
    again = read_view(twin)
    assert not any("PGs count as late" in note for note in again.notes)
    assert not any(pg.late for pg in again.pgs)


def test_pgs_of_which_a_new_mgr_has_not_heard_are_not_taken_for_scrubbed() -> None:
    twin = slow_twin()
    rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
    never = {"up": [], "acting": [], "last_deep_scrub_stamp": "0.000000", "last_scrub_stamp": "0.000000"}
    unheard = [{**row, "state": "unknown", **never} if row["pgid"] in ("1.0", "1.1") else row for row in rows]
    young = answering(twin, {"pg ls": {"pg_ready": True, "pg_stats": unheard}})
    # not in the order: their stamps of last month, told later, would be newer than none
    assert {pg.pgid for pg in task(young).order} == LATE.keys() - {"1.0", "1.1"}
    assert "2 of 16 PGs are left out: the active mgr has not heard of the PGs yet" in read_view(young).notes
    before = read_view(twin)
    again = read_again(young, before, 7 * DAY)
    assert not any(finished({pg.pgid: pg.deep_scrubbed_at for pg in before.pgs}, again).values())
    assert again.pgs == before.pgs


@pytest.mark.parametrize(
    ("command", "wrong"),
    [("osd dump", {"pools": []}), ("pg ls", {"pg_stats": []}), ("pg ls", {"pg_stats": None}), ("pg ls", {})],
)
def test_what_is_not_listed_once_is_not_taken_for_gone(command: str, wrong: Mapping[str, Any]) -> None:
    twin = slow_twin()
    dump = json.loads(twin.commander.mon("osd dump", {}))
    odd = answering(twin, {command: {**dump, **wrong} if command == "osd dump" else wrong})
    with pytest.raises((RetryLater, CommandFailed)):
        read_again(odd, read_view(twin), 7 * DAY)


def test_to_be_asked_for_changes_no_stamp() -> None:
    twin = overdue_twin(LATE)
    before = stamps(twin)
    twin.commander.mon("pg deep-scrub", {"pgid": "1.0"})
    assert stamps(twin) == before


@pytest.mark.parametrize("per_osd", [1, 2])
def test_no_osd_has_more_scrubs_than_it_may_at_any_look(per_osd: int) -> None:
    twin = slow_twin()
    most: Dict[int, int] = {}

    def look(progress: DrainProgress) -> None:
        rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
        outstanding = {pgid for pgid in asked(twin) if not newer(twin, pgid)}
        for osd in range(4):
            own = sum(1 for row in rows if row["pgid"] in outstanding and osd in row["acting"])
            most[osd] = max(most.get(osd, 0), own)

    began = twin.clock.now()

    def newer(twin: TwinCluster, pgid: str) -> bool:
        return stamps(twin)[pgid] >= stamp(began)

    assert drain(twin, task(twin, per_osd=per_osd), look).done == 12
    assert max(most.values()) == per_osd


def test_an_objective_that_scrubs_break_slows_them_and_is_kept_longer() -> None:
    seen: Dict[str, List[DrainProgress]] = {"kept": [], "loose": []}
    outcomes = {}
    for name, bound in (("loose", 1000), ("kept", 80)):
        twin = slow_twin()
        outcomes[name] = drain(twin, task(twin, f"client.p95_ms <= {bound}"), seen[name].append)
    assert [outcome.reason for outcome in outcomes.values()] == [DONE, DONE]
    assert max(progress.at_once or 0 for progress in seen["kept"]) < max(
        progress.at_once or 0 for progress in seen["loose"]
    )
    times = {name: outcome.ended - outcome.began for name, outcome in outcomes.items()}
    assert times["kept"] > times["loose"]
    waited = [progress for progress in seen["kept"] if "client.p95_ms at" in progress.waits_for]
    assert waited


def test_nothing_is_asked_for_while_an_objective_is_missed() -> None:
    twin = slow_twin()
    counts: List[Tuple[bool, int]] = []
    drain(
        twin,
        task(twin, "client.p95_ms <= 80"),
        lambda progress: counts.append((bool(progress.waits_for), len(asked(twin)))),
    )
    assert all(now == before for (_, before), (waits, now) in zip(counts, counts[1:]) if waits)


def test_an_objective_that_is_missed_without_any_scrub_leaves_everything_unasked() -> None:
    twin = slow_twin()
    outcome = drain(twin, task(twin, "client.p95_ms <= 2", seconds=600))
    assert (outcome.reason, outcome.done, asked(twin)) == (TIME_UP, 0, [])
    assert outcome.windows_missed == outcome.windows > 0
    assert len(outcome.left) == 12


def test_where_one_scrub_at_a_time_is_too_much_rests_grow() -> None:
    twin = slow_twin()
    rests: List[float] = []

    def look(progress: DrainProgress) -> None:
        if progress.waits_for.startswith("a rest of"):
            rests.append(float(progress.waits_for.split()[3]))

    outcome = drain(twin, task(twin, "client.p95_ms <= 40"), look)
    assert outcome.reason == DONE
    assert max(rests) > 200


def test_a_clock_that_is_set_back_makes_no_rest_longer() -> None:
    twin, jump = slow_twin(), 0.0
    rests: List[float] = []

    class Enough(Exception):
        """The rest goes on as if nothing had been set."""

    def look(progress: DrainProgress) -> None:
        nonlocal jump
        if progress.waits_for.startswith("a rest of"):
            rests.append(float(progress.waits_for.split()[3]))
            if jump and rests[-1] < rests[-2]:
                raise Enough
            jump = -7200.0 if rests[-1] > 100 else jump

    with patch.object(TwinClock, "now", lambda self: self._commander.now() + jump), pytest.raises(Enough):
        drain(twin, task(twin, "client.p95_ms <= 40", seconds=HOUR / 2), look)
    assert max(rests) < 3000


def test_a_relative_bound_refers_to_what_was_before_the_first_scrub() -> None:
    twin = slow_twin()
    outcome = drain(twin, task(twin, "client.p95_ms <= 20 * baseline"))
    assert (outcome.reason, outcome.windows_missed) == (DONE, 0)
    assert outcome.windows > 0


def test_a_drain_that_is_begun_at_night_keeps_the_day_s_bound_by_day() -> None:
    twin = slow_twin()
    night_ends = twin.clock.now() // 60 * 60 + 60
    clock_text = stamp(night_ends)[11:16]
    store_slo(twin.store, by_day_and_night("2", f"00:00-{clock_text}"))
    seen: List[DrainProgress] = []
    wanted = replace(task(twin, per_osd=1, seconds=1200), wanted=WantedObjectives.stored(twin.store))
    outcome = drain(twin, wanted, seen.append)
    assert (outcome.reason, bool(outcome.left)) == (TIME_UP, True)
    at_night = [at for at, _ in twin.twin.requested_scrubs]
    assert at_night
    assert max(at_night) < night_ends
    assert seen[1].keeps == "keeps nothing: the policy night has no hard objective about clients"
    assert seen[-1].keeps == "keeps client.p95_ms <= 2 ms (policy base)"
    assert {progress.at_once for progress in seen if progress.at >= night_ends + 30} == {1}


def test_scrubs_that_would_last_into_a_stricter_policy_are_one_at_a_time() -> None:
    twin = slow_twin()
    night_ends = twin.clock.now() // 60 * 60 + 420
    store_slo(twin.store, by_day_and_night("200", f"00:00-{stamp(night_ends)[11:16]}"))
    wanted = replace(task(twin, per_osd=1, seconds=1200), wanted=WantedObjectives.stored(twin.store))
    wanted = replace(wanted, order=tuple(replace(pg, scrub_s=360.0) for pg in wanted.order))
    seen: List[DrainProgress] = []
    drain(twin, wanted, seen.append)
    night = [progress for progress in seen if progress.keeps.startswith("keeps nothing: the policy night")]
    assert {progress.at_once for progress in night if progress.at < night_ends - 370} == {None}
    assert {progress.at_once for progress in night if progress.at > night_ends - 350} == {1}


def test_a_drain_that_is_begun_by_day_goes_on_at_night() -> None:
    twin = slow_twin()
    night = twin.clock.now() // 60 * 60 + 300
    store_slo(twin.store, by_day_and_night("2", f"{stamp(night)[11:16]}-12:00"))
    outcome = drain(twin, replace(task(twin), wanted=WantedObjectives.stored(twin.store)))
    assert (outcome.reason, outcome.done) == (DONE, 12)
    assert min(at for at, _ in twin.twin.requested_scrubs) >= night


def test_objectives_that_are_not_about_clients_are_no_limit_of_scrubs() -> None:
    twin = overdue_twin(LATE)
    outcome = drain(twin, task(twin, "recovery.bytes_s >= 100 MB/s"))
    assert (outcome.reason, outcome.windows) == (DONE, 0)


class Killed(BaseException):
    """As kill -9: nothing is cleared up after it."""


def test_a_drain_that_was_killed_goes_on_where_it_was() -> None:
    # writes would stop scrubs by chance, and which of them ends first would be chance as well
    reading = (ClientStream("rbd", rate=250.0, depth=64, read_share=1.0),)
    undisturbed = slow_twin(clients=reading)
    drain(undisturbed, task(undisturbed, per_osd=1))
    twin = slow_twin(clients=reading)

    def kill(progress: DrainProgress) -> None:
        if progress.done >= 5:
            raise Killed

    with pytest.raises(Killed):
        drain(twin, task(twin, per_osd=1), kill)
    first = asked(twin)
    left = {pg.pgid for pg in task(twin).order}
    assert len(left) <= 7
    outcome = drain(twin, task(twin, per_osd=1))
    again = asked(twin)[len(first) :]
    assert (outcome.reason, outcome.total) == (DONE, len(left))
    # what ran by then is waited for; only what had not begun is asked for again
    assert set(again) <= left
    assert set(first) | set(again) == set(LATE)
    # without what was forgotten, in the same order: the longest late whose OSDs have a place
    assert first == asked(undisturbed)[: len(first)]
    assert [pgid for pgid in again if pgid not in first] == asked(undisturbed)[len(first) :]


def test_ctrl_c_ends_it_and_says_what_goes_on() -> None:
    twin = slow_twin()

    def interrupt(progress: DrainProgress) -> None:
        if progress.done >= 3 and progress.running:
            raise KeyboardInterrupt

    outcome = drain(twin, task(twin), interrupt)
    assert outcome.reason == INTERRUPTED
    assert 3 <= outcome.done < 12
    assert "go on to their end" in outcome.remarks[0]
    with twin.lock("next"):
        pass


def test_pgs_that_ceph_would_not_scrub_are_waited_for_and_that_is_said() -> None:
    twin = overdue_twin(LATE, recovery=(RecoveryWork("rbd", 200_000, MIB),))
    reasons: List[str] = []
    outcome = drain(twin, task(twin, seconds=60), lambda progress: reasons.append(progress.waits_for))
    assert (outcome.reason, outcome.done, asked(twin)) == (TIME_UP, 0, [])
    assert all("would not scrub now" in reason for reason in reasons)


def test_time_that_is_up_ends_it_with_what_is_left() -> None:
    twin = slow_twin()
    outcome = drain(twin, task(twin, per_osd=1, seconds=30))
    assert outcome.reason == TIME_UP
    assert len(outcome.left) == 12 - outcome.done > 0


def test_a_flag_that_comes_meanwhile_is_waited_for() -> None:
    twin = slow_twin()
    reasons: List[str] = []

    def look(progress: DrainProgress) -> None:
        reasons.append(progress.waits_for)
        if len(reasons) == 3:
            twin.commander.mon("osd set", {"key": "nodeep-scrub"})
        if len(reasons) == 30:
            twin.commander.mon("osd unset", {"key": "nodeep-scrub"})

    assert drain(twin, task(twin), look).reason == DONE
    assert set(reasons[3:30]) == {"nodeep-scrub to be unset"}


def test_ceph_s_own_hours_are_waited_for() -> None:
    # the twin's time begins at midnight
    twin = overdue_twin(LATE, {"osd_scrub_begin_hour": 1, "osd_scrub_end_hour": 4})
    began = twin.clock.now()
    assert drain(twin, task(twin)).reason == DONE
    assert min(at for at, _ in twin.twin.requested_scrubs) >= began + HOUR
    other = overdue_twin(LATE, {"osd_scrub_begin_hour": 1, "osd_scrub_end_hour": 4})
    assert drain(other, task(other, any_hour=True)).reason == DONE
    assert min(at for at, _ in other.twin.requested_scrubs) < began + HOUR


def test_without_the_lock_nothing_more_is_asked_for() -> None:
    twin = slow_twin()
    counts: List[int] = []

    def look(progress: DrainProgress) -> None:
        counts.append(len(asked(twin)))
        if len(counts) == 2:
            break_lock(twin.store)

    with pytest.raises(Locked):
        drain(twin, task(twin, per_osd=1), look)
    assert len(asked(twin)) == counts[1]


class Faulty:
    """A commander that fails on some commands for a while."""

    def __init__(
        self, twin: TwinCluster, prefixes: Sequence[str], fault: Exception, until: float, since: float = 0.0
    ) -> None:
        self._twin, self._prefixes, self._fault, self.since, self.until = twin, prefixes, fault, since, until

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix in self._prefixes and self.since <= self._twin.clock.now() < self.until:
            raise self._fault
        return self._twin.commander.mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        return self._twin.commander.tell(daemon, prefix, arguments)


def failing(twin: TwinCluster, prefixes: Sequence[str], fault: Exception, seconds: Optional[float]) -> Cluster:
    until = float("inf") if seconds is None else twin.clock.now() + seconds
    commander = Faulty(twin, prefixes, fault, until)
    return replace(twin, commander=commander, config=CommandConfig(commander), store=CommandStore(commander))


@pytest.mark.parametrize("fault", [ClusterTimeout("no answer"), CommandFailed("pg ls", -11, "no active mgr")])
def test_a_failover_of_the_mgr_is_waited_for(fault: Exception) -> None:
    twin = overdue_twin(LATE)
    wanted = task(twin)
    cluster = failing(twin, ("pg ls",), fault, 60)
    with cluster.lock("drain") as lock:
        assert Drain(cluster, read_view(twin), wanted, lock).run().reason == DONE


def test_a_cluster_that_is_silent_for_ten_minutes_ends_it() -> None:
    twin = overdue_twin(LATE)
    wanted = task(twin)
    cluster = failing(twin, ("pg ls",), ClusterTimeout("no answer"), None)
    with cluster.lock("drain") as lock, pytest.raises(RetryLater):
        Drain(cluster, read_view(twin), wanted, lock).run()
    assert asked(twin) == []


@pytest.mark.parametrize("fault", [CommandFailed("pg deep-scrub", -11, "no primary"), ClusterTimeout("no answer")])
def test_a_request_that_fails_for_a_moment_is_made_again(fault: Exception) -> None:
    twin = overdue_twin(LATE)
    cluster = failing(twin, ("pg deep-scrub",), fault, 60)
    outcome = drain(cluster, task(twin))
    assert (outcome.reason, outcome.done) == (DONE, 12)


def test_a_request_that_is_refused_ends_it() -> None:
    twin = overdue_twin(LATE)
    cluster = failing(twin, ("pg deep-scrub",), CommandFailed("pg deep-scrub", -22, "unknown"), None)
    with pytest.raises(CommandFailed):
        drain(cluster, task(twin))


class Blind(Faulty):
    """OSDs that show no counter to the key from some moment on: nothing of clients is seen then."""

    def __init__(self, twin: TwinCluster, since: float, until: float = float("inf")) -> None:
        super().__init__(twin, (), ValueError(), until, since)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        if prefix.startswith("perf") and self.since <= self._twin.clock.now() < self.until:
            raise PermissionRefused("osd", "EACCES", "allow")
        return super().tell(daemon, prefix, arguments)


def through(twin: TwinCluster, commander: Faulty) -> Cluster:
    return replace(twin, commander=commander, config=CommandConfig(commander), store=CommandStore(commander))


def test_an_objective_that_the_first_window_does_not_show_is_refused() -> None:
    twin = slow_twin()
    cluster = through(twin, Blind(twin, 0.0))
    with pytest.raises(InputError, match=r"client\.p95_ms, which the first window does not show"):
        drain(cluster, task(twin, "client.p95_ms <= 1000"))
    assert asked(twin) == []


def test_nothing_is_asked_for_and_the_pace_stays_while_an_objective_s_metric_is_not_seen() -> None:
    twin = slow_twin()
    dark = twin.clock.now() + 30
    cluster = through(twin, Blind(twin, dark, dark + 300))
    progress: List[DrainProgress] = []
    outcome = drain(cluster, task(twin, "client.p95_ms <= 1000"), progress.append)
    waits = [each for each in progress if each.waits_for == "client.p95_ms is not seen"]
    assert waits
    assert max(each.at for each in waits) > dark + 200
    assert len({each.at_once for each in waits}) == 1
    assert not [at for at, _ in twin.twin.requested_scrubs if waits[0].at <= at <= waits[-1].at]
    assert outcome.reason == DONE


def test_nothing_is_asked_for_while_no_window_comes() -> None:
    """`health` is asked by the sampler alone: all else of the drain sees the cluster."""
    twin = slow_twin(objects=64_000)
    dark = twin.clock.now() + 60
    cluster = through(twin, Faulty(twin, ("health",), ClusterTimeout("no answer"), dark + 400, dark))
    progress: List[DrainProgress] = []
    outcome = drain(cluster, task(twin, "client.p95_ms <= 1000"), progress.append)
    waits = [each for each in progress if each.waits_for.startswith("clients are not seen since")]
    assert waits
    assert waits[0].at <= dark + 110
    assert waits[-1].at > dark + 300
    assert not [at for at, _ in twin.twin.requested_scrubs if waits[0].at <= at <= waits[-1].at]
    assert outcome.reason == DONE


@pytest.mark.parametrize(
    "fault", [PermissionRefused("health", "EACCES", "allow r"), InputError("cluster", "65 OSDs", "at most 64")]
)
def test_a_look_that_is_refused_ends_the_drain(fault: Exception) -> None:
    twin = slow_twin(objects=64_000)
    cluster = through(twin, Faulty(twin, ("health",), fault, float("inf"), twin.clock.now() + 60))
    with pytest.raises(type(fault)):
        drain(cluster, task(twin, "client.p95_ms <= 1000"))


def test_windows_that_the_plugin_keeps_are_missed_after_three_minutes() -> None:
    twin = slow_twin(objects=64_000)
    measures = {name: Measure(10.0, 0.0, 12) for name in ("client.iops", "client.p95_ms")}
    plugin_dies = twin.clock.now() + 200
    kept = [twin.clock.now()]
    History(twin.store).add_window(Window(kept[0] - 60, kept[0], measures))
    progress: List[DrainProgress] = []

    def look(now: DrainProgress) -> None:
        if now.at >= kept[-1] + 60 and now.at < plugin_dies:
            kept.append(now.at)
            History(twin.store).add_window(Window(now.at - 60, now.at, measures))
        progress.append(now)

    wanted = task(twin, "client.p95_ms <= 1000", per_osd=1, seconds=1200)
    with patch("ceph_tuner.pacing.judged_windows.OSDS_MAX", 0):
        drain(twin, wanted, look)
    waits = [each.at for each in progress if each.waits_for.startswith("clients are not seen since")]
    assert kept[-1] + 170 <= waits[0] <= kept[-1] + 200
    assert not [at for at, _ in twin.twin.requested_scrubs if at >= waits[0]]


class Queueing(Faulty):
    """OSDs that take requests and begin none of them until some moment."""

    def __init__(self, twin: TwinCluster, until: float) -> None:
        super().__init__(twin, (), ValueError(), until)
        self.requests: List[str] = []

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == "pg deep-scrub" and self._twin.clock.now() < self.until:
            self.requests.append(arguments["pgid"])
            return ""
        return super().mon(prefix, arguments, payload)


def test_the_pace_stays_and_no_more_is_outstanding_than_it_allows_while_no_scrub_begins() -> None:
    twin = slow_twin()
    commander = Queueing(twin, twin.clock.now() + 2000)
    progress: List[DrainProgress] = []
    outcome = drain(through(twin, commander), task(twin, "client.p95_ms <= 1000"), progress.append)
    before = [each for each in progress if each.at < commander.until]
    assert {each.at_once for each in before} == {1}
    assert max(each.asked for each in before) == 1
    # asked for again, as its primary may have forgotten
    assert set(commander.requests) == {"1.0"}
    assert len(commander.requests) > 1
    assert (outcome.reason, outcome.done) == (DONE, 12)
    assert max(each.at_once or 0 for each in progress) > 1


def test_the_up_set_of_each_pg_is_read() -> None:
    twin = overdue_twin(LATE)
    answer = json.loads(twin.commander.mon("pg ls", {}))
    answer["pg_stats"][0]["up"] = [3, 2147483647]
    assert read_view(answering(twin, {"pg ls": answer})).pgs[0].up == (3,)


class Slow(Faulty):
    """Takes two seconds for a request."""

    def __init__(self, twin: TwinCluster) -> None:
        super().__init__(twin, (), ValueError(), 0.0)

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == "pg deep-scrub":
            self._twin.clock.sleep(2.0)
        return super().mon(prefix, arguments, payload)


def test_flags_are_looked_at_before_everything_is_asked_for() -> None:
    twin = slow_twin()

    def flag(progress: DrainProgress) -> None:
        twin.commander.mon("osd set", {"key": "nodeep-scrub"})

    outcome = drain(through(twin, Slow(twin)), task(twin, per_osd=12, seconds=300), flag)
    assert outcome.reason == TIME_UP
    assert asked(twin) == ["1.0", "1.1", "1.2"]


def test_time_that_is_up_is_seen_before_everything_is_asked_for() -> None:
    twin = slow_twin()
    outcome = drain(through(twin, Slow(twin)), task(twin, per_osd=12, seconds=10))
    assert outcome.reason == TIME_UP
    assert len(asked(twin)) == 3


def test_windows_that_overlap_count_once() -> None:
    twin = slow_twin(objects=64_000)
    outcome = drain(twin, task(twin, "client.p95_ms <= 1000", per_osd=1, seconds=600))
    # samples must cover 24 of a window's 30 seconds
    assert 10 <= outcome.windows <= (outcome.ended - outcome.began) / 24


def health(*errors: str) -> Dict[str, Any]:
    checks = {name: {"severity": "HEALTH_ERR", "summary": {"message": name, "count": 1}} for name in errors}
    return {"status": "HEALTH_ERR", "checks": checks, "mutes": []}


class Unhealthy(Faulty):
    """Raises health errors from some moment on."""

    def __init__(self, twin: TwinCluster, errors: Sequence[str], since: float) -> None:
        super().__init__(twin, (), ValueError(), 0.0)
        self._errors, self._since = errors, since

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        answer = super().mon(prefix, arguments, payload)
        if prefix == "status" and self._twin.clock.now() >= self._since:
            return json.dumps({**json.loads(answer), "health": health(*self._errors)})
        return answer


@pytest.mark.parametrize(
    ("errors", "goes_on"), [(["OSD_SCRUB_ERRORS", "PG_DAMAGED"], True), (["MON_DISK_CRIT", "PG_DAMAGED"], False)]
)
def test_damage_that_scrubs_find_is_told_and_stops_none_and_other_errors_do(errors: List[str], goes_on: bool) -> None:
    twin = slow_twin()
    commander = Unhealthy(twin, errors, twin.clock.now() + 20)
    cluster = replace(twin, commander=commander, config=CommandConfig(commander), store=CommandStore(commander))
    outcome = drain(cluster, task(twin, per_osd=1, seconds=600))
    assert (outcome.reason == DONE) == goes_on
    assert any("ceph health detail" in remark for remark in outcome.remarks) == goes_on


def test_the_date_is_corrected_as_it_goes() -> None:
    """A forecast of ten times what comes: the first date is far too early, the later ones are not."""
    twin = slow_twin(objects=64_000)
    wanted = replace(task(twin), rates=daily(rate(500 * MB)))
    dates: List[Tuple[float, float]] = []
    outcome = drain(twin, wanted, lambda progress: dates.append((progress.at, progress.finish_at or 0.0)))
    left = [abs(date - outcome.ended) / (outcome.ended - at) for at, date in dates if outcome.ended - at > 60]
    assert left[0] > 0.5
    # at its end fewer run side by side, which no rate tells
    assert max(left[len(left) // 2 :]) < 0.5 * left[0]


def first_date(twin: TwinCluster, keep: str) -> float:
    """After the beginning, in seconds, as a drain says it first."""
    said: List[float] = []

    def look(progress: DrainProgress) -> None:
        said.append((progress.finish_at or 0.0) - progress.at)
        raise KeyboardInterrupt

    drain(twin, task(twin, keep), look)
    return said[0]


def test_the_first_date_reckons_with_a_first_window_and_the_way_to_the_pace() -> None:
    kept, free = (first_date(overdue_twin(LATE), keep) for keep in ("client.p95_ms<=1000", ""))
    seen = read_view(overdue_twin(LATE))
    beginning = Beginning(30.0, places_for(seen.pgs, 3), usual_pace(seen.pgs), at=0.0)
    lost_s = beginning.lost_s(0.0, HOUR, 20 * MB)
    assert lost_s > 40.0
    assert kept == pytest.approx(free + lost_s)


def test_a_drain_that_waits_for_ceph_s_hours_keeps_its_date() -> None:
    twin = overdue_twin(LATE, {"osd_scrub_begin_hour": 1, "osd_scrub_end_hour": 4})
    began, dates = twin.clock.now(), []

    def look(progress: DrainProgress) -> None:
        if progress.waits_for.startswith("Ceph's own"):
            dates.append(progress.finish_at or 0.0)

    assert drain(twin, task(twin), look).reason == DONE
    assert began + HOUR < dates[0] < began + 2 * HOUR
    assert max(dates) - min(dates) < 60.0


def test_what_was_looked_at_is_not_kept_for_weeks() -> None:
    twin = overdue_twin(LATE)
    with twin.lock("drain") as lock:
        long = Drain(twin, read_view(twin), task(twin), lock)
        long.run()
        assert len(long._looks) == 0
        watched = Drain(twin, read_view(twin), task(twin, "client.p95_ms<=1000"), lock)
        for second in range(0, 100_000, 5):
            watched._note_scrubs(float(second))
        assert len(watched._looks) < 1000


class Snapshots:
    """A commander of PGs whose snapshots wait to be trimmed, as `pg ls` says it."""

    def __init__(self, twin: TwinCluster, pgids: Sequence[str], until: float = float("inf"), flags: str = "") -> None:
        self._twin, self._pgids, self._until, self._flags = twin, pgids, until, flags

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        text = self._twin.commander.mon(prefix, arguments, payload)
        if prefix == "osd dump" and self._flags:
            document = json.loads(text)
            return json.dumps({**document, "flags": f"{document.get('flags', '')},{self._flags}"})
        if prefix != "pg ls" or self._twin.clock.now() >= self._until:
            return text
        document = json.loads(text)
        for row in document["pg_stats"]:
            if row["pgid"] in self._pgids:
                row["snaptrimq_len"] = 2
        return json.dumps(document)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        return self._twin.commander.tell(daemon, prefix, arguments)


def with_snapshots(twin: TwinCluster, *pgids: str, **changes: Any) -> Cluster:
    commander = Snapshots(twin, pgids, **changes)
    return replace(twin, commander=commander, config=CommandConfig(commander), store=CommandStore(commander))


@pytest.mark.parametrize(("until_s", "flags"), [(300.0, ""), (None, ""), (None, "nosnaptrim")])
def test_a_pg_whose_snapshots_wait_is_trimmed_first_where_trimming_begins(until_s: Optional[float], flags: str) -> None:
    twin = overdue_twin(LATE)
    began = twin.clock.now()
    until = float("inf") if until_s is None else began + until_s
    cluster = with_snapshots(twin, "1.0", until=until, flags=flags)
    outcome = drain(cluster, task(cluster))
    assert (outcome.reason, outcome.done) == (DONE, 12)
    when = {pgid: at - began for at, pgid in twin.twin.requested_scrubs}
    assert max(at for pgid, at in when.items() if pgid != "1.0") < 300
    # a queue that nobody trims keeps nothing from being scrubbed
    least, most = (0, 60) if flags else (until_s or 900, (until_s or 900) + 60)
    assert least <= when["1.0"] <= most


def test_trimming_that_waits_for_a_scrub_is_named_with_its_date() -> None:
    twin = slow_twin()
    cluster = with_snapshots(twin, *LATE, flags="nosnaptrim")
    seen: List[DrainProgress] = []
    assert drain(cluster, task(cluster, per_osd=1), seen.append).reason == DONE
    waiting = [progress for progress in seen if progress.trims_wait]
    assert waiting
    assert all(progress.running >= len(progress.trims_wait) for progress in waiting)
    assert {end for progress in waiting for end in progress.trims_wait.values()} == {None}
    words = progress_words(waiting[0], 0.0)
    (first, *_) = waiting[0].trims_wait
    assert f"trimming of {first}" in words
    until = replace(waiting[0], trims_wait={"1.3": NOW, "1.4": NOW + 300})
    assert "; trimming of 1.3, 1.4 waits for scrubs until 2026-11-21 00:05" in progress_words(until, 0.0)
