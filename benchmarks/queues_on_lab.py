r"""Holds what `ceph-tuner compare-queues` says of a lab against windows under mClock and under wpq on its real OSDs.

    python benchmarks/queues_on_lab.py --cluster queues --ahead benchmarks/results/queues-on-lab.json
    python benchmarks/queues_on_lab.py --cluster queues --ahead benchmarks/results/queues-on-lab.json --trial h1
    python benchmarks/queues_on_lab.py --render benchmarks/results/queues-on-lab.jsonl \
        --page benchmarks/results/queues-on-lab.md

For each load and pool the lab is described by `ceph-tuner twin describe` while that load runs, and compared by
`ceph-tuner compare-queues`. Both answers, and what the twin expects of the windows, go into the file `--ahead` before
the first window is measured; each line names that file's digest. Then windows are measured under mClock (what is in
force, and the best settings of the command), all OSDs go to wpq by the steps that the command gave, the same windows
follow, and its way back. A run that is interrupted goes on where it was. Prints Markdown.

`--trial HOST` follows the plan of a trial on that host to the letter, under clients that read and write, with shorter
stretches. An order is measured where no window of one queue lies among those of the other, and their means are
SEPARATE apart.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import runs_file
from measured_page import shown
from repeatability import drives_of, rate_of
from twin_ahead import digest_of, errors_of, predicted

from ceph_lab import scenarios
from ceph_lab.cluster import Lab
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.recipes import options_for_window
from ceph_lab.twin_model import lab_model
from ceph_tuner.core.errors import CommandFailed, LabFailed
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import parse_version
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.osd_documents import osd_queues_in
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.files import cluster_file, cluster_text, slo_file
from ceph_tuner.recommend import IN_FORCE as NO_PROFILE
from ceph_tuner.recommend import Question, changed
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.queue_stretch import LEAST_MINUTES
from ceph_tuner.recommend.queue_trial import MEASURE, WAIT
from ceph_tuner.recommend.queues import BETTER_MCLOCK, BETTER_WPQ, UNDECIDED
from ceph_tuner.report.words import percent_change
from ceph_tuner.tune.measurement import Timing
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import MCLOCK, WPQ
from ceph_tuner_cli.lab_load import scenario_options

OBJECTIVES: Mapping[str, Sequence[str]] = {
    "client-recovery": ("client.p95_ms <= 180 ms", "recovery.bytes_s >= 2.5 MB/s"),
    "client-scrub": ("client.p99_ms <= 300 ms", "scrub.bytes_s >= 5 MB/s"),
}
"""Those of benchmarks/tuning_on_lab.py, on drives that are six times slower."""
ALSO = ("client.mean_ms", "client.p95_ms", "client.p99_ms")
"""Metrics that the command shall name an order in as well: objectives that are soft, and that everything keeps."""
LOOSE_MS = 60_000

IN_FORCE, BEST, WITH_WPQ, WPQ_KNOBS, BACK = "in force", "best", "wpq", "wpq, best's knobs", "back in force"
STAGES: Sequence[Tuple[str, Sequence[str]]] = (
    (MCLOCK, (IN_FORCE, BEST)),
    (WPQ, (WITH_WPQ, WPQ_KNOBS)),
    (MCLOCK, (BACK,)),
)
"""The queue, and what is measured under it, in this order."""
BESIDE = {IN_FORCE: WITH_WPQ, BEST: WPQ_KNOBS}
"""What is measured under mClock, and what the command holds it against."""

DESCRIBED, TOLD = "described", "told"
"""The twin as `twin describe` tells it of the lab, and as the lab itself does (`ceph_lab.twin_model`)."""

SEPARATE = 0.1
"""Of two means, the difference from which on they are apart: what a trial on one host is planned for as well."""

WAIT_S = 180.0
PROGRAM = Path(sys.executable).with_name("ceph-tuner")

_ANSWER = re.compile(r"`([^`]+)` says (that all PGs are active\+clean|\w+)")
_MINUTES = re.compile(r"(\d+) minutes")

Line = Mapping[str, Any]


def slo_text(load: str) -> str:
    metrics = [text.split()[0] for text in OBJECTIVES[load]]
    soft = [f"{metric} <= {LOOSE_MS} ms" for metric in ALSO if metric not in metrics]
    objectives = [*OBJECTIVES[load], *({"objective": text, "hard": False} for text in soft)]
    # JSON is YAML
    return json.dumps({"schema": 1, "name": load, "objectives": objectives})


def ceph_tuner(*arguments: str, folder: Optional[Path] = None) -> str:
    """Run the program as an operator does. Raises LabFailed."""
    done = subprocess.run([str(PROGRAM), *arguments], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise LabFailed(f"ceph-tuner {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def described(lab: Lab, load: str, options: Mapping[str, Any], arguments: argparse.Namespace) -> str:
    """Describe the lab while that load runs."""
    with tempfile.TemporaryDirectory() as folder:
        slo, description = Path(folder) / "slo.yaml", Path(folder) / "described.yaml"
        slo.write_text(slo_text(load), encoding="utf-8")
        with scenarios.scenario(load, lab, **options) as work, ThreadPoolExecutor(1) as pool:
            work.prepare()
            window = pool.submit(work.run, arguments.window, settle=arguments.settle)
            time.sleep(2 * arguments.settle)
            ceph_tuner("twin", "describe", "--cluster", lab.name, "--slo", str(slo), "--output", str(description))
            window.result()
        return known_better(description.read_text(encoding="utf-8"), str(options["pool"]))


def known_better(description: str, pool: str) -> str:
    """Of a lab only the PGs of the load's pool are due: `twin describe` takes all for scrubbed where one is."""
    name = f"load-scrub-{PoolLayout.parse('pool', pool).name}"
    read = cluster_file.from_text(description)
    scrub = tuple(work for work in read.model.scrub if work.pool.startswith(name))
    # what is a guess stands in comments
    notes = [line for line in description.splitlines() if line.startswith("#")]
    return "\n".join([*notes, cluster_text.to_text(replace(read, model=replace(read.model, scrub=scrub)))])


