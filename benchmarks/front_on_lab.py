r"""Holds what the search found against what a grid of settings by hand can do on the same lab.

    python benchmarks/front_on_lab.py --write-grid build/grid.json
    python benchmarks/twin_ahead.py --cluster lab --loads client-recovery --settings-file build/grid.json \
        --window 10 --ahead benchmarks/results/twin-ahead-nvme-grid.json
    python benchmarks/tuning_on_lab.py --cluster lab --scenarios client-recovery --first 131 --repeats 5 --window 10
    python benchmarks/front_on_lab.py --write-winners build/winners.json
    python benchmarks/twin_ahead.py --cluster lab --loads client-recovery --settings-file build/winners.json \
        --window 10 --ahead benchmarks/results/twin-ahead-nvme-winners.json
    python benchmarks/front_on_lab.py --page benchmarks/results/front-on-lab.md

The front is what of the grid no other of its settings beats: the quickest recovery at each p95 of the clients. Each
window of the grid was measured once, so the front is flattered by the chance of a window. Prints Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import runs_file
from tuning_on_lab import OWN, SCENARIOS, SEARCHES, Compared, search_of

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.catalogue import OVERRIDE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.core.knobs.settings import settings_key
from ceph_tuner.core.measure.quantity import quantity
from ceph_tuner.report.plots import pareto

RESULTS = Path("benchmarks/results")
SCENARIO, LATENCY, RATE = "client-recovery", "client.p95_ms", "recovery.bytes_s"
GRID_FILES = ("twin-ahead-nvme-grid.json", "twin-ahead-nvme-grid-2.json")
WINNERS_FILE = "twin-ahead-nvme-winners.json"
VERSION, FIRST = 13, 131
"""Of the search, and the first repeat of it that belongs to this grid."""
NEAR = 0.9
"""Share of the front's recovery that is wanted at a winner's p95."""
LOSS = 0.3
"""What no winner may lose in later windows."""
LATER_WINDOWS = 10
WRITE = "ceph config set osd "
FEW = 3
"""Writes of a winner that are named."""

CHUNKS = {"chunk 8 MiB": None, "chunk 512 KiB": 512, "chunk 256 KiB": 256, "chunk 128 KiB": 128, "chunk 64 KiB": 64}
AT_ONCE: Mapping[str, Settings] = {
    "": {},
    ", one at a time": {OVERRIDE: True, "osd_recovery_max_active": 1},
    ", three at a time": {OVERRIDE: True, "osd_recovery_max_active": 3},
}


SHARES: Mapping[str, Settings] = {
    "high_client_ops": {PROFILE: "high_client_ops"},
    "high_recovery_ops": {PROFILE: "high_recovery_ops"},
    "clients 0.8": {PROFILE: "custom", **nine((0.8, 8, 0.0), (0.1, 1, 0.0), (0.05, 1, 0.7))},
    "recovery limited to 0.75": {PROFILE: "custom", **nine((0.6, 8, 0.0), (0.2, 1, 0.75), (0.05, 1, 0.7))},
}


def grid() -> Dict[str, Settings]:
    """60 settings by label: five chunks, three numbers of recoveries at once, four shares."""
    found: Dict[str, Settings] = {}
    for (chunk, kib), (count, active), (name, own) in itertools.product(
        CHUNKS.items(), AT_ONCE.items(), SHARES.items()
    ):
        size: Settings = {} if kib is None else {"osd_recovery_max_chunk": kib << 10}
        found[f"{name}, {chunk}{count}"] = {**own, **size, **active}
    return found


class Point(NamedTuple):
    """What settings did in one window."""

    label: str
    latency_ms: float
    rate_bytes_s: float


def points_of(files: Sequence[str], windows: Sequence[Mapping[str, Any]]) -> List[Point]:
    return [
        Point(line["label"], line["measured"][LATENCY], line["measured"][RATE])
        for line in windows
        if line["ahead_file"] in files and line["failed"] is None
    ]


def front_of(points: Sequence[Point]) -> List[Point]:
    """Those that no other beats in both, by latency."""
    by_place = {(point.latency_ms, point.rate_bytes_s): point for point in points}
    return [by_place[place] for place in pareto(list(by_place), less_x=True, less_y=False)]


def best_at(front: Sequence[Point], latency_ms: float) -> float:
    """The quickest recovery of the front with no longer a p95; 0 where all of it has a longer one."""
    return max((point.rate_bytes_s for point in front if point.latency_ms <= latency_ms), default=0.0)


def searches_of(entries: Sequence[Mapping[str, Any]]) -> List[Mapping[str, Any]]:
    return [
        entry
        for entry in entries
        if entry["scenario"] == SCENARIO and entry.get("version") == VERSION and entry["repeat"] >= FIRST
    ]


def winner_settings(entry: Mapping[str, Any]) -> Settings:
    one = Compared(entry)
    return next(trial.run.settings for trial in one.trials if trial.run.label == one.winner)


def winners(entries: Sequence[Mapping[str, Any]]) -> Dict[str, Settings]:
    """The settings of our search's winners, each so often that all windows are `LATER_WINDOWS` for each."""
    found: Dict[str, Settings] = {}
    by_key = {
        settings_key(own): (entry["repeat"], own)
        for entry in entries
        if search_of(entry) == OWN
        for own in [winner_settings(entry)]
    }
    for number in range(1, LATER_WINDOWS + 1):
        for repeat, own in by_key.values():
            found[f"winner of {repeat}, window {number}"] = own
    return found


