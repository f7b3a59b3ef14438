"""Which settings are better: a choice by the judge's numbers (`judge.py`) that luck does not decide.

The choice among settings that were measured has four steps, none of which a single lucky window passes:

1. What was measured again comes before what was measured once.
2. Each is ranked by its upper bound: its means over repeats, moved against it by what chance may have added to them
   (`CHANCE` deviations). How far windows of the same settings differ is learnt from all repeats together, without what
   a round has in common for all of them; `WINDOW_NOISE` counts as much as `NOISE_FREEDOM` repeats.
3. Of those whose means differ from the first one's by less than is worth a write (`LEAST_GAIN`), the steadiest wins:
   the one whose worst window, with the deviation inside of it, has the smallest loss. There headroom beyond half of
   the bound counts for nothing: that a rate is ten times its floor instead of five says nothing of steadiness.
4. Of those that are as good as that one in each objective, but for what windows of the same settings differ by, the one
   that takes the fewest writes wins, and of these the one that moves the fewest knobs: what a knob does that shows
   nothing under this load may show under another. Its worst window is as good as well, or has headroom of `MARGIN`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.goals.goal import Goal
from ceph_tuner.core.goals.judge import MARGIN, Judge, Verdict
from ceph_tuner.core.knobs.settings import ChangeCost
from ceph_tuner.core.measure.quantity import quantity

LEAST_GAIN = {True: 0.5, False: 0.02}
"""Fall of the loss that is worth a write, while a hard objective is missed (5% of its bound) and while all are kept.
Windows repeat to about 10% (docs/ceph-behaviour.md), means of two to about 7%."""

WINDOW_NOISE, NOISE_FREEDOM = 0.1, 2.0
"""Deviation between windows of the same settings, as a share, and the repeats that this experience counts for."""

ENOUGH = 0.5
"""Headroom, as a share of the bound, of which more does not decide between settings that are alike by their means."""

CHANCE = 1.28
"""Deviations of the upper bound: chance alone exceeds it once in ten."""


@dataclass(frozen=True)
class Candidate:
    """Something that was measured, once or more often: settings under a label, and the mean of each metric."""

    label: str
    means: Mapping[str, float]
    repeats: int
    windows: Tuple[Mapping[str, float], ...] = ()
    """Means of each repeat, in the order of the rounds."""
    spreads: Tuple[Mapping[str, float], ...] = ()
    """Deviations inside of each repeat, where they are known."""

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats (={self.repeats}) must be at least 1")

    def worst(self, judge: Judge) -> Dict[str, float]:
        """Give the worst that a window showed of each objective's metric, the deviation inside of it included."""
        means = dict(self.means)
        for objective in judge.objectives:
            name, sign = objective.metric, 1.0 if objective.comparison == "<=" else -1.0
            spreads = self.spreads or ({},) * len(self.windows)
            worst_first = [
                sign * window[name] + spread.get(name, 0.0)
                for window, spread in zip(self.windows, spreads)
                if name in window
            ]
            if worst_first:
                means[name] = max(0.0, sign * max(worst_first))
        return means


def candidate(
    label: str, windows: Sequence[Mapping[str, float]], spreads: Sequence[Mapping[str, float]] = ()
) -> Candidate:
    """Average repeats, metric by metric; a metric counts only where every repeat saw it."""
    if not windows:
        raise ValueError(f"{label} was not measured")
    names = set(windows[0]).intersection(*(set(values) for values in windows[1:]))
    means = {name: sum(values[name] for values in windows) / len(windows) for name in sorted(names)}
    return Candidate(label, means, len(windows), tuple(windows), tuple(spreads))


