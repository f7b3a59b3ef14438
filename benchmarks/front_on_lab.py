r"""Holds what the search found against what a grid of settings by hand can do on the same lab.

    python benchmarks/front_on_lab.py --write-grid build/grid.json
    python benchmarks/twin_ahead.py --cluster lab --loads client-recovery --settings-file build/grid.json \
        --window 10 --ahead benchmarks/results/twin-ahead-nvme-grid.json
    python benchmarks/tuning_on_lab.py --cluster lab --scenarios client-recovery --first 131 --repeats 5 --window 10
    python benchmarks/front_on_lab.py --write-winners build/winners.json
    python benchmarks/twin_ahead.py --cluster lab --loads client-recovery --settings-file build/winners.json \
        --window 10 --ahead benchmarks/results/twin-ahead-nvme-winners.json
    python benchmarks/front_on_lab.py --page benchmarks/results/front-on-lab.md

`--grid` names the others. The front is what of a grid no other of its settings beats: the quickest recovery, or scrub,
at each latency of the clients. Each window of the grid was measured once, so the front is flattered by the chance of a
window. Prints Markdown.
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
from ceph_tuner.search.designs import Shares

RESULTS = Path("benchmarks/results")
VERSION = 13
"""Of the search: the first that is held against a grid."""
NEAR = 0.9
"""Share of the front's rate that is wanted at a winner's latency."""
LOSS = 0.3
"""What no winner may lose in later windows."""
LATER_WINDOWS = 10
WRITE = "ceph config set osd "
FEW = 3
"""Writes of a winner that are named."""

Axis = Mapping[str, Settings]


def shares(client: Shares, recovery: Shares, best_effort: Shares) -> Settings:
    return {PROFILE: "custom", **nine(client, recovery, best_effort)}


BUILT_IN: Axis = {name: {PROFILE: name} for name in ("high_client_ops", "high_recovery_ops")}
CLIENTS_FIRST = {"clients 0.8": shares((0.8, 8, 0.0), (0.1, 1, 0.0), (0.05, 1, 0.7))}


class Grid(NamedTuple):
    """What is set by hand under a scenario: each of the axes with each; and where its windows and searches are."""

    name: str
    """Also of its part of the page."""
    scenario: str
    osds: str
    objectives: Sequence[str]
    latency: str
    rate: str
    axes: Tuple[Axis, Axis, Axis]
    files: Tuple[str, ...]
    winners_files: Tuple[str, ...]
    """The later windows of what won."""
    first: int
    """The first repeat of the search that belongs to it."""

    def settings(self) -> Dict[str, Settings]:
        """60 settings by label."""
        return {
            f"{name}, {chunk}{count}": {**own, **size, **active}
            for (chunk, size), (count, active), (name, own) in itertools.product(*(axis.items() for axis in self.axes))
        }


RECOVERY = Grid(
    name="recovery",
    scenario="client-recovery",
    osds="3xnvme",
    objectives=SCENARIOS["client-recovery"],
    latency="client.p95_ms",
    rate="recovery.bytes_s",
    axes=(
        {
            "chunk 8 MiB": {},
            **{f"chunk {kib} KiB": {"osd_recovery_max_chunk": kib << 10} for kib in (512, 256, 128, 64)},
        },
        {
            "": {},
            ", one at a time": {OVERRIDE: True, "osd_recovery_max_active": 1},
            ", three at a time": {OVERRIDE: True, "osd_recovery_max_active": 3},
        },
        {
            **BUILT_IN,
            **CLIENTS_FIRST,
            "recovery limited to 0.75": shares((0.6, 8, 0.0), (0.2, 1, 0.75), (0.05, 1, 0.7)),
        },
    ),
    files=("twin-ahead-nvme-grid.json", "twin-ahead-nvme-grid-2.json"),
    winners_files=("twin-ahead-nvme-winners.json",),
    first=131,
)
SCRUB = Grid(
    name="scrub",
    scenario="client-scrub",
    osds="3xnvme",
    objectives=SCENARIOS["client-scrub"],
    latency="client.p99_ms",
    rate="scrub.bytes_s",
    axes=(
        {"chunk 15": {}, **{f"chunk {objects}": {"osd_scrub_chunk_max": objects} for objects in (25, 10, 7, 5)}},
        {"": {}, ", one at a time": {"osd_max_scrubs": 1}, ", two at a time": {"osd_max_scrubs": 2}},
        {
            **BUILT_IN,
            **CLIENTS_FIRST,
            "scrub limited to 0.4": shares((0.6, 8, 0.0), (0.2, 1, 0.0), (0.05, 1, 0.4)),
        },
    ),
    files=("twin-ahead-nvme-scrub-grid.json",),
    winners_files=("twin-ahead-nvme-scrub-winners.json",),
    first=138,
)
ON_DISKS = Grid(
    name="disks",
    scenario="client-recovery",
    osds="3xhdd",
    objectives=("client.p95_ms <= 100 ms", "recovery.bytes_s >= 15 MB/s"),
    latency="client.p95_ms",
    rate="recovery.bytes_s",
    axes=(
        {"batch 64": {}, **{f"batch {count}": {"bluestore_deferred_batch_ops_hdd": count} for count in (16, 8, 4, 2)}},
        {
            "": {},
            ", one at a time": {OVERRIDE: True, "osd_recovery_max_active": 1},
            ", chunk 256 KiB": {"osd_recovery_max_chunk": 256 << 10},
        },
        {
            **BUILT_IN,
            **CLIENTS_FIRST,
            "recovery limited to 0.5": shares((0.5, 8, 0.0), (0.3, 1, 0.5), (0.05, 1, 0.7)),
        },
    ),
    files=("twin-ahead-hdd-grid.json",),
    winners_files=("twin-ahead-hdd-winners.json",),
    first=143,
)
ERASURE_CODED = RECOVERY._replace(
    name="erasure-coded",
    osds="6xnvme",
    objectives=("client.p95_ms <= 105 ms", "recovery.bytes_s >= 6 MB/s"),
    files=("twin-ahead-nvme-ec-4-2-grid.json",),
    winners_files=("twin-ahead-nvme-ec-4-2-winners.json",),
    first=155,
)
GRIDS = {grid.name: grid for grid in (RECOVERY, SCRUB, ON_DISKS, ERASURE_CODED)}


class Point(NamedTuple):
    """What settings did in one window."""

    label: str
    latency_ms: float
    rate_bytes_s: float


def points_of(grid: Grid, files: Sequence[str], windows: Sequence[Mapping[str, Any]]) -> List[Point]:
    return [
        Point(line["label"], line["measured"][grid.latency], line["measured"][grid.rate])
        for line in windows
        if line["ahead_file"] in files and line["failed"] is None
    ]


def front_of(points: Sequence[Point]) -> List[Point]:
    """Those that no other beats in both, by latency."""
    by_place = {(point.latency_ms, point.rate_bytes_s): point for point in points}
    return [by_place[place] for place in pareto(list(by_place), less_x=True, less_y=False)]


def best_at(front: Sequence[Point], latency_ms: float) -> float:
    """The quickest of the front with no longer a latency; 0 where all of it has a longer one."""
    return max((point.rate_bytes_s for point in front if point.latency_ms <= latency_ms), default=0.0)


def searches_of(grid: Grid, entries: Sequence[Mapping[str, Any]]) -> List[Mapping[str, Any]]:
    return [
        entry
        for entry in entries
        if (entry["scenario"], ",".join(entry.get("osds", ()))) == (grid.scenario, grid.osds)
        and entry.get("version", 1) >= VERSION
        and entry["repeat"] >= grid.first
    ]


def winner_settings(one: Compared) -> Settings:
    return next(trial.run.settings for trial in one.trials if trial.run.label == one.winner)


def later_windows(grid: Grid, windows: Sequence[Mapping[str, Any]]) -> Dict[str, List[Point]]:
    """What the settings of winners did later, by their key."""
    found: Dict[str, List[Point]] = {}
    for line in windows:
        for point in points_of(grid, grid.winners_files, [line]):
            if point.label.startswith("winner of "):
                found.setdefault(settings_key(line["settings"]), []).append(point)
    return found


def winners(
    grid: Grid, entries: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]
) -> Dict[str, Settings]:
    """The settings of our search's winners that have no later windows yet, each `LATER_WINDOWS` times, in turns."""
    found: Dict[str, Settings] = {}
    later = later_windows(grid, windows)
    by_key = {
        settings_key(own): (entry["repeat"], own)
        for entry in entries
        if search_of(entry) == OWN
        for own in [winner_settings(Compared(entry))]
        if settings_key(own) not in later
    }
    for number in range(1, LATER_WINDOWS + 1):
        for repeat, own in by_key.values():
            found[f"winner of {repeat}, window {number}"] = own
    return found