def compared(lab: Lab, row: Line, trials: int) -> Dict[str, Any]:
    """The document of the command."""
    with tempfile.TemporaryDirectory() as folder:
        slo, description = Path(folder) / "slo.yaml", Path(folder) / "described.yaml"
        slo.write_text(row["slo"], encoding="utf-8")
        description.write_text(row["description"], encoding="utf-8")
        about = ("--slo", str(slo), "--cluster", lab.name, "--trials", str(trials), "--format", "json")
        document = json.loads(ceph_tuner("compare-queues", str(description), *about))
        return dict(document["comparison"])


def choices_of(row: Line) -> Dict[str, Dict[str, Any]]:
    """Label -> what the command says of that choice. What is the same as another choice is left out."""
    comparison = row["comparison"]
    by_label = {entry["label"]: entry for entry in comparison["mclock"]}
    best, wpq = comparison["mclock"][0], comparison["wpq"]
    in_force = by_label[row["in_force"]]
    choices = {IN_FORCE: in_force, WITH_WPQ: wpq}
    if best["label"] != in_force["label"]:
        choices[BEST] = best
        if best["wpq"]["label"] != wpq["label"]:
            choices[WPQ_KNOBS] = best["wpq"]
    return choices


def expected_of(row: Line, lab: Lab, timing: Timing, processes: Optional[int]) -> Dict[str, Any]:
    """What each twin says of the windows: label -> twin -> metric -> median and the ends of its interval."""
    question = question_in(row)
    model, release = question.model, question.model.release
    version = parse_version(lab.state.ceph_version)
    models = {
        DESCRIBED: model,
        TOLD: lab_model(lab.state.options, model.osd.hardware, row["load"], release, version, row["options"]),
    }
    found: Dict[str, Any] = {}
    with Runner(processes) as runner:
        for label, choice in choices_of(row).items():
            queue = WPQ if label in BESIDE.values() else MCLOCK
            whole = completed(choice["settings"], release)
            found[label] = {
                name: predicted(replace(model, scheduler=queue), whole, question.before, timing, runner)
                for name, model in models.items()
            }
    return found