@dataclass(frozen=True)
class RankingChoice:
    """The winner among candidates, and whether it is worth writing."""

    winner: Candidate
    verdicts: Tuple[Verdict, ...]
    in_force: Candidate
    better: bool
    reason: str
    bounds: Mapping[str, float] = field(default_factory=dict)
    """Objectives' metrics -> what the winner's mean may be where chance was kind to it."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "winner": self.winner.label,
            "better": self.better,
            "reason": self.reason,
            "repeats": self.winner.repeats,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "upper_bounds": dict(self.bounds),
        }


def choose(
    judge: Judge,
    in_force: Candidate,
    candidates: Sequence[Candidate],
    costs: Mapping[str, ChangeCost] = {},
) -> RankingChoice:
    """Choose by the upper bounds over repeats, by steadiness, and by how little they cost; never the luckiest window.

    `costs`: what the settings under a label cost beside what is in force.

    What is in force stays unless a hard objective more is kept, or the loss falls by more than noise makes it; and
    unless the winner's upper bound is still better than what is in force.
    """
    noise = window_noise([in_force, *candidates])
    now = judge.verdicts(in_force.means)
    missed_now, best_now = judge.rank(in_force.means)

    def by_mean(entry: Candidate) -> Tuple[bool, float]:
        return judge.rank(entry.means)

    def by_bound(entry: Candidate) -> Tuple[bool, float]:
        return rank_by_bound(judge, entry, noise, in_force.repeats)

    again = min(2, max(entry.repeats for entry in [in_force, *candidates]))
    contenders = [
        entry
        for entry in candidates
        if entry.repeats >= again and entry.label != in_force.label and by_mean(entry) < (missed_now, best_now)
    ]
    if not contenders:
        reason = _stays(now, "nothing measured better than the settings in force")
        return RankingChoice(in_force, tuple(now), in_force, False, reason)
    first = min(contenders, key=lambda entry: (by_bound(entry), entry.label))
    (missed, loss_of_first), bound_kept = by_mean(first), by_bound(first)[0]
    alike = [
        entry
        for entry in contenders
        if by_mean(entry)[0] == missed
        and by_bound(entry)[0] == bound_kept
        and by_mean(entry)[1] <= loss_of_first + LEAST_GAIN[missed]
    ]

    def unsteady(entry: Candidate) -> float:
        return judge.loss(entry.worst(judge), ENOUGH)

    steadiest = min(alike, key=lambda entry: (unsteady(entry), by_bound(entry), entry.label))
    as_good = [entry for entry in alike if _as_good(judge, entry, steadiest, noise)]
    free = ChangeCost()
    winner = min(
        as_good, key=lambda entry: (costs.get(entry.label, free), unsteady(entry), by_bound(entry), entry.label)
    )
    best = by_mean(winner)[1]
    better = missed < missed_now or best + LEAST_GAIN[missed] < best_now
    better = better and by_bound(winner)[1] < best_now
    verdicts = judge.verdicts(winner.means)
    reason = (
        _reason(verdicts, now, judge.slo is not None and judge.slo.goal is not None)
        if better
        else _stays(now, "no better than the settings in force by more than the noise")
    )
    if better and judge.slo is not None and judge.slo.goal is not None:
        reason += _of_goal(judge.slo.goal, winner, in_force)
    if better and winner is not steadiest:
        own, other = (costs.get(entry.label, free) for entry in (winner, steadiest))
        same = own.entries == other.entries
        what, counts = ("knobs moved", (own.moved, other.moved)) if same else ("writes", (own.entries, other.entries))
        reason += f"; {what}: {counts[0]}, by {steadiest.label}, which is as good, {counts[1]}"
    elif better and winner is not first:
        reason += f"; {_steadier(judge, winner, first)}"
    bounds = _bounds(judge, winner, noise, in_force.repeats)
    return RankingChoice(winner, tuple(verdicts), in_force, better, reason, bounds)


def rank_by_bound(judge: Judge, entry: Candidate, noise: Mapping[str, float], others: int) -> Tuple[bool, float]:
    """Rank by the judge of the entry's upper bound, beside something with so many repeats; `noise`: `window_noise`."""
    return judge.rank({**entry.means, **_bounds(judge, entry, noise, others)})


def window_noise(candidates: Sequence[Candidate]) -> Dict[str, float]:
    """Give the deviation between windows of the same settings, as a share, for metrics that repeats tell it of.

    Residuals of the logarithms after means of settings and rounds: what drifts for all of them alike is no noise.
    """
    rounds = max((len(entry.windows) for entry in candidates), default=0)
    series = [entry.windows for entry in candidates if len(entry.windows) == rounds]
    freedom = (len(series) - 1) * (rounds - 1)
    if rounds < 2 or freedom < 1:
        return {}
    deviations = {}
    for name in sorted(set.intersection(*(set(window) for windows in series for window in windows))):
        if all(window[name] > 0 for windows in series for window in windows):
            squares = _squares([[math.log(window[name]) for window in windows] for windows in series])
            deviations[name] = math.sqrt((NOISE_FREEDOM * WINDOW_NOISE**2 + squares) / (NOISE_FREEDOM + freedom))
    return deviations


def _squares(table: List[List[float]]) -> float:
    """Sum of squared residuals of a table after its rows' and columns' means."""
    rows = [math.fsum(row) / len(row) for row in table]
    columns = [math.fsum(column) / len(column) for column in zip(*table)]
    mean = math.fsum(rows) / len(rows)
    return math.fsum(
        (value - row_mean - column_mean + mean) ** 2
        for row, row_mean in zip(table, rows)
        for value, column_mean in zip(row, columns)
    )


def _bounds(judge: Judge, entry: Candidate, noise: Mapping[str, float], others: int) -> Dict[str, float]:
    """Objectives' metrics, moved against the entry by what chance may have added to it and to what it is up against."""
    reach = CHANCE * math.sqrt(1.0 / entry.repeats + 1.0 / others)
    bounds = {}
    signs = {objective.metric: 1.0 if objective.comparison == "<=" else -1.0 for objective in judge.objectives}
    if judge.slo is not None and judge.slo.goal is not None:
        signs[judge.slo.goal.metric] = judge.slo.goal.sign
    for metric, sign in signs.items():
        if metric in entry.means:
            away = reach * noise.get(metric, WINDOW_NOISE) * sign
            bounds[metric] = entry.means[metric] * math.exp(away)
    return bounds


