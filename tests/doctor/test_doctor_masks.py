from __future__ import annotations

from dataclasses import replace
from typing import List, Sequence

import pytest
from patients import OSDS, capacities, healthy, osd_facts, place, set_to

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.doctor import examine
from ceph_tuner.doctor.finding import MISLEADING, Finding
from ceph_tuner.doctor.masks import capacity_masks

IOPS = "osd_mclock_max_capacity_iops_ssd"
BANDWIDTH = "osd_mclock_max_sequential_bandwidth_ssd"


def findings(*rows: Sequence[str], beside: bool = True) -> List[Finding]:
    """In the order of `config dump`: sections, and what they say by its name."""
    entries = [ConfigEntry(*row) for row in rows]
    return capacity_masks(replace(healthy(), entries=(*entries, *(capacities() if beside else ()))))


def test_a_mask_without_entries_of_single_osds_is_no_finding() -> None:
    assert findings(["osd/class:ssd", IOPS, "20000"], beside=False) == []


def test_a_mask_that_says_what_the_osds_say_is_no_finding() -> None:
    assert findings(["osd/class:ssd", IOPS, "30000"]) == []


def test_a_mask_of_other_osds_or_of_another_kind_is_no_finding() -> None:
    assert findings(["osd/class:hdd", IOPS, "20000"]) == []
    assert findings(["osd/class:ssd", IOPS.replace("ssd", "hdd"), "200"]) == []


def test_a_mask_is_dead_for_osds_with_values_of_their_own() -> None:
    # what comes after it by its name makes the monitors forget the mask
    (finding,) = findings(["osd/host:h0", IOPS, "20000"], ["osd", "osd_op_queue", "mclock_scheduler"])
    assert (finding.check, finding.severity, finding.share) == ("capacity-mask", MISLEADING, pytest.approx(2 / OSDS))
    assert finding.evidence == (f"osd/host:h0 {IOPS} 20000 is dead for osd.0, osd.1 (osd.0 has 30000.000000)",)
    assert finding.commands == (f"ceph config rm osd/host:h0 {IOPS}",)


def test_a_mask_that_some_osds_go_by_is_not_to_be_removed_at_once() -> None:
    own = [["osd.0", IOPS, "30000"], ["osd.1", IOPS, "31000"]]
    (finding,) = findings(
        ["osd/class:ssd", IOPS, "20000"], ["osd", "osd_op_queue", "mclock_scheduler"], *own, beside=False
    )
    assert "is dead for osd.0, osd.1 (osd.0 has 30000 and others)" in finding.evidence[0]
    assert finding.commands == ()


def test_a_mask_that_outranks_an_osd_s_own_value_is_said() -> None:
    """As docs/ceph-behaviour.md says: nothing in `osd` comes after that option, and nothing in `osd.N` before it."""
    (finding,) = findings(["osd/class:ssd", IOPS, "20000"])
    assert finding.evidence[0].startswith(f"osd/class:ssd {IOPS} 20000 outranks their own values at osd.0, osd.1")
    assert finding.commands == ()


def test_a_bandwidth_is_judged_as_a_capacity_is() -> None:
    (finding,) = findings(
        ["osd/class:ssd", BANDWIDTH, "1000000000"],
        ["osd", "osd_op_queue", "mclock_scheduler"],
        ["osd.3", BANDWIDTH, "2000000000"],
    )
    assert finding.evidence == (f"osd/class:ssd {BANDWIDTH} 1000000000 is dead for osd.3 (osd.3 has 2000000000)",)


def test_of_two_masks_each_is_judged_by_itself() -> None:
    (finding,) = findings(
        ["osd/class:ssd", IOPS, "20000"],
        ["osd/host:h1", IOPS, "30000"],
        ["osd", "osd_op_queue", "mclock_scheduler"],
    )
    assert len(finding.evidence) == 1
    assert finding.evidence[0].startswith("osd/class:ssd")


def test_an_examination_has_it() -> None:
    facts = healthy(**set_to(("osd/class:ssd", IOPS, "20000")))
    assert "capacity-mask" in [finding.check for finding in examine(facts)]


def test_an_osd_of_no_class_is_under_no_mask_of_a_class() -> None:
    bare = osd_facts(0)
    facts = healthy(
        osds=(replace(bare, place=replace(place(0), device_class="")),), **set_to(("osd/class:ssd", IOPS, "20000"))
    )
    assert capacity_masks(facts) == []
