from __future__ import annotations

import pytest

from ceph_tuner.releases import TENTACLE, Settings
from ceph_tuner.sample import Measure
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.objective import FAILURE_STEP, Score
from ceph_tuner.search.optimiser import Failed
from ceph_tuner.search.skopt_optimiser import SkoptOptimiser, replayed
from ceph_tuner.search.space import space_for
from ceph_tuner.settings import check_settings
from ceph_tuner.slo import parse_slo

LIMIT = "osd_mclock_scheduler_background_best_effort_lim"
SLO = parse_slo({"objectives": ["client.p95_ms <= 85 ms", "scrub.bytes_s >= 9 MB/s"]})
SPACE = space_for(TENTACLE, SLO.work, TENTACLE.profiles["balanced"])
DESIGNS = informed_designs(SPACE, SLO.work)


def measured(settings: Settings) -> dict:
    """What bounds the rate is the limit, what bounds the wait is the chunk."""
    limit = float(settings[LIMIT]) or 1.0
    p95 = 50 + 100 * limit + 3 * int(settings.get("osd_scrub_chunk_max", 15))
    return {"client.p95_ms": Measure(p95, 1.0, 5), "scrub.bytes_s": Measure(40e6 * limit, 1e5, 5)}


def started(seed: int = 1) -> SkoptOptimiser:
    optimiser = SkoptOptimiser(SPACE, Score(SLO), DESIGNS, seed)
    for profile in TENTACLE.profiles.values():
        optimiser.tell(profile, measured(profile))
    return optimiser


def test_the_informed_designs_are_asked_first_and_each_once() -> None:
    optimiser = started()
    asked = []
    for _ in DESIGNS:
        proposal = optimiser.ask()
        asked.append(proposal)
        optimiser.tell(proposal.settings, measured(proposal.settings))
    assert asked == DESIGNS
    assert optimiser.ask().why == "proposed by the model"


def test_asking_twice_without_a_tell_gives_the_same() -> None:
    optimiser = started()
    assert optimiser.ask() == optimiser.ask()


def test_the_model_finds_better_settings_than_designs_and_profiles() -> None:
    optimiser = started()
    losses = []
    for _ in range(len(DESIGNS) + 8):
        proposal = optimiser.ask()
        check_settings(proposal.settings, TENTACLE)
        result = measured(proposal.settings)
        losses.append(Score(SLO).measured({name: measure.mean for name, measure in result.items()}))
        optimiser.tell(proposal.settings, result)
    assert min(losses[len(DESIGNS) :]) < min(losses[: len(DESIGNS)])


def test_a_replayed_history_gives_the_same_next_proposal() -> None:
    told = [(profile, measured(profile)) for profile in TENTACLE.profiles.values()]
    told += [(design.settings, measured(design.settings)) for design in DESIGNS]
    first = replayed(SPACE, Score(SLO), DESIGNS, 7, told).ask()
    assert replayed(SPACE, Score(SLO), DESIGNS, 7, told).ask() == first
    assert replayed(SPACE, Score(SLO), DESIGNS, 8, told).ask() != first


def test_with_nothing_known_and_no_designs_it_still_proposes_valid_settings() -> None:
    proposal = SkoptOptimiser(SPACE, Score(SLO), [], 1).ask()
    check_settings(proposal.settings, TENTACLE)


def test_what_failed_is_worse_than_everything_that_was_measured_and_always_finite() -> None:
    good, bad = measured(DESIGNS[0].settings), measured(TENTACLE.profiles["balanced"])
    nothing = {"client.p95_ms": Measure(1e12, 0.0, 1)}
    losses = Score(SLO).all([good, Failed("slow operations"), bad, nothing])
    assert losses[1] == max(losses[0], losses[2], losses[3]) + FAILURE_STEP
    assert all(abs(value) < 1e9 for value in losses)
    assert Score(SLO).all([Failed("refused")]) == [FAILURE_STEP]


@pytest.mark.parametrize(
    ("work", "words"),
    [({"recovery"}, "recovery limited"), ({"scrub"}, "small chunks"), ({"client"}, "recovery limited")],
)
def test_designs_fit_the_kind_of_work(work: set, words: str) -> None:
    space = space_for(TENTACLE, work, TENTACLE.profiles["balanced"])
    designs = informed_designs(space, work)
    assert words in designs[0].why
    assert len({str(design.settings) for design in designs}) == len(designs) >= 3
    for design in designs:
        check_settings(design.settings, TENTACLE)


def test_designs_of_a_narrow_space_change_only_what_is_free() -> None:
    space = space_for(TENTACLE, ["scrub"], TENTACLE.profiles["balanced"], ["osd_max_scrubs"])
    designs = informed_designs(space, ["scrub"])
    assert all(set(design.settings) == {"osd_max_scrubs"} for design in designs)
