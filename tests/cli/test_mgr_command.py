"""`ceph-tuner mgr install`: what it says beside what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import Installed
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner_cli import cluster_option, mgr
from monitors import ManualClock, Monitors
from running_program import Run


class InstalledPlugin:
    """`Plugin`, as far as `install` is asked; nothing stands any more once it is done."""

    def __init__(self) -> None:
        self.standing: List[str] = ["0.2.0 is older than 0.3.0, which runs: change 8, a boost"]

    def left_to_an_older_one(self) -> List[str]:
        return list(self.standing)

    def install(self, enable: bool) -> Installed:
        self.standing.clear()
        return Installed(Path("/mgr"), "0.2.0+ab", enable, "0.2.0+ab", "a", (), "0.2.0+ab")


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_an_older_version_is_installed_with_a_warning_of_what_stands(
    run: Run, monkeypatch: pytest.MonkeyPatch, quiet: Tuple[str, ...]
) -> None:
    monitors, commander = Monitors(), object()
    cluster: Any = Cluster("a", commander, monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: cluster)
    monkeypatch.setattr(mgr, "_plugin", lambda connection, path: InstalledPlugin())
    code, out, error = run("mgr", "install", "-c", "a", *quiet)
    assert code == 0
    assert "0.2.0+ab" in out
    assert "warning: 0.2.0 is older than 0.3.0, which runs: change 8, a boost" in " ".join(error.split())
