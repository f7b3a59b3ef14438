"""The name under which a twin's words before writes are kept: a twin that is described anew is another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ceph_tuner.recommend.write_forecast import WriteForecasts
from ceph_tuner.twin.fit import described_fit
from ceph_tuner.twin.model import ClusterModel
from twins import small_model


def name_of(model: ClusterModel) -> str:
    runner: Any = None
    return WriteForecasts(model, described_fit({"here": model}, {}), "here", runner).name


@pytest.mark.parametrize("time", ["write_cpu_s", "message_cpu_s", "commit_cpu_s", "moved_cpu_s_per_byte"])
def test_a_twin_with_another_processor_time_has_another_name(time: str) -> None:
    model = small_model(processors=2, hosts=1)
    other = replace(model, osd=replace(model.osd, **{time: 2.0 * getattr(model.osd, time) + 1e-9}))
    assert name_of(model) == name_of(replace(model)) != name_of(other)
