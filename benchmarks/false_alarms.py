"""Simulates how often a trial's verdict is wrong, and how many windows it takes to tell a true effect.

    python benchmarks/false_alarms.py
    python benchmarks/false_alarms.py --render benchmarks/results/false-alarms.jsonl \
        --page benchmarks/results/false-alarms.md

Every run is a whole trial as the automatic mode sees it: pairs of windows before and during, a lasting difference
between canary and control, a load that triples in mid-trial, and the verdict asked for after every window. Or turns of
old and new settings, each new one compared with the old ones before and after it.
In brackets: the same with a plain t-interval, without the corrections for looking and for correlation.
"""

from __future__ import annotations

import json
import math
import random
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple
from unittest import mock

import runs_file
from scipy.stats import t as student

from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, WORSE, Effect, Pair, Turn
from ceph_tuner.core.autopilot.effect import effects, effects_of_turns, harm_ruled_out, worsening
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.sequential import LEAST_TURNS

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
OSCILLATING = "normal, neighbours correlated by -0.3"
"""Windows that go up and down by turns, as bursts may: in turns alone, where they look like an effect the most."""


class Case(NamedTuple):
    """What is true in a simulated trial."""

    noise: str = "normal"
    change: float = 0.0
    deviation: float = 0.1
    """Of a pair's log ratio; of a turn's it is 1/sqrt(2) of that."""
    before: int = POLICY.baseline_windows
    """Windows under the old settings that are known."""
    turns: bool = False
    """Whether old and new settings take turns."""
    during: int = POLICY.most_windows
    louder: float = 1.0
    """Factor on the deviation under the new settings."""
    wild: bool = False
    """Whether the second window under the new settings is three times off."""


def noise_of(case: Case, chance: random.Random, count: int) -> List[float]:
    noise = autoregressive(-0.3) if case.noise == OSCILLATING else NOISES[case.noise]
    return noise(chance, count)


def pairs_of(case: Case, chance: random.Random) -> List[Pair]:
    lasting = math.exp(chance.gauss(0.0, 0.5))
    pairs = []
    for at, value in enumerate(noise_of(case, chance, case.before + case.during)):
        during = at >= case.before
        load = 20.0 if at < case.before + case.during // 3 else 60.0
        noise = case.deviation * value * (case.louder if during else 1.0)
        tried = load * lasting * math.exp(noise) * (1.0 + case.change if during else 1.0)
        tried *= 3.0 if case.wild and at == case.before + 1 else 1.0
        pairs.append(Pair(float(at), during, {METRIC: tried}, {METRIC: load}))
    return pairs


