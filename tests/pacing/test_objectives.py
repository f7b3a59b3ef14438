from __future__ import annotations

from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.pacing.objectives import about_clients, held_bounds, missed, unseen

SLO = Slo("keep", (parse_objective("client.p95_ms <= 20"), parse_objective("recovery.bytes_s >= 1 MB/s")))
HELD = held_bounds(SLO, {})


def test_a_window_in_which_clients_wait_and_none_is_served_is_missed() -> None:
    stuck = {"client.iops": 0.0, "queue.client": 5.0}
    assert missed(HELD, stuck, {"client.iops": 100.0}) == list(HELD)
    assert missed(HELD, {"client.iops": 0.0, "queue.client": 0.0}, {"client.iops": 100.0}) == []


def test_relative_bounds_need_what_they_refer_to() -> None:
    slo = Slo("keep", (parse_objective("client.p95_ms <= 1.2 * baseline"),))
    assert held_bounds(slo, {}) == {}
    assert list(held_bounds(slo, {"client.p95_ms": 10.0}).values()) == [12.0]


def test_only_hard_objectives_about_clients_are_held() -> None:
    assert [objective.metric for objective in about_clients(SLO)] == ["client.p95_ms"]
    assert about_clients(None) == ()


def test_a_metric_that_no_window_shows_is_unseen_but_where_there_is_no_client() -> None:
    assert unseen(HELD, {"client.iops": 5.0}) == list(HELD)
    assert unseen(HELD, {"client.iops": 0.0}) == []
