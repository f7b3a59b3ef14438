"""What happens on a flight by chance: faults, operators' deeds, and what the optimiser answers."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from flight_laws import P95, Laws
from flight_mgr import MgrProcess, Trouble
from flight_world import OSDS, World

from ceph_tuner.core.autopilot.state import APPROVE, AUTO, DRY_RUN, OFF, WAITING
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.regimes.bounds import DEFAULT, PolicyMarker, RegimeBounds

GOOD = [
    nine((0.7, 4, 0), (0.1, 1, 0.3), (0.0, 1, 0.2)),
    nine((0.6, 8, 0), (0.2, 1, 0.5), (0.0, 1, 0.3)),
    nine((0.8, 6, 0), (0.05, 1, 0.25), (0.0, 1, 0.15)),
]
MEDIOCRE = [nine((0.5, 1, 0), (0.5, 1, 0), (0.0, 1, 0.9)), nine((0.45, 1, 0), (0.45, 1, 0), (0.05, 1, 0.9))]
HARMFUL = [
    nine((0.05, 1, 0.12), (0.5, 8, 0), (0.2, 8, 0)),
    nine((0.0, 1, 0.2), (0.6, 10, 0), (0.4, 10, 0)),
    nine((0.02, 1, 0.05), (0.3, 1, 0), (0.3, 1, 0)),
]
OUT_OF_RANGE: List[Dict[str, Any]] = [
    {"osd_mclock_scheduler_client_res": 7.0},
    {"osd_mclock_scheduler_client_wgt": -5},
    {"osd_max_scrubs": 10**40},
    {**GOOD[0], "osd_mclock_scheduler_client_lim": -1.0},
    {"no_such_option": 1},
    {"pg_num": 64},
]
MALFORMED: List[Any] = [
    {"osd_max_scrubs": [1]},
    {"osd_max_scrubs": None},
    {"osd_mclock_scheduler_client_res": "many"},
    {"osd_mclock_scheduler_client_res": float("nan")},
    [],
    "settings",
]
ANSWERS = {
    "good": 10,
    "mediocre": 4,
    "harmful": 5,
    "out of range": 2,
    "malformed": 2,
    "none": 1,
    "late": 2,
    "hangs": 1,
    "dies": 1,
    "nonsense": 2,
}
"""Kinds of answers of the optimiser, with their weights."""
OFFICE, OFFICE_HOURS = "office", ", ".join(f"{hour:02}:00-{hour + 2:02}:00" for hour in range(1, 23, 4))
"""A policy of the calendar: two hours in four."""
REGIMES = RegimeBounds(
    (PolicyMarker(OFFICE, OFFICE), *(marker for marker in DEFAULT.markers if marker.name != "busy")), DEFAULT.dwell_s
)


class Optimiser:
    """The worker's program: a script that gives the answer that was drawn for it, and draws none itself."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.path = directory / "optimiser"
        self._answer, self._chance = directory / "answer.json", chance
        self.kind = ""

    def draw(self) -> str:
        """Draw the next answer; returns its kind."""
        self.kind = self._chance.choices(list(ANSWERS), list(ANSWERS.values()))[0]
        settings: Any = self._chance.choice(
            {
                "mediocre": MEDIOCRE,
                "harmful": HARMFUL,
                "out of range": OUT_OF_RANGE,
                "malformed": MALFORMED,
            }.get(self.kind, GOOD)
        )
        proposals = [] if self.kind == "none" else [{"settings": settings, "why": f"a {self.kind} one"}]
        verdict = {"state": "infeasible", "reason": "nothing better is known"}
        text = json.dumps({"version": 1, "ok": True, "proposals": proposals, "verdict": verdict, "best": None})
        self._answer.write_text(text)
        deed = {"hangs": "sleep 60", "dies": "kill -9 $$", "nonsense": 'echo \'{"version": 1, "ok": 5}\''}
        self.path.write_text(f"#!/bin/sh\ncat > /dev/null\n{deed.get(self.kind, f'cat {self._answer}')}\n")
        self.path.chmod(0o755)
        return self.kind


