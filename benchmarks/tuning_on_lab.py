r"""Tunes a lab from scratch, several times, and holds what was found against the built-in profiles.

    python benchmarks/tuning_on_lab.py --cluster lab --repeats 3 --output benchmarks/results/tuning-on-lab.jsonl
    python benchmarks/tuning_on_lab.py --cluster lab --scenarios client-recovery --load-option pool=ec:2+1 \
        --objectives 'client.p95_ms <= 40 ms;recovery.bytes_s >= 10 MB/s' \
        --output benchmarks/results/tuning-on-lab.jsonl
    python benchmarks/tuning_on_lab.py --render benchmarks/results/tuning-on-lab.jsonl \
        --page benchmarks/results/tuning-on-lab.md

Each run is `ceph-tuner tune --profiles --no-write-back --no-past` with the repeat's number as its seed. One line of the
output is one run, with every window; a run that is there already is not made again. Rounds come one after the other, so
that whatever ends the benchmark (`--until 16:30`), every scenario was repeated as often, or once more. Prints Markdown.

What is compared are the finalists' windows: the winner, the settings in force and the best built-in profile, measured
again in turns. benchmarks/tuning.py repeats the windows of one profile that was found.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import runs_file
from scipy.stats import t as student

from ceph_lab.cluster import Lab
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import IN_FORCE, Trial
from ceph_tuner.core.measure.quantity import quantity
from ceph_tuner_cli.lab_load import scenario_options

SCENARIOS: Mapping[str, Sequence[str]] = {
    "client-recovery": ("client.p95_ms <= 30 ms", "recovery.bytes_s >= 15 MB/s"),
    "client-scrub": ("client.p99_ms <= 50 ms", "scrub.bytes_s >= 30 MB/s"),
    "client-snaptrim-recovery": ("client.p95_ms <= 40 ms", "recovery.bytes_s >= 15 MB/s", "snaptrim.objects_s >= 100"),
}
"""Objectives on the default lab. Every built-in profile misses the clients', by what earlier windows showed."""

VERSION = 14
"""Of the search. 2: the twin's runs end with a lab's work, so that it is believed what it says of recovery. 3: doubt
grows with what forecasts were worth. 4: the batch of deferred writes is searched on hard disks. 5: clients are limited
only where they were. 6: the lab's twin has deferred writes, and erasure-coded reads and writes side by side.
7: the best is tried once more with fewer changes, and what is in force is not written. 8: a worst window that keeps its
bounds by a tenth is as good as any. 9: fewer changes are measured where they are thought to cost no more than a tenth.
10: and no more headroom than is worth a write. 11: a knob that does the work by itself is a design. 12: a design that
is worth as much as the best trial is tried first. 13: a twin that no trial has tested makes nothing infeasible, and odd
measurements mislead the models less. 14: a third of what the twin simulates is where it serves the objectives best."""

OWN = "ceph-tuner"


class Searched(NamedTuple):
    """What a search is called in headings, whose it is of `tuning_peers.py`, and the options of `tune` for it."""

    heading: str = ""
    peer: str = ""
    options: Sequence[str] = ()


SEARCHES: Mapping[str, Searched] = {
    OWN: Searched(),
    "no-designs": Searched("without the designs that are shipped", "no-designs"),
    "unaided": Searched("without designs and other clusters' profiles", "no-designs", ("--no-elsewhere",)),
    "optuna-gp": Searched("Optuna's GP under the same guard", "optuna-gp", ("--no-prior",)),
}

LEVEL = 0.95
ALSO = "client.mean_ms"


_AS_IT_STANDS = re.compile(r"(.+): (?:most |within )")
"""A shipped design's name, and why it was tried, where it was tried as it stands."""


def slo_text(name: str, objectives: Sequence[str] = (), options: Sequence[str] = (), maximise: str = "") -> str:
    goal = {"maximise": maximise} if maximise else {}
    document = {"schema": 1, "name": name, "objectives": list(objectives or SCENARIOS[name]), **goal}
    # JSON is YAML
    return json.dumps({**document, "lab": {"scenario": name, "options": scenario_options(name, options)}})


