from __future__ import annotations

from typing import List

import pytest
from patients import OSDS, healthy, osd_facts, set_to

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.doctor.finding import Finding
from ceph_tuner.doctor.recovery import chunk

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
