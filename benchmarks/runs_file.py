"""Benchmarks that measure for hours: one line of JSON a run, and what is there is not measured again."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping

import measured_page

from ceph_lab.scenarios import Scenario
from ceph_tuner.core.errors import LabFailed


def parser(document: str, output: str) -> argparse.ArgumentParser:
    """Options that all of them have; the first line of `document` describes the benchmark."""
    made = argparse.ArgumentParser(description=document.split("\n", maxsplit=1)[0])
    made.add_argument("--until", type=next_at, help="begin no run after this time of day, HH:MM; earlier: tomorrow's")
    made.add_argument("--output", type=Path, default=Path("benchmarks/results") / output)
    made.add_argument("--render", type=Path, help="print the tables of an earlier run, measure nothing")
    made.add_argument("--page", type=Path, help="put the tables between the marks of this page as well")
    return made


def lab_parser(document: str, output: str) -> argparse.ArgumentParser:
    """The same for those that measure a lab."""
    made = parser(document, output)
    made.add_argument("--cluster", default="lab")
    return made


def next_at(time_of_day: str) -> datetime:
    """When the clock shows "HH:MM" next. Raises ValueError for what is none."""
    now = datetime.now()
    hour_minute = datetime.strptime(time_of_day, "%H:%M").time()
    today = datetime.combine(now.date(), hour_minute)
    return today if today > now else today + timedelta(days=1)


def over(arguments: argparse.Namespace) -> bool:
    """Whether no further run is to begin."""
    return arguments.until is not None and datetime.now() >= arguments.until


def lines_of(path: Path) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def show(text: str, arguments: argparse.Namespace, part: str = "measured") -> None:
    """Print it, and put it between the marks of that part where a page is named."""
    print(text)
    if arguments.page is not None:
        measured_page.put(text, arguments.page, part)


def measure_and_show(
    arguments: argparse.Namespace,
    measure: Callable[[argparse.Namespace], None],
    table: Callable[[List[Dict[str, Any]]], str],
    part: str = "measured",
) -> None:
    """Measure what is not there yet, unless an earlier run is only to be shown; then show the tables of all."""
    if arguments.render is None:
        measure(arguments)
    show(table(lines_of(arguments.render or arguments.output)), arguments, part)


def rewrite(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """These lines alone."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def measure_each(
    arguments: argparse.Namespace,
    names: Iterable[str],
    run: Callable[[str], Mapping[str, Any]],
    words: Callable[[Mapping[str, Any]], str],
) -> None:
    """Run each name (of `--only`, else all) `--repeats` times, a line of the output each; what is there is passed over.

    A run that the lab fails has no line. `words` are printed of each line.
    """
    for repeat in range(1, arguments.repeats + 1):
        for name in arguments.only or names:
            there = [(line["name"], line["repeat"]) for line in lines_of(arguments.output)]
            if (name, repeat) in there or over(arguments):
                continue
            began, processors = time.monotonic(), Processors()
            try:
                result = run(name)
            except LabFailed as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            line = {"name": name, "repeat": repeat, **result}
            line.update(date=time.strftime("%Y-%m-%d"), machine=machine(), processors=processors.percent())
            append(arguments.output, line)
            print(f"{name} {repeat}: {words(line)}, {time.monotonic() - began:.0f} s in all", flush=True)


def tell_shortfalls(loads: Scenario, seconds: float) -> None:
    """Say which loads may run out of work within so many seconds, settling included."""
    for line in loads.shortfalls(seconds):
        print(line, file=sys.stderr, flush=True)


def append(path: Path, line: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as output:
        output.write(json.dumps(line) + "\n")


class Processors:
    """What the machine's processors did since this was made: latencies grow with both shares."""

    def __init__(self) -> None:
        self._before = self._ticks()

    def percent(self) -> Dict[str, float]:
        """`busy`: the work of all programs here; `stolen`: what the machine's host gave to other guests meanwhile."""
        spent = [now - before for now, before in zip(self._ticks(), self._before)]
        user, nice, system, _, _, irq, softirq, stolen = spent
        whole = max(sum(spent), 1)
        busy = user + nice + system + irq + softirq
        return {"busy": round(100 * busy / whole, 1), "stolen": round(100 * stolen / whole, 1)}

    @staticmethod
    def _ticks() -> List[int]:
        """First line of /proc/stat (proc(5)), without the guests' time, which is in the users'."""
        return [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]


def machine() -> str:
    """What a page says of the machine that was measured on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"
