r"""Fits the twin on a lab's windows of built-in profiles, and holds it against the windows of all other settings.

    python benchmarks/twin_fitted.py --ahead benchmarks/results/twin-ahead-hdd.json
    python benchmarks/twin_fitted.py --render benchmarks/results/twin-fitted.jsonl --page PAGE.md

The windows are those of `twin-ahead.jsonl` that were measured after that file of predictions. No lab is needed. A fit
knows three settings at most: what was in force, which is one of the built-in profiles, and the other two. It sees no
other window. Each predicted window is a line of `--output`, in the place of an earlier one of the same file.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

import runs_file
import twin_on_lab
from twin_ahead import HEAD, Count, count_of, name_of, row_of, said_of, total

from ceph_lab import windows_file
from ceph_lab.twin_model import KNOWN
from ceph_tuner.core.knobs.releases import release_of
from ceph_tuner.tune.past import written_out
from ceph_tuner.twin.calibration import FitEffort, Fitting
from ceph_tuner.twin.fit import Fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.observations import Observation

RESULTS = Path("benchmarks/results")
WANTED = {"rate": 0.10, "mean": 0.10, "p95": 0.15, "p99": 0.20}
"""Median errors wanted of what is fitted."""
DRAWN = "drawn"
VALUES = ("predicted", "low", "high")


def windows_of(ahead: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> windows_file.Windows:
    """The measured windows in the form that a fit takes."""
    options = {(row["load"], row["label"]): row["options"] for row in ahead["rows"]}
    profiles = release_of(ahead["ceph"]).profiles
    windows = [
        {
            "mix": line["load"],
            "label": line["label"],
            "settings": written_out(line["settings"], profiles, ahead["in_force"]),
            "options": options[line["load"], line["label"]],
            "measures": {metric: [mean, 0.0, 1] for metric, mean in line["measured"].items()},
            "notes": line["remarks"],
        }
        for line in lines
        if line["failed"] is None
    ]
    kept = {key: ahead[key] for key in ("ceph", "lab", "hardware", "in_force", "window_s", "settle_s")}
    return windows_file.from_text(json.dumps({**kept, "windows": windows}))


def fitted_on(given: windows_file.Windows) -> List[Observation]:
    return [window for window in given.observations if not window.label.startswith(DRAWN)]


def predictions(name: str, given: windows_file.Windows, arguments: argparse.Namespace) -> List[Dict[str, Any]]:
    """What a twin says of the drawn settings that was fitted on all others."""
    with Runner(arguments.processes) as runner:
        fitting = Fitting(
            fitted_on(given), given.models, runner, FitEffort(places_per_parameter=arguments.effort), KNOWN,
            report=lambda text, share: print(f"{name} {share:4.0%} {text}", file=sys.stderr, flush=True),
        )  # fmt: skip
        fit = Fit.of(fitting.fit(), given.models, settings=given.settings, origin={**given.origin})
        found = []
        for window in given.observations:
            if window.label.startswith(DRAWN) and window.scenario in fit.models:
                rows = twin_on_lab.predicted(fit, window, runner, arguments.draws)
                values = {row["metric"]: [float(f"{row[key]:.4g}") for key in VALUES] for row in rows}
                found.append({"ahead_file": name, "load": window.scenario, "label": window.label, "predicted": values})
    return found


def table(fitted: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]) -> str:
    """Median errors of the drawn settings of each kind of windows."""
    kinds: Dict[Any, List[Mapping[str, Any]]] = {}
    for line, said in said_of(windows, *fitted):
        kinds.setdefault((line["ahead_file"], line["load"]), []).append({**line, "predicted": said["predicted"]})
    rows = list(HEAD)
    labs: Dict[str, List[Count]] = {}
    for (name, load), own in kinds.items():
        labs.setdefault(name_of(name), []).append(count_of(own))
        rows.append(row_of(name_of(name), load, own, WANTED))
    whole = total(count for counts in labs.values() for count in counts)
    every = [line for own in kinds.values() for line in own]
    rows.append(row_of("**all**", "", every, WANTED, whole))
    held = ", ".join(f"{name} {total(counts).share_held()}" for name, counts in labs.items())
    return "\n".join(
        [*rows, "", f"Inside the 90%, by lab: {held}. Of all pairs {whole.share_right()} are told rightly."]
    )


def main() -> None:
    parser = runs_file.parser(__doc__, "twin-fitted.jsonl")
    parser.add_argument("--ahead", type=Path, help="a file of predictions that windows were measured after")
    parser.add_argument("--effort", type=int, default=4, help="simulated places for each parameter")
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--processes", type=int)
    arguments = parser.parse_args()
    windows = runs_file.lines_of(RESULTS / "twin-ahead.jsonl")

    def measure(arguments: argparse.Namespace) -> None:
        if arguments.ahead is None:
            parser.error("--ahead is missing")
        name = arguments.ahead.name
        given = windows_of(
            json.loads(arguments.ahead.read_text(encoding="utf-8")),
            [line for line in windows if line["ahead_file"] == name],
        )
        others = [line for line in runs_file.lines_of(arguments.output) if line["ahead_file"] != name]
        runs_file.rewrite(arguments.output, [*others, *predictions(name, given, arguments)])

    runs_file.measure_and_show(arguments, measure, lambda lines: table(lines, windows), "fitted")


if __name__ == "__main__":
    main()
