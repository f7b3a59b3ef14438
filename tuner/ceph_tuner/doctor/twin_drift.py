"""Is the twin still one of this cluster: intervals that were promised, against what was measured after.

A twin is fitted once, and the cluster goes on: drives age, data grow, the load changes. Of every write the product
keeps what the twin said before and what was measured after. Where its intervals hold less often than they promise, by
more than chance, nothing that rests on it should be believed.
"""

from __future__ import annotations

from typing import List, NamedTuple, Sequence

from ceph_tuner.core.changes.forecast_pairs import ForecastPair, IntervalCoverage, coverage
from ceph_tuner.core.measure.forecast_record import SEARCH_MODEL
from ceph_tuner.core.measure.metrics import parted
from ceph_tuner.core.wording import some
from ceph_tuner.doctor.facts import Facts
from ceph_tuner.doctor.finding import MISLEADING, Finding

SURE = 0.95
"""Confidence of the whole finding: each of the metrics has its part of what is left."""

NEWEST = 40
"""Pairs of a metric that count, the newest: what was wrong long ago may be mended."""


class Undercoverage(NamedTuple):
    """A metric whose intervals hold too seldom."""

    coverage: IntervalCoverage
    chance: float
    """With which so few, or fewer, would be held if the promise were true."""


def undercoverage(pairs: Sequence[ForecastPair]) -> List[Undercoverage]:
    """Metrics whose intervals held less often than promised, beyond chance: a one-sided exact binomial test of each.

    Of the newest model's pairs alone, as a twin that was fitted again is another one; each device class has a twin of
    its own. With Bonferroni's correction.
    """
    from scipy.stats import binomtest  # who only examines does not wait for scipy

    newest_model = {parted(pair.metric)[1]: pair.model for pair in pairs}
    own = [pair for pair in pairs if pair.model == newest_model[parted(pair.metric)[1]]]
    newest = [
        pair
        for metric in dict.fromkeys(pair.metric for pair in own)
        for pair in [pair for pair in own if pair.metric == metric][-NEWEST:]
    ]
    groups = coverage(newest)
    candidates = [
        Undercoverage(group, float(binomtest(group.inside, group.pairs, group.level, alternative="less").pvalue))
        for group in groups
    ]
    return [drift for drift in candidates if drift.chance < (1.0 - SURE) / len(groups)]


def twin_drift(facts: Facts) -> List[Finding]:
    """A twin whose kept predictions were wrong more often than their intervals allow."""
    of_twins = [pair for pair in facts.forecasts if pair.model != SEARCH_MODEL]
    entries = undercoverage(of_twins) if of_twins else []
    if not entries:
        return []
    worst = max(entries, key=lambda drift: drift.coverage.level - drift.coverage.inside / drift.coverage.pairs)
    short = worst.coverage.level - worst.coverage.inside / worst.coverage.pairs
    return [
        Finding(
            "twin-drift",
            MISLEADING,
            "The twin has drifted from its cluster: what it promises before a write is not what is measured after",
            some(
                f"{drift.coverage.metric}: {drift.coverage.inside} of {drift.coverage.pairs} measurements inside the "
                f"interval that promises {drift.coverage.level:.0%} (by chance: {drift.chance:.1g})"
                for drift in entries
            ),
            "recommendations, predictions and what `tune` believes beforehand rest on it",
            "Describe the cluster as it is now, fit the twin to its own windows, and give the fit as `calibration:`.",
            share=short,
            commands=(
                "ceph-tuner twin describe --cluster CLUSTER --output my-cluster.yaml",
                "ceph-tuner twin fit --cluster CLUSTER --cluster-file my-cluster.yaml --save fit.json",
            ),
        )
    ]
