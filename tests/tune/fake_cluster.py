"""A small analytic cluster: settings in, a window out. Stands in for Ceph where the loop itself is what is tested."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Callable, Optional

from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.releases import TENTACLE, Settings
from ceph_tuner.core.measure.sample import Measure

PROFILE = "osd_mclock_profile"
CLIENT, RECOVERY = "osd_mclock_scheduler_client", "osd_mclock_scheduler_background_recovery"


class FakeCluster:
    """Clock, work, lookout, writer and report in one. `at_phase` is called at each phase of each run."""

    def __init__(self, at_phase: Optional[Callable[[Run, str], None]] = None) -> None:
        self.time = 1000.0
        self.config: dict = {}
        self.before: dict = {}
        self.events: list = []
        self.working = False
        self.health = "HEALTH_OK"
        self.down = 0.0
        self.at_phase = at_phase or (lambda run, phase: None)
        self.refuse: Callable[[Settings], Optional[TunerError]] = lambda settings: None
        self.unprepared: list = []
        self.answers = True
        self.done_trials: list = []

    # the cluster itself: a limit on recovery helps clients, weight a little, and costs recovery in proportion
    def seen(self) -> dict:
        settings = {**TENTACLE.profiles[self.config.get(PROFILE, "balanced")]} if self.custom is None else self.custom
        limit = settings[RECOVERY + "_lim"] or 1.0
        weight = settings[CLIENT + "_wgt"]
        share = settings[RECOVERY + "_res"]
        p95 = 60 + 40 * limit + 5 * share - 2 * min(weight, 16) ** 0.5
        return {"client.p95_ms": p95, "client.mean_ms": p95 / 3, "recovery.bytes_s": 26e6 * min(limit, 0.4 + limit / 2)}

    @property
    def custom(self) -> Optional[Mapping]:
        return self.config if CLIENT + "_res" in self.config else None

    # clock
    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += max(seconds, 0.001)

    # work
    def prepare(self) -> None:
        self.events.append("prepare")
        if self.unprepared:
            raise self.unprepared.pop(0)

    def start(self) -> None:
        self.events.append("start")
        self.working = True

    def observe(self) -> dict:
        return {}

    def measure(self, start: float, end: float) -> dict:
        assert self.working
        assert end > start
        self.events.append("measure")
        return {name: Measure(value, 0.05 * value, 5) for name, value in self.seen().items()}

    def remarks(self) -> list:
        return []

    def stop(self) -> None:
        self.events.append("stop")
        self.working = False

    # lookout
    def look(self) -> Optional[Sight]:
        if not self.answers:
            return None
        return Sight(self.time, self.health, {"osds.down": self.down, "client.p95_ms": self.seen()["client.p95_ms"]})

    # writer
    def apply(self, settings: Settings) -> None:
        assert not self.before, "the last settings were not taken back"
        error = self.refuse(settings)
        if error is not None:
            raise error
        self.before = {"config": dict(self.config)}
        self.config.update(settings)
        self.events.append("apply")

    def undo(self) -> None:
        if self.before:
            self.config = self.before.pop("config")
            self.events.append("undo")

    def keep(self) -> None:
        self.events.append("keep")

    # report
    def phase(self, run: Run, number: int, total: int, phase: str, seconds: float) -> None:
        self.at_phase(run, phase)

    def live(self, values: Mapping) -> None:
        pass

    def done(self, trial: Trial, number: int, total: int) -> None:
        self.done_trials.append((number, total))


@contextlib.contextmanager
def no_interrupts() -> Iterator[None]:
    yield