class Chance:
    """Draws what happens next. `kill` ends the active mgr at once."""

    def __init__(self, world: World, trouble: Trouble, laws: Laws, bounds: Tuple[float, float]) -> None:
        """`bounds`: between which the hard objective on latency is set, in ms."""
        self._world, self._trouble, self._laws, self._bounds = world, trouble, laws, bounds
        self._chance = random.Random(world.random.random())
        self._later: List[Tuple[float, Callable[[], None]]] = []
        self.counts = laws.counts
        self.faults: Dict[str, Tuple[int, Callable[[], None]]] = {
            "mgr killed at a write": (3, self._kill_soon),
            "mgr killed while a trial is written": (6, self._kill_in_trial),
            "OSD down for a while": (3, self._osd_down),
            "OSD restarts": (1, self._osd_restarts),
            "monitor refuses": (2, lambda: self._monitor("refused", 5.0, 90.0)),
            "monitor silent": (2, lambda: self._monitor("lost", 5.0, 40.0)),
            "answers lost": (2, lambda: self._monitor("unheard", 5.0, 25.0)),
            "store refuses writes": (3, lambda: self._monitor("store", 5.0, 120.0)),
            "store refuses while a trial is written": (4, self._fail_in_trial),
            "samples missing": (3, self._blind),
            "clock step": (2, self._clock),
            "load doubles": (2, self._load),
            "OSD added": (1, self._osd_added),
            "near-full": (2, lambda: self._check("OSD_NEARFULL", "HEALTH_WARN")),
            "HEALTH_ERR": (2, lambda: self._check("OSD_SCRUB_ERRORS", "HEALTH_ERR")),
            "slow operations": (3, self._slow),
        }

    def happen(self, rate: float, seconds: float) -> None:
        """Let time pass: what is due ends, and with so many faults an hour a new one begins."""
        now = self._world.now()
        due = [deed for at, deed in self._later if at <= now]
        self._later = [entry for entry in self._later if entry[0] > now]
        for deed in due:
            deed()
        if self._chance.random() < rate * seconds / 3600.0:
            name = self._chance.choices(list(self.faults), [weight for weight, _ in self.faults.values()])[0]
            self.counts[f"fault: {name}"] += 1
            self.faults[name][1]()

    def calm_down(self) -> None:
        """End everything that is wrong."""
        for _, deed in self._later:
            deed()
        self._later.clear()
        self._trouble.until = self._trouble.blind_until = 0.0
        self._trouble.kill_after = self._trouble.kill_when_writing = None
        self._trouble.fail_after = self._trouble.fail_when_writing = None

    def _after(self, low: float, high: float, deed: Callable[[], None]) -> None:
        self._later.append((self._world.now() + self._chance.uniform(low, high), deed))

    def _kill_soon(self) -> None:
        self._trouble.landed = self._chance.random() < 0.5
        self._trouble.kill_after = self._chance.randint(1, 5)

    def _kill_in_trial(self) -> None:
        self._trouble.landed = self._chance.random() < 0.5
        self._trouble.kill_when_writing = self._chance.randint(1, 40)

    def _fail_in_trial(self) -> None:
        self._trouble.fail_when_writing = self._chance.randint(1, 40)

    def _osd_down(self) -> None:
        osd = self._chance.randrange(OSDS)

        def returns() -> None:
            self._world.down.discard(osd)
            self._world.twin.restart(osd)
            self._world.returned = osd

        self._world.down.add(osd)
        self._after(20.0, 600.0, returns)

    def _osd_restarts(self) -> None:
        self._world.twin.restart(self._chance.randrange(OSDS))

    def _monitor(self, kind: str, low: float, high: float) -> None:
        self._trouble.kind = kind
        self._trouble.until = self._world.now() + self._chance.uniform(low, high)

    def _blind(self) -> None:
        self._trouble.blind_until = self._world.now() + self._chance.uniform(4.0, 180.0)

    def _clock(self) -> None:
        self._world.offset += self._chance.choice([-3600.0, -60.0, -3.0, 3.0, 60.0, 3600.0])

    def _load(self) -> None:
        def ends() -> None:
            self._world.factor = 1.0
            self._world.change_work()

        self._world.factor = self._chance.choice([0.4, 1.6, 2.0])
        self._world.change_work()
        self._after(300.0, 3600.0, ends)

    def _osd_added(self) -> None:
        if len(self._world.twin.osds) == OSDS:
            self._world.add_osd()

    def _check(self, name: str, severity: str) -> None:
        def ends() -> None:
            self._world.checks.pop(name, None)

        self._world.checks[name] = severity
        self._after(10.0, 900.0, ends)

    def _slow(self) -> None:
        def ends() -> None:
            self._world.slow = 0

        self._world.slow = self._chance.randint(1, 50)
        self._after(5.0, 120.0, ends)


