"""A day of a cluster in the twin's time: one setting for all of it, a profile by the clock, or the book?

    python benchmarks/day.py --predict benchmarks/results/day-pages.json
    python benchmarks/day.py --days 2
    python benchmarks/day.py --render benchmarks/results/day.jsonl --page benchmarks/results/day.md
    python benchmarks/day.py --kind day-office --days 2
    python benchmarks/day.py --bounds 15 20 25 --scrubbed 110000 130000 --only 'all day'

Clients have the daily shape of a block trace (`day_shape.py`), two OSDs are lost, deep scrubs are due, a snapshot is
deleted (`day_world.py`). The clients' p95 has one bound at all hours, or another one in office hours (`day_kinds.py`).
What is compared (`day_policies.py`): each built-in profile all day, each custom setting of a
grid by hand or of those that were found all day, `cron` (which writes one profile at 8 and another at 20 h), `book`
(the plugin with its book on, as on a cluster, without and with a boost rule), and an oracle, which knows each phase
beforehand. All of them find `balanced` in force and the scrubs under way, and begin with the day.

Pages are either of the grid, chosen by runs of the twin with seeds of their own, or those that `book predict` finds
(`--predict`, in minutes; `day_pages.py`). An oracle chooses from the grid, another one from both. The best single
setting is chosen on day 0, of all; what is told is days that nobody had looked at.

A row has the clients' p95 of each window, so that one life is judged by any bound (`--bounds`, on day 0).
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import runs_file
from day_kinds import KINDS, ONE_BOUND, Kind
from day_pages import predict
from day_policies import TICK_S, lived_with, policies
from day_world import HOUR_S, LOOK_S, DayWorld
from flight_world import OSDS

DONE = 0.01
"""Share of the scrubs that may be left where they count as done."""
DAY_H = 24.0


def live(policy: str, seed: int, kind: Kind, scrubbed: int, hours: float = DAY_H) -> Dict[str, Any]:
    """A day, or so many hours of it, after a time that nobody judges; gives what is counted of it."""
    world = DayWorld(seed, scrubbed)
    deciding, at_risk, windows = policies(kind)[policy].decide(world), 0.0, []
    next_look = world.now() + LOOK_S
    while world.hour() < hours:
        began, is_judged = world.now(), world.hour() >= 0.0
        next(deciding)
        world.advance(max(0.0, began + TICK_S - world.now()))
        at_risk += is_judged * world.remaining()[0] * (world.now() - began) / HOUR_S
        if world.now() >= next_look:
            next_look = world.now() + LOOK_S
            seen = world.clients_p95_ms()
            if is_judged:
                windows.append(None if seen is None else round(seen, 1))
    missed, dates = world.scrub_dates()
    changes = sum(1 for _ in world.cluster.store.keys("journal/"))
    return {
        "policy": policy,
        "day": seed,
        "lived_with": lived_with(policy, scrubbed, kind),
        "hours": hours,
        "degraded_object_hours": at_risk,
        "scrubs_not_done": world.remaining()[1] / scrubbed,
        "scrub_dates_missed": missed,
        "scrub_dates": dates,
        "changes": changes,
        "osds": OSDS,
        "p95_ms": windows,
    }


def missed_minutes(line: Mapping[str, Any], bound_ms: Callable[[float], float]) -> float:
    """Minutes of its day in which the clients' p95 was above the bound, which is told by the hour."""
    windows, hours = line["p95_ms"], line["hours"]
    judged = [(number, p95) for number, p95 in enumerate(windows) if p95 is not None]
    missed = sum(p95 > bound_ms((number + 0.5) * hours / len(windows)) for number, p95 in judged)
    return float(60.0 * hours * missed / max(len(judged), 1))


def counted(lines: Sequence[Mapping[str, Any]], kind: Kind, scrubbed: int) -> List[Mapping[str, Any]]:
    """Whole days of what the policies are now; all others were lived with something else."""
    return [
        line
        for line in lines
        if line["policy"] in policies(kind)
        and line["hours"] == DAY_H
        and line["lived_with"] == lived_with(line["policy"], scrubbed, kind)
    ]


def measure(arguments: Any) -> None:
    """Day 0 chooses the best single setting; days from `Kind.first_reported` on are reported."""
    first = arguments.kind.first_reported if arguments.first is None else arguments.first
    for day in (0, *range(first, first + arguments.days)):
        names = [name for name in _named(arguments) if day or name.startswith("all day")]
        _live_each([(name, day, scrubbed) for scrubbed in arguments.scrubbed for name in names], arguments)


def measure_bounds(arguments: Any) -> None:
    """Day 0 alone."""
    _live_each([(name, 0, scrubbed) for scrubbed in arguments.scrubbed for name in _named(arguments)], arguments)


def _named(arguments: Any) -> List[str]:
    return [
        name for name in policies(arguments.kind) if not arguments.only or any(part in name for part in arguments.only)
    ]


def _live_each(lives: Sequence[Tuple[str, int, int]], arguments: Any) -> None:
    """What the output has not yet."""
    kind = arguments.kind
    for policy, day, scrubbed in lives:
        there = counted(runs_file.lines_of(arguments.output), kind, scrubbed)
        if (policy, day) not in {(line["policy"], line["day"]) for line in there} and not runs_file.over(arguments):
            line = live(policy, day, kind, scrubbed)
            runs_file.append(arguments.output, {**line, "machine": runs_file.machine()})
            missed = f"{missed_minutes(line, kind.bound_ms):.0f} min missed"
            at_risk = f"{line['degraded_object_hours']:,.0f} degraded object-hours"
            left = f"{line['scrubs_not_done']:.0%} of {scrubbed:,} scrubs not done"
            dates = f"{line['scrub_dates_missed']} of {line['scrub_dates']} scrub dates missed"
            print(f"day {day}, {policy}: {missed}, {at_risk}, {left}, {dates}", flush=True)