def question_in(row: Line) -> Question:
    return question_of(cluster_file.from_text(row["description"]), slo_file.from_text(row["slo"]).slo)


def writes_of(row: Line) -> Dict[str, Dict[str, str]]:
    """Label -> what is to be set for it, in the words of `ceph-tuner apply --set`."""
    question = question_in(row)
    release = question.model.release
    own = {
        label: to_release_units(changed(choice["settings"], question), release, question.model.osd.hardware)
        for label, choice in choices_of(row).items()
    }
    under_wpq = (PROFILE, *MCLOCK_NINE)
    return {
        label: {
            name: text
            for name, text in format_settings(settings, release).items()
            if not (label in BESIDE.values() and name in under_wpq)
        }
        for label, settings in own.items()
    }


def describe_loads(lab: Lab, arguments: argparse.Namespace) -> None:
    """Begin the file of the predictions with what the twin is told."""
    timing = Timing(arguments.settle, arguments.window)
    rows = []
    for pool in arguments.pools.split(","):
        for load in arguments.loads.split(","):
            chosen = {"rate": rate_of(lab), **scenario_options(load, [f"pool={pool}"])}
            options = options_for_window(load, chosen, timing.settle + timing.window)
            row = {"load": load, "pool": pool, "options": options, "slo": slo_text(load)}
            rows.append({**row, "description": described(lab, load, options, arguments)})
            print(f"described {load} {pool}", file=sys.stderr, flush=True)
    document = {
        "lab": lab.state.options.to_dict(),
        "ceph": lab.state.ceph_version,
        "trials": arguments.trials,
        "window_s": timing.window,
        "settle_s": timing.settle,
        "rows": rows,
    }
    put(document, arguments.ahead)


