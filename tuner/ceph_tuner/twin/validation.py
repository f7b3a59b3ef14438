"""Runs the published tables on the twin, and says how far off it is.

A run simulates the phases of a test, not its whole length: clients alone, clients with background work until that is
done (or at its steady rate), and puts the published averages together from them. Background work is cut to a part of
the objects, since rates do not depend on how many there are; unevenness of the PGs stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.twin import published as p
from ceph_tuner.twin.model import OsdModel
from ceph_tuner.twin.prediction import PredictionRun, mean_of, predict, predict_all
from ceph_tuner.twin.published_models import NODES, NodeKind, PublishedCase, cases, node
from ceph_tuner.twin.simulation import Simulation
from ceph_tuner.twin.simulation_pool import simulation_pool

TARGET_ERROR = 0.15
"""Median absolute error that the comparison may have."""

LONGEST_STEPS = 6_000
SCRUB_SETTLE_S, SCRUB_WINDOW_S = 6.0, 6.0
"""OSDs begin one scrub a second at most: the number that runs is steady after some seconds."""


@dataclass(frozen=True)
class FittedNode:
    """A node's OSD, fitted to its baseline row, and what the twin's clients get there alone."""

    osd: OsdModel
    baseline: p.Baseline
    constant: str = ""
    constant_s: float = 0.0
    """What was fitted, and its value."""


class PlacementRun(NamedTuple):
    """One row with one placement of the PGs."""

    case: PublishedCase
    seed: int


Values = Dict[str, float]


@dataclass(frozen=True)
class Comparison:
    """A published figure and the twin's."""

    figure: p.Figure
    predicted: float
    deviation: float
    """Standard deviation over the seeds: placements of the PGs."""

    @property
    def error(self) -> float:
        """How far the twin is off, relative to the published value."""
        return self.predicted / self.figure.value - 1.0


@dataclass(frozen=True)
class Check:
    """A published ordering and what the twin has for it, in the published order."""

    ordering: p.Ordering
    predicted: Tuple[float, ...]
    steps: Tuple[Tuple[float, float], ...] = ()
    """From each value to the next: how far it falls with the same placement, and the standard error of that."""

    @property
    def holds(self) -> bool:
        """Whether the twin's values fall as well."""
        return all(one > other for one, other in zip(self.predicted, self.predicted[1:]))

    @property
    def contradicted(self) -> bool:
        """Whether one rises by more than twice its standard error; otherwise a miss may be chance."""
        return any(fall < -2.0 * error for fall, error in self.steps)


@dataclass(frozen=True)
class ValidationReport:
    """All that was compared."""

    fitted: Mapping[str, FittedNode]
    comparisons: Sequence[Comparison]
    checks: Sequence[Check]

    @property
    def median_error(self) -> float:
        """Of the absolute errors; 0 where nothing was compared."""
        return median(abs(comparison.error) for comparison in self.comparisons) if self.comparisons else 0.0

    @property
    def missed(self) -> List[Check]:
        """Orderings between profiles that the twin has otherwise."""
        return [check for check in self.checks if check.ordering.between_profiles and not check.holds]

    @property
    def met(self) -> bool:
        """Whether every ordering between profiles holds and the median error is within its target."""
        return not self.missed and self.median_error <= TARGET_ERROR


def fit_baseline(name: str, seeds: Sequence[int], rounds: int = 12) -> FittedNode:
    """Bisect the commit thread's time for a transaction until the node's clients get the published baseline."""
    iops, kind = p.BASELINES[name].iops, NODES[name]
    low, high = kind.least_s, kind.most_s
    for _ in range(rounds):
        middle = math.sqrt(low * high)
        if _alone(kind, kind.osd(middle), seeds).iops > iops:
            low = middle
        else:
            high = middle
    osd = kind.osd(math.sqrt(low * high))
    return FittedNode(osd, _alone(kind, osd, seeds), kind.constant, math.sqrt(low * high))


def _alone(kind: NodeKind, osd: OsdModel, seeds: Sequence[int]) -> p.Baseline:
    window_s, settings = kind.window_s, kind.settings
    runs = [PredictionRun(node(osd), settings, window_s, 0.3 * window_s, seed) for seed in seeds]
    windows = list(predict_all(runs, processes=1))
    iops, latency = mean_of(windows, "client.iops"), mean_of(windows, "client.mean_ms")
    if iops is None or latency is None:
        raise ValueError("the baseline has no clients")
    return p.Baseline(iops, latency)


def runs_of(
    tables: Sequence[str], fitted: Mapping[str, FittedNode], seeds: Sequence[int], quick: bool = False
) -> List[PlacementRun]:
    """Every row of the tables with every seed."""
    osds = {name: node.osd for name, node in fitted.items()}
    baselines = {name: node.baseline for name, node in fitted.items()}
    return [
        PlacementRun(case, seed) for table in tables for case in cases(table, osds, baselines, quick) for seed in seeds
    ]


def nodes_of(tables: Sequence[str]) -> List[str]:
    """Nodes to fit for some tables."""
    return sorted({p.NODE_OF[table] for table in tables if table in p.NODE_OF})


def measure(run: PlacementRun) -> Values:
    """What the article would have reported of a run."""
    case = run.case
    if case.model.snaptrim or case.model.recovery:
        return _drained(case, run.seed)
    if case.model.scrub:
        return _scrubbed(case, run.seed)
    window = predict(PredictionRun(case.model, case.settings, 0.15, 0.05, run.seed))
    return {p.IOPS: window.measures["client.iops"].mean}


def measure_all(runs: Sequence[PlacementRun], processes: Optional[int] = None) -> Iterator[Values]:
    """The values of independent runs, in their order, spread over the cores (None: all of them)."""
    with simulation_pool(processes) as pool:
        yield from pool.map(measure, runs)


