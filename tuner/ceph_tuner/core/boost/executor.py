"""Carries out what the state machine of a boost decides, as the automatic mode's executor does."""

from __future__ import annotations

from typing import Callable, Collection, Sequence, Tuple

from ceph_tuner.core.autopilot.executor import Logbook, TrialExecutor, TrialGuard, nobody
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.boost.state import BoostState
from ceph_tuner.core.boost.state_machine import decide
from ceph_tuner.core.ceph.ports import Clock, Store
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.changes.lock import Lock

KEY = "boost/state"
BY = ", boost"
"""How the name of whoever writes for a boost ends, in the journal."""


class BoostExecutor(TrialExecutor[BoostState]):
    """Of the cluster's boost."""

    def __init__(
        self,
        store: Store,
        hands: Callable[[], Tuple[Applier, Lock]],
        logbook: Logbook,
        guards: Sequence[TrialGuard],
        clock: Clock,
        policy: Callable[[], Policy],
        elsewhere: Callable[[], Collection[int]] = nobody,
    ) -> None:
        """As `TrialExecutor`; `hands` must write under a name that ends with BY."""
        super().__init__(
            BoostState(),
            BoostState.from_dict,
            decide,
            store,
            hands,
            logbook,
            None,
            guards,
            clock,
            policy,
            KEY,
            elsewhere,
        )

    def _is_ours(self, entry: Entry) -> bool:
        # also where the state was lost
        return super()._is_ours(entry) or entry.who.endswith(BY)
