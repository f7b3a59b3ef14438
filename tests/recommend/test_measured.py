from __future__ import annotations

import io
from dataclasses import replace
from typing import Optional, Tuple

import pytest
from rich.console import Console

from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.gather.replay import open_state
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.measured import MeasuredMetric, measured_in_force
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.recommendation import recommend
from ceph_tuner_cli.recommend_page import RecommendProgress, page
from documented import ROOT

UNDER_SCRUB = ROOT / "tests" / "data" / "lab" / "nvme-scrub.tar.zst"
"""A lab beside deep scrub."""


@pytest.mark.parametrize(
    ("interval", "outside"), [((10.0, 20.0), False), ((10.0, 14.0), True), ((16.0, 20.0), True), (None, False)]
)
def test_a_prediction_is_off_where_the_measurement_lies_outside_its_interval(
    interval: Optional[Tuple[float, float]], outside: bool
) -> None:
    assert MeasuredMetric("client.p95_ms", 15.0, 12.0, interval).outside is outside


def test_what_was_measured_stands_beside_what_is_predicted_of_it() -> None:
    description = describe(open_state(UNDER_SCRUB))
    # drives that are three times as slow as they are: clients are expected to be slower than was measured
    osd = description.model.osd
    slow = replace(osd.device, iops=osd.device.iops / 3, bandwidth_bytes_s=osd.device.bandwidth_bytes_s / 3)
    description = replace(description, model=replace(description.model, osd=replace(osd, device=slow)))
    objectives = ("client.p95_ms <= 20 ms", "scrub.bytes_s >= 10 MB/s")
    slo = Slo("own", tuple(map(parse_objective, objectives)))
    effort = SearchEffort(seeds=2, fresh=4, events=1e5, shortest_s=1.0, trials=1)
    with RecommendProgress(slo) as progress:
        found = recommend(question_of(description, slo), effort, progress, 1, explain=False)
    latency, scrub = measured_in_force(found.searched)
    assert (latency.metric, round(latency.measured, 1), latency.outside) == ("client.p95_ms", 9.4, True)
    assert (scrub.metric, round(scrub.measured / 1e6, 1)) == ("scrub.bytes_s", 20.5)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(page(found))
    said = " ".join(console.export_text().split())
    assert "Measured with what is in force: client.p95_ms 9.43 ms, scrub.bytes_s 20.5 MB/s." in said
    assert "The model is off there: it says client.p95_ms" in said
