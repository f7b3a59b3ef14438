r"""Holds the twin, told of a lab and fitted to nothing, against windows that are measured after it has predicted them.

    python benchmarks/twin_ahead.py --cluster lab --ahead benchmarks/results/twin-ahead-hdd.json
    python benchmarks/twin_ahead.py --render benchmarks/results/twin-ahead.jsonl --page PAGE.md
    python benchmarks/twin_ahead.py --render benchmarks/results/twin-ahead.jsonl --again [--loads client-scrub]

Settings are drawn over the whole space of each load, beside the built-in profiles. What the twin expects of all of them
goes into the file `--ahead` before the first window is measured; each measured window names that file's digest. A run
that is interrupted goes on with the predictions that are there. Prints Markdown. `--again` says what the twin of today
would have said of windows that were measured: what a change of it does, and no prediction. It is about the `--loads`
that are named, and where `--ahead` is one of the files of predictions, about that file's. `--page` keeps it there.

The twin knows what `ceph_lab.twin_model` says of a lab: the drives' model, the queues, the loads. An error is
|predicted - measured| / measured. An interval holds 90%: chance, by several seeds, and ERROR of the description.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
import time
from contextlib import ExitStack
from itertools import combinations, groupby
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import measured_page
import numpy as np
import runs_file
from locked_lab import LockedLab, locked_lab
from repeatability import drives_of, rate_of

from ceph_lab.cluster import Lab
from ceph_lab.options import LabOptions
from ceph_lab.recipes import CLIENTS, options_for_window
from ceph_lab.scenarios import scenario
from ceph_lab.twin_model import lab_model
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import LabFailed
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release, Settings, parse_version, release_of
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.search.space import space_for
from ceph_tuner.tune.interrupts import Interrupts
from ceph_tuner.tune.measurement import Timing
from ceph_tuner.tune.past import written_out
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.forecast import metrics_of
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import RATES, SimulatedRun, negligible
from ceph_tuner_cli.lab_load import scenario_options
from ceph_tuner_cli.tune_page import TuneProgress

WORK: Mapping[str, Sequence[str]] = {
    "client": ("client",),
    "client-recovery": ("client", "recovery"),
    "client-backfill": ("client", "backfill"),
    "client-scrub": ("client", "scrub"),
    "client-snaptrim": ("client", "snaptrim"),
    "mixed": ("client", "recovery", "scrub", "snaptrim"),
}
"""Loads, and what of the knobs' space each is about."""

SEEDS = 12
ERROR = {"rate": 0.11, "mean": 0.25, "p95": 0.3, "p99": 0.35}
"""Of a description, in logarithms: a standard deviation. A guess of before the first window; 57 windows confirmed it,
but for the rates', which was 0.25."""
WANTED = {"rate": 0.20, "mean": 0.20, "p95": 0.25, "p99": 0.35}
"""Median errors wanted of what is described only."""
HELD, TOLD = (0.85, 0.95), 0.95
"""Shares wanted of each kind of lab: of values inside their intervals, least and most, and of pairs told rightly."""
LEVEL_DEVIATIONS = 1.645
WINDOW = ("ahead_file", "load", "label")
"""What names a window."""
AGAIN = Path("benchmarks/results/twin-ahead-again.jsonl")
"""What the twin said of all windows when the page was written last."""
APART = 0.2
"""Pairs of settings of which the twin is asked which is better: those that differ by more in the measurement."""


def kind_of(metric: str) -> str:
    if metric in RATES:
        return "rate"
    return next((kind for kind in ("p95", "p99") if kind in metric), "mean")


def settings_under(
    load: str, number: int, now: InForce, release: Release, arguments: argparse.Namespace
) -> List[Tuple[str, Settings]]:
    """Give (label, settings): built-in profiles, then those of a file, or drawn over the space of that load."""
    profiles: List[Tuple[str, Settings]] = [(name, {PROFILE: name}) for name in release.profiles if load != "client"]
    if arguments.settings_file is not None:
        by_label: Dict[str, Settings] = json.loads(arguments.settings_file.read_text(encoding="utf-8"))
        return [*profiles, *by_label.items()]
    space = space_for(release, WORK[load], now.settings, shards=now.hardware.shards, kind=now.kind)
    points = np.random.default_rng([arguments.seed, number]).random((arguments.settings, space.size))
    drawn = [space.decode([float(each) for each in point]) for point in points]
    return [*(profiles or [("in force", {})]), *((f"drawn {place}", own) for place, own in enumerate(drawn, start=1))]


