"""Hostile input for a while: `make fuzz MINUTES=10`. Each input has a number, by which `--only` makes it again.

    python tests/fuzz/campaign.py --minutes 10 --seed 7
    python tests/fuzz/campaign.py --seed 7 --only store:1234

A finding is a traceback, a write that was not asked for, an input that takes over 5 s, or memory over 512 MiB.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("fuzz", "mgr", "autopilot", "report", "files", "clusters", "")]

HANG_S = 5.0
MOST_MEMORY = 512 << 20
MOST_FINDINGS = 20
SHARES = {"store": 6, "plugin": 2, "texts": 4, "json": 3, "yaml": 4, "answers": 2, "worker": 2, "rest": 3, "program": 1}
"""Of the time, by surface."""


class Hang(BaseException):
    """An input takes too long."""


@dataclass
class Tally:
    """Of one surface."""

    inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    findings: List[str] = field(default_factory=list)


@contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Raise Hang where it takes longer, as soon as the interpreter looks at signals."""

    def late(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_one(surface: Any, name: str, seed: int, number: int, tally: Tally) -> None:
    """One turn of a surface, which counts its inputs."""
    began = time.monotonic()
    problem = ""
    try:
        with no_longer_than(HANG_S):
            tally.inputs += surface(random.Random(f"{seed}/{name}/{number}"))
    except Hang:
        problem = f"over {HANG_S:g} s\n{traceback.format_exc()}"
    except Exception:
        problem = traceback.format_exc()
    taken = time.monotonic() - began
    tally.seconds += taken
    tally.slowest_s = max(tally.slowest_s, taken)
    if not problem and taken > HANG_S:
        problem = f"took {taken:.1f} s"
    if problem:
        tally.findings.append(f"--seed {seed} --only {name}:{number}\n{problem}")


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
        run_one(made[name], name, seed, numbers[name], tallies[name])
        numbers[name] += 1
    return tallies


def memory() -> int:
    """Bytes that this process has taken at most; `getrusage` counts what its parent took as well."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) << 10


def main() -> int:
    """0 where nothing is found."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--minutes", type=float, default=10.0)
    given.add_argument("--turns", type=int, default=None, help="at most so many of each surface")
    given.add_argument("--seed", type=int, default=None)
    given.add_argument("--only", metavar="SURFACE[:NUMBER]", default="")
    arguments = given.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
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
    rows = {
        name: {"inputs": tally.inputs, "seconds": round(tally.seconds), "slowest_s": round(tally.slowest_s, 2)}
        for name, tally in tallies.items()
    }
    total = sum(tally.inputs for tally in tallies.values())
    print(json.dumps({"seed": seed, "surfaces": rows}, indent=1))
    print(f"{total} inputs, {len(found)} findings, {memory() >> 20} MiB at most")
    return 1 if found or memory() > MOST_MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
