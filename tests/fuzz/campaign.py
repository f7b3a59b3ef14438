"""Hostile input for a while: `make fuzz MINUTES=10`. Each input has a number, by which `--only` makes it again.

    python tests/fuzz/campaign.py --minutes 10 --seed 7
    python tests/fuzz/campaign.py --seed 7 --only store:1234
    python tests/fuzz/campaign.py --minutes 30 --output benchmarks/results/fuzz.jsonl --page benchmarks/results/fuzz.md

A finding is a traceback, a write that was not asked for, an input that takes over 5 s (without the time in which other
programs had the processors), or memory over 512 MiB.

With `--output` each run appends a line, and the page adds the lines up. A run takes the seed after the highest of the
file, so that no input counts twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(TESTS / folder)
    for folder in ("fuzz", "mgr", "autopilot", "report", "files", "cluster", "gather", "controller", "")
]
sys.path.append(str(TESTS.parent / "benchmarks"))

import runs_file  # noqa: E402

HANG_S = 5.0
MOST_MEMORY = 512 << 20
MOST_FINDINGS = 20
SHARES = {
    "store": 6,
    "plugin": 2,
    "texts": 4,
    "json": 3,
    "gathered": 3,
    "yaml": 4,
    "answers": 2,
    "worker": 2,
    "rest": 3,
    "controller": 2,
    "program": 1,
}
"""Of the time, by surface."""
WRITE, HANG, TRACEBACK = "write", "hang", "traceback"
UNASKED = "a write that was not asked for"
MEANINGS = {
    "store": "values of the store, under a running plugin",
    "plugin": "commands of the plugin, with arguments and files",
    "texts": "short texts that the mgr parses: objectives, targets, records",
    "json": "windows files, and results of workers elsewhere",
    "gathered": "files of `gather` and reports of Ceph, in place of a cluster",
    "yaml": "files of clusters, SLOs, fleets, profiles and fits",
    "answers": "answers that `report` draws",
    "worker": "answers of the optimiser's worker",
    "rest": "answers of a dashboard and of Prometheus",
    "controller": "custom resources, and what is noted on them",
    "program": "command lines, one in fifty as a process",
}


@dataclass(frozen=True)
class Finding:
    """What no input may lead to."""

    kind: str
    again: str
    """Options that make the input again."""
    problem: str

    @staticmethod
    def of(again: str, problem: str, hang: bool) -> Finding:
        kind = HANG if hang else WRITE if UNASKED in problem else TRACEBACK
        return Finding(kind, again, problem)

    def __str__(self) -> str:
        return f"{self.again}\n{self.problem}"


class Hang(BaseException):
    """An input takes too long."""


@dataclass
class Tally:
    """Of one surface."""

    inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    findings: List[Finding] = field(default_factory=list)


class Watch:
    """Time by the wall clock, without that in which this process, or one that it waits for, had no processor.

    So a machine that does much else makes nothing hang, and whatever sleeps or waits for ever still does.
    """

    def __init__(self) -> None:
        self._began, self._waited = time.monotonic(), self._waiting()
        self._before = {pid: _run_delay_s(pid) for pid in _children()}
        """What children that were there already have waited in their lives."""
        self._longest = 0.0
        """Of what a child waited, which is gone with it."""

    def seconds(self) -> float:
        """Since this was made."""
        children = [_run_delay_s(pid) - self._before.get(pid, 0.0) for pid in _children()]
        self._longest = max([self._longest, *children])
        return max(0.0, time.monotonic() - self._began - (self._waiting() - self._waited) - self._longest)

    @contextmanager
    def no_longer_than(self, seconds: float) -> Iterator[None]:
        """Raise Hang where it takes longer, as soon as the interpreter looks at signals."""

        def late(*_: object) -> None:
            left = seconds - self.seconds()
            if left <= 0:
                raise Hang
            signal.setitimer(signal.ITIMER_REAL, max(0.1, left))

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @staticmethod
    def _waiting() -> float:
        return _run_delay_s("self")


def _run_delay_s(pid: str) -> float:
    """Seconds that a process's main thread was ready and had no processor (/proc/PID/schedstat)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _children() -> List[str]:
    try:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    except OSError:
        return []


def run_one(surface: Any, name: str, seed: int, number: int, tally: Tally) -> None:
    """One turn of a surface, which counts its inputs."""
    watch = Watch()
    problem, hang = "", False
    try:
        with watch.no_longer_than(HANG_S):
            tally.inputs += surface(random.Random(f"{seed}/{name}/{number}"))
    except Hang:
        problem, hang = f"over {HANG_S:g} s\n{traceback.format_exc()}", True
    except Exception:
        problem = traceback.format_exc()
    taken = watch.seconds()
    tally.seconds += taken
    tally.slowest_s = max(tally.slowest_s, taken)
    if not problem and taken > HANG_S:
        problem, hang = f"took {taken:.1f} s", True
    if problem:
        tally.findings.append(Finding.of(f"--seed {seed} --only {name}:{number}", problem, hang))


