"""What is told of a boost: as of the automatic mode, with a bar that shows how much of its work is done."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping

from ceph_tuner.core.autopilot.audit_log import BOOST_ENDED, Audit
from ceph_tuner.core.boost.state import OFF, PHASES, BoostState

from .announce import Announcer
from .logbook import MgrLogbook

TRAIL = "audit/=boost/"
"""No device class can be called so."""
_EVENT = "tuner-boost"


class BoostLog(MgrLogbook):
    """`executor.Logbook` of a boost."""

    def __init__(
        self,
        trail: Audit,
        announcer: Announcer,
        history: Callable[[], Any],
        who: str,
        log: Any,
        share: Callable[[], float],
    ) -> None:
        """`share`: how much of its work is done, 0 to 1."""
        super().__init__(trail, announcer, history, who, "", log)
        self._share = share

    def outcomes(self) -> List[Mapping[str, Any]]:
        """What came of the boosts of late, oldest first."""
        return [record.detail for record in self.recent if record.what == BOOST_ENDED and not record.refers]

    def progress(self, state: Any) -> None:
        """Show the bar while it is on; take it away when it is over."""
        if isinstance(state, BoostState) and state.request is not None and state.phase != OFF:
            words = f"ceph-tuner: boost of {state.request.kind}, {PHASES[state.phase]}"
            self._announcer.progress(_EVENT, words, self._share())
        else:
            self._announcer.finished(_EVENT)
