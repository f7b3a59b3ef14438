from __future__ import annotations

from typing import Any, List, Sequence

import numpy as np
import pytest

from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.twin.discrepancy import Discrepancy, relative_errors, spread_and_freedom
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, Device, OsdModel, Pool, ScrubWork
from ceph_tuner.twin.observations import LEAST_NOISE, Observation, Outputs, negligible

MODEL = ClusterModel(
    3, OsdModel(Device(1000, 60 * MIB)), (Pool("a", 16),), (ClientStream("a", rate=100),), scrub=(ScrubWork("a", 500),)
)
BALANCED = dict(TENTACLE.profiles["balanced"])


def outputs(metric: str, values: Sequence[float], scenarios: Sequence[str], deviation: float = 0.05) -> Outputs:
    windows: List[Observation] = []
    for number, (value, scenario) in enumerate(zip(values, scenarios)):
        settings: Any = {**BALANCED, "osd_max_scrubs": number + 1}
        windows.append(Observation(scenario, f"n{number}", settings, {metric: Measure(value, deviation * value, 5)}))
    return Outputs(windows, dict.fromkeys(scenarios, MODEL))


def judged(found: Outputs, predicted: Sequence[float]) -> Discrepancy:
    z = found.to_z(list(predicted))
    return Discrepancy.of(found, z, z, np.full(len(found), 0.01**2), len(predicted))


def test_a_twin_that_is_right_has_little_left_to_explain() -> None:
    measured = [10.0, 20.0, 30.0, 40.0]
    left = judged(outputs("client.mean_ms", measured, ["x"] * 4), [10.2, 19.7, 30.1, 40.4])
    assert left.unexplained() == []
    assert left.sentences() == []
    assert left.metrics["client.mean_ms"].deviation < 0.15


def test_an_error_must_be_both_sure_and_large_to_be_reported() -> None:
    measured = [10.0, 20.0, 30.0, 40.0]
    twice = [2 * value for value in measured]
    assert judged(outputs("client.mean_ms", measured, ["x"] * 4), twice).unexplained() == ["client.mean_ms"]
    # large, but the measurements differ by as much themselves
    assert judged(outputs("client.mean_ms", measured, ["x"] * 4, deviation=3.0), twice).unexplained() == []
    # sure, and too small to matter
    near = [1.12 * value for value in measured]
    assert judged(outputs("client.mean_ms", measured, ["x"] * 4, deviation=0.001), near).unexplained() == []


def test_an_error_under_all_settings_alike_widens_what_is_predicted() -> None:
    measured = [10.0, 20.0, 30.0, 40.0]
    entry = judged(outputs("client.mean_ms", measured, ["x"] * 4), [value / 2 for value in measured]).metrics[
        "client.mean_ms"
    ]
    spread, freedom = spread_and_freedom(entry)
    # as by two windows more, of the guess
    assert spread == pytest.approx(np.sqrt((4 * np.log(2) ** 2 + 2 * 0.2**2) / 6), rel=0.01)
    assert freedom == entry.freedom
    assert entry.bias == pytest.approx(np.log(2), rel=0.01)


def test_freedom_counts_settings_and_not_windows() -> None:
    measured = [10.0] * 12
    entry = judged(outputs("client.mean_ms", measured, ["x"] * 12), measured).metrics["client.mean_ms"]
    z = outputs("client.mean_ms", measured, ["x"] * 12)
    few = Discrepancy.of(z, z.z, z.z, np.zeros(12), 3).metrics["client.mean_ms"]
    assert few.freedom < entry.freedom


def test_nothing_against_nothing_is_no_error() -> None:
    found = outputs("scrub.bytes_s", [0.0, 0.0, 60e6], ["x"] * 3)
    floor = negligible("scrub.bytes_s", MODEL)
    assert floor == pytest.approx(0.0025 * 3 * 60 * MIB)
    errors = relative_errors(found, found.to_z([0.0, 10 * floor, 30e6]))
    assert errors == pytest.approx([0.0, 10.0, 0.5], rel=1e-3)


def test_values_and_logarithms_are_inverse_down_to_nothing() -> None:
    found = outputs("scrub.bytes_s", [0.0, 1.0, 60e6], ["x"] * 3)
    assert found.values(found.z) == pytest.approx([0.0, 1.0, 60e6], abs=1e-3)


def test_windows_that_were_measured_twice_say_how_far_windows_differ() -> None:
    def repeated(second: float) -> Outputs:
        window = Observation("x", "a", BALANCED, {"client.mean_ms": Measure(10.0, 0.0, 5)})
        again = Observation("x", "b", BALANCED, {"client.mean_ms": Measure(second, 0.0, 5)})
        return Outputs([window, again], {"x": MODEL})

    steady, restless = repeated(10.1), repeated(25.0)
    assert steady.repeatability["client.mean_ms"] < 0.08 < restless.repeatability["client.mean_ms"]
    assert all(steady.noise >= LEAST_NOISE)
    assert restless.noise[0] > 2 * steady.noise[0]


def test_a_discrepancy_survives_being_written() -> None:
    found = judged(outputs("client.mean_ms", [10.0, 20.0], ["x", "y"]), [12.0, 15.0])
    assert Discrepancy.from_dict(found.to_dict()) == found


def test_what_earlier_versions_wrote_beside_it_is_left_out() -> None:
    found = judged(outputs("client.mean_ms", [10.0, 20.0], ["x", "y"]), [12.0, 15.0])
    document = found.to_dict()
    document["metrics"]["client.mean_ms"].update(shifts={"x": 0.1}, remaining=0.2)
    assert Discrepancy.from_dict(document) == found
