"""On hard disks a recommendation reaches what makes the clients' tail, whatever mClock's shares are."""

from __future__ import annotations

from dataclasses import replace

from ceph_tuner.files import slo_file
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.recommend.knob_worth import weighed
from ceph_tuner.recommend.search import search
from ceph_tuner.search.space import DEFERRED
from ceph_tuner.twin.model import MIB, ClientStream, Device
from silent_listener import SilentListener
from twins import DISK, small_model

SLO = slo_file.from_text("schema: 1\nname: tail\nobjectives:\n  - client.p99_ms <= 0.6 * baseline\n").slo


def test_small_batches_of_deferred_writes_are_found_and_the_shares_that_do_nothing_stay() -> None:
    disk = Device(210.0, 170.0 * MIB, latency_s=12e-3, read_latency_s=12e-3)
    model = small_model(osd=replace(DISK, device=disk), clients=(ClientStream("rbd", rate=20.0),))
    effort = SearchEffort(trials=6, seeds=2, fresh=3, finalists=2, events=1e5, shortest_s=150.0, longest_s=150.0)
    found, worths = weighed(search(Question(model, SLO), effort, SilentListener(), 1), SilentListener(), 1)
    assert found.choice.better
    assert [entry.name for entry in worths if not entry.put_back] == [DEFERRED]
    assert int(found.winner.settings[DEFERRED]) < 32
