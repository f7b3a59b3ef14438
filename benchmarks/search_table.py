"""What the runs of a comparison of optimisers say: gains, safety and trials, with bootstrap intervals over the runs."""

from __future__ import annotations

from typing import Any, Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np
from scipy import stats
from search_peers import TITLES

Result = Mapping[str, Any]
By = Dict[str, Dict[str, Result]]
"""Optimiser -> problem -> its run; optimisers in the order of TITLES."""

LEAST_GAIN = 0.001
"""In the objective's scale, of the best optimiser: below it, shares of it say nothing."""


def gain(result: Result) -> float:
    """The start's true objective less the recommended one's, in its scale; 0 when a constraint is truly missed."""
    return 0.0 if result["recommended_violates"] else result["objectives"][0] - result["recommended"]


def best_seen(result: Result) -> float:
    """The same for the best trial that truly kept every constraint, whether or not it was recommended."""
    kept = [o for o, violated in zip(result["objectives"], result["violated"]) if not violated]
    return result["objectives"][0] - min(kept) if kept else 0.0


def unsafe(result: Result) -> float:
    """Share of its trials."""
    return float(np.mean(result["unsafe"]))


def first_met(result: Result) -> Optional[int]:
    """Number of the first trial that truly keeps every constraint, the start being 1; None: there was none."""
    return next((number for number, violated in enumerate(result["violated"], 1) if not violated), None)


def met_within(result: Result, trials: float) -> bool:
    number = first_met(result)
    return number is not None and number <= trials


def compared(by: By) -> List[str]:
    """Problems that every optimiser has been through."""
    first, *others = by.values()
    return [problem for problem in first if all(problem in runs for runs in others)]


def relative(by: By, measure: Callable[[Result], float]) -> Dict[str, List[float]]:
    """Optimiser -> its share of the best optimiser's, 0 for a loss, where one of them gained at least LEAST_GAIN."""
    found: Dict[str, List[float]] = {name: [] for name in by}
    for problem in compared(by):
        values = {name: measure(runs[problem]) for name, runs in by.items()}
        best = max(values.values())
        for name, value in values.items() if best >= LEAST_GAIN else ():
            found[name].append(max(0.0, value) / best)
    return found


def ranks(by: By) -> Dict[str, List[float]]:
    """Optimiser -> its place by gain in each problem, 1 the best; equals share their places' mean."""
    rows = [stats.rankdata([-gain(runs[problem]) for runs in by.values()]) for problem in compared(by)]
    return {name: [float(row[place]) for row in rows] for place, name in enumerate(by)}


def interval(values: Sequence[float], statistic: Callable[..., Any], form: str = ".2f") -> str:
    """`statistic [low, high]`: of the runs, and 95% of its bootstrap; the same runs always give the same text."""
    if not values:
        return "—"
    middle = f"{statistic(values):{form}}"
    if len(values) < 2:
        return middle
    # scipy 1.15 calls it rng, and knows the older name
    drawn = stats.bootstrap((values,), statistic, method="percentile", random_state=np.random.default_rng(1))
    return f"{middle} [{drawn.confidence_interval.low:{form}}, {drawn.confidence_interval.high:{form}}]"


class Table(NamedTuple):
    """A suite's, and what its columns mean."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def _seconds(runs: Sequence[Result]) -> str:
    return f"{np.mean([second for run in runs for second in run['cpu_s']]):.2f}"


def constrained(by: By) -> Table:
    shares, seen, places = relative(by, gain), relative(by, best_seen), ranks(by)
    rows = []
    for name, of_problem in by.items():
        runs = list(of_problem.values())
        feasible = [float(not run["recommended_violates"]) for run in runs]
        rows.append([
            TITLES[name],
            str(len(runs)),
            interval([gain(run) for run in runs], np.median),
            interval(shares[name], np.median),
            interval(shares[name], np.mean),
            interval(places[name], np.mean, ".1f"),
            interval([unsafe(run) for run in runs], np.mean, ".1%"),
            interval(feasible, np.mean, ".0%"),
            interval(seen[name], np.mean),
            _seconds(runs),
        ])  # fmt: skip
    heads = [
        "optimiser", "runs", "gain in standard deviations, median", "gain (best = 1), median", "gain (best = 1), mean",
        "mean rank", "unsafe evaluations", "recommended point truly feasible", "best feasible evaluation (best = 1)",
        "CPU s a trial",
    ]  # fmt: skip
    count = len(compared(by))
    note = (
        "Gain: the start's true objective less the recommended point's; 0 where that truly misses a constraint. "
        f"Comparisons (best = 1, ranks) are over the {count} runs that every optimiser in the table has finished. "
        f"Shares count a loss as 0, and leave out runs in which nobody gained {LEAST_GAIN} or more. "
        "Brackets: 95% of the bootstrap over runs."
    )
    return Table(heads, rows, note)


def tuning(by: By) -> Table:
    rows = []
    for name, of_problem in by.items():
        runs = list(of_problem.values())
        can = [run for run in runs if run["feasible"] is not False]
        cannot = [run for run in runs if run["feasible"] is False]
        # a search that never got there counts as one that would have at the next trial
        needed = [float(first_met(run) or len(run["violated"]) + 1) for run in can]
        rows.append([
            TITLES[name],
            f"{len(can)} + {len(cannot)}",
            interval([float(met_within(run, 20)) for run in can], np.mean, ".0%"),
            interval([float(met_within(run, 8)) for run in can], np.mean, ".0%"),
            interval(needed, np.median, ".1f"),
            interval(needed, np.mean, ".1f"),
            interval([float(not run["recommended_violates"]) for run in can], np.mean, ".0%"),
            interval([gain(run) for run in can], np.median),
            interval([unsafe(run) for run in runs], np.mean, ".1%"),
            interval([float(run["verdict"] == "infeasible") for run in cannot], np.mean, ".0%"),
            interval([float(run["verdict"] == "infeasible") for run in can], np.mean, ".0%"),
            _seconds(runs),
        ])  # fmt: skip
    heads = [
        "optimiser", "scenarios (feasible + not)", "SLOs met within 20 trials", "within 8", "trials until met, median",
        "mean", "recommended settings truly meet the SLOs", "gain, median", "unsafe trials", "infeasible named as such",
        "feasible called infeasible", "CPU s a trial",
    ]  # fmt: skip
    note = (
        "Met: by a trial that truly meets every SLO; the settings in force are trial 1. "
        "Gain: in the objective's scale, 0 where the recommended settings truly miss an SLO. "
        "Brackets: 95% of the bootstrap over scenarios."
    )
    return Table(heads, rows, note)


SHOWN: Dict[str, Callable[[By], Table]] = {"constrained": constrained, "tuning": tuning, "mistaken": tuning}


def tables(results: Sequence[Result], absent: Collection[str]) -> str:
    """Every suite's, as Markdown; `absent`: optimisers whose packages are not installed here."""
    parts = []
    for suite in dict.fromkeys(result["suite"] for result in results):
        own = [result for result in results if result["suite"] == suite]
        by = {name: {run["problem"]: run for run in own if run["optimiser"] == name} for name in TITLES}
        heads, rows, note = SHOWN[suite]({name: runs for name, runs in by.items() if runs})
        empty = [""] * (len(heads) - 2)
        lacking = [[TITLES[name], "not installed", *empty] for name in TITLES if name in absent and not by[name]]
        lines = [heads, ["---"] * len(heads), *rows, *lacking]
        parts.append("\n".join([f"## {suite}", "", *(f"| {' | '.join(line)} |" for line in lines), "", note]))
    return "\n\n".join(parts)
