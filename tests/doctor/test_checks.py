from __future__ import annotations

import json
import sys
from typing import Any, Dict, Mapping, Set

import pytest
from patients import OSDS, healthy, osd_facts, set_to

from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.checks import OPTIONS, OSD_MAP, PGS, Check, NotJudged, not_judged, unjudged_words
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.doctor import POINTLESS, examine, gather
from ceph_tuner.doctor.examination import CHECKS, DECISIVE, HOST_CHECKS
from ceph_tuner.doctor.facts import ENTRIES, HostFacts
from whole_cluster import whole_cluster


def test_a_check_that_found_nothing_says_nothing_without_what_it_needs() -> None:
    checks: Dict[str, Check[str, str]] = {
        "sees all": Check(lambda facts: [], ("a",)),
        "misses one": Check(lambda facts: [], ("a", "b")),
        "finds all the same": Check(lambda facts: [facts], ("b",)),
        "needs nothing": Check(lambda facts: [], ()),
    }
    assert not_judged(checks, "facts", {"b"}) == [NotJudged("misses one", ("b",))]
    assert not_judged(checks, "facts", ()) == []


def test_parts_are_named_once() -> None:
    checks = [NotJudged("x", ("the PGs",)), NotJudged("y", ("health", "the PGs"))]
    assert unjudged_words(checks) == "2 could not be judged: x, y. Not seen: the PGs, health."
    assert unjudged_words([]) == ""


class Without:
    """A commander that fails at some commands."""

    def __init__(self, commander: Commander, *commands: str) -> None:
        self._commander, self._commands = commander, commands

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        return self._answer(prefix, lambda: self._commander.mon(prefix, arguments, payload))

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        return self._answer(prefix, lambda: self._commander.tell(daemon, prefix, arguments))

    def _answer(self, prefix: str, ask: Any) -> str:
        if prefix in self._commands:
            raise CommandFailed(prefix, -5, "no")
        return str(ask())


def unjudged(*commands: str) -> Set[str]:
    cluster = whole_cluster()
    commander = Without(cluster.commander, *commands)
    facts = gather(commander, cluster.clock, cluster.release, cluster.version)
    return {check.name for check in not_judged(CHECKS, facts, facts.unseen)}


OF_OPTIONS = {"bandwidth", "recovery chunk", "encryption", "shards"}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("no such", set()),
        ("osd dump", {"flags", "compression"}),
        ("pg ls", {"scrub interval", "placement"}),
        ("status", {"laggy PGs"}),
        ("health", {"metadata servers"}),
        ("versions", {"versions"}),
        ("config dump", {"leftovers", "nine values", "capacity masks", "ignored knobs"}),
        ("config-key dump", {"twin drift"}),
        ("config show", OF_OPTIONS),
        ("config diff", OF_OPTIONS - {"shards"}),
        ("dump_op_pq_state", {"shards"}),
        ("df", {"placement", "compression"}),
    ],
)
def test_what_no_command_shows_is_not_judged(command: str, names: Set[str]) -> None:
    seen = unjudged(command)
    assert names <= seen
    if not names or command in ("health", "versions", "status", "config-key dump", "dump_op_pq_state"):
        assert seen == names


def test_an_osd_that_does_not_answer_leaves_the_others_to_be_judged() -> None:
    cluster = whole_cluster()

    class OneSilent(Without):
        def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
            if daemon == "osd.1":
                raise CommandFailed(prefix, -5, "no")
            return super().tell(daemon, prefix, arguments)

    facts = gather(OneSilent(cluster.commander), cluster.clock, cluster.release, cluster.version)
    assert facts.unseen == frozenset()
    assert [note for note in facts.notes if "osd.1" in note]


def test_pgs_too_many_to_be_listed_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = whole_cluster()
    document = json.loads(cluster.commander.mon("status", {}))
    document["pgmap"]["num_pgs"] = 20_001

    class Large(Without):
        def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
            return json.dumps(document) if prefix == "status" else super().mon(prefix, arguments, payload)

    facts = gather(Large(cluster.commander), cluster.clock, cluster.release, cluster.version)
    assert facts.unseen == {PGS}


def test_what_no_entry_shows_is_not_what_nobody_set() -> None:
    custom = {"osd_mclock_profile": "custom", "osd_mclock_max_capacity_iops_ssd": "21500.000000"}
    osds = tuple(osd_facts(osd, custom) for osd in range(OSDS))
    assert {finding.check for finding in examine(healthy(osds=osds, entries=()))} >= {
        "nine-incomplete",
        "capacity-unmeasured",
    }
    unseen = healthy(osds=osds, entries=(), unseen=frozenset((ENTRIES,)))
    assert {finding.check for finding in examine(unseen)} == set()
    names = {check.name for check in not_judged(CHECKS, unseen, unseen.unseen)}
    assert {"capacity", "nine values", "leftovers"} <= names


def test_a_fault_that_shows_counts_whatever_else_was_not_seen() -> None:
    facts = healthy(unseen=frozenset((OPTIONS, OSD_MAP)), **set_to(("osd/host:h0", "osd_max_scrubs", "1")))
    names = {check.name for check in not_judged(CHECKS, facts, facts.unseen)}
    assert "flags" in names
    assert "leftovers" not in names


def test_checks_that_decide_are_those_of_what_may_be_pointless() -> None:
    def calls_something_pointless(name: str) -> bool:
        return "POINTLESS" in vars(sys.modules[CHECKS[name].look.__module__])

    assert {name for name in CHECKS if calls_something_pointless(name)} >= set(DECISIVE)
    assert {CHECKS[name].look.__module__ for name in DECISIVE} == {
        check.look.__module__ for name, check in CHECKS.items() if calls_something_pointless(name)
    }
    wpq = tuple(osd_facts(osd, {"osd_op_queue": "wpq"}, mclock_queues=False) for osd in range(OSDS))
    assert [finding.severity for finding in CHECKS["other queue"].look(healthy(osds=wpq))] == [POINTLESS]


def test_a_host_without_an_osd_says_nothing_of_its_allocator() -> None:
    assert [check.name for check in not_judged(HOST_CHECKS, HostFacts(cpus=4), HostFacts(cpus=4).unseen)] == [
        "allocator"
    ]
    whole = HostFacts(cpus=4, allocators={7: "tcmalloc"}, thread_caches={7: 1 << 27})
    assert not_judged(HOST_CHECKS, whole, whole.unseen) == []
