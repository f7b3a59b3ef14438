from __future__ import annotations

import json
import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.applier import Applier, Undone
from ceph_tuner.core.changes.journal import Entry, Journal
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.changes.plan import ChangePlan
from ceph_tuner.core.errors import ClusterTimeout, EffectNotSeen, InputError
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.fleet.contract import ByLab, Member
from ceph_tuner.fleet.rollout import AGAIN_S, RolloutOutcome, breach_of, roll_out, waves_of
from ceph_tuner.fleet.site import MemberSite
from ceph_tuner.fleet.status import Objectives, Standing
from monitors import ManualClock, Monitors


def status(missed: bool = False, osds: int = 3, up: int = 3, objectives: Optional[Objectives] = None) -> Standing:
    known = objectives or (Objectives(missed=("a",), missed_hard=("a",)) if missed else Objectives(met=("a",)))
    return Standing(osds, up, known, drift=(), last_change=None, warnings=(), notes=())


class FakeSite:
    def __init__(self, name: str, clock: ManualClock, breaks_at: float = float("inf"), **fails: bool) -> None:
        self.name, self._clock, self._breaks_at, self._fails = name, clock, breaks_at, fails
        self.state = "kept before" if fails.get("done") else "untouched"

    def done(self) -> bool:
        return self.state == "kept before"

    def look(self, since: float = 0.0) -> Standing:
        if self._fails.get("unseen") and since:
            return status(objectives=Objectives(met=("a",), unseen=("b",)))
        if self._fails.get("silent") and self.state == "on trial":
            raise ClusterTimeout("no answer")
        return status(missed=self._clock.now() >= self._breaks_at)

    def bring(self) -> Sequence[Undone]:
        if self._fails.get("refuses"):
            raise EffectNotSeen("osd.0 does not show it")
        self.state = "on trial"
        if self._fails.get("cut_off"):
            raise ClusterTimeout("the answer did not come")
        return ()

    def keep(self) -> None:
        self.state = "kept"

    def take_back(self) -> Optional[Sequence[Undone]]:
        if self._fails.get("sticks"):
            raise ClusterTimeout("gone")
        if self._fails.get("bursts"):
            raise ZeroDivisionError
        if self.state != "on trial":
            return None
        self.state = "taken back"
        if self._fails.get("again"):
            signal.raise_signal(signal.SIGINT)
        return ()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0.0)


def run(waves: List[List[FakeSite]], clock: ManualClock) -> RolloutOutcome:
    return roll_out(waves, clock, 600.0, 60.0, lambda line: None)


def test_the_canary_goes_alone_and_the_others_in_waves() -> None:
    assert waves_of(["a", "b", "c", "d", "e"], "c", 2) == [("c",), ("a", "b"), ("d", "e")]
    assert waves_of(["a"], "a", 3) == [("a",)]
    with pytest.raises(InputError, match="one of a, b"):
        waves_of(["a", "b"], "c", 1)


def test_all_is_kept_after_each_wave_was_watched(clock: ManualClock) -> None:
    waves = [[FakeSite("a", clock)], [FakeSite("b", clock), FakeSite("c", clock)]]
    assert run(waves, clock) == RolloutOutcome(kept=("a", "b", "c"))
    assert clock.now() == 1200.0


def test_a_breach_takes_its_wave_back_and_leaves_the_rest_untouched(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock), FakeSite("b", clock), FakeSite("c", clock, 700.0), FakeSite("d", clock)]
    found = run([[sites[0]], sites[1:3], [sites[3]]], clock)
    assert (found.kept, found.taken_back, found.left) == (("a",), ("b", "c"), ("d",))
    assert found.breach == "c: a hard objective is missed (a)"
    assert [site.state for site in sites] == ["kept", "taken back", "taken back", "untouched"]
    assert clock.now() < 800.0