def turns_of(case: Case, chance: random.Random) -> Tuple[List[Dict[str, float]], List[Turn]]:
    """Windows before, and turns of which the first and the last are the old settings'. The load rises between two."""
    values = noise_of(case, chance, case.before + 2 * case.during + 1)
    turn_deviation = case.deviation / math.sqrt(2.0)
    before = [{METRIC: 20.0 * math.exp(turn_deviation * value)} for value in values[: case.before]]
    turns = []
    for at, value in enumerate(values[case.before :]):
        tried = at % 2 == 1
        load = 20.0 if at <= 2 * (case.during // 3) else 60.0
        seen = load * math.exp(turn_deviation * value * (case.louder if tried else 1.0))
        seen *= (1.0 + case.change if tried else 1.0) * (3.0 if case.wild and at == 3 else 1.0)
        turns.append(Turn(float(at), tried, {METRIC: seen}))
    return before, turns


def looks(case: Case, chance: random.Random) -> Iterator[Effect]:
    """The effect as it is seen after each window from the least on."""
    judged = {METRIC: True}, POLICY.confidence, POLICY.tolerance
    if case.turns:
        before, turns = turns_of(case, chance)
        for pairs_seen in range(LEAST_TURNS, case.during + 1):
            yield effects_of_turns(turns[: 2 * pairs_seen + 1], before, *judged)[METRIC]
        return
    pairs = pairs_of(case, chance)
    for end in range(case.before + POLICY.least_windows, len(pairs) + 1):
        yield effects(pairs[:end], *judged)[METRIC]


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
def student_radius(effective: float, freedom: float, confidence: float) -> float:
    return float(student.ppf((1.0 + confidence) / 2.0, freedom))


@contextmanager
def ordinary() -> Iterator[None]:
    """Within this context intervals are plain t-intervals."""
    module = "ceph_tuner.core.autopilot.sequential"
    with mock.patch(f"{module}.radius", student_radius), mock.patch(f"{module}.inflation", return_value=1.0):
        yield


BASELINES = (
    Case(before=6),
    Case(before=20),
    Case(before=60),
    Case(before=20, turns=True),
    Case(before=3, turns=True),
)
HEADS = ("6 before", "20 before", "60 before", "in turns", "in turns, 3 before")
TOLD: Dict[str, Callable[[Effect], bool]] = {
    "better": lambda effect: effect.verdict == BETTER,
    "worse at all": lambda effect: worsening(effect.low, effect.high, lower_is_better=True)[0] > 0.0,
    "worse": lambda effect: effect.verdict == WORSE,
    "harm ruled out": lambda effect: harm_ruled_out(effect, lower_is_better=True, tolerance=POLICY.tolerance),
    "alike": lambda effect: effect.verdict == ALIKE,
}


def alarm_cases() -> Dict[str, Case]:
    """What equal settings are simulated with, by the row's name."""
    cases = {name: Case(name) for name in NOISES}
    cases["normal, 2.5 times as noisy during the trial"] = Case(louder=2.5)
    cases["normal, 0.4 times as noisy during the trial"] = Case(louder=0.4)
    cases["normal, deviation of 1%"] = Case(deviation=0.01)
    cases[OSCILLATING] = Case(OSCILLATING)
    return cases


def power_cases() -> List[Tuple[str, Case]]:
    """Verdicts to wait for, and what is true."""
    asked = [("better", change, False) for change in (-0.1, -0.2, -0.3)] + [("better", -0.2, True)]
    asked += [(verdict, change, False) for change in (0.1, 0.2, 0.3) for verdict in ("worse at all", "worse")]
    asked += [("harm ruled out", 0.0, False), ("alike", 0.0, False)]
    return [
        (verdict, Case(change=change, deviation=deviation, wild=wild))
        for deviation in (0.1, 0.05, 0.03)
        for verdict, change, wild in asked
    ]


def on(baseline: Case, case: Case) -> Case:
    return case._replace(before=baseline.before, turns=baseline.turns)


def simulations(runs: int) -> Iterator[Dict[str, Any]]:
    """Simulate every case under every baseline; a line each."""
    for case in alarm_cases().values():
        for here in (on(baseline, case) for baseline in BASELINES):
            if case.noise == OSCILLATING and not here.turns:
                continue
            with ordinary():
                plain = share(here, runs // 4, alarm)
            yield {"asked": "alarm", **here._asdict(), "runs": runs, "share": share(here, runs, alarm), "plain": plain}
    for name in NOISES:
        for here in (on(baseline, Case(name, POLICY.tolerance)) for baseline in BASELINES):
            wrong = share(here, runs, TOLD["worse"])
            yield {"asked": "worse at the tolerance", **here._asdict(), "runs": runs, "share": wrong}
    for verdict, case in power_cases():
        for here in (on(baseline, case) for baseline in BASELINES):
            windows = windows_until(here, runs // 8, TOLD[verdict])
            yield {"asked": verdict, **here._asdict(), "runs": runs // 8, "windows": windows}


def lines(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def told(windows: Sequence[Optional[int]]) -> str:
    seen = sum(count is not None for count in windows) / len(windows)
    middle = median(math.inf if count is None else count for count in windows)
    return f"{'-' if middle == math.inf else f'{middle:g}'} ({seen:.0%})"


def table(data: Sequence[Dict[str, Any]]) -> str:
    """The page's tables, of the lines of a run."""
    by_case = {(line["asked"], Case(**{name: line[name] for name in Case._fields})): line for line in data}

    def cells(asked: str, case: Case, cell: Callable[[Dict[str, Any]], str]) -> List[str]:
        found = (by_case.get((asked, on(baseline, case))) for baseline in BASELINES)
        return ["" if line is None else cell(line) for line in found]

    head, rule = ["noise", *HEADS], ["---"] * (len(HEADS) + 1)
    alarms = [
        [name, *cells("alarm", case, lambda line: f"{line['share']:.1%} ({line['plain']:.0%})")]
        for name, case in alarm_cases().items()
    ]
    harm = [
        [name, *cells("worse at the tolerance", Case(name, POLICY.tolerance), lambda line: f"{line['share']:.1%}")]
        for name in NOISES
    ]
    power = []
    for verdict, case in power_cases():
        effect = (f"{case.change:+.0%}" if case.change else "none") + (", one window wild" if case.wild else "")
        row = cells(verdict, case, lambda line: told(line["windows"]))
        power.append([f"{case.deviation:.0%}", effect, verdict, *row])
    first = data[0]
    return "\n\n".join(
        (
            f"{first['runs']} trials a case, for the last table {first['runs'] // 8}.",
            "## False alarms: equal settings that are called better or worse at any look",
            lines([head, rule, *alarms]),
            "## Settings that are worse by exactly the tolerance, and are called *worse*",
            lines([head, rule, *harm]),
            "## Windows until an effect is told, and the share of trials that told it within 40",
            lines([["noise", "true effect", "told", *HEADS], ["---"] * (len(HEADS) + 3), *power]),
        )
    )


def main() -> None:
    parser = runs_file.parser(__doc__, "false-alarms.jsonl")
    parser.add_argument("--runs", type=int, default=600, help="trials of each case of the first two tables")
    arguments = parser.parse_args()
    if arguments.render is None:
        text = "".join(json.dumps(line) + "\n" for line in simulations(arguments.runs))
        Path(arguments.output).write_text(text, encoding="utf-8")
    runs_file.show(table(runs_file.lines_of(arguments.render or arguments.output)), arguments)


if __name__ == "__main__":
    main()
