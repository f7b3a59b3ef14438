"""Tells the regime of the cluster and of scopes at each sample, and keeps what changed in the history."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.metrics import Scope
from ceph_tuner.core.measure.sample import Sample
from ceph_tuner.core.measure.scopes import Members
from ceph_tuner.core.measure.timeline import NO_POLICY, POLICY, REGIME, TimelineEntry, newest, timeline
from ceph_tuner.core.regimes.bounds import (
    BOUNDS_KEY,
    DEFAULT,
    PolicyMarker,
    RegimeBounds,
    parse_bounds,
    regime_of,
    stored_bounds,
)
from ceph_tuner.core.regimes.telling import AnyTurn, RegimeState, tell, turns

from .policy_markers import without_policy
from .slos import SloBook

READ_AGAIN_S = 600.0
"""How often capacities and the stored bounds are read again."""
TIMELINE_SHOWN = 20


class RegimeWatch:
    """`sampled` is called by the sampling thread and waits for nothing; `keep` by the modes' own thread."""

    def __init__(
        self,
        store: Store,
        history: Callable[[], History],
        capacity_iops: Callable[[Optional[Members]], float],
        slos: SloBook,
        now: Callable[[], float],
    ) -> None:
        """`capacity_iops`: what the OSDs of a scope (None: all) can do."""
        self._store, self._history, self._capacity_iops = store, history, capacity_iops
        self._slos, self._now = slos, now
        self._telling = threading.Lock()
        self._bounds: Optional[RegimeBounds] = None
        """None: not read yet, so no regime is told. By others than the stored ones it would be another regime."""
        self._read_at = float("-inf")
        self._capacities: Dict[str, float] = {}
        self._states: Dict[str, RegimeState] = {}
        self._values: Dict[str, Mapping[str, float]] = {}
        """Of the newest sample, by scope."""
        self._kept: Optional[Dict[Tuple[str, str], str]] = None
        """What the history has as the newest, by kind and scope; None: it was not read yet."""
        self.problem = ""
        """Why the stored bounds are not those in use."""

    def sampled(self, sample: Optional[Sample], scopes: Mapping[Scope, Members]) -> None:
        """Take a sample; None: there was none."""
        if sample is None:
            return
        parts = {"": sample, **{str(scope): sample.of(scope) for scope in scopes}}
        policy = self._slos.policy_seen(sample.at)
        with self._telling:
            if self._bounds is None:
                return
            self._values = {name: part.values for name, part in parts.items() if part is not None}
            self._states = {
                name: tell(
                    self._states.get(name), part.at, part.values, self._bounds, self._capacities.get(name), policy
                )
                for name, part in parts.items()
                if part is not None
            }

    def keep(self, scopes: Mapping[Scope, Members]) -> None:
        """Write down what changed, and now and then read what may be other by now. Raises TunerError."""
        names = {"", *map(str, scopes)}
        if not 0 <= self._now() - self._read_at < READ_AGAIN_S or names != set(self._capacities):
            self._read(scopes)
        if self._kept is None:
            self._kept = {key: entry.name for key, entry in newest(timeline(self._history())).items()}
        for entry in self._entries():
            key = (entry.kind, entry.scope)
            if self._kept.get(key) != entry.name:
                self._history().add_change(entry.to_dict())
                self._kept[key] = entry.name

    @property
    def bounds(self) -> RegimeBounds:
        """Those in use; the default ones before any were read."""
        with self._telling:
            return self._bounds or DEFAULT

    def set_bounds(self, text: str, default: bool) -> None:
        """Take other bounds, as JSON, or the default ones. Raises InputError."""
        if bool(text) == default:
            raise InputError("book bounds", "both" if default else "nothing", "-i FILE (JSON), or --default")
        if default:
            self._store.remove(BOUNDS_KEY)
        else:
            bounds = parse_bounds(read_json(text, "the bounds"))
            self._store.set(BOUNDS_KEY, json.dumps(bounds.to_dict()))
        self._use_stored()

    def state_of(self, scope: str = "") -> Optional[RegimeState]:
        """What holds in a scope, or in the whole cluster; None before a sample told it."""
        with self._telling:
            return self._states.get(scope)

    def turns(self, scope: str = "") -> Tuple[AnyTurn, ...]:
        """What would turn each marker of a scope, or of the whole cluster; empty before a sample told them."""
        policy_turns = self._policy_turns()
        with self._telling:
            state = self._states.get(scope)
            if state is None:
                return ()
            capacity = self._capacities.get(scope)
            return turns(state, self._values.get(scope, {}), self._bounds or DEFAULT, capacity, policy_turns)

    def held(self) -> List[Dict[str, Any]]:
        """The regime of the cluster and of each scope, since when, by what, and when the calendar turns it."""
        moments = [at for at in self._policy_turns().values() if at is not None]
        turns_at = min(moments, default=None)
        with self._telling:
            return [{"scope": scope, **state.to_dict(), "turns_at": turns_at} for scope, state in self._states.items()]

    def without_policy(self) -> Tuple[PolicyMarker, ...]:
        """Markers whose policy the calendar does not have; none while nobody can read that."""
        names = self._slos.policy_names_seen()
        return () if names is None or not self._were_read() else without_policy(self.bounds, names)

    def tells(self, regime: str) -> bool:
        """Whether such a regime can be told, by the bounds in use and the calendar; before they are read, any may."""
        return not self._were_read() or self.bounds.tells(regime, self._slos.policy_names_seen() or ())

    def _were_read(self) -> bool:
        with self._telling:
            return self._bounds is not None

    def named(self, regime: str) -> str:
        """The regime as it is told, its markers in order. Raises InputError for one that never is, else TunerError."""
        if not self._were_read():
            self._use_stored()
        return regime_of(regime, self.bounds, "regime", self._slos.policy_names_seen() or ())

    def unnamed_policy(self, regime: str) -> Optional[str]:
        """The policy that holds now and which the name of a regime lacks; empty where there is none.

        None where nobody knows.
        """
        return "" if self.bounds.policy_of(regime) is not None else self._slos.policy_seen(self._now())

    def _policy_turns(self) -> Mapping[str, Optional[float]]:
        return self._slos.turns_seen([marker.policy for marker in self.bounds.of_policies], self._now())

    def document(self) -> Dict[str, Any]:
        """The regimes that hold, by what, what changed of late, and the bounds."""
        with self._telling:
            capacities, bounds = dict(self._capacities), self._bounds or DEFAULT
        changes = [entry.to_dict() for entry in timeline(self._history())]
        return {
            "regimes": self.held(),
            "bounds": bounds.to_dict(),
            "capacity_iops": capacities,
            "timeline": changes[-TIMELINE_SHOWN:],
            "problem": self.problem,
        }

    def _entries(self) -> List[TimelineEntry]:
        with self._telling:
            entries = [
                TimelineEntry(state.since, REGIME, scope, state.name, state.evidence)
                for scope, state in self._states.items()
            ]
        try:
            policy, _ = self._slos.policy()
        except InputError:
            # objectives that nobody can read: regimes are told without them
            return entries
        # where there never was a calendar nothing is said of one
        if policy or (POLICY, "") in (self._kept or {}):
            entries.append(TimelineEntry(self._now(), POLICY, "", policy or NO_POLICY))
        return entries

    def _read(self, scopes: Mapping[Scope, Members]) -> None:
        self._use_stored()
        capacities = {"": self._capacity_iops(None)}
        capacities.update((str(scope), self._capacity_iops(members)) for scope, members in scopes.items())
        with self._telling:
            self._capacities, self._read_at = capacities, self._now()

    def _use_stored(self) -> None:
        """Raises TunerError where the monitors do not answer; bounds that cannot be read are the default ones."""
        try:
            bounds, self.problem = stored_bounds(self._store), ""
        except InputError as fault:
            bounds, self.problem = DEFAULT, str(fault)
        with self._telling:
            if bounds != self._bounds:
                # by other bounds it is another question
                self._bounds, self._states = bounds, {}
