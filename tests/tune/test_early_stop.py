from __future__ import annotations

import numpy as np
import pytest

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import WINDOW_NOISE
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.tune.early_stop import LEAST, STRETCH_S, Hopeless, half_width

SLO = parse_slo({"objectives": ["client.p95_ms <= 80 ms", "recovery.bytes_s >= 8 MB/s"]})
KEPT = {"client.p95_ms": 70.0, "recovery.bytes_s": 20e6}
WINDOW_S = 60.0


def watched(values: list, rate: float = 20e6, baseline: dict = KEPT, **options: object) -> list:
    """Answers after each stretch."""
    hopeless = Hopeless(Judge(SLO, baseline), options.get("to_beat"), WINDOW_S)  # type: ignore[arg-type]
    answers = []
    for count, value in enumerate(values, 1):
        seen = {"client.p95_ms": value, "recovery.bytes_s": rate}
        so_far = {**seen, "client.p95_ms": float(np.mean(values[:count]))}
        answers.append(
            hopeless.watch(
                {name: Measure(mean, 0.0, 1) for name, mean in seen.items()},
                {name: Measure(mean, 0.0, 1) for name, mean in so_far.items()},
            )
        )
    return answers


def test_what_breaks_a_bound_by_far_is_said_after_a_few_stretches_and_not_before() -> None:
    answers = watched([150.0, 152.0, 149.0, 151.0])
    assert answers[: LEAST - 1] == [None] * (LEAST - 1)
    assert "breaks client.p95_ms <= 80 ms" in str(answers[LEAST - 1])
    assert "breaks recovery.bytes_s" in str(watched([70.0] * 4, rate=3e6)[-1])


def test_what_may_still_keep_its_bound_goes_on() -> None:
    # windows of the same settings differ by a tenth, which this one cannot show
    assert not any(watched([90.0, 91.0, 90.0, 91.0, 90.0]))
    # means beyond the bound, but no two stretches alike
    assert not any(watched([60.0, 200.0, 70.0]))


def test_a_bound_that_the_settings_in_force_miss_is_held_to_what_they_give() -> None:
    missed = {**KEPT, "client.p95_ms": 150.0}
    assert not any(watched([150.0, 152.0, 149.0], baseline=missed))
    assert "157.5 must hold" in str(watched([300.0, 301.0, 299.0], baseline=missed)[-1])


def test_what_cannot_reach_the_best_any_more_goes_no_further() -> None:
    missed = {**KEPT, "client.p95_ms": 200.0}
    assert not any(watched([180.0, 181.0, 180.0], baseline=missed))
    best = (False, -0.1)
    assert "cannot be among the best" in str(watched([180.0, 181.0, 180.0], baseline=missed, to_beat=best)[-1])


def test_metrics_that_are_not_seen_end_nothing() -> None:
    hopeless = Hopeless(Judge(SLO, {**KEPT, "client.p95_ms": 200.0}), (False, -0.1), WINDOW_S)
    seen = {"client.p95_ms": Measure(190.0, 0.0, 1)}
    assert not any(hopeless.watch(seen, seen) for _ in range(6))


@pytest.mark.parametrize("memory", [0.0, 0.7])
def test_hardly_any_good_trial_is_ended(memory: float) -> None:
    """Stretches around a mean just inside the bound, far apart, and each much like the one before."""
    random = np.random.default_rng(4)
    ended = 0
    for _ in range(400):
        noise = random.standard_normal(int(WINDOW_S / STRETCH_S))
        for place in range(1, len(noise)):
            noise[place] = memory * noise[place - 1] + np.sqrt(1 - memory**2) * noise[place]
        level = 79.0 * (1 + WINDOW_NOISE * random.standard_normal())
        ended += any(watched(list(np.maximum(1.0, level * (1 + 0.2 * noise)))))
    assert ended <= 8


def test_neighbours_that_are_alike_count_for_fewer() -> None:
    rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    shuffled = [1.0, 6.0, 2.0, 5.0, 3.0, 4.0]
    assert half_width(rising, 0.01) > 2 * half_width(shuffled, 0.01)
    assert half_width([3.0] * 4, 0.01) == 0.0
