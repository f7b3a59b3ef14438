"""What the monitors of real clusters take, refuse and do by themselves, where a change or a move relies on it."""

from __future__ import annotations

import errno
import time
from contextlib import contextmanager
from typing import Iterator

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.core.errors import CommandFailed

NOBODY = "osd.999"
"""A section that no OSD reads: what the monitors say of a value is the same."""


@contextmanager
def pool_of(lab: Lab, pgs: int, size: int) -> Iterator[str]:
    name = f"facts-{pgs}-{size}"
    lab.run(["ceph", "osd", "pool", "create", name, str(pgs), str(pgs), "--autoscale-mode=off"])
    try:
        lab.run(["ceph", "osd", "pool", "set", name, "size", str(size)])
        yield name
    finally:
        lab.run(["ceph", "osd", "pool", "rm", name, name, "--yes-i-really-really-mean-it"])


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [
        ("osd_mclock_scheduler_client_wgt", "0", "0"),
        ("osd_mclock_scheduler_client_lim", "nan", "nan"),
        ("osd_max_scrubs", "-5", "-5"),
        ("osd_max_scrubs", "10K", "10000"),
        # a size
        ("osd_scrub_event_cost", "10K", "10240"),
    ],
)
def test_the_monitors_take_values_that_make_no_sense(any_lab: Lab, option: str, given: str, kept: str) -> None:
    any_lab.run(["ceph", "config", "set", NOBODY, option, given])
    try:
        assert any_lab.run(["ceph", "config", "get", NOBODY, option]).strip().startswith(kept)
    finally:
        any_lab.run(["ceph", "config", "rm", NOBODY, option])


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("osd_mclock_skip_benchmark", "yes"),
        ("osd_scrub_event_cost", "64k"),
        ("osd_scrub_event_cost", "1.5M"),
        ("osd_pg_max_concurrent_snap_trims", "0"),
    ],
)
def test_the_monitors_refuse_other_spellings_and_a_snaptrim_of_nothing(any_lab: Lab, option: str, given: str) -> None:
    with pytest.raises(CommandFailed):
        any_lab.run(["ceph", "config", "set", NOBODY, option, given])


def test_a_deep_scrub_is_asked_of_a_pg_itself_in_tentacle_alone_and_of_the_mgr_on_both(any_lab: Lab) -> None:
    with pool_of(any_lab, 1, 2) as pool:
        (row,) = any_lab.json(["ceph", "pg", "ls-by-pool", pool])["pg_stats"]
        pgid = row["pgid"]
        any_lab.run(["ceph", "pg", "deep-scrub", pgid])
        ask = ["ceph", "tell", pgid, "deep-scrub"]
        if any_lab.release == "reef":
            with pytest.raises(CommandFailed):
                any_lab.run(ask)
        else:
            any_lab.run(ask)


def test_upmap_entries_to_itself_are_refused_and_those_of_an_osd_that_is_not_there_taken(any_lab: Lab) -> None:
    with pool_of(any_lab, 1, 2) as pool:
        row = any_lab.json(["ceph", "osd", "map", pool, "an object"])
        pgid, there = row["pgid"], row["up"]
        elsewhere = min(set(any_lab.osds) - set(there))
        with pytest.raises(CommandFailed) as refused:
            any_lab.run(["ceph", "osd", "pg-upmap-items", pgid, str(there[0]), str(there[0])])
        assert refused.value.code == errno.EINVAL
        any_lab.run(["ceph", "osd", "pg-upmap-items", pgid, str(elsewhere), str(there[0])])
        any_lab.run(["ceph", "osd", "rm-pg-upmap-items", pgid])


def test_pgp_num_that_is_set_back_at_once_stays(any_lab: Lab) -> None:
    with pool_of(any_lab, 8, 2) as pool:
        any_lab.run(["ceph", "osd", "pool", "set", pool, "pg_num", "16"])
        any_lab.run(["ceph", "osd", "pool", "set", pool, "pgp_num", "8"])
        deadline = time.monotonic() + 60
        while _of_pool(any_lab, pool, "pg_num") != 16:
            assert time.monotonic() < deadline
            time.sleep(1)
        time.sleep(5)
        assert _of_pool(any_lab, pool, "pgp_num") == 8


def _of_pool(lab: Lab, pool: str, name: str) -> int:
    return int(lab.json(["ceph", "osd", "pool", "get", pool, name])[name])