def search_of(entry: Mapping[str, Any]) -> str:
    """Whose search made an entry, by the names of SEARCHES."""
    return str(entry.get("search", OWN))


class Subject(NamedTuple):
    """What an entry is about."""

    scenario: str
    load_options: str
    osds: str
    search: str
    maximise: str
    """The metric of its goal; none: the objectives are all there is to wish for."""
    version: int
    """Of the search."""


def subject(entry: Mapping[str, Any]) -> Subject:
    options, osds = " ".join(entry.get("load_options", ())), ",".join(entry.get("osds", ()))
    version, maximise = int(entry.get("version", 1)), str(entry.get("maximise", ""))
    return Subject(entry["scenario"], options, osds, search_of(entry), maximise, version)


def run(arguments: argparse.Namespace, name: str, repeat: int, conditions: Mapping[str, Any]) -> Dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        slo = Path(directory) / "slo.yaml"
        objectives = [text for text in arguments.objectives.split(";") if text]
        slo.write_text(slo_text(name, objectives, arguments.load_option, arguments.maximise), encoding="utf-8")
        options = {"trials": arguments.trials, "window": arguments.window, "settle": arguments.settle, "repeats": 1}
        search = SEARCHES[arguments.search]
        own = [str(Path(sys.executable).with_name("ceph-tuner"))]
        peer = [sys.executable, str(Path(__file__).with_name("tuning_peers.py")), search.peer]
        command = [*(peer if search.peer else own), "tune", "--cluster", arguments.cluster, *search.options]
        command += ["--slo", str(slo), "--seed", str(repeat), "--profiles", "--no-write-back", "--no-past"]
        command += [word for option, value in options.items() for word in (f"--{option}", f"{value:g}")]
        began, load = time.time(), os.getloadavg()[0]
        done = subprocess.run([*command, "--format", "json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name} {repeat}: tune ended with {done.returncode}")
    return {
        "scenario": name,
        "load_options": arguments.load_option,
        "repeat": repeat,
        **conditions,
        **options,
        "date": datetime.fromtimestamp(began, timezone.utc).strftime("%Y-%m-%d"),
        "seconds": round(time.time() - began, 1),
        "load_average": [load, os.getloadavg()[0]],
        "outcome": json.loads(done.stdout),
    }


def measure(arguments: argparse.Namespace) -> None:
    lab = Lab.open(arguments.cluster)
    conditions = {
        "version": VERSION,
        **({} if arguments.search == OWN else {"search": arguments.search}),
        **({"maximise": arguments.maximise} if arguments.maximise else {}),
        "ceph": lab.state.ceph_version,
        "osds": list(map(str, lab.state.options.groups)),
        "python": platform.python_version(),
        "machine": runs_file.machine(),
    }
    done = {(*subject(entry), entry["repeat"]) for entry in runs_file.lines_of(arguments.output)}
    for repeat in range(arguments.first, arguments.first + arguments.repeats):
        for name in arguments.scenarios.split(","):
            about = {"scenario": name, "load_options": arguments.load_option, **conditions}
            if (*subject(about), repeat) in done:
                continue
            if runs_file.over(arguments):
                return
            entry = run(arguments, name, repeat, conditions)
            runs_file.append(arguments.output, entry)


class Compared:
    """One run: what its winner and the best built-in profile did in the same rounds."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        outcome = entry["outcome"]
        self.judge = Judge(parse_slo(outcome["slo"]), outcome["baseline"])
        self.trials = [Trial.from_dict(trial) for trial in outcome["trials"]]
        self.tried = [trial for trial in self.trials if trial.run.kind == "trial"]
        kept = [verdict.objective for verdict in self.judge.verdicts(self.judge.reference) if verdict.met]
        # what is in force may be measured again as a trial, and is not unsafe then
        own = [trial for trial in self.tried if trial.run.settings]
        self.unsafe = sum(
            any(v.objective in kept and not v.met for v in self.judge.verdicts(trial.means))
            for trial in own
            if trial.means
        )
        self.worse = sum(bool(self.judge.broken(trial.means)) for trial in own) - self.unsafe
        self.state: str = outcome["search"]["state"]
        self.better: bool = outcome["winner"]["better"]
        self.winner: str = outcome["winner"]["winner"]
        reasons = [trial.run.why for trial in self.tried if trial.run.label == self.winner]
        designs = filter(None, map(_AS_IT_STANDS.match, reasons))
        self.design = next((found[1] for found in designs), "")
        self.profile: str = outcome["best_built_in"]["label"]
        in_force = self.trials[0].run.why == self.profile
        self.tuned = self._means(self.winner)
        self.built_in = self._means(IN_FORCE if in_force else self.profile)

    def _means(self, label: str) -> Dict[str, float]:
        """Of the finalists' windows; of all where it is no finalist."""
        own = [trial for trial in self.trials if trial.run.label == label and trial.failed is None]
        again = [trial for trial in own if trial.run.kind == "repeat"] or own
        names = set.intersection(*(set(trial.means) for trial in again))
        return {name: statistics.fmean(trial.means[name] for trial in again) for name in names}

    def met(self, means: Mapping[str, float]) -> List[bool]:
        return [verdict.met is True for verdict in self.judge.verdicts(means)]

    @property
    def until_met(self) -> Optional[int]:
        """Trials until one kept every objective; None where none did."""
        for number, trial in enumerate(self.tried, start=1):
            if trial.failed is None and self.judge.keeps_hard(trial.means):
                return number
        return None


def student_half(values: Sequence[float]) -> float:
    if len(values) < 2:
        return math.nan
    return float(student.ppf(0.5 + LEVEL / 2, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))


def shown(metric: str, values: Sequence[float]) -> str:
    singles = ", ".join(quantity(metric, value).split()[0] for value in values)
    return f"{quantity(metric, statistics.fmean(values))} ({singles})"


def ratio(runs: Sequence[Compared], metric: str) -> str:
    """Tuned over built-in in the same rounds: geometric mean, and its Student interval over the repeats."""
    logs = [math.log(run.tuned[metric] / run.built_in[metric]) for run in runs]
    mean, half = statistics.fmean(logs), student_half(logs)
    interval = "" if math.isnan(half) else f" [{math.exp(mean - half):.2f}, {math.exp(mean + half):.2f}]"
    return f"{math.exp(mean):.2f}{interval}"


def comparison(runs: Sequence[Compared]) -> List[str]:
    slo = runs[0].judge.slo
    metrics = list(dict.fromkeys([*(objective.metric for objective in slo.objectives), ALSO]))
    bounds = {objective.metric: f"`{objective.text}`" for objective in slo.objectives}
    lines = ["| | best built-in | tuned | tuned / built-in |", "| --- | --- | --- | --- |"]
    for metric in metrics:
        sides = [[side[metric] for side in sides] for sides in ([r.built_in for r in runs], [r.tuned for r in runs])]
        cells = [shown(metric, values) for values in sides]
        for place, objective in enumerate(slo.objectives):
            if objective.metric == metric:
                met = [sum(run.met(means)[place] for run, means in pairs) for pairs in _sides(runs)]
                cells = [f"{cell}: met {count} of {len(runs)}" for cell, count in zip(cells, met)]
        lines.append(f"| {bounds.get(metric, metric)} | {' | '.join(cells)} | {ratio(runs, metric)} |")
    every = [sum(all(run.met(means)) for run, means in pairs) for pairs in _sides(runs)]
    lines.append(f"| every objective met | {' | '.join(f'{count} of {len(runs)}' for count in every)} | |")
    return lines


def _sides(runs: Sequence[Compared]) -> List[List[Tuple[Compared, Dict[str, float]]]]:
    return [[(run, run.built_in) for run in runs], [(run, run.tuned) for run in runs]]


def search_lines(entries: Sequence[Mapping[str, Any]], runs: Sequence[Compared]) -> List[str]:
    lines = [
        "| repeat | window | best built-in | winner | a shipped design | writes | trials "
        "| first that met every objective | unsafe | worse | ended early | search | minutes |",
        "|" + " --- |" * 13,
    ]
    for entry, one in zip(entries, runs):
        failed = sum(trial.failed is not None for trial in one.tried)
        winner = one.winner if one.better else "none better"
        writes = str(len(entry["outcome"]["commands"])) if one.better else ""
        first = "none" if one.until_met is None else str(one.until_met)
        lines.append(
            f"| {entry['repeat']} | {entry['window']:g} s | {one.profile} | {winner} "
            f"| {one.design if one.better and one.design else 'no'} | {writes} | {len(one.tried)} "
            f"| {first} | {one.unsafe} | {one.worse} | {failed} | {one.state} | {entry['seconds'] / 60:.1f} |"
        )
    return lines


def expectation(runs: Sequence[Compared]) -> List[str]:
    """Say how what was measured of the trials compares with what the search had expected."""
    lines = []
    for metric in dict.fromkeys(objective.metric for objective in runs[0].judge.objectives):
        pairs = [
            (trial.means[metric], trial.run.expected[metric])
            for run in runs
            for trial in run.tried
            if metric in trial.means and metric in trial.run.expected
        ]
        if pairs:
            ratios = sorted(seen / middle for seen, (middle, _, _) in pairs)
            inside = sum(low <= seen <= high for seen, (_, low, high) in pairs)
            lines.append(
                f"- {metric}: measured over expected {statistics.median(ratios):.2f} in the median "
                f"({ratios[0]:.2f} to {ratios[-1]:.2f}), {inside} of {len(pairs)} within the 95%"
            )
    return ["What was expected of the trials:", "", *lines, ""] if lines else []


def tables(entries: Sequence[Mapping[str, Any]]) -> str:
    """Lay out all runs, those of the newest version first."""
    lines: List[str] = []
    for version in sorted({subject(entry).version for entry in entries}, reverse=True):
        of_version = [entry for entry in entries if subject(entry).version == version]
        lines += [f"## Version {version} of the search", ""]
        for about in dict.fromkeys(map(subject, of_version)):
            own = [entry for entry in of_version if subject(entry) == about]
            runs = [Compared(entry) for entry in own]
            osds, goal = about.osds or "throttled devices", about.maximise and f"maximise {about.maximise}"
            parts = [about.scenario, about.load_options, osds, SEARCHES[about.search].heading, goal]
            heading = ", ".join(filter(None, [*parts, own[0].get("date", "")]))
            lines += [f"### {heading}", "", *comparison(runs), "", *search_lines(own, runs), "", *expectation(runs)]
        everything = [Compared(entry) for entry in of_version if search_of(entry) == OWN]
        trials, unsafe = sum(len(one.tried) for one in everything), sum(one.unsafe for one in everything)
        lines += [f"Unsafe: {unsafe} of {trials} trials.", ""]
    return "\n".join(lines).rstrip()


def main() -> None:
    parser = runs_file.lab_parser(__doc__, "tuning-on-lab.jsonl")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--objectives", default="", help="in the place of each scenario's own, separated by semicolons")
    parser.add_argument("--maximise", default="", metavar="METRIC", help="a goal beside the objectives")
    parser.add_argument("--load-option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--search", choices=list(SEARCHES), default=OWN)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="number, and seed, of the first repeat")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--window", type=float, default=15.0)
    parser.add_argument("--settle", type=float, default=4.0)
    arguments = parser.parse_args()
    runs_file.measure_and_show(arguments, measure, tables)


if __name__ == "__main__":
    main()
