from __future__ import annotations

import contextlib
import threading
from datetime import datetime, timezone
from typing import List, Optional

import pytest

from ceph_tuner.core.errors import ClusterTimeout, InputError, TunerError
from ceph_tuner.core.goals.slo import parse_objective
from monitors import MemoryStore
from tuner.slos import CURRENT_S, SloBook


def test_an_objective_replaces_the_one_about_its_metric() -> None:
    book = SloBook(MemoryStore())
    book.set(parse_objective("client.p95_ms <= 80"))
    book.set(parse_objective("scrub.bytes_s >= 5 MB/s"))
    book.set(parse_objective("client.p95_ms <= 60"))
    found = book.read()
    assert found is not None
    assert [objective.text for objective in found.objectives] == ["scrub.bytes_s >= 5 MB/s", "client.p95_ms <= 60 ms"]


def test_removing_the_last_objective_removes_the_slo() -> None:
    store = MemoryStore()
    book = SloBook(store)
    book.set(parse_objective("client.p95_ms <= 80"))
    with pytest.raises(InputError, match=r"client\.p95_ms"):
        book.remove("client.iops")
    assert book.remove("client.p95_ms") is None
    assert store.values == {}
    assert book.remove("all") is None


def test_a_whole_slo_can_be_taken_and_a_wrong_one_changes_nothing() -> None:
    store = MemoryStore()
    book = SloBook(store)
    book.replace({"name": "night", "objectives": ["client.p95_ms <= 80"]})
    with pytest.raises(InputError):
        book.replace({"name": "day", "objectives": ["no.such <= 80"]})
    found = book.read()
    assert found is not None
    assert found.name == "night"


def test_a_damaged_slo_is_named_with_the_way_out() -> None:
    store = MemoryStore()
    store.set("slo", "{")
    with pytest.raises(InputError, match="slo rm all"):
        SloBook(store).read()
    SloBook(store).remove("all")
    assert SloBook(store).read() is None


class CountedStore(MemoryStore):
    """Counts what is read of the SLO; `during` runs inside of the next read, after its answer is settled."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.silent = False
        self.during: List[threading.Thread] = []

    def get(self, key: str) -> Optional[str]:
        answer = super().get(key)
        if key == "slo":
            self.reads += 1
            if self.silent:
                raise ClusterTimeout("config-key get did not answer")
        while key == "slo" and self.during:
            writer = self.during.pop()
            writer.start()
            writer.join()
        return answer


P95, P99 = (parse_objective(f"client.{name}_ms <= 80") for name in ("p95", "p99"))


def metrics(book: SloBook) -> List[str]:
    slo = book.current()
    return [objective.metric for objective in slo.objectives] if slo is not None else []


def test_one_read_serves_all_who_ask_in_an_interval() -> None:
    store = CountedStore()
    book = SloBook(store, lambda: 1000.0)
    for _ in range(3):
        book.begin_interval()
        threads = [threading.Thread(target=book.current) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert store.reads == 3


def test_monitors_that_do_not_answer_are_asked_once_for_all_who_wait() -> None:
    store, now = CountedStore(), [1000.0]
    store.silent = True
    book = SloBook(store, lambda: now[0])
    for _ in range(3):
        with pytest.raises(ClusterTimeout):
            book.current()
    assert store.reads == 1
    # who asks later reads again, also without a sample
    store.silent, now[0] = False, 1000.1
    assert book.current() is None
    assert store.reads == 2


def test_what_is_written_here_is_current_at_once() -> None:
    book = SloBook(CountedStore(), lambda: 1000.0)
    assert book.current() is None
    book.set(P95)
    assert metrics(book) == ["client.p95_ms"]
    book.replace({"objectives": ["client.p99_ms <= 80"]})
    assert metrics(book) == ["client.p99_ms"]
    book.remove("all")
    assert book.current() is None


def test_what_is_written_while_it_is_read_is_current_at_once() -> None:
    store = CountedStore()
    book = SloBook(store, lambda: 1000.0)
    store.during = [threading.Thread(target=book.set, args=(P95,))]
    assert book.current() is None
    assert metrics(book) == ["client.p95_ms"]


def test_what_others_wrote_is_current_after_a_sample_and_where_none_comes_a_little_later() -> None:
    store, now = CountedStore(), [1000.0]
    book = SloBook(store, lambda: now[0])
    assert book.current() is None
    SloBook(store).set(P95)
    assert book.current() is None
    book.begin_interval()
    assert metrics(book) == ["client.p95_ms"]
    SloBook(store).set(P99)
    now[0] += CURRENT_S
    assert metrics(book) == ["client.p95_ms", "client.p99_ms"]


def test_the_policy_of_a_moment_is_told_by_what_is_known_and_waits_for_no_monitor() -> None:
    monday = datetime(2026, 11, 23, tzinfo=timezone.utc).timestamp()
    at, office = monday + 12 * 3600.0, {"name": "office", "hours": "mon-fri 08:00-20:00", "without": ["client.p99_ms"]}
    wanted = {"objectives": ["client.p95_ms <= 20", "client.p99_ms <= 30"], "calendar": {"policies": [office]}}
    store, now = CountedStore(), [1000.0]
    book = SloBook(store, lambda: now[0])

    def read() -> None:
        now[0] += CURRENT_S
        with contextlib.suppress(TunerError):
            book.current_calendar()

    # nobody has read it
    assert (book.policy_seen(at), book.turns_seen(["office"], at)) == (None, {})
    read()
    assert book.policy_seen(at) == ""
    SloBook(store).replace(wanted)
    read()
    reads = store.reads
    assert [book.policy_seen(monday + 3600.0 * hour) for hour in (7, 8, 20)] == ["base", "office", "base"]
    turns = book.turns_seen(["office", "base", "night"], at)
    assert turns == dict.fromkeys(("office", "base"), monday + 20 * 3600.0)
    assert store.reads == reads
    store.silent = True
    read()
    assert book.policy_seen(at) == "office"
    store.silent = False
    store.set("slo", "{")
    read()
    assert (book.policy_seen(at), book.turns_seen(["office"], at)) == (None, {})
    # what is written here is known at once
    book.remove("all")
    assert book.policy_seen(at) == ""
    book.replace(wanted)
    assert book.policy_seen(at) == "office"


def test_what_is_wanted_follows_the_calendar_without_another_read() -> None:
    # 2026-11-23 was a Monday
    date = [datetime(2026, 11, 23, 7, 59, tzinfo=timezone.utc).timestamp()]
    store = CountedStore()
    book = SloBook(store, lambda: 1000.0, lambda: date[0])
    office = {"name": "office", "hours": "mon-fri 08:00-20:00", "objectives": ["client.p95_ms <= 8 ms"]}
    book.replace({"objectives": ["client.p95_ms <= 20 ms"], "calendar": {"policies": [office]}})
    for after, policy, bound in ((0, "base", 20.0), (60, "office", 8.0), (13 * 3600, "base", 20.0)):
        date[0] += after
        slo = book.current()
        assert slo is not None
        assert slo.objectives[0].bound.value == bound
        assert book.policy()[0] == policy
    assert store.reads == 1
    # one objective more leaves the calendar, and one that a policy builds on stays
    book.set(P99)
    calendar = book.calendar()
    assert calendar is not None
    assert [policy.name for policy in calendar.policies] == ["office"]
    book.remove("client.p95_ms")
    with pytest.raises(InputError, match="office"):
        book.remove("client.p99_ms")
