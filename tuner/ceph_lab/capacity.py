"""What an OSD does on the lab's drives: the IOPS that mClock is told, verified by Ceph's own bench.

A drive decides what its OSD does, and the machine's other work only takes away. So a preset states what its OSD gave
on an idle machine, every lab is told that, and the bench has to agree. For other drives, runs have to agree with each
other.
Nothing is remembered: what a busy machine gave once would be believed for ever.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Callable, Dict, List, Optional

if TYPE_CHECKING:
    from ceph_lab.cluster import Lab

Report = Callable[[str], None]

# 3 000 writes of 4 KiB, as an OSD does at boot, but over 25 objects of 4 MiB in the place of 100, which it writes first
BENCH = ["bench", "12288000", "4096", "4194304", "25"]
"""Arguments of `ceph tell osd.N`."""

TOLERANCE = 0.05
"""Runs that differ by more than this share do not agree."""

MOST_RUNS = 5


def measured_capacities(lab: Lab, report: Report) -> Dict[str, float]:
    """Drive -> IOPS of 4 KiB writes of an OSD on it."""
    options = lab.state.options
    capacities: Dict[str, float] = {}
    for osd in lab.osds:
        name = options.group_of(osd).drive
        if name not in capacities:
            drive = options.drive_of(osd)
            statement = drive.bench_iops.get(options.release) if drive is not None else None
            report(f"verifying what an OSD does on {name}" if statement else f"measuring what an OSD does on {name}")
            capacities[name] = capacity(lambda osd=osd: bench(lab, osd), statement, name, report)  # type: ignore[misc]
    return capacities


def bench(lab: Lab, osd: int) -> float:
    """IOPS of one run."""
    answer = lab.run(["ceph", "tell", f"osd.{osd}", *BENCH, "--format", "json"], timeout=600)
    return float(json.loads(answer)["iops"])


def capacity(run: Callable[[], float], statement: Optional[float], name: str, report: Report) -> float:
    """What is stated, where a run agrees; without a statement, the highest of runs of which two agree.

    Where none does, the machine is busy: the statement holds, or the highest run, and `report` says so.
    """
    runs: List[float] = []
    while len(runs) < MOST_RUNS:
        runs.append(run())
        reference = statement if statement is not None else max(runs)
        agreement = [iops for iops in runs if abs(iops - reference) <= TOLERANCE * reference]
        if len(agreement) >= (1 if statement is not None else 2):
            return round(reference, 1)
    figures = ", ".join(f"{iops:.0f}" for iops in sorted(runs))
    best_iops = statement if statement is not None else max(runs)
    comparison = f"stated are {statement:.0f}" if statement is not None else "no two agree"
    report(
        f"warning: {name}: the bench gave {figures} IOPS, {comparison}; mClock is told {best_iops:.0f}. "
        "Is the machine busy?"
    )
    return round(best_iops, 1)