def test_a_cluster_that_is_unwell_before_is_not_touched(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock, 0.0), FakeSite("b", clock)]
    found = run([[sites[0]], [sites[1]]], clock)
    assert (found.kept, found.taken_back, found.left) == ((), (), ("a", "b"))


@pytest.mark.parametrize("fault", ["refuses", "silent", "cut_off"])
def test_a_cluster_that_fails_is_a_breach(clock: ManualClock, fault: str) -> None:
    sites = [FakeSite("a", clock), FakeSite("b", clock, **{fault: True})]
    found = run([sites], clock)
    assert found.breach
    assert sites[0].state == "taken back"
    assert found.left == (("b",) if fault == "refuses" else ())


def test_what_cannot_be_taken_back_is_named_and_the_others_are_taken_back(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock), FakeSite("b", clock, 100.0, sticks=True)]
    found = run([sites], clock)
    assert (found.taken_back, found.stuck) == (("a",), ("b: gone",))


def test_an_error_that_nobody_thought_of_keeps_no_other_cluster_from_being_taken_back(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock), FakeSite("b", clock, 100.0, bursts=True)]
    found = run([sites], clock)
    assert (found.taken_back, found.stuck) == (("a",), ("b: ZeroDivisionError",))


def test_what_an_earlier_run_kept_is_passed_over(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock, done=True), FakeSite("b", clock)]
    assert run([[sites[0]], [sites[1]]], clock) == RolloutOutcome(kept=("b",), before=("a",))
    assert clock.now() == 600.0


def test_ctrl_c_takes_back_what_is_not_kept(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock), FakeSite("b", clock)]
    sleep = clock.sleep

    def interrupted(seconds: float) -> None:
        sleep(seconds)
        if clock.now() > 700:
            raise KeyboardInterrupt

    clock.sleep = interrupted  # type: ignore[method-assign]
    found = run([[sites[0]], [sites[1], FakeSite("c", clock)], [FakeSite("d", clock)]], clock)
    # what it was for is told all the same
    assert (found.interrupted, found.kept, found.taken_back, found.left) == (True, ("a",), ("b", "c"), ("d",))
    assert [site.state for site in sites] == ["kept", "taken back"]


@given(
    st.lists(
        st.lists(st.sampled_from(["well", "refuses", "silent", "cut_off", "done", "breaks"]), max_size=4), max_size=4
    )
)
def test_nothing_stays_on_trial_and_each_cluster_is_told_of_once(kinds: List[List[str]]) -> None:
    clock = ManualClock(0.0)
    waves = [
        [
            FakeSite(f"{i}-{j}", clock, breaks_at=900.0 if kind == "breaks" else float("inf"), **{kind: True})
            for j, kind in enumerate(wave)
        ]
        for i, wave in enumerate(kinds)
    ]
    found = run(waves, clock)
    told = [*found.kept, *found.before, *found.taken_back, *found.left]
    sites: Dict[str, FakeSite] = {site.name: site for wave in waves for site in wave}
    assert sorted(told) == sorted(sites)
    states: Dict[str, Set[str]] = {
        "kept": set(found.kept), "taken back": set(found.taken_back), "kept before": set(found.before),
    }  # fmt: skip
    for state, names in states.items():
        assert all(sites[name].state == state for name in names)
    assert not any(site.state == "on trial" for site in sites.values())
    assert bool(found.breach) == bool(found.left or found.taken_back)


def test_what_is_not_seen_stops_unless_it_is_said_to_be_blind() -> None:
    for objectives, words in [
        (Objectives(), "no objective is set"),
        (Objectives(unseen=("scrub.bytes_s >= 1 MB/s",)), "an objective is not seen"),
    ]:
        assert words in breach_of(status(objectives=objectives))
        assert breach_of(status(objectives=objectives), blind=True) == ""
    assert "1 of its 3 OSDs are down" in breach_of(status(up=2), blind=True)