def _drained(case: PublishedCase, seed: int) -> Values:
    """Clients with background work until that is done."""
    simulation = Simulation(case.model, case.settings, seed)
    simulation.advance(1.0)
    before = simulation.clients()[0]
    time_s, trim_s, recovery_s, first = 0.0, math.inf, math.inf, before
    while time_s < LONGEST_STEPS * case.step_s and max(trim_s, recovery_s) == math.inf:
        simulation.advance(case.step_s)
        time_s += case.step_s
        if time_s * case.scale <= case.first_s:
            first = simulation.clients()[0]
        left = simulation.counters()
        if left.clones_left == 0 and trim_s == math.inf:
            trim_s = time_s
        if left.misplaced_left == 0 and recovery_s == math.inf:
            recovery_s = time_s
    after = simulation.clients()[0]
    operations, seconds = after.operations - before.operations, after.seconds - before.seconds
    values = _averaged(case, time_s * case.scale, operations / time_s, seconds / operations * 1000)
    if first.operations > before.operations:
        values[p.FIRST_MS] = (first.seconds - before.seconds) / (first.operations - before.operations) * 1000
    if case.model.snaptrim and trim_s < math.inf:
        values[p.TRIM_S] = trim_s * case.scale
        values[p.TRIM_RATE] = case.model.snaptrim[0].clones / trim_s
    if case.model.recovery and recovery_s < math.inf:
        values[p.RECOVERY_S] = recovery_s * case.scale
        values[p.RECOVERY_RATE] = case.model.recovery[0].objects / recovery_s
    return values


def _scrubbed(case: PublishedCase, seed: int) -> Values:
    window = predict(PredictionRun(case.model, case.settings, SCRUB_WINDOW_S, SCRUB_SETTLE_S, seed))
    seconds = case.model.scrub[0].objects / window.measures["scrub.objects_s"].mean
    iops, latency = window.measures["client.iops"].mean, window.measures["client.mean_ms"].mean
    return {**_averaged(case, seconds, iops, latency), p.SCRUB_S: seconds}


def _averaged(case: PublishedCase, busy_s: float, iops: float, latency_ms: float) -> Values:
    """Means over fio's whole time: with background work while it lasts, without it before and after."""
    if not case.clients_s:
        return {p.IOPS: iops, p.MEAN_MS: latency_ms}
    busy_s = min(busy_s, case.clients_s - case.before_s)
    quiet_s = case.clients_s - busy_s
    quiet, busy = case.baseline.iops * quiet_s, iops * busy_s
    return {
        p.IOPS: (quiet + busy) / case.clients_s,
        p.MEAN_MS: (quiet * case.baseline.mean_ms + busy * latency_ms) / (quiet + busy),
        p.BUSY_MS: latency_ms,
    }


def compare(
    tables: Sequence[str], runs: Sequence[PlacementRun], values: Sequence[Values], fitted: Mapping[str, FittedNode]
) -> ValidationReport:
    """Set the runs beside what was published. Orderings of cases that did not run are left out."""
    by_case: Dict[Tuple[str, str], List[Values]] = {}
    for run, own in zip(runs, values):
        by_case.setdefault((run.case.table, run.case.name), []).append(own)
    _relate(by_case)
    comparisons, checks = [], []
    for figure in p.FIGURES:
        own_values = _of(by_case, figure.table, figure.case, figure.metric) if figure.table in tables else []
        if own_values:
            spread = stdev(own_values) if len(own_values) > 1 else 0.0
            comparisons.append(Comparison(figure, mean(own_values), spread))
    for ordering in p.ORDERINGS:
        if ordering.table not in tables:
            continue
        of_cases = [_of(by_case, ordering.table, case, ordering.metric) for case in ordering.falling]
        ran = tuple((case, mean(own)) for case, own in zip(ordering.falling, of_cases) if own)
        of_ran = [own for own in of_cases if own]
        if len(ran) > 1:
            falling = p.Ordering(ordering.table, ordering.metric, tuple(case for case, _ in ran))
            steps = tuple(_step(one, other) for one, other in zip(of_ran, of_ran[1:]))
            checks.append(Check(falling, tuple(value for _, value in ran), steps))
    return ValidationReport(fitted, comparisons, checks)


def _step(one: Sequence[float], other: Sequence[float]) -> Tuple[float, float]:
    falls = [high - low for high, low in zip(one, other)]
    return mean(falls), stdev(falls) / math.sqrt(len(falls)) if len(falls) > 1 else 0.0


def _of(by_case: Mapping[Tuple[str, str], Sequence[Values]], table: str, case: str, metric: str) -> List[float]:
    return [values[metric] for values in by_case.get((table, case), ()) if metric in values]


def _relate(by_case: Dict[Tuple[str, str], List[Values]]) -> None:
    """Add what is published as a ratio: to WPQ with the same placement, and over the PG count."""
    for (table, _), own in by_case.items():
        reference = by_case.get((table, p.REQUESTED if table == "B3" else p.WPQ))
        if table[0] == "B" and reference:
            for values, other in zip(own, reference):
                values[p.OF_WPQ_SCRUB_S] = values[p.SCRUB_S] / other[p.SCRUB_S]
                values[p.OF_WPQ_IOPS] = values[p.IOPS] / other[p.IOPS]
    for kind in (p.READS, p.WRITES):
        few, many = (by_case.get(("C1", p.with_pgs(kind, pgs))) for pgs in (2048, 16384))
        if few and many:
            by_case["C1", kind] = [{p.GAIN: high[p.IOPS] / low[p.IOPS]} for low, high in zip(few, many)]
