from __future__ import annotations

from contextlib import suppress
from typing import Dict, List, Optional, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.errors import ClusterTimeout, EffectNotSeen, InputError
from ceph_tuner.fleet.contract import ByLab, Member
from ceph_tuner.fleet.rollout import Outcome, breach_of, roll_out, waves_of
from ceph_tuner.fleet.site import MemberSite
from ceph_tuner.fleet.status import Objectives, Status
from ceph_tuner.releases import TENTACLE
from monitors import ManualClock, Monitors


def status(missed: bool = False, osds: int = 3, up: int = 3, objectives: Optional[Objectives] = None) -> Status:
    known = objectives or (Objectives(missed=("a",), missed_hard=("a",)) if missed else Objectives(met=("a",)))
    return Status("tentacle", "20.2.4", ("20.2.4",), osds, up, "balanced", True, 0, (), known, (), None)


class FakeSite:
    def __init__(self, name: str, clock: ManualClock, breaks_at: float = float("inf"), **fails: bool) -> None:
        self.name, self._clock, self._breaks_at, self._fails = name, clock, breaks_at, fails
        self.state = "kept before" if fails.get("done") else "untouched"

    def done(self) -> bool:
        return self.state == "kept before"

    def look(self) -> Status:
        if self._fails.get("silent") and self.state == "on trial":
            raise ClusterTimeout("no answer")
        return status(missed=self._clock.now() >= self._breaks_at)

    def bring(self) -> None:
        if self._fails.get("refuses"):
            raise EffectNotSeen("osd.0 does not show it")
        self.state = "on trial"

    def keep(self) -> None:
        self.state = "kept"

    def take_back(self) -> None:
        if self._fails.get("sticks"):
            raise ClusterTimeout("gone")
        self.state = "taken back"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0.0)


def run(waves: List[List[FakeSite]], clock: ManualClock) -> Outcome:
    return roll_out(waves, clock, 600.0, 60.0, lambda line: None)


def test_the_canary_goes_alone_and_the_others_in_waves() -> None:
    assert waves_of(["a", "b", "c", "d", "e"], "c", 2) == [("c",), ("a", "b"), ("d", "e")]
    assert waves_of(["a"], "a", 3) == [("a",)]
    with pytest.raises(InputError, match="one of a, b"):
        waves_of(["a", "b"], "c", 1)


def test_all_is_kept_after_each_wave_was_watched(clock: ManualClock) -> None:
    waves = [[FakeSite("a", clock)], [FakeSite("b", clock), FakeSite("c", clock)]]
    assert run(waves, clock) == Outcome(kept=("a", "b", "c"))
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


@pytest.mark.parametrize("fault", ["refuses", "silent"])
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


def test_what_an_earlier_run_kept_is_passed_over(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock, done=True), FakeSite("b", clock)]
    assert run([[sites[0]], [sites[1]]], clock) == Outcome(kept=("b",), before=("a",))
    assert clock.now() == 600.0


def test_ctrl_c_takes_back_what_is_not_kept(clock: ManualClock) -> None:
    sites = [FakeSite("a", clock), FakeSite("b", clock)]
    sleep = clock.sleep

    def interrupted(seconds: float) -> None:
        sleep(seconds)
        if clock.now() > 700:
            raise KeyboardInterrupt

    clock.sleep = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run([[sites[0]], [sites[1]]], clock)
    assert [site.state for site in sites] == ["kept", "taken back"]


@given(st.lists(st.lists(st.sampled_from(["well", "refuses", "silent", "done", "breaks"]), max_size=4), max_size=4))
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


def site(monitors: Monitors, label: str = "fleet x") -> MemberSite:
    cluster = Cluster("a", object(), monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]
    return MemberSite(Member("a", ByLab("a")), lambda: cluster, label, "osd", lambda cluster: {"osd_max_scrubs": 2})


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
    assert len(site(monitors).undo()) == 1
    assert (scrubs(monitors), site(monitors).done()) == (None, False)


def test_a_trial_that_is_taken_back_leaves_nothing() -> None:
    monitors = Monitors()
    before = monitors.dump()
    first = site(monitors)
    first.bring()
    first.take_back()
    assert monitors.dump() == before
    assert monitors.store.keys("lock/") == []


def test_what_a_killed_rollout_left_on_trial_is_taken_back_by_the_next() -> None:
    monitors = Monitors()
    killed = site(monitors)
    killed.bring()
    # its process is gone, and with it its claim
    for key in monitors.store.keys("lock/"):
        monitors.store.remove(key)
    other = site(monitors, "fleet other")
    with suppress(ZeroDivisionError):
        other._wanted = lambda cluster: {"osd_max_scrubs": 1 // 0}
        other.bring()
    assert scrubs(monitors) is None
