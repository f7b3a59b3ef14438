"""A day of a cluster in the twin's time: one setting for all of it, a profile by the clock, or the book?

    python benchmarks/day.py --predict benchmarks/results/day-pages.json
    python benchmarks/day.py --days 2 --output benchmarks/results/day.jsonl
    python benchmarks/day.py --render benchmarks/results/day.jsonl --page benchmarks/results/day.md
    python benchmarks/day.py --bounds 15 20 25 --scrubbed 110000 130000 --only 'all day'

Clients have the daily shape of a block trace (`day_shape.py`), two OSDs are lost, deep scrubs are due, a snapshot is
deleted (`day_world.py`). What is compared (`day_policies.py`): each built-in profile all day, each custom setting of a
grid by hand or of those that were found all day, `cron` (which writes one profile at 8 and another at 20 h), `book`
(the plugin with its book on, as on a cluster, without and with a boost rule), and an oracle, which knows each phase
beforehand. All of them find `balanced` in force and the scrubs under way, and begin with the day.

Pages are either of the grid, chosen by runs of the twin with seeds of their own, or those that `book predict` finds
(`--predict`, in minutes; `day_pages.py`). An oracle chooses from the grid, another one from both. The best single
setting is chosen on day 0, of all; days from `FIRST_TOLD` on are what is told.

A row has the clients' p95 of each window, so that one life is judged by any bound (`--bounds`, on day 0).
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import runs_file
from day_pages import predict
from day_policies import BOUND_MS, POLICIES, TICK_S, lived_with
from day_world import HOUR_S, LOOK_S, SCRUBBED, DayWorld
from flight_world import OSDS

FIRST_TOLD = 14
"""The first day that is told. Once somebody has looked at a day to make book or pages better, it is a later one."""
DONE = 0.01
"""Share of the scrubs that may be left where they count as done."""
DAY_H = 24.0


def live(policy: str, seed: int, hours: float = DAY_H, scrubbed: int = SCRUBBED) -> Dict[str, Any]:
    """A day, or so many hours of it, after a time that nobody judges; gives what is counted of it."""
    world = DayWorld(seed, scrubbed)
    deciding, at_risk, windows = POLICIES[policy].decide(world), 0.0, []
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
    changes = sum(1 for _ in world.cluster.store.keys("journal/"))
    return {
        "policy": policy,
        "day": seed,
        "lived_with": lived_with(policy, scrubbed),
        "hours": hours,
        "degraded_object_hours": at_risk,
        "scrubs_not_done": world.remaining()[1] / scrubbed,
        "changes": changes,
        "osds": OSDS,
        "p95_ms": windows,
    }


def missed_minutes(line: Mapping[str, Any], bound_ms: float = BOUND_MS) -> float:
    """Minutes of its day in which the clients' p95 was above the bound."""
    judged = [p95 for p95 in line["p95_ms"] if p95 is not None]
    return float(60.0 * line["hours"] * sum(p95 > bound_ms for p95 in judged) / max(len(judged), 1))


def counted(lines: Sequence[Mapping[str, Any]], scrubbed: int = SCRUBBED) -> List[Mapping[str, Any]]:
    """Whole days of what the policies are now; all others were lived with something else."""
    return [
        line
        for line in lines
        if line["policy"] in POLICIES
        and line["hours"] == DAY_H
        and line["lived_with"] == lived_with(line["policy"], scrubbed)
    ]


def measure(arguments: Any) -> None:
    """Day 0 chooses the best single setting; days from `FIRST_TOLD` on are told."""
    for day in (0, *range(FIRST_TOLD, FIRST_TOLD + arguments.days)):
        names = [name for name in _named(arguments) if day or name.startswith("all day")]
        _live_each([(name, day, scrubbed) for scrubbed in arguments.scrubbed for name in names], arguments)


def measure_bounds(arguments: Any) -> None:
    """Day 0 alone."""
    _live_each([(name, 0, scrubbed) for scrubbed in arguments.scrubbed for name in _named(arguments)], arguments)


def _named(arguments: Any) -> List[str]:
    return [name for name in POLICIES if not arguments.only or any(part in name for part in arguments.only)]


