"""What a search says that it has learnt, held against a cluster whose rules are known."""

from __future__ import annotations

import json
from typing import Dict

import numpy as np
import pytest

from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.knobs.releases import TENTACLE, Settings
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.optimise import Options
from ceph_tuner.search.explanation import LEAST_TRIALS, NOTABLE, SURE, Explained, explained
from ceph_tuner.search.knob_search import KnobSearch
from ceph_tuner.search.space import space_for

BALANCED = dict(TENTACLE.profiles["balanced"])
SPACE = space_for(TENTACLE, ("client", "recovery"), BALANCED)
RECOVERY_LIMIT = "osd_mclock_scheduler_background_recovery_lim"
REACHED = parse_slo({"objectives": ["client.p95_ms <= 60 ms", "recovery.bytes_s >= 20 MB/s"]})
CONFLICT = parse_slo({"objectives": ["client.p95_ms <= 30 ms", "recovery.bytes_s >= 60 MB/s"]})


def gives(settings: Settings) -> Dict[str, float]:
    """Recovery runs at its limit, and clients wait for that; nothing else matters."""
    limit = float(settings[RECOVERY_LIMIT]) or 1.0
    return {"client.p95_ms": 20.0 + 60.0 * limit, "recovery.bytes_s": 70e6 * (0.05 + limit)}


def searched(slo: Slo, trials: int = 24) -> KnobSearch:
    search = KnobSearch(SPACE, slo, SPACE.nearest(BALANCED), 1, Options(safe_probability=0.0))
    points = np.random.default_rng(1).random((trials, SPACE.size))
    for settings in [SPACE.nearest(BALANCED), *(SPACE.decode(list(point)) for point in points)]:
        search.tell(settings, {name: Measure(value, 0.0, 1) for name, value in gives(settings).items()})
    return search


@pytest.fixture(scope="module")
def reached() -> Explained:
    found = explained(searched(REACHED), REACHED, missed=False, curves=True)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def conflict() -> Explained:
    found = explained(searched(CONFLICT), CONFLICT, missed=True)
    assert found is not None
    return found


def test_the_knob_that_everything_depends_on_comes_first(reached: Explained) -> None:
    assert [entry.metric for entry in reached.matters] == ["client.p95_ms", "recovery.bytes_s"]
    for entry in reached.matters:
        assert entry.influences[0].name == RECOVERY_LIMIT
        assert entry.influences[0].total > 0.5


def test_a_curve_rises_with_what_makes_the_metric_rise(reached: Explained) -> None:
    curves = {(curve.metric, curve.name): curve for curve in reached.curves}
    curve = curves["recovery.bytes_s", RECOVERY_LIMIT]
    bounded = [mean for value, mean in zip(curve.values, curve.mean) if value]
    assert bounded[-1] > 1.5 * bounded[0]
    shares = {(entry.metric, one.name): one.total for entry in reached.matters for one in entry.influences}
    assert all(shares[key] >= NOTABLE for key in curves)


def test_nothing_is_in_the_way_of_what_is_kept(reached: Explained) -> None:
    assert reached.in_the_way is None


def test_objectives_that_exclude_each_other_are_named_with_bounds_that_do_not(conflict: Explained) -> None:
    way = conflict.in_the_way
    assert way is not None
    assert way.conflicts == (CONFLICT.objectives,)
    assert way.together < 0.1
    assert all(probability > 0.5 for _, probability in way.without)
    assert way.probability == pytest.approx(SURE, abs=0.02)
    # what the nearest bounds promise is true of their settings
    truth = gives(way.settings)
    for kept in way.nearest:
        slack = 0.1 * kept.bound
        assert kept.objective.margin(truth[kept.objective.metric], kept.bound) * kept.bound > -slack
        asked = next(each.bound.value for each in CONFLICT.objectives if each is kept.objective)
        assert kept.share == pytest.approx(abs(kept.bound / asked - 1))
    assert any(kept.share > 0.05 for kept in way.nearest)


def test_with_too_few_trials_nothing_is_said() -> None:
    assert explained(searched(REACHED, LEAST_TRIALS - 2), REACHED, missed=True) is None
    assert explained(searched(REACHED, LEAST_TRIALS - 1), REACHED, missed=False) is not None


def test_the_progress_has_every_trial_and_the_best_never_gets_worse(reached: Explained) -> None:
    assert [entry.number for entry in reached.progress] == list(range(1, 26))
    best = [entry.best for entry in reached.progress if entry.best is not None]
    assert best == sorted(best, reverse=True)


def test_all_of_it_is_json_and_the_brief_form_names_knobs_that_matter(reached: Explained, conflict: Explained) -> None:
    document = json.loads(json.dumps(reached.to_dict(), allow_nan=False))
    assert set(document) == {"around", "importance", "in_the_way", "convergence", "partial_dependence"}
    brief = json.loads(json.dumps(conflict.brief(), allow_nan=False))
    assert brief["importance"]["client.p95_ms"][0]["knob"] == RECOVERY_LIMIT
    assert brief["in_the_way"]["conflicts"] == [["client.p95_ms <= 30 ms", "recovery.bytes_s >= 60 MB/s"]]


def test_around_settings_only_what_matters_there_counts() -> None:
    search = searched(REACHED, 12)
    around = SPACE.nearest(BALANCED)
    found = explained(search, REACHED, missed=False, around=around)
    assert found is not None
    assert found.around == around
