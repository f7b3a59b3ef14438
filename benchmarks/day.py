"""A day of a cluster in the twin's time: one setting for all of it, a profile by the clock, or the book?

    python benchmarks/day.py --predict benchmarks/results/day-pages.json
    python benchmarks/day.py --days 2 --output benchmarks/results/day.jsonl
    python benchmarks/day.py --render benchmarks/results/day.jsonl --page benchmarks/results/day.md

Clients have the daily shape of a block trace (`day_shape.py`), two OSDs are lost, deep scrubs are due, a snapshot is
deleted. An hour of the day lasts `HOUR_S` seconds. What is compared: each built-in profile all day, each custom
setting of a grid by hand or of those that were found all day, `cron` (which writes one profile at 8 and another at
20 h), `book` (the plugin with its book on, as on a cluster, without and with a boost rule), and an oracle, which knows
each phase beforehand.

Pages are either of the grid, chosen by runs of the twin with seeds of their own, or those that `book predict` finds
(`--predict`, in minutes). An oracle chooses from the grid, another one from both. The best single setting is chosen on
day 0, of all; days from `FIRST_TOLD` on are what is told.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import runs_file
from day_shape import BUSIEST_H, clients_at
from flight_mgr import MgrProcess, Trouble
from flight_world import OSDS, World, p95_ms

from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.core.book.book import PAGES_KEY, Book, parse_book
from ceph_tuner.core.book.choice import OF_THE_TWIN
from ceph_tuner.core.book.events import ON
from ceph_tuner.core.book.page import TRIAL, VALIDATED, Page
from ceph_tuner.core.boost.rules import OPTION as BOOST_RULES
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY, IDLE, Marker, RegimeBounds
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.simulation import Simulation
from tuner.options import DEFAULTS

HOUR_S = 600.0
"""Of the twin's time: the day takes a sixth of its time, and the book has as much less to react in."""
PHASES_AN_HOUR = 2
RATE, PEAK_H = 1500.0, BUSIEST_H + 0.5
"""Client operations a second in the mean of the day, and when they are the most; the day's shape is that of a trace."""
OSD = OsdModel(
    Device(iops=1075.0, bandwidth_bytes_s=60.0 * MIB, shared=False),
    capacity_iops=935.0,
    bandwidth_bytes_s=60.0 * MIB,
    shards=2,
    threads_per_shard=2,
    throttle_bytes=256.0 * KIB,
)
FIRST_TOLD = 5
"""The first day that is told. Once somebody has looked at a day to make book or pages better, it is a later one."""
DONE = 0.01
"""Share of the scrubs that may be left where they count as done."""
BOUND_MS, MARGIN = 120.0, 0.85
BUSY = 1500.0
LOST, SCRUBBED, CLONES = 8_000, 200_000, 20_000
"""Object copies that an OSD takes along, objects to be deep-scrubbed within the day, clones of the snapshot."""
_WEIGHTS = {"scrub": 2.0, "snaptrim": 1.0}
"""What an object of that work is worth where settings are chosen."""
TICK_S, LOOK_S, PROBE_S = 10.0, 30.0, 60.0
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
RESULTS = Path(__file__).parent / "results"
PREDICTED, EACH = RESULTS / "day-pages.json", RESULTS / "day-pages-each.json"
"""What `book predict` makes, and the answer of each regime by itself, without what regimes share."""
WANTED = (
    "client.p95_ms <= 110 ms",
    "recovery.bytes_s >= 0.95 * baseline",
    "scrub.objects_s >= 30",
    "snaptrim.objects_s >= 0.5 * baseline",
)
"""What pages are predicted for: a bit within the bound, as fast a recovery as now, and scrubs that come round twice."""
MARKERS = {
    "busy": Marker("busy", "client.iops", BUSY, 0.9 * BUSY, 30.0),
    "recovering": Marker("recovering", "recovery.objects_left", 1.0, 0.0, 15.0),
    "scrubbing": Marker("scrubbing", "scrub.bytes_s", 1.0, 0.0, 15.0),
    "trimming": Marker("trimming", "snaptrim.queue", 1.0, 0.0, 15.0),
}
BOUNDS = RegimeBounds(tuple(MARKERS.values()), 30.0)
MET = ("idle", *MARKERS, "busy+scrubbing", "recovering+scrubbing")
"""Regimes for which settings are searched: one for each marker, and what the plugin told on day 0 with `balanced`."""
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


class Situation(NamedTuple):
    """What settings are chosen for."""

    rate: float
    recovering: bool
    scrubbing: bool
    trimming: bool

    @property
    def regime(self) -> str:
        """As the plugin calls it."""
        on = (self.rate >= BUSY, self.recovering, self.scrubbing, self.trimming)
        return "+".join(name for name, is_on in zip(MARKERS, on) if is_on) or IDLE


