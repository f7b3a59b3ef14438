"""The whole automatic mode while the clients of a trial are starved, away, or not asked for in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List

import pytest
from automatic_on_twin import ALTERNATING, ROLLOUT, OnTwin

from ceph_tuner.core.autopilot.audit_log import KEPT, TAKEN_BACK
from ceph_tuner.core.autopilot.contract import Rollout
from ceph_tuner.core.measure.sample import Sample

STARVED = {"client.iops": 0.0, "queue.client": 7.0}
AWAY = {"client.iops": 0.0, "queue.client": 0.0}
LATE: Dict[str, float] = {}
"""The OSDs were not asked for their histograms in time; the rest is as it is."""


class Lens:
    """Stands between the samples and who looks at them."""

    def __init__(self, aboard: OnTwin) -> None:
        self.shown: object = None
        self._keep = aboard.sampler._keep
        aboard.sampler._keep = self  # type: ignore[method-assign,assignment]

    def __call__(self, sample: Sample) -> None:
        if isinstance(self.shown, dict):
            values = {name: value for name, value in sample.values.items() if not name.endswith("_ms")}
            sample = replace(sample, values={**values, **self.shown}, latency={})
        self._keep(sample)


def trial(rollout: Rollout = ALTERNATING) -> OnTwin:
    return OnTwin(auto_back_off=0.0, auto_settle=5.0).on_trial(rollout=rollout)


def told(aboard: OnTwin, what: str) -> List[str]:
    return [record.why for record in aboard.modes.whole.trail.newest() if record.what == what]


@pytest.mark.parametrize("rollout", [ALTERNATING, ROLLOUT])
def test_clients_that_the_trial_starves_are_rescued_within_samples(rollout: Rollout) -> None:
    aboard = trial(rollout)
    Lens(aboard).shown = STARVED
    aboard.sample(3)
    assert [entry.state for entry in aboard.entries()] == ["undone"]
    assert "client.p95_ms is not seen: clients wait" in told(aboard, TAKEN_BACK)[0]


@pytest.mark.slow
@pytest.mark.parametrize("shown", [AWAY, LATE])
@pytest.mark.parametrize("rollout", [ALTERNATING, ROLLOUT])
def test_a_trial_whose_clients_nobody_sees_any_more_is_never_kept(rollout: Rollout, shown: Dict[str, float]) -> None:
    aboard = trial(rollout)
    Lens(aboard).shown = shown
    for _ in range(60):
        aboard.sample()
        assert aboard.driver.state.phase != "holding"
    assert not told(aboard, KEPT)
    # nothing of it is left on the cluster, and nothing new begins
    assert {entry.state for entry in aboard.entries()} == {"undone"}
    assert aboard.driver.newest_look is not None
    assert "no trial could show what it does to clients, as client.p95_ms is not seen" in aboard.driver.newest_look.wait


def test_nothing_is_begun_for_clients_that_are_away(tmp_path: object) -> None:
    aboard = OnTwin()
    aboard.options["worker_python"] = "/no/such/python"
    lens = Lens(aboard)
    lens.shown = {**AWAY, "scrub.bytes_s": 5.0, "scrub.objects_s": 5.0}
    aboard.service.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    aboard.service.slo_commands.set("scrub.bytes_s>=30 MB/s", False, 1.0, "")
    aboard.during(lambda: aboard.modes.switch("auto"))
    aboard.sample(40)
    assert aboard.driver.newest_look is not None
    # scrub is too slow, and no trial for it could show what it does to the clients
    assert aboard.driver.newest_look.metrics_missed == ("scrub.bytes_s",)
    assert (aboard.driver.state.phase, aboard.driver.state.worker_failures) == ("observing", 0)
    assert "client.p95_ms is not seen" in " ".join(aboard.driver.document()["words"])
    lens.shown = None
    lens_shows = {"scrub.bytes_s": 5.0, "scrub.objects_s": 5.0}
    keep = lens._keep
    lens._keep = lambda sample: keep(replace(sample, values={**sample.values, **lens_shows}))
    aboard.until("asking")


def test_a_bad_turn_of_the_old_settings_does_not_end_the_trial_of_the_new_ones() -> None:
    aboard = trial()
    keep = aboard.sampler._keep

    def worse(sample: Sample) -> None:
        values = dict(sample.values)
        if aboard.driver.state.old_turn:
            values = {name: 50.0 * value if name.endswith("_ms") else value for name, value in values.items()}
        keep(replace(sample, values=values, latency={} if aboard.driver.state.old_turn else sample.latency))

    aboard.sampler._keep = worse  # type: ignore[method-assign]
    for _ in range(100):
        if aboard.driver.state.turns >= 3:
            break
        aboard.sample()
    assert aboard.driver.state.turns >= 3
    assert not told(aboard, TAKEN_BACK)
