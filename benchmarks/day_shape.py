"""The clients' day of `day.py` and `day_on_lab.py`, by hour, as a public block trace has it.

    git clone https://github.com/pbhandar2/BlockTraceFeatures /tmp/features
    python benchmarks/day_shape.py --features /tmp/features

CloudPhysics recorded the block requests of 106 virtual machines for a week each (Waldspurger and others, FAST 2015).
The repository above counts each machine's requests by half hours; it states no licence, so that nothing of it is kept
here but the 24 numbers that this program derives. Most machines follow no hour at all: they idle, or work in bursts.
Taken are those whose requests follow a wave of 24 hours, and the sum of their requests.

The traces begin at zero, so that the hour of the day is not known. The busiest hour is put at `BUSIEST_H`.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Dict, List, Sequence

SHAPE = Path(__file__).parent / "day_shape.json"
COMMIT = "a93bcd49f1dea1070123d0017819c4fc0b8f9107"
BUSIEST_H = 16
LEAST_DAYS, LEAST_SHARE = 5, 0.5
"""Whole days that a trace lasts, and the part of its hourly counts' variance that a wave of 24 hours explains."""


def clients_at(hour: float) -> float:
    """Rate of the clients as a part of the day's mean: straight lines between the middles of the hours."""
    middle = (hour - 0.5) % 24.0
    before = int(middle)
    after = middle - before
    by_hour = shape()
    return (1.0 - after) * by_hour[before] + after * by_hour[(before + 1) % 24]


@cache
def shape() -> List[float]:
    """Of each hour, by the day's mean."""
    return list(json.loads(SHAPE.read_text(encoding="utf-8"))["by_hour"])


def follows_the_hour(counts: Sequence[float]) -> float:
    """Part of the variance of hourly counts of whole days that a wave of 24 hours explains."""
    mean, hours = fmean(counts), len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / hours
    angles = [2.0 * math.pi * hour / 24.0 for hour in range(hours)]
    cosine, sine = (
        2.0 * fmean(count * of(angle) for count, angle in zip(counts, angles)) for of in (math.cos, math.sin)
    )
    return (cosine**2 + sine**2) / 2.0 / variance if variance else 0.0


def by_hour(traces: Sequence[Sequence[float]]) -> List[float]:
    """Means of each hour over the days that all traces have, by the mean of all; the busiest hour at `BUSIEST_H`."""
    hours = min(map(len, traces)) // 24 * 24
    whole = [sum(trace[hour] for trace in traces) for hour in range(hours)]
    means = [fmean(whole[hour::24]) / fmean(whole) for hour in range(24)]
    turned = means.index(max(means)) - BUSIEST_H
    return [round(means[(hour + turned) % 24], 3) for hour in range(24)]


def hourly(snapshots: Path) -> List[float]:
    """Requests by hour of a machine, whole days."""
    counts: Counter[int] = Counter()
    with snapshots.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            # microseconds, of the last request of a half hour
            counts[int(row["ts"]) // 3_600_000_000] += int(float(row["block_req_count"]))
    return [float(counts[hour]) for hour in range(max(counts, default=-1) + 1)]


def derive(features: Path) -> Dict[str, Any]:
    """The document, from a checkout of the counts."""
    paths = sorted(features.glob("cloudphysics/*/block_snapshots/block_snap_*.csv"))
    if not paths:
        raise SystemExit(f"{features} has no cloudphysics/*/block_snapshots/block_snap_*.csv")
    taken: Dict[str, List[float]] = {}
    for path in paths:
        counts = hourly(path)
        counts = counts[: len(counts) // 24 * 24]
        if len(counts) >= 24 * LEAST_DAYS and follows_the_hour(counts) >= LEAST_SHARE:
            taken[path.parent.parent.name] = counts
    return {
        "source": f"CloudPhysics block traces, counted by github.com/pbhandar2/BlockTraceFeatures@{COMMIT}",
        "licence": "none stated; these numbers are derived, and nothing else of it is kept",
        "method": "benchmarks/day_shape.py",
        "machines": [len(taken), len(paths)],
        "taken": list(taken),
        "days": min(map(len, taken.values())) // 24,
        "by_hour": by_hour(list(taken.values())),
    }


def main() -> int:
    """Derive the shape again, and say whether it is what is there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--features", type=Path, required=True, help="a checkout of the repository with the counts")
    parser.add_argument("--write", action="store_true", help="replace the shape that is there")
    arguments = parser.parse_args()
    text = json.dumps(derive(arguments.features), indent=1) + "\n"
    print(text, end="")
    if arguments.write:
        SHAPE.write_text(text, encoding="utf-8")
    elif SHAPE.read_text(encoding="utf-8") != text:
        print(f"{SHAPE} has another shape", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