class DayWorld(World):
    """A cluster with a day on it; the day's luck is of its seed."""

    phase_s = HOUR_S / PHASES_AN_HOUR
    osd = OSD

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        luck = random.Random(f"day {seed}")
        self._lost = [luck.uniform(9.0, 17.0), luck.uniform(0.0, 5.0)]
        self._deleted = luck.uniform(10.0, 22.0)
        self._scrub, self._clones, self._degraded = SCRUBBED, 0, 0
        self.on_phase: Callable[[Situation], None] = lambda situation: None

    def hour(self) -> float:
        """Of the day."""
        return (self.now() - self.begun) / HOUR_S

    def change_work(self) -> None:
        self._phases += 1
        hour = self.hour()
        if self._phases > 1:
            self._degraded, self._scrub, self._clones = self.remaining()
        due = [at for at in self._lost if at <= hour]
        self._lost = [at for at in self._lost if at > hour]
        self._degraded += LOST * len(due)
        if self._deleted <= hour:
            self._clones, self._deleted = self._clones + CLONES, math.inf
        situation = Situation(rate_at(hour), self._degraded > 0, self._scrub > 0, self._clones > 0)
        works = (self._degraded, self._scrub, self._clones)
        self.twin.begin(Simulation(with_work(self._model, situation.rate, works), {}, self._seed * 1000 + self._phases))
        self._seen = None
        self.on_phase(situation)

    def remaining(self) -> Tuple[int, int, int]:
        """Object copies that are lacking, objects to be scrubbed, clones."""
        simulation = self.twin.simulation
        left = left_of(simulation)
        degraded, scrub, clones = (round(left[kind] / simulation.share) for kind in ("degraded", *_WEIGHTS))
        return degraded, scrub, clones


def rate_at(hour: float) -> float:
    """Client operations a second."""
    return RATE * clients_at(hour)


def with_work(model: ClusterModel, rate: float, works: Tuple[int, int, int]) -> ClusterModel:
    """The cluster with these clients and this much left."""
    degraded, scrub, clones = works
    return replace(
        model,
        clients=(ClientStream("rbd", rate=rate, depth=256, read_share=0.3),),
        recovery=(RecoveryWork("other", degraded),) if degraded else (),
        scrub=(ScrubWork("rbd", scrub, once=True),) if scrub else (),
        snaptrim=(SnaptrimWork("rbd", clones),) if clones else (),
    )


# what settings are worth where


class Probe(NamedTuple):
    """What settings come to in a situation."""

    p95_ms: float
    recovered: float
    """Object copies a second."""
    done: float
    """Other background work a second, by `_WEIGHTS`."""


@cache
def predicted(path: Path = PREDICTED) -> Tuple[Page, ...]:
    """Pages that the twin found."""
    return parse_book(json.loads(path.read_text(encoding="utf-8")), str(path)).pages


@cache
def singles() -> Dict[str, Settings]:
    """Settings by name: those of the grid, and each of the predicted pages' once."""
    found: Dict[str, Settings] = {}
    for page in (*predicted(EACH), *predicted()):
        if dict(page.settings) not in found.values():
            found[f"found for {page.regime}"] = dict(page.settings)
    return {**GRID, **found}


def predict(output: Path) -> None:
    """Ask the twin for pages as after day 0, and keep the answers by themselves beside them."""
    model = with_work(DayWorld(0).twin.simulation.model, rate_at(0.0), (10**6, SCRUBBED, 10**6))
    rates = [rate_at(hour) for hour in range(24)]
    write_pages(output, model, MET, WANTED, BOUNDS, rates, 30, output.with_name(EACH.name))


def write_pages(
    output: Path,
    model: ClusterModel,
    regimes: Sequence[str],
    objectives: Sequence[str],
    bounds: RegimeBounds,
    rates: Sequence[float],
    trials: int,
    each: Optional[Path] = None,
) -> None:
    """Ask a twin for a page of each regime, as `ceph-tuner book predict` does; `rates`: of the clients, by hour.

    `each`: where the answers go as they are before regimes share settings.
    """
    # each of them is of use to this alone
    from ceph_tuner.core.goals.slo import parse_slo
    from ceph_tuner.recommend import SearchEffort
    from ceph_tuner.recommend.recommendation import recommend
    from ceph_tuner.recommend.regime_pages import RegimeAnswer, pages_of
    from ceph_tuner.recommend.regime_questions import combinations_of, question_in
    from ceph_tuner.twin.described_cluster import DescribedCluster
    from silent_listener import SilentListener

    cluster, wanted = DescribedCluster("day", model), parse_slo({"objectives": list(objectives)})
    answers: List[RegimeAnswer] = []
    for regime in regimes:
        asked = question_in(regime, cluster, wanted, bounds, rates)
        found = recommend(asked.question, SearchEffort(trials=trials), SilentListener(), 1, explain=False)
        answers.append(RegimeAnswer(asked, found))
        print(f"{regime}: {found.searched.choice.reason}", flush=True)
    if each is not None:
        _write(each, [page for answer in answers for page in pages_of([answer], 1.0, "osd", processes=1)])
    others = [question_in(regime, cluster, wanted, bounds, rates) for regime in combinations_of(regimes, bounds)]
    _write(
        output, pages_of(answers, 1.0, "osd", lambda done, total: print(f"{done} of {total}", flush=True), 1, others)
    )


