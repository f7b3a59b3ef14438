from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np
import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import TENTACLE, Settings
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.twin.calibration import Calibration, FitEffort, Fitting
from ceph_tuner.twin.fit import DETERMINED, SILENT, Fit, identify
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.forecast import forecast, metrics_of
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    SnaptrimWork,
)
from ceph_tuner.twin.observations import RATES, Observation, SimulatedRun, simulated
from ceph_tuner.twin.parameters import Parameter, ParameterPrior, fittable, named, value_of, with_values

# what one of them has fitted serves the others
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("calibration")]

LITTLE = FitEffort(scouts=8, starts=1, places_per_parameter=5, checks=2)


def small_cluster(**work: Any) -> ClusterModel:
    """Three slow OSDs with clients: a window of 10 s is a few thousand events."""
    device = Device(1000, 60 * MIB, latency_s=4e-4, read_latency_s=3e-4, request_bytes=64 * KIB)
    osd = OsdModel(
        device, 1000, 60 * MIB, shards=1, threads_per_shard=4, kv_ios=2.0, kv_latency_s=1e-3, throttle_bytes=256 * KIB
    )
    pools = (Pool("client", 16, 3), Pool("background", 64, 3))
    clients = (ClientStream("client", rate=120, depth=64, latency_s=2e-4),)
    return ClusterModel(3, osd, pools, clients, network_s=1e-4, **work)