def campaign(
    seconds: float, seed: int, turns: Optional[int] = None, shares: Optional[Dict[str, int]] = None
) -> Dict[str, Tally]:
    """Turns of all surfaces by their shares of the time, until it is over; `turns`: at most so many of each."""
    from surfaces import SURFACES

    shares = shares or SHARES
    made = {name: SURFACES[name]() for name in shares}
    tallies = {name: Tally() for name in shares}
    numbers = dict.fromkeys(shares, 0)
    end = time.monotonic() + seconds
    while time.monotonic() < end and sum(len(tally.findings) for tally in tallies.values()) < MOST_FINDINGS:
        open_ones = [name for name in shares if turns is None or numbers[name] < turns]
        if not open_ones:
            break
        name = min(open_ones, key=lambda one: tallies[one].seconds / shares[one])
        try:
            run_one(made[name], name, seed, numbers[name], tallies[name])
        except KeyboardInterrupt:
            # what was made so far counts
            break
        numbers[name] += 1
    return tallies


def memory() -> int:
    """Bytes that this process has taken at most; `getrusage` counts what its parent took as well."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) << 10


def line_of(seed: int, tallies: Mapping[str, Tally]) -> Dict[str, Any]:
    """One run, as a line of the output."""
    return {
        "seed": seed,
        "date": time.strftime("%Y-%m-%d"),
        "machine": runs_file.machine(),
        "memory_mib": memory() >> 20,
        "surfaces": {
            name: {
                "inputs": tally.inputs,
                "seconds": round(tally.seconds, 1),
                "slowest_s": round(tally.slowest_s, 2),
                "findings": [{"kind": finding.kind, "again": finding.again} for finding in tally.findings],
            }
            for name, tally in tallies.items()
        },
    }


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """All runs added up, a row for each surface."""
    rows = [
        "| surface | what | inputs | a second | slowest turn | findings |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    names = list(dict.fromkeys(name for line in lines for name in line["surfaces"]))
    kinds = dict.fromkeys((TRACEBACK, WRITE, HANG), 0)
    total = 0
    for name in names:
        parts = [line["surfaces"][name] for line in lines if name in line["surfaces"]]
        inputs, seconds = (sum(part[key] for part in parts) for key in ("inputs", "seconds"))
        for part in parts:
            for finding in part["findings"]:
                kinds[finding["kind"]] += 1
        total += inputs
        cells = [name, MEANINGS[name], f"{inputs:,}".replace(",", " "), f"{inputs / max(seconds, 0.1):.0f}"]
        cells += [f"{max(part['slowest_s'] for part in parts):.2f} s", str(sum(len(p["findings"]) for p in parts))]
        rows.append(f"| {' | '.join(cells)} |")
    seeds = sorted(line["seed"] for line in lines)
    hours = sum(part["seconds"] for line in lines for part in line["surfaces"].values()) / 3600
    return "\n".join(
        [
            *rows,
            "",
            f"{total:,} inputs".replace(",", " ")
            + f" in {hours:.1f} h, seeds {', '.join(map(str, seeds))}: {kinds[TRACEBACK]} tracebacks, {kinds[WRITE]} "
            f"writes that were not asked for, {kinds[HANG]} inputs over {HANG_S:g} s, "
            f"{max(line['memory_mib'] for line in lines)} MiB of memory at most.",
        ]
    )


def next_seed(lines: Sequence[Mapping[str, Any]]) -> int:
    """One that no run has had."""
    return max((line["seed"] for line in lines), default=int(time.time()) - 1) + 1


def main() -> int:
    """0 where nothing is found."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--minutes", type=float, default=10.0)
    given.add_argument("--turns", type=int, default=None, help="at most so many of each surface")
    given.add_argument("--seed", type=int, default=None)
    given.add_argument("--only", metavar="SURFACE[:NUMBER]", default="")
    given.add_argument("--output", type=Path, help="append the run, as a line of JSON")
    given.add_argument("--render", type=Path, help="print what the runs of this file add up to, make no input")
    given.add_argument("--page", type=Path, help="put that between the marks of this page as well")
    arguments = given.parse_args()
    if arguments.render is not None:
        runs_file.show(table(runs_file.lines_of(arguments.render)), arguments)
        return 0
    earlier = runs_file.lines_of(arguments.output) if arguments.output is not None else []
    seed = next_seed(earlier) if arguments.seed is None else arguments.seed
    if seed in [line["seed"] for line in earlier]:
        given.error(f"the runs of {arguments.output} have had seed {seed}: their inputs would count twice")
    name, _, number = arguments.only.partition(":")
    if number:
        from surfaces import SURFACES

        tallies = {name: Tally()}
        run_one(SURFACES[name](), name, seed, int(number), tallies[name])
    else:
        tallies = campaign(arguments.minutes * 60, seed, arguments.turns, {name: 1} if name else None)
    found = [finding for tally in tallies.values() for finding in tally.findings]
    for finding in found:
        print(finding, file=sys.stderr)
    line = line_of(seed, tallies)
    if arguments.output is not None and not number:
        runs_file.append(arguments.output, line)
        runs_file.show(table([*earlier, line]), arguments)
    print(json.dumps(line, indent=1))
    total = sum(tally.inputs for tally in tallies.values())
    print(f"{total} inputs, {len(found)} findings, {memory() >> 20} MiB at most")
    return 1 if found or memory() > MOST_MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
