"""A day on a lab, an hour of it in twenty seconds: one setting for all of it, profiles by the clock, or the book?

    ceph-tuner lab up --name day --device-size 6GiB
    python benchmarks/day_on_lab.py --cluster day --predict benchmarks/results/day-on-lab-pages.json
    python benchmarks/day_on_lab.py --cluster day --pages benchmarks/results/day-on-lab-pages.json --repeats 2
    python benchmarks/day_on_lab.py --render benchmarks/results/day-on-lab.jsonl --page benchmarks/results/day-on-lab.md

Clients have the daily shape of a block trace (`day_shape.py`). Deep scrubs run by night, an OSD lacks objects at 9 h
and again at 21 h, a snapshot is trimmed at 14 h. What is compared: each built-in profile all day, settings that are
named by `--single`, `cron`, which writes one profile at 8 and another at 20 h, and `book`, the plugin with its book
on. One line of the output is one day.
Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import runs_file
from automatic_on_lab import Mode
from day_shape import clients_at

from ceph_lab.cluster import Lab
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.scrub import ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_lab.scenarios import Scenario
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import RELEASES, Settings
from ceph_tuner.core.knobs.settings import parse_settings
from ceph_tuner.core.profiles.translation import to_release_units

HOUR_S = 20.0
TRACE = "trace"
"""Shape of the clients' day."""
SPELL_H = 2
"""Hours for which the clients keep a rate."""
WINDOW_S = 10.0
RATE = 250.0
"""Client operations a second in the mean of the day, whose shape is that of a trace."""
BUSY = 250.0
MIB = 1 << 20
OBJECTS, CLONES = 2400, 8000
"""That an OSD lacks in both losses together, of 1 MiB each; of the snapshot."""
SCRUB_HOURS = ((0.0, 7.0), (22.0, 24.0))
LOSSES_H = (9.0, 21.0)
"""From when on objects are lacking."""
TRIM_H = 14.0
WANTED = (
    "client.p95_ms <= 32 ms",
    "recovery.bytes_s >= 0.7 * baseline",
    "scrub.objects_s >= 0.4 * baseline",
    "snaptrim.objects_s >= 0.4 * baseline",
)
"""What pages are predicted for: well within the bound, and half of what is done in the background, or more."""
REGIMES = ("idle", "busy", "recovering", "scrubbing", "busy+recovering", "busy+trimming", "recovering+scrubbing")
PROFILES = ("balanced", "high_client_ops", "high_recovery_ops")
CRON, BOOK = "cron", "the book"
BOUNDS: Dict[str, Any] = {
    "dwell_s": 4,
    "markers": [
        {"name": "busy", "metric": "client.iops", "enter": BUSY, "leave": 0.9 * BUSY, "hold_s": 4},
        {"name": "recovering", "metric": "recovery.bytes_s", "enter": 1e6, "leave": 2e5, "hold_s": 4},
        {"name": "scrubbing", "metric": "scrub.bytes_s", "enter": 1e6, "leave": 2e5, "hold_s": 4},
        {"name": "trimming", "metric": "snaptrim.objects_s", "enter": 5, "leave": 1, "hold_s": 4},
    ],
}
"""Rates, since work that a lab holds back is there all day."""
OPTIONS: Dict[str, Any] = {
    "sample_interval": 2.0,
    "book_dead_time": 4,
    "book_switches": 1000,
    "book_watch": 30,
    "book_rest": 60,
    "book_unvalidated": "twin",
}


class Day(NamedTuple):
    """What there is to do."""

    loads: Tuple[RecoveryLoad, ScrubLoad, SnaptrimLoad]
    session: LabSession


class Moment(NamedTuple):
    """Something that happens at an hour."""

    hour: float
    act: Callable[[], None]


def rate_at(hour: float) -> float:
    """Client operations a second."""
    return RATE * clients_at(hour)


