"""Measures settings drawn at random on a lab, so that the twin can be fitted to some and predict the others.

    python benchmarks/twin_windows.py --cluster lab --output windows.json

Three settings to fit and twelve to predict (the fourth to fit is the built-in profile in force) in four load mixes:
clients with recovery, with deep scrub, with snaptrim, and with all three; and clients alone. Every window is prepared,
written, settled, measured and taken back by the code that `ceph-tuner tune` uses. Beside the window it keeps what the
devices did meanwhile (`/sys/block/loopN/stat`) and what the OSDs count. The file is written after every window, so an
interrupted run goes on where it was: `--output` of an existing file measures what is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

import numpy as np
import runs_file
from locked_lab import locked_lab

from ceph_lab.cluster import Lab
from ceph_lab.devices import attached
from ceph_lab.loads.session import LabSession
from ceph_lab.recipes import options_for_window
from ceph_lab.scenarios import Scenario, scenario
from ceph_tuner.cluster import Cluster
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import LabFailed
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import Run
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.search.space import space_for
from ceph_tuner.tune.interrupts import Interrupts
from ceph_tuner.tune.measurement import Timing
from ceph_tuner_cli.tune_page import TuneProgress

MIXES = ("client-recovery", "client-scrub", "client-snaptrim", "mixed")
MORE_WORK = {"client-snaptrim": {"clones": 4800}, "mixed": {"clones": 4800}}
SHORT = Timing(settle=2.0, window=12.0)
"""Trimming has usually done the scenario's own 2 424 clones after half a window, and 4 800 sometimes after 8 s."""

COUNTERS = (
    "op_w",
    "op_w_latency",
    "op_before_dequeue_op_lat",
    "op_w_process_latency",
    "subop_w",
    "subop_w_latency",
    "recovery_ops",
    "recovery_bytes",
)
OPTIONS = (
    "osd_mclock_max_capacity_iops_ssd",
    "osd_mclock_max_sequential_bandwidth_ssd",
    "osd_op_num_shards",
    "osd_op_num_shards_ssd",
    "osd_op_num_threads_per_shard",
    "osd_op_num_threads_per_shard_ssd",
    "bluestore_throttle_bytes",
    "bluestore_throttle_deferred_bytes",
    "bluestore_throttle_cost_per_io_ssd",
    "bluestore_prefer_deferred_size_ssd",
    "osd_scrub_chunk_min",
    "osd_scrub_chunk_max",
    "osd_max_scrubs",
    "osd_recovery_max_active_ssd",
    "osd_recovery_max_chunk",
    "osd_recovery_max_single_start",
    "osd_max_backfills",
)


class Glance(NamedTuple):
    """What the devices and OSDs had done by a moment."""

    at: float
    counts: Dict[str, float]


class Watched:
    """A scenario that keeps what devices and OSDs count, so that the means of a window can be told."""

    def __init__(self, work: Scenario, lab: Lab) -> None:
        self._work, self._lab, self._session = work, lab, LabSession(lab)
        self._stats = {
            image.name: Path("/sys/block") / Path(device).name / "stat"
            for device, image in attached(lab.places.devices).items()
        }
        self._glances: List[Glance] = []
        self.beside: Dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def prepare(self) -> None:
        """Prepare the load; nothing was seen yet."""
        self._glances = []
        self._work.prepare()

    def observe(self) -> Dict[str, float]:
        """Let the loads look, and look as well."""
        self._glance()
        return self._work.observe()

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        """Measure, and keep the rates of the counters from the glance nearest to the start to the last one."""
        self._glance()
        first = min(self._glances, key=lambda glance: abs(glance.at - start))
        last = self._glances[-1]
        seconds = last.at - first.at
        rises = {name: last.counts[name] - first.counts[name] for name in last.counts if name in first.counts}
        self.beside = {name: rise / seconds for name, rise in rises.items()} if seconds > 0 else {}
        return self._work.measure(start, end)

    def close(self) -> None:
        """Hang up."""
        self._session.close()

    def _glance(self) -> None:
        counts: Dict[str, float] = {}
        for path in self._stats.values():
            reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms = (
                float(word) for word in path.read_text(encoding="ascii").split()[:8]
            )
            for name, value in (
                ("device.reads", reads),
                ("device.read_bytes", 512 * read_sectors),
                ("device.read_ms", read_ms),
                ("device.writes", writes),
                ("device.written_bytes", 512 * written_sectors),
                ("device.write_ms", write_ms),
            ):
                counts[name] = counts.get(name, 0.0) + value
        for osd in self._lab.osds:
            found = self._session.osd(osd, "perf dump", logger="osd")["osd"]
            for name in COUNTERS:
                value = found.get(name)
                if isinstance(value, dict):
                    counts[f"osd.{name}.sum"] = counts.get(f"osd.{name}.sum", 0.0) + value["sum"]
                    counts[f"osd.{name}.count"] = counts.get(f"osd.{name}.count", 0.0) + value["avgcount"]
                elif value is not None:
                    counts[f"osd.{name}"] = counts.get(f"osd.{name}", 0.0) + value
        counts["host.load"] = 0.0
        self._glances.append(Glance(time.time(), counts))


