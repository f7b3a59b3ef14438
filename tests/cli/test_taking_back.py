"""What `rollback` and `fleet rollback` end with: exit codes, and what is told of work that was cut short."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Dict, List

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.lock import LEASE_S, Holder, Lock
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.fleet import portable_file
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.portable import sealed
from ceph_tuner_cli import cluster_option, fleet_rollout
from ceph_tuner_profiles import catalogue
from monitors import ManualClock, Monitors
from running_program import Run

SCRUBS = {"osd_max_scrubs": 2}


def opened(monitors: Monitors) -> Cluster:
    return Cluster("a", object(), monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]


def changed(monitors: Monitors, why: str = "") -> Monitors:
    applier = opened(monitors).applier()
    assert applier.apply(applier.plan("osd", SCRUBS), why) is not None
    return monitors


@pytest.fixture
def monitors(monkeypatch: pytest.MonkeyPatch) -> Monitors:
    found = changed(Monitors())
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: opened(found))
    return found


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "night.yaml"
    portable_file.write(
        path, sealed(catalogue.load("tuned/lab-recovery"), {"cluster": "x", "exported": "2026-01-01T00:00:00Z"})
    )
    return str(path)


@pytest.fixture
def two(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dict[str, Monitors]:
    """Two clusters on which a rollout of `file` was kept."""
    portable = portable_file.read(Path(file))
    label = f"fleet {portable.profile.name} {portable.digest.split(':')[1][:12]}"
    found = {name: changed(Monitors(), label) for name in ("paris", "rome")}

    def opening(member: Member, timeout: float) -> Cluster:
        return opened(found[member.name])

    monkeypatch.setattr(fleet_rollout, "open_member", opening)
    (tmp_path / "fleet.yaml").write_text("schema: 1\nclusters:\n  paris: {lab: a}\n  rome: {lab: b}\n")
    return found


def of_fleet(file: str) -> List[str]:
    return ["fleet", "rollback", file, "--fleet", str(Path(file).parent / "fleet.yaml")]


def somebody_changes(monitors: Monitors) -> None:
    monitors.set("osd", "osd_max_scrubs", "7")


def stay_deaf(monitors: Monitors) -> None:
    seen = {osd: monitors.sources(osd) for osd in range(3)}
    monitors.sources = lambda osd: seen[osd]  # type: ignore[method-assign]


def test_what_is_as_before_ends_with_0(run: Run, monitors: Monitors) -> None:
    code, out, _ = run("rollback", "--cluster", "a", "--format", "json")
    assert (code, json.loads(out)) == (0, [{"change": 1, "target": "osd", "drift": [], "unseen": []}])


def test_what_somebody_else_changed_is_left_and_ends_with_1(run: Run, monitors: Monitors) -> None:
    somebody_changes(monitors)
    drift = [{"who": "osd", "name": "osd_max_scrubs", "ours": "2", "found": "7"}]
    code, out, _ = run("rollback", "--cluster", "a", "--dry-run", "--format", "json")
    assert (code, json.loads(out)[0]["drift"]) == (0, drift)
    code, out, err = run("rollback", "--cluster", "a", "--format", "json")
    assert (code, json.loads(out)[0]["drift"]) == (1, drift)
    assert "warning: osd osd_max_scrubs: found 7 instead of our 2, left as it is" in err


def test_osds_that_do_not_show_it_end_with_4_after_the_result(run: Run, monitors: Monitors) -> None:
    stay_deaf(monitors)
    code, out, err = run("rollback", "--cluster", "a", "--format", "json")
    assert code == 4
    assert len(json.loads(out)[0]["unseen"]) == 3
    assert "error: the database is as before, and not every OSD shows it" in err


@pytest.mark.parametrize(("fault", "code"), [(None, 0), (somebody_changes, 1), (stay_deaf, 4)])
def test_a_fleet_ends_as_the_worst_of_its_clusters(
    run: Run, two: Dict[str, Monitors], file: str, fault: object, code: int
) -> None:
    if callable(fault):
        fault(two["paris"])
    ended, out, _ = run(*of_fleet(file), "--format", "json")
    assert ended == code
    assert [(row["cluster"], len(row["undone"]), row["problem"]) for row in json.loads(out)] == [
        ("paris", 1, None),
        ("rome", 1, None),
    ]


def test_ctrl_c_tells_what_was_taken_back_before_and_ends_with_130(
    run: Run, two: Dict[str, Monitors], file: str
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    two["rome"].before_write = interrupted
    code, out, _ = run(*of_fleet(file), "--format", "json")
    paris, rome = json.loads(out)
    assert (code, len(paris["undone"]), paris["problem"]) == (130, 1, None)
    assert (rome["undone"], rome["problem"]) == ([], "interrupted")


def on_trial(monitors: Monitors, clock: ManualClock) -> Lock:
    """A tuner at work, as `tune` is: its changes are signed otherwise than its claim."""
    lock = Lock(monitors.store, clock, Holder("alice (ceph-tuner, process 7)", "host-a"), heartbeat=False)
    lock.__enter__()
    applier = replace(opened(monitors), clock=clock).applier(lock, "ceph-tuner tune")
    assert applier.apply(applier.plan("osd", {"osd_max_scrubs": 3}), "trial 1", trial=True) is not None
    return lock


def test_what_is_shown_before_it_is_applied_tells_a_trial_under_way_from_one_left_behind(
    run: Run, monitors: Monitors
) -> None:
    lock = on_trial(monitors, ManualClock())
    shown = ("apply", "--cluster", "a", "--set", "osd_max_scrubs=1")
    _, _, err = run(*shown)
    assert "trial 2 is under way, by alice" in err
    assert "left behind" not in err
    lock.__exit__()
    _, _, err = run(*shown)
    assert "trial 2 by ceph-tuner tune was left behind" in err


DRY = ("rollback", "--cluster", "a", "--dry-run")


def test_a_dry_run_says_of_a_trial_that_is_under_way_by_whom_and_that_it_is_not_left_behind(
    run: Run, monitors: Monitors
) -> None:
    lock = on_trial(monitors, ManualClock())
    who = "alice (ceph-tuner, process 7) on host-a, since 1970-01-12 13:46:40 UTC"
    code, out, err = run(*DRY)
    assert code == 0
    assert "left behind" not in err
    assert f"trial 2 is under way, by {who}\n" in err
    assert f"nothing is changed: without --dry-run it is refused while another tuner is at work, {who}\n" in err
    assert "change 2 (osd, trial 1) would be taken back if whoever is at work on it were gone\n" in out
    code, _, err = run("rollback", "--cluster", "a")
    assert (code, who in err) == (3, True)
    lock.check()


def test_a_dry_run_calls_what_a_dead_tuner_had_on_trial_left_behind_and_lets_its_claim_be(
    run: Run, monitors: Monitors
) -> None:
    # its lease ended before the time of the one that looks
    on_trial(monitors, ManualClock(1_000_000.0 - 2 * LEASE_S))
    (claim,) = monitors.store.keys("lock/")
    code, _, err = run(*DRY)
    assert (code, monitors.store.keys("lock/")) == (0, [claim])
    assert "trial 2 by" in err
    assert "was left behind: it is taken back first\n" in err
    assert "nothing is changed: leave --dry-run out to do it\n" in err


def test_a_dry_run_tells_a_trial_left_behind_from_the_work_of_who_came_later(run: Run, monitors: Monitors) -> None:
    on_trial(monitors, ManualClock(1_000_000.0 - 2 * LEASE_S))
    with Lock(monitors.store, ManualClock(), Holder("bob"), heartbeat=False):
        _, _, err = run(*DRY)
    assert "was left behind: it is taken back first\n" in err
    assert "refused while another tuner is at work, bob, since" in err


@pytest.mark.parametrize("wrong", [["--set", "osd_max_scrubs"], ["--set", "osd_max_scrub=1"], ["nowhere.yaml"]])
def test_apply_reads_what_it_was_given_before_it_takes_anything_back(
    wrong: List[str], monitors: Monitors, run: Run
) -> None:
    applier = opened(monitors).applier()
    trial = applier.apply(applier.plan("osd", {"osd_scrub_chunk_max": 5}), trial=True)
    assert trial is not None
    before = dict(monitors.table)
    code, _, _ = run("apply", *wrong, "--cluster", "a", "--yes")
    assert code == 2
    assert monitors.table == before
    code, _, _ = run("apply", "--set", "osd_max_scrubs=3", "--cluster", "a", "--yes")
    assert code == 0
    assert monitors.table == {("osd", "osd_max_scrubs"): "3"}