@contextmanager
def day_of(lab: Lab) -> Iterator[Day]:
    """Its work, made ready. Nothing of it runs once the block ends."""
    session = LabSession(lab)
    tell = lambda line: None  # noqa: E731
    recovery = RecoveryLoad(lab, session, OBJECTS, MIB, tell=tell)
    scrub = ScrubLoad(lab, session, objects=2400, object_bytes=MIB // 4, tell=tell)
    trim = SnaptrimLoad(lab, session, clones=CLONES, tell=tell)
    clients = ClientLoad(lab, session, ClientWork(rate=RATE), tell)
    with closing(Scenario("day", lab, (clients, scrub, trim, recovery), session)) as scenario:
        scenario.prepare()
        yield Day((recovery, scrub, trim), session)


class Watch:
    """Counts while the day goes by."""

    def __init__(self, day: Day) -> None:
        self.recovery, self.scrub, self.trim = day.loads
        self.at_risk = 0.0
        """Object-hours."""
        self.scrubbed = 0.0
        self.notes: List[str] = []
        self._lacking: Optional[float] = None
        self._held = 0.0
        """Objects of the loss that has not come yet."""
        self._scrubs_on = False

    def lose(self, of: int, losses: int) -> None:
        """An OSD comes back: its part of the objects recovers."""
        left = self.recovery.read().left_objects or 0.0
        self._held = left * (losses - of) / (losses - of + 1) if of < losses else 0.0
        self.recovery.start()
        self._lacking = left - self._held

    def look(self, hours: float) -> None:
        """Read what is going on; `hours` since the last time."""
        try:
            if self._lacking is not None:
                lacking = max(0.0, (self.recovery.read().left_objects or 0.0) - self._held)
                self.at_risk += hours * (self._lacking + lacking) / 2
                self._lacking = lacking
                if lacking <= 0:
                    self._lacking = None
                    if self._held:
                        self.recovery.flags.set("norecover")
            if self._scrubs_on:
                self.scrub.observe()
        except TunerError as error:
            self.notes.append(f"one look failed: {error}")

    def scrubs(self, on: bool) -> None:
        """They may run, or not."""
        if on:
            self.scrub.start()
        elif self._scrubs_on:
            self.scrub.observe()
            self.scrubbed += self.scrub.progress().done_objects
            self.scrub.stop()
        self._scrubs_on = on


def live(lab: Lab, clock: Callable[[float], None]) -> Dict[str, Any]:
    """A day; `clock` is told each hour's beginning."""
    with day_of(lab) as day:
        watch = Watch(day)
        moments = [Moment(begin, lambda: watch.scrubs(True)) for begin, _ in SCRUB_HOURS]
        moments += [Moment(end, lambda: watch.scrubs(False)) for _, end in SCRUB_HOURS]
        moments += [
            Moment(begin, lambda number=number: watch.lose(number, len(LOSSES_H)))  # type: ignore[misc]
            for number, begin in enumerate(LOSSES_H, 1)
        ]
        moments.append(Moment(TRIM_H, watch.trim.start))
        moments += [Moment(float(hour), lambda hour=hour: clock(float(hour))) for hour in range(24)]  # type: ignore[misc]
        moments.sort(key=lambda moment: moment.hour)
        begun, last = time.time(), 0.0
        windows: List[Dict[str, float]] = []
        for spell in range(0, 24, SPELL_H):
            clients = ClientLoad(lab, day.session, ClientWork(rate=rate_at(spell + SPELL_H / 2)))
            clients.start()
            try:
                while (hour := (time.time() - begun) / HOUR_S) < spell + SPELL_H:
                    while moments and moments[0].hour <= hour:
                        moments.pop(0).act()
                    watch.look(hour - last)
                    last = hour
                    clients.observe()
                    time.sleep(0.5)
                windows += _windows(clients, begun, spell)
            finally:
                clients.stop()
        for moment in moments:
            moment.act()
        watch.trim.observe()
        trimmed = watch.trim.progress()
        left = watch.recovery.read().left_objects or 0.0
    return {
        "windows": windows,
        "at_risk_object_hours": watch.at_risk,
        "left_objects": left,
        "scrubbed_objects": watch.scrubbed,
        "trimmed_clones": trimmed.done_objects,
        "notes": watch.notes,
    }


def _windows(clients: ClientLoad, begun: float, spell: int) -> List[Dict[str, float]]:
    """Of the clients' own latencies."""
    found = []
    for number in range(round(SPELL_H * HOUR_S / WINDOW_S)):
        start = begun + spell * HOUR_S + number * WINDOW_S
        measures = clients.measure(max(start, begun + spell * HOUR_S + 2.0), start + WINDOW_S)
        if "client.p95_ms" in measures:
            means = {name: measures[name].mean for name in ("client.p95_ms", "client.p99_ms", "client.iops")}
            found.append({"hour": (start - begun) / HOUR_S, **means})
    return found


# who decides


def predict(lab: Lab, output: Path) -> None:
    """Ask the lab's own twin for a page of each regime, as `ceph-tuner book predict` does."""
    # each of them is of use to this alone
    from day_pages import write_pages

    from ceph_lab.twin_model import lab_model
    from ceph_tuner.core.goals.slo import parse_slo
    from ceph_tuner.core.goals.slo_calendar import SloCalendar
    from ceph_tuner.core.measure.sample import Measure, Window
    from ceph_tuner.core.regimes.bounds import parse_bounds
    from ceph_tuner.recommend import SearchEffort

    with closing(open_cluster(lab.name)) as cluster:
        hardware, release = cluster.in_force("osd").hardware, cluster.release
    model = lab_model(lab.state.options, hardware, "mixed", release, work={"rate": RATE, "scrub_objects": 2400})
    hours = [Window(hour, hour + 1.0, {"client.iops": Measure(rate_at(hour), 0.0, 1)}) for hour in range(24)]
    calendar = SloCalendar(parse_slo({"objectives": WANTED}))
    write_pages(output, model, REGIMES, calendar, parse_bounds(BOUNDS), hours, 0.0, SearchEffort.trials)


@contextmanager
def written(cluster: Cluster, settings: Settings) -> Iterator[None]:
    """Some settings, in force while the block lasts."""
    applier = cluster.applier(who="a day")
    own_units = to_release_units(settings, cluster.release, cluster.in_force("osd").hardware)
    entry = applier.apply(applier.plan("osd", own_units), "a day")
    try:
        yield
    finally:
        if entry is not None:
            applier.undo_entry(entry)


class Cron:
    """As a script has it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._now = cluster, ""
        self._block = ExitStack()

    def __enter__(self) -> Cron:
        return self

    def __exit__(self, *_: object) -> None:
        self._block.close()

    def hour(self, hour: float) -> None:
        wanted = "high_client_ops" if 8.0 <= hour < 20.0 else "high_recovery_ops"
        if wanted != self._now:
            self._now = wanted
            self._block.close()
            self._block.enter_context(written(self._cluster, {PROFILE: wanted}))


@contextmanager
def the_book(cluster: Cluster, pages: Mapping[str, Any], objective: str) -> Iterator[Mode]:
    """The plugin, which is told the pages and nothing of the day."""
    with closing(Mode(cluster, OPTIONS)) as mode:
        lab = Lab.open(cluster.name)
        lab.run(["ceph", "tuner", "slo", "set", objective.replace(" ", "")])
        for word, document in (("bounds", BOUNDS), ("import", pages)):
            lab.run(["ceph", "tuner", "book", word, "-i", "-"], payload=json.dumps(document))
        try:
            yield mode
        finally:
            with contextlib.suppress(TunerError):
                lab.run(["ceph", "tuner", "book", "off"])


def one_day(name: str, settings: Optional[Settings], cluster: Cluster, lab: Lab, arguments: argparse.Namespace) -> Any:
    """Live it under what a name stands for; the day, and what the journal and the book have of it."""
    before = {entry.number for entry in Journal(cluster.store).entries()}
    with ExitStack() as beside:
        clock: Callable[[float], None] = lambda hour: None  # noqa: E731
        mode: Optional[Mode] = None
        if name == CRON:
            clock = beside.enter_context(Cron(cluster)).hour
        elif name == BOOK:
            mode = beside.enter_context(the_book(cluster, arguments.pages, arguments.objective))

            def clock(hour: float) -> None:
                # not before: what is prepared is no part of the day
                if hour == 0:
                    lab.run(["ceph", "tuner", "book", "on"])

        elif settings:
            beside.enter_context(written(cluster, settings))
        day = live(lab, clock)
        if mode is not None:
            book, of_a_page = json.loads(mode.mon("tuner book show", format="json")), ("regime", "state", "reason")
            pages = [{key: page[key] for key in of_a_page} for page in book["pages"]]
            day["book"] = {"timeline": book["timeline"], "pages": pages}
        entries = [entry for entry in Journal(cluster.store).entries() if entry.number not in before]
    return {**day, "journal_entries": len(entries)}


def single(text: str, release: str) -> Tuple[str, Settings]:
    """Settings by name, of a word of the command line. Raises InputError."""
    name, _, values = text.partition(":")
    pairs = (pair.partition("=") for pair in values.split(","))
    return name, parse_settings({knob: value for knob, _, value in pairs}, RELEASES[release])


def measure(arguments: argparse.Namespace) -> None:
    lab = Lab.open(arguments.cluster)
    conditions = {
        "ceph": lab.state.ceph_version,
        "osds": list(map(str, lab.state.options.groups)),
        "slower": lab.state.options.slower,
        "objective": arguments.objective,
        "clients": TRACE,
    }
    singles = dict(single(text, lab.release) for text in arguments.single)
    rows: Dict[str, Optional[Settings]] = {
        **{name: {PROFILE: name} for name in PROFILES},
        **singles,
        CRON: None,
        **({BOOK: None} if arguments.pages else {}),
    }

    def run(name: str) -> Dict[str, Any]:
        with closing(open_cluster(arguments.cluster)) as cluster:
            day = one_day(name, rows[name], cluster, lab, arguments)
        return {**conditions, "settings": rows[name], **day}

    runs_file.measure_each(arguments, rows, run, lambda line: f"{missed_minutes(line):.0f} min missed")


# what it came to


def bound_of(line: Mapping[str, Any]) -> float:
    return float(line["objective"].split("<=")[1].split()[0])


def missed_minutes(line: Mapping[str, Any]) -> float:
    """Of the day's 1440, in which the clients' p95 was beyond the bound."""
    missed = [window["client.p95_ms"] > bound_of(line) for window in line["windows"]]
    return 1440.0 * sum(missed) / len(missed)


def row_of(line: Mapping[str, Any]) -> str:
    """Where a day is counted: the first ones had clients of another shape."""
    return line["name"] if line.get("clients") == TRACE else f"{line['name']}, clients in a cosine"


def table(lines: List[Dict[str, Any]]) -> str:
    """One row for each that decides, means of its days with the ends of them."""
    text = [
        f"Objective: `{lines[0]['objective']}`. Ceph {lines[0]['ceph']}, OSDs {', '.join(lines[0]['osds'])}.",
        "",
        "| settings | days | objective missed, min a day | median p95 | lacking object-hours | not recovered | "
        "scrubbed objects | trimmed clones | journal entries |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys(map(row_of, lines)):
        own = [line for line in lines if row_of(line) == name]
        p95 = [statistics.median(window["client.p95_ms"] for window in line["windows"]) for line in own]
        cells = [
            _ends([missed_minutes(line) for line in own]),
            f"{statistics.fmean(p95):.0f} ms",
            *(_ends([line[key] for line in own]) for key in ("at_risk_object_hours", "left_objects")),
            *(_ends([line[key] for line in own]) for key in ("scrubbed_objects", "trimmed_clones", "journal_entries")),
        ]
        text.append(f"| {name} | {len(own)} | {' | '.join(cells)} |")
    dates = sorted({line["date"] for line in lines})
    busy = statistics.fmean(line["processors"]["busy"] for line in lines)
    text += ["", f"Measured on {', '.join(dates)}; {lines[0]['machine']}, {busy:.0f}% busy."]
    return "\n".join(text)


def _ends(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):,.0f}"
    return mean if len(values) < 2 else f"{mean} ({min(values):,.0f} to {max(values):,.0f})"


def main() -> None:
    parser = runs_file.lab_parser(__doc__, "day-on-lab.jsonl")
    parser.add_argument("--objective", default="client.p95_ms <= 40 ms")
    parser.add_argument("--pages", type=lambda path: json.loads(Path(path).read_text("utf-8")), help="of the book")
    parser.add_argument("--single", action="append", default=[], help="NAME:KNOB=VALUE,…; may be repeated")
    parser.add_argument("--only", action="append", help="one of the rows; may be repeated")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--predict", type=Path, help="write pages for the book, measure nothing")
    arguments = parser.parse_args()
    if arguments.predict is not None:
        predict(Lab.open(arguments.cluster), arguments.predict)
        return
    runs_file.measure_and_show(arguments, measure, table)


if __name__ == "__main__":
    main()