def test_a_lost_osd_goes_before_what_is_missed_because_of_it() -> None:
    missed = Objectives(missed=("client.iops >= 40 /s",), missed_hard=("client.iops >= 40 /s",))
    assert breach_of(status(objectives=missed)) == "a hard objective is missed (client.iops >= 40 /s)"
    assert breach_of(status(objectives=missed, up=2)) == "1 of its 3 OSDs are down"


def take_claims_away(monitors: Monitors) -> None:
    """Whoever holds the lock has lost it, as to another tuner that came and has gone."""
    for key in monitors.store.keys("lock/"):
        monitors.store.remove(key)


def site(monitors: Monitors, label: str = "fleet x") -> MemberSite:
    cluster = Cluster("a", object(), monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]
    return MemberSite(Member("a", ByLab("a")), lambda: cluster, label, "osd", lambda cluster: {"osd_max_scrubs": 2})


class Health:
    """A commander that answers what a look needs beside the configuration database and the store, and nothing else."""

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        return json.dumps({"health": {"checks": {}}}[prefix])


def test_the_looks_of_a_rollout_ask_for_nothing_of_each_osd_or_drive() -> None:
    monitors = Monitors()
    brought = site(monitors)
    brought._cluster = replace(brought._cluster, commander=Health())  # type: ignore[misc]
    outcome = roll_out([[brought]], ManualClock(), 600.0, 30.0, lambda line: None, blind=True)
    assert (outcome.breach, outcome.kept) == ("", ("a",))


def scrubs(monitors: Monitors) -> Optional[str]:
    return next((entry.value for entry in monitors.dump() if entry.name == "osd_max_scrubs"), None)


def test_a_trial_that_is_kept_is_done_for_later_runs_and_can_be_undone() -> None:
    monitors = Monitors()
    first = site(monitors)
    first.bring()
    assert (scrubs(monitors), first.done()) == ("2", False)
    first.keep()
    assert site(monitors).done()
    assert not site(monitors, "fleet y").done()
    assert monitors.store.keys("lock/") == []
    assert len(list(site(monitors).undo())) == 1
    assert (scrubs(monitors), site(monitors).done()) == (None, False)


def test_a_change_carries_what_the_twin_said_before_and_keeps_it_when_it_is_kept() -> None:
    monitors, said = Monitors(), {"level": 0.9}
    brought = site(monitors)
    brought._forecast = lambda cluster: said
    brought.bring()
    brought.keep()
    (entry,) = brought._own()
    assert (entry.trial, entry.forecast) == (False, said)


def test_a_trial_that_is_taken_back_leaves_nothing() -> None:
    monitors = Monitors()
    before = monitors.dump()
    first = site(monitors)
    first.bring()
    first.take_back()
    assert monitors.dump() == before
    assert monitors.store.keys("lock/") == []


@pytest.mark.parametrize("recovered", [False, True])
def test_a_trial_whose_lock_was_lost_meanwhile_is_taken_back_under_a_new_one(recovered: bool) -> None:
    monitors = Monitors()
    before = monitors.dump()
    suspended = site(monitors)
    suspended.bring()
    # another tuner came while this one was asleep, and has gone
    take_claims_away(monitors)
    if recovered:
        suspended._cluster.applier().recover()
    assert suspended.take_back() is not None
    assert monitors.dump() == before
    assert monitors.store.keys("lock/") == []


