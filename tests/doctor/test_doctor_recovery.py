from __future__ import annotations

from typing import Dict, List

import pytest
from patients import OSDS, healthy, osd_facts, pgs, set_to

from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.doctor.finding import Finding
from ceph_tuner.doctor.recovery import chunk, limit_on_shards

NAME = "osd_recovery_max_chunk"


def with_chunk(value: int, osds: int = OSDS) -> List[Finding]:
    small = tuple(osd_facts(osd, {NAME: str(value)} if osd < osds else {}) for osd in range(OSDS))
    return chunk(healthy(osds=small, **set_to(("osd", NAME, str(value)))))


@pytest.mark.parametrize("value", [64 << 10, 256 << 10, 8 << 20, 1 << 30])
def test_a_chunk_that_the_tuner_itself_would_set_or_a_larger_one_is_fine(value: int) -> None:
    assert value >= KNOBS[NAME].low
    assert with_chunk(value) == []


def test_a_tiny_chunk_is_told_with_the_pushes_of_an_object() -> None:
    (found,) = with_chunk(4096, osds=3)
    assert found.evidence == (f"osd.0, osd.1, osd.2: {NAME} 4096",)
    assert "in 1024 pushes" in found.cost
    assert found.share == 0.5
    assert found.commands == (f"ceph config rm osd {NAME}",)


def test_a_chunk_of_nothing_never_recovers_an_object() -> None:
    (found,) = with_chunk(0)
    assert "never ends" in found.cost


LIMIT = "osd_mclock_scheduler_background_recovery_lim"
LIMITED = {PROFILE: "custom", LIMIT: "0.75", "osd_op_num_shards": "0", "osd_op_num_shards_ssd": "8", NAME: "8388608"}


def with_limit(options: Dict[str, str], osds: int = OSDS) -> List[Finding]:
    limited = tuple(osd_facts(osd, {**LIMITED, **options} if osd < osds else {}) for osd in range(OSDS))
    rows = set_to(("osd", LIMIT, options.get(LIMIT, "0.75")))
    # a thousand objects of 1 MiB in each PG
    return limit_on_shards(healthy(osds=limited, pgs=pgs([((0, 2), 10)], nbytes=1e3 * 2**20, objects=1e3), **rows))


def test_a_limit_on_recovery_is_told_with_what_eight_shards_leave_of_it() -> None:
    (found,) = with_limit({}, osds=3)
    assert found.evidence == (
        f"osd.0, osd.1, osd.2: {LIMIT} 0.75 on 8 shards leaves recovery 9.4% of the capacity",
        "objects have 1 MiB in the mean, and a pull counts as 8 MiB",
    )
    assert found.share == pytest.approx(7 / 8)
    assert found.commands == (f"ceph config set osd {NAME} 262144", f"ceph config set osd {LIMIT} 0")


@pytest.mark.parametrize(
    "fine",
    [
        {LIMIT: "0"},
        {"osd_op_num_shards_ssd": "1"},
        {"osd_op_num_shards": "1"},
        {NAME: str(1 << 20)},
        # recovery passes through all of them
        {"osd_max_backfills": "8"},
    ],
)
def test_a_limit_that_leaves_recovery_all_of_it_is_fine(fine: Dict[str, str]) -> None:
    assert with_limit(fine) == []


def test_two_pgs_at_a_time_have_two_parts_of_the_limit() -> None:
    (found,) = with_limit({"osd_max_backfills": "2"})
    assert "leaves recovery 18.8% of the capacity" in found.evidence[0]
