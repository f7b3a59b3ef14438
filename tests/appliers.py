"""What the tests of the applier share: appliers on the fake monitors, and how they die."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Mapping, Optional

from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.changes.osd_poll import Progress, silent
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Value, nine
from ceph_tuner.core.knobs.settings import format_settings
from monitors import TENTACLE, ManualClock, Monitors, Table

CUSTOM: Dict[str, Value] = nine((0.3, 1, 0), (0.2, 2, 0.5), (0.1, 3, 0.4))
OTHER: Dict[str, Value] = nine((0.1, 5, 0.6), (0.1, 2, 0.5), (0.1, 3, 0.4))
FULL = {**CUSTOM, "osd_max_scrubs": 1}
TABLES: Dict[str, Table] = {
    "nothing": {},
    "a built-in profile": {("osd", PROFILE): "high_client_ops", ("osd", "osd_max_scrubs"): "3"},
    "custom": {
        ("osd", PROFILE): "custom",
        **{("osd", name): text for name, text in format_settings(CUSTOM, TENTACLE).items()},
    },
}
LIMIT = "osd_mclock_scheduler_client_lim"


class Killed(BaseException):
    """kill -9: whatever the process still wants to do does not happen."""


def applier(
    monitors: Monitors, name: str = "one", clock: Optional[ManualClock] = None, progress: Progress = silent
) -> Applier:
    clock = clock or ManualClock()
    # nobody but the process that asks is alive: what another left was left by a dead one
    lock = Lock(monitors.store, clock, Holder(name), lambda holder: holder.name == name, heartbeat=False)
    return Applier(monitors, monitors.store, clock, lock, TENTACLE, name, progress=progress)


@dataclass
class Kill:
    """Dies at the n-th write: before the monitors have it, or (`landed`) before their answer is read."""

    at: int
    landed: bool = False
    count: int = 0
    dead: bool = False

    def before(self) -> None:
        self.count += 1
        self._die_if(self.dead or (self.count == self.at and not self.landed))

    def after(self) -> None:
        self._die_if(self.count == self.at and self.landed)

    def _die_if(self, now: bool) -> None:
        if now:
            self.dead = True
            raise Killed


def kill_at(monitors: Monitors, at: int, landed: bool = False) -> Kill:
    kill = Kill(at, landed)
    monitors.before_write, monitors.after_write = kill.before, kill.after
    return kill


def survive(monitors: Monitors) -> None:
    monitors.before_write = monitors.after_write = lambda: None


def apply(monitors: Monitors, target: str, wanted: Mapping[str, object], trial: bool = False) -> Optional[int]:
    one = applier(monitors)
    entry = one.apply(one.plan(target, wanted), trial=trial)
    return entry.number if entry else None