@pytest.mark.parametrize("fault", [ClusterTimeout("no answer"), KeyboardInterrupt()])
def test_what_is_struck_when_it_has_just_come_into_force_is_taken_back(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    apply = Applier.apply

    def struck(self: Applier, plan: ChangePlan, why: str = "", **given: Any) -> Optional[Entry]:
        apply(self, plan, why, **given)
        assert scrubs(monitors) == "2"
        raise fault

    monkeypatch.setattr(Applier, "apply", struck)
    monitors = Monitors()
    before = monitors.dump()
    brought = site(monitors)
    brought.look = lambda since=0.0: status()  # type: ignore[method-assign]
    found = roll_out([[brought]], clock, 600.0, 60.0, lambda line: None)
    assert (found.taken_back, found.left, found.stuck) == (("a",), (), ())
    assert monitors.dump() == before
    assert monitors.store.keys("lock/") == []


def test_a_full_journal_is_no_reason_to_lose_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monitors = Monitors()
    cluster = site(monitors)._cluster
    cluster.applier().apply(cluster.applier().plan("osd", {"osd_max_scrubs": 4}))

    def gone(journal: Journal, room: int = 0) -> None:
        raise ClusterTimeout("no answer")

    before = monitors.dump()
    brought = site(monitors)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "trim", gone)
        with pytest.raises(ClusterTimeout, match="no answer"):
            brought.bring()
        # before it was written
        assert monitors.dump() == before
    brought.take_back()
    assert monitors.dump() == before


def killed(monitors: Monitors, label: str = "fleet x") -> None:
    site(monitors, label).bring()
    # its process is gone, and with it its claim
    take_claims_away(monitors)


def test_a_rollback_takes_back_what_a_killed_rollout_left_on_trial() -> None:
    monitors = Monitors()
    killed(monitors)
    assert len(list(site(monitors, "fleet other").undo())) == 0
    assert scrubs(monitors) == "2"
    assert len(list(site(monitors).undo())) == 1
    assert scrubs(monitors) is None
    assert monitors.store.keys("lock/") == []


def test_a_rollback_of_what_was_kept_is_not_undone_by_a_later_trial_that_is_taken_back() -> None:
    monitors = Monitors()
    first = site(monitors)
    first.bring()
    first.keep()
    other = site(monitors, "fleet y")
    other._settings_for = lambda cluster: {"osd_max_scrubs": 3}
    other.bring()
    take_claims_away(monitors)
    assert scrubs(monitors) == "3"
    assert len(list(site(monitors).undo())) == 2
    assert scrubs(monitors) is None
    assert site(monitors)._cluster.applier().leftover() == []


def test_a_rollback_where_there_is_nothing_of_it_reads_the_journal_once_and_leaves_it_to_who_is_at_work_there() -> None:
    monitors = Monitors()
    killed(monitors, "fleet other")
    keys, read = monitors.store.keys, []

    def counted(prefix: str) -> List[str]:
        read.append(prefix)
        return keys(prefix)

    with site(monitors)._cluster.lock():
        monitors.store.keys = counted  # type: ignore[method-assign]
        assert list(site(monitors).undo()) == []
    assert read == ["journal/"]
    assert scrubs(monitors) == "2"


def test_a_rollback_goes_by_the_journal_as_it_is_when_the_lock_is_its_own() -> None:
    kept, later = {"osd_max_scrubs": 2}, {"osd_scrub_chunk_max": 9}
    monitors = Monitors()
    applier = site(monitors)._cluster.applier()
    first = applier.apply(applier.plan("osd", kept), "fleet x")
    assert first is not None

    def another_run() -> None:
        monitors.before_write = lambda: None
        applier.undo_entry(first)
        applier.apply(applier.plan("osd", later), "fleet x")

    # its first write is its claim, which comes after the first reading
    monitors.before_write = another_run
    assert [undone.entry.number for undone in site(monitors).undo()] == [2]
    assert monitors.dump() == []


def test_what_was_kept_for_other_osds_is_not_this() -> None:
    monitors = Monitors()
    first = site(monitors)
    first.bring()
    first.keep()
    other = site(monitors)
    other._target = "osd/class:hdd"
    assert (site(monitors).done(), other.done()) == (True, False)
    # whatever it was kept for, it is taken back by its file
    assert len(list(other.undo())) == 1


