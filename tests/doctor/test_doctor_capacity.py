from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import OSDS, healthy, osd_facts, place, set_to

from ceph_tuner.doctor.capacity import VOID_FACTOR, bandwidth, capacity
from ceph_tuner.doctor.facts import OsdFacts
from ceph_tuner.doctor.finding import MISLEADING, POINTLESS

HDD = "osd_mclock_max_capacity_iops_hdd"
NAME = "osd_mclock_max_capacity_iops_ssd"
DEFAULT = {NAME: "21500.000000"}


def test_measured_capacities_that_agree_are_no_finding() -> None:
    assert capacity(healthy()) == []


def test_a_default_capacity_is_misleading_and_names_its_osd() -> None:
    facts = healthy(osds=(osd_facts(0, DEFAULT), *(osd_facts(osd) for osd in range(1, OSDS))))
    (found,) = capacity(replace(facts, entries=facts.entries[1:]))
    assert (found.check, found.severity, found.share) == ("capacity-unmeasured", MISLEADING, None)
    assert "osd.0" in found.evidence[0]
    assert f"ceph config set osd.0 {NAME} IOPS" in found.commands


def test_a_bench_far_below_makes_tuning_pointless_and_is_said_once() -> None:
    facts = healthy(osds=(osd_facts(0, DEFAULT),), benches={0: 790.7})
    (found,) = capacity(replace(facts, entries=()))
    assert (found.check, found.severity) == ("capacity-bench", POINTLESS)
    assert found.share == pytest.approx(1 - 790.7 / 21500)
    assert f"ceph config set osd.0 {NAME} 791" in found.commands


@given(st.floats(1.3, 8.9))
def test_only_a_bench_that_is_far_off_makes_it_pointless(factor: float) -> None:
    osds = {9_000 / factor: osd_facts(0, {NAME: "9000.000000"}), 9_000.0: osd_facts(0, {NAME: f"{9_000 / factor}"})}
    for bench, osd in osds.items():
        (found,) = capacity(healthy(osds=(osd,), benches={0: bench}))
        assert (found.severity == POINTLESS) == (factor >= VOID_FACTOR) or abs(factor - VOID_FACTOR) < 1e-9
        assert found.share == pytest.approx(1 - 1 / factor)


def disk(iops: str) -> OsdFacts:
    options = {"osd_op_queue": "mclock_scheduler", HDD: iops}
    return OsdFacts(replace(place(0), device_class="hdd"), "hdd", options=options, mclock_queues=True)


def test_a_bench_that_ceph_refused_says_nothing_against_what_was_measured_otherwise() -> None:
    # 180 by fio; the disk's cache answered the bench
    assert capacity(healthy(osds=(disk("180.000000"),), benches={0: 5231.0}, **set_to(("osd.0", HDD, "180")))) == []
    assert capacity(healthy(osds=(osd_facts(0),), benches={0: 790.7})) == []


def test_a_bench_that_ceph_refused_is_never_stored_and_makes_nothing_pointless() -> None:
    (found,) = capacity(healthy(osds=(disk("315.000000"),), benches={0: 5231.0}))
    assert (found.check, found.severity, found.share) == ("capacity-bench-refused", MISLEADING, None)
    assert found.commands == (f"ceph config set osd.0 {HDD} IOPS",)
    assert "its bench gave 5231" in found.evidence[0]
    assert "fio" in found.cure
    # beside another rule
    fast = osd_facts(0, {NAME: "100000.000000"})
    found = capacity(healthy(osds=(fast, *(osd_facts(osd) for osd in range(1, OSDS))), benches={0: 900_000.0}))
    assert [one.check for one in found] == ["capacity-peers", "capacity-bench-refused"]
    assert not any("900000" in command for one in found for command in one.commands)


def test_an_osd_far_from_its_peers_is_doubted() -> None:
    slow = osd_facts(0, {NAME: "5000.000000"})
    (found,) = capacity(healthy(osds=(slow, *(osd_facts(osd) for osd in range(1, OSDS)))))
    assert found.check == "capacity-peers"


def test_a_capacity_of_the_file_outranks_the_monitors_and_is_said_so() -> None:
    own = osd_facts(0, sources={NAME: {"file": "30000", "mon": "20000"}})
    (found,) = capacity(healthy(osds=(own,), benches={0: 60_000.0}))
    assert "file of the OSD itself" in found.evidence[0]


def test_an_osd_under_another_queue_or_that_was_not_asked_is_left_out() -> None:
    wpq = osd_facts(0, {**DEFAULT, "osd_op_queue": "wpq"}, mclock_queues=False)
    silent = replace(osd_facts(1), options={})
    assert capacity(healthy(osds=(wpq, silent), **set_to())) == []


def test_a_bandwidth_at_ceph_s_default_was_never_measured() -> None:
    name = "osd_mclock_max_sequential_bandwidth_ssd"
    assert bandwidth(healthy()) == []
    (found,) = bandwidth(healthy(osds=(osd_facts(0), osd_facts(1, {name: str(1200 * 2**20)}))))
    assert found.evidence == (f"osd.1: {name} is 1200 MiB/s, Ceph's default",)
