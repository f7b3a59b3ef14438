"""A cluster that was recorded on a real one, a lab of three OSDs under load, for what pages show without a cluster.

`gather` finds the recorded answers, and what changes the cluster finds its twin, in the recorded settings.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Tuple

import pytest

from ceph_tuner import cluster as clusters
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.gather.replay import open_state
from ceph_tuner_cli import gather, render
from documented import ROOT, Block
from running_program import in_this_process
from twin_cluster.cluster import twin_cluster

RECORDED = ROOT / "tests" / "data" / "lab" / "nvme-scrub.tar.zst"
STATE = "state.tar.zst"
"""What pages call a gathered file."""


class RecordedCluster:
    """Somebody at a shell, in a directory of their own, whose `--cluster ceph` is the recorded one."""

    def __init__(self, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.desk = desk
        described = describe(open_state(RECORDED))
        twin = twin_cluster(described.model, described.settings)
        monkeypatch.chdir(desk)
        monkeypatch.setattr(render.console, "_width", 80)
        monkeypatch.setattr(gather, "open_cluster", lambda name: open_state(RECORDED))
        monkeypatch.setattr(clusters, "open_cluster", lambda name: twin)

    def types(self, text: str) -> Tuple[int, str]:
        """Exit code, and all that is said."""
        words = shlex.split(text)
        code, said = in_this_process(words)
        if words[1] == "gather":
            # the first one: a replay has nothing new to say where a cluster is asked again, such as of its queues
            shutil.copy(RECORDED, self.desk / STATE)
        return code, said

    def files(self, name: str, block: Block) -> None:
        """Write what a block shows into a file."""
        (self.desk / name).write_text(block.text, encoding="utf-8")
