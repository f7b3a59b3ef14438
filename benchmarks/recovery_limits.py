r"""How a limit on best effort slows recovery down on real OSDs: the last item of each PG waits for it.

    ceph-tuner lab up --name limits --drive nvme --slower 6
    python benchmarks/recovery_limits.py --cluster limits
    python benchmarks/recovery_limits.py --render benchmarks/results/recovery-limits.jsonl \
        --page benchmarks/results/recovery-limits.md

The shares of `balanced`, with other limits of best effort, take turns beside the same clients and the same lost
objects. Nothing else is at work that best effort would be for.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import closing
from typing import Any, List, Mapping

import runs_file
from day_on_lab import written
from repeatability import drives_of, rate_of

from ceph_lab import scenarios
from ceph_lab.cluster import Lab
from ceph_lab.recipes import options_for_window
from ceph_lab.scenarios import SETTLE_S
from ceph_tuner.cluster import open_cluster
from ceph_tuner.core.knobs.releases import nine

LIMITS = (0.9, 0.0, 0.3)
"""Shares of the capacity; 0 is none."""
RATES = ("recovery.objects_s", "recovery.bytes_s", "client.p95_ms")


def measure(arguments: argparse.Namespace) -> None:
    lab = Lab.open(arguments.cluster)
    options = {"rate": rate_of(lab), "pool": arguments.pool}
    lines = [line for line in runs_file.lines_of(arguments.output) if line["pool"] == arguments.pool]
    there = {(line["turn"], line["limit"]) for line in lines}
    windows = options_for_window("client-recovery", options, arguments.seconds + SETTLE_S)
    with closing(open_cluster(lab.name)) as cluster, scenarios.scenario("client-recovery", lab, **windows) as scenario:
        for turn in range(arguments.turns):
            for limit in LIMITS:
                if (turn, limit) in there or runs_file.over(arguments):
                    continue
                with written(cluster, nine((0.5, 1, 0), (0.5, 1, 0), (0.0, 1, limit))):
                    scenario.prepare()
                    processors = runs_file.Processors()
                    measures = scenario.run(arguments.seconds)
                line = {
                    "turn": turn,
                    "limit": limit,
                    "pool": arguments.pool,
                    "drive": drives_of(lab),
                    "ceph": lab.state.ceph_version,
                    "machine": runs_file.machine(),
                    "date": time.strftime("%Y-%m-%d"),
                    "seconds": arguments.seconds,
                    "processors_percent": processors.percent(),
                    "means": {name: each.mean for name, each in measures.items()},
                }
                runs_file.append(arguments.output, line)
                print(turn, limit, {name: round(line["means"].get(name, 0.0), 2) for name in RATES}, flush=True)


def table(lines: List[Mapping[str, Any]]) -> str:
    """Means and ranges, by pool and limit."""
    rows = ["| pool | limit of best effort | windows | objects/s | MB/s | clients' p95 |", "|" + " --- |" * 6]
    for pool, limit in dict.fromkeys((line["pool"], line["limit"]) for line in lines):
        own = [line["means"] for line in lines if (line["pool"], line["limit"]) == (pool, limit)]
        cells = [_range([means[name] / scale for means in own]) for name, scale in zip(RATES, (1.0, 1e6, 1.0))]
        rows.append(f"| {pool} | {f'{limit:g}' if limit else 'none'} | {len(own)} | {' | '.join(cells)} ms |")
    return "\n".join(rows)


def _range(values: List[float]) -> str:
    return f"{statistics.fmean(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def main() -> None:
    parser = runs_file.lab_parser(__doc__, "recovery-limits.jsonl")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--pool", default="replicated:3")
    runs_file.measure_and_show(parser.parse_args(), measure, table)


if __name__ == "__main__":
    main()
