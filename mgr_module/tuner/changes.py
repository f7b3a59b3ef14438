"""Writes to the cluster from inside the mgr: the same plan, journal and lock as the command line's."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from ceph_tuner.core.ceph.commands import CommandConfig
from ceph_tuner.core.ceph.ports import Clock, Commander, Store
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.applier import Applier, Undone
from ceph_tuner.core.changes.forecast_pairs import ForecastPair, due, kept_pairs, outcome_record, outcomes_of
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.changes.plan import ChangePlan
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Release
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.profiles.in_force import in_force, translated_for
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.profiles.translation import Translation

NewLock = Callable[[Store, Clock, str], Lock]
"""Makes the cluster's lock for somebody, by the name that others are told."""


def own_lock(store: Store, clock: Clock, who: str) -> Lock:
    """The lock that this process holds."""
    return Lock(store, clock, this_process(who), may_live)


class Changes:
    """Applies profiles and takes changes back. Made for one command: the release may change under a running mgr."""

    def __init__(
        self,
        commander: Commander,
        store: Store,
        release: Release,
        version: str,
        who: str,
        clock: Optional[Clock] = None,
        new_lock: NewLock = own_lock,
    ) -> None:
        """Without a clock: the machine's."""
        self._clock = clock = clock or SystemClock()
        self._commander, self._config = commander, CommandConfig(commander)
        self._release, self._version = release, version
        self._applier = Applier(self._config, store, clock, new_lock(store, clock, who), release, who)

    def apply(self, profile: Profile, target: str, really: bool) -> Dict[str, Any]:
        """Bring a profile onto a target; without `really`, say what that would do."""
        translation = self.translated(profile, target)
        if not really:
            plan = self._applier.plan(target, translation.settings)
            return {**_plan(plan, profile.name, translation), "applied": False, "change": None}
        plan, entry = self._applier.plan_and_apply(target, translation.settings, f"profile {profile.name}")
        document = _plan(plan, profile.name, translation)
        return {**document, "applied": True, "change": entry.number if entry else None}

    def set(self, target: str, settings: Dict[str, Any], why: str) -> Optional[int]:
        """Write settings; give the change's number, None where they were in force already."""
        _, entry = self._applier.plan_and_apply(target, settings, why)
        return entry.number if entry else None

    def commands(self, target: str, settings: Dict[str, Any]) -> List[str]:
        """The exact commands that would bring settings onto a target."""
        return self._applier.plan(target, settings).commands

    def translated(self, profile: Profile, target: str) -> Translation:
        """A profile's settings for this cluster. Raises InputError where it cannot be translated."""
        return translated_for(profile, target, self._commander, self._config, self._release, self._version)

    def in_force(self, target: str, name: str) -> Profile:
        """What a target's first OSD has in force, as a profile: to read all of a large cluster's would hold the mgr."""
        return in_force(self._commander, self._config, self._release, self._version, target, name, most_osds=1).profile

    def rollback(self, really: bool, to: Optional[int], everything: bool) -> Dict[str, Any]:
        """Take back the newest change, or more; without `really`, say what that would do."""
        if really:
            return {"undone": [_undone(undo) for undo in self._applier.undo(to, everything)], "would": []}
        entries = [*self._applier.leftover(), *self._applier.undoable(to, everything)]
        if not entries:
            raise InputError("rollback", "no change in force", "a change that was applied by ceph-tuner")
        would = []
        for entry in entries:
            steps, drift = self._applier.preview_undo(entry)
            would.append(
                {
                    "change": entry.number,
                    "why": entry.why,
                    "who": entry.who,
                    "target": entry.target,
                    "commands": [step.command for step in steps],
                    "drift": [str(item) for item in drift],
                }
            )
        return {"undone": [], "would": would}

    def journal(self, history: History) -> List[Dict[str, Any]]:
        """Changes that are remembered, oldest first; where a twin was asked, what it said and what was measured."""
        entries = self._applier.history()
        pairs = kept_pairs(history, entries, self._clock.now()) if any(entry.forecast for entry in entries) else []
        return [
            {
                "forecast": [_pair(pair) for pair in pairs if pair.subject == f"change {entry.number}"],
                "change": entry.number,
                "state": entry.state,
                "at": entry.at,
                "who": entry.who,
                "why": entry.why,
                "target": entry.target,
                "trial": entry.trial,
                "note": entry.note,
            }
            for entry in entries
        ]

    def keep_outcomes(self, history: History) -> None:
        """Keep what was measured after changes about which a twin had been asked: the minutes are gone in two hours.

        Writes to the history alone, which takes no lock.
        """
        entries = self._applier.history()
        if any(entry.forecast for entry in entries):
            outcomes = outcomes_of(entries, history.outcomes())
            new_outcomes = due(entries, outcomes, history.windows(self._clock.now()))
            for entry in entries:
                if entry.number in new_outcomes:
                    history.add_outcome(outcome_record(entry, new_outcomes[entry.number]))


def _plan(plan: ChangePlan, name: str, translation: Translation) -> Dict[str, Any]:
    return {
        "profile": name,
        "target": plan.target,
        "osds": list(plan.osds),
        "changes": [
            {"who": step.who, "name": step.name, "old": step.old, "new": step.new, "command": step.command}
            for step in plan.steps
        ],
        "warnings": [*translation.notes, *plan.warnings],
    }


def _pair(pair: ForecastPair) -> Dict[str, Any]:
    interval = pair.interval
    return {
        "metric": pair.metric,
        "level": pair.level,
        "predicted": interval.value,
        "low": interval.low,
        "high": interval.high,
        "measured": pair.measured,
        "inside": pair.inside,
    }


def _undone(undo: Undone) -> Dict[str, Any]:
    return {
        "change": undo.entry.number,
        "why": undo.entry.why,
        "drift": [str(item) for item in undo.drift],
        "unseen": list(undo.unseen),
    }