def drawn(cluster: Cluster, seed: int, to_fit: int, to_predict: int) -> List[Tuple[str, Settings]]:
    """Name -> settings, uniform over the unit cube of the whole space: every knob that the mixes' work has."""
    now = cluster.in_force("osd")
    space = space_for(cluster.release, ("recovery", "scrub", "snaptrim"), now.settings)
    points = np.random.default_rng(seed).random((to_fit + to_predict, space.size))
    labels = [f"fit-{n + 1}" for n in range(to_fit)] + [f"random-{n + 1:02d}" for n in range(to_predict)]
    return [(label, space.decode([float(value) for value in point])) for label, point in zip(labels, points)]


def plan(settings: List[Tuple[str, Settings]]) -> List[Tuple[str, str, Settings]]:
    """(mix, label, settings) in the order of measuring; the profile in force has no settings to write."""
    steps: List[Tuple[str, str, Settings]] = [("client", "in-force", {})]
    steps += [(mix, "in-force", {}) for mix in MIXES]
    to_fit = [pair for pair in settings if pair[0].startswith("fit")]
    steps += [(mix, label, own) for label, own in to_fit for mix in MIXES]
    # every setting in one mix, then every setting in the next one: a run that is cut short has seen all settings
    others = [pair for pair in settings if pair not in to_fit]
    for turn in range(len(MIXES)):
        steps += [(MIXES[(place + turn) % len(MIXES)], label, own) for place, (label, own) in enumerate(others)]
    steps += [("client", "in-force-again", {}), *((mix, "in-force-again", {}) for mix in MIXES)]
    return steps


def measure(arguments: argparse.Namespace) -> None:
    with ExitStack() as stack:
        clock, whole = SystemClock(), Timing(arguments.settle, arguments.window)
        target = stack.enter_context(locked_lab(arguments.cluster, clock, "benchmarks/twin_windows.py"))
        opened, lab = target.cluster, target.lab
        now = opened.in_force("osd")
        slo = parse_slo({"name": "none", "objectives": ["client.p95_ms <= 10 s"]})
        options = opened.config.effective(0)
        document: Dict[str, Any] = {
            "ceph": opened.version,
            "release": opened.release.name,
            "lab": lab.state.options.to_dict(),
            "hardware": now.hardware.__dict__,
            "options": {name: options[name] for name in OPTIONS if name in options},
            "in_force": dict(now.settings),
            "seed": arguments.seed,
            "window_s": whole.window,
            "settle_s": whole.settle,
            "machine": runs_file.machine(),
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "windows": [],
        }
        if arguments.output.exists():
            document["windows"] = json.loads(arguments.output.read_text(encoding="utf-8"))["windows"]
        done = {(window["mix"], window["label"]) for window in document["windows"]}
        steps = plan(drawn(opened, arguments.seed, arguments.fit, arguments.predict))
        progress = stack.enter_context(TuneProgress(slo))
        interrupts = stack.enter_context(Interrupts(progress.interrupted))
        for number, (mix, label, settings) in enumerate(steps, start=1):
            if (mix, label) in done:
                continue
            timing = SHORT if mix == "client-snaptrim" else whole
            chosen = options_for_window(mix, MORE_WORK.get(mix, {}), timing.settle + timing.window)
            with ExitStack() as inner:
                loads = inner.enter_context(scenario(mix, lab, **chosen))
                runs_file.tell_shortfalls(loads, timing.settle + timing.window)
                work = Watched(loads, lab)
                inner.callback(work.close)
                measuring = target.runner(slo, work, clock, progress, interrupts, timing)
                run = Run("trial" if settings else "baseline", label, settings)
                load = os.getloadavg()[0]
                try:
                    trial = measuring.run(run, number, len(steps), {})
                except LabFailed as failed:
                    print(f"{mix} {label}: {failed}", file=sys.stderr)
                    continue
                document["windows"].append(_entry(mix, timing, trial.to_dict(), chosen, work.beside, load))
            new = arguments.output.with_suffix(".new")
            new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            os.replace(new, arguments.output)


def _entry(
    mix: str,
    timing: Timing,
    trial: Mapping[str, Any],
    options: Mapping[str, Any],
    beside: Mapping[str, float],
    load: float,
) -> Dict[str, Any]:
    rounded = {name: round(value, 4) for name, value in beside.items() if name != "host.load"}
    return {
        "mix": mix,
        "options": dict(options),
        **trial,
        "window_s": timing.window,
        "settle_s": timing.settle,
        "beside": rounded,
        "machine_load": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cluster", default="lab")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--fit", type=int, default=3, help="random settings to fit on, beside those in force")
    parser.add_argument("--predict", type=int, default=12, help="random settings to predict")
    parser.add_argument("--window", type=float, default=25.0)
    parser.add_argument("--settle", type=float, default=5.0)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