def _as_good(judge: Judge, entry: Candidate, other: Candidate, noise: Mapping[str, float]) -> bool:
    """Whether no objective's margin is smaller by more than the noise, in the means and in the worst windows.

    Nor is the goal's metric worse, in the means. A worst window needs no more headroom than `MARGIN`.
    """
    goal = judge.slo.goal if judge.slo is not None else None
    if goal is not None and goal.metric in other.means:
        best = other.means[goal.metric]
        worse = goal.sign * (entry.means.get(goal.metric, math.inf * goal.sign) - best)
        if worse > noise.get(goal.metric, WINDOW_NOISE) * abs(best):
            return False

    def margins(values: Mapping[str, float], enough: float) -> List[Tuple[str, float]]:
        return [(each.objective.metric, min(each.margin or 0.0, enough)) for each in judge.verdicts(values)]

    pairs = ((entry.means, other.means, ENOUGH), (entry.worst(judge), other.worst(judge), MARGIN))
    return all(
        margin >= best - noise.get(metric, WINDOW_NOISE)
        for own, of_other, enough in pairs
        for (metric, margin), (_, best) in zip(margins(own, enough), margins(of_other, enough))
    )


def _steadier(judge: Judge, winner: Candidate, first: Candidate) -> str:
    """Say in which metric the winner's worst is most of all better."""
    own, other = (judge.verdicts(entry.worst(judge)) for entry in (winner, first))
    gains = [
        (min(one.margin or 0.0, ENOUGH) - min(two.margin or 0.0, ENOUGH), one, two) for one, two in zip(own, other)
    ]
    _, one, two = max(gains, key=lambda entry: entry[0])
    metric = one.objective.metric
    comparison = f"{metric} at worst {quantity(metric, one.seen or 0.0)} against {quantity(metric, two.seen or 0.0)}"
    return f"steadier than {first.label}, which is as good by its mean ({comparison})"


def _of_goal(goal: Goal, winner: Candidate, in_force: Candidate) -> str:
    """Say what the goal's metric becomes."""
    own, before = (entry.means.get(goal.metric) for entry in (winner, in_force))
    if own is None:
        return f"; {goal.metric} was not seen"
    comparison = "" if before is None else f" against {quantity(goal.metric, before)}"
    return f"; {goal.metric} {quantity(goal.metric, own)}{comparison}"


def finalists(judge: Judge, candidates: Sequence[Candidate], count: int) -> List[Candidate]:
    """Give the best candidates by their means so far: those worth measuring again."""
    return sorted(candidates, key=lambda entry: (judge.rank(entry.means), entry.label))[:count]


def best_of(judge: Judge, candidates: Sequence[Candidate]) -> Optional[Candidate]:
    """Give the best candidate, or None where there is none."""
    return next(iter(finalists(judge, candidates, 1)), None)


def _reason(verdicts: Sequence[Verdict], before: Sequence[Verdict], with_goal: bool = False) -> str:
    """Say what is gained; what is lost is never left out."""
    pairs = list(zip(verdicts, before))
    gains = [now.objective.metric for now, then in pairs if now.met and not then.met]
    still = [now.objective.metric for now, then in pairs if not now.met and not then.met]
    lost = [now.objective.metric for now, then in pairs if not now.met and then.met]
    worse = [now.objective.metric for now, then in pairs if not now.met and not then.met and _is_worse(now, then)]
    parts = []
    if gains:
        parts.append(f"meets {' and '.join(gains)}" + ("" if still or lost else ", which the settings in force miss"))
    if still:
        closer = "closer to the bounds" + (" on the whole" if worse or lost else "") + ", but "
        parts.append(f"{'' if gains else closer}still misses {' and '.join(still)}")
    if not parts:
        parts.append("keeps every objective" if with_goal else "keeps every objective with more headroom")
    if lost:
        parts.append(f"no longer meets {' and '.join(lost)}, which the settings in force do")
    if worse:
        parts.append(f"{' and '.join(worse)} {'get' if len(worse) > 1 else 'gets'} worse")
    return "; ".join(parts)


def _is_worse(now: Verdict, then: Verdict) -> bool:
    """Whether a value is worse than before by more than windows of the same settings differ."""
    if now.seen is None or then.seen is None:
        return then.seen is not None
    better, worse = (then.seen, now.seen) if now.objective.comparison == "<=" else (now.seen, then.seen)
    return worse > better * (1.0 + WINDOW_NOISE)


def _stays(now: Sequence[Verdict], words: str) -> str:
    """Say why what is in force stays."""
    if all(verdict.met for verdict in now):
        return "every objective is met already, and nothing is better by enough to be worth a write"
    return words
