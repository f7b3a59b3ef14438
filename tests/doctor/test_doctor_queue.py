from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import healthy, osd_facts, place, set_to

from ceph_tuner.doctor.facts import OsdFacts
from ceph_tuner.doctor.finding import MISLEADING, POINTLESS, Finding
from ceph_tuner.doctor.queue import hidden_s, other_queue, throttle


def test_mclock_everywhere_behind_a_small_throttle_is_no_finding() -> None:
    assert other_queue(healthy()) == []
    assert throttle(healthy()) == []


def test_wpq_makes_tuning_pointless_for_its_share_of_the_osds() -> None:
    wpq = osd_facts(1, {"osd_op_queue": "wpq"}, mclock_queues=False)
    (found,) = other_queue(healthy(osds=(osd_facts(0), wpq), **set_to(("osd.1", "osd_op_queue", "wpq"))))
    assert (found.severity, found.share) == (POINTLESS, 0.5)
    assert found.evidence == ("osd.1: osd_op_queue is wpq",)
    assert found.commands == (
        "ceph config rm osd.1 osd_op_queue",
        "systemctl restart ceph-osd@1",
        "ceph orch daemon restart osd.1",
    )
    assert "rook-ceph-osd-ID" in found.cure


def test_an_osd_that_started_under_wpq_is_found_after_the_option_is_gone() -> None:
    (found,) = other_queue(healthy(osds=(osd_facts(0), osd_facts(1, mclock_queues=False))))
    assert found.evidence == ("osd.1: no mClock queue runs: osd_op_queue was another at its start",)
    # a release that counts no such items says nothing by their absence
    assert other_queue(healthy(osds=(osd_facts(0, mclock_queues=False),))) == []


def test_an_option_that_waits_for_a_restart_is_told_from_a_queue_that_runs() -> None:
    waiting = osd_facts(1, {"osd_op_queue": "wpq"})
    (found,) = other_queue(healthy(osds=(osd_facts(0), waiting)))
    assert (found.check, found.severity) == ("other-queue-at-restart", MISLEADING)


def test_the_default_throttle_hides_mclock_and_entirely_on_a_slow_device() -> None:
    default = {"bluestore_throttle_bytes": str(64 * 2**20)}
    (found,) = throttle(healthy(osds=(osd_facts(0, default),)))
    assert found.severity == MISLEADING
    slow = osd_facts(0, {**default, "osd_mclock_max_capacity_iops_ssd": "800"})
    (found,) = throttle(healthy(osds=(slow,)))
    assert found.severity == POINTLESS
    assert "bluestore_throttle_bytes 67108864" in found.evidence[0]


def disk(osd: int, iops: str = "315.000000") -> OsdFacts:
    """A hard disk as Ceph takes it."""
    options = {
        "bluestore_throttle_bytes": str(64 * 2**20),
        "bluestore_throttle_cost_per_io": "0",
        "bluestore_throttle_cost_per_io_hdd": "670000",
        "osd_mclock_max_capacity_iops_hdd": iops,
    }
    return OsdFacts(replace(place(osd), device_class="hdd"), "hdd", options=options, mclock_queues=True)


def test_a_hard_disk_s_throttle_admits_what_it_does_within_the_time_and_not_one_write_alone() -> None:
    disks = tuple(disk(osd) for osd in range(2))
    (found,) = throttle(healthy(osds=disks, places=tuple(osd.place for osd in disks)))
    # 16 writes of 674 096
    assert found.commands == (
        "ceph config set osd bluestore_throttle_bytes 10785536",
        "ceph config set osd bluestore_throttle_deferred_bytes 10785536",
    )
    assert "Start at 10785536 bytes" in found.cure


def test_a_throttle_is_set_for_the_class_that_it_was_found_on() -> None:
    flash, disks = tuple(osd_facts(osd) for osd in range(2)), (disk(2), disk(3, "200.000000"))
    places = tuple(osd.place for osd in (*flash, *disks))
    (found,) = throttle(healthy(osds=(*flash, *disks), places=places))
    assert found.commands == (
        "ceph config set osd/class:hdd bluestore_throttle_bytes 6740960",
        "ceph config set osd/class:hdd bluestore_throttle_deferred_bytes 6740960",
    )
    wide = osd_facts(0, {"bluestore_throttle_bytes": str(64 * 2**20)})
    (found,) = throttle(healthy(osds=(wide, flash[1], *disks), places=places))
    assert "ceph config set osd/class:ssd bluestore_throttle_bytes 12144000" in found.commands
    assert len(found.commands) == 4
    # without a class of its own
    bare = replace(disk(3), place=replace(place(3), device_class=""))
    (found,) = throttle(healthy(osds=(*flash, bare), places=places))
    assert found.commands[0] == "ceph config set osd.3 bluestore_throttle_bytes 10785536"


WRITE_BYTES = 4096 + 4000
"""What a write of 4 KiB counts on flash: its bytes, and the price of one device I/O."""
LEAST_THROTTLE = 256 << 10
"""Which no throttle is told to go below."""


def flash_osd(nbytes: float, iops: float) -> OsdFacts:
    given = {"bluestore_throttle_bytes": str(math.floor(nbytes)), "osd_mclock_max_capacity_iops_ssd": str(iops)}
    return osd_facts(0, given)


@given(st.floats(0.001, 30.0), st.floats(100, 80_000))
def test_what_is_hidden_grows_with_the_throttle_and_falls_with_the_device(seconds: float, iops: float) -> None:
    nbytes = seconds * iops * WRITE_BYTES
    # a throttle is whole bytes
    assert hidden_s(flash_osd(nbytes, iops)) == pytest.approx(seconds, rel=1e-3, abs=1 / (iops * WRITE_BYTES))
    assert hidden_s(flash_osd(2 * nbytes, iops)) == pytest.approx(2 * seconds, rel=2e-3)
    assert hidden_s(flash_osd(nbytes, 2 * iops)) == pytest.approx(seconds / 2, rel=2e-3)


@given(st.floats(100, 80_000), st.data())
def test_a_throttle_is_found_from_a_twentieth_of_a_second_on_and_makes_tuning_pointless_from_a_second_on(
    iops: float, data: st.DataObject
) -> None:
    def found(seconds: float) -> List[Finding]:
        return throttle(healthy(osds=(flash_osd(seconds * iops * WRITE_BYTES, iops),)))

    least = max(0.05, LEAST_THROTTLE / (iops * WRITE_BYTES))
    assert found(data.draw(st.floats(0.0001, 0.999)) * least) == []
    # two writes more: a throttle takes whole ones
    least += 2 / iops
    if least < 0.95:
        (hidden,) = found(data.draw(st.floats(least, 0.99)))
        assert hidden.severity == MISLEADING
    (hidden,) = found(data.draw(st.floats(max(1.01, least), 1000.0)))
    assert hidden.severity == POINTLESS
    (start,) = [re.search(r"Start at (\d+) bytes", hidden.cure)]
    assert start is not None
    # what the cure sets is not found again
    assert throttle(healthy(osds=(flash_osd(float(start[1]), iops),))) == []
