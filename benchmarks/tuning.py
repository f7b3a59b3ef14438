"""Holds a tuned profile against the built-in ones on a lab: the same load, in turn, several times each.

    python benchmarks/tuning.py --cluster lab --slo examples/slo-recovery.yaml --profile tuned.yaml --repeats 3 \
        --output recovery.json

Every window is prepared, written, settled, measured and taken back by the code that `ceph-tuner tune` uses. The order
is rotated from one repeat to the next, so that a drift of the machine meets all of them. Prints a Markdown table;
`--output` keeps every window as JSON, from which `--render recovery.json` prints the table again.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List

import runs_file
from locked_lab import locked_lab
from measured_page import shown

from ceph_lab.recipes import options_for_window
from ceph_lab.scenarios import scenario
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import Run
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.files import profile_file, slo_file
from ceph_tuner.tune.interrupts import Interrupts
from ceph_tuner.tune.measurement import Timing
from ceph_tuner_cli.tune_page import TuneProgress

ALSO = ("client.iops", "client.mean_ms", "client.p95_ms", "client.p99_ms", "recovery.bytes_s", "scrub.bytes_s")


def measure(arguments: argparse.Namespace) -> Dict[str, Any]:
    wanted = slo_file.read(arguments.slo)
    tuned = profile_file.read(arguments.profile)
    windows: List[Dict[str, Any]] = []
    with ExitStack() as stack:
        clock, timing = SystemClock(), Timing(arguments.settle, arguments.window)
        target = stack.enter_context(locked_lab(arguments.cluster, clock, "benchmarks/tuning.py"))
        opened, lab = target.cluster, target.lab
        now = opened.in_force("osd")
        options = options_for_window(wanted.scenario, wanted.options, timing.settle + timing.window)
        work = stack.enter_context(scenario(wanted.scenario, lab, **options))
        runs_file.tell_shortfalls(work, timing.settle + timing.window)
        progress = stack.enter_context(TuneProgress(wanted.slo))
        interrupts = stack.enter_context(Interrupts(progress.interrupted))
        measuring = target.runner(wanted.slo, work, clock, progress, interrupts, timing)
        runs = [Run("profile", name, {PROFILE: name}) for name in opened.release.profiles]
        runs.append(Run("trial", tuned.name, dict(tuned.settings)))
        total = len(runs) * arguments.repeats
        for repeat in range(arguments.repeats):
            for run in runs[repeat % len(runs) :] + runs[: repeat % len(runs)]:
                trial = measuring.run(run, len(windows) + 1, total, {})
                windows.append({"repeat": repeat + 1, **trial.to_dict()})
        return {
            "slo": wanted.slo.to_dict(),
            "scenario": wanted.scenario,
            "ceph": opened.version,
            "hardware": now.hardware.__dict__,
            "tuned": {"name": tuned.name, "settings": dict(tuned.settings)},
            "window_s": timing.window,
            "settle_s": timing.settle,
            "machine": f"{platform.machine()}, Linux {platform.release()}",
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "windows": windows,
        }


def table(document: Dict[str, Any]) -> str:
    """The objectives are those that were measured: a file of examples may have changed since."""
    slo = parse_slo(document["slo"])
    windows = document["windows"]
    seen = {metric for window in windows for metric in window["measures"]}
    metrics = [metric for metric in ALSO if metric in seen]
    objectives = [objective.text for objective in slo.objectives]
    lines = [
        "| profile | " + " | ".join(metrics) + " | " + " | ".join(f"`{text}`" for text in objectives) + " |",
        "|" + " --- |" * (1 + len(metrics) + len(objectives)),
    ]
    for label in dict.fromkeys(window["label"] for window in windows):
        own = [window for window in windows if window["label"] == label and window["failed"] is None]
        failed = sum(window["label"] == label and window["failed"] is not None for window in windows)
        cells = [label + (f" ({failed} windows failed)" if failed else "")]
        for metric in metrics:
            values = [window["measures"][metric][0] for window in own if metric in window["measures"]]
            mean = statistics.fmean(values) if values else float("nan")
            cells.append(f"{shown(metric, mean)} ({', '.join(shown(metric, v).split()[0] for v in values)})")
        for place in range(len(objectives)):
            means = [{name: entry[0] for name, entry in window["measures"].items()} for window in own]
            met = sum(Judge(slo).verdicts(mean)[place].met is True for mean in means)
            cells.append(f"met in {met} of {len(own)}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cluster", default="lab")
    parser.add_argument("--slo", type=Path, help="the objectives; an earlier run has its own")
    parser.add_argument("--profile", type=Path, help="the tuned profile")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--window", type=float, default=25.0)
    parser.add_argument("--settle", type=float, default=5.0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--render", type=Path, help="print the table of an earlier run, measure nothing")
    arguments = parser.parse_args()
    if arguments.render is None and (arguments.slo is None or arguments.profile is None):
        parser.error("--slo and --profile, or --render")
    if arguments.render is not None:
        document = json.loads(arguments.render.read_text(encoding="utf-8"))
    else:
        document = measure(arguments)
        if arguments.output is not None:
            arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(table(document))


if __name__ == "__main__":
    main()
