"""What background work is held to as time goes on: fixed objectives, a calendar's, or those that the cluster stores."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Tuple

from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.goals.slo import Objective, Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.goals.stored_slo import stored_baseline, stored_calendar
from ceph_tuner.core.measure.metrics import Scope
from ceph_tuner.pacing.objectives import about_clients


@dataclass(frozen=True)
class WantedNow:
    """What holds at one moment."""

    slo: Optional[Slo] = None
    policy: str = ""
    """Of the calendar; empty without one."""

    @property
    def words(self) -> str:
        """What is kept, for people."""
        texts = ", ".join(objective.text for objective in about_clients(self.slo))
        if texts:
            return f"keeps {texts}" + (f" (policy {self.policy})" if self.policy else "")
        if self.policy:
            return f"keeps nothing: the policy {self.policy} has no hard objective about clients"
        what = "objective" if self.slo is None else "hard objective about clients"
        return f"keeps nothing: no {what} is set"

    @property
    def preview(self) -> str:
        """The same before anything is begun, with how to set one where there is none."""
        return self.words if about_clients(self.slo) else f"{self.words}; --keep 'client.p95_ms<=20' sets one"


class WantedObjectives:
    """The objectives of each moment. Those of `of` stay; those that the cluster stores are read again now and then."""

    def __init__(self, calendar: Optional[SloCalendar] = None, store: Optional[Store] = None) -> None:
        """`store`: where they are read again; None: they stay what they are."""
        self.calendar = calendar
        self._store = store
        self.problem = ""
        """Why what is stored could not be read last, for people; empty where it was."""

    @classmethod
    def of(cls, slo: Optional[Slo]) -> WantedObjectives:
        """These, at all times."""
        return cls(SloCalendar(slo) if slo is not None else None)

    @classmethod
    def stored(cls, store: Store) -> WantedObjectives:
        """Those of the cluster. Raises InputError where they cannot be read."""
        return cls(stored_calendar(store), store)

    def read_again(self) -> None:
        """Take up what is stored now; what cannot be read holds as it was."""
        if self._store is None:
            return
        try:
            self.calendar, self.problem = stored_calendar(self._store), ""
        except TunerError as fault:
            self.problem = f"; what is stored now cannot be read: {fault}"

    def newer_baseline(self) -> Dict[str, float]:
        """What the cluster's relative bounds refer to now; nothing where they are not the cluster's."""
        if self._store is not None:
            with suppress(TunerError):
                return stored_baseline(self._store)
        return {}

    def at(self, moment: float) -> WantedNow:
        """What holds at a moment, in seconds since the epoch."""
        if self.calendar is None:
            return WantedNow()
        return WantedNow(self.calendar.at(moment), self.calendar.policy_at(moment) if self.calendar.policies else "")

    @property
    def by_policy(self) -> Mapping[str, WantedNow]:
        """What holds under each policy of the calendar; without one, under the empty name."""
        if self.calendar is None or not self.calendar.policies:
            return {"": self.at(0.0)}
        return {name: WantedNow(slo, name) for name, slo in self.calendar.by_policy.items()}

    @property
    def scopes(self) -> Tuple[Scope, ...]:
        """The device classes and pools that objectives of any policy are about."""
        return self.calendar.scopes if self.calendar is not None else ()

    @property
    def ever(self) -> bool:
        """Whether there is an objective about clients at some time."""
        return any(about_clients(wanted.slo) for wanted in self.by_policy.values())


def stricter(before: Mapping[Objective, Optional[float]], after: Mapping[Objective, Optional[float]]) -> bool:
    """Whether a bound is new or tighter; one that is not known (None) may be."""
    bounds = {objective.metric: bound for objective, bound in before.items()}
    for objective, bound in after.items():
        earlier = bounds.get(objective.metric)
        if bound is None or earlier is None or objective.margin(bound, earlier) > 0:
            return True
    return False
