from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from patients import OSDS, TIB, healthy, osd_facts, pgs, set_to

from ceph_tuner.doctor import COSTLY, MISLEADING, POINTLESS, Finding, examine
from ceph_tuner.doctor.finding import by_cost, with_reach


def finding(severity: str, share: float) -> Finding:
    return Finding("check", severity, "title", ("seen",), "cost", "cure", share=share)


def test_a_cluster_without_faults_has_no_finding() -> None:
    assert examine(healthy()) == []


def test_findings_come_by_severity_then_by_share() -> None:
    costs = [(COSTLY, 0.9), (MISLEADING, 0.1), (POINTLESS, 0.1), (MISLEADING, 0.5), (MISLEADING, None)]
    ordered = [(one.severity, one.share) for one in by_cost(finding(*cost) for cost in costs)]
    assert ordered == [(POINTLESS, 0.1), (MISLEADING, 0.5), (MISLEADING, 0.1), (MISLEADING, None), (COSTLY, 0.9)]


def test_faults_together_are_all_found() -> None:
    default = {"osd_mclock_max_capacity_iops_ssd": "21500.000000"}
    osds = (
        osd_facts(0, default),
        *(osd_facts(osd) for osd in range(1, OSDS - 1)),
        osd_facts(5, {"osd_op_queue": "wpq"}, mclock_queues=False),
    )
    rows = set_to(("osd", "osd_scrub_cost", "1048576"), ("osd/host:h0", "osd_max_scrubs", "1"))
    found = examine(healthy(osds=osds, flags=("nodeep-scrub",), benches={0: 790.0}, **rows))
    assert [one.check for one in found] == [
        "capacity-bench",
        "other-queue",
        "scrub-flags",
        "leftovers",
        "ignored-knobs",
    ]


def test_a_finding_says_how_many_osds_its_commands_touch() -> None:
    facts = healthy(**set_to(("osd/host:h0", "osd_max_scrubs", "1"), ("osd", "osd_scrub_cost", "1048576")))
    touched = {one.check: one.to_dict()["touches"] for one in examine(facts)}
    assert touched == {"leftovers": 2, "ignored-knobs": OSDS}
    # an OSD that is down is not touched now
    down = tuple(replace(place, up=place.osd != 0) for place in facts.places)
    assert [one.touches for one in examine(replace(facts, places=down)) if one.check == "leftovers"] == [(down[1],)]


def test_commands_that_set_nothing_or_have_a_placeholder_touch_no_osd_that_is_known() -> None:
    (flags,) = examine(healthy(flags=("nodeep-scrub",)))
    assert (flags.touches, flags.to_dict()["touches"]) == ((), None)
    slow = replace(flags, commands=("ceph config set osd/class:CLASS osd_max_scrubs 1",))
    assert with_reach(slow, healthy().places).touches == ()


def test_no_finding_is_without_evidence_or_with_an_impossible_share() -> None:
    with pytest.raises(ValueError, match="evidence"):
        Finding("check", COSTLY, "title", (), "cost", "cure")
    with pytest.raises(ValueError, match=r"share \(=1.5\)"):
        finding(COSTLY, 1.5)


def test_a_name_of_anybody_s_stays_one_word_of_a_command_that_is_shown() -> None:
    name = "rbd; touch owned #"
    pool = replace(
        healthy().pools[0],
        name=name,
        pg_num=8,
        autoscaled=True,
        flags=("nodeep-scrub",),
        compression="aggressive",
        compressed_from=10.0 * TIB,
        compressed_to=9.9 * TIB,
    )
    spread = pgs((((0, 2), 8), ((1, 3), 1)), nbytes=2.0**38)
    chunk = {"osd_recovery_max_chunk": "4096"}
    osds = (
        *(osd_facts(osd, chunk, compressed=1e6, rejected=1e6) for osd in range(OSDS - 1)),
        osd_facts(5, {"osd_op_queue": "wpq", **chunk}, mclock_queues=False),
    )
    rows = set_to((f"osd/host:{name}", "osd_op_queue", "wpq"), (f"osd/host:{name}", "osd_recovery_max_chunk", "4096"))
    health = {"MDS_TRIM": ("1 MDSs behind", "mds.a;touch(mds.0): Behind on trimming (5000/128)")}
    found = examine(healthy(osds=osds, pools=(pool,), pgs=spread, health=health, **rows))
    commands = [command for one in found for command in one.commands]
    for command in commands:
        words = shlex.split(command)
        assert shlex.join(words) == command, command
    hostile = {" ".join(shlex.split(command)[:4]) for command in commands if "touch" in command}
    assert hostile >= {
        "ceph osd pool set",
        f"ceph config rm osd/host:{name}",
        "ceph tell mds.a;touch perf",
    }
    assert len([command for command in commands if name in shlex.split(command)]) >= 3