class Operators:
    """People at work beside the tuner, who in the long run want it to go on."""

    def __init__(self, world: World, laws: Laws, bounds: Tuple[float, float], book: bool = False) -> None:
        """`book`: they have one, boosts and a calendar as well."""
        self._world, self._laws, self._bounds, self._book = world, laws, bounds, book
        self._chance = random.Random(world.random.random())
        self._look_at = 0.0
        self.deeds: Dict[str, Tuple[int, Callable[[MgrProcess], Any]]] = {
            "pause": (2, lambda process: process.modes.tell("pause", "for lunch")),
            "resume": (1, lambda process: process.modes.tell("resume")),
            "off": (1, lambda process: process.modes.switch(OFF)),
            "dry-run": (1, lambda process: process.modes.switch(DRY_RUN)),
            "approve mode": (2, lambda process: process.modes.switch(APPROVE)),
            "retry": (2, lambda process: process.modes.tell("retry")),
            "rollback": (2, lambda process: process.modes.rollback(True, None, False)),
            "rollback of all": (1, lambda process: process.modes.rollback(True, None, True)),
            "profile applied": (1, self._apply),
            "SLO changed": (3, self._slo),
            "changes a key of the trial": (2, self._ours),
            "changes another knob": (2, self._other),
            "explain": (2, lambda process: process.modes.document()),
            "boost": (6 * book, self._boost),
            "boost cancelled": (2 * book, lambda process: process.modes.boosts.cancel("enough")),
            "book off": (1 * book, lambda process: process.modes.books.switch(OFF)),
            "page pinned": (2 * book, lambda process: process.modes.books.pin(self._page(process))),
            "page unpinned": (1 * book, lambda process: process.modes.books.unpin(self._page(process))),
            "page struck": (1 * book, lambda process: process.modes.books.strike(self._page(process))),
            "other bounds of regimes": (2 * book, self._regime_bounds),
        }

    def work(self, process: MgrProcess, rate: float, seconds: float) -> None:
        """Do something now and then: so many deeds an hour."""
        if self._chance.random() < rate * seconds / 3600.0:
            name = self._chance.choices(list(self.deeds), [weight for weight, _ in self.deeds.values()])[0]
            self._laws.counts[f"operator: {name}"] += 1
            process.command(lambda: self.deeds[name][1](process))
        if self._world.now() >= self._look_at:
            self._look_at = self._world.now() + self._chance.uniform(120.0, 900.0)
            process.command(lambda: self.go_on(process))

    def go_on(self, process: MgrProcess) -> None:
        """Have it on its way again."""
        state, modes = process.driver.state, process.modes
        if process.service.slos.read() is None:
            self._slo(process)
        if state.phase == WAITING:
            what = self._chance.choice(["accept", "accept", "reject"])
            self._laws.counts[f"operator: {what}"] += 1
            process.command(lambda: modes.tell(what))
        elif state.mode not in (AUTO, APPROVE) or (state.mode == APPROVE and self._chance.random() < 0.3):
            process.command(lambda: modes.switch(AUTO))
        elif state.paused and state.paused_until is None:
            process.command(lambda: modes.tell("resume"))
        elif state.gave_up:
            process.command(lambda: modes.tell("retry"))

    def _slo(self, process: MgrProcess) -> None:
        bound = self._chance.uniform(*self._bounds)
        if self._book:
            self._calendar(process)
        process.service.slo_commands.set(f"{P95}<={bound:.0f}", False, 1.0, "")
        process.service.slo_commands.set("recovery.objects_s>=1", True, 1.0, "")

    def _calendar(self, process: MgrProcess) -> None:
        """Another bound at other hours; now and then the policy has another name than the marker says."""
        name = self._chance.choice([OFFICE, OFFICE, OFFICE, "day"])
        objective = f"{P95} <= {self._chance.uniform(*self._bounds):.0f} ms"
        policy = {"name": name, "hours": OFFICE_HOURS, "objectives": [objective]}
        document = {"objectives": ["recovery.objects_s >= 1"], "calendar": {"policies": [policy]}}
        process.service.slo_commands.set("", False, 1.0, json.dumps(document), really=True)

    def _page(self, process: MgrProcess) -> int:
        return int(self._chance.choice(process.modes.books.export()["pages"])["number"])

    def _regime_bounds(self, process: MgrProcess) -> None:
        """Regimes are told later or earlier, or without the calendar."""
        bounds = replace(REGIMES, dwell_s=self._chance.choice([10.0, 60.0, 120.0]))
        if self._chance.random() < 0.25:
            bounds = replace(bounds, markers=bounds.of_metrics)
        process.modes.books.set_bounds(json.dumps(bounds.to_dict()), False)

    def _boost(self, process: MgrProcess) -> None:
        at_most = self._chance.choice(["1min", "10min", "1h"])
        keep = self._chance.choice(["", f"{P95}<={self._chance.uniform(*self._bounds):.0f}"])
        sample = process.sampler.latest()
        there = [name for name, kind in KINDS.items() if sample is not None and kind.left_in(sample.values)]
        process.modes.boosts.begin(self._chance.choice(there or ["recovery"]), at_most=at_most, keep=keep)

    def _apply(self, process: MgrProcess) -> None:
        name = self._chance.choice(["high_client_ops", "high_recovery_ops"])
        process.modes.by_hand(True, f"profile {name}", lambda: process.service.profile_apply(name, "osd", True))

    def _ours(self, process: MgrProcess) -> None:
        """A key that is on trial, if one is, gets another value than any that we know."""
        wanted = str(self._chance.randint(50, 400))
        written = [step.key for entry in self._laws.entries() if entry.trial for step in entry.steps]
        weights = sorted(key for key in written if key[1].endswith("_wgt"))
        if weights:
            self._laws.by_hand(*self._chance.choice(weights), wanted)

    def _other(self, process: MgrProcess) -> None:
        who = self._chance.choice(["osd", "osd.1", "osd/host:h1"])
        value = self._chance.choice([str(self._chance.randint(1, 9)), None])
        self._laws.by_hand(who, "osd_pg_max_concurrent_snap_trims", value)
