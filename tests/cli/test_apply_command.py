"""What `apply` says before it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import List, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.knobs.releases import TENTACLE, nine
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file
from ceph_tuner_cli import cluster_option
from running_program import Run
from twins import OSD, in_classes, small_twin


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


LIMIT = "osd_mclock_scheduler_background_recovery_lim"
ON_SHARDS = f"{LIMIT} 0.75 on OSDs of 8 shards leaves recovery 9.4% of the capacity"


@pytest.mark.parametrize(
    ("sets", "shards", "warned"),
    [
        ([f"{LIMIT}=0.75"], 8, True),
        ([f"{LIMIT}=0.75"], 1, False),
        ([f"{LIMIT}=0"], 8, False),
        # as small as the objects
        ([f"{LIMIT}=0.75", "osd_recovery_max_chunk=4194304"], 8, False),
        (["osd_max_scrubs=2"], 8, False),
    ],
)
def test_a_limit_on_recovery_is_warned_of_on_osds_of_several_shards(
    run: Run, monkeypatch: pytest.MonkeyPatch, sets: List[str], shards: int, warned: bool
) -> None:
    twin = small_twin(osd=replace(OSD, shards=shards))
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    # its own profile reserves more than there is
    sets = [*sets, "osd_mclock_scheduler_background_best_effort_res=0"]
    code, _, err = run("apply", "--cluster", "a", *(word for each in sets for word in ("--set", each)))
    assert (code, ON_SHARDS in err) == (0, warned)


@pytest.mark.parametrize("command", [("apply",), ("profile", "show")])
def test_so_is_a_profile_that_brings_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Tuple[str, ...]
) -> None:
    twin = small_twin(osd=replace(OSD, shards=8))
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    limited = nine((0.5, 8, 0.0), (0.2, 1, 0.75), (0.05, 1, 0.3))
    path = tmp_path / "limited.yaml"
    profile_file.write(path, Profile.make("limited", TENTACLE, limited))
    code, _, err = run(*command, str(path), "--cluster", "a")
    assert (code, err.count(ON_SHARDS)) == (0, 1)
