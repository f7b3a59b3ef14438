from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict

import pytest
from patients import OSDS, healthy, osd_facts

from ceph_tuner.doctor.facts import ServedClass
from ceph_tuner.doctor.shards import read_tags, served, stale

# as a 20.2.4 OSD of 8 shards answered under client load, shortened to two of them
_RECORD = (
    "{{ client:{{ class_id: {number} client_id: 0 profile_id: 0 }}, record:{{ ClientRec:: client:{{ class_id: {number} "
    "client_id: 0 profile_id: 0 }} prev_tag:{{ RequestTag:: ready:false r:{r} p:{p} l:{l} }} req_count:0 "
    "top_req:none }} }}"
)


def dump(*shards: str) -> Dict[str, Any]:
    return {
        f"OSD:ShardedOpWQ:{number}": {
            "queue_sizes": {"high_priority_queue": 0, "scheduler": 0},
            "mClockClients": {
                "client_count": 1,
                "clients": f"{{ PriorityQueue::  {text} {{ reservation_top:none }} }}",
            },
        }
        for number, text in enumerate(shards)
    }


def record(r: float, p: float, limit: float = 0.0, number: int = 3) -> str:
    return _RECORD.format(number=number, r=f"{r:.4f}", p=f"{p:.4f}", l=f"{limit:.4f}")


def test_a_class_that_is_served_while_its_reservation_clock_stands_has_no_reservation_there() -> None:
    before = read_tags(dump(record(366993.7, 499418.4), record(0, 726863.7)))
    after = read_tags(dump(record(366994.1, 899418.4), record(0, 926863.7)))
    assert served(before, after) == (ServedClass(0, "client", True, False), ServedClass(1, "client", False, False))


def test_what_was_not_served_meanwhile_is_not_judged() -> None:
    tags = read_tags(dump(record(0, 726863.7), record(5, 5, 5, number=2)))
    assert list(tags) == [(0, "client", " client_id: 0 profile_id: 0 ")]
    assert served(tags, tags) == ()
    assert served({}, tags) == ()
    assert read_tags({"error": "no such shard", "OSD:ShardedOpWQ:0": {}}) == {}


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (ServedClass(1, "client", False, False), "shard 1 serves client without the reservation of 0.5"),
        (ServedClass(2, "client", True, True), "shard 2 serves client with a limit, where the OSD shows none"),
        (ServedClass(1, "background_best_effort", False, False),
         "shard 1 serves background best effort without the limit of 0.9"),
        (ServedClass(1, "client", True, False), ""),
    ],
)  # fmt: skip
def test_a_shard_that_differs_from_what_its_osd_shows_is_found(seen: ServedClass, told: str) -> None:
    osds = tuple(osd_facts(osd, served=(seen,) if osd == 3 else ()) for osd in range(OSDS))
    found = stale(healthy(osds=osds))
    if not told:
        assert found == []
        return
    (finding,) = found
    assert finding.evidence == (f"osd.3: {told}",)
    assert finding.share == 1 / OSDS
    assert "--cure stale-shards --yes" in finding.commands[0]


def test_nothing_served_is_no_finding() -> None:
    assert stale(healthy()) == []
    assert stale(replace(healthy(), osds=())) == []
