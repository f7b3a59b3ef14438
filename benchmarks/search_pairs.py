"""Two optimisers, problem by problem: wins, ties and losses, and whether an order is beyond chance."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np
from search_peers import TITLES

Result = Mapping[str, Any]
DRAWS = 9999
_INSTANCE = re.compile(r"_i\d+_")


def family(problem: str) -> str:
    """The problem's function: COCO's instances of a function are the same one, moved and turned."""
    return _INSTANCE.sub("_", problem)


def clustered_interval(values: Mapping[str, float], statistic: Callable[..., Any] = np.median) -> Tuple[float, float]:
    """95% of the bootstrap over families of problems: a family is drawn with all that it has.

    `values`: problem -> number, at least one; `statistic` takes an axis. The same values always give the same interval.
    """
    families: Dict[str, List[float]] = {}
    for problem, value in values.items():
        families.setdefault(family(problem), []).append(value)
    groups, random = list(families.values()), np.random.default_rng(1)
    drawn = random.integers(len(groups), size=(DRAWS, len(groups)))
    sizes = np.array([len(group) for group in groups])
    rows = np.array([[*group, *[0.0] * (sizes.max() - len(group))] for group in groups])
    held = np.arange(sizes.max()) < sizes[:, None]
    totals, statistics = sizes[drawn].sum(axis=1), np.empty(DRAWS)
    # draws of the same number of values all at once
    for total in np.unique(totals):
        alike = drawn[totals == total]
        statistics[totals == total] = statistic(rows[alike][held[alike]].reshape(len(alike), total), axis=1)
    low, high = np.percentile(statistics, [2.5, 97.5])
    return float(low), float(high)


def order(low: float, high: float) -> str:
    """What an interval of ours less theirs says, more being better: `better`, `worse`, or `undecided` by chance."""
    if low > 0.0:
        return "better"
    return "worse" if high < 0.0 else "undecided"


class Pairs(NamedTuple):
    """Ours held against one peer; differences are ours less theirs, more being better."""

    wins: int
    ties: int
    losses: int
    median: float
    low: float
    high: float

    @property
    def order(self) -> str:
        return order(self.low, self.high)


def pairs(
    ours: Mapping[str, Result], theirs: Mapping[str, Result], score: Callable[[Result], float], tie: float
) -> Pairs:
    """Over the problems that both have been through, of which there must be one.

    `score`: more is better; differences below `tie` are ties.
    """
    differences = {problem: score(ours[problem]) - score(theirs[problem]) for problem in ours if problem in theirs}
    if not differences:
        raise ValueError("no problem has a run of both optimisers")
    values = np.array(list(differences.values()))
    wins, losses = int(np.sum(values >= tie)), int(np.sum(values <= -tie))
    return Pairs(wins, len(values) - wins - losses, losses, float(np.median(values)), *clustered_interval(differences))


def table(by: Mapping[str, Mapping[str, Result]], score: Callable[[Result], float], tie: float, what: str) -> List[str]:
    """Lines of Markdown: ours against every other optimiser that has a problem in common; none without runs of ours."""
    rows = []
    for name, runs in by.items():
        if name != "ours" and set(runs) & set(by.get("ours", ())):
            pair = pairs(by["ours"], runs, score, tie)
            rows.append([
                TITLES[name], str(pair.wins + pair.ties + pair.losses), str(pair.wins), str(pair.ties),
                str(pair.losses), f"{pair.median:.2f} [{pair.low:.2f}, {pair.high:.2f}]", pair.order,
            ])  # fmt: skip
    heads = ["ceph-tuner against", "pairs", "wins", "ties", "losses", f"{what}, median difference", "ceph-tuner is"]
    return _markdown([heads, ["---"] * len(heads), *rows]) if rows else []


def _markdown(rows: Sequence[Sequence[str]]) -> List[str]:
    return [f"| {' | '.join(row)} |" for row in rows]