def options_of(load: str, target: LockedLab, timing: Timing, words: Sequence[str]) -> Dict[str, Any]:
    given = scenario_options(load, words)
    chosen = {"rate": rate_of(target.lab, given.get("device_class", "")), **given}
    return options_for_window(load, chosen, timing.settle + timing.window)


def predicted(
    model: ClusterModel, settings: Settings, in_force: Settings, timing: Timing, runner: Runner
) -> Dict[str, List[float]]:
    """Give each metric's median over the seeds, and the ends of its interval."""
    metrics = metrics_of(model)
    own = written_out(settings, model.release.profiles, in_force)
    whole = completed({**in_force, **own}, model.release)
    runs = [SimulatedRun(model, whole, timing.window, timing.settle, seed, metrics) for seed in range(SEEDS)]
    rows = np.asarray(runner(runs))
    found = {}
    for column, metric in enumerate(metrics):
        floor = max(negligible(metric, model), 1e-9)
        z = np.log(rows[:, column] + floor)
        middle = float(np.median(z))
        half = LEVEL_DEVIATIONS * math.hypot(float(np.std(z, ddof=1)), ERROR[kind_of(metric)])
        found[metric] = [max(0.0, math.exp(at) - floor) for at in (middle, middle - half, middle + half)]
    return found


def predict(target: LockedLab, arguments: argparse.Namespace, timing: Timing) -> None:
    cluster, lab_options = target.cluster, target.lab.state.options
    now, release, version = cluster.in_force(target.target), cluster.release, parse_version(cluster.version)
    rows = []
    with Runner(arguments.processes) as runner:
        for number, load in enumerate(arguments.loads.split(",")):
            options = options_of(load, target, timing, arguments.load_option)
            model = lab_model(lab_options, now.hardware, load, release, version, options)
            for label, settings in settings_under(load, number, now, release, arguments):
                row = {"load": load, "label": label, "settings": settings, "options": options}
                rows.append({**row, "predicted": predicted(model, settings, now.settings, timing, runner)})
                print(f"predicted {load} {label}", file=sys.stderr, flush=True)
    document = {
        "lab": lab_options.to_dict(),
        "ceph": cluster.version,
        "hardware": vars(now.hardware),
        "in_force": now.settings,
        "seed": arguments.seed,
        "window_s": timing.window,
        "settle_s": timing.settle,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rows": rows,
    }
    arguments.ahead.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def measure(arguments: argparse.Namespace) -> None:
    clock, timing = SystemClock(), Timing(arguments.settle, arguments.window)
    with ExitStack() as stack:
        # of all loads alike
        load_options = scenario_options(arguments.loads.split(",")[0], arguments.load_option)
        device_class = load_options.get("device_class", "")
        target = stack.enter_context(locked_lab(arguments.cluster, clock, "benchmarks/twin_ahead.py", device_class))
        if not arguments.ahead.exists():
            predict(target, arguments, timing)
        digest = digest_of(arguments.ahead)
        print(f"predictions {arguments.ahead}: {digest}", file=sys.stderr, flush=True)
        ahead = json.loads(arguments.ahead.read_text(encoding="utf-8"))
        timing = Timing(ahead["settle_s"], ahead["window_s"])
        lines = [line for line in runs_file.lines_of(arguments.output) if line["ahead"] == digest]
        done = {(line["load"], line["label"]) for line in lines}
        slo = parse_slo({"name": "none", "objectives": ["client.p95_ms <= 60 s"]})
        progress = stack.enter_context(TuneProgress(slo))
        interrupts = stack.enter_context(Interrupts(progress.interrupted))
        rows = list(enumerate(ahead["rows"], start=1))
        # one scenario for all windows of a load: it knows what it has prepared already
        for (load, options), own in groupby(rows, key=lambda item: (item[1]["load"], item[1]["options"])):
            left = [(number, row) for number, row in own if (load, row["label"]) not in done]
            if not left:
                continue
            with scenario(load, target.lab, **options) as work:
                runs_file.tell_shortfalls(work, timing.settle + timing.window)
                measuring = target.runner(slo, work, clock, progress, interrupts, timing)
                for number, row in left:
                    if runs_file.over(arguments):
                        return
                    processors = runs_file.Processors()
                    kind = "profile" if PROFILE in row["settings"] else "trial" if row["settings"] else "baseline"
                    try:
                        trial = measuring.run(Run(kind, row["label"], row["settings"]), number, len(rows), {})
                    except LabFailed as failed:
                        print(f"{load} {row['label']}: {failed}", file=sys.stderr)
                        continue
                    window = line_of(row, trial, target.lab, processors)
                    whole = {"ahead": digest, "ahead_file": arguments.ahead.name, "ceph": ahead["ceph"]}
                    runs_file.append(arguments.output, {**window, **whole})


