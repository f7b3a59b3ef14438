"""What the tests of the automatic mode share: a executor on the fake monitors, and windows as a trial meets them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, UNKNOWN, WORSE, Effect, Rollout, Stage
from ceph_tuner.core.autopilot.events import Answered, Event, Learn, Look, Note
from ceph_tuner.core.autopilot.executor import Executor
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import AutopilotState
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import APPLIED, Entry
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.measure.metrics import METRICS
from monitors import TENTACLE, ManualClock, MemoryStore, Monitors

P95, RECOVERY = "client.p95_ms", "recovery.objects_s"
SETTINGS = {"osd_max_scrubs": 2}
STAGES = (Stage(("osd.0",), (0,), (1, 2, 3)), Stage(("osd.1", "osd.2"), (0, 1, 2), (3,)), Stage(("osd",), (0, 1, 2, 3)))
ROLLOUT = Rollout("osd", STAGES)
ALTERNATING = Rollout("osd", STAGES[-1:], alternating=True)
QUICK = Policy(baseline_windows=2, least_windows=2, most_windows=6, hold_windows=2, trials=3)


UNSEEN: Optional[float] = None


def effect(metric: str, verdict: str, change: Optional[float] = 0.2, windows: int = 5) -> Effect:
    """An effect of that verdict; `change` is its size, UNSEEN for one that was not seen."""
    better = -1.0 if METRICS[metric].lower_is_better else 1.0
    direction, half = {BETTER: (better, 0.1), WORSE: (-better, 0.1), ALIKE: (0.05, 0.02), UNKNOWN: (0.0, 0.5)}[verdict]
    if change is None:
        return Effect(metric, None, -math.inf, math.inf, windows, verdict)
    middle = direction * change
    return Effect(metric, middle, middle - half, middle + half, windows, verdict)


def seen(at: float = 0.0, **facts: Any) -> Look:
    """A window in which a hard objective on latency is missed, and nothing stands in the way."""
    usual: Dict[str, Any] = {
        "means": {P95: 30.0},
        "missed": ("client.p95_ms 30, wanted 20 at most",),
        "metrics_missed": (P95,),
        "hard_metrics": (P95,),
        "allowed": {P95: 0.05},
        "condition": {"osds": 4},
    }
    usual["pairs"] = facts.get("windows", 0)
    return Look(at, **{**usual, **facts})


def answer(at: float = 0.0, rollout: Rollout = ROLLOUT, **settings: Any) -> Answered:
    return Answered(at, settings or SETTINGS, "more room for clients", rollout)


@dataclass
class Recorder:
    """Logbook, optimiser and guard of an executor: has what it was told, once the store has it."""

    store: MemoryStore
    notes: List[Note] = field(default_factory=list)
    outcomes: List[Event] = field(default_factory=list)
    learned: List[Learn] = field(default_factory=list)
    asked: int = 0
    guarded: List[bool] = field(default_factory=list)
    unreadable: List[Exception] = field(default_factory=list)
    """What reading the past raises, one after the other."""

    def remember(self) -> None:
        if self.unreadable:
            raise self.unreadable.pop(0)

    def note(self, note: Note, at: float) -> None:
        self._store()
        self.notes.append(note)

    def came_of(self, outcome: Event) -> None:
        self._store()
        self.outcomes.append(outcome)

    def learn(self, result: Learn, at: float) -> None:
        self._store()
        self.learned.append(result)

    def start(self, state: AutopilotState, policy: Policy) -> None:
        self.asked += 1

    def watch(self, state: AutopilotState) -> None:
        self.guarded.append(state.on_cluster)

    def _store(self) -> None:
        self.store.set("audit", str(len(self.notes) + len(self.outcomes) + len(self.learned)))


class WatchedStore(MemoryStore):
    """Tells what is about to be stored; reads can fail as well."""

    def __init__(self, monitors: Monitors) -> None:
        super().__init__(lambda: monitors.before_write(), lambda: monitors.after_write())
        self.before_read: Callable[[], None] = lambda: None
        self.on_set: Callable[[str, str], None] = lambda key, value: None
        self.stranded: Set[str] = set()
        """What could not be removed: a claim stands until it expires then."""

    def get(self, key: str) -> Optional[str]:
        self.before_read()
        return super().get(key)

    def keys(self, prefix: str) -> List[str]:
        self.before_read()
        return super().keys(prefix)

    def set(self, key: str, value: str) -> None:
        self.on_set(key, value)
        super().set(key, value)

    def remove(self, key: str) -> None:
        try:
            super().remove(key)
        finally:
            self.stranded.update({key} & self.values.keys())


class Field:
    """A cluster with its clock, and the processes that are alive on it."""

    def __init__(self, monitors: Optional[Monitors] = None) -> None:
        self.monitors = monitors or Monitors(osds=4)
        self.store = WatchedStore(self.monitors)
        self.monitors.store = self.store
        self.clock = ManualClock()
        self.alive: Set[str] = set()
        self.locks: Dict[str, Lock] = {}
        self.recorder = Recorder(self.store)

    def hands(self, name: str) -> Tuple[Applier, Lock]:
        self.alive.add(name)
        lock = Lock(self.store, self.clock, Holder(name), lambda holder: holder.name in self.alive, heartbeat=False)
        self.locks[name] = lock
        return Applier(self.monitors, self.store, self.clock, lock, TENTACLE, name), lock

    def executor(self, name: str = "mgr.a", policy: Policy = QUICK) -> Executor:
        told = self.recorder
        hands = lambda: self.hands(name)  # noqa: E731
        return Executor(self.store, hands, told, told, (told,), self.clock, lambda: policy, "mgr")

    def entries(self) -> List[Entry]:
        return self.hands("reader")[0].history()

    def on_trial(self) -> List[Entry]:
        return [entry for entry in self.entries() if entry.trial and entry.state == APPLIED]
