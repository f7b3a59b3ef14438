"""Simulates how often a trial's verdict is wrong, and how many windows it takes to tell a true effect.

    python benchmarks/false_alarms.py > tables.md

Every run is a whole trial as the automatic mode sees it: pairs of windows before and during, a lasting difference
between canary and control, a load that triples in mid-trial, and the verdict asked for after every window.
In brackets: the same with a plain t-interval, without the corrections for looking and for correlation.
"""

from __future__ import annotations

import argparse
import math
import platform
import random
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence
from unittest import mock

from scipy.stats import t as student

from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, WORSE, Effect, Pair
from ceph_tuner.core.autopilot.effect import effects, harm_ruled_out, worse_at_all
from ceph_tuner.core.autopilot.policy import Policy

METRIC = "client.p95_ms"
POLICY = Policy()
LOG_DEVIATION = 0.7
"""Of the lognormal noise: skewed by 2.9, with an excess kurtosis of 18."""

Noise = Callable[[random.Random, int], List[float]]
"""So many values in the order of time, of mean 0 and deviation 1."""


def gaussian(chance: random.Random, count: int) -> List[float]:
    return [chance.gauss(0.0, 1.0) for _ in range(count)]


def autoregressive(correlation: float) -> Noise:
    def noise(chance: random.Random, count: int) -> List[float]:
        values = [chance.gauss(0.0, 1.0)]
        for _ in range(count - 1):
            values.append(correlation * values[-1] + math.sqrt(1.0 - correlation**2) * chance.gauss(0.0, 1.0))
        return values

    return noise


def student_4(chance: random.Random, count: int) -> List[float]:
    # chi-squared of 4 degrees is gamma of shape 2 and scale 2; the variance of t with 4 is 2
    return [
        chance.gauss(0.0, 1.0) / math.sqrt(chance.gammavariate(2.0, 2.0) / 4.0) / math.sqrt(2.0) for _ in range(count)
    ]


def lognormal(chance: random.Random, count: int) -> List[float]:
    square = LOG_DEVIATION**2
    middle, deviation = math.exp(square / 2.0), math.sqrt((math.exp(square) - 1.0) * math.exp(square))
    return [(chance.lognormvariate(0.0, LOG_DEVIATION) - middle) / deviation for _ in range(count)]


NOISES: Dict[str, Noise] = {
    "normal": gaussian,
    "normal, neighbours correlated by 0.3": autoregressive(0.3),
    "normal, neighbours correlated by 0.5": autoregressive(0.5),
    "Student's t with 4 degrees of freedom": student_4,
    "lognormal": lognormal,
}


class Case(NamedTuple):
    """What is true in a simulated trial."""

    noise: Noise = gaussian
    change: float = 0.0
    deviation: float = 0.1
    """Of a pair's log ratio."""
    before: int = POLICY.baseline_windows
    """0: old and new settings take turns."""
    during: int = POLICY.most_windows
    louder: float = 1.0
    """Factor on the deviation under the new settings."""
    wild: bool = False
    """Whether the second window under the new settings is three times off."""


def pairs_of(case: Case, chance: random.Random) -> List[Pair]:
    if not case.before:
        return turns_of(case, chance)
    lasting = math.exp(chance.gauss(0.0, 0.5))
    pairs = []
    for at, value in enumerate(case.noise(chance, case.before + case.during)):
        during = at >= case.before
        load = 20.0 if at < case.before + case.during // 3 else 60.0
        noise = case.deviation * value * (case.louder if during else 1.0)
        tried = load * lasting * math.exp(noise) * (1.0 + case.change if during else 1.0)
        pairs.append(Pair(float(at), during, {METRIC: tried}, {METRIC: load}))
    return pairs