def _live_each(lives: Sequence[Tuple[str, int, int]], arguments: Any) -> None:
    """What the output has not yet."""
    for policy, day, scrubbed in lives:
        known = {(line["policy"], line["day"]) for line in counted(runs_file.lines_of(arguments.output), scrubbed)}
        if (policy, day) not in known and not runs_file.over(arguments):
            line = live(policy, day, scrubbed=scrubbed)
            runs_file.append(arguments.output, {**line, "machine": runs_file.machine()})
            told = f"{missed_minutes(line):.0f} min missed, {line['degraded_object_hours']:,.0f} degraded object-hours"
            left = f"{line['scrubs_not_done']:.0%} of {scrubbed:,} scrubs not done"
            print(f"day {day}, {policy}: {told}, {left}", flush=True)


def best_single(lines: Sequence[Mapping[str, Any]]) -> Optional[str]:
    """By day 0: of those that get the scrubs done, if any does, the fewest missed minutes, then the least at risk."""
    first = [line for line in lines if line["day"] == 0 and line["policy"].startswith("all day")]
    if not first:
        return None
    first = [line for line in first if line["scrubs_not_done"] <= DONE] or first
    return str(min(first, key=lambda line: (round(missed_minutes(line)), line["degraded_object_hours"]))["policy"])


def table(lines: List[Dict[str, Any]], scrubbed: int = SCRUBBED) -> str:
    """Means over the days that were not chosen on."""
    kept = counted(lines, scrubbed)
    best, told = best_single(kept), [line for line in kept if line["day"] >= FIRST_TOLD]
    rows = [_head(scrubbed, ["objective missed, min a day"])]
    for policy in POLICIES:
        own = [line for line in told if line["policy"] == policy]
        if own:
            name = f"**{policy}** (best on day 0)" if policy == best else policy
            missed = statistics.fmean(missed_minutes(line) for line in own)
            rows.append(f"| {name} | {missed:.0f} | {' | '.join(_means(own))} |")
    days = len({line["day"] for line in told})
    return "\n".join([*rows, "", "Of one day." if days == 1 else f"Means of {days} days."])


def _head(scrubbed: int, missed: Sequence[str]) -> str:
    names = [f"{scrubbed:,} objects to scrub", *missed, "degraded object-hours", "not scrubbed", "journal entries"]
    return f"| {' | '.join(names)} |\n| --- |{' ---: |' * (len(names) - 1)}"


def _means(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name, form in (("degraded_object_hours", ",.0f"), ("scrubs_not_done", ".0%"), ("changes", ".1f")):
        yield f"{statistics.fmean(line[name] for line in lines):{form}}"


def bounds_table(lines: List[Dict[str, Any]], bounds_ms: Sequence[float], scrubbed: int = SCRUBBED) -> str:
    """Minutes of day 0 by bound."""
    rows = [_head(scrubbed, [f"missed beyond {bound:g} ms" for bound in bounds_ms])]
    for line in counted(lines, scrubbed):
        if line["day"] == 0:
            missed = " | ".join(f"{missed_minutes(line, bound):.0f}" for bound in bounds_ms)
            rows.append(f"| {line['policy']} | {missed} | {' | '.join(_means([line]))} |")
    return "\n".join(rows)


def main() -> int:
    """Live the days, or write the page."""
    parser = runs_file.parser(__doc__, "day.jsonl")
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--predict", type=Path, help="find pages on the twin, write them here, and live no day")
    parser.add_argument("--only", nargs="+", metavar="POLICY", help="those whose names have one of these in them")
    parser.add_argument("--bounds", nargs="+", type=float, metavar="MS", help="live day 0 alone, and judge it by each")
    parser.add_argument("--scrubbed", nargs="+", type=int, default=[SCRUBBED], metavar="OBJECTS")
    arguments = parser.parse_args()
    if arguments.predict is not None:
        predict(arguments.predict)
        return 0

    def tables(lines: List[Dict[str, Any]]) -> str:
        of_each = (
            bounds_table(lines, arguments.bounds, scrubbed) if arguments.bounds else table(lines, scrubbed)
            for scrubbed in arguments.scrubbed
        )
        return "\n\n".join(of_each)

    runs_file.measure_and_show(arguments, measure_bounds if arguments.bounds else measure, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
