r"""Holds the twin against a lab: fitted on at most four settings, it predicts a dozen others that it has not seen.

    python benchmarks/twin_on_lab.py --windows windows.json --output benchmarks/results/twin.json \
        --plot benchmarks/results/twin.png

`windows.json` comes from benchmarks/twin_windows.py. The windows labelled in-force and fit-N are fitted on, those
labelled random-NN predicted, and in-force-again says how far two windows of the same settings differ. Prints Markdown:
median errors by metric, and how many measurements lie inside the 90 % intervals. `--render twin.json` prints the tables
of an earlier run again, and draws its plot.

An error is |predicted - measured| / measured. A rate below 0.25 % of what the drives can do (here some 0.5 MB/s, 8
objects or operations a second) counts as none: errors there are relative to that, so that a scrub that stands still, as
beside recovery, is right where the twin's stands still, and wrong where it does not.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from twin_windows import SHORT

from ceph_lab import windows_file
from ceph_lab.twin_model import KNOWN
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.files import fit_file
from ceph_tuner.twin.calibration import FitEffort, Fitting
from ceph_tuner.twin.fit import Fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.forecast import LEVEL, forecast
from ceph_tuner.twin.observations import FITTED, WANTED, Observation, negligible

PREDICTED = "random"

UNITS = {"bytes_s": ("MB/s", 1e6), "objects_s": ("1/s", 1.0), "iops": ("1/s", 1.0)}


def read(path: Path) -> windows_file.Windows:
    if not path.is_file():
        raise InputError(str(path), "no such file", "what benchmarks/twin_windows.py writes, plain or gzip")
    whole = path.read_bytes()
    data = json.loads(gzip.decompress(whole) if path.suffix == ".gz" else whole)
    for window in data["windows"]:
        if window["mix"] == "client-snaptrim":
            # what the collector measured these with, where a file does not say
            window.setdefault("window_s", SHORT.window)
            window.setdefault("settle_s", SHORT.settle)
    return windows_file.from_text(json.dumps(data), str(path))


def evaluate(arguments: argparse.Namespace) -> Dict[str, Any]:
    given = read(arguments.windows)
    to_fit = [window for window in given.observations if not window.label.startswith(PREDICTED)]
    to_predict = [window for window in given.observations if window.label.startswith(PREDICTED)]
    begin = time.perf_counter()
    with Runner(arguments.processes) as runner:

        def tell(text: str, share: float) -> None:
            print(f"{time.perf_counter() - begin:6.0f} s  {share:4.0%}  {text}", file=sys.stderr, flush=True)

        if arguments.fit is not None and arguments.fit.exists() and not arguments.again:
            fit = fit_file.read(arguments.fit)
        else:
            fitting = Fitting(
                to_fit, given.models, runner, FitEffort(places_per_parameter=arguments.effort), KNOWN, report=tell
            )
            found = fitting.fit()
            fit = Fit.of(found, given.models, settings=given.settings, origin={**given.origin})
            if arguments.fit is not None:
                fit_file.write(arguments.fit, fit, force=True)
        fitted_s = time.perf_counter() - begin
        rows: List[Dict[str, Any]] = []
        for number, window in enumerate(to_predict):
            tell(f"predicting {window.scenario} {window.label}", number / len(to_predict))
            rows += predicted(fit, window, runner, arguments.draws)
    return {
        **dict(given.origin),
        "evaluated": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "level": LEVEL,
        "settings_fitted": len({window.same[1] for window in to_fit}),
        "windows_fitted": len(to_fit),
        "settings_predicted": len({window.same[1] for window in to_predict}),
        "windows_predicted": len(to_predict),
        "left_out": list(given.skipped),
        "fit_seconds": round(fitted_s, 1),
        "parameters": [dict(vars(parameter)) for parameter in fit.parameters],
        "identifiability": list(fit.notes),
        "discrepancy": fit.discrepancy.to_dict(),
        "explained": fit.discrepancy.sentences(),
        "repeatability": repeated(given),
        "rows": rows,
    }


def predicted(fit: Fit, window: Observation, runner: Runner, draws: int) -> List[Dict[str, Any]]:
    model = fit.models[window.scenario]
    found = {
        entry.metric: entry
        for entry in forecast(
            model,
            window.settings,
            fit.draws(draws),
            fit.discrepancy,
            runner,
            window.seconds,
            window.settle,
        )
    }
    rows = []
    for metric in window.metrics:
        if metric not in found:
            continue
        entry, measured = found[metric], window.measures[metric].mean
        floor = max(negligible(metric, model), 1e-9)
        rows.append(
            {
                "scenario": window.scenario,
                "label": window.label,
                "metric": metric,
                "measured": measured,
                "predicted": entry.value,
                "low": entry.low,
                "high": entry.high,
                "error": abs(entry.value - measured) / max(measured, floor),
                # what is below the floor is none at all, on both sides
                "inside": entry.low - floor <= measured <= entry.high + floor,
            }
        )
    return rows


def repeated(given: windows_file.Windows) -> Dict[str, float]:
    """By metric, the median difference between two windows of the same settings, over their mean."""
    groups: Dict[Any, List[Observation]] = {}
    for window in given.observations:
        groups.setdefault(window.same, []).append(window)
    found = {}
    for metric in FITTED:
        differences = []
        for group in groups.values():
            values = [window.measures[metric].mean for window in group if metric in window.measures]
            if len(values) == 2 and sum(values) > 0:
                differences.append(2 * abs(values[0] - values[1]) / sum(values))
        if differences:
            found[metric] = statistics.median(differences)
    return found


def coverage(rows: List[Mapping[str, Any]]) -> float:
    return statistics.fmean(row["inside"] for row in rows) if rows else math.nan


def tables(document: Mapping[str, Any]) -> str:
    rows = document["rows"]
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    lines = [
        f"Fitted on {document['windows_fitted']} windows of {document['settings_fitted']} settings, predicted "
        f"{document['windows_predicted']} windows of {document['settings_predicted']} others.",
        "",
        "| metric | windows | median error | wanted | met | "
        + " | ".join(scenarios)
        + " | inside 90 % | two alike differ |",
        "|" + " --- |" * (7 + len(scenarios)),
    ]
    for metric in FITTED:
        own = [row for row in rows if row["metric"] == metric]
        if not own:
            continue
        median = statistics.median(row["error"] for row in own)
        by_scenario = []
        for scenario in scenarios:
            errors = [row["error"] for row in own if row["scenario"] == scenario]
            by_scenario.append(f"{statistics.median(errors):.0%}" if errors else "")
        differ = document["repeatability"].get(metric)
        lines.append(
            f"| {metric} | {len(own)} | **{median:.0%}** | {WANTED[metric]:.0%} | "
            f"{'yes' if median <= WANTED[metric] else 'no'} | {' | '.join(by_scenario)} | "
            f"{coverage(own):.0%} | {'' if differ is None else f'{differ:.0%}'} |"
        )
    latencies = [row for row in rows if row["metric"].startswith("client.") and row["metric"].endswith("_ms")]
    lines += [
        "",
        f"Inside their 90 % intervals: {coverage(rows):.0%} of {len(rows)} measurements (wanted: 85 to 95 %). "
        f"Of the clients' latencies alone it is {coverage(latencies):.0%}.",
    ]
    lines += ["", "| parameter | value | 90 % | described | these windows say |", "|" + " --- |" * 5]
    for entry in document["parameters"]:
        factor = math.exp(1.645 * entry["deviation"])
        low, high = max(entry["low"], entry["value"] / factor), min(entry["high"], entry["value"] * factor)
        lines.append(
            f"| `{entry['name']}` | {entry['value']:.3g} {entry['unit']} | {low:.3g} to {high:.3g} | "
            f"{entry['described']:.3g} | {entry['verdict']} |"
        )
    worst = sorted(rows, key=lambda row: -float(row["error"]))[:12]
    lines += ["", "| largest misses | metric | measured | predicted | 90 % |", "|" + " --- |" * 5]
    for row in worst:
        scale = 1e6 if row["metric"].endswith("bytes_s") else 1.0
        shown = {key: f"{row[key] / scale:.3g}" for key in ("measured", "predicted", "low", "high")}
        lines.append(
            f"| {row['scenario']} {row['label']} | {row['metric']} | {shown['measured']} | {shown['predicted']} | "
            f"{shown['low']} to {shown['high']} |"
        )
    return "\n".join([*lines, "", *document["identifiability"], *document["explained"]])


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Measured against predicted, one panel a metric, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    # the same data give the same file
    mpl.rcParams["svg.hashsalt"] = "ceph-tuner"
    from matplotlib import pyplot, ticker

    rows = document["rows"]
    metrics = [metric for metric in FITTED if any(row["metric"] == metric for row in rows)]
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    colours = dict(zip(scenarios, ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44")))
    across = 3
    figure, axes = pyplot.subplots(
        math.ceil(len(metrics) / across), across, figsize=(9.5, 3.1 * math.ceil(len(metrics) / 3))
    )
    for axis, metric in zip(axes.flat, metrics):
        own = [row for row in rows if row["metric"] == metric]
        unit, scale = UNITS.get(metric.split(".")[1], ("ms", 1.0))
        least = 0.4 if metric.endswith("_s") else 1e-3
        values = [max(row[key] / scale, least) for row in own for key in ("measured", "predicted")]
        low, high = 0.7 * min(values), 1.4 * max(values)
        for row in own:
            x, y = (max(row[key] / scale, least) for key in ("measured", "predicted"))
            bounds = [[max(y - max(row["low"] / scale, least), 0)], [max(row["high"] / scale - y, 0)]]
            axis.errorbar(x, y, yerr=bounds, fmt="o", ms=3, lw=0.7, color=colours[row["scenario"]], alpha=0.75)
        axis.plot([low, high], [low, high], color="black", lw=0.6)
        axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low / 2, high * 2))
        axis.set_title(f"{metric.replace('_ms', '')} ({unit})", fontsize=9)
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(ticker.LogLocator(subs=(1, 2, 5), numticks=8))
            side.set_major_formatter(ticker.FuncFormatter(lambda value, place: f"{value:g}"))
            side.set_minor_formatter(ticker.NullFormatter())
        axis.tick_params(labelsize=7)
    for axis in axes.flat[len(metrics) :]:
        axis.axis("off")
    for scenario in scenarios:
        axes.flat[-1].plot([], [], "o", ms=4, color=colours[scenario], label=scenario)
    axes.flat[-1].legend(loc="center", fontsize=9, frameon=False)
    figure.supxlabel("measured on the lab", fontsize=9)
    figure.supylabel("predicted by the twin, with 90 % intervals", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(given: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--windows", type=Path, help="what benchmarks/twin_windows.py wrote")
    parser.add_argument("--output", type=Path, help="the numbers as JSON")
    parser.add_argument("--plot", type=Path, help="an SVG or PNG")
    parser.add_argument("--fit", type=Path, help="where the fit is kept; one that is there is used")
    parser.add_argument("--again", action="store_true", help="fit again, also where there is a fit")
    parser.add_argument("--effort", type=int, default=8, help="simulated places for each parameter and round")
    parser.add_argument("--draws", type=int, default=24, help="simulations of a prediction")
    parser.add_argument("--processes", type=int, help="runs side by side; else one per core")
    parser.add_argument("--render", type=Path, help="print and draw an earlier run, simulate nothing")
    arguments = parser.parse_args(given)
    if arguments.render is not None:
        document = json.loads(arguments.render.read_text(encoding="utf-8"))
    elif arguments.windows is None:
        parser.error("--windows or --render")
    else:
        document = evaluate(arguments)
        if arguments.output is not None:
            arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(tables(document))
    if arguments.plot is not None:
        draw(document, arguments.plot)


if __name__ == "__main__":
    try:
        main()
    except TunerError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
