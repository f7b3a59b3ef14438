"""Drives the cluster's boost: its turns, the operators' commands, and the document that `boost status` shows."""

from __future__ import annotations

from typing import Any, Dict

from ceph_tuner.core.autopilot.events import OperatorCommand
from ceph_tuner.core.boost.events import Begin
from ceph_tuner.core.boost.explanation import explain
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.obstacles import NOTHING
from ceph_tuner.core.boost.state import OFF, BoostState
from ceph_tuner.core.boost.state_machine import CANCEL, refusal
from ceph_tuner.core.errors import Locked, RetryLater, Stopped

from .boost_lookout import BoostLookout
from .turns import LONGEST_WHY, Turns


class BoostDriver(Turns[BoostState]):
    """Of the cluster's boost."""

    what = "boost"
    explained_by = "ceph tuner boost status"
    lookout: BoostLookout
    """The one that it was made with."""

    def begin(self, event: Begin) -> None:
        """Begin a boost. Raises InputError where one is on, RetryLater where it must wait, Stopped where it ended."""
        self.refuse(refusal(self.state, event.request.kind))
        if self._has_begin_event():
            raise RetryLater(
                f"a boost waits to begin already: {self.problem}",
                f"see `{self.explained_by}`, or end it by `ceph tuner boost cancel`",
            )
        try:
            self.post(event, f"boost {event.request.kind}")
        except RetryLater:
            if self.state.phase == OFF:
                raise
        state = self.state
        if state.phase == OFF and state.last.get("begun") == event.at:
            raise Stopped(f"the boost ended at once: {state.last.get('why')}", "see `ceph tuner history`")
        if state.phase == OFF and state.problem and state.since >= event.at:
            raise Locked(state.problem)
        if state.phase == OFF:
            raise Stopped("the boost did not begin: something unforeseen went wrong", "see the mgr's log")

    def cancel(self, by: str, why: str = "") -> None:
        """End the boost. Raises InputError where there is none."""
        # what waits to begin is ended behind its beginning, and what another mgr had on once that is known
        if self.started and not self._has_begin_event():
            self.refuse(refusal(self.state, CANCEL))
        event = OperatorCommand(self._now(), CANCEL, by, why[:LONGEST_WHY], self.lookout.means, self.lookout.mended)
        self.post(event, "boost cancel")

    def _has_begin_event(self) -> bool:
        """Whether a boost waits to begin: the monitors do not answer, say."""
        return any(isinstance(event, Begin) for event, _ in tuple(self.inbox))

    def document(self) -> Dict[str, Any]:
        """The state, what is left, when it will be done, and all of it in words."""
        state, now = self.state, self._now()
        means, finish = self.lookout.means, self.lookout.progress.finish()
        kind = KINDS[state.request.kind] if state.request is not None else None
        ahead = self.lookout.obstacles(kind.name) if kind is not None else NOTHING
        remainder = kind.left_in(means) if kind is not None else None
        early = kind is not None and finish is None and not ahead.stops
        return {
            **state.to_dict(),
            "ends_at": state.ends_at if kind is not None else None,
            "left": remainder,
            "finish": finish.to_dict() if finish is not None and kind is not None else None,
            "done_within_s": remainder / state.rate_before if early and remainder and state.rate_before else None,
            "obstacles": ahead.words,
            "words": explain(state, means, finish, now, ahead),
            "turn_problem": self.problem,
        }