def _write(output: Path, pages: Sequence[Page]) -> None:
    numbered = [replace(page, number=number) for number, page in enumerate(pages, 1)]
    document = versioned({"pages": [page.to_dict() for page in numbered]})
    output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


@cache
def probed(situation: Situation, name: str, seed: int) -> Probe:
    """In a run of the twin for `PROBE_S`, with more to do than it can."""
    degraded, scrub, clones = (10**6 * is_on for is_on in situation[1:])
    model = with_work(DayWorld(0).twin.simulation.model, situation.rate, (degraded, scrub, clones))
    simulation = Simulation(model, singles()[name], seed)
    left = left_of(simulation)
    simulation.advance(PROBE_S)
    left.subtract(left_of(simulation))
    counts = sum(stream.latency.sum(axis=0) for stream in simulation.clients())
    done = sum(weight * left[kind] for kind, weight in _WEIGHTS.items())
    return Probe(p95_ms(counts), left["degraded"] / PROBE_S, done / PROBE_S)


def left_of(simulation: Simulation) -> Counter[str]:
    """Objects by kind of work."""
    left: Counter[str] = Counter()
    for work in simulation.work():
        left[work.kind] += work.left
    return left


def choice(situation: Situation, seed: int, names: Tuple[str, ...] = tuple(GRID)) -> str:
    """Data at risk first: of what recovers as fast as `balanced`, what harms clients least.

    Where nothing is at risk, the settings that do the most while clients keep the bound, else those that harm least.
    """
    probes = {name: probed(situation, name, seed) for name in names}
    if situation.recovering:
        fast = [name for name, probe in probes.items() if probe.recovered >= 0.98 * probes["balanced"].recovered]
        return min(fast, key=lambda name: probes[name].p95_ms)
    keeping = [name for name, probe in probes.items() if probe.p95_ms <= MARGIN * BOUND_MS]
    if keeping:
        return max(keeping, key=lambda name: (probes[name].done, -probes[name].p95_ms))
    return min(probes, key=lambda name: probes[name].p95_ms)


def pages(seed: int) -> List[Page]:
    """One for each regime, chosen at the most that clients ask for in it."""
    rows = []
    for busy, recovering, scrubbing, trimming in product((False, True), repeat=4):
        situation = Situation(rate_at(PEAK_H) if busy else BUSY - 1.0, recovering, scrubbing, trimming)
        rows.append((situation.regime, choice(situation, seed)))
    return [Page(number, regime, GRID[name], VALIDATED, TRIAL, 1.0) for number, (regime, name) in enumerate(rows, 1)]


# who decides, and what it comes to


def one_setting(world: DayWorld, name: str) -> Iterator[None]:
    """Written at the beginning."""
    write(world, name)
    while True:
        yield


def by_the_clock(world: DayWorld) -> Iterator[None]:
    """As a cron script has it."""
    now = ""
    while True:
        wanted = "high_client_ops" if 8.0 <= world.hour() < 20.0 else "high_recovery_ops"
        if wanted != now:
            now = wanted
            write(world, now)
        yield


def oracle(world: DayWorld, names: Tuple[str, ...] = tuple(GRID)) -> Iterator[None]:
    """Knows each phase as it begins."""
    write(world, "balanced")
    world.on_phase = lambda situation: write(
        world, choice(situation._replace(rate=round(situation.rate, -1)), 7, names)
    )
    while True:
        yield


def book(world: DayWorld, rows: Optional[Sequence[Page]] = None, boost_rules: str = "") -> Iterator[None]:
    """The plugin, which is told nothing; without pages, with those of the grid. `boost_rules`: as of its option."""
    rows = pages(7) if rows is None else rows
    store = world.cluster.store
    store.set(PAGES_KEY, json.dumps(versioned(Book(tuple(rows), len(rows)).to_dict())))
    store.set(BOUNDS_KEY, json.dumps(BOUNDS.to_dict()))
    options = {**OPTIONS, "book_unvalidated": OF_THE_TWIN, BOOST_RULES: boost_rules}
    world.cluster.config.set("mgr", f"{OPTION_PREFIX}{BOOST_RULES}", boost_rules)
    process = MgrProcess(world, Trouble(), 1, lambda number: True, options.get)
    process.service.slo_commands.set(f"client.p95_ms<={BOUND_MS:g}", False, 1.0, "")
    process.tick()
    process.command(lambda: process.modes.books.switch(ON))
    while True:
        process.tick()
        yield


