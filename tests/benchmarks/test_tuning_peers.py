"""Another search in the place of `tune`'s own: asked and told as that one is. Its model is not asked here."""

from __future__ import annotations

from typing import Dict

import pytest
from tuning_peers import SEARCHES, OptunaGp, use_no_designs

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.search.optimiser import Failed
from ceph_tuner.search.space import KnobSpace, space_for
from ceph_tuner.tune import Search
from ceph_tuner.tune import search as own_search
from ceph_tuner.tune.search import TuningSearch

IN_FORCE = TENTACLE.profiles["balanced"]
SLO = parse_slo({"name": "both", "objectives": ["client.p95_ms <= 30 ms", "recovery.bytes_s >= 15 MB/s"]})


def measures(p95_ms: float, rate: float) -> Dict[str, Measure]:
    return {"client.p95_ms": Measure(p95_ms, 1.0, 3), "recovery.bytes_s": Measure(rate, 1e5, 3)}


@pytest.fixture
def space() -> KnobSpace:
    return space_for(TENTACLE, ("recovery",), IN_FORCE)


def test_it_recommends_what_it_measured_best_and_takes_failures(space: KnobSpace) -> None:
    search: Search = OptunaGp(space, SLO, IN_FORCE, {}, 7)
    search.tell(space.nearest(IN_FORCE), measures(45, 30e6))
    first = search.ask()
    assert first is not None
    assert space.nearest(first.settings) == first.settings
    search.tell(first.settings, measures(20, 20e6))
    second = search.ask()
    assert second is not None
    assert second.settings != first.settings
    search.tell(second.settings, Failed("clients were harmed", {"client.p95_ms": 500.0}))
    assert search.best() == first.settings
    assert search.verdict().go_on
    assert search.simpler(first.settings, True) is search.explained(False) is None


def test_a_trial_that_could_not_be_measured_does_not_count(space: KnobSpace) -> None:
    search = OptunaGp(space, SLO, IN_FORCE, {}, 7)
    search.tell(space.nearest(IN_FORCE), measures(45, 30e6))
    search.ask()
    search.forget_pending()
    assert search.best() == space.nearest(IN_FORCE)
    assert search.ask() is not None


def test_without_designs_the_search_suggests_the_built_in_profiles_alone(
    space: KnobSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def suggested() -> int:
        return len(TuningSearch(space, SLO, IN_FORCE, TENTACLE.profiles, 7)._search._suggestions)

    with_designs = suggested()
    monkeypatch.setattr(own_search, "informed_designs", own_search.informed_designs)
    SEARCHES["no-designs"]()
    assert SEARCHES["no-designs"] is use_no_designs
    assert suggested() == len(TENTACLE.profiles) < with_designs