def turns_of(case: Case, chance: random.Random) -> List[Pair]:
    """The load rises between two turns of one pair."""
    noise = case.noise(chance, 2 * case.during)
    step = 2 * (case.during // 3) + 1
    turns = [
        (20.0 if at < step else 60.0) * math.exp(case.deviation / math.sqrt(2.0) * value)
        for at, value in enumerate(noise)
    ]
    return [
        Pair(float(at), True, {METRIC: turns[2 * at] * (1.0 + case.change)}, {METRIC: turns[2 * at + 1]})
        for at in range(case.during)
    ]


def looks(case: Case, chance: random.Random) -> Iterator[Effect]:
    """The effect as it is seen after each window from the least on."""
    pairs = pairs_of(case, chance)
    if case.wild:
        second = pairs[case.before + 1]
        pairs[case.before + 1] = replace(second, tried={METRIC: 3.0 * second.tried[METRIC]})
    for end in range(case.before + POLICY.least_windows, len(pairs) + 1):
        found = effects(pairs[:end], {METRIC: True}, POLICY.confidence, POLICY.tolerance, alternating=not case.before)
        yield found[METRIC]


def share(case: Case, runs: int, wrong: Callable[[Effect], bool], seed: int = 1) -> float:
    """Share of trials in which some look is `wrong`."""
    chance = random.Random(seed)
    return sum(any(wrong(effect) for effect in looks(case, chance)) for _ in range(runs)) / runs


def windows_until(case: Case, runs: int, told: Callable[[Effect], bool], seed: int = 1) -> List[Optional[int]]:
    """Windows that each trial took; None where it was over before."""
    chance = random.Random(seed)
    return [next((effect.windows for effect in looks(case, chance) if told(effect)), None) for _ in range(runs)]


def alarm(effect: Effect) -> bool:
    return effect.verdict in (WORSE, BETTER)


@cache
def student_radius(effective: float, freedom: int, confidence: float) -> float:
    return float(student.ppf((1.0 + confidence) / 2.0, freedom))


@contextmanager
def ordinary() -> Iterator[None]:
    """Within this context intervals are plain t-intervals."""
    module = "ceph_tuner.core.autopilot.sequential"
    with mock.patch(f"{module}.radius", student_radius), mock.patch(f"{module}.inflation", return_value=1.0):
        yield


BASELINES = (POLICY.baseline_windows, 20, 60, 0)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def baseline_named(before: int) -> str:
    return f"{before} before" if before else "in turns"


def alarms(runs: int) -> str:
    cases = {name: Case(noise) for name, noise in NOISES.items()}
    cases["normal, 2.5 times as noisy during the trial"] = Case(louder=2.5)
    cases["normal, 0.4 times as noisy during the trial"] = Case(louder=0.4)
    cases["normal, deviation of 1%"] = Case(deviation=0.01)
    rows = []
    for name, case in cases.items():
        row = [name]
        for before in BASELINES:
            here = case._replace(before=before)
            with ordinary():
                plain = share(here, runs // 4, alarm)
            row.append(f"{share(here, runs, alarm):.1%} ({plain:.0%})")
        rows.append(row)
    return table(["noise", *map(baseline_named, BASELINES)], rows)


def harm_at_the_tolerance(runs: int) -> str:
    rows = []
    for name, noise in NOISES.items():
        shares = [
            share(Case(noise, POLICY.tolerance, before=before), runs, lambda effect: effect.verdict == WORSE)
            for before in BASELINES
        ]
        rows.append([name, *(f"{value:.1%}" for value in shares)])
    return table(["noise", *map(baseline_named, BASELINES)], rows)


def told(times: Sequence[Optional[int]]) -> str:
    seen = sum(time is not None for time in times) / len(times)
    middle = median(math.inf if time is None else time for time in times)
    return f"{'-' if middle == math.inf else f'{middle:g}'} ({seen:.0%})"


TOLD: Dict[str, Callable[[Effect], bool]] = {
    "better": lambda effect: effect.verdict == BETTER,
    "worse at all": lambda effect: worse_at_all(effect, lower_is_better=True),
    "worse": lambda effect: effect.verdict == WORSE,
    "harm ruled out": lambda effect: harm_ruled_out(effect, lower_is_better=True, tolerance=POLICY.tolerance),
    "alike": lambda effect: effect.verdict == ALIKE,
}


def power(runs: int) -> str:
    asked = [("better", change, False) for change in (-0.1, -0.2, -0.3)] + [("better", -0.2, True)]
    asked += [(verdict, change, False) for change in (0.1, 0.2, 0.3) for verdict in ("worse at all", "worse")]
    asked += [("harm ruled out", 0.0, False), ("alike", 0.0, False)]
    rows = []
    for deviation in (0.1, 0.05, 0.03):
        for verdict, change, wild in asked:
            cells = [
                told(windows_until(Case(gaussian, change, deviation, before, wild=wild), runs, TOLD[verdict]))
                for before in BASELINES
            ]
            effect = (f"{change:+.0%}" if change else "none") + (", one window wild" if wild else "")
            rows.append([f"{deviation:.0%}", effect, verdict, *cells])
    return table(["noise", "true effect", "told", *map(baseline_named, BASELINES)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=4000, help="trials of each case of the first two tables")
    runs = parser.parse_args().runs
    print(f"Python {platform.python_version()}, {runs} trials a case, power {runs // 8}.\n")
    for title, text in (("Alarms", alarms), ("Harm", harm_at_the_tolerance)):
        print(f"{title}\n\n{text(runs)}\n", flush=True)
    print(f"Power\n\n{power(runs // 8)}")


if __name__ == "__main__":
    main()