def write(world: DayWorld, name: str) -> None:
    """As an operator would; the same settings twice are one."""
    applier = world.cluster.applier()
    applier.apply(applier.plan("osd", singles()[name]))


POLICIES: Dict[str, Callable[[DayWorld], Iterator[None]]] = {
    **{f"all day: {name}": lambda world, name=name: one_setting(world, name) for name in singles()},  # type: ignore[misc]
    "cron: client by day, recovery by night": by_the_clock,
    "the book, pages of the grid": book,
    "the book, one page by the twin for each regime": lambda world: book(world, predicted(EACH)),
    "the book, pages by the twin": lambda world: book(world, predicted()),
    "the book, pages by the twin, and a boost rule": lambda world: book(world, predicted(), BOOSTED),
    "an oracle of the grid": oracle,
    "an oracle of both": lambda world: oracle(world, tuple(singles())),
}


def live(policy: str, seed: int, hours: float = 24.0) -> Dict[str, Any]:
    """A whole day; gives what is counted of it."""
    world = DayWorld(seed)
    deciding, at_risk, windows, missed = POLICIES[policy](world), 0.0, 0, 0
    next_look = world.now() + LOOK_S
    while world.hour() < hours:
        began = world.now()
        next(deciding)
        world.advance(max(0.0, began + TICK_S - world.now()))
        at_risk += world.remaining()[0] * (world.now() - began) / HOUR_S
        if world.now() >= next_look:
            next_look = world.now() + LOOK_S
            seen = world.clients_p95_ms()
            windows += seen is not None
            missed += seen is not None and seen > BOUND_MS
    changes = sum(1 for _ in world.cluster.store.keys("journal/"))
    return {
        "policy": policy,
        "day": seed,
        "missed_minutes": 60.0 * hours * missed / max(windows, 1),
        "degraded_object_hours": at_risk,
        "scrubs_not_done": world.remaining()[1] / SCRUBBED,
        "changes": changes,
        "osds": OSDS,
    }


def measure(arguments: Any) -> None:
    """Day 0 chooses the best single setting; days from `FIRST_TOLD` on are told."""
    known = {(line["policy"], line["day"]) for line in runs_file.lines_of(arguments.output)}
    for day in (0, *range(FIRST_TOLD, FIRST_TOLD + arguments.days)):
        for policy in POLICIES:
            if day == 0 and not policy.startswith("all day"):
                continue
            if (policy, day) not in known and not runs_file.over(arguments):
                line = live(policy, day)
                runs_file.append(arguments.output, {**line, "machine": runs_file.machine()})
                print(line, flush=True)


def best_single(lines: Sequence[Mapping[str, Any]]) -> Optional[str]:
    """By day 0: of those that get the scrubs done, if any does, the fewest missed minutes, then the least at risk."""
    first = [line for line in lines if line["day"] == 0]
    if not first:
        return None
    first = [line for line in first if line["scrubs_not_done"] <= DONE] or first
    return str(min(first, key=lambda line: (round(line["missed_minutes"]), line["degraded_object_hours"]))["policy"])


def table(lines: List[Dict[str, Any]]) -> str:
    """Means over the days that were not chosen on."""
    best = best_single(lines)
    rows = [
        "| settings | objective missed, min a day | degraded object-hours | deep scrubs not done | journal entries |",
        "| --- |" + " ---: |" * 4,
    ]
    for policy in POLICIES:
        own = [line for line in lines if line["policy"] == policy and line["day"] >= FIRST_TOLD]
        if own:
            cells = [
                f"{statistics.fmean(line[name] for line in own):{form}}"
                for name, form in (
                    ("missed_minutes", ".0f"),
                    ("degraded_object_hours", ",.0f"),
                    ("scrubs_not_done", ".0%"),
                    ("changes", ".1f"),
                )
            ]
            name = f"**{policy}** (best on day 0)" if policy == best else policy
            rows.append(f"| {name} | {' | '.join(cells)} |")
    days = len({line["day"] for line in lines if line["day"] >= FIRST_TOLD})
    return "\n".join([*rows, "", "Of one day." if days == 1 else f"Means of {days} days."])


def main() -> int:
    """Live the days, or write the page."""
    parser = runs_file.parser(__doc__, "day.jsonl")
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--predict", type=Path, help="find pages on the twin, write them here, and live no day")
    arguments = parser.parse_args()
    if arguments.predict is not None:
        predict(arguments.predict)
    else:
        runs_file.measure_and_show(arguments, measure, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
