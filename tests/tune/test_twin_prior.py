from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.search.space import KnobSpace, space_for
from ceph_tuner.tune.twin_prior import TwinPrior
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)

pytestmark = pytest.mark.slow

METRICS = ("client.p95_ms", "recovery.bytes_s", "recovery.finish_s")
POOL = Pool("rbd", 24, 3)
OSD = OsdModel(Device(2000.0, 200e6), capacity_iops=2000.0, bandwidth_bytes_s=200e6, shards=2, throttle_bytes=256 * KIB)
MODEL = ClusterModel(
    3, OSD, (POOL,), (ClientStream("rbd", rate=150.0),), recovery=(RecoveryWork("rbd", 100_000, 1 * MIB),)
)


def space(*work: str) -> KnobSpace:
    return space_for(TENTACLE, work, TENTACLE.profiles["balanced"])


def prior(**changes: Any) -> TwinPrior:
    arguments: Any = {"space": space("client", "recovery"), "beside": {}, "metrics": METRICS, "seed": 3, "designs": 48}
    return TwinPrior(MODEL, **{**arguments, **changes})


@pytest.fixture(scope="module")
def made() -> TwinPrior:
    return prior()


def known(of: TwinPrior, point: Any) -> bool:
    return bool(np.isclose(of.points, point).all(axis=1).any())


def limited(share: float) -> list[float]:
    """Recovery limited to a share of the capacity, and reserved nothing."""
    shares = dict(TENTACLE.profiles["balanced"])
    shares["osd_mclock_scheduler_background_recovery_res"] = 0.0
    shares["osd_mclock_scheduler_background_recovery_lim"] = share
    return space("client", "recovery").encode(shares)


def test_metrics_come_for_every_point_above_0(made: TwinPrior) -> None:
    found = made.predict(np.random.default_rng(0).random((7, made.points.shape[1])))
    assert set(found) == set(METRICS)
    assert all(values.shape == (7,) and (values > 0).all() for values in found.values())


def test_the_same_arguments_give_the_same_prior(made: TwinPrior) -> None:
    points = np.random.default_rng(1).random((20, made.points.shape[1]))
    again = prior()
    assert all((again.predict(points)[name] == made.predict(points)[name]).all() for name in METRICS)
    other = prior(seed=4)
    assert any((other.predict(points)[name] != made.predict(points)[name]).any() for name in METRICS)


def test_a_limit_on_recovery_slows_it_down_and_a_slower_one_ends_later(made: TwinPrior) -> None:
    found = made.predict([limited(0.1), limited(0.9)])
    slow, quick = found["recovery.bytes_s"]
    assert slow < 0.6 * quick
    later, sooner = found["recovery.finish_s"]
    assert later > 1.5 * sooner


def test_most_settings_that_were_not_simulated_are_predicted_closely(made: TwinPrior) -> None:
    # a design's own points are predicted as they were simulated
    other = prior(designs=40)
    points = np.asarray([point for point in other.points if not known(made, point)])
    assert len(points) >= 16
    true = np.log(other.predict(points)["recovery.bytes_s"])
    seen = np.log(made.predict(points)["recovery.bytes_s"])
    assert np.median(np.abs(seen - true)) < 0.2 * np.std(true)


def test_points_of_a_design_are_predicted_alike_whatever_else_is_in_it(made: TwinPrior) -> None:
    fewer = prior(designs=24)
    shared = np.asarray([point for point in fewer.points if known(made, point)])
    assert len(shared) >= 3
    assert fewer.predict(shared)["client.p95_ms"] == pytest.approx(made.predict(shared)["client.p95_ms"])


def test_the_settings_in_force_are_part_of_the_design(made: TwinPrior) -> None:
    origin = space("client", "recovery").encode({})
    assert any(np.allclose(point, origin) for point in made.points)


def test_a_third_of_the_design_is_where_the_slo_is_served_best() -> None:
    slo = parse_slo({"name": "x", "objectives": ["client.p99_ms <= 8 ms"], "maximise": "scrub.bytes_s"})
    model = ClusterModel(
        3, OSD, (POOL,), (ClientStream("rbd", rate=150.0),), scrub=(ScrubWork("rbd", 100_000, 1 * MIB),)
    )
    shape = space("client", "scrub")
    everywhere, aimed = (TwinPrior(model, shape, {}, slo.metrics, 3, designs=48, slo=each) for each in (None, slo))
    assert aimed.points.shape == everywhere.points.shape
    # of its own points it says what was simulated
    kept = []
    for each in (everywhere, aimed):
        found = each.predict(each.points)
        kept.append(found["scrub.bytes_s"][found["client.p99_ms"] <= 8.0])
    few, many = kept
    assert 3 * len(few) < len(many) >= 8
    assert np.median(many) > np.median(few)
    assert many.max() > 1.1 * few.max()


def test_what_serves_an_slo_best_is_the_same_for_the_same_arguments() -> None:
    slo = parse_slo({"name": "x", "objectives": ["client.p95_ms <= 5 ms"]})
    one, again, other = (prior(slo=slo, designs=24, seed=seed) for seed in (3, 3, 4))
    assert (one.points == again.points).all()
    assert one.points.shape != other.points.shape or (one.points != other.points).any()


def test_metrics_of_work_that_is_not_there_are_left_out() -> None:
    found = prior(metrics=("client.p95_ms", "scrub.bytes_s", "scrub.pgs_late", "ops.slow"), designs=4)
    assert set(found.predict([[0.5] * found.points.shape[1]])) == {"client.p95_ms"}


def test_an_interval_is_long_where_nothing_is_scrubbed() -> None:
    model = ClusterModel(3, OSD, (POOL,), scrub=(ScrubWork("rbd", 100_000, start_s=1e6),))
    found = TwinPrior(model, space("scrub"), {}, ("scrub.interval_s",), 1, designs=2)
    assert found.predict([[0.5] * found.points.shape[1]])["scrub.interval_s"] == pytest.approx(30 * 86400.0)


def test_trims_are_part_of_what_is_known() -> None:
    model = ClusterModel(3, OSD, (POOL,), (ClientStream("rbd", rate=50.0),), snaptrim=(SnaptrimWork("rbd", 100_000),))
    of_trims = space("client", "snaptrim")
    found = TwinPrior(model, of_trims, {}, ("snaptrim.objects_s",), 1, designs=40)
    shares = TENTACLE.profiles["balanced"]
    slow, quick = (
        of_trims.encode({**shares, "osd_mclock_scheduler_background_best_effort_lim": limit}) for limit in (0.05, 0.9)
    )
    one, other = found.predict([slow, quick])["snaptrim.objects_s"]
    assert one < other
