from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Dict, FrozenSet, List, Mapping, Optional

import pytest
from patients import OSDS, healthy, osd_facts

from ceph_tuner.core.checks import STEADY, not_judged
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.core.measure.queue_dump import (
    ServedClass,
    queued,
    read_tags,
    served,
    served_meanwhile,
    strict_queued,
)
from ceph_tuner.core.measure.stale_shards import ShardLook, unsettled
from ceph_tuner.doctor import examine, gather
from ceph_tuner.doctor.examination import CHECKS
from ceph_tuner.doctor.shards import stale
from ceph_tuner.gather.replay import open_state
from shard_dumps import StaleShard, dump, record
from whole_cluster import whole_cluster

LATER = 1_795_367_100.0
"""When the first dump was answered, in seconds since the epoch: all clocks of these dumps are far behind."""


def test_a_class_that_is_served_while_its_reservation_clock_stands_has_no_reservation_there() -> None:
    before = read_tags(dump(record(366993.7, 499418.4), record(0, 726863.7)))
    after = read_tags(dump(record(366994.1, 899418.4), record(0, 926863.7)))
    assert served(before, after, LATER) == (
        ServedClass(0, "client", True, False),
        ServedClass(1, "client", False, False),
    )


def test_what_was_not_served_meanwhile_is_not_judged() -> None:
    tags = read_tags(dump(record(0, 726863.7), record(5, 5, 5, number=2)))
    assert list(tags) == [(0, "client", " client_id: 0 profile_id: 0 ")]
    assert served(tags, tags, LATER) == ()
    assert served({}, tags, LATER) == ()
    assert read_tags({"error": "no such shard", "OSD:ShardedOpWQ:0": {}}) == {}


def test_a_class_that_always_waits_is_not_judged_by_a_reservation_s_clock_that_stands() -> None:
    """What is served by its weight turns it back: seen on 20.2.4 at a reservation of 0.05, of deleted PGs."""

    def waiting(text: str) -> str:
        return text.replace("req_count:0", "req_count:2")

    before = read_tags(dump(waiting(record(366993.7, 499418.4, 366990.0)), waiting(record(0, 726863.7))))
    after = read_tags(dump(waiting(record(366993.7, 899418.4, 366995.0)), waiting(record(0, 926863.7))))
    assert served(before, after, LATER) == (
        ServedClass(0, "client", True, True),
        ServedClass(1, "client", False, False),
    )
    # the last of them is served before the second look
    after = read_tags(dump(record(366993.7, 899418.4, 366995.0), record(0, 926863.7)))
    assert [item.by_reservation for item in served(before, after, LATER)] == [True, False]


@pytest.mark.parametrize(("behind_s", "judged"), [(-3.0, False), (5.0, False), (40.0, True)])
def test_a_reservation_s_clock_that_was_hardly_behind_says_nothing_while_it_stands(
    behind_s: float, judged: bool
) -> None:
    """Seen on 20.2.4 at 0.05 of a capacity of 40 IOPS: 3 s ahead with one scrub waiting, and the same 10 s later."""
    before = read_tags(dump(record(366993.7, 499418.4, 366990.0)))
    after = read_tags(dump(record(366993.7, 899418.4, 366995.0)))
    (item,) = served(before, after, 1_795_366_993.7 + behind_s)
    assert item.by_reservation is not judged


@pytest.mark.parametrize(
    ("limit", "at", "ahead"), [(525546.4, 1795525545.1, 1.3), (525540.0, 1795525545.1, -5.1), (2.0, 1795999999.0, 3.0)]
)
def test_a_limit_s_clock_is_ahead_or_behind(limit: float, at: float, ahead: float) -> None:
    (item,) = queued(read_tags(dump(record(1, 1, limit).replace("req_count:0", "req_count:3"))), at)
    assert (item.waiting, item.service_class) == (3, "client")
    assert item.limit_ahead_s == pytest.approx(ahead, abs=1e-3)


