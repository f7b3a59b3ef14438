"""What the runs of a comparison of optimisers say: gains, safety and trials, with bootstrap intervals over the runs."""

from __future__ import annotations

from typing import Any, Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np
import search_pairs
from scipy import stats
from search_peers import ALL, FIRST_MODEL_TRIAL, TITLES

Result = Mapping[str, Any]
By = Dict[str, Dict[str, Result]]
"""Optimiser -> problem -> its run; optimisers in the order of TITLES."""

MISTAKEN = {"mistaken": "capacity", "mistaken-mechanism": "mechanism", "mistaken-direction": "direction"}
"""Tuning scenarios with a twin that is wrong -> how it is (`scenario_problem.MISTAKES`)."""

BUDGETS = {"constrained": 40, **dict.fromkeys(("tuning", *MISTAKEN), 20)}
"""Trials of a run whose line does not tell them."""

PROMISES = (0.0, 0.5, 0.75, 0.9, 0.95, 0.97, 0.99, 1.0)
"""Ends of the classes of what a trial was promised, as most promises are near 1."""

MUCH_BEYOND = 0.5
"""In the metric's deviations: of what is beyond its bound by less, nine in ten are to be."""

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


def budget(result: Result) -> int:
    """Trials that the run might have made; a run of before 2026-11-25 does not say, and had its suite's."""
    return int(result.get("budget", BUDGETS[result["suite"]]))


def trials_until_met(result: Result) -> float:
    """`first_met`, where a run that never met everything counts its whole budget and one more, even if it gave up."""
    return float(first_met(result) or budget(result) + 1)


def first_model_trial(runs: Sequence[Result], name: str) -> str:
    """Number of the first trial that a model proposed, the start being 1: of every run, or from lowest to highest."""
    numbers = sorted({run.get("first_model_trial", FIRST_MODEL_TRIAL.get(name)) for run in runs} - {None})
    return "–".join(str(number) for number in dict.fromkeys([numbers[0], numbers[-1]])) if numbers else "none"


