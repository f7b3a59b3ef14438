"""What `apply` says before it writes."""

from __future__ import annotations

import json
from typing import Callable, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner_cli import cluster_option
from twins import in_classes, small_twin

Run = Callable[..., Tuple[int, str, str]]


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Four OSDs of two device classes."""
    made = in_classes(small_twin(), ("hdd", "ssd"))
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: made)
    return made


def test_the_preview_counts_the_osds_and_their_classes(run: Run, mixed: Cluster) -> None:
    before = mixed.config.dump()
    code, _, err = run("apply", "--set", "osd_max_scrubs=2", "--cluster", "a")
    assert code == 0
    assert "would write to 4 OSDs of 2 classes (2 hdd, 2 ssd); nothing is changed: add --yes to write it" in err
    code, out, _ = run("apply", "--set", "osd_max_scrubs=2", "--cluster", "a", "--format", "json")
    assert (code, json.loads(out)["classes"]) == (0, {"hdd": 2, "ssd": 2})
    assert mixed.config.dump() == before


@pytest.mark.parametrize("command", [("apply", "balanced"), ("profile", "export")])
def test_a_profile_for_drives_of_two_classes_is_warned_of(run: Run, mixed: Cluster, command: Tuple[str, ...]) -> None:
    code, _, err = run(*command, "--cluster", "a")
    assert code == 0
    warned = " ".join(err.split())
    assert "osd is 4 OSDs of 2 classes (2 hdd, 2 ssd): one profile for drives of several kinds" in warned
    assert "osd/class:hdd or osd/class:ssd has one for its own" in warned
    _, _, err = run(*command, "--cluster", "a", "--target", "osd/class:ssd")
    assert "classes" not in err