def line_of(row: Mapping[str, Any], trial: Trial, lab: Lab, processors: runs_file.Processors) -> Dict[str, Any]:
    """A window as it is kept, but for what it was held against."""
    return {
        "drive": drives_of(lab),
        "pool": row["options"].get("pool", ""),
        **{key: row[key] for key in ("load", "label", "settings", "predicted")},
        "failed": trial.failed,
        "measured": {name: measure.mean for name, measure in trial.measures.items()},
        "machine": runs_file.machine(),
        "date": time.strftime("%Y-%m-%d"),
        "processors_percent": processors.percent(),
        "remarks": list(trial.notes),
    }


def again(lines: Sequence[Mapping[str, Any]], folder: Path, processes: Optional[int]) -> List[Dict[str, Any]]:
    """What the twin says today of each line's window; `folder` holds the files of the predictions."""
    found = []
    with Runner(processes) as runner:
        for line in lines:
            ahead = json.loads((folder / line["ahead_file"]).read_text(encoding="utf-8"))
            row = next(row for row in ahead["rows"] if all(row[key] == line[key] for key in ("load", "label")))
            model = lab_model(
                LabOptions.from_dict(ahead["lab"]), Hardware(**ahead["hardware"]), row["load"],
                release_of(ahead["ceph"]), parse_version(ahead["ceph"]), row["options"],
            )  # fmt: skip
            timing = Timing(ahead["settle_s"], ahead["window_s"])
            said = predicted(model, row["settings"], ahead["in_force"], timing, runner)
            rounded = {metric: [float(f"{value:.4g}") for value in values] for metric, values in said.items()}
            whole = {**{key: line[key] for key in WINDOW}, "predicted": rounded}
            found.append({**whole, **scrubbed_of(line, row["options"], model)})
    return found


def scrubbed_of(line: Mapping[str, Any], options: Mapping[str, Any], model: ClusterModel) -> Dict[str, float]:
    """What a window scrubbed of objects that clients write, where only what was read of them was kept.

    Chunks that a write preempts are read again; the objects that were scrubbed are those that PGs counted.
    """
    if options.get("scrubbed") != CLIENTS or not line["measured"].get("scrub.objects_s"):
        return {}
    (work,) = model.scrub
    pool = model.pool(work.pool)
    own = line["measured"]["scrub.objects_s"] * work.object_bytes * pool.size / (pool.k or 1)
    return {"scrubbed_bytes_s": float(f"{own:.4g}")}


def as_said(line: Mapping[str, Any], said: Mapping[str, Any]) -> Dict[str, Any]:
    """A window with what the twin says of it today, in the place of what it said before it."""
    measured = dict(line["measured"])
    if "scrubbed_bytes_s" in said:
        measured["scrub.bytes_s"] = said["scrubbed_bytes_s"]
    return {**line, "predicted": said["predicted"], "measured": measured}


