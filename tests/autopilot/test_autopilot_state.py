from __future__ import annotations

import json
from typing import Any

import pytest
from flights import ALTERNATING, P95, ROLLOUT, SETTINGS, effect
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.contract import BETTER, Rollout, Stage
from ceph_tuner.core.autopilot.state import AUTO, MODES, OBSERVING, ON_CLUSTER, PHASES, TRYING, AutopilotState, Proposed

times = st.floats(0, 4e9)
words = st.text(max_size=20)
proposals = st.builds(
    Proposed,
    st.integers(1, 10**6),
    st.just(SETTINGS),
    words,
    st.sampled_from([ROLLOUT, ALTERNATING]),
)
states = st.builds(
    AutopilotState,
    mode=st.sampled_from(MODES),
    phase=st.sampled_from(sorted(PHASES)),
    since=times,
    paused=words,
    paused_until=st.none() | times,
    then=words,
    back_off=st.booleans(),
    proposed=proposals,
    stage=st.integers(0, 3),
    leg=st.booleans(),
    turns=st.integers(0, 99),
    changes=st.lists(st.integers(1, 999)).map(tuple),
    aims=st.lists(words).map(tuple),
    gain=words,
    effects=st.sampled_from([{}, {P95: effect(P95, BETTER)}]),
    baseline=st.dictionaries(words, times, max_size=3),
    tried=st.integers(0, 9),
    moves=st.lists(times, max_size=5).map(tuple),
    condition=st.dictionaries(words, words, max_size=3),
    kept=st.none() | st.integers(1, 999),
    problem=words,
)


@given(states)
def test_what_is_stored_is_read_back(state: AutopilotState) -> None:
    assert AutopilotState.from_dict(json.loads(json.dumps(state.to_dict()))) == state


@given(states, st.sampled_from(sorted(AutopilotState().to_dict())), st.sampled_from([{"what": 1}, [{}], object]))
def test_a_value_of_another_type_is_refused_at_once_not_at_every_sample(
    state: AutopilotState, name: str, damage: Any
) -> None:
    document = state.to_dict()
    containers = {"proposed", "changes", "aims", "effects", "baseline", "moves", "condition"}
    document[name] = 5 if name in containers else damage
    with pytest.raises((KeyError, TypeError, ValueError)):
        AutopilotState.from_dict(document)


@pytest.mark.parametrize("document", [None, 5, "off", [], ["mode"], True])
def test_what_is_no_object_is_no_state(document: Any) -> None:
    with pytest.raises(TypeError):
        AutopilotState.from_dict(document)


@pytest.mark.parametrize(("name", "value"), [("mode", "sideways"), ("phase", "flying"), ("mode", None)])
def test_a_mode_or_phase_that_does_not_exist_is_refused(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        AutopilotState.from_dict({**AutopilotState().to_dict(), name: value})


def test_names_of_a_newer_version_are_dropped_and_missing_ones_have_their_defaults() -> None:
    assert AutopilotState.from_dict({"mode": "auto", "of_tomorrow": 1}) == AutopilotState(mode="auto")


def test_a_trial_without_a_proposal_is_no_state() -> None:
    with pytest.raises(ValueError, match="phase trying needs a proposal"):
        AutopilotState(phase=TRYING)


@pytest.mark.parametrize("phase", sorted(PHASES))
def test_something_may_be_on_the_cluster_in_the_phases_of_a_trial(phase: str) -> None:
    proposed = Proposed(1, SETTINGS, "", ROLLOUT)
    assert AutopilotState(phase=phase, proposed=proposed).on_cluster == (phase in ON_CLUSTER)
    assert AutopilotState(phase=OBSERVING, changes=(7,)).on_cluster


def test_the_last_stage_is_the_target_as_a_whole() -> None:
    proposed = Proposed(1, SETTINGS, "", ROLLOUT)
    assert [AutopilotState(proposed=proposed, stage=stage).last_stage for stage in range(3)] == [False, False, True]
    assert not AutopilotState().last_stage


def test_the_state_of_a_cluster_of_ten_thousand_osds_fits_into_a_value_of_the_store() -> None:
    everyone = tuple(range(10_000))
    stages = tuple(Stage((f"osd/host:h{n}",), everyone[: 10 ** min(n, 3)], everyone[5000:9000:2]) for n in range(6))
    state = AutopilotState(
        AUTO, TRYING, proposed=Proposed(1, {}, "", Rollout("osd", (*stages, Stage(("osd",), everyone))))
    )
    text = json.dumps(state.to_dict())
    assert len(text) < 60_000
    assert AutopilotState.from_dict(json.loads(text)) == state