def best_single(lines: Sequence[Mapping[str, Any]], kind: Kind) -> Optional[str]:
    """By day 0: of those that get the scrubs done, if any does, the fewest missed minutes, then the least at risk."""
    first = [line for line in lines if line["day"] == 0 and line["policy"].startswith("all day")]
    if not first:
        return None
    first = [line for line in first if line["scrubs_not_done"] <= DONE] or first

    def worth(line: Mapping[str, Any]) -> Tuple[int, float]:
        return round(missed_minutes(line, kind.bound_ms)), line["degraded_object_hours"]

    return str(min(first, key=worth)["policy"])


def table(lines: List[Dict[str, Any]], kind: Kind = ONE_BOUND, scrubbed: Optional[int] = None) -> str:
    """Means over the days that were not chosen on."""
    scrubbed = scrubbed or kind.scrubbed
    kept = counted(lines, kind, scrubbed)
    best, reported = best_single(kept, kind), [line for line in kept if line["day"] >= kind.first_reported]
    counts, days = _counts(reported), {line["day"] for line in reported}
    rows = [_head(scrubbed, ["objective missed, min a day"], counts)]
    for policy in policies(kind):
        own = [line for line in reported if line["policy"] == policy]
        if own:
            name = f"**{policy}** (best on day 0)" if policy == best else policy
            name += f", {len(own)} of the days" if len(own) < len(days) else ""
            missed = statistics.fmean(missed_minutes(line, kind.bound_ms) for line in own)
            rows.append(f"| {name} | {missed:.0f} | {' | '.join(_means(own, counts))} |")
    return "\n".join([*rows, "", "Of one day." if len(days) == 1 else f"Means of {len(days)} days."])


class _Count(NamedTuple):
    """A column of means."""

    name: str
    key: str
    form: str


_COUNTS = (
    _Count("degraded object-hours", "degraded_object_hours", ",.0f"),
    _Count("not scrubbed", "scrubs_not_done", ".0%"),
    _Count("PGs past their scrub date", "scrub_dates_missed", ".1f"),
    _Count("journal entries", "changes", ".1f"),
)


def _counts(lines: Sequence[Mapping[str, Any]]) -> List[_Count]:
    """What some of these lines have: earlier ones have no dates."""
    return [count for count in _COUNTS if not lines or any(count.key in line for line in lines)]


def _head(scrubbed: int, missed: Sequence[str], counts: Sequence[_Count]) -> str:
    names = [f"{scrubbed:,} objects to scrub", *missed, *(count.name for count in counts)]
    return f"| {' | '.join(names)} |\n| --- |{' ---: |' * (len(names) - 1)}"


def _means(lines: Sequence[Mapping[str, Any]], counts: Sequence[_Count]) -> Iterator[str]:
    for count in counts:
        values = [line[count.key] for line in lines if count.key in line]
        yield f"{statistics.fmean(values):{count.form}}" if len(values) == len(lines) else ""


def bounds_table(lines: List[Dict[str, Any]], bounds_ms: Sequence[float], kind: Kind, scrubbed: int) -> str:
    """Minutes of day 0 by bound, the same at all hours."""
    first = [line for line in counted(lines, kind, scrubbed) if line["day"] == 0]
    counts = _counts(first)
    rows = [_head(scrubbed, [f"missed beyond {bound:g} ms" for bound in bounds_ms], counts)]
    for line in first:
        missed = " | ".join(f"{missed_minutes(line, lambda hour, bound=bound: bound):.0f}" for bound in bounds_ms)
        rows.append(f"| {line['policy']} | {missed} | {' | '.join(_means([line], counts))} |")
    return "\n".join(rows)


def main() -> int:
    """Live the days, or write the page."""
    parser = runs_file.parser(__doc__, ONE_BOUND.rows.name)
    parser.set_defaults(output=None)
    parser.add_argument("--kind", type=KINDS.__getitem__, default=ONE_BOUND, help=f"of day: {', '.join(KINDS)}")
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument(
        "--first", type=int, metavar="DAY", help="live days from this one on, not those that are reported"
    )
    parser.add_argument("--predict", type=Path, help="find pages on the twin, write them here, and live no day")
    parser.add_argument("--only", nargs="+", metavar="POLICY", help="those whose names have one of these in them")
    parser.add_argument("--bounds", nargs="+", type=float, metavar="MS", help="live day 0 alone, and judge it by each")
    parser.add_argument("--scrubbed", nargs="+", type=int, metavar="OBJECTS")
    arguments = parser.parse_args()
    kind = arguments.kind
    if arguments.predict is not None:
        predict(arguments.predict, kind)
        return 0
    arguments.output = arguments.output or kind.rows
    arguments.scrubbed = arguments.scrubbed or [kind.scrubbed]

    def tables(lines: List[Dict[str, Any]]) -> str:
        of_each = (
            bounds_table(lines, arguments.bounds, kind, scrubbed) if arguments.bounds else table(lines, kind, scrubbed)
            for scrubbed in arguments.scrubbed
        )
        return "\n\n".join(of_each)

    runs_file.measure_and_show(arguments, measure_bounds if arguments.bounds else measure, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
