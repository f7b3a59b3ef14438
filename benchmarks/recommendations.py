"""What `ceph-tuner recommend` costs on the examples, and how good its answers are: a version beside an earlier one.

    python benchmarks/recommendations.py --version before       # with that version's packages on PYTHONPATH
    python benchmarks/recommendations.py --version now
    python benchmarks/recommendations.py --render benchmarks/results/recommendations.jsonl --page PAGE.md

Each answer runs again on seeds that no search has used, the same and equally long for all versions. A line of the
output is one answer; what is there already is not searched again. Times are CPU time, all in one process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping

import runs_file

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.files import cluster_file, slo_file
from ceph_tuner.recommend import Prediction, SearchEffort
from ceph_tuner.recommend.paired_effect import paired_effects
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.recommendation import recommend
from ceph_tuner.recommend.runs import means_of
from ceph_tuner.twin.prediction import PredictionRun
from silent_listener import SilentListener

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
CLUSTERS = {
    "nvme-node": 8.0, "erasure-coded": 4.0, "nvme-60": 4.0, "hybrid-rbd": 4.0, "hybrid-rgw": 60.0, "975-osds": 4.0,
}  # fmt: skip
"""Cluster -> simulated seconds of the runs that judge the answers, a quarter of which is settling."""
FRESH = range(900_000_000, 900_000_016)
"""Seeds that judge."""


def slo_of(cluster: str) -> Slo:
    return slo_file.read(EXAMPLES / f"slo-{cluster}.yaml").slo


def answered(cluster: str, seed: int) -> Dict[str, Any]:
    """What is recommended, what it cost, and what the fresh seeds say of it."""
    description = cluster_file.read(EXAMPLES / f"cluster-{cluster}.yaml")
    question, effort = question_of(description, slo_of(cluster)), SearchEffort(seed=seed)
    began = time.process_time()
    found = recommend(question, effort, SilentListener(), 1, curves=False, stored_bytes=description.stored)
    cpu_s = time.process_time() - began
    winner, runs = found.searched.winner, found.searched.runs + (found.plan.runs if found.plan else 0)
    means = judged(cluster, winner.settings)
    return {"label": winner.label, "settings": winner.settings, "runs": runs, "cpu_s": round(cpu_s, 1), "means": means}


def judged(cluster: str, settings: Mapping[str, Any]) -> List[Dict[str, float]]:
    """The objectives' metrics under settings, on each of the fresh seeds."""
    question = question_of(cluster_file.read(EXAMPLES / f"cluster-{cluster}.yaml"), slo_of(cluster))
    settle = CLUSTERS[cluster] / 4
    jobs = [PredictionRun(question.model, settings, 3 * settle, settle, seed) for seed in FRESH]
    return [{name: run[name] for name in question.slo.metrics if name in run} for run in map(means_of, jobs)]


def measure(arguments: argparse.Namespace) -> None:
    there = [(line["version"], line["cluster"], line["seed"]) for line in runs_file.lines_of(arguments.output)]
    for seed in arguments.seeds:
        for cluster in arguments.clusters:
            key = (arguments.version, cluster, seed)
            if key not in there and not runs_file.over(arguments):
                line = {"version": arguments.version, "cluster": cluster, "seed": seed, **answered(cluster, seed)}
                runs_file.append(arguments.output, line)


def table(lines: List[Dict[str, Any]]) -> str:
    """The first version that was measured beside each later one."""
    versions = list(dict.fromkeys(line["version"] for line in lines))
    by_key = {(line["cluster"], line["seed"], line["version"]): line for line in lines}
    rows = [
        "| version | cluster, seed | missed | loss | each objective's metric | runs | CPU |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    shares: Dict[str, List[float]] = {}
    for (cluster, seed, version), new in by_key.items():
        old = by_key.get((cluster, seed, versions[0]))
        if old is None or version == versions[0]:
            continue
        judge = Judge(slo_of(cluster))
        before, after = (Prediction(line["label"], line["settings"], tuple(line["means"])) for line in (old, new))
        missed = [len(judge.missed_hard(entry.means)) for entry in (before, after)]
        loss = [judge.loss(entry.means) for entry in (before, after)]
        effects = [
            f"{effect.metric} {effect.ratio[0]:.2f} ({effect.ratio[1]:.2f} to {effect.ratio[2]:.2f})"
            for effect in paired_effects(judge.slo.metrics if judge.slo else (), before, after)
            if effect.ratio is not None
        ]
        share = new["cpu_s"] / old["cpu_s"]
        shares.setdefault(version, []).append(share)
        rows.append(
            f"| {version} | {cluster}, {seed} | {missed[0]}, {missed[1]} | {loss[0]:.3f}, {loss[1]:.3f} "
            f"| {'; '.join(effects)} | {old['runs']}, {new['runs']} "
            f"| {old['cpu_s']:.0f} s, {new['cpu_s']:.0f} s: {share:.2f} |"
        )
    means = [
        f"Of the CPU time {version} needs {statistics.geometric_mean(own):.2f}, in the geometric mean."
        for version, own in shares.items()
    ]
    return "\n".join([*rows, "", *means])


def main() -> None:
    parser = runs_file.parser(__doc__ or "", "recommendations.jsonl")
    parser.add_argument("--version", default="now", help="what the lines are told by")
    parser.add_argument("--clusters", nargs="+", choices=CLUSTERS, default=list(CLUSTERS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    runs_file.measure_and_show(parser.parse_args(), measure, table)


if __name__ == "__main__":
    main()