def test_without_a_limit_nothing_is_ahead() -> None:
    (item,) = queued(read_tags(dump(record(1, 1))), 1795525545.1)
    assert item.limit_ahead_s == 0.0


def test_the_strict_queue_of_all_shards_is_counted_by_items_and_not_by_priorities() -> None:
    answer = dump(record(1, 1), record(1, 1), record(1, 1))
    for shard, (priorities, items) in enumerate([(1, 65), (2, 1), (0, 0)]):
        answer[f"OSD:ShardedOpWQ:{shard}"]["queue_sizes"]["high_priority_queue"] = priorities
        answer[f"OSD:ShardedOpWQ:{shard}"]["HighPriorityQueue"] = (
            {"priority": 4294967295, "queue_size": items} if priorities else {}
        )
    assert strict_queued({**answer, "error": "no such shard"}) == 67


class Dumps:
    """A commander of OSDs that answer with one dump after the other, and the clock between them."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.order: List[str] = []

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        self.order.append(f"{daemon} {prefix}")
        return self._answers.pop(0)

    def sleep(self, seconds: float) -> None:
        self.order.append(f"{seconds:g} s")

    def now(self) -> float:
        return LATER


def test_osds_are_looked_at_twice_with_the_time_between() -> None:
    reserved, unreserved = dump(record(366993.7, 499418.4)), dump(record(0, 726863.7))
    after = dump(record(366994.1, 899418.4)), dump(record(0, 926863.7))
    osds = Dumps(*map(json.dumps, (reserved, unreserved, *after)))
    looks = served_meanwhile(osds, [0, 2], osds, 1.5)  # type: ignore[arg-type]
    assert looks == {0: (ServedClass(0, "client", True, False),), 2: (ServedClass(0, "client", False, False),)}
    look = ["osd.0 dump_op_pq_state", "osd.2 dump_op_pq_state"]
    assert osds.order == [*look, "1.5 s", *look]


def test_a_dump_that_is_no_json_is_the_osd_s_failure() -> None:
    osds = Dumps("no admin socket")
    with pytest.raises(CommandFailed, match="instead of JSON"):
        served_meanwhile(osds, [0], osds, 1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (ServedClass(1, "client", False, False), "shard 1 serves client without the reservation of 0.5"),
        (ServedClass(2, "client", True, True), "shard 2 serves client with a limit, where the OSD shows none"),
        (ServedClass(1, "background_best_effort", False, False),
         "shard 1 serves background best effort without the limit of 0.9"),
        (ServedClass(1, "client", True, False), ""),
    ],
)  # fmt: skip
def test_a_shard_that_differs_from_what_its_osd_shows_is_found(seen: ServedClass, told: str) -> None:
    osds = tuple(osd_facts(osd, served=(seen,) if osd == 3 else ()) for osd in range(OSDS))
    found = stale(healthy(osds=osds))
    if not told:
        assert found == []
        return
    (finding,) = found
    assert finding.evidence == (f"osd.3: {told}",)
    assert finding.share == 1 / OSDS
    assert "--cure stale-shards --yes" in finding.commands[0]


def test_nothing_served_is_no_finding() -> None:
    assert stale(healthy()) == []
    assert stale(replace(healthy(), osds=())) == []


LIMITED = {"osd_mclock_scheduler_client_res": "0.5", "osd_mclock_scheduler_client_lim": "0.33"}
FREE = {"osd_mclock_scheduler_client_res": "0.5", "osd_mclock_scheduler_client_lim": "0.000000"}
WITH_LIMIT, WITHOUT = ServedClass(0, "client", True, True), ServedClass(1, "client", True, False)


@pytest.mark.parametrize(
    ("served_classes", "after", "on_trial", "doubted"),
    [
        # the options were the same before and after: the shard is what differs
        ((WITH_LIMIT,), FREE, False, False),
        ((WITH_LIMIT, WITHOUT), {**FREE, "osd_max_scrubs": "5"}, False, False),
        # they changed: it may have been right
        ((WITH_LIMIT,), LIMITED, False, True),
        ((WITH_LIMIT, WITHOUT), {}, False, True),
        # read once alone: another shard that goes by them says that they stood
        ((WITH_LIMIT,), None, False, True),
        ((WITH_LIMIT, WITHOUT), None, False, False),
        # on trial settings take turns
        ((WITH_LIMIT, WITHOUT), FREE, True, True),
        # what goes by the options is no question
        ((WITHOUT,), None, True, False),
    ],
)
def test_only_what_stood_meanwhile_is_judged(
    served_classes: tuple, after: Optional[Dict[str, str]], on_trial: bool, doubted: bool
) -> None:
    expected: Dict[int, FrozenSet[str]] = {3: frozenset(("client",))} if doubted else {}
    assert unsettled({3: ShardLook(served_classes, FREE, after)}, on_trial) == expected


def test_another_osd_of_the_same_options_attests_them_and_one_of_other_options_does_not() -> None:
    stale_osd = ShardLook((WITH_LIMIT,), FREE)
    assert unsettled({0: stale_osd, 1: ShardLook((WITHOUT,), FREE)}, False) == {}
    assert unsettled({0: stale_osd, 1: ShardLook((WITH_LIMIT,), LIMITED)}, False) == {0: frozenset(("client",))}
    other_class = ServedClass(1, "background_recovery", False, False)
    assert unsettled({0: stale_osd, 1: ShardLook((other_class,), FREE)}, False) == {0: frozenset(("client",))}


def test_a_shard_that_stays_stale_is_found_and_its_osd_alone_is_asked_again() -> None:
    cluster = whole_cluster()
    commander = StaleShard(cluster.commander)
    facts = gather(commander, cluster.clock, cluster.release, cluster.version)
    (finding,) = stale(facts)
    assert finding.evidence == ("osd.1: shard 0 serves client with a limit, where the OSD shows none",)
    assert commander.readings == {"osd.0": 1, "osd.1": 2, "osd.2": 1, "osd.3": 1}
    assert facts.unseen == frozenset()


def test_options_that_change_between_the_looks_are_no_finding_and_no_all_clear() -> None:
    cluster = whole_cluster()
    commander = StaleShard(cluster.commander, turns_after=1)
    facts = gather(commander, cluster.clock, cluster.release, cluster.version)
    assert stale(facts) == []
    assert [check.name for check in not_judged(CHECKS, facts, facts.unseen)] == ["shards"]
    assert [note for note in facts.notes if note.startswith("shards of osd.1 go by other values than were read")]


def test_a_trial_of_mclock_s_values_leaves_shards_unjudged_and_one_of_others_does_not() -> None:
    trials = ({"osd_max_scrubs": 1}, True), ({"osd_mclock_profile": "high_client_ops"}, False)
    for settings, judged in trials:
        cluster = whole_cluster()
        applier = cluster.applier()
        applier.apply(applier.plan("osd", settings), "a trial", trial=True)
        commander = StaleShard(cluster.commander)
        facts = gather(commander, cluster.clock, cluster.release, cluster.version)
        assert facts.on_trial
        assert bool(stale(facts)) is judged
        assert (STEADY in facts.unseen) is not judged


def test_settings_that_took_turns_while_a_real_cluster_was_gathered_make_no_shard_stale() -> None:
    """Options of the file are of one turn of a trial, and the dumps of the queues of another."""
    cluster = open_state(Path(__file__).resolve().parents[1] / "data" / "lab" / "nvme.tar.zst")
    facts = gather(cluster.commander, cluster.clock, cluster.release, cluster.version)
    assert "stale-shards" not in {finding.check for finding in examine(facts)}
    assert [check.name for check in not_judged(CHECKS, facts, facts.unseen)] == ["shards"]
    assert [note for note in facts.notes if "not judged (settings are on trial, and take turns)" in note]
