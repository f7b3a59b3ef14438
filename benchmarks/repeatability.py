"""How far windows of the same settings differ on a lab: the spread of each metric in each kind of load.

    python benchmarks/repeatability.py --cluster lab --windows 10 --output benchmarks/results/repeatability.jsonl
    python benchmarks/repeatability.py --render benchmarks/results/repeatability.jsonl

Spread is (highest - lowest) / mean over the windows. A line of the output is one window; windows that are there already
are not measured again. Run it on a machine that does nothing else: the machine's load is written beside each window.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any, Mapping, Sequence

import runs_file

from ceph_lab import scenarios
from ceph_lab.cluster import Lab
from ceph_lab.recipes import options_for_window
from ceph_lab.scenarios import SETTLE_S

SCENARIOS = ("client", "client-recovery", "client-backfill", "client-scrub", "client-snaptrim", "mixed")
RATE_S = {"ssd": 250.0, "hdd": 15.0}
"""Media -> clients' writes a second that leave the drive room for other work; as many times fewer as it is slower."""
WANTED = {"mean_ms": 5.0, "p95_ms": 10.0, "_s": 2.0}
"""Ending of a metric -> the spread in per cent that is wanted. Of clients' p99 and of their own rate none is."""


def wanted(metric: str) -> float:
    if metric.startswith("client.") and metric.endswith("_s"):
        return float("nan")
    return next((bound for ending, bound in WANTED.items() if metric.endswith(ending)), float("nan"))


def shown(metric: str) -> bool:
    return metric in ("client.mean_ms", "client.p95_ms", "client.p99_ms") or (
        (metric.endswith("bytes_s") or metric == "snaptrim.objects_s") and not metric.startswith("client.")
    )


def drives_of(lab: Lab) -> str:
    """As tables name them."""
    options = lab.state.options
    return ",".join(map(str, options.groups)) + (f", {options.slower:g} times slower" if options.slower != 1 else "")


def rate_of(lab: Lab, device_class: str = "") -> float:
    """What clients offer that lie on the OSDs of a class, or on all."""
    options = lab.state.options
    osds = options.classes[device_class] if device_class else lab.osds
    return min(RATE_S[options.media_of(osd)] for osd in osds) / options.slower


def measure(arguments: argparse.Namespace) -> None:
    lab = Lab.open(arguments.cluster)
    drives, drive, rate_s = lab.state.options, drives_of(lab), rate_of(lab)
    for name in arguments.scenarios.split(","):
        lines = runs_file.lines_of(arguments.output)
        there = [each for each in lines if (each["drive"], each["scenario"]) == (drive, name)]
        if len(there) >= arguments.windows:
            continue
        options = options_for_window(name, {"rate": rate_s}, arguments.seconds + SETTLE_S)
        with scenarios.scenario(name, lab, **options) as scenario:
            runs_file.tell_shortfalls(scenario, arguments.seconds + SETTLE_S)
            for number in range(len(there), arguments.windows):
                if runs_file.over(arguments):
                    return
                began = time.time()
                scenario.prepare()
                prepared = time.time() - began
                processors = runs_file.Processors()
                measures = scenario.run(arguments.seconds)
                line = {
                    "drive": drive,
                    "scenario": name,
                    "window": number,
                    "seconds": arguments.seconds,
                    "rate": rate_s,
                    "ceph": lab.state.ceph_version,
                    "release": lab.release,
                    "machine": runs_file.machine(),
                    "storage": drives.storage,
                    "shards": drives.shards or "Ceph's own",
                    "date": time.strftime("%Y-%m-%d"),
                    "prepare_s": round(prepared, 1),
                    "load": os.getloadavg()[0],
                    "processors_percent": processors.percent(),
                    "means": {metric: measure.mean for metric, measure in measures.items()},
                    "remarks": list(scenario.remarks()),
                }
                runs_file.append(arguments.output, line)
                rounded = {metric: round(value, 2) for metric, value in line["means"].items() if shown(metric)}
                print(name, number, rounded, line["processors_percent"], flush=True)


def spread(values: Sequence[float]) -> float:
    return 100 * (max(values) - min(values)) / statistics.fmean(values)


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = ["| drive | load | windows | metric | mean | spread | wanted |", "|" + " --- |" * 7]
    for drive, name in dict.fromkeys((each["drive"], each["scenario"]) for each in lines):
        own = [each["means"] for each in lines if (each["drive"], each["scenario"]) == (drive, name)]
        for metric in (each for each in own[0] if shown(each)):
            values = [means[metric] for means in own if metric in means]
            if not any(values):
                continue
            bound = wanted(metric)
            missed = "" if not spread(values) > bound else " (missed)"
            target = "" if bound != bound else f"{bound:.0f}%{missed}"
            row = [drive, name, str(len(values)), metric, f"{statistics.fmean(values):.4g}"]
            rows.append(f"| {' | '.join(row)} | {spread(values):.1f}% | {target} |")
    return "\n".join(rows)


def main() -> None:
    parser = runs_file.lab_parser(__doc__, "repeatability.jsonl")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    runs_file.measure_and_show(arguments, measure, table)


if __name__ == "__main__":
    main()
