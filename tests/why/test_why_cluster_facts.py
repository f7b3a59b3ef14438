from __future__ import annotations

import contextlib
import json
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.checks import STEADY, not_judged
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed
from ceph_tuner.core.why import CAUSES, WhyFacts, examine, gather
from ceph_tuner.core.why.cluster_facts import OSDS_MOST
from shard_dumps import StaleShard
from twins import answering, small_twin
from whole_cluster import whole_cluster

Tell = Callable[[str, str, str], str]
DAY_S = 86_400.0


class Changed:
    """A commander whose answers are changed by a function of (daemon, command, answer)."""

    def __init__(self, twin: Cluster, change: Tell) -> None:
        self._commander, self._change = twin.commander, change
        self.asked: List[Tuple[str, str]] = []

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        return self._change("mon", prefix, self._commander.mon(prefix, arguments, payload))

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        self.asked.append((daemon, prefix))
        return self._change(daemon, prefix, self._commander.tell(daemon, prefix, arguments))


def facts_with(change: Tell) -> Tuple[WhyFacts, Changed]:
    twin = small_twin()
    twin.clock.sleep(5)
    commander = Changed(twin, change)
    return gather(commander, twin.clock, 10.0), commander


def of_pgs(answer: str, change: Callable[[Dict[str, Any]], object]) -> str:
    document = json.loads(answer)
    for row in document["pg_stats"] if isinstance(document, dict) else document:
        change(row)
    return json.dumps(document)


def test_rates_are_those_between_the_looks() -> None:
    facts, _ = facts_with(lambda daemon, prefix, answer: answer)
    assert [osd.seconds for osd in facts.osds] == [10.0] * 4
    assert sum(osd.rate("osd.op") for osd in facts.osds) == pytest.approx(300, rel=0.2)
    assert facts.osds[0].options["osd_op_queue"] == "mclock_scheduler"
    assert {pool.name for pool in facts.pools.values()} == {"rbd", "other"}


def test_an_osd_that_does_not_answer_is_asked_once_and_named() -> None:
    def change(daemon: str, prefix: str, answer: str) -> str:
        if daemon == "osd.1":
            raise ClusterTimeout("osd.1 did not answer in time")
        return answer

    facts, commander = facts_with(change)
    assert len([daemon for daemon, _ in commander.asked if daemon == "osd.1"]) == 1
    assert [note for note in facts.notes if note.startswith("config show of osd.1: not seen")]
    assert [osd.id for osd in facts.osds if osd.seconds] == [0, 2, 3]


def test_what_fails_alike_is_one_note() -> None:
    def change(daemon: str, prefix: str, answer: str) -> str:
        if prefix == "dump_recovery_reservations":
            raise CommandFailed(f"ceph tell {daemon} {prefix}", -22, "No handler for command")
        return answer

    facts, _ = facts_with(change)
    (note,) = [note for note in facts.notes if "dump_recovery_reservations" in note]
    assert "osd.0, osd.1, osd.2, osd.3" in note


def test_an_osd_that_started_anew_has_no_rates() -> None:
    looks: List[str] = []

    def change(daemon: str, prefix: str, answer: str) -> str:
        if (daemon, prefix) == ("osd.2", "perf dump"):
            looks.append(daemon)
            if len(looks) > 1:
                document = json.loads(answer)
                document["osd"]["op"] = 0
                return json.dumps(document)
        return answer

    facts, _ = facts_with(change)
    assert [osd.id for osd in facts.osds if not osd.seconds] == [2]


@pytest.mark.parametrize(("days", "late"), [(6.0, False), (7.5, False), (8.0, True)])
def test_a_scrub_is_late_a_tenth_of_its_interval_after_its_date(days: float, late: bool) -> None:
    twin = small_twin()
    stamp = TwinTime(twin).before(days * DAY_S)

    def change(daemon: str, prefix: str, answer: str) -> str:
        if prefix == "pg ls":
            return of_pgs(answer, lambda row: row.update(last_deep_scrub_stamp=stamp))
        return answer

    facts = gather(Changed(twin, change), twin.clock, 10.0)
    assert {pg.deep_late for pg in facts.pgs} == {late}


@pytest.mark.parametrize(("days", "late"), [(8.0, False), (40.0, True)])
def test_an_interval_that_no_osd_tells_is_that_of_the_monitors(days: float, late: bool) -> None:
    twin = whole_cluster()
    twin.config.set("osd", "osd_deep_scrub_interval", str(28 * DAY_S))
    twin.clock.sleep(5)
    stamp = TwinTime(twin).before(days * DAY_S)

    def change(daemon: str, prefix: str, answer: str) -> str:
        if prefix == "config show":
            raise CommandFailed(prefix, -13, "no")
        if prefix == "pg ls":
            return of_pgs(answer, lambda row: row.update(last_deep_scrub_stamp=stamp))
        return answer

    facts = gather(Changed(twin, change), twin.clock, 10.0)
    assert {pg.deep_late for pg in facts.pgs} == {late}


