"""Scrubs that clients' writes stop, by what the OSDs count."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from patients import healthy, osd_facts

from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.doctor.cluster_facts import _counters
from ceph_tuner.doctor.facts import Facts, OsdFacts
from ceph_tuner.doctor.finding import COSTLY
from ceph_tuner.doctor.stopped_scrubs import stopped_scrubs


def facts(*osds: OsdFacts) -> Facts:
    return replace(healthy(osds=osds), release=TENTACLE, version=TENTACLE.newest)


def stopped(osd: int, stops: float, copies: float, **options: str) -> OsdFacts:
    return osd_facts(osd, options, chunks_stopped=stops, copies_scrubbed=copies)


def test_chunks_that_are_begun_anew_are_a_loss_of_whole_chunks() -> None:
    # 300 chunks of 15 objects, beside 4 000 copies of objects that have two
    (found,) = stopped_scrubs(facts(stopped(3, 300, 4000), stopped(4, 1, 4000)))
    assert (found.check, found.severity) == ("stopped-scrubs", COSTLY)
    assert found.share == pytest.approx(4500 / (4500 + 2000))
    assert found.evidence == ("osd.3: writes preempted 300 chunks, while 4000 copies of objects were scrubbed",)
    assert found.commands == ("ceph config set osd osd_scrub_chunk_max 5",)
    assert "at least 69% of what scrub may use on osd.3 is lost" in found.cost


def test_the_least_chunk_is_the_osd_s_own() -> None:
    (found,) = stopped_scrubs(facts(stopped(3, 300, 4000, osd_scrub_chunk_max="25", osd_scrub_chunk_min="10")))
    assert found.share == pytest.approx(7500 / (7500 + 2000))
    assert found.commands == ("ceph config set osd osd_scrub_chunk_max 10",)


def test_where_chunks_are_as_small_as_they_may_be_they_are_not_made_smaller() -> None:
    (found,) = stopped_scrubs(facts(stopped(3, 3000, 4000, osd_scrub_chunk_max="5")))
    assert found.commands == ("ceph config set osd osd_scrub_max_preemptions 0",)
    assert "hours, days" in found.cure


@pytest.mark.parametrize(
    "osd",
    [
        stopped(3, 0, 0),
        stopped(3, 0, 4000),
        stopped(3, 19, 10),
        stopped(3, 30, 4000),
        osd_facts(3, {"osd_op_queue": "wpq"}, mclock_queues=False, chunks_stopped=300, copies_scrubbed=4000),
    ],
    ids=["no scrub", "no write", "a few", "a small part", "wpq, whose items have one price"],
)
def test_little_lost_is_no_finding(osd: OsdFacts) -> None:
    assert stopped_scrubs(facts(osd)) == []


def test_stops_are_counted_by_tentacle_and_writes_that_waited_are_none() -> None:
    counted = {
        "scrub_replicated_io_intersects": 14, "scrub_replicated_io_blocked": 4, "scrub_replicated_stats_cnt": 1943,
        "scrub_ec_io_intersects": 2, "scrub_ec_io_blocked": 0, "scrub_ec_stats_cnt": 7,
    }  # fmt: skip
    told = _counters(json.dumps({"osd": counted}))
    assert (told["chunks_stopped"], told["copies_scrubbed"]) == (12, 1950)
    of_reef = _counters(json.dumps({"osd": {}}))
    assert (of_reef["chunks_stopped"], of_reef["copies_scrubbed"]) == (0, 0)