def complete(by: By) -> By:
    """The optimisers with a run of every problem: one that lacks some would take them from all comparisons."""
    problems = {problem for runs in by.values() for problem in runs}
    return {name: runs for name, runs in by.items() if set(runs) == problems}


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
    """A suite's, what its columns mean, and ours against each peer as lines of Markdown."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    pairs: Sequence[str]


def alike(runs: Sequence[Result]) -> List[float]:
    """Whether each run's point by the peers' rule is truly feasible; empty where a run does not tell."""
    told = [run.get("best_measured_violates") for run in runs]
    return [] if None in told else [float(not violates) for violates in told]


def _seconds(runs: Sequence[Result]) -> str:
    return f"{np.mean([second for run in runs for second in run['cpu_s']]):.2f}"


def constrained(by: By) -> Table:
    whole = complete(by)
    shares, seen, places = relative(whole, gain), relative(whole, best_seen), ranks(whole)
    rows = []
    for name, of_problem in by.items():
        runs = list(of_problem.values())
        feasible = [float(not run["recommended_violates"]) for run in runs]
        rows.append([
            TITLES[name],
            first_model_trial(runs, name),
            str(len(runs)),
            interval([gain(run) for run in runs], np.median),
            interval(shares.get(name, ()), np.median),
            interval(shares.get(name, ()), np.mean),
            interval(places.get(name, ()), np.mean, ".1f"),
            interval([unsafe(run) for run in runs], np.mean, ".1%"),
            interval(feasible, np.mean, ".0%"),
            interval(alike(runs), np.mean, ".0%"),
            interval(seen.get(name, ()), np.mean),
            _seconds(runs),
        ])  # fmt: skip
    heads = [
        "optimiser", "model from trial", "runs", "gain in standard deviations, median", "gain (best = 1), median",
        "gain (best = 1), mean", "mean rank", "unsafe evaluations", "recommended point truly feasible",
        "the same by the peers' rule", "best feasible evaluation (best = 1)", "CPU s a trial",
    ]  # fmt: skip
    count = len(compared(whole))
    note = (
        "Gain: the start's true objective less the recommended point's; 0 where that truly misses a constraint. "
        f"Comparisons (best = 1, ranks) are over the {count} problems, and leave out an optimiser that lacks one. "
        f"Shares count a loss as 0, and leave out runs in which nobody gained {LEAST_GAIN} or more. "
        "Brackets: 95% of the bootstrap over runs; of the differences, over the functions. "
        "The peers' rule: the best trial that was measured as feasible. Runs before 2026-11-25 lack it."
    )
    return Table(heads, rows, note, search_pairs.table(by, gain, LEAST_GAIN, "gain"))


def tuning(by: By) -> Table:
    rows = []
    for name, of_problem in by.items():
        runs = list(of_problem.values())
        can = [run for run in runs if run["feasible"] is not False]
        cannot = [run for run in runs if run["feasible"] is False]
        needed = [trials_until_met(run) for run in can]
        rows.append([
            TITLES[name],
            first_model_trial(runs, name),
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
        "optimiser", "model from trial", "scenarios (feasible + not)", "SLOs met within 20 trials", "within 8",
        "trials until met, median", "mean", "recommended settings truly meet the SLOs", "gain, median", "unsafe trials",
        "infeasible named as such", "feasible called infeasible", "CPU s a trial",
    ]  # fmt: skip
    note = (
        "Met: by a trial that truly meets every SLO; the settings in force are trial 1. "
        "Gain: in the objective's scale, 0 where the recommended settings truly miss an SLO. "
        "A scenario that is never met counts as the whole budget and one trial more, for every optimiser. "
        "Brackets: 95% of the bootstrap over scenarios. Differences: trials that ceph-tuner saves."
    )
    met = {name: {p: run for p, run in runs.items() if run["feasible"] is not False} for name, runs in by.items()}
    saved = search_pairs.table(met, lambda run: -trials_until_met(run), 1.0, "trials saved")
    return Table(heads, rows, note, saved)


MORE_TRIALS = 2
"""By which a twin that is wrong may delay the first trial that meets everything, against none."""


def harm_of_the_twin(by: By) -> List[str]:
    """In how many scenarios a twin that is wrong took longer than none, as lines of Markdown; none without both."""
    ours, without = by.get("ours", {}), by.get("ours-no-prior", {})
    both = [problem for problem in ours if problem in without]
    if not both:
        return []
    late = [problem for problem in both if _later(ours[problem], without[problem]) > MORE_TRIALS]
    return ["", f"With the twin it took over {MORE_TRIALS} trials more than without in {len(late)} of {len(both)}."]


def _later(run: Result, other: Result) -> float:
    return trials_until_met(run) - trials_until_met(other)


def trust_in_the_twin(runs: Sequence[Result]) -> List[str]:
    """How far the twin was right, as the searches had learnt by their ends, as lines of Markdown; none of runs without.

    The twin is the only prior of these scenarios.
    """
    learnt: Dict[str, List[float]] = {}
    for run in runs:
        for metric, (scale,) in run.get("trust", {}).items():
            learnt.setdefault(metric, []).append(scale)
    if not learnt:
        return []
    lines = ["", "| metric | runs | trust in the twin at the end, median | lowest | highest |", "|" + " --- |" * 5]
    for metric, scales in sorted(learnt.items()):
        lines.append(f"| {metric} | {len(scales)} | {np.median(scales):.2f} | {min(scales):.2f} | {max(scales):.2f} |")
    trust = "1 where the twin was right as it predicted, above it where effects were larger, 0 where it was of no use"
    return [*lines, "", f"Trust: {trust}. `loss`: the objective."]


def calibration(runs: Sequence[Result]) -> List[str]:
    """What trials were promised to be safe with, and how many were, as lines of Markdown; none of runs without."""
    trials = [
        (promise, bool(unsafe_), beyond)
        for run in runs
        for promise, unsafe_, beyond in zip(run.get("promised", ()), run["unsafe"], run.get("beyond", ()))
        if promise is not None
    ]
    if not trials:
        return []
    lines = ["| promised to be safe | trials | were unsafe | 95% of that share | wanted at most |", "|" + " --- |" * 5]
    classes = [(f"{low:.0%} to {high:.0%}", low, high) for low, high in zip(PROMISES, PROMISES[1:])]
    for title, low, high in [*classes, ("**95% or more**", 0.95, 1.0)]:
        own = [unsafe_ for promise, unsafe_, _ in trials if low <= promise < high or promise == high == 1.0]
        if own:
            share = stats.binomtest(sum(own), len(own)).proportion_ci(method="exact")
            between = f"{share.low:.1%} to {share.high:.1%}"
            lines.append(f"| {title} | {len(own)} | {np.mean(own):.1%} | {between} | {1 - low:.0%} |")
    broken = [beyond for _, unsafe_, beyond in trials if unsafe_]
    if broken:
        little = np.mean([beyond < MUCH_BEYOND for beyond in broken])
        lines += [
            "",
            f"Of {len(broken)} unsafe trials {little:.0%} went beyond by less than {MUCH_BEYOND:g} deviations.",
        ]
    return lines


_PEERS = ("random", "optuna-tpe", "optuna-gp", "skopt-ei", "skopt-hedge", "botorch", "ours")
ROWS = {
    **dict.fromkeys(("constrained", "sampled", "disturbed", "bent", "engineering", "learner"), _PEERS),
    "tuning": tuple(ALL),
    **dict.fromkeys(MISTAKEN, ("ours", "ours-no-prior")),
}
"""Optimisers that have a row in a suite's table, be it only to say that they were not run."""

SHOWN: Dict[str, Callable[[By], Table]] = dict.fromkeys(("tuning", *MISTAKEN), tuning)
"""Suites whose settings in force may miss something; all others begin with what keeps every constraint."""


def tables(results: Sequence[Result], absent: Collection[str]) -> str:
    """Every suite's, as Markdown; `absent`: optimisers whose packages are not installed here."""
    parts = []
    for suite in dict.fromkeys(result["suite"] for result in results):
        own = [result for result in results if result["suite"] == suite]
        by = {name: {run["problem"]: run for run in own if run["optimiser"] == name} for name in TITLES}
        heads, rows, note, pairs = SHOWN.get(suite, constrained)({name: runs for name, runs in by.items() if runs})
        empty = [""] * (len(heads) - 2)
        lacking = [
            [TITLES[name], "not installed" if name in absent else "not run", *empty]
            for name in ROWS[suite]
            if not by[name]
        ]
        lines = [heads, ["---"] * len(heads), *rows, *lacking]
        text = [f"## {suite}", "", *(f"| {' | '.join(line)} |" for line in lines), "", note]
        for name in ("ours", "ours-before"):
            kept = calibration(list(by[name].values()))
            pairs = [*pairs, "", f"**{TITLES[name]}**", "", *kept] if kept else pairs
        if suite in MISTAKEN:
            pairs = [*pairs, *harm_of_the_twin(by), *trust_in_the_twin(list(by["ours"].values()))]
        parts.append("\n".join([*text, "", *pairs] if pairs else text))
    return "\n\n".join(parts)
