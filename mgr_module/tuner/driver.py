"""Drives an automatic mode: its turns, the operators' commands, and the document that `auto explain` shows."""

from __future__ import annotations

from typing import Any, Dict

from ceph_tuner.core.autopilot.events import OperatorCommand
from ceph_tuner.core.autopilot.explanation import explain
from ceph_tuner.core.autopilot.state import AutopilotState
from ceph_tuner.core.autopilot.state_machine import refusal

from .turns import LONGEST_WHY, Turns


class Driver(Turns[AutopilotState]):
    """Of an automatic mode."""

    def tell(self, what: str, by: str, why: str = "") -> Dict[str, Any]:
        """Take an operator's word. Raises InputError where it makes no sense now, RetryLater where it must wait."""
        self.refuse(refusal(self.state, what))
        self.post(OperatorCommand(self._now(), what, by, why[:LONGEST_WHY]), what)
        return self.document()

    def document(self) -> Dict[str, Any]:
        """The state, what was seen last, and in words what it does and waits for."""
        state, policy, look = self.state, self._policy(), self.newest_look
        return {
            **state.to_dict(),
            "words": explain(state, look, policy, self._now()),
            "effects": [effect.to_dict() for effect in look.effects.values()] if look else [],
            "windows": look.windows if look else 0,
            "missed": list(look.missed) if look else [],
            "waits_for": look.wait if look else "",
            "problem": self.problem,
        }
