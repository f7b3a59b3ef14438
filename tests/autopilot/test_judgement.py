from __future__ import annotations

from typing import Dict, List, Optional, Sequence

import pytest
from flights import P95, RECOVERY, effect
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, UNKNOWN, WORSE, Effect
from ceph_tuner.core.autopilot.judgement import (
    ENOUGH,
    GO_ON,
    HARMFUL,
    INCONCLUSIVE,
    PASSED,
    STAND_INS,
    Judgement,
    in_words,
    judge,
    shown,
)
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.sequential import TurnNoise, alternation, difference
from ceph_tuner.core.measure.metrics import METRICS

POLICY = Policy(least_windows=4, most_windows=40)


def judged(
    effects: List[Effect],
    hard: Optional[List[str]] = None,
    aims: Optional[List[str]] = None,
    windows: int = 10,
    unseen: Sequence[str] = (),
) -> Judgement:
    found = {found.metric: found for found in effects}
    allowed = dict.fromkeys([P95] if hard is None else hard, POLICY.tolerance)
    return judge(found, allowed, [P95] if aims is None else aims, windows, POLICY, unseen)


def test_a_missed_objective_s_metric_that_became_better_passes_with_a_gain() -> None:
    assert judged([effect(P95, BETTER)]) == (PASSED, "client.p95_ms 20% lower (10% to 30% lower)", True)


def test_harm_to_a_hard_metric_ends_it_at_the_first_window() -> None:
    assert judged([effect(P95, WORSE, 0.2)], windows=1).verdict == HARMFUL


def test_harm_to_a_metric_that_nobody_asked_for_ends_nothing() -> None:
    assert judged([effect(P95, BETTER), effect(RECOVERY, WORSE)]).verdict == PASSED


def test_nothing_passes_before_the_least_number_of_windows() -> None:
    assert judged([effect(P95, BETTER)], windows=3) == (GO_ON, "3 of at least 4 windows", False)


def test_part_of_the_osds_need_not_show_the_gain() -> None:
    # a write waits for replicas that keep the old settings
    assert judged([effect(P95, ALIKE, 0.01)]) == (PASSED, in_words(effect(P95, ALIKE, 0.01)), False)


def test_harm_that_is_not_ruled_out_goes_on_until_the_most_windows_and_is_inconclusive_then() -> None:
    doubtful = [effect(P95, UNKNOWN, 0.0, windows=39), effect(RECOVERY, BETTER)]
    assert judged(doubtful, aims=[RECOVERY], windows=39).verdict == GO_ON
    late = judged(doubtful, aims=[RECOVERY], windows=40)
    assert late.verdict == INCONCLUSIVE
    assert late.words.startswith("40 windows; harm not ruled out yet: client.p95_ms")


@pytest.mark.parametrize("unseen", [[], [effect(P95, BETTER, None)]])
def test_client_latency_that_is_no_longer_seen_never_passes(unseen: List[Effect]) -> None:
    found = [judged([*unseen, effect(RECOVERY, BETTER)], aims=[RECOVERY], windows=windows) for windows in (7, 8)]
    assert found[0] == (GO_ON, "7 windows; harm not ruled out yet: client.p95_ms is not seen on both sides", False)
    # and it does not take all the windows to say so
    assert found[1].verdict == INCONCLUSIVE


def test_clients_that_were_not_seen_before_either_are_not_taken_for_unharmed() -> None:
    gone = judged([], hard=[], aims=["scrub.bytes_s"], unseen=[P95])
    assert gone == (GO_ON, "10 windows; harm not ruled out yet: client.p95_ms is not seen", False)
    assert judged([], hard=[], aims=["scrub.bytes_s"], unseen=[P95], windows=40).verdict == INCONCLUSIVE
    # they were, and went home after so many windows that it is known
    assert judged([effect(P95, ALIKE, windows=9)], unseen=[P95]).verdict == PASSED