def said_of(
    windows: Sequence[Mapping[str, Any]], *said: Mapping[str, Any]
) -> Iterator[Tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each window with the last line that was said of it; none that nothing was said of."""
    by_window = {tuple(line[key] for key in WINDOW): line for line in said}
    for window in windows:
        key = tuple(window[key] for key in WINDOW)
        if key in by_window:
            yield window, by_window[key]


def again_table(today: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]) -> str:
    """Median errors of each kind of windows as predicted and today, the worst kind of today first."""
    kinds: Dict[Tuple[str, str], List[Tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for line, said in said_of(windows, *today):
        if line["failed"] is None:
            kind = (name_of(line["ahead_file"]), line["load"])
            kinds.setdefault(kind, []).append((line, as_said(line, said)))
    rows = []
    labs: Dict[str, Tuple[List[Count], List[Count]]] = {}
    for (name, load), pairs in kinds.items():
        before, now = [line for line, _ in pairs], [line for _, line in pairs]
        shown: Dict[str, str] = {}
        worst, errors_then = 0.0, errors_by_metric(before)
        for metric, found in errors_by_metric(now).items():
            middle, bound = median_of(found), WANTED[kind_of(metric)]
            change = f"{median_of(errors_then[metric]):.0%} → {middle:.0%}{'' if middle <= bound else ' (missed)'}"
            shown.setdefault(column_of(metric), change)
            worst = max(worst, middle / bound)
        then_count, count = count_of(before), count_of(now)
        labs.setdefault(name, ([], []))
        labs[name][0].append(then_count)
        labs[name][1].append(count)
        cells = [name, load, f"{len(now)}", *(shown.get(column, "") for column in COLUMNS), *count.cells()]
        rows.append((worst, f"| {' | '.join(cells)} |"))
    head = "| predictions | load | windows | rate | mean | p50 | p95 | p99 | inside the 90% | pairs told rightly |"
    ordered = [row for _, row in sorted(rows, key=lambda each: -each[0])]
    whole = total(count for _, of_today in labs.values() for count in of_today)
    by_lab = [
        "| predictions | inside the 90%, wanted 85% to 95% | pairs told rightly, wanted 95% |",
        "|" + " --- |" * 3,
    ]
    for name, counts in labs.items():
        then_count, count = (total(each) for each in counts)
        by_lab.append(
            f"| {name} | {then_count.share_held()} → {count.share_held()} | "
            f"{then_count.share_right()} → {count.share_right()} |"
        )
    said = f"The intervals hold {whole.held} of {whole.values} values."
    return "\n".join([head, "|" + " --- |" * 10, *ordered, "", *by_lab, "", said])


COLUMNS = ("rate", "mean", "p50", "p95", "p99")


def column_of(metric: str) -> str:
    return "rate" if metric in RATES else metric.removeprefix("client.").removesuffix("_ms")


class Count(NamedTuple):
    """Over all metrics: values, and how many their intervals held; pairs, and how many were told rightly."""

    held: int
    values: int
    right: int
    pairs: int

    def cells(self) -> List[str]:
        return [f"{self.held} of {self.values}", f"{self.right} of {self.pairs}" if self.pairs else ""]

    def share_held(self) -> str:
        share = round(self.held / self.values, 2)
        return f"{share:.0%}{'' if HELD[0] <= share <= HELD[1] else ' (missed)'}"

    def share_right(self) -> str:
        if not self.pairs:
            return "no pairs"
        share = round(self.right / self.pairs, 2)
        return f"{share:.0%}{'' if share >= TOLD else ' (missed)'}"


def count_of(lines: Sequence[Mapping[str, Any]]) -> Count:
    """Of the windows of one load."""
    by_metric = errors_by_metric(lines)
    told = [told_rightly(lines, metric) for metric in by_metric]
    held = [inside for found in by_metric.values() for _, inside in found]
    return Count(sum(held), len(held), sum(right for right, _ in told), sum(pairs for _, pairs in told))


HEAD = (
    "| windows of | load | windows | rate | mean | p50 | p95 | p99 | inside the 90% | pairs told rightly |",
    "|" + " --- |" * 10,
)
"""Of a table whose rows are `row_of`."""


def row_of(
    name: str, load: str, lines: Sequence[Mapping[str, Any]], wanted: Mapping[str, float], count: Optional[Count] = None
) -> str:
    """Median errors of some windows. They are of one load, or their `count` is given."""
    by_column: Dict[str, List[Tuple[float, bool]]] = {}
    bounds: Dict[str, float] = {}
    for metric, found in errors_by_metric(lines).items():
        by_column.setdefault(column_of(metric), []).extend(found)
        bounds[column_of(metric)] = wanted[kind_of(metric)]
    middles = {column: round(median_of(found), 2) for column, found in by_column.items()}
    shown = {name: f"{each:.0%}{'' if each <= bounds[name] else ' (missed)'}" for name, each in middles.items()}
    cells = [name, load, f"{len(lines)}", *(shown.get(column, "") for column in COLUMNS)]
    return f"| {' | '.join([*cells, *(count or count_of(lines)).cells()])} |"


def total(counts: Iterable[Count]) -> Count:
    return Count(*(sum(column) for column in zip(*counts)))


def median_of(errors: Iterable[Tuple[float, bool]]) -> float:
    return statistics.median(error for error, _ in errors)


def errors_by_metric(lines: Sequence[Mapping[str, Any]]) -> Dict[str, List[Tuple[float, bool]]]:
    """Of each metric that says something: clients that offer a rate get it."""
    every = dict.fromkeys(metric for line in lines for metric in line["predicted"])
    found = {metric: errors_of(lines, metric) for metric in every if metric != "client.iops"}
    return {metric: errors for metric, errors in found.items() if errors}


def name_of(ahead_file: str) -> str:
    return ahead_file.removesuffix(".json").removeprefix("twin-ahead-")


def errors_of(lines: Iterable[Mapping[str, Any]], metric: str) -> List[Tuple[float, bool]]:
    """Give (relative error, whether the interval held it) of the windows that have the metric."""
    found = []
    for line in lines:
        measured = line["measured"].get(metric, 0.0)
        if metric in line["predicted"] and measured > 0:
            value, low, high = line["predicted"][metric]
            found.append((abs(value - measured) / measured, low <= measured <= high))
    return found


def told_rightly(lines: Sequence[Mapping[str, Any]], metric: str) -> Tuple[int, int]:
    """Give (pairs told rightly, pairs) of the settings under one load that differ by more than APART."""
    right = pairs = 0
    known = [line for line in lines if metric in line["predicted"] and line["measured"].get(metric, 0.0) > 0]
    for one, other in combinations(known, 2):
        first, second = one["measured"][metric], other["measured"][metric]
        if one["settings"] != other["settings"] and max(first, second) > (1 + APART) * min(first, second):
            pairs += 1
            right += (first - second) * (one["predicted"][metric][0] - other["predicted"][metric][0]) > 0
    return right, pairs


def table(every: Sequence[Mapping[str, Any]]) -> str:
    lines = [line for line in every if line["failed"] is None]
    rows = [
        "| predictions | load | windows | metric | median error | wanted | inside the 90% | pairs told rightly |",
        "|" + " --- |" * 8,
    ]
    for name, load in dict.fromkeys((line["ahead_file"], line["load"]) for line in lines):
        own = [line for line in lines if (line["ahead_file"], line["load"]) == (name, load)]
        for metric, found in errors_by_metric(own).items():
            middle, bound = median_of(found), WANTED[kind_of(metric)]
            right, pairs = told_rightly(own, metric)
            inside = sum(held for _, held in found)
            cells = [
                name_of(name), load, f"{len(found)}", metric, f"{middle:.0%}",
                f"{bound:.0%}{'' if middle <= bound else ' (missed)'}", f"{inside} of {len(found)}",
                f"{right} of {pairs}" if pairs else "",
            ]  # fmt: skip
            rows.append(f"| {' | '.join(cells)} |")
    rows += [
        "",
        "| predictions | lab | digest (SHA-256, its first 16 digits) | windows measured after |",
        "|" + " --- |" * 4,
    ]
    of_file = ("ahead_file", "ahead", "drive", "pool")
    for name, digest, drive, pool in dict.fromkeys(tuple(line[each] for each in of_file) for line in lines):
        lab = f"{drive} {pool}".strip()
        failures = [line["failed"] for line in every if line["ahead"] == digest]
        ended = len(failures) - failures.count(None)
        count = f"{len(failures)}{f', {ended} of them ended early' if ended else ''}"
        rows.append(f"| `{name}` | {lab} | `{digest}` | {count} |")
    return "\n".join(rows)


def main() -> None:
    parser = runs_file.lab_parser(__doc__, "twin-ahead.jsonl")
    parser.add_argument("--ahead", type=Path, help="the file of the predictions; made where it is not there")
    parser.add_argument("--loads", default=",".join(WORK))
    parser.add_argument("--load-option", action="append", default=[], help="of all loads, such as pool=ec:2+1")
    parser.add_argument("--settings", type=int, default=5, help="drawn for each load")
    parser.add_argument("--settings-file", type=Path, help="settings by label, in the place of drawn ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", type=float, default=25.0)
    parser.add_argument("--settle", type=float, default=4.0)
    parser.add_argument("--processes", type=int)
    parser.add_argument("--again", action="store_true", help="of a run that is rendered, by the twin as it is now")
    arguments = parser.parse_args()
    if arguments.again and arguments.render is None:
        parser.error("--again is about the windows of --render")
    if arguments.render is None and arguments.ahead is None:
        parser.error("--ahead is missing")
    if arguments.again:
        windows, loads, file = runs_file.lines_of(arguments.render), arguments.loads.split(","), arguments.ahead
        chosen = [
            line for line in windows if line["load"] in loads and (file is None or line["ahead_file"] == file.name)
        ]
        today = again(chosen, arguments.render.parent, arguments.processes)
        print(again_table(today, windows))
        if arguments.page is not None:
            # what is not said today stays as it was said before
            whole = [line for _, line in said_of(windows, *runs_file.lines_of(AGAIN), *today)]
            runs_file.rewrite(AGAIN, whole)
            measured_page.put(again_table(whole, windows), arguments.page, "again")
        return
    runs_file.measure_and_show(arguments, measure, table)


if __name__ == "__main__":
    main()
