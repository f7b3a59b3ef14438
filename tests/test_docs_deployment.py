"""What docs/deployment.md promises of the module's directories, on a real mgr."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Iterator

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import LIBRARY, MODULE, Plugin
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import TunerError
from lab_plugin import with_plugin
from waiting import until


@pytest.fixture(scope="module")
def loaded(tentacle_lab: Lab) -> Iterator[Cluster]:
    with with_plugin(tentacle_lab) as cluster:
        yield cluster


def test_a_copy_for_containers_leaves_what_runs_alone(loaded: Cluster, tmp_path: Path) -> None:
    before = Plugin(loaded, SystemClock()).status()
    copied = Plugin(loaded, SystemClock(), tmp_path).install(enable=False)
    assert {path.name for path in tmp_path.iterdir()} == {MODULE, LIBRARY}
    assert copied.build == copied.ours == before.running
    assert Plugin(loaded, SystemClock()).status() == before


def test_a_mgr_without_the_directories_runs_on_without_the_module_and_without_a_word(
    loaded: Cluster, tentacle_lab: Lab, tmp_path: Path
) -> None:
    def answers() -> bool:
        try:
            loaded.commander.mon("tuner status", {})
        except TunerError:
            return False
        return True

    def restart_all() -> None:
        # a mgr that was active starts itself anew, and only then looks for modules
        for _ in tentacle_lab.mgrs:
            loaded.commander.mon("mgr fail", {})
            until(lambda: tentacle_lab.json(["ceph", "mgr", "stat"])["available"])

    modules = tentacle_lab.mgr_modules
    for name in (MODULE, LIBRARY):
        shutil.move(modules / name, tmp_path / name)
    try:
        restart_all()
        until(lambda: not answers())
        # docs/deployment.md says to look for oneself: Ceph has no health check for it
        assert not any(name.startswith("MGR_MODULE") for name in tentacle_lab.json(["ceph", "health"])["checks"])
        assert MODULE in tentacle_lab.json(["ceph", "mgr", "dump"])["modules"]
    finally:
        for name in (MODULE, LIBRARY):
            shutil.move(tmp_path / name, modules / name)
        restart_all()
        until(answers)
