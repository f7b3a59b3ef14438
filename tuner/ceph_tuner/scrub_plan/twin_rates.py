"""How fast deep scrub may go by the cluster's own twin, where no window of the cluster tells it."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.pacing.objectives import NO_OBJECTIVE, held_bounds, missed
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.runs import Means, means_of, run_length_s
from ceph_tuner.recommend.search import profiles_of
from ceph_tuner.scrub_plan import TWIN, RateRange
from ceph_tuner.scrub_plan.rates import SCRUBBED, rate_range
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.prediction import PredictionRun

EFFORT = SearchEffort(fresh=4, events=5e5, longest_s=30.0)
"""Of each number of scrubs at a time."""

Report = Callable[[int, int], None]
"""Runs that are done, of how many at most."""


def twin_pace(
    description: DescribedCluster,
    slo: Optional[Slo],
    baseline: Mapping[str, float],
    max_scrubs: int,
    report: Optional[Report] = None,
) -> Tuple[RateRange, Tuple[str, ...]]:
    """Bytes a second of the most scrubs at a time that keep the objectives, and notes.

    The description must have scrub work (`describe(…, also={"scrub"})`). Settings in force are tried with
    `osd_max_scrubs` from `max_scrubs` down to 1; where not even one scrub keeps the objectives, the rate is 0.
    Raises InputError where the description cannot be simulated.
    """
    question = question_of(description, slo or NO_OBJECTIVE)
    in_force: Settings = next(iter(profiles_of(question).values()))
    bounds = held_bounds(question.slo if slo is not None else None, baseline)
    seconds = run_length_s(question.model, in_force, EFFORT)
    settle = seconds * EFFORT.settle_share
    counts = sorted({max(1, max_scrubs), max(1, (max_scrubs + 1) // 2), 1}, reverse=True)
    done, total = 0, len(counts) * EFFORT.fresh
    notes = (f"the twin is not told of what clients do at other hours: {description.name} as it is now stands for all",)
    for count in counts:
        runs: List[Means] = []
        for seed in range(EFFORT.seed, EFFORT.seed + EFFORT.fresh):
            settings = {**in_force, "osd_max_scrubs": count}
            runs.append(means_of(PredictionRun(question.model, settings, seconds - settle, settle, seed)))
            done += 1
            if report is not None:
                report(done, total)
        if not missed(bounds, _mean(runs)):
            note = f"the twin keeps the objectives with {count} scrubs at a time on an OSD" if bounds else ""
            return rate_range([run.get(SCRUBBED, 0.0) for run in runs], TWIN), (*notes, *([note] if note else ()))
    note = "the twin misses an objective with a single scrub on each OSD: it leaves no rate for scrubs"
    return RateRange(0.0, 0.0, 0.0, TWIN), (*notes, note)


def _mean(runs: Sequence[Means]) -> Dict[str, float]:
    names = {name for run in runs for name in run}
    return {
        name: sum(values) / len(values) for name in names for values in [[run[name] for run in runs if name in run]]
    }