MODELS: Dict[str, ClusterModel] = {
    "client": small_cluster(),
    # onto all OSDs: onto one, it is chance how many PGs pull in ten seconds, and under a limit that is most of the rate
    "recovery": small_cluster(recovery=(RecoveryWork("background", 600, MIB),)),
    "snaptrim": small_cluster(snaptrim=(SnaptrimWork("background", 4000, MIB // 4),)),
}


def shares(client: float, recovery: float, limit: float) -> Settings:
    own = {
        "osd_mclock_scheduler_client_res": client,
        "osd_mclock_scheduler_background_recovery_res": recovery,
        "osd_mclock_scheduler_background_recovery_lim": limit,
        "osd_mclock_scheduler_background_best_effort_lim": limit,
    }
    return completed({**TENTACLE.profiles["balanced"], **own}, TENTACLE)


TRIED = {"wide": shares(0.5, 0.3, 0.0), "half": shares(0.4, 0.2, 0.5), "narrow": shares(0.6, 0.1, 0.2)}


def windows(
    truth: Mapping[str, ClusterModel], scenarios: Sequence[str], labels: Sequence[str], seed: int = 900
) -> List[Observation]:
    """Windows that the twin itself made, each by a seed that no fit uses."""
    found = []
    for scenario in scenarios:
        for label in labels:
            seed += 1
            metrics = metrics_of(truth[scenario])
            values = simulated(SimulatedRun(truth[scenario], TRIED[label], 10.0, 3.0, seed, metrics))
            # in ten seconds latencies differ by as much from seed to seed
            spread = {name: 0.05 if name in RATES else 0.25 for name in metrics}
            measures = {n: Measure(float(value), spread[n] * float(value), 5) for n, value in zip(metrics, values)}
            found.append(Observation(scenario, label, TRIED[label], measures, 10.0, 3.0))
    return found


def fitted(
    observations: Sequence[Observation],
    models: Mapping[str, ClusterModel],
    parameters: Sequence[str],
    effort: FitEffort = LITTLE,
) -> Calibration:
    with Runner(1) as runner:
        return Fitting(observations, models, runner, effort, parameters=named(parameters, "test"), seed=3).fit()


TRUE_VALUES = {"osd.kv_ios": 3.2, "osd.kv_latency_s": 2.2e-3, "osd.trim_ios": 2.5}


@pytest.fixture(scope="module")
def recovered() -> Calibration:
    truth = {name: with_values(model, TRUE_VALUES) for name, model in MODELS.items()}
    observations = windows(truth, list(MODELS), list(TRIED))
    return fitted(observations, MODELS, list(TRUE_VALUES), FitEffort(8, 1, 8, 3))


def test_parameters_are_recovered_from_windows_that_the_twin_itself_made(recovered: Calibration) -> None:
    for fit_of in Fit.of(recovered, MODELS).parameters:
        error = abs(np.log(fit_of.value / TRUE_VALUES[fit_of.name]))
        assert error < max(0.12, 2.6 * fit_of.deviation), (fit_of.name, fit_of.value, fit_of.deviation)
    # the commits' requests hide their flush, and the fit says so; what it says to know, it knows
    known = {entry.name: entry for entry in Fit.of(recovered, MODELS).parameters if entry.verdict == DETERMINED}
    assert {"osd.kv_ios", "osd.trim_ios"} <= set(known)
    assert all(entry.deviation <= 0.5 * entry.described_deviation for entry in known.values())


def test_a_twin_that_made_the_windows_explains_them(recovered: Calibration) -> None:
    assert recovered.discrepancy.unexplained() == []
    assert recovered.discrepancy.chi_square < 4.0
    assert recovered.discrepancy.settings == len(TRIED)


def test_intervals_hold_windows_of_settings_that_were_not_fitted(recovered: Calibration) -> None:
    truth = {name: with_values(model, TRUE_VALUES) for name, model in MODELS.items()}
    fit = Fit.of(recovered, MODELS)
    inside: List[bool] = []
    unseen = [shares(0.3, 0.4, 0.35), shares(0.2, 0.15, 0.7), shares(0.7, 0.2, 0.28)]
    with Runner(1) as runner:
        for number, settings in enumerate(unseen):
            for scenario, model in MODELS.items():
                found = forecast(model, settings, fit.draws(12), fit.discrepancy, runner, 10.0, 3.0)
                values = simulated(SimulatedRun(truth[scenario], settings, 10.0, 3.0, 5000 + number, metrics_of(model)))
                inside += [entry.low <= value <= entry.high for entry, value in zip(found, values)]
    # 90 % intervals, of some 50 values that are not independent
    assert np.mean(inside) > 0.75, np.mean(inside)


def test_parameters_that_only_work_together_are_named_together() -> None:
    # a write's thread time at the client's end and the client's own latency add up to one number
    chosen = ["clients.latency_s", "network_s", "osd.device.bandwidth_bytes_s"]
    slow = small_cluster()
    slow = replace(slow, clients=(replace(slow.clients[0], latency_s=2e-2, rate=40),), network_s=5e-3)
    models = {"client": slow}
    found = identify(fitted(windows(models, ["client"], ["wide", "half"]), models, chosen))
    assert ("clients.latency_s", "network_s") in found.together, found
    assert "osd.device.bandwidth_bytes_s" in found.silent, found
    sentences = " / ".join(found.sentences())
    assert "cannot tell apart: clients.latency_s, network_s" in sentences
    assert "say nothing about: osd.device.bandwidth_bytes_s" in sentences


def test_what_no_window_bears_on_keeps_its_described_value() -> None:
    chosen = ["osd.kv_latency_s", "osd.scan_cpu_s"]
    found = fitted(windows(MODELS, ["client"], ["wide", "half"]), MODELS, chosen)
    scan = Fit.of(found, MODELS).parameters[1]
    assert scan.verdict == SILENT
    assert scan.deviation == pytest.approx(scan.described_deviation, rel=0.2)


def test_a_cluster_that_the_twin_cannot_explain_is_reported() -> None:
    observations = []
    for window in windows(MODELS, ["client", "recovery"], ["wide", "half", "narrow"]):
        measures = dict(window.measures)
        mean = measures["client.p99_ms"]
        # a tail that has nothing to do with the rest of the distribution, and turns with the settings
        factor = {"wide": 12.0, "half": 0.15, "narrow": 9.0}[window.label]
        measures["client.p99_ms"] = Measure(mean.mean * factor, mean.deviation, mean.count)
        observations.append(replace(window, measures=measures))
    found = fitted(observations, MODELS, ["osd.kv_latency_s", "osd.kv_ios"])
    assert "client.p99_ms" in found.discrepancy.unexplained()
    assert "recovery.bytes_s" not in found.discrepancy.unexplained()
    (sentence,) = [text for text in found.discrepancy.sentences() if "client.p99_ms" in text]
    assert sentence.startswith("the twin does not explain the cluster: client.p99_ms is off by ")
    # what it does not explain makes intervals wide, there and not elsewhere
    assert found.discrepancy.metrics["client.p99_ms"].deviation > 1.0
    assert found.discrepancy.metrics["client.iops"].deviation < 0.2


def test_the_same_seed_gives_the_same_fit() -> None:
    observations = windows(MODELS, ["client"], ["wide"])
    ends = [fitted(observations, MODELS, ["osd.kv_latency_s"]) for _ in range(2)]
    assert ends[0].values == ends[1].values
    assert np.array_equal(ends[0].covariance, ends[1].covariance)


@pytest.mark.parametrize("name", [parameter.name for parameter in fittable(list(MODELS.values()))])
def test_every_parameter_can_be_read_and_written(name: str) -> None:
    model = MODELS["recovery"]
    changed = with_values(model, {name: 1.5 * max(value_of(model, name), 1e-3)})
    assert value_of(changed, name) == pytest.approx(1.5 * max(value_of(model, name), 1e-3), rel=1e-3)
    assert with_values(changed, {name: value_of(model, name)}) == model


def test_only_parameters_with_work_to_bear_on_are_free() -> None:
    free = {parameter.name for parameter in fittable([MODELS["client"]])}
    assert "osd.trim_ios" not in free
    assert "osd.scan_cpu_s" not in free
    assert "osd.kv_ios" in free
    assert "osd.kv_ios" not in {parameter.name for parameter in fittable([MODELS["client"]], ["osd.kv_ios"])}


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(InputError, match=r"--known: found 'osd.magic', expected one of osd.device.iops"):
        named(["osd.magic"], "--known")


def test_priors_stay_within_three_deviations_and_the_bounds() -> None:
    narrow = Parameter("osd.kv_ios", "1", "", 1.0, 1.9, 2.1)
    prior = ParameterPrior((narrow, *named(["osd.kv_latency_s"], "test")), [MODELS["client"]])
    low, high = (prior.values(np.full(2, x)) for x in (-99.0, 99.0))
    assert (low["osd.kv_ios"], high["osd.kv_ios"]) == (pytest.approx(1.9), pytest.approx(2.1))
    assert high["osd.kv_latency_s"] == pytest.approx(1e-3 * np.exp(3 * 0.5))
    centre: Tuple[float, ...] = tuple(prior.values(np.zeros(2)).values())
    assert centre == (pytest.approx(2.0), pytest.approx(1e-3))
