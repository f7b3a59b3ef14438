"""Who decides in `day.py`: one setting, the clock, the book or an oracle."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from functools import cache
from itertools import product
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from day_kinds import ONE_BOUND, Kind
from day_pages import predicted
from day_world import (
    BUSY,
    LOOK_S,
    PEAK_H,
    RATE,
    DayWorld,
    Situation,
    day_told,
    left_of,
    rate_at,
    with_work,
)
from flight_mgr import MgrProcess, Trouble
from flight_world import p95_ms, seen_by_clients

from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.core.book.book import PAGES_KEY, Book
from ceph_tuner.core.book.choice import OF_THE_TWIN
from ceph_tuner.core.book.events import ON
from ceph_tuner.core.book.page import TRIAL, VALIDATED, Page
from ceph_tuner.core.boost.rules import OPTION as BOOST_RULES
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.goals.slo_calendar import BASE
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY
from ceph_tuner.twin.simulation import Simulation
from tuner.options import DEFAULTS

MARGIN = 0.92
"""Share of the objective that pages of the grid keep."""
AS_FAST = 0.75
"""Of the recovery of `balanced`, what every page must recover at the least."""
_WEIGHTS = {"degraded": 4.0, "scrub": 2.0, "snaptrim": 1.0}
"""What an object of that work is worth where settings are chosen; copies that are lacking come first in any case."""
TICK_S, PROBE_S = 10.0, 60.0
GRID: Dict[str, Settings] = {
    **{name: {PROFILE: name} for name in ("balanced", "high_client_ops", "high_recovery_ops")},
    "clients, hardly more": nine((0.8, 4, 0), (0.05, 1, 0.1), (0.0, 1, 0.1)),
    "clients": nine((0.7, 4, 0), (0.1, 1, 0.3), (0.0, 1, 0.2)),
    "clients, a little": nine((0.6, 8, 0), (0.2, 1, 0.4), (0.05, 1, 0.2)),
    "halves": nine((0.5, 4, 0), (0.3, 1, 0.6), (0.1, 1, 0.3)),
    "recovery, limited": nine((0.4, 2, 0), (0.5, 2, 0.7), (0.1, 1, 0.2)),
    "recovery": nine((0.3, 1, 0), (0.6, 4, 0), (0.1, 1, 0.3)),
    "scrub, limited": nine((0.5, 4, 0), (0.1, 1, 0.3), (0.2, 2, 0.5)),
    "scrub": nine((0.3, 1, 0), (0.2, 1, 0.4), (0.4, 4, 0)),
    "background": nine((0.2, 1, 0), (0.4, 4, 0), (0.4, 4, 0)),
}
OPTIONS = {
    **DEFAULTS,
    "sample_interval": TICK_S,
    "book_dead_time": 30.0,
    "book_switches": 60,
    "book_watch": 60.0,
    "book_rest": 600.0,
}
BOOSTED = "recovery after 50s at-most 1h"
"""The rule of degraded objects: 5 min and 6 h, in the time of the day. The objective of the cluster guards it."""


@cache
def singles(kind: Kind) -> Dict[str, Settings]:
    """Settings by name: those of the grid, and each of the predicted pages' once."""
    settings = dict(GRID)
    for name, pages in (("found", predicted(kind.each)), ("shared, found", predicted(kind.pages))):
        for page in pages:
            if dict(page.settings) not in settings.values():
                settings[f"{name} for {page.regime}"] = dict(page.settings)
    return settings


# what settings are worth where


class Probe(NamedTuple):
    """What settings come to for a time."""

    p95_ms: List[float]
    """Of clients, in each window."""
    recovered: int
    """Object copies."""
    done: float
    """Background work, by `_WEIGHTS`."""

    def missed(self, bound_ms: float) -> int:
        """Windows beyond the bound."""
        return sum(p95 > bound_ms for p95 in self.p95_ms)


def probe(simulation: Simulation, windows: int, window_s: float) -> Probe:
    """Let it run for so many windows of so many seconds."""
    left, seen, p95s = left_of(simulation), seen_by_clients(simulation), []
    for _ in range(windows):
        simulation.advance(window_s)
        before, seen = seen, seen_by_clients(simulation)
        p95s.append(p95_ms(seen - before))
    left.subtract(left_of(simulation))
    return Probe(p95s, left["degraded"], sum(weight * left[kind] for kind, weight in _WEIGHTS.items()))


@cache
def probed(situation: Situation, name: str, seed: int) -> Probe:
    """In a run of the twin for `PROBE_S`, with more to do than it can."""
    degraded, scrub, clones = (10**6 * is_on for is_on in situation[1:])
    model = with_work(DayWorld(0, ONE_BOUND.scrubbed).twin.simulation.model, situation.rate, (degraded, scrub, clones))
    return probe(Simulation(model, GRID[name], seed), 1, PROBE_S)


def choice(situation: Situation, seed: int) -> str:
    """Of the grid, for a day of one bound. Data at risk first: of what is `fast_enough`, what harms clients least.

    Where nothing is at risk, the settings that do the most while clients keep the bound, else those that harm least.
    """
    probes = {name: probed(situation, name, seed) for name in GRID}
    if situation.recovering:
        return min(fast_enough(probes), key=lambda name: probes[name].p95_ms[0])
    keeping = [name for name in probes if probes[name].p95_ms[0] <= MARGIN * ONE_BOUND.bound_ms(0.0)]
    if keeping:
        return max(keeping, key=lambda name: (probes[name].done, -probes[name].p95_ms[0]))
    return min(probes, key=lambda name: probes[name].p95_ms[0])


