from __future__ import annotations

from ceph_tuner.controller.resource import VALID, Report, StatusCondition
from ceph_tuner.controller.vitals import ALIVE_S, READY_S, Vitals


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_it_lives_as_long_as_its_loop_moves() -> None:
    clock = Clock()
    vitals = Vitals(clock)
    assert vitals.page("/healthz").status == 200
    clock.at += ALIVE_S + 1
    assert vitals.page("/healthz") == (503, "text/plain; charset=utf-8", "no move for 300 s\n")
    vitals.last_move = clock.at
    assert vitals.page("/healthz").status == 200


def test_it_is_ready_when_the_api_server_has_answered() -> None:
    clock = Clock()
    vitals = Vitals(clock)
    assert vitals.page("/readyz").status == 503
    vitals.last_answer = clock.at
    assert vitals.page("/readyz").status == 200
    clock.at += READY_S + 1
    assert vitals.page("/readyz").status == 503


def test_metrics_count_resources_by_what_is_said_of_them() -> None:
    vitals = Vitals(Clock())
    carried, drift = (
        Report(VALID, StatusCondition(holds, reason, "")) for holds, reason in ((True, "Carried"), (False, "Drift"))
    )
    vitals.count_reports({"CephSLO": [carried], "CephTuningMode": [carried, carried, drift]})
    vitals.count_watch_failure("CephBoost")
    text = vitals.page("/metrics").body
    assert 'ceph_tuner_controller_resources{kind="CephTuningMode",ready="true",reason="Carried"} 2.0' in text
    assert 'ceph_tuner_controller_resources{kind="CephTuningMode",ready="false",reason="Drift"} 1.0' in text
    assert 'ceph_tuner_controller_watch_failures_total{kind="CephBoost"} 1.0' in text
    assert "ceph_tuner_controller_leads 0.0" in text
    # never is not the beginning of all time
    assert "pass_timestamp" not in text
    assert vitals.page("/").status == 404