def predict(lab: Lab, arguments: argparse.Namespace) -> None:
    """Complete the file with what the command says, and what the twin expects of the windows."""
    document = json.loads(arguments.ahead.read_text(encoding="utf-8"))
    timing = Timing(document["settle_s"], document["window_s"])
    for row in document["rows"]:
        if "writes" not in row:
            row["comparison"] = compared(lab, row, document["trials"])
            row["in_force"] = question_in(row).profile_in_force or NO_PROFILE
            row["predicted"] = expected_of(row, lab, timing, arguments.processes)
            row["writes"] = writes_of(row)
            document["at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            put(document, arguments.ahead)
            print(f"predicted {row['load']} {row['pool']}", file=sys.stderr, flush=True)


def put(document: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


class Operator:
    """Follows a plan on a lab as its text says, and nothing that it does not say."""

    def __init__(self, lab: Lab, folder: Path, shrink: float = 1.0) -> None:
        """Files that commands write lie in `folder`. Minutes of waiting and measuring shrink by that factor."""
        self._lab, self._folder, self._shrink = lab, folder, shrink
        self.measured: List[str] = []
        """What each command that measures printed."""

    def rebuild(self, steps: Sequence[Mapping[str, str]]) -> None:
        """Steps of `comparison.steps`: each part of the cluster by itself. In a lab each OSD is a host."""
        for step in steps:
            for osd in map(str, self._lab.osds) if step["for_each"] else [""]:
                command = step["command"].replace("ceph-osd.target", f"ceph-osd@{osd}")
                self.run(command.replace("ID", osd) if osd else command)
                self.wait(step["wait_until"].replace("ID", osd))

    def trial(self, steps: Sequence[Mapping[str, str]]) -> None:
        """Steps of `trial.steps`."""
        for step in steps:
            if step["kind"] == WAIT:
                self.wait(step["text"])
            elif step["kind"] == MEASURE:
                minutes = max(LEAST_MINUTES, round(self._shrink * _minutes_of(step["text"])))
                self.measured.append(self.run(f"{step['text'].partition('  #')[0]} --minutes {minutes} --format json"))
            else:
                self.run(step["text"])

    def run(self, command: str) -> str:
        """Run a command where it belongs. Raises LabFailed for one that nobody would know how to run."""
        print(f"$ {command}", file=sys.stderr, flush=True)
        words = shlex.split(command, comments=True)
        unit = words[-1].partition("@")[2]
        if words[0] == "ceph-tuner":
            return ceph_tuner(*words[1:], folder=self._folder)
        if words[0] == "ceph":
            return self._lab.run(words)
        if words[:2] == ["systemctl", "restart"] and unit.isdigit():
            # a lab has no systemd
            self._lab.stop_osd(int(unit))
            self._lab.start_osd(int(unit))
            return ""
        raise LabFailed(f"a plan has a command that this lab cannot run: {command}")

    def wait(self, text: str) -> None:
        """Wait for what a step says. Raises LabFailed where that does not come, or is nothing that can be looked at."""
        wanted = _ANSWER.findall(text)
        minutes = _MINUTES.match(text)
        if minutes is not None:
            time.sleep(60.0 * self._shrink * int(minutes[1]))
        elif text and not wanted:
            raise LabFailed(f"a plan has a step that nobody can follow: {text}")
        deadline = time.monotonic() + WAIT_S
        for command, answer in wanted:
            while not self._says(command, answer):
                if time.monotonic() > deadline:
                    raise LabFailed(f"`{command}` does not say {answer} in {WAIT_S:.0f} s")
                time.sleep(1.0)

    def _says(self, command: str, answer: str) -> bool:
        try:
            text = self._lab.run(shlex.split(command))
        except CommandFailed:
            return False
        return says(text, answer)


def _minutes_of(command: str) -> int:
    words = shlex.split(command, comments=True)
    return int(words[words.index("--minutes") + 1])


def says(text: str, answer: str) -> bool:
    """Whether a command's output is what a plan waits for."""
    if answer == "yes":
        # `ceph osd ok-to-stop` fails where it says no
        return True
    if answer.startswith("that all PGs"):
        # "65 pgs: 1 active+clean+scrubbing+deep, 64 active+clean; …"
        total, _, states = text.partition(";")[0].partition(" pgs: ")
        counts = [state.split() for state in states.split(", ")]
        return sum(int(count) for count, name in counts if name.startswith("active+clean")) == int(total)
    return bool(answer in json.loads(text).values())


def queues_of(lab: Lab) -> Dict[str, str]:
    """The queue that each OSD runs: where mClock does, it counts its items."""
    return {
        f"osd.{osd}": MCLOCK if osd_queues_in(lab.run(["ceph", "tell", f"osd.{osd}", "perf", "dump"])) else WPQ
        for osd in lab.osds
    }


def dump_of(lab: Lab) -> str:
    return lab.run(["ceph", "config", "dump", "--format", "json"])


def switch(lab: Lab, queue: str, ahead: Line, arguments: argparse.Namespace, digest: str) -> None:
    """Bring all OSDs to a queue by the command's steps, or back by its undo, and look at what is there then."""
    comparison = ahead["rows"][0]["comparison"]
    before, began = dump_of(lab), time.monotonic()
    Operator(lab, Path.cwd()).rebuild(comparison["steps" if queue == WPQ else "undo"])
    line = {
        "kind": "switch",
        "to": queue,
        "seconds": round(time.monotonic() - began, 1),
        "queues": queues_of(lab),
        "dump_before": before,
        "dump_after": dump_of(lab),
        **about(lab, digest),
    }
    runs_file.append(arguments.output, line)
    if set(line["queues"].values()) != {queue}:
        raise LabFailed(f"OSDs do not run {queue}: {line['queues']}")


def about(lab: Lab, digest: str) -> Dict[str, Any]:
    """What each line says of where it comes from; of a trial nothing is predicted."""
    return {
        "drive": drives_of(lab),
        "ahead": digest,
        "ceph": lab.state.ceph_version,
        "machine": runs_file.machine(),
        "date": time.strftime("%Y-%m-%d"),
    }


@contextmanager
def in_force(lab: Lab, settings: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile these are set, by the program."""
    sets = [word for name, text in settings.items() for word in ("--set", f"{name}={text}")]
    if not sets:
        yield
        return
    ceph_tuner("apply", "--cluster", lab.name, *sets, "--yes")
    try:
        yield
    finally:
        ceph_tuner("rollback", "--cluster", lab.name)


def missing_of(row: Line, labels: Sequence[str], windows: int, lines: Sequence[Line]) -> List[Tuple[str, int]]:
    """What is still to be measured of a load under these labels, in turns; back under the former queue it is one."""
    done = [(line["load"], line["pool"], line["label"], line["window"]) for line in windows_of(lines)]
    own = [label for label in labels if label == BACK or label in choices_of(row)]
    return [
        (label, number)
        for number in range(1, windows + 1)
        for label in own
        if (row["load"], row["pool"], label, number) not in done and not (label == BACK and number > 1)
    ]


def measure_windows(
    lab: Lab, row: Line, missing: Sequence[Tuple[str, int]], ahead: Line, arguments: argparse.Namespace, digest: str
) -> None:
    with scenarios.scenario(row["load"], lab, **row["options"]) as work:
        for label, number in missing:
            if runs_file.over(arguments):
                return
            work.prepare()
            processors = runs_file.Processors()
            try:
                # after the preparation: what there is to recover must not be gone before it is measured
                with in_force(lab, row["writes"].get(label, {})):
                    measures = work.run(ahead["window_s"], settle=ahead["settle_s"])
            except LabFailed as failed:
                print(f"{row['load']} {row['pool']} {label}: {failed}", file=sys.stderr)
                continue
            line = {
                "kind": "window",
                **{key: row[key] for key in ("load", "pool")},
                "label": label,
                "window": number,
                "predicted": row["predicted"].get(label, {}),
                "orders": choices_of(row).get(label, {}).get("orders", []),
                "measured": {name: measure.mean for name, measure in measures.items()},
                "remarks": list(work.remarks()),
                "processors_percent": processors.percent(),
                **about(lab, digest),
            }
            runs_file.append(arguments.output, line)
            kept = {name: round(line["measured"][name], 2) for name in metrics_of(row) if name in line["measured"]}
            print(row["load"], row["pool"], label, number, kept, line["processors_percent"], flush=True)


def measure(arguments: argparse.Namespace) -> None:
    lab = Lab.open(arguments.cluster)
    if arguments.trial:
        measure_trial(lab, arguments)
        return
    if not arguments.ahead.exists():
        describe_loads(lab, arguments)
    if arguments.describe:
        return
    predict(lab, arguments)
    digest = digest_of(arguments.ahead)
    print(f"predictions {arguments.ahead}: {digest}", file=sys.stderr, flush=True)
    ahead = json.loads(arguments.ahead.read_text(encoding="utf-8"))
    lines = [line for line in runs_file.lines_of(arguments.output) if line["ahead"] == digest]
    try:
        for queue, labels in STAGES:
            for row in ahead["rows"]:
                missing = missing_of(row, labels, arguments.windows, lines)
                if missing and set(queues_of(lab).values()) != {queue}:
                    switch(lab, queue, ahead, arguments, digest)
                if missing:
                    measure_windows(lab, row, missing, ahead, arguments, digest)
    finally:
        if set(queues_of(lab).values()) != {MCLOCK}:
            switch(lab, MCLOCK, ahead, arguments, digest)


class Watch:
    """Clients while a trial goes on: they are looked at once a second, and how long none was answered is kept."""

    def __init__(self, work: scenarios.Scenario) -> None:
        self._work, self._over = work, threading.Event()
        self.longest_s = 0.0
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._work.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._work.stop()

    def _look(self) -> None:
        answered, since = -1.0, time.monotonic()
        while not self._over.wait(1.0):
            self._work.observe()
            now = self._work.progress()["client"].done_objects
            if now != answered:
                answered, since = now, time.monotonic()
            self.longest_s = max(self.longest_s, time.monotonic() - since)


def measure_trial(lab: Lab, arguments: argparse.Namespace) -> None:
    """Follow the plan of a trial on one host, there and back, while clients read and write and PGs are scrubbed."""
    trial = json.loads(
        ceph_tuner("compare-queues", "--cluster", lab.name, "--host", arguments.trial, "--format", "json")
    )["trial"]
    before, began = dump_of(lab), time.monotonic()
    options: Dict[str, Any] = {"rate": rate_of(lab), "read_share": 0.5}
    with scenarios.scenario("client-scrub", lab, **options) as work:
        work.prepare()
        processors = runs_file.Processors()
        with tempfile.TemporaryDirectory() as folder, Watch(work) as watch:
            operator = Operator(lab, Path(folder), arguments.shrink)
            operator.trial(trial["steps"])
            operator.trial(trial["undo"])
            # a load may fail to stop, and what was measured is there
            print(operator.measured[-1], flush=True)
        line = {
            "kind": "trial",
            "host": trial["host"],
            "osds": trial["osds"],
            "controls": trial["controls"],
            "steps": [step["text"] for step in (*trial["steps"], *trial["undo"])],
            "shrink": arguments.shrink,
            "seconds": round(time.monotonic() - began, 1),
            "stretches": json.loads(operator.measured[-1])["stretches"],
            "clients_waited_s": round(watch.longest_s, 1),
            "queues": queues_of(lab),
            "dump_before": before,
            "dump_after": dump_of(lab),
            "remarks": list(work.remarks()),
            "processors_percent": processors.percent(),
            **about(lab, ""),
        }
    runs_file.append(arguments.output, line)


def windows_of(lines: Sequence[Line]) -> List[Line]:
    return [line for line in lines if line["kind"] == "window"]


def metrics_of(row: Line) -> Tuple[str, ...]:
    """What a load's tables are about: clients' latencies, and the rate of the work beside them."""
    return (*ALSO, *(text.split()[0] for text in OBJECTIVES[row["load"]] if not text.startswith("client.")))


def values_of(lines: Sequence[Line], load: str, pool: str, label: str, metric: str) -> List[float]:
    own = [line for line in lines if (line["load"], line["pool"], line["label"]) == (load, pool, label)]
    return [line["measured"][metric] for line in own if metric in line["measured"]]


def order_of(metric: str, mclock: Sequence[float], wpq: Sequence[float]) -> str:
    """The queue that does better in these windows; UNDECIDED where they lie among each other, or hardly differ."""
    ratio = statistics.fmean(wpq) / statistics.fmean(mclock)
    apart = min(wpq) > max(mclock) or max(wpq) < min(mclock)
    if not apart or 1 / (1 + SEPARATE) < ratio < 1 + SEPARATE:
        return UNDECIDED
    return BETTER_WPQ if (ratio < 1) == METRICS[metric].lower_is_better else BETTER_MCLOCK


def told_rightly(predicted_order: str, measured_order: str) -> str:
    """What an order was worth: named and measured so, or neither; or which of the two it was."""
    if predicted_order == measured_order:
        return "yes"
    if measured_order == UNDECIDED:
        return "no, alike"
    return "no, not foreseen" if predicted_order == UNDECIDED else "no"


def cases_of(lines: Sequence[Line]) -> List[Tuple[str, str]]:
    return list(dict.fromkeys((line["load"], line["pool"]) for line in windows_of(lines)))


def orders(lines: Sequence[Line]) -> List[Dict[str, Any]]:
    """Each order that the command named or left open, beside the measured one."""
    windows, found = windows_of(lines), []
    for load, pool in cases_of(lines):
        for mclock, wpq in BESIDE.items():
            own = {line["label"]: line["orders"] for line in windows if (line["load"], line["pool"]) == (load, pool)}
            # wpq with the knobs of the best is wpq as it is, where the best has no other knobs
            beside = wpq if wpq in own else WITH_WPQ
            for order in own.get(mclock, []):
                metric = order["metric"]
                one, other = (values_of(windows, load, pool, label, metric) for label in (mclock, beside))
                if one and other:
                    found.append({
                        "load": load, "pool": pool, "beside": mclock, "order": order,
                        "ratio": statistics.fmean(other) / statistics.fmean(one),
                        "better": order_of(metric, one, other),
                    })  # fmt: skip
    return found


def cell(metric: str, value: float) -> str:
    """As `shown`, and a second in milliseconds without an exponent."""
    return shown(metric, value) if value < 1000 or metric.endswith("_s") else f"{round(value, -1):.0f}"


def order_table(lines: Sequence[Line]) -> List[str]:
    rows = [
        "| load | pool | wpq beside | metric | predicted (90%) | better so | measured | better so | as foreseen |",
        "|" + " --- |" * 9,
    ]
    found = orders(lines)
    for each in found:
        order = each["order"]
        said = "" if order["ratio"] is None else percent_change(order["ratio"])
        if order["interval"] is not None:
            said += f" ({' to '.join(map(percent_change, order['interval']))})"
        cells = [
            each["load"], each["pool"], each["beside"], order["metric"], said, order["better"],
            percent_change(each["ratio"]), each["better"], told_rightly(order["better"], each["better"]),
        ]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    verdicts = [told_rightly(each["order"]["better"], each["better"]) for each in found]
    named = [each for each in found if each["order"]["better"] in (BETTER_WPQ, BETTER_MCLOCK)]
    right = sum(each["order"]["better"] == each["better"] for each in named)
    turned = sum(verdict == "no" for verdict in verdicts)
    return [
        *rows,
        "",
        f"Told as measured: {verdicts.count('yes')} of {len(verdicts)} orders. "
        f"Of {len(named)} that name a queue {right} were measured so, {turned} the other way round, "
        f"and {verdicts.count('no, alike')} alike. "
        f"{verdicts.count('no, not foreseen')} differences were not foreseen.",
    ]


def value_table(lines: Sequence[Line]) -> List[str]:
    """What was expected of each choice, and what each of its windows measured."""
    windows = windows_of(lines)
    rows = [
        "| load | pool | choice | metric | twin, as described (90%) | twin, as the lab tells | measured |",
        "|" + " --- |" * 7,
    ]
    for load, pool in cases_of(lines):
        own = [line for line in windows if (line["load"], line["pool"]) == (load, pool)]
        for label in dict.fromkeys(line["label"] for line in own):
            said = next(line["predicted"] for line in own if line["label"] == label)
            for metric in metrics_of({"load": load}):
                values = values_of(own, load, pool, label, metric)
                if not values:
                    continue
                cells = [load, pool, label, metric, "", ""]
                if said:
                    middle, low, high = (cell(metric, value) for value in said[DESCRIBED][metric])
                    cells[-2:] = f"{middle} ({low} to {high})", cell(metric, said[TOLD][metric][0])
                cells.append(", ".join(cell(metric, value) for value in values))
                rows.append(f"| {' | '.join(cells)} |")
    return rows


def error_table(lines: Sequence[Line]) -> List[str]:
    """Median errors of both twins under each queue."""
    rows = ["| twin | queue | metric | windows | median error | inside the 90% |", "|" + " --- |" * 6]
    said = [line for line in windows_of(lines) if line["predicted"]]
    for twin in (DESCRIBED, TOLD):
        for queue in (MCLOCK, WPQ):
            own = [
                {**line, "predicted": line["predicted"][twin]}
                for line in said
                if (line["label"] in BESIDE.values()) == (queue == WPQ)
            ]
            for metric in dict.fromkeys(metric for line in own for metric in metrics_of(line)):
                found = errors_of([line for line in own if metric in metrics_of(line)], metric)
                if not found:
                    continue
                inside = sum(held for _, held in found)
                middle = statistics.median(error for error, _ in found)
                rows.append(f"| {twin} | {queue} | {metric} | {len(found)} | {middle:.0%} | {inside} of {len(found)} |")
    return rows


def same_dumps(lines: Sequence[Line]) -> bool:
    """Whether the database was to the byte what it was, after the last way back."""
    first, last = lines[0], lines[-1]
    return bool(first["dump_before"] == last["dump_after"])


def switch_table(lines: Sequence[Line]) -> List[str]:
    switches = [line for line in lines if line["kind"] == "switch"]
    rows = ["| way | seconds | each OSD runs then |", "| --- | --- | --- |"]
    for line in switches:
        running = sorted(set(line["queues"].values()))
        rows.append(f"| to {line['to']} | {line['seconds']:.0f} | {' and '.join(running)} |")
    if switches and switches[-1]["to"] == MCLOCK:
        same = "is to the byte" if same_dumps(switches) else "is **not**"
        rows += ["", f"After the way back `ceph config dump` {same} what it was before the first step."]
    return rows


def trial_table(lines: Sequence[Line]) -> List[str]:
    rows: List[str] = []
    for line in (line for line in lines if line["kind"] == "trial"):
        rows += [
            "",
            f"Trial on {line['host']}, {line['date']}:",
            "",
            "| stretch | minutes | the host's queue | metric | host | controls | change beside them (95%) |",
            "|" + " --- |" * 7,
        ]
        for number, stretch in enumerate(line["stretches"], 1):
            for row in stretch["metrics"]:
                cells = [f"{number}", f"{stretch['minutes']}", stretch["queue"], row["metric"]]
                cells += [f"{row[side]:.3g}" for side in ("host", "controls")]
                change = row["change"] and [percent_change(part) for part in row["change"]]
                cells.append(f"{change[0]} ({change[1]} to {change[2]})" if change else "")
                rows.append(f"| {' | '.join(cells)} |")
        same = "is to the byte" if same_dumps([line]) else "is **not**"
        running = sorted(set(line["queues"].values()))
        rows += [
            "",
            f"At no time was no client answered for more than {math.ceil(line['clients_waited_s']) + 1} s. Afterwards "
            f"`ceph config dump` {same} what it was, and each OSD runs {' and '.join(running)}.",
        ]
    return rows


def table(lines: Sequence[Line]) -> str:
    parts = [order_table(lines), value_table(lines), error_table(lines), switch_table(lines)]
    text = "\n\n".join("\n".join(part) for part in parts)
    return "\n".join([text, *trial_table(lines)])


def main() -> None:
    parser = runs_file.lab_parser(__doc__, "queues-on-lab.jsonl")
    parser.add_argument("--ahead", type=Path, default=Path("benchmarks/results/queues-on-lab.json"))
    parser.add_argument("--loads", default="client-scrub,client-recovery")
    parser.add_argument("--pools", default="replicated:3,ec:2+1")
    parser.add_argument("--trials", type=int, default=24, help="mClock settings that the command tries on the twin")
    parser.add_argument("--describe", action="store_true", help="only describe: predictions need no lab to be quiet")
    parser.add_argument("--windows", type=int, default=2, help="of each choice; 0: only predict")
    parser.add_argument("--window", type=float, default=25.0)
    parser.add_argument("--settle", type=float, default=4.0)
    parser.add_argument("--processes", type=int)
    parser.add_argument(
        "--trial", metavar="HOST", help="follow the plan of a trial on this host, in the place of windows"
    )
    parser.add_argument("--shrink", type=float, default=1 / 16, help="of that plan, how long a minute is")
    runs_file.measure_and_show(parser.parse_args(), measure, table)


if __name__ == "__main__":
    main()