def tried(world: DayWorld, kind: Kind) -> str:
    """Each of the settings is lived with for the coming half hour, by a copy of the cluster as it is now.

    Of what is `fast_enough`, those with the fewest missed windows; of these the settings that do the most.
    """
    probes, bound_ms = {}, kind.bound_ms(world.hour())
    for name, settings in singles(kind).items():
        copy = deepcopy(world.twin.simulation)
        copy.configure(settings)
        probes[name] = probe(copy, round(world.phase_s / LOOK_S), LOOK_S)
    return min(fast_enough(probes), key=lambda name: (probes[name].missed(bound_ms), -probes[name].done))


def fast_enough(probes: Mapping[str, Probe]) -> List[str]:
    """What recovers at least `AS_FAST` as fast as `balanced`: all, where nothing is to be recovered."""
    return [name for name in probes if probes[name].recovered >= AS_FAST * probes["balanced"].recovered]


def pages(seed: int) -> List[Page]:
    """One for each regime, chosen at the most that clients ask for in it."""
    rows = []
    for busy, recovering, scrubbing, trimming in product((False, True), repeat=4):
        situation = Situation(rate_at(PEAK_H) if busy else BUSY - 1.0, recovering, scrubbing, trimming)
        rows.append((situation.regime, choice(situation, seed)))
    return [Page(number, regime, GRID[name], VALIDATED, TRIAL, 1.0) for number, (regime, name) in enumerate(rows, 1)]


# who decides


def one_setting(world: DayWorld, settings: Settings) -> Iterator[None]:
    """Written as the day begins."""
    yield from before(world)
    write(world, settings)
    while True:
        yield


def by_the_clock(world: DayWorld) -> Iterator[None]:
    """As a cron script has it."""
    yield from before(world)
    now = ""
    while True:
        wanted = "high_client_ops" if 8.0 <= world.hour() < 20.0 else "high_recovery_ops"
        if wanted != now:
            now = wanted
            write(world, GRID[now])
        yield


def oracle(world: DayWorld, kind: Kind) -> Iterator[None]:
    """Knows each half hour as it begins, and how it would end."""
    yield from before(world)
    world.on_phase = lambda situation: write(world, singles(kind)[tried(world, kind)])
    while True:
        yield


def book(world: DayWorld, kind: Kind, rows: Sequence[Page], boost_rules: str) -> Iterator[None]:
    """The plugin, whose book is switched on as the day begins. `boost_rules`: as of its option."""
    store = world.cluster.store
    store.set(PAGES_KEY, json.dumps(versioned(Book(tuple(rows), len(rows)).to_dict())))
    store.set(BOUNDS_KEY, json.dumps(kind.bounds.to_dict()))
    options = {**OPTIONS, "book_unvalidated": OF_THE_TWIN, BOOST_RULES: boost_rules}
    world.cluster.config.set("mgr", f"{OPTION_PREFIX}{BOOST_RULES}", boost_rules)
    process = MgrProcess(world, Trouble(), 1, lambda number: True, options.get)
    process.service.slo_commands.set("", False, 1.0, json.dumps(kind.wanted.to_dict()), really=True)
    for _ in before(world):
        process.tick()
        yield
    process.tick()
    process.command(lambda: process.modes.books.switch(ON))
    while True:
        yield
        process.tick()


def before(world: DayWorld) -> Iterator[None]:
    """Let the time go by until the day begins."""
    while world.hour() < 0.0:
        yield


def write(world: DayWorld, settings: Settings) -> None:
    """As an operator would; the same settings twice are one."""
    applier = world.cluster.applier()
    applier.apply(applier.plan("osd", settings))


class Policy(NamedTuple):
    """What decides, and what it is told: a life under other things is another one."""

    decide: Callable[[DayWorld], Iterator[None]]
    told: Any
    aims: bool = True
    """Whether it knows the bound."""


@cache
def policies(kind: Kind) -> Dict[str, Policy]:
    """All that a kind of day is lived with, by name."""

    def single(settings: Settings) -> Policy:
        return Policy(lambda world: one_setting(world, settings), settings, aims=False)

    def by_book(pages_document: Any, rows: Callable[[], Sequence[Page]], boost_rules: str = "") -> Policy:
        return Policy(
            lambda world: book(world, kind, rows(), boost_rules),
            [pages_document, boost_rules, OPTIONS, kind.bounds.to_dict()],
        )

    rows = predicted(kind.pages)
    predicted_pages = [[page.regime, dict(page.settings)] for page in rows]
    of_grid = {"the book, pages of the grid": by_book(GRID, lambda: pages(7))} if kind is ONE_BOUND else {}
    return {
        **{f"all day: {name}": single(settings) for name, settings in singles(kind).items()},
        "cron: client by day, recovery by night": Policy(by_the_clock, None, aims=False),
        **of_grid,
        "the book, pages by the twin": by_book(predicted_pages, lambda: rows),
        "the book, pages by the twin, and a boost rule": by_book(predicted_pages, lambda: rows, BOOSTED),
        "an oracle that tries each half hour": Policy(lambda world: oracle(world, kind), singles(kind)),
    }


@cache
def lived_with(policy: str, scrubbed: int, kind: Kind) -> Dict[str, Any]:
    """What a life is of: the day and what the policy was told (as digests), the bound (ms), clients' operations/s."""
    own = policies(kind)[policy]
    bounds_ms: Any = kind.bounds_ms
    bound = (bounds_ms if kind.wanted.policies else bounds_ms[BASE]) if own.aims else None
    return {"day": _digest(day_told(scrubbed)), "told": _digest(own.told), "bound_ms": bound, "rate": RATE}


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]
