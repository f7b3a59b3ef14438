r"""Fits what processor time the lab's work takes, on the processors' shares of windows of `repeatability.jsonl`.

    python benchmarks/twin_processors.py

The twin counts messages, commits and bytes of each kind of window; the processors' share that was measured beside it
says what they take. Of each kind the least busy window counts, since other programs can only add. Threads' own times
are those of `ceph_lab.twin_model`. Fitted are the times of `OsdModel`, and what is always busy, with non-negative least
squares: work takes less where there is more of it, so the busiest windows are to be right. Snaptrim on the lab's own
NVMe is kept aside: what the twin says of it is no fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np
import runs_file
from scipy.optimize import nnls
from twin_repeated import PROCESSORS, RESULTS, Kind, kinds_of, told_of

from ceph_lab.scenarios import SETTLE_S
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.simulation import Simulation

ASIDE = ("3xnvme", "client-snaptrim")
TIMES = {"message_cpu_s": 1e-6, "commit_cpu_s": 1e-6, "moved_cpu_s_per_byte": 1e-12}
"""What is fitted, and the small value with which it is counted."""
PLENTY = 1000
SEEDS = 3


def busy_cores(windows: Sequence[Mapping[str, Any]]) -> List[float]:
    """Of each window that says it, how many processors were busy."""
    return [PROCESSORS * line["processors_percent"]["busy"] / 100 for line in windows if line.get("processors_percent")]


def demand(model: ClusterModel, in_force: Any, seconds: float, **times: float) -> float:
    """Processors that work takes where it waits for none."""
    whole = {**dict.fromkeys(TIMES, 0.0), **times}
    model = replace(model, processors=PLENTY, osd=replace(model.osd, **whole))
    total = 0.0
    for seed in range(SEEDS):
        simulation = Simulation(model, completed(in_force, model.release), seed)
        simulation.advance(seconds + SETTLE_S)
        total += simulation.processors_busy * model.simulated_processors / SEEDS
    return total


def row_of(kind: Kind) -> List[float]:
    """What threads and clients take, and how many messages, commits and bytes a second there are."""
    model, in_force = told_of(kind, PLENTY)
    own = demand(model, in_force, kind[2])
    return [own, *((demand(model, in_force, kind[2], **{name: unit}) - own) / unit for name, unit in TIMES.items())]


def main() -> None:
    kinds = {
        kind: busy_cores(own) for kind, own in kinds_of(runs_file.lines_of(RESULTS / "repeatability.jsonl")).items()
    }
    rows: Dict[Kind, List[float]] = {kind: row_of(kind) for kind, cores in kinds.items() if cores}
    fitted = [kind for kind in rows if kind[:2] != ASIDE]
    least = np.array([min(kinds[kind]) for kind in fitted])
    counts = np.array([[*rows[kind][1:], 1.0] for kind in fitted])
    own = np.array([rows[kind][0] for kind in fitted])
    scale = 1.0 / np.abs(counts).max(axis=0)
    found = nnls(counts * scale / np.sqrt(least)[:, None], (least - own) / np.sqrt(least))[0] * scale
    print(dict(zip((*TIMES, "always"), (float(f"{value:.3g}") for value in found))))
    for kind, (threads, *amounts) in rows.items():
        parts = np.array([*amounts, 1.0]) * found
        told = threads + parts.sum()
        aside = " (aside)" if kind[:2] == ASIDE else ""
        print(
            kind[0],
            kind[1],
            f"least {min(kinds[kind]):.3f} told {told:.3f}{aside}",
            f"threads {threads:.3f}",
            *(f"{name} {part:.3f}" for name, part in zip((*TIMES, "always"), parts)),
        )


if __name__ == "__main__":
    main()
