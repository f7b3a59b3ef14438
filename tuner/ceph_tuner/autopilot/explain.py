"""What the automatic mode is doing and why, in words for an operator."""

from __future__ import annotations

from typing import List, Optional

from ceph_tuner.autopilot.events import Seen
from ceph_tuner.autopilot.policy import Policy
from ceph_tuner.autopilot.state import PHASES, State


def explain(state: State, seen: Optional[Seen], policy: Policy, now: float) -> List[str]:
    """Give plain sentences."""
    return [f"mode {state.mode}: {PHASES[state.phase]}"]
