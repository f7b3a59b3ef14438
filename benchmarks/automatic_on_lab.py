"""The automatic mode on a lab, several times from the start: when it keeps settings, and what they do afterwards.

    ceph-tuner lab up
    python benchmarks/automatic_on_lab.py --cluster lab --runs 10 --output automatic.jsonl
    python benchmarks/automatic_on_lab.py --render automatic.jsonl

A run puts clients beside background work, looks a minute, switches the mode on with the optimiser of the mgr's own
worker, waits until settings are kept and held (`--within` minutes at most), and looks for another minute. Then all is
taken back and the audit trail is emptied. One line of the output is one run, with its trail. Run it on a machine that
does nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import runs_file
from measured_page import shown

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX, Plugin
from ceph_tuner.core.autopilot.audit_log import APPLY, KEPT, PROPOSAL, TAKEN_BACK, AuditRecord, every_trail
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo

VERSION = 6
"""Of the mode: runs of different versions are told apart."""

IN_TIME_S = 600.0
"""Within which settings that meet the objectives are to be kept."""

OBJECTIVES = ("client.p99_ms <= 60 ms", "scrub.bytes_s >= 30 MB/s")
NOISE_S, NOISE_TURNS = 20.0, 5
"""Seconds between scrubs of the noisy class, and after how many of them one of its OSDs goes."""
LOOK_S = 60.0
"""Length of the mean that `ceph tuner status` shows."""


def plugin_options(window_s: float) -> Dict[str, Any]:
    """Shorter than an operator would want: trials that last minutes."""
    return {
        "sample_interval": 2.0,
        "auto_window": window_s,
        "auto_settle": 3.0,
        "auto_miss_windows": 5,
        "auto_baseline_windows": 6,
        "auto_most_windows": 20,
        "auto_hold_windows": 3,
        "auto_quiet": 5,
        "auto_back_off": 15,
        "auto_changes_per_day": 1000,
    }


@contextmanager
def load(lab: str, scenario: str, options: Sequence[str]) -> Iterator[None]:
    """Clients beside background work, while the block lasts."""
    command = [str(Path(sys.executable).with_name("ceph-tuner")), "lab", "load", "scenario", scenario, "--name", lab]
    command += ["--seconds", "7200", *(word for option in options for word in ("--option", option))]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(120)


@contextmanager
def noise(lab: Lab, device_class: str) -> Iterator[None]:
    """Work of another device class, while the block lasts: deep scrubs, and an OSD that goes and comes back."""
    pool, osds, stop = f"rbd-{device_class}", lab.classes[device_class], threading.Event()
    written = ["rados", "-p", pool, "bench", "15", "write", "-b", "1048576", "-t", "4", "--no-cleanup"]

    def written_anew(without: int) -> None:
        lab.run(["rados", "-p", pool, "cleanup", "--prefix", "benchmark_data"])
        lab.stop_osd(without)
        try:
            lab.run(written)
        finally:
            lab.start_osd(without)

    def work() -> None:
        for turn in itertools.count():
            with suppress(TunerError):
                for osd in osds:
                    lab.run(["ceph", "osd", "deep-scrub", str(osd)])
                if turn % NOISE_TURNS == NOISE_TURNS - 1:
                    written_anew(osds[-1])
            if stop.wait(NOISE_S):
                return

    lab.run(written)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Mode:
    """The plugin of a lab, put in for one run and taken out with all that it did."""

    def __init__(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._plugin = Plugin(cluster, SystemClock())
        self._plugin.install()
        for name, value in options.items():
            self.mon("config set", who="mgr", name=OPTION_PREFIX + name, value=str(value))

    def close(self) -> None:
        with suppress(TunerError):
            self.mon("tuner auto off")
        # a run in which nothing was kept has nothing in force
        with suppress(InputError):
            self._cluster.applier().undo(everything=True)
        self._plugin.uninstall(purge=True)

    def mon(self, prefix: str, **arguments: str) -> str:
        return self._cluster.commander.mon(prefix, arguments)

    def means(self) -> Dict[str, float]:
        """Of the last minute; empty before the first window."""
        window = json.loads(self.mon("tuner status"))["window"]
        return {name: measure[0] for name, measure in window["measures"].items()} if window else {}

    def records(self) -> List[AuditRecord]:
        """Of all modes, oldest first."""
        return [each.record for each in every_trail(self._cluster.store)]

    def until_done(self, what: str, seconds: float) -> Optional[AuditRecord]:
        """First record of that kind that has an outcome; None where there is none in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # a mgr that begins anew does not answer
            with suppress(TunerError):
                done = [record for record in self.records() if record.what == what and record.refers]
                if done:
                    return done[0]
            time.sleep(1)
        return None

    def until_busy(self, seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(TunerError):
                if self.means().get("client.iops", 0.0) > 0:
                    return
            time.sleep(1)
        raise SystemExit(f"no client was seen in {seconds:.0f} s")


def run(arguments: argparse.Namespace, cluster: Cluster) -> Dict[str, Any]:
    """One run, as a line of the output."""
    options = {**plugin_options(arguments.window), "auto_canary": arguments.canary}
    with closing(Mode(cluster, options)) as mode:
        slo = slo_of({"objectives": arguments.objectives.split(";")})
        cluster.store.set("slo", json.dumps(slo))
        with ExitStack() as beside:
            if arguments.noise:
                beside.enter_context(noise(Lab.open(arguments.cluster), arguments.noise))
            beside.enter_context(load(arguments.cluster, arguments.load, arguments.load_option))
            mode.until_busy()
            time.sleep(LOOK_S)
            before = mode.means()
            began = time.time()
            mode.mon("tuner auto on")
            kept = mode.until_done(KEPT, 60 * arguments.within)
            time.sleep(LOOK_S)
            after = mode.means()
            records = mode.records()
    verdicts = Judge(parse_slo(slo), before).verdicts(after)
    return {
        "window_s": arguments.window,
        "date": time.strftime("%Y-%m-%d"),
        "machine": runs_file.machine(),
        "kept_after_s": kept.at - began if kept else None,
        "met": [verdict.met for verdict in verdicts],
        "before": before,
        "after": after,
        "trail": [record.to_dict() for record in records],
    }


def measure(arguments: argparse.Namespace) -> None:
    lab = Lab.open(arguments.cluster)
    conditions = {
        "version": VERSION,
        "ceph": lab.state.ceph_version,
        "osds": list(map(str, lab.state.options.groups)),
        "objectives": arguments.objectives.split(";"),
        "load": [arguments.load, *arguments.load_option],
        "noise": arguments.noise,
        "canary": arguments.canary,
    }
    alike = [line for line in runs_file.lines_of(arguments.output) if subject(line) == subject(conditions)]
    done = sum(line.get("version", 1) == VERSION for line in alike)
    with closing(open_cluster(arguments.cluster)) as cluster:
        for number in range(done, arguments.runs):
            if runs_file.over(arguments):
                return
            line = run(arguments, cluster)
            runs_file.append(arguments.output, {"run": number + 1, **conditions, **line})


def subject(line: Mapping[str, Any]) -> Tuple[str, ...]:
    """What runs have in common that are held side by side."""
    of_class = f"noise on {line['noise']}" if line.get("noise") else ""
    osds, canary = ",".join(line["osds"]), f"canary {line['canary']}"
    return tuple(filter(None, (" ".join(line["load"]), osds, canary, of_class, "; ".join(line["objectives"]))))


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A part for each kind of run, the kind with most runs first."""
    kinds: Dict[Tuple[str, ...], List[Mapping[str, Any]]] = {}
    for line in lines:
        kinds.setdefault(subject(line), []).append(line)
    parts = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    return "\n\n".join(f"### {', '.join(about)}\n\n{_part(own)}" for about, own in parts)


def _part(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row for each run: what was kept when, and the objectives' metrics before and after."""
    names = list(dict.fromkeys(o.metric for line in lines for o in parse_slo(slo_of(line)).objectives))
    heads = ["version", "run", "date", "kept after", "proposals", "taken back", *names, "met"]
    rows = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    versions: Dict[int, List[Mapping[str, Any]]] = {}
    for line in sorted(lines, key=lambda line: (line.get("version", 1), line["run"])):
        versions.setdefault(line.get("version", 1), []).append(line)
        trail = [AuditRecord.from_dict(entry) for entry in line["trail"]]
        counts = [str(sum(r.what == kind and not r.refers for r in trail)) for kind in (PROPOSAL, TAKEN_BACK)]
        after_s = kept_after_s(line)
        cells = [str(line.get("version", 1)), str(line["run"]), line["date"]]
        cells += ["never" if after_s is None else f"{after_s / 60:.1f} min", *counts]
        for name in names:
            means = [line[side].get(name) for side in ("before", "after")]
            cells.append(
                " to ".join("unseen" if value is None else shown(name.partition("{")[0], value) for value in means)
            )
        rows.append(f"| {' | '.join([*cells, 'yes' if all(line['met']) else '**no**'])} |")
    return "\n".join([*rows, "", *(_kept(number, own) for number, own in versions.items())])


def _kept(version: int, lines: Sequence[Mapping[str, Any]]) -> str:
    after = [kept_after_s(line) for line in lines if all(line["met"])]
    kept = [seconds for seconds in after if seconds is not None]
    in_time = sum(seconds <= IN_TIME_S for seconds in kept)
    return (
        f"- Version {version}: settings that meet the objectives were kept in {len(kept)} of {len(lines)} runs, "
        f"within {IN_TIME_S / 60:g} min in {in_time}."
    )


def kept_after_s(line: Mapping[str, Any]) -> Optional[float]:
    """Seconds from switching the mode on; from the trail where the benchmark had ended its wait before."""
    if line["kept_after_s"] is not None:
        return float(line["kept_after_s"])
    trail = [AuditRecord.from_dict(entry) for entry in line["trail"]]
    kept = [record.at for record in trail if record.what == KEPT and not record.refers]
    return kept[0] - trail[0].at if kept else None


def stages(lines: Sequence[Mapping[str, Any]]) -> str:
    """What was said of each stage, from the trails."""
    kinds = (PROPOSAL, APPLY, TAKEN_BACK, KEPT)
    return "\n".join(
        f"- run {line['run']}, {entry['what']}: {entry['why']}"
        for line in lines
        for entry in line["trail"]
        if entry["what"] in kinds and not entry["refers"]
    )


def slo_of(line: Mapping[str, Any]) -> Dict[str, Any]:
    return {"name": "benchmark", "objectives": line["objectives"]}


def main() -> None:
    # a shell starts what runs in its background with Ctrl-C ignored, and the load that is ended by it inherits that
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = runs_file.lab_parser(__doc__, "automatic-on-lab.jsonl")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--objectives", default=";".join(OBJECTIVES), help="separated by semicolons")
    parser.add_argument("--load", default="client-scrub")
    parser.add_argument("--load-option", action="append", default=["rate=250"], metavar="NAME=VALUE")
    parser.add_argument("--noise", default="", help="a device class that is scrubbed and recovers meanwhile")
    parser.add_argument("--canary", default="auto")
    parser.add_argument("--window", type=float, default=8.0)
    parser.add_argument("--within", type=float, default=10.0, help="minutes that a run waits for settings to be kept")
    arguments = parser.parse_args()
    runs_file.measure_and_show(arguments, measure, table)
    print(f"\n{stages(runs_file.lines_of(arguments.render or arguments.output))}")


if __name__ == "__main__":
    main()