def page(grid: Grid, searches: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]) -> str:
    points = points_of(grid, grid.files, windows)
    by_hand = [point for point in points if "," in point.label]
    front = front_of(by_hand)
    judge = Judge(parse_slo({"name": "grid", "objectives": list(grid.objectives)}))
    meets = [
        each for each in by_hand if judge.keeps_hard({grid.latency: each.latency_ms, grid.rate: each.rate_bytes_s})
    ]
    lines = [
        f"Of {len(by_hand)} settings by hand {len(meets)} met both objectives. The front:",
        "",
        f"| settings | {grid.latency} | {grid.rate} |",
        "|" + " --- |" * 3,
        *(
            f"| {each.label} | {quantity(grid.latency, each.latency_ms)} | {quantity(grid.rate, each.rate_bytes_s)} |"
            for each in front
        ),
        "",
        "| search | repeat | trials | first that met every objective | unsafe | the winner writes "
        f"| {grid.latency} | {grid.rate} | the front's rate there | share of it | later windows "
        "| the worst of them loses |",
        "|" + " --- |" * 12,
    ]
    later = later_windows(grid, windows)
    for entry in searches:
        one = Compared(entry)
        own = later.get(settings_key(winner_settings(one)), ())
        lines.append(f"| {' | '.join(row(grid, entry, one, front, own))} |")
    return "\n".join(lines)


