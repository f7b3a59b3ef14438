from __future__ import annotations

import math
from typing import Dict, Mapping

import numpy as np
import pytest

from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE
from ceph_tuner.core.knobs.releases import TENTACLE, Settings
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.optimise import Options
from ceph_tuner.optimise.contract import Array
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.knob_search import KnobSearch
from ceph_tuner.search.optimiser import Failed, Result
from ceph_tuner.search.shares_prior import SharesPrior
from ceph_tuner.search.space import CHUNK, DEFERRED, space_for

IN_FORCE = TENTACLE.profiles["balanced"]
SPACE = space_for(TENTACLE, ["recovery"], IN_FORCE)


def slo(*lines: object) -> Slo:
    return parse_slo({"name": "some", "objectives": list(lines)})


BOTH = slo("client.p95_ms <= 80 ms", "recovery.bytes_s >= 8 MB/s")


def cluster(settings: Mapping[str, object]) -> Dict[str, float]:
    """A cluster that is a formula: clients suffer by what recovery may take, and by a weight that is too low."""
    limit = float(str(settings["osd_mclock_scheduler_background_recovery_lim"])) or 1.0
    weight = float(str(settings["osd_mclock_scheduler_client_wgt"]))
    return {"client.p95_ms": 40 + 70 * limit - 4 * math.log(weight), "recovery.bytes_s": 26e6 * limit}


def measured(settings: Mapping[str, object], spread: float = 0.01) -> Result:
    return {name: Measure(value, spread * value, 20) for name, value in cluster(settings).items()}


def search(wanted: Slo = BOTH, **more: object) -> KnobSearch:
    started = KnobSearch(SPACE, wanted, IN_FORCE, 1, **more)  # type: ignore[arg-type]
    started.tell(IN_FORCE, measured(IN_FORCE))
    return started


def test_what_is_in_force_comes_first() -> None:
    first = KnobSearch(SPACE, BOTH, IN_FORCE, 1).ask()
    assert first is not None
    assert first.settings == IN_FORCE


def test_it_meets_the_objectives_and_never_makes_one_worse() -> None:
    metrics = [objective.metric for objective in BOTH.objectives]
    going = search(priors=[SharesPrior(SPACE, metrics, ["recovery"])])
    assert cluster(IN_FORCE)["client.p95_ms"] > 80
    for _ in range(15):
        proposal = going.ask()
        if proposal is None:
            break
        check_settings(proposal.settings, TENTACLE)
        assert cluster(proposal.settings)["client.p95_ms"] <= 1.08 * cluster(IN_FORCE)["client.p95_ms"]
        assert cluster(proposal.settings)["recovery.bytes_s"] >= 8e6
        going.tell(proposal.settings, measured(proposal.settings))
    assert cluster(going.safe_optimiser.best().settings)["client.p95_ms"] <= 80


def test_relative_bounds_refer_to_what_was_in_force() -> None:
    going = search(slo("client.p95_ms <= 0.9 * baseline", "recovery.bytes_s >= 0.5 * baseline"))
    bounds = {constraint.name: constraint.bound for constraint in going.constraints}
    before = cluster(IN_FORCE)
    assert bounds["client.p95_ms"] == pytest.approx(0.9 * before["client.p95_ms"])
    assert bounds["recovery.bytes_s"] == pytest.approx(0.5 * before["recovery.bytes_s"])


def test_soft_objectives_are_no_constraints() -> None:
    soft = {"objective": "client.p95_ms <= 80 ms", "hard": False}
    assert [constraint.name for constraint in search(slo(soft, "recovery.bytes_s >= 8 MB/s")).constraints] == [
        "recovery.bytes_s"
    ]


def test_a_failure_and_a_standstill_are_learnt_from() -> None:
    going = search()
    told: Settings = dict(informed_designs(SPACE, ["recovery"])[0].settings)
    going.tell(told, Failed("slow operations", {"client.p95_ms": 400.0}))
    going.tell(SPACE.decode([0.4] * SPACE.size), {**measured(told), "recovery.bytes_s": Measure(0.0, 0.0, 20)})
    proposal = going.ask()
    assert proposal is not None
    assert proposal.settings != told


class Formula:
    """A prior that knows the formula, times a factor."""

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def predict(self, points: Array) -> Mapping[str, Array]:
        rows = [cluster(SPACE.decode(list(point))) for point in points]
        return {name: self._factor * np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_prior_saves_trials_even_where_it_is_wrong_by_two(factor: float) -> None:
    going = search(priors=[Formula(factor)])
    for _ in range(3):
        proposal = going.ask()
        assert proposal is not None
        going.tell(proposal.settings, measured(proposal.settings))
    assert cluster(going.safe_optimiser.best().settings)["client.p95_ms"] <= 80


def test_designs_bound_the_wait_by_the_chunk_where_a_limit_is_divided_among_shards() -> None:
    here = informed_designs(space_for(TENTACLE, ["recovery"], IN_FORCE, shards=8), ["recovery"])
    assert here[1].settings["osd_recovery_max_chunk"] == 256 << 10
    assert here[1].settings["osd_mclock_scheduler_background_recovery_lim"] == 0
    one = informed_designs(SPACE, ["recovery"])
    assert all("osd_recovery_max_chunk" not in proposal.settings for proposal in one)
    assert one[0].settings["osd_mclock_scheduler_background_recovery_lim"] > 0


def test_on_hard_disks_few_deferred_writes_at_once_are_the_first_design_and_change_nothing_else() -> None:
    space = space_for(TENTACLE, ["client", "recovery"], IN_FORCE, kind="hdd")
    first = informed_designs(space, ["client", "recovery"])[0]
    assert first.settings == {**space.nearest(IN_FORCE), DEFERRED: 4}


def test_on_several_shards_the_chunk_of_recovery_is_a_design_by_itself() -> None:
    space = space_for(TENTACLE, ["client", "recovery"], IN_FORCE, shards=8)
    first = informed_designs(space, ["client", "recovery"])[0]
    assert first.settings == {**space.nearest(IN_FORCE), CHUNK: 256 << 10}


@pytest.mark.parametrize("work", ["scrub", "snaptrim"])
def test_best_effort_is_held_back_by_its_counts_with_the_shares_in_force(work: str) -> None:
    space = space_for(TENTACLE, ["client", work], IN_FORCE)
    first = informed_designs(space, ["client", work])[0]
    before = space.nearest(IN_FORCE)
    moved = {name for name, value in first.settings.items() if value != before[name]}
    assert moved
    assert not moved & set(MCLOCK_NINE)


def test_what_is_in_force_is_no_design() -> None:
    space = space_for(TENTACLE, ["client", "recovery"], {**IN_FORCE, CHUNK: 256 << 10}, shards=8)
    assert all(proposal.settings != space.nearest({}) for proposal in informed_designs(space, ["recovery"]))


def test_an_opening_is_tried_in_its_order() -> None:
    designs = informed_designs(SPACE, ["recovery"])
    going = search(opening=designs, options=Options(safe_probability=0.0))
    assert going.ask_many(2) == designs[:2]
    assert going.ask() == designs[2]
