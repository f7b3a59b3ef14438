"""Objectives that become others while work goes on: a calendar's policies, and what an operator sets meanwhile."""

from __future__ import annotations

from typing import List, Optional

import pytest

from ceph_tuner.cluster.sampler import OSDS_MAX
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.goals.stored_slo import BASELINE, SLO_KEY, store_slo
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.pacing.client_watch import LOOSER, SAME, STRICTER, ClientWatch
from ceph_tuner.pacing.objectives import held_bounds
from ceph_tuner.pacing.wanted import WantedObjectives, stricter
from keeping import by_day_and_night, keeping
from twins import small_twin

pytestmark = pytest.mark.slow

HOUR = 3600.0


class Clients:
    """Windows of 30 s in which clients have the latency of now, from when they were first looked at."""

    seconds = 30.0

    def __init__(self, clock: Clock, latency_ms: float = 10.0) -> None:
        self._clock, self.latency_ms = clock, latency_ms
        self._since = clock.now()
        self.looks = 0

    def look(self) -> None:
        self.looks += 1

    def window(self, since: float) -> Optional[Window]:
        start = self._clock.now() - self.seconds
        if start < max(since, self._since) - 0.5:
            return None
        means = {"client.p95_ms": Measure(self.latency_ms, 0.0, 5), "client.iops": Measure(100.0, 0.0, 5)}
        return Window(start, start + self.seconds, means)