def test_what_a_killed_rollout_left_on_trial_is_taken_back_by_the_next() -> None:
    monitors = Monitors()
    killed(monitors)
    other = site(monitors, "fleet other")
    with suppress(ZeroDivisionError):
        other._settings_for = lambda cluster: {"osd_max_scrubs": 1 // 0}
        other.bring()
    assert scrubs(monitors) is None


def test_what_nobody_saw_since_it_was_brought_is_not_kept() -> None:
    clock = ManualClock(1000.0)
    site = FakeSite("paris", clock, unseen=True)
    outcome = run([[site]], clock)
    assert (site.state, outcome.taken_back) == ("taken back", ("paris",))
    assert outcome.breach == "paris: an objective is not seen (b)"
    # not before the end of the watch: the plugin's window takes its time
    assert clock.now() == 1600.0


def test_work_that_is_not_there_is_not_begun_with_and_may_end_meanwhile() -> None:
    idle = status(objectives=Objectives(idle=("recovery.bytes_s >= 1 MB/s",)))
    assert breach_of(idle) == "nothing is to be watched now, as there is no such work (recovery.bytes_s >= 1 MB/s)"
    assert breach_of(idle, on_trial=True) == ""
    assert breach_of(status(objectives=Objectives())) == "no objective is set that it could be watched by"


def test_ctrl_c_again_while_a_wave_is_taken_back_skips_no_cluster_and_no_word(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock), FakeSite("b", clock, 100.0, again=True)]
    found = run([sites], clock)
    assert [site.state for site in sites] == ["taken back", "taken back"]
    assert (found.interrupted, found.taken_back) == (True, ("a", "b"))
    assert found.breach.startswith("b: ")


def test_what_is_not_as_before_is_told_of_a_trial_taken_back_and_of_what_was_left_behind(clock: ManualClock) -> None:
    monitors = Monitors()
    killed(monitors)
    monitors.set("osd", "osd_max_scrubs", "7")
    said: List[str] = []
    alarms: List[str] = []
    brought = site(monitors, "fleet other")
    brought.look = lambda since=0.0: status(missed=brought._entry is not None)  # type: ignore[method-assign]
    brought._settings_for = lambda cluster: {"osd_scrub_chunk_max": 9}
    changed = brought.take_back

    def after_somebody_else() -> Optional[Sequence[Undone]]:
        monitors.set("osd", "osd_scrub_chunk_max", "11")
        return changed()

    brought.take_back = after_somebody_else  # type: ignore[method-assign]
    found = roll_out([[brought]], clock, 0.0, 0.0, said.append, alarm=alarms.append)
    left = ["osd osd_max_scrubs: found 7 instead of our 2", "osd osd_scrub_chunk_max: found 11 instead of our 9"]
    assert found.taken_back == ("a",)
    assert list(found.remarks) == alarms == [f"a: {words}, left as it is" for words in left]
    assert "a: change 1 was left behind and is taken back" in said


def test_what_is_stuck_is_an_alarm_also_where_something_unthought_of_ends_the_rollout(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock, sticks=True), FakeSite("b", clock)]
    alarms: List[str] = []

    def broken(seconds: float) -> None:
        raise ZeroDivisionError

    clock.sleep = broken  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        roll_out([sites], clock, 600.0, 60.0, lambda line: None, alarm=alarms.append)
    assert alarms == ["a: not taken back: gone"]
    assert sites[1].state == "taken back"


def test_a_member_that_misses_its_objective_before_its_turn_is_left_alone_and_the_others_are_taken_back(
    clock: ManualClock,
) -> None:
    """It comes while the first one is being brought: nothing is written to the second, and it is told as left."""
    sites = [FakeSite("a", clock), FakeSite("b", clock, breaks_at=5.0)]
    bring = sites[0].bring

    def slowly() -> Sequence[Undone]:
        clock.sleep(5.0)
        return bring()

    sites[0].bring = slowly  # type: ignore[method-assign]
    found = run([sites], clock)
    assert (found.taken_back, found.left, found.stuck) == (("a",), ("b",), ())
    assert found.breach == "b: a hard objective is missed (a)"
    assert [site.state for site in sites] == ["taken back", "untouched"]


