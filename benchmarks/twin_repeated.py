r"""Holds the twin, told of a lab and fitted to nothing, against the windows of `repeatability.jsonl`.

    python benchmarks/twin_repeated.py
    python benchmarks/twin_repeated.py --render benchmarks/results/twin-repeated.jsonl --page PAGE.md
    python benchmarks/twin_repeated.py --shared --output benchmarks/results/twin-repeated-shared.jsonl

Up to ten windows of each drive and load had the same settings, those in force. So their median error is no chance of
one window. They were measured before the twin was asked: this is no prediction. No lab is needed. What was in force,
and how large devices were, is that of the files of predictions on such drives. The capacity is the preset's. With
`--shared` the twin is also told that all daemons and clients shared two processors.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import runs_file
from repeatability import RATE_S
from twin_ahead import HEAD, WANTED, predicted, row_of

from ceph_lab.drives.presets import PRESETS, THROTTLE
from ceph_lab.options import LabOptions
from ceph_lab.recipes import options_for_window
from ceph_lab.scenarios import SETTLE_S
from ceph_lab.twin_model import lab_model
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Settings, parse_version, release_of
from ceph_tuner.tune.measurement import Timing
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.model import ClusterModel

RESULTS = Path("benchmarks/results")
IN_FORCE = {"nvme": "nvme", "sata-ssd": "nvme", "hdd": "hdd", "hybrid": "hybrid"}
"""By drive, the file of predictions that says what was in force."""

Kind = Tuple[str, str, float]

PROCESSORS = 2
"""Of the machine on which all of them were measured."""


def kinds_of(windows: Sequence[Mapping[str, Any]]) -> Dict[Kind, List[Mapping[str, Any]]]:
    """Windows by drive, load and length; those on the kernel's throttle have no drive's model."""
    found: Dict[Kind, List[Mapping[str, Any]]] = {}
    for line in windows:
        if THROTTLE not in line["drive"]:
            found.setdefault((line["drive"], line["scenario"], line["seconds"]), []).append(line)
    return found


def told_of(kind: Kind, processors: int = 0) -> Tuple[ClusterModel, Settings]:
    """What the twin is told of windows of a kind, and the settings in force."""
    drive, load, seconds = kind
    name, _, slower = drive.partition(", ")
    preset = name.lstrip("0123456789x")
    factor = float(slower.split()[0]) if slower else 1.0
    ahead = json.loads((RESULTS / f"twin-ahead-{IN_FORCE[preset]}.json").read_text(encoding="utf-8"))
    options = LabOptions.from_dict({**ahead["lab"], "groups": name, "slower": factor})
    drives, release = PRESETS[preset], release_of(ahead["ceph"])
    hardware = Hardware(
        capacity_iops=drives.bench_iops["tentacle"] / factor, bandwidth_bytes_s=options.bandwidth_of(0),
        shards=ahead["hardware"]["shards"], device_class=drives.media,
    )  # fmt: skip
    work = options_for_window(load, {"rate": RATE_S[drives.media] / factor}, seconds + SETTLE_S)
    model = lab_model(options, hardware, load, release, parse_version(ahead["ceph"]), work, processors)
    return model, ahead["in_force"]


def said(kind: Kind, runner: Runner, processors: int = 0) -> Dict[str, Any]:
    """What the twin says of windows of a kind."""
    drive, load, seconds = kind
    model, in_force = told_of(kind, processors)
    values = predicted(model, {}, in_force, Timing(SETTLE_S, seconds), runner)
    rounded = {metric: [float(f"{value:.4g}") for value in three] for metric, three in values.items()}
    return {"drive": drive, "load": load, "seconds": seconds, "predicted": rounded}


def table(lines: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]) -> str:
    """Median errors of each drive and load."""
    by_kind = {(line["drive"], line["load"], line["seconds"]): line["predicted"] for line in lines}
    rows = []
    for kind, own in kinds_of(windows).items():
        held = [{"settings": {}, "predicted": by_kind[kind], "measured": line["means"]} for line in own]
        # all have the same settings: there are no pairs
        rows.append(row_of(kind[0], kind[1], held, WANTED).rpartition(" | ")[0] + " |")
    head, rule = HEAD
    return "\n".join([head.rpartition(" | ")[0] + " |", rule.removesuffix(" --- |"), *rows])


def main() -> None:
    parser = runs_file.parser(__doc__, "twin-repeated.jsonl")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--shared", action="store_true", help="with the machine's processors")
    arguments = parser.parse_args()
    windows = runs_file.lines_of(RESULTS / "repeatability.jsonl")

    def measure(arguments: argparse.Namespace) -> None:
        processors = PROCESSORS if arguments.shared else 0
        with Runner(arguments.processes) as runner:
            runs_file.rewrite(arguments.output, [said(kind, runner, processors) for kind in kinds_of(windows)])

    part = "repeated, shared" if arguments.shared else "repeated"
    runs_file.measure_and_show(arguments, measure, lambda lines: table(lines, windows), part)


if __name__ == "__main__":
    main()
