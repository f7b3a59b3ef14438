"""Ways from one state of the automatic mode to the next that several events share, and what a decision is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Tuple

from ceph_tuner.core.autopilot.contract import Effect
from ceph_tuner.core.autopilot.events import Act, Learn, Look, Note, TakeBack, Write
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import OBSERVING, RETURNING, WRITING, AutopilotState, Proposed

ASK_AGAIN_S = 60.0
"""Pause after the optimiser failed; doubled each time in a row, up to the policy's back-off."""
BY_OPERATOR = "operator"
"""Rule of the note where an operator's command ends a trial."""


@dataclass(frozen=True)
class AutopilotDecision:
    """What comes next: the state, and what is to be done, of which the last act alone has an outcome."""

    state: AutopilotState
    acts: Tuple[Act, ...] = ()

    def __post_init__(self) -> None:
        if any(not isinstance(act, (Note, Learn)) for act in self.acts[:-1]):
            raise ValueError(f"acts (={self.acts}) must be notes and results but for the last one")


def asks_again(state: AutopilotState, policy: Policy) -> float:
    """When it may ask the optimiser again, in seconds since the epoch: a pause follows each failure of it."""
    failures = state.worker_failures
    return state.asked_at + (min(ASK_AGAIN_S * 2.0 ** min(failures, 20), policy.back_off) if failures else 0.0)


def write_stage(state: AutopilotState, at: float, words: str = "", turn: bool = False) -> AutopilotDecision:
    """Write the state's stage."""
    proposed = proposal_of(state)
    stage = proposed.rollout.stages[state.stage]
    targets = (proposed.rollout.target,) if state.last_stage else stage.targets
    moves = state.moves if turn else (*state.moves, at)
    why = f"trial {proposed.number}: {proposed.why}"
    name = "all" if state.last_stage else "canary" if state.stage == 0 else f"stage {state.stage + 1}"
    note = Note("apply", words or proposed.why, detail={"stage": name, "targets": list(targets)})
    return AutopilotDecision(
        replace(state, phase=WRITING, since=at, moves=moves),
        (
            *(() if turn else (note,)),
            # a canary's part shows in no window of the whole
            Write(targets, proposed.settings, why, state.changes, proposed.forecast)
            if state.last_stage
            else Write(targets, proposed.settings, why),
        ),
    )


def lesson(proposed: Proposed, effects: Mapping[str, Effect], baseline: Mapping[str, float], failed: str = "") -> Learn:
    """Give what the search is told of a trial, beside what it had expected."""
    settings = {**proposed.unmoved, **proposed.settings}
    return Learn(settings, dict(effects), baseline, proposed.number, failed, proposed.forecast)


def take_back(
    state: AutopilotState, look: Look, why: str, failure: bool, rule: str = "", then: str = ""
) -> AutopilotDecision:
    """Take the trial back: never waits for anybody."""
    acts: List[Act] = [Note("taken back", why, detail={**effects_detail(look), "rule": rule or "trial"})]
    if state.proposed is not None:
        acts.append(lesson(state.proposed, look.effects, state.baseline, why if failure else ""))
    trials = state.tried + 1
    back = replace(state, phase=RETURNING, since=look.at, back_off=failure, then=then, tried=trials)
    return AutopilotDecision(back, (*acts, TakeBack(state.changes, why)))


def drop(state: AutopilotState, at: float, why: str, acts: Tuple[Act, ...], then: str = "") -> AutopilotDecision:
    """Leave what is under way because an operator says so."""
    if state.on_cluster:
        back = replace(state, phase=RETURNING, since=at, back_off=False, then=then)
        note = Note("taken back", why, acts[0].by if isinstance(acts[0], Note) else "", {"rule": BY_OPERATOR})
        return AutopilotDecision(back, (*acts, note, TakeBack(state.changes, why)))
    return AutopilotDecision(replace(idle_state(state, at), paused=then), acts)


def going_on(state: AutopilotState) -> AutopilotState:
    """Neither paused nor about to be."""
    return replace(state, paused="", paused_until=None, then="")


def pause_lasts(now: float, end: float, length: float) -> bool:
    """Whether a pause of that length lasts that ends then; one that has not begun yet is from a wrong clock."""
    return end - length <= now < end


def idle_state(state: AutopilotState, at: float, failed: bool = False) -> AutopilotState:
    """Back to observing, with nothing on trial."""
    return replace(
        state,
        phase=OBSERVING,
        since=at,
        then="",
        back_off=False,
        proposed=None,
        stage=0,
        leg=False,
        turns=0,
        passed=False,
        changes=(),
        aims=(),
        gain="",
        effects={},
        problem="",
        failures=state.failures + 1 if failed else state.failures,
        failed_at=at if failed else state.failed_at,
    )


def effects_detail(look: Look) -> Dict[str, Any]:
    """What was measured, as the detail of a note."""
    return {"effects": [effect.to_dict() for effect in look.effects.values()]}


def proposal_of(state: AutopilotState) -> Proposed:
    """The proposal that the state is about. Raises ValueError where there is none."""
    if state.proposed is None:
        raise ValueError(f"phase {state.phase} needs a proposal")
    return state.proposed
