"""What an OSD does on the lab's drives: the IOPS that mClock is told, verified by Ceph's own bench.

A drive decides what its OSD does, and the machine's other work only takes away. So a preset states what its OSD gave
on an idle machine, every lab is told that, and the bench has to agree. For other drives, runs have to agree with each
other, and to reach what the drive's own model lets an OSD do: a steadily loaded machine agrees with itself.
Nothing is remembered: what a busy machine gave once would be believed for ever.
"""

from __future__ import annotations

import errno
import json
import time
from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional

from ceph_lab.drives.presets import bench_bound_iops
from ceph_tuner.core.errors import CommandFailed

if TYPE_CHECKING:
    from ceph_lab.cluster import Lab

Report = Callable[[str], None]

# 3 000 writes of 4 KiB, as an OSD does at boot, but over 25 objects of 4 MiB in the place of 100, which it writes first
BENCH = ["bench", "12288000", "4096", "4194304", "25"]
"""Arguments of `ceph tell osd.N`."""

TOLERANCE = 0.05
"""Runs that differ by more than this share do not agree."""

MOST_RUNS = 5

UP_AGAIN_S = 60.0
"""How long an OSD that is down is waited for."""


class Capacity(NamedTuple):
    """IOPS of 4 KiB writes of an OSD, and why they are not verified; empty where they are."""

    iops: float
    doubt: str = ""


def measured_capacities(lab: Lab, report: Report) -> Dict[str, Capacity]:
    """By the drive that the OSD is on."""
    options = lab.state.options
    capacities: Dict[str, Capacity] = {}
    for osd in lab.osds:
        name = options.group_of(osd).drive
        if name not in capacities:
            drive = options.drive_of(osd)
            statement = drive.bench_iops.get(options.release) if drive is not None else None
            report(f"verifying what an OSD does on {name}" if statement else f"measuring what an OSD does on {name}")
            bound = 0.0
            if drive is not None and statement is None:
                data_bytes = options.device_size * (3 if drive.database is not None else 4) // 4
                bound = bench_bound_iops(drive, options.release, data_bytes)
            capacities[name] = capacity(
                lambda osd=osd: bench(lab, osd),  # type: ignore[misc]
                statement,
                name,
                report,
                bound,
            )
    return capacities


def bench(lab: Lab, osd: int) -> float:
    """IOPS of one run. An OSD that the others thought dead, on a busy machine, is waited for."""
    until = time.monotonic() + UP_AGAIN_S
    while True:
        try:
            answer = lab.run(["ceph", "tell", f"osd.{osd}", *BENCH, "--format", "json"], timeout=600)
        except CommandFailed as failure:  # noqa: PERF203 - it is asked again
            if failure.code != errno.ENXIO or time.monotonic() > until:
                raise
            lab.wait_osd(osd, up=True)
        else:
            return float(json.loads(answer)["iops"])


def capacity(
    run: Callable[[], float], statement: Optional[float], name: str, report: Report, bound: float = 0.0
) -> Capacity:
    """What is stated, where a run agrees; without a statement, the highest of runs of which two agree.

    These have to reach `bound`, to TOLERANCE. Where none does, the machine is busy: the statement holds, or the highest
    run, with the doubt, and `report` says so.
    """
    runs: List[float] = []
    while len(runs) < MOST_RUNS:
        runs.append(run())
        reference = statement if statement is not None else max(runs)
        agreement = [iops for iops in runs if abs(iops - reference) <= TOLERANCE * reference]
        if len(agreement) >= (1 if statement is not None else 2) and reference >= (1 - TOLERANCE) * bound:
            return Capacity(round(reference, 1))
    figures = ", ".join(f"{iops:.0f}" for iops in sorted(runs))
    best_iops = statement if statement is not None else max(runs)
    if statement is not None:
        comparison = f"stated are {statement:.0f}"
    elif best_iops < (1 - TOLERANCE) * bound:
        comparison = f"an OSD on such a drive does {bound:.0f} at least"
    else:
        comparison = "no two agree"
    doubt = f"the bench gave {figures} IOPS, {comparison}; mClock is told {best_iops:.0f}"
    report(f"warning: {name}: {doubt}. Is the machine busy?")
    return Capacity(round(best_iops, 1), doubt)
