"""The fitted twin beside tight recovery limits, held against the lab's windows.

The fit saw no recovery limit below 0.43; the windows here have 0.19 to 0.32 (benchmarks/results/twin.md).
"""

from __future__ import annotations

import gzip
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import List

import pytest

from ceph_lab import windows_file
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import Observation, SimulatedRun, simulated
from ceph_tuner.twin.parameters import with_values

pytestmark = pytest.mark.usefixtures("kernel_compiled")

RESULTS = Path(__file__).parent.parent.parent / "benchmarks" / "results"
LIMIT, TAIL = "osd_mclock_scheduler_background_recovery_lim", "client.p95_ms"
TIGHT = 0.35


@pytest.fixture(scope="module")
def windows() -> windows_file.Windows:
    return windows_file.from_text(gzip.decompress((RESULTS / "twin-windows.json.gz").read_bytes()).decode())


@pytest.fixture(scope="module")
def fitted(windows: windows_file.Windows) -> ClusterModel:
    parameters = json.loads((RESULTS / "twin.json").read_text(encoding="utf-8"))["parameters"]
    return with_values(windows.models["client-recovery"], {entry["name"]: entry["value"] for entry in parameters})


def beside_recovery(windows: windows_file.Windows, tight: bool) -> List[Observation]:
    """Windows under tight limits, or those of the profile in force, which has none."""
    found = [window for window in windows.observations if window.scenario == "client-recovery"]
    limits = [(window, float(window.settings[LIMIT])) for window in found]
    return [window for window, limit in limits if (0 < limit < TIGHT if tight else limit == 0)]


def tail(model: ClusterModel, settings: Settings) -> float:
    """Clients' 95th percentile (ms) in a window like the lab's."""
    return statistics.median(
        float(simulated(SimulatedRun(model, settings, 25.0, 5.0, seed, (TAIL,)))[0]) for seed in range(6)
    )


def test_tails_under_a_tight_limit_rise_over_those_in_force_as_measured(
    windows: windows_file.Windows, fitted: ClusterModel
) -> None:
    in_force = statistics.mean(window.measures[TAIL].mean for window in beside_recovery(windows, tight=False))
    reference = tail(fitted, windows.settings)
    assert reference == pytest.approx(in_force, rel=0.2)
    tight = beside_recovery(windows, tight=True)
    assert len(tight) == 3
    for window in tight:
        measured = window.measures[TAIL].mean / in_force
        assert 1.5 < measured < 2.2
        assert measured / 1.8 < tail(fitted, window.settings) / reference < measured * 1.4


def test_clients_that_do_not_drain_gain_by_the_same_limits(windows: windows_file.Windows, fitted: ClusterModel) -> None:
    """What the limit costs is what fio waits for: each burst of its operations waits for the slowest."""
    assert all(stream.drains for stream in fitted.clients)
    independent = replace(fitted, clients=tuple(replace(stream, drains=False) for stream in fitted.clients))
    reference = tail(independent, windows.settings)
    for window in beside_recovery(windows, tight=True):
        assert tail(independent, window.settings) < reference < tail(fitted, window.settings)
