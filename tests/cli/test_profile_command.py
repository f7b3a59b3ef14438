from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Iterator, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, TENTACLE, nine
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file
from ceph_tuner_cli import cluster_option, profiles
from config_dump import bring_back
from running_program import Run
from twins import DISK, archive_twin, in_classes, small_twin

TUNED = nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3))


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "profile")


@pytest.fixture
def night(tmp_path: Path) -> Path:
    path = tmp_path / "night.yaml"
    profile = Profile.make("night", TENTACLE, {**TUNED, "osd_max_scrubs": 2}, hardware=Hardware(935, 62914560, 1))
    profile_file.write(path, profile)
    return path


def test_the_built_in_profiles_are_listed(run: Run) -> None:
    code, out, _ = run("ls", "--release", "reef")
    assert code == 0
    assert "reef/balanced" in out
    assert "0.6-2-0" in out
    assert "tentacle/" not in out


def test_a_profile_is_shown_with_its_commands_and_what_it_comes_to(run: Run, night: Path) -> None:
    code, out, _ = run("show", str(night))
    assert code == 0
    assert "ceph config set osd osd_mclock_scheduler_client_wgt 8" in out
    lines = [line for line in out.splitlines() if line.startswith("ceph config set")]
    assert lines[0] == "ceph config set osd osd_mclock_profile custom"
    assert len(lines) == 11
    shown = json.loads(run("show", str(night), "--release", "reef", "--format", "json")[1])
    assert shown["translation"]["release"] == "reef"
    assert any("translated to Reef" in note for note in shown["translation"]["notes"])


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Four OSDs of two device classes, whose release shares out IOPS."""
    made = in_classes(small_twin(release=QUINCY_EARLY), ("hdd", "ssd"))
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: made)
    return made


def test_a_profile_is_shown_as_a_cluster_would_have_it_and_nothing_is_written(
    run: Run, night: Path, mixed: Cluster
) -> None:
    before = mixed.config.dump()
    code, out, _ = run("show", str(night), "--cluster", "a", "--target", "osd/class:ssd")
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith("ceph config set")]
    # half of 935 IOPS, on one shard: a number that only the cluster's own OSDs give
    assert "ceph config set osd/class:ssd osd_mclock_scheduler_client_res 468" in lines
    assert all(line.startswith("ceph config set osd/class:ssd ") for line in lines)
    document = json.loads(run("show", str(night), "--cluster", "a", "--target", "osd.3", "--format", "json")[1])
    translation = document["translation"]
    assert (translation["release"], translation["target"]) == (QUINCY_EARLY.name, "osd.3")
    assert translation["settings"] == mixed.translated(profile_file.read(night), "osd.3").settings
    assert mixed.config.dump() == before


def test_a_built_in_profile_is_that_of_the_clusters_release(run: Run, mixed: Cluster) -> None:
    shown = json.loads(run("show", "balanced", "--cluster", "a", "--format", "json")[1])
    assert (shown["release"], shown["translation"]["target"]) == (QUINCY_EARLY.name, "osd")


def test_a_target_of_several_classes_is_warned_of_where_a_profile_is_shown(
    run: Run, night: Path, mixed: Cluster
) -> None:
    code, _, err = run("show", str(night), "--cluster", "a")
    assert code == 0
    assert "osd is 4 OSDs of 2 classes (2 hdd, 2 ssd): one profile for drives of several kinds" in " ".join(err.split())
    _, _, err = run("show", str(night), "--cluster", "a", "--target", "osd/class:hdd")
    assert "of 2 classes" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "osd.1"), "--target: found no --cluster"),
        (("--cluster", "a", "--release", "reef"), "--release: found --cluster beside it"),
        (("--cluster", "a", "--target", "osd/shelf"), "--target: found `osd/shelf`"),
        (("--cluster", "a", "--target", "osd/class:nvme"), "osd/class:nvme"),
    ],
)
def test_a_profile_is_shown_for_osds_that_there_are(
    run: Run, night: Path, mixed: Cluster, words: Tuple[str, ...], said: str
) -> None:
    code, _, err = run("show", str(night), *words)
    assert (code, said in " ".join(err.split())) == (2, True), err


def test_a_file_is_checked(run: Run, night: Path) -> None:
    code, out, _ = run("check", str(night))
    assert (code, out) == (0, f"{night}: sound, for Tentacle from 20.2.3\n")
    night.write_text(night.read_text().replace("osd_max_scrubs: 2", "osd_max_scrubs: 99"))
    code, out, err = run("check", str(night))
    assert (code, out) == (2, "")
    assert err.endswith("settings.osd_max_scrubs: found 99, expected 1 to 10\n")
    assert err.count("\n") == 1


def test_profiles_are_compared_by_what_they_set(run: Run) -> None:
    found = json.loads(run("diff", "reef/balanced", "tentacle/balanced", "--format", "json")[1])
    assert {row["knob"].rsplit("_", 1)[1] for row in found} == {"res", "wgt"}
    assert run("diff", "reef/balanced", "squid/balanced")[1] == "no difference\n"


@pytest.mark.parametrize("name", ["balanced", "reef/balance", "/nowhere.yaml", "nowhere.yaml", "/"])
def test_what_is_no_profile_is_one_line_and_exit_code_2(run: Run, name: str) -> None:
    for command in (("show", name), ("diff", name, "reef/balanced")):
        code, _, err = run(*command)
        assert code == 2
        assert err.startswith("error: ")
        assert err.count("\n") == 1


def test_a_cluster_that_is_not_there_is_refused(run: Run, night: Path) -> None:
    for command in (("export", "--cluster", "no-such-lab"), ("import", str(night), "--cluster", "no-such-lab")):
        code, _, err = run(*command)
        assert code == 2
        assert "no-such-lab" in err


@pytest.fixture
def restored(any_lab: Lab) -> Iterator[Cluster]:
    """A cluster whose configuration must be back as it was at the end."""
    cluster = open_cluster(any_lab.name)
    before = cluster.config.dump()
    yield cluster
    bring_back(cluster.config, before)
    cluster.close()


def test_a_profile_goes_to_a_cluster_and_comes_back_the_same(
    run: Run, night: Path, tmp_path: Path, restored: Cluster, any_lab: Lab
) -> None:
    before = restored.config.dump()
    code, out, err = run("import", str(night), "--cluster", any_lab.name)
    assert code == 0
    assert "ceph config set osd osd_mclock_scheduler_client_wgt 8" in out
    assert "nothing is changed: add --yes" in err
    assert restored.config.dump() == before

    code, _, err = run("import", str(night), "--cluster", any_lab.name, "--yes")
    assert code == 0, err
    for osd in any_lab.osds:
        assert restored.config.effective(osd)["osd_mclock_scheduler_client_wgt"] == "8"

    there = tmp_path / "there.yaml"
    assert run("export", "--cluster", any_lab.name, "--output", str(there), "--name", "back")[0] == 0
    found = profile_file.read(there)
    assert found.release is restored.release
    # a lab sets BlueStore's throttles itself
    assert {name: found.settings[name] for name in (*TUNED, "osd_max_scrubs")} == {**TUNED, "osd_max_scrubs": 2}
    assert found.hardware is not None
    assert run("import", str(there), "--cluster", any_lab.name)[1].endswith("nothing to write\n")

    code, _, err = run("export", "--cluster", any_lab.name, "--output", str(there))
    assert code == 2
    assert "--force" in err

    restored.applier().undo()
    assert restored.config.dump() == before


def test_osds_that_differ_are_no_profile(run: Run, restored: Cluster, any_lab: Lab) -> None:
    restored.config.set("osd.0", PROFILE, "high_client_ops")
    code, _, err = run("export", "--cluster", any_lab.name)
    assert code == 2
    # whichever answered first is the other one
    assert re.search(r"osd\.0 and osd\.[12] that differ in osd_mclock_profile", err)


def test_a_profile_is_made_and_translated_by_the_drives_kind_whatever_their_class() -> None:
    assert profiles.profile_of_target(archive_twin(), "osd", "x").hardware == replace(
        DISK.hardware, device_class="archive"
    )
    early = archive_twin(release=QUINCY_EARLY)
    written = early.translated(Profile.make("night", TENTACLE, TUNED), "osd").settings
    # half of 380 IOPS, on one shard
    assert written["osd_mclock_scheduler_client_res"] == 190
