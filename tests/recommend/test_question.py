"""Of an SLO with objectives about device classes, a description is asked about its own class."""

from __future__ import annotations

import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.recommend.question import left_aside, question_of
from ceph_tuner.twin.described_cluster import DescribedCluster
from twins import small_model

SLO = parse_slo(
    {"objectives": ["client.p95_ms{class=nvme} <= 2 ms", "client.p95_ms{class=hdd} <= 90 ms", "client.iops >= 9"]}
)


def described(target: str) -> DescribedCluster:
    """OSDs on flash: Ceph's options of `ssd` are theirs, whatever their class is called."""
    return DescribedCluster("small", small_model(), {}, target=target)


def test_objectives_of_the_targets_class_are_asked_also_where_ceph_has_no_options_of_that_name() -> None:
    wanted = question_of(described("osd/class:nvme"), SLO).slo
    assert [objective.text for objective in wanted.objectives] == ["client.p95_ms <= 2 ms", "client.iops >= 9 /s"]
    assert left_aside(described("osd/class:nvme"), SLO) == ["client.p95_ms{class=hdd} <= 90 ms"]


def test_without_a_class_in_the_target_it_is_the_kind_of_the_drives() -> None:
    assert left_aside(described("osd"), SLO) == [
        "client.p95_ms{class=nvme} <= 2 ms",
        "client.p95_ms{class=hdd} <= 90 ms",
    ]
    with pytest.raises(InputError, match="no objective of the class ssd"):
        question_of(described("osd"), parse_slo({"objectives": ["client.p95_ms{class=nvme} <= 2 ms"]}))
