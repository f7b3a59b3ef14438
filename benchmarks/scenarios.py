"""Tuning scenarios on the twin, drawn by seed: a cluster, its load, what is in force, and objectives that are missed.

    python benchmarks/scenarios.py --seeds 0-29

What a scenario is stands in `scenario_problem.py`, how it is drawn in `scenario_drawing.py`. What was drawn is kept in
the user's cache directory, by the sources that it follows from.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Sequence

import numpy as np
from scenario_drawing import Drawing
from scenario_problem import Cluster, Scenario, slo_of, works_of
from search_problem import Problem

from ceph_tuner.search import space
from ceph_tuner.twin import simulation


def scenario(seed: int, infeasible: bool = False) -> Scenario:
    """The scenario of a seed. Clusters on which nothing is worth tuning are drawn again."""
    kept = _cache() / f"{seed}{'-infeasible' if infeasible else ''}.json"
    if kept.exists():
        document = json.loads(kept.read_text(encoding="utf-8"))
        return _restored(document, _cluster(seed, document["attempt"]))
    for attempt in range(100):
        found = Drawing(_cluster(seed, attempt), np.random.default_rng([seed, attempt, 1])).scenario(infeasible)
        if found is not None:
            _keep(kept, found, attempt)
            return found
    raise ValueError(f"seed {seed}: no cluster is worth tuning")


def scenarios(seeds: Iterable[int], infeasible: Sequence[bool] = (False, True), mistake: str = "") -> Iterator[Problem]:
    """Problems of each seed: a feasible scenario and an infeasible one. `mistake`: of the prior's twin."""
    for seed in seeds:
        for kind in infeasible:
            yield scenario(seed, kind).problem(mistake)


@lru_cache(maxsize=8)
def _cluster(seed: int, attempt: int) -> Cluster:
    return Cluster(seed, np.random.default_rng([seed, attempt]))


def _cache() -> Path:
    sources = [
        Path(simulation.__file__).parent,
        Path(simulation.__file__).parent / "kernel",
        Path(space.__file__).parent,
        *sorted(Path(__file__).parent.glob("scenario*.py")),
    ]
    digest = hashlib.sha256()
    for source in sources:
        for path in sorted(source.glob("*.py")) if source.is_dir() else [source]:
            digest.update(path.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "ceph-tuner" / "scenarios" / digest.hexdigest()[:16]


def _keep(path: Path, found: Scenario, attempt: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    document = {
        "attempt": attempt, "start": found.start,
        "bounds": {o.metric: o.bound.value for o in found.slo.objectives}, "share": found.share,
        "reached": found.reached, "spread": found.spread, "hidden": found.hidden,
    }  # fmt: skip
    part.write_text(json.dumps(document, indent=1), encoding="utf-8")
    part.replace(path)


def _restored(document: Mapping[str, Any], cluster: Cluster) -> Scenario:
    return Scenario(
        cluster, document["start"], slo_of(document["bounds"]), document["share"], document["reached"],
        document["spread"], document["hidden"],
    )  # fmt: skip


def row(found: Scenario) -> str:
    """A scenario as a row of the table."""
    model, device = found.cluster.model, found.cluster.model.osd.device
    (client,) = model.clients
    asked = f"{client.rate:.0f}/s" if client.rate is not None else f"{client.depth} at a time"
    load = [f"{client.block_bytes >> 10} KiB, {client.read_share:.0%} reads, {asked}", *works_of(model)]
    met = [name for name, settings in found.profiles.items() if found.meets(settings)]
    cells = [
        found.name, model.release.name, f"{model.osds} {found.cluster.kind}", f"{device.iops:.0f}",
        f"{device.bandwidth_bytes_s / 1e6:.0f}", "; ".join(load), ", ".join(o.text for o in found.slo.objectives),
        f"{found.share:.0%}", f"{found.reached:.2f}", ", ".join(met) or "none",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "scenario",
    "release",
    "OSDs",
    "IOPS",
    "MB/s",
    "load",
    "objectives",
    "random meet",
    "best misses by",
    "profiles",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", default="0-29", help="such as 0-29 or 3,5")
    parser.add_argument("--kind", choices=("feasible", "infeasible", "both"), default="both")
    arguments = parser.parse_args()
    ends = [part.partition("-") for part in arguments.seeds.split(",")]
    kinds = {"feasible": (False,), "infeasible": (True,), "both": (False, True)}[arguments.kind]
    print("| " + " | ".join(HEAD) + " |\n|" + " --- |" * len(HEAD))
    for first, _, last in ends:
        for seed in range(int(first), int(last or first) + 1):
            for kind in kinds:
                print(row(scenario(seed, kind)), flush=True)


if __name__ == "__main__":
    main()