class Fails:
    """Raises at one write of those that are counted, once: before it, or after it has arrived."""

    def __init__(self, monitors: Monitors, place: int, arrived: bool) -> None:
        self.count, self._place = 0, place
        monitors.before_write = self._count if not arrived else lambda: None
        monitors.after_write = self._count if arrived else lambda: None

    def _count(self) -> None:
        self.count += 1
        if self.count == self._place:
            raise ClusterTimeout("no answer")


def wave(clock: ManualClock, fails_at: int, arrived: bool, of: str) -> int:
    """Two members, one of which breaks; a write of one's taking back fails. How many writes that took."""
    both = {name: Monitors() for name in ("a", "b")}
    before = {name: monitors.dump() for name, monitors in both.items()}
    sites = [site(monitors) for monitors in both.values()]
    counts: List[Fails] = []
    for name, member in zip(both, sites):
        member.name = name
        took_back = member.take_back

        def take_back(name: str = name, take_back: Any = took_back) -> Optional[Sequence[Undone]]:
            if name == of and not counts:
                counts.append(Fails(both[name], fails_at, arrived))
            return take_back()

        member.take_back = take_back  # type: ignore[method-assign]
        brought = member
        member.look = lambda since=0.0, brought=brought: status(  # type: ignore[method-assign]
            up=2 if brought.name == "b" and brought._entry is not None else 3
        )
    said: List[str] = []
    found = roll_out([sites], clock, 60.0, 1.0, said.append)
    assert found.breach == "b: 1 of its 3 OSDs are down"
    assert (found.taken_back, found.stuck, found.left) == (("a", "b"), (), ())
    assert {"a: taken back", "b: taken back"} <= set(said)
    for name, monitors in both.items():
        assert monitors.dump() == before[name]
        assert [entry.state for entry in Journal(monitors.store).entries()] == ["undone"]
        monitors.before_write = monitors.after_write = lambda: None
    return counts[0].count


@pytest.mark.parametrize("of", ["a", "b"])
@pytest.mark.parametrize("arrived", [False, True])
def test_whichever_write_of_the_taking_back_fails_every_member_of_the_wave_is_taken_back(
    clock: ManualClock, of: str, arrived: bool
) -> None:
    writes = wave(clock, 0, arrived, of)
    assert writes > 3
    for place in range(1, writes + 1):
        wave(clock, place, arrived, of)


def test_a_member_whose_lock_another_has_for_a_while_is_taken_back_once_it_is_free(clock: ManualClock) -> None:
    monitors = Monitors()
    before = monitors.dump()
    brought = site(monitors)
    brought.bring()
    take_claims_away(monitors)
    other = Lock(monitors.store, brought._cluster.clock, Holder("another", "elsewhere"), heartbeat=False)
    other.__enter__()
    sleep = clock.sleep

    def freed(seconds: float) -> None:
        sleep(seconds)
        if seconds == AGAIN_S:
            other.__exit__()

    clock.sleep = freed  # type: ignore[method-assign]
    brought.look = lambda since=0.0: status(up=2)  # type: ignore[method-assign]
    brought.bring = lambda: ()  # type: ignore[method-assign]
    brought.done = lambda: False  # type: ignore[method-assign]
    first = FakeSite("first", clock)
    found = roll_out([[first, _Brought(brought)]], clock, 60.0, 1.0, lambda line: None)
    assert (found.taken_back, found.stuck) == (("first", "a"), ())
    assert monitors.dump() == before


class _Brought:
    """A member that is on trial already; it is well until it is watched."""

    def __init__(self, member: MemberSite) -> None:
        self.name, self._member, self._looks = member.name, member, 0
        self.done, self.bring, self.keep, self.take_back = member.done, member.bring, member.keep, member.take_back

    def look(self, since: float = 0.0) -> Standing:
        self._looks += 1
        return status() if self._looks == 1 else self._member.look(since)
