"""One look for a boost: what is left, how fast it becomes less, and what the guard says."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, List, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.autopilot.intervention import interventions
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.watchdog import Watchdog
from ceph_tuner.core.boost.goals import goals_of
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.obstacles import Obstacles, flags_in, obstacles
from ceph_tuner.core.boost.progress import Progress
from ceph_tuner.core.boost.state import OFF, BoostState
from ceph_tuner.core.boost.state_machine import CALENDAR, TIME
from ceph_tuner.core.bounded import ANSWER, read_json
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.changes.plan import Restore
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, TunerError
from ceph_tuner.core.goals.guard import FULL, HEALTH_ERR, Breach, Sight
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.moments import duration

from .aim import Aim
from .guard_windows import GuardWindows
from .proto import Mgr
from .service import Service
from .sights import LATE, PEERING, newest_sight_while_rebuilt

SETTLED_S = 15.0
"""After an OSD came or went: its PGs have peered by then, and their reports and the sample after are here."""
MOST_PEERING = 0.1
"""Share of the PGs that may peer: each does as its recovery ends, and on a large cluster some always do."""
_CHANGES = ("osd_up_since", "osd_in_since")
"""In what `osd stat` says: when the last OSD came up or went down, and when the last was marked in or out."""


class BoostLookout:
    """Looks at the cluster and guards a boost, in the driver's thread; `watch` in that of the writes."""

    def __init__(
        self,
        mgr: Mgr,
        service: Service,
        aim: Aim,
        policy: Callable[[], Policy],
        now: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        """`aim`: of the whole cluster; `steady`: a clock that nobody sets."""
        self._mgr, self._service, self._aim, self._policy, self._now = mgr, service, aim, policy, now
        self._steady, self._time_up = steady, 0.0
        self._watchdog: Optional[Watchdog] = None
        self._before = Sight(0.0, "")
        self._goals: Optional[Slo] = None
        """What the watchdog compares with, and what it holds."""
        self._dump: List[ConfigEntry] = []
        self._ours: Tuple[Tuple[int, ...], Tuple[Restore, ...]] = ((), ())
        self._windows = GuardWindows(aim)
        self.progress = Progress()
        """Since the settings were written; any thread may read it."""
        self.means: Mapping[str, float] = {}
        """Of the newest sample, while it is fresh."""
        self._done, self._counted = 0.0, 0.0
        """What the work came to since the settings were written, by its rates, and up to when that is counted."""
        self._done_before, self._late = 0.0, 0.0
        """As of the newest point of the progress; what of it has not shown in what is left yet."""
        self.mended: Optional[float] = None
        """What all of the boost's work came to; None where no rate tells."""

    def look(self, state: BoostState, policy: Policy) -> Optional[Look]:
        """Give what is known once a sample was taken or missed; None while nothing is boosted."""
        if state.phase == OFF:
            return None
        now, sight = self._now(), self._sight()
        self.means = sight.values if sight is not None else {}
        self._count(state)
        self._follow(state, policy)
        breach = self._breach(sight, state) or self._close(sight, state, policy) or self._over(state)
        return Look(now, self.means, breach=breach or self._forbidden(state), mended=self.mended)

    def guard(self, state: BoostState) -> Optional[Breach]:
        """Look at the newest sample alone, while settings are being written."""
        return self._watchdog.look(self._sight()) if self._watchdog is not None else None

    def watch(self, state: BoostState) -> None:
        """Settings are about to be written, or are off the cluster again."""
        if not state.on_cluster or state.request is None:
            self._watchdog = None
            return
        if self._watchdog is not None or not state.writing:
            return
        self._dump = self._service.config.dump()
        before = self._sight() or Sight(0.0, "")
        self.progress, self.means = Progress(), before.values
        self._done = self._done_before = self._late = 0.0
        self._counted, self.mended = self._now(), None
        self._windows.begin(self._now() + self._policy().settle)
        self._time_up = self._steady() + state.ends_at - self._now()
        self._before, self._goals = before, self._objectives(state.request.keep)
        self._watchdog = Watchdog(self._goals, state.baseline, before, self._policy())

    def obstacles(self, kind: str) -> Obstacles:
        """What holds this kind of work, by the newest sample and what the mgr knows of the cluster's health."""
        return self._obstacles(kind, read_json(self._mgr.get("health")["json"], "health", ANSWER))

    def refusal(self, kind: str) -> str:
        """Why a boost of this kind makes no sense or is not safe now; empty where it is."""
        # the monitors know at once of a flag that was unset, the mgr some seconds later
        ahead = self._obstacles(kind, parsed(self._service.commander.mon("health", {}), "health"))
        if ahead.stops:
            return "; ".join(ahead.stops)
        sight = self._sight()
        if sight is None:
            return ""
        full = sorted(sight.checks & FULL)
        if full:
            return f"{', '.join(full)} {'are' if len(full) > 1 else 'is'} raised: make room first"
        return self._peers()

    def error(self) -> str:
        """Why no rule begins a boost on its own now; empty where one may. An operator may: recovery may be the cure."""
        sight = self._sight()
        if sight is None or sight.health != HEALTH_ERR:
            return ""
        return (
            f"the cluster is in HEALTH_ERR ({sight.words}): begin the boost yourself, mend that first, or mute what "
            "may be ignored by `ceph health mute`"
        )

    def _peers(self) -> str:
        """Whether PGs peer, so that nobody knows what is left; empty where they do not."""
        stat, now = parsed(self._service.commander.mon("osd stat", {}), "osd stat"), self._now()
        since = min((abs(now - float(stat[name])) for name in _CHANGES if stat.get(name)), default=SETTLED_S)
        if since < SETTLED_S:
            return (
                f"an OSD came, went, or was marked in or out {duration(since)} ago: what is left is known "
                f"{duration(SETTLED_S)} after it, once PGs have peered"
            )
        sample = self._aim.latest()
        states = sample.pg_states if sample is not None else {}
        peering = sum(count for state, count in states.items() if PEERING & set(state.split("+")))
        if peering > MOST_PEERING * sum(states.values()):
            return f"{peering} PGs peer: what is left is known once they have"
        return ""

    def _obstacles(self, kind: str, health: Mapping[str, Any]) -> Obstacles:
        sample = self._aim.latest()
        means, states = (sample.values, sample.pg_states) if sample is not None else ({}, {})
        return obstacles(kind, flags_in(health), means, states)

    def overdue_s(self) -> float:
        """Seconds without a sample after which one is missing."""
        return LATE * float(self._service.option("sample_interval"))

    def _sight(self) -> Optional[Sight]:
        return newest_sight_while_rebuilt(self._mgr, self._aim, self._now(), self.overdue_s())

    def _follow(self, state: BoostState, policy: Policy) -> None:
        """Guard what is wanted now: another policy of the calendar may hold, or objectives were set meanwhile."""
        if self._watchdog is None or state.request is None:
            return
        with contextlib.suppress(TunerError):
            # what cannot be read holds as it was
            goals = self._objectives(state.request.keep)
            if goals != self._goals:
                self._goals = goals
                self._windows.begin_anew(self._now())
                self._watchdog = Watchdog(goals, state.baseline, self._before, policy)

    def _objectives(self, keep: Tuple[str, ...]) -> Optional[Slo]:
        return goals_of(keep, self._service.absolute_slo())

    def _close(self, sight: Optional[Sight], state: BoostState, policy: Policy) -> Optional[Breach]:
        """Close the windows that have ended; say whether the guard objects to one."""
        breach: Optional[Breach] = None
        if sight is None or self._watchdog is None or state.request is None:
            return None
        windows = self._windows.closed(sight.at, policy)
        for window in windows:
            breach = breach or self._watchdog.close(window.means)
        remainder = KINDS[state.request.kind].left_in(sight.values)
        if windows and remainder is not None:
            self.progress = self.progress.after(sight.at, remainder, self._done_since(remainder, state.request.kind))
        return breach

    def _count(self, state: BoostState) -> None:
        """Add up what the work came to by the samples since the last look."""
        if self._watchdog is None or state.request is None:
            return
        kind, window = KINDS[state.request.kind], self._aim.between(self._counted, self._now())
        if window is not None:
            self._counted = window.end
            self._done += (kind.rate_in(window.means) or 0.0) * window.seconds
        # what it came to under a mgr that is gone nobody knows
        self.mended = self._done if kind.mended and not state.resumed else None

    def _done_since(self, remainder: float, kind: str) -> Optional[float]:
        """What was worked off since the last point of the progress; None where no rate tells.

        A rate is of the last 15 s: what is left shows a part of the work one window before.
        """
        if not KINDS[kind].mended:
            return None
        done, self._done_before = self._done - self._done_before, self._done
        fall = self.progress.points[-1][1] - remainder if self.progress.points else 0.0
        late, self._late = self._late, done - min(max(fall, 0.0), done)
        return done + late

    def _breach(self, sight: Optional[Sight], state: BoostState) -> Optional[Breach]:
        if self._watchdog is None:
            return None
        drift: Tuple[str, ...] = ()
        with contextlib.suppress(ClusterTimeout, CommandFailed):
            drift = self._drift(state)
        return self._watchdog.look(sight, drift)

    def _over(self, state: BoostState) -> Optional[Breach]:
        """Whether time is up by the steady clock: one that was set back would give more of it."""
        if self._watchdog is None or state.request is None or self._steady() < self._time_up:
            return None
        return Breach(TIME, f"{duration(state.request.at_most_s)} are over")

    def _forbidden(self, state: BoostState) -> Optional[Breach]:
        """Whether a policy of the calendar holds that lets it not run; what cannot be read forbids nothing."""
        reason = ""
        if state.request is not None:
            with contextlib.suppress(TunerError):
                reason = self._service.slos.boost_refusal(state.request.kind)
        return Breach(CALENDAR, reason) if reason else None

    def _drift(self, state: BoostState) -> Tuple[str, ...]:
        """Keys of ours that others changed; their other knobs are no matter of a boost's."""
        if self._ours[0] != state.changes:
            self._ours = (state.changes, Journal(self._service.store).restores_of(state.changes))
        return interventions(self._dump, self._service.config.dump(), self._ours[1], ()).drift