class TwinTime:
    """Moments of a twin as Ceph writes them."""

    def __init__(self, twin: Cluster) -> None:
        self._now = twin.clock.now()

    def before(self, seconds: float) -> str:
        return datetime.fromtimestamp(self._now - seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")


def test_of_many_osds_those_with_work_are_asked_first() -> None:
    twin = small_twin(osds=OSDS_MOST + 16)
    worker = OSDS_MOST + 15

    def change(daemon: str, prefix: str, answer: str) -> str:
        if prefix == "pg ls":
            return of_pgs(answer, lambda row: worker in row["acting"] and row.update(state="active+recovery_wait"))
        return answer

    facts = gather(Changed(twin, change), twin.clock, 10.0)
    asked = [osd.id for osd in facts.osds]
    assert len(asked) <= OSDS_MOST
    assert worker in asked
    assert f"{len(asked)} of {OSDS_MOST + 16} OSDs were asked: of those with work first" in facts.notes


def test_a_shard_that_stays_stale_is_judged_and_its_osd_alone_is_asked_again() -> None:
    twin = whole_cluster()
    commander = StaleShard(twin.commander)
    facts = gather(commander, twin.clock, 10.0)
    (item,) = facts.osds[1].served
    assert (item.service_class, item.by_limit) == ("client", True)
    # after the second look
    assert commander.readings == {"osd.0": 1, "osd.1": 2, "osd.2": 1, "osd.3": 1}
    assert (facts.unseen, facts.notes) == (frozenset(), ())


@pytest.mark.parametrize("turns_after", [1, 3, 5])
def test_a_shard_whose_osd_changed_its_options_between_the_looks_is_not_judged(turns_after: int) -> None:
    twin = whole_cluster()
    facts = gather(StaleShard(twin.commander, turns_after), twin.clock, 10.0)
    assert facts.osds[1].served == ()
    (note,) = facts.notes
    assert "shards of osd.1 go by other values than were read: not judged (their options changed meanwhile)" in note
    assert [check.name for check in not_judged(CAUSES, facts, facts.unseen)] == ["stale shards"]


def test_a_shard_is_not_judged_while_mclock_s_values_are_on_trial() -> None:
    twin = whole_cluster()
    applier = twin.applier()
    applier.apply(applier.plan("osd", {"osd_mclock_profile": "high_client_ops"}), "a trial", trial=True)
    facts = gather(StaleShard(twin.commander), twin.clock, 10.0)
    assert facts.unseen == {STEADY}
    assert "settings are on trial" in facts.notes[0]


COMMANDS = ["pg ls", "osd dump", "osd metadata", "config show", "perf dump", "dump_op_pq_state"]
NONSENSE = ["[]", "{}", "7", '[{"pgid": 7}]', '{"osd": [], "pools": [7]}', "no JSON"]


@pytest.mark.parametrize("prefix", COMMANDS)
@pytest.mark.parametrize("answer", NONSENSE)
def test_nonsense_is_a_note_or_an_error_of_the_cluster(prefix: str, answer: str) -> None:
    with contextlib.suppress(CommandFailed):
        facts, _ = facts_with(lambda daemon, command, own: answer if command == prefix else own)
        assert examine(facts) == []


ODD = {
    "perf dump": {"osd": {"op": "many"}},
    "dump_op_pq_state": {"OSDShard:0": {"queue_sizes": [], "mClockClients": {"clients": ""}}},
    "dump_recovery_reservations": {"local_reservations": {"in_progress": [7]}},
}


@pytest.mark.parametrize("prefix", ODD)
def test_what_one_osd_says_that_cannot_be_read_is_a_note_and_the_others_are_looked_at(prefix: str) -> None:
    def change(daemon: str, command: str, answer: str) -> str:
        return json.dumps(ODD[prefix]) if (daemon, command) == ("osd.1", prefix) else answer

    facts, _ = facts_with(change)
    assert [osd.id for osd in facts.osds] == [0, 1, 2, 3]
    assert [note for note in facts.notes if note.startswith(f"{prefix} of osd.1: not seen")]


def test_of_many_osds_some_of_each_device_class_are_asked() -> None:
    twin = small_twin(osds=OSDS_MOST + 16)

    def change(daemon: str, prefix: str, answer: str) -> str:
        if prefix != "osd tree":
            return answer
        document = json.loads(answer)
        for node in document["nodes"]:
            if node["id"] in (44, 49):
                node["device_class"] = "nvme"
        return json.dumps(document)

    facts = gather(Changed(twin, change), twin.clock, 10.0)
    assert {44, 49} <= {osd.id for osd in facts.osds}
    assert len(facts.osds) <= OSDS_MOST


def test_osds_of_several_releases_are_told_apart() -> None:
    versions = {0: "18.2.7", 1: "20.2.4-1", 2: "odd"}
    rows = [{"id": osd, "ceph_version_short": version} for osd, version in versions.items()]
    twin = answering(small_twin(), {"osd metadata": rows})
    facts = gather(twin.commander, twin.clock, 10.0)
    assert [osd.major for osd in facts.osds] == [18, 20, 0, 0]