def page(entries: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]) -> str:
    points = points_of(GRID_FILES, windows)
    by_hand = [point for point in points if "," in point.label]
    front = front_of(by_hand)
    judge = Judge(parse_slo({"name": "grid", "objectives": list(SCENARIOS[SCENARIO])}))
    meets = [each for each in by_hand if judge.keeps_hard({LATENCY: each.latency_ms, RATE: each.rate_bytes_s})]
    lines = [
        f"Of {len(by_hand)} settings by hand {len(meets)} met both objectives. The front:",
        "",
        f"| settings | {LATENCY} | {RATE} |",
        "|" + " --- |" * 3,
        *(
            f"| {each.label} | {quantity(LATENCY, each.latency_ms)} | {quantity(RATE, each.rate_bytes_s)} |"
            for each in front
        ),
        "",
        "| search | repeat | trials | first that met every objective | unsafe | the winner writes | p95 | recovery "
        "| the front's recovery there | share of it | later windows | the worst of them loses |",
        "|" + " --- |" * 12,
    ]
    later = points_of([WINNERS_FILE], windows)
    labels = {settings_key(own): label.split(", ")[0] for label, own in winners(entries).items()}
    for entry in entries:
        own = [each for each in later if each.label.startswith(f"{labels.get(settings_key(winner_settings(entry)))},")]
        lines.append(f"| {' | '.join(row(entry, front, own))} |")
    return "\n".join(lines)


def row(entry: Mapping[str, Any], front: Sequence[Point], later: Sequence[Point]) -> List[str]:
    """One repeat of a search; `later` windows are of our search's winners alone."""
    search, one = search_of(entry), Compared(entry)
    latency_ms, rate_bytes_s = one.tuned[LATENCY], one.tuned[RATE]
    reach = best_at(front, latency_ms)
    near = "" if rate_bytes_s >= NEAR * reach else " (missed)"
    share = f"{rate_bytes_s / reach:.2f}{near}" if reach else "none has it"
    commands = entry["outcome"]["commands"]
    few = ", ".join(f"`{command.removeprefix(WRITE)}`" for command in commands)
    return [
        SEARCHES[search].heading or OWN,
        str(entry["repeat"]),
        str(len(one.tried)),
        str(one.until_met or "none"),
        str(one.unsafe),
        (few if len(commands) <= FEW else f"{len(commands)} options") if one.better else "nothing",
        quantity(LATENCY, latency_ms),
        quantity(RATE, rate_bytes_s),
        quantity(RATE, reach),
        share if one.better else "",
        *(later_cells(later, latency_ms, rate_bytes_s) if search == OWN else ("", "")),
    ]


def later_cells(later: Sequence[Point], latency_ms: float, rate_bytes_s: float) -> Tuple[str, str]:
    """The mean of a winner's later windows, and what the worst of them loses."""
    loss = max(max(each.latency_ms / latency_ms - 1, 1 - each.rate_bytes_s / rate_bytes_s) for each in later)
    mean_ms, mean_rate = (statistics.fmean(values) for values in list(zip(*later))[1:])
    verdict = "" if loss < LOSS else " (missed)"
    return f"{quantity(LATENCY, mean_ms)}, {quantity(RATE, mean_rate)}", f"{max(loss, 0.0):.0%}{verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--write-grid", type=Path)
    parser.add_argument("--write-winners", type=Path)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    entries = searches_of(runs_file.lines_of(RESULTS / "tuning-on-lab.jsonl"))
    for path, settings in ((arguments.write_grid, grid()), (arguments.write_winners, winners(entries))):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    if arguments.write_grid is None and arguments.write_winners is None:
        runs_file.show(page(entries, runs_file.lines_of(RESULTS / "twin-ahead.jsonl")), arguments)


if __name__ == "__main__":
    main()