class Watched:
    """A cluster whose clients are watched. Their latency is given, so time passes on its clock alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, osds: int = 3, latency_ms: float = 10.0) -> None:
        self.cluster = small_twin()
        self.latency_ms = latency_ms
        self.sources: List[Clients] = []
        self._osds, self._patch = osds, monkeypatch
        monkeypatch.setattr("ceph_tuner.pacing.client_watch.judged_windows", lambda *_: self._source())
        self.watch: ClientWatch
        self.changed_at = 0.0

    def _source(self) -> Clients:
        self.sources.append(Clients(self.cluster.clock, self.latency_ms))
        return self.sources[-1]

    def begin(self, wanted: WantedObjectives) -> ClientWatch:
        self.watch = ClientWatch(self.cluster, wanted, {}, 30.0, self._osds)
        self.watch.begin(lambda text: None)
        self.changed_at = self.cluster.clock.now()
        return self.watch

    def until(self, moment: float) -> List[str]:
        """Look every five seconds until then; what became of the objectives meanwhile."""
        changes = []
        while self.cluster.clock.now() < moment:
            self.cluster.twin.pass_over(min(5.0, moment - self.cluster.clock.now()))
            change = self.watch.follow()
            if change != SAME:
                changes.append(change)
                self.changed_at = self.cluster.clock.now()
            self.watch.judge(self.changed_at)
        return changes

    def go_on(self, seconds: float) -> List[str]:
        return self.until(self.cluster.clock.now() + seconds)


def hour_of_day(hour: float, watched: Watched) -> float:
    """The next moment at that hour, in UTC."""
    now = watched.cluster.clock.now()
    return now + (hour * HOUR - now % 86400.0) % 86400.0


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_what_is_begun_at_night_is_held_to_the_day_s_bound_by_day(watched: Watched) -> None:
    store_slo(watched.cluster.store, by_day_and_night("5"))
    watched.cluster.twin.pass_over(hour_of_day(23, watched) - watched.cluster.clock.now())
    watch = watched.begin(WantedObjectives.stored(watched.cluster.store))
    assert (watch.has_objectives, watch.reason()) == (False, "")
    assert watch.words == "keeps nothing: the policy night has no hard objective about clients"
    morning = hour_of_day(6, watched)
    assert watched.until(morning - 1) == []
    assert watch.reason() == ""
    assert watched.until(morning + 2) == [STRICTER]
    assert watch.reason() == "a first window under other objectives"
    assert watch.words == "keeps client.p95_ms <= 5 ms (policy base)"
    assert not watch.keeps_all
    watched.go_on(60)
    assert watch.reason() == "client.p95_ms at 10, to be <= 5"
    assert watch.windows_missed >= 1


def test_what_is_begun_by_day_is_let_go_of_at_night(watched: Watched) -> None:
    store_slo(watched.cluster.store, by_day_and_night("5"))
    watched.cluster.twin.pass_over(hour_of_day(21.5, watched) - watched.cluster.clock.now())
    watch = watched.begin(WantedObjectives.stored(watched.cluster.store))
    watched.go_on(60)
    assert watch.reason() == "client.p95_ms at 10, to be <= 5"
    night = hour_of_day(22, watched)
    assert watched.until(night + 10) == [LOOSER]
    assert (watch.reason(), watch.has_objectives) == ("", False)
    looks = watched.sources[-1].looks
    watched.go_on(600)
    assert watched.sources[-1].looks == looks, "nobody is looked at whom nothing is kept for"


def test_a_file_s_calendar_is_followed_as_well(watched: Watched) -> None:
    watched.cluster.twin.pass_over(hour_of_day(21.9, watched) - watched.cluster.clock.now())
    watch = watched.begin(WantedObjectives(by_day_and_night("5")))
    assert watch.has_objectives
    assert watched.until(hour_of_day(22, watched) + 10) == [LOOSER]


def test_objectives_that_are_set_meanwhile_are_taken_up_within_a_window(watched: Watched) -> None:
    watch = watched.begin(WantedObjectives.stored(watched.cluster.store))
    watched.go_on(60)
    assert (watched.sources, watch.reason()) == ([], "")
    store_slo(watched.cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 8"),))))
    assert watched.go_on(30) == [STRICTER]
    watched.go_on(60)
    assert watch.reason() == "client.p95_ms at 10, to be <= 8"
    store_slo(watched.cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 12"),))), anew=True)
    assert watched.go_on(30) == [LOOSER]
    assert watch.reason() == "", "the last window kept it"
    watched.cluster.store.remove(SLO_KEY)
    assert watched.go_on(30) == [LOOSER]
    assert watch.words == "keeps nothing: no objective is set"


def test_objectives_of_which_none_holds_background_work_are_not_called_none() -> None:
    assert (
        keeping("recovery.bytes_s >= 1 MB/s").at(0.0).words == "keeps nothing: no hard objective about clients is set"
    )
    assert keeping().at(0.0).words == "keeps nothing: no objective is set"


def test_a_tighter_bound_is_held_against_the_last_window_at_once(watched: Watched) -> None:
    store_slo(watched.cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 12"),))))
    watch = watched.begin(WantedObjectives.stored(watched.cluster.store))
    watched.go_on(60)
    assert watch.reason() == ""
    store_slo(watched.cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 9"),))), anew=True)
    watched.cluster.twin.pass_over(30)
    assert watch.follow() == STRICTER
    assert watch.reason() == "client.p95_ms at 10, to be <= 9"


def test_given_objectives_stay_whatever_is_stored(watched: Watched) -> None:
    watch = watched.begin(keeping("client.p95_ms <= 20"))
    store_slo(watched.cluster.store, by_day_and_night("1"))
    assert watched.go_on(86400.0) == []
    assert watch.words == "keeps client.p95_ms <= 20 ms"


@pytest.mark.parametrize("stored", ["no JSON", '{"objectives": 1}'])
def test_what_cannot_be_read_holds_as_it_was(watched: Watched, stored: str) -> None:
    store_slo(watched.cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 8"),))))
    watch = watched.begin(WantedObjectives.stored(watched.cluster.store))
    watched.cluster.store.set(SLO_KEY, stored)
    assert watched.go_on(120) == []
    assert watch.reason() == "client.p95_ms at 10, to be <= 8"
    assert watch.words.startswith("keeps client.p95_ms <= 8 ms; what is stored now cannot be read: ")
    store_slo(watched.cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 12"),))), anew=True)
    watched.go_on(60)
    assert watch.words == "keeps client.p95_ms <= 12 ms"


def test_objectives_that_are_removed_leave_the_pace_and_a_policy_lifts_it(watched: Watched) -> None:
    store = watched.cluster.store
    watch = watched.begin(WantedObjectives.stored(store))
    assert not watch.sets_the_pace, "there never was one"
    store_slo(store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 20"),))))
    watched.go_on(60)
    assert watch.sets_the_pace
    store.remove(SLO_KEY)
    watched.go_on(60)
    assert (watch.has_objectives, watch.sets_the_pace) == (False, True)
    store_slo(store, by_day_and_night("20"))
    watched.until(hour_of_day(23, watched))
    assert (watch.has_objectives, watch.sets_the_pace) == (False, False)


def test_a_stricter_policy_is_seen_to_come(watched: Watched) -> None:
    store_slo(watched.cluster.store, by_day_and_night("5"))
    clock = watched.cluster.clock
    clock.sleep(hour_of_day(5, watched) - clock.now())
    watch = watched.begin(WantedObjectives.stored(watched.cluster.store))
    # the night ends at six
    assert (watch.stricter_within(HOUR - 60), watch.stricter_within(HOUR + 60)) == (False, True)
    watched.until(hour_of_day(6, watched) + 60)
    assert not watch.stricter_within(86400.0), "what comes next is the night, without a bound"
    assert not ClientWatch(watched.cluster, keeping("client.p95_ms <= 5"), {}, 30.0, 3).stricter_within(86400.0)


def test_a_relative_bound_that_is_set_meanwhile_waits_for_a_baseline(watched: Watched) -> None:
    watch = watched.begin(WantedObjectives.stored(watched.cluster.store))
    store_slo(watched.cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 1.5 * baseline"),))))
    watched.go_on(90)
    assert watch.reason() == "a baseline of client.p95_ms, which is relative to one"
    watched.cluster.store.set(BASELINE, '{"client.p95_ms": 8.0}')
    watched.go_on(90)
    assert watch.reason() == ""
    watched.sources[-1].latency_ms = 13.0
    watched.go_on(60)
    assert watch.reason() == "client.p95_ms at 13, to be <= 12"


def test_a_policy_to_come_has_the_baseline_of_before_the_work(watched: Watched) -> None:
    watched.cluster.twin.pass_over(hour_of_day(5, watched) - watched.cluster.clock.now())
    watch = watched.begin(WantedObjectives(by_day_and_night("1.5 * baseline")))
    assert not watch.has_objectives
    watched.sources[-1].latency_ms = watched.latency_ms = 16.0
    assert watched.until(hour_of_day(6, watched) + 60) == [STRICTER]
    assert watch.reason() == "client.p95_ms at 16, to be <= 15"


def test_with_more_osds_than_are_looked_at_from_here_and_no_plugin_nothing_more_begins() -> None:
    cluster = small_twin()
    watch = ClientWatch(cluster, WantedObjectives.stored(cluster.store), {}, 30.0, OSDS_MAX + 1)
    watch.begin(lambda text: None)
    assert watch.reason() == ""
    store_slo(cluster.store, SloCalendar(Slo("own", (parse_objective("client.p95_ms <= 8"),))))
    cluster.clock.sleep(30)
    assert watch.follow() == STRICTER
    assert "no window of the last minutes" in watch.reason()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((), ("client.p95_ms <= 20",), True),
        (("client.p95_ms <= 20",), (), False),
        (("client.p95_ms <= 20",), ("client.p95_ms <= 19",), True),
        (("client.p95_ms <= 20",), ("client.p95_ms <= 21",), False),
        (("client.iops >= 100",), ("client.iops >= 101",), True),
        (("client.iops >= 100",), ("client.iops >= 99",), False),
        (("client.p95_ms <= 20", "client.iops >= 100"), ("client.p95_ms <= 20",), False),
        (("client.p95_ms <= 20",), ("client.p99_ms <= 90",), True),
    ],
)
def test_a_bound_that_is_new_or_tighter_is_stricter(
    before: tuple[str, ...], after: tuple[str, ...], expected: bool
) -> None:
    first, last = (held_bounds(keeping(*texts).at(0.0).slo, {}) for texts in (before, after))
    assert stricter(dict(first), dict(last)) is expected