@pytest.mark.parametrize(
    ("seen", "windows", "most", "verdict"),
    [(2, 8, 12, INCONCLUSIVE), (3, 8, 12, GO_ON), (2, 7, 12, GO_ON), (1, 12, 40, INCONCLUSIVE), (2, 12, 40, GO_ON)],
)
def test_a_stage_that_shows_the_clients_too_rarely_to_tell_at_its_end_ends_early_and_says_so(
    seen: int, windows: int, most: int, verdict: str
) -> None:
    """Turn after turn, and an interval that is unbounded still."""
    policy = Policy(least_windows=4, most_windows=most)
    found = judge({P95: effect(P95, UNKNOWN, 0.56, windows=seen)}, {P95: 0.05}, [P95], windows, policy)
    assert found.verdict == verdict
    if verdict == INCONCLUSIVE:
        assert found.words == f"client.p95_ms was seen on both sides in {seen} of {windows} windows only"


def test_background_work_that_no_part_of_the_osds_shows_holds_nothing_up() -> None:
    assert judged([], hard=["recovery.finish_s"], aims=["recovery.finish_s"]) == (
        PASSED,
        "nothing that can be compared was harmed",
        False,
    )


@pytest.mark.parametrize(("metric", "stand_in"), sorted(STAND_INS.items()))
def test_what_only_the_whole_cluster_shows_is_judged_by_its_stand_in(metric: str, stand_in: str) -> None:
    assert metric in METRICS
    assert stand_in in METRICS
    assert judged([effect(stand_in, WORSE)], hard=[metric], aims=[]).verdict == HARMFUL
    assert judged([effect(stand_in, BETTER, 0.4)], hard=[], aims=[metric]).gain


def test_a_metric_itself_is_preferred_to_its_stand_in() -> None:
    own, stand_in = effect("recovery.finish_s", BETTER), effect(RECOVERY, WORSE)
    assert shown({own.metric: own, stand_in.metric: stand_in}, "recovery.finish_s") is own


verdicts: st.SearchStrategy[Dict[str, Effect]] = st.dictionaries(
    st.sampled_from([P95, RECOVERY]), st.sampled_from([BETTER, ALIKE, UNKNOWN, WORSE]), max_size=2
).map(lambda found: {metric: effect(metric, verdict) for metric, verdict in found.items()})


@given(verdicts, st.integers(0, 10))
def test_no_harmful_or_doubtful_hard_metric_ever_passes(found: Dict[str, Effect], windows: int) -> None:
    verdict = judge(found, {P95: 0.05, RECOVERY: 0.05}, [P95], windows, POLICY).verdict
    if verdict == PASSED:
        assert windows >= POLICY.least_windows
        assert all(effect.verdict in (BETTER, ALIKE) for effect in found.values())
    assert (verdict == HARMFUL) == any(effect.verdict == WORSE for effect in found.values())
    if windows >= POLICY.most_windows:
        assert verdict != GO_ON
    assert judge(found, {P95: 0.05}, [P95], POLICY.most_windows, POLICY).verdict != GO_ON


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.42, -0.18, "18% to 42% lower"),
        (0.18, 0.42, "18% to 42% higher"),
        (-0.1, 0.2, "10% lower to 20% higher"),
        (float("-inf"), float("inf"), "in 5 windows, too few to say how sure that is"),
        (0.1, float("inf"), "10% higher to unbounded"),
    ],
)
def test_an_interval_in_words(low: float, high: float, words: str) -> None:
    assert in_words(Effect(P95, 0.0, low, high, 5, UNKNOWN)).endswith(f"({words})")


def test_what_was_not_seen_in_words() -> None:
    assert in_words(effect(P95, UNKNOWN, None)) == "client.p95_ms not seen"


def test_so_many_comparisons_bound_an_interval_and_fewer_may_not() -> None:
    for count, bounded in ((ENOUGH - 1, False), (ENOUGH, True)):
        noise = TurnNoise(old=[0.1] * count, new=[0.1] * (count - 1), earlier=[], bends=[])
        for interval in (
            # two metrics share the confidence
            alternation([-0.8] * count, noise, 1 - 0.05 / 2, 0.03),
            difference([0.0] * Policy().baseline_windows, [-0.8] * count, 1 - 0.05 / 2, 0.03),
        ):
            assert (interval.high < float("inf")) is bounded