def row(
    grid: Grid, entry: Mapping[str, Any], one: Compared, front: Sequence[Point], later: Sequence[Point]
) -> List[str]:
    """One repeat of a search; `later` windows are of our search's winners alone."""
    search = search_of(entry)
    latency_ms, rate_bytes_s = one.tuned[grid.latency], one.tuned[grid.rate]
    reach = best_at(front, latency_ms)
    near = "" if rate_bytes_s >= NEAR * reach else " (missed)"
    share = f"{rate_bytes_s / reach:.2f}{near}" if reach else "none has it"
    commands = entry["outcome"]["commands"]
    goal = f", `maximise: {entry['maximise']}`" if "maximise" in entry else ""
    version = f", version {entry['version']}" if entry["version"] > VERSION else ""
    few = ", ".join(f"`{command.removeprefix(WRITE)}`" for command in commands)
    return [
        f"{SEARCHES[search].heading or OWN}{goal}{version}",
        str(entry["repeat"]),
        str(len(one.tried)),
        str(one.until_met or "none"),
        str(one.unsafe),
        (few if len(commands) <= FEW else f"{len(commands)} options") if one.better else "nothing",
        quantity(grid.latency, latency_ms),
        quantity(grid.rate, rate_bytes_s),
        quantity(grid.rate, reach),
        share if one.better else "",
        *(later_cells(grid, later, latency_ms, rate_bytes_s) if search == OWN and later else ("", "")),
    ]


def later_cells(grid: Grid, later: Sequence[Point], latency_ms: float, rate_bytes_s: float) -> Tuple[str, str]:
    """The mean of a winner's later windows, and what the worst of them loses."""
    loss = max(max(each.latency_ms / latency_ms - 1, 1 - each.rate_bytes_s / rate_bytes_s) for each in later)
    mean_ms, mean_rate = (statistics.fmean(values) for values in list(zip(*later))[1:])
    verdict = "" if loss < LOSS else " (missed)"
    return f"{quantity(grid.latency, mean_ms)}, {quantity(grid.rate, mean_rate)}", f"{max(loss, 0.0):.0%}{verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--write-grid", type=Path)
    parser.add_argument("--write-winners", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--grid", choices=GRIDS, default=RECOVERY.name)
    arguments = parser.parse_args()
    grid = GRIDS[arguments.grid]
    searches = searches_of(grid, runs_file.lines_of(RESULTS / "tuning-on-lab.jsonl"))
    windows = runs_file.lines_of(RESULTS / "twin-ahead.jsonl")
    new = winners(grid, searches, windows)
    for path, settings in ((arguments.write_grid, grid.settings()), (arguments.write_winners, new)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    if arguments.write_grid is None and arguments.write_winners is None:
        runs_file.show(page(grid, searches, windows), arguments, grid.name)


if __name__ == "__main__":
    main()
