from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping
from unittest.mock import ANY

import pytest

from ceph_tuner import __version__
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import BUILD_FILE, LIBRARY, MODULE, OPTION_PREFIX, Plugin, build_of, sources
from ceph_tuner.core.book.executor import BY as BY_BOOK
from ceph_tuner.core.boost.executor import BY as BY_BOOST
from ceph_tuner.core.changes.journal import APPLIED, APPLYING, UNDOING, UNDONE, Journal
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.errors import InputError, Locked, PermissionRefused
from ceph_tuner.core.goals.slo_calendar import parse_slo_calendar
from ceph_tuner.core.goals.stored_slo import SLO_KEY, store_slo
from privileges import not_root
from twins import small_twin


class NoCluster:
    """A cluster that must not be asked."""

    lab = None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def plugin(path: Path) -> Plugin:
    return Plugin(NoCluster(), NoCluster(), path)  # type: ignore[arg-type]


class WithMgr:
    """`ports.Commander` of a twin, with a mgr in which the plugin is enabled."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.modules = [MODULE]
        self.build = ""
        self.at_disabling: Callable[[], None] = lambda: None

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == "mgr dump":
            return json.dumps({"modules": self.modules})
        if prefix == "tuner status" and self.build:
            return json.dumps({"build": self.build})
        if prefix == "mgr module disable":
            self.modules.remove(arguments["module"])
            self.at_disabling()
            return ""
        answer: str = self._inner.mon(prefix, arguments, payload)
        return answer


@pytest.fixture
def cluster() -> Cluster:
    """A twin with a change in its journal and an SLO; the plugin's own files are not there."""
    twin = small_twin()
    twin.applier().apply(twin.applier().plan("osd", {"osd_max_scrubs": 2}))
    twin.applier().undo()
    twin.store.set("slo", "{}")
    return replace(twin, commander=WithMgr(twin.commander))


def purge(cluster: Cluster, path: Path) -> List[str]:
    return Plugin(cluster, cluster.clock, path).uninstall(purge=True)


def everything(cluster: Cluster) -> Dict[str, str]:
    return cluster.store.items("")


def somebody(cluster: Cluster) -> Lock:
    return Lock(cluster.store, cluster.clock, Holder("somebody"), heartbeat=False)


def test_purging_leaves_nothing_where_every_change_is_taken_back(cluster: Cluster, tmp_path: Path) -> None:
    cluster.store.set("lock/0123", "left by something that is no tuner")
    removed = purge(cluster, tmp_path)
    assert everything(cluster) == {}
    keys = [f"{OPTION_PREFIX}{key}" for key in ("journal/00000001", "lock-generation", "slo")]
    assert removed == [f"module {MODULE} disabled", *keys]


@pytest.mark.parametrize(("state", "words"), [(APPLYING, "half done"), (APPLIED, "in force"), (UNDOING, "half done")])
def test_purging_is_refused_as_long_as_a_change_may_have_something_to_take_back(
    cluster: Cluster, tmp_path: Path, state: str, words: str
) -> None:
    journal = Journal(cluster.store)
    (entry,) = journal.entries()
    assert entry.state == UNDONE
    journal.write(replace(entry, state=state))
    # and a later one that is taken back does not hide it
    journal.write(replace(entry, number=2))
    before = {**everything(cluster), "lock-generation": ANY}
    with pytest.raises(InputError, match=f"--purge: found change 1 {words}, expected `ceph-tuner rollback`"):
        purge(cluster, tmp_path)
    assert everything(cluster) == before
    assert json.loads(cluster.commander.mon("mgr dump", {}))["modules"] == [MODULE]


@pytest.mark.parametrize(
    ("who", "trial", "state", "words"),
    [
        (
            f"ceph tuner in mgr.a{BY_BOOK}",
            False,
            APPLIED,
            "change 1, a page of the book. Install that again, and `ceph tuner book off`",
        ),
        (
            f"ceph tuner in mgr.a{BY_BOOST}",
            True,
            APPLIED,
            "change 1, a boost. Install that again, and `ceph tuner boost cancel`",
        ),
        ("ceph tuner in mgr.a", True, APPLIED, "change 1, a trial. Install that again, and `ceph tuner auto off`"),
        ("ceph tuner in mgr.a", True, APPLYING, "change 1, a trial"),
        ("alice", False, APPLIED, ""),
        (f"ceph tuner in mgr.a{BY_BOOK}", False, UNDONE, ""),
    ],
)
def test_an_older_version_is_said_to_be_left_with_what_stands(
    cluster: Cluster, tmp_path: Path, who: str, trial: bool, state: str, words: str
) -> None:
    journal = Journal(cluster.store)
    (entry,) = journal.entries()
    journal.write(replace(entry, who=who, trial=trial, state=state))
    of_the_mgr: Any = cluster.commander
    before = everything(cluster)
    for running, is_newer in (
        ("99.1.0+0123", True),
        (f"{__version__}+0123", False),
        ("0.0.1+0123", False),
        ("x", False),
    ):
        of_the_mgr.build = running
        lines = Plugin(cluster, cluster.clock, tmp_path).left_to_an_older_one()
        assert len(lines) == (1 if is_newer and words else 0)
        assert all(words in line and "99.1.0" in line for line in lines)
    of_the_mgr.build = ""
    assert Plugin(cluster, cluster.clock, tmp_path).left_to_an_older_one() == []
    assert everything(cluster) == before


@pytest.mark.parametrize(
    ("policy", "is_named"),
    [({"boosts": ["scrub"]}, True), ({"boosts": []}, True), ({"without": ["client.iops"]}, False)],
)
def test_an_older_version_is_said_to_refuse_a_calendar_that_it_may_not_know(
    cluster: Cluster, tmp_path: Path, policy: Dict[str, Any], is_named: bool
) -> None:
    objectives = ["client.p95_ms <= 20 ms", "client.iops >= 100"]
    calendar = {"policies": [{"name": "day", "hours": "mon-fri 08:00-20:00", **policy}]}
    store_slo(cluster.store, parse_slo_calendar({"objectives": objectives, "calendar": calendar}))
    of_the_mgr: Any = cluster.commander
    before = everything(cluster)
    for running, is_newer in (("99.1.0+0123", True), (f"{__version__}+0123", False)):
        of_the_mgr.build = running
        told = [line for line in Plugin(cluster, cluster.clock, tmp_path).left_to_an_older_one() if "SLO" in line]
        assert len(told) == (is_newer and is_named)
        assert all("`boosts`" in line and "99.1.0" in line and "slo set -i FILE" in line for line in told)
    assert everything(cluster) == before
    cluster.store.set(SLO_KEY, "{")
    of_the_mgr.build = "99.1.0+0123"
    assert not any("SLO" in line for line in Plugin(cluster, cluster.clock, tmp_path).left_to_an_older_one())


def test_a_tuner_at_work_keeps_its_lock_and_the_plugin(cluster: Cluster, tmp_path: Path) -> None:
    with somebody(cluster):
        before = everything(cluster)
        with pytest.raises(Locked, match="another tuner is at work on this cluster: somebody"):
            purge(cluster, tmp_path)
        assert everything(cluster) == before
    assert json.loads(cluster.commander.mon("mgr dump", {}))["modules"] == [MODULE]
    assert purge(cluster, tmp_path)


def test_no_change_begins_while_the_plugin_is_purged(cluster: Cluster, tmp_path: Path) -> None:
    refused: List[str] = []

    def begin() -> None:
        with pytest.raises(Locked) as refusal:
            somebody(cluster).__enter__()
        refused.append(str(refusal.value))

    assert isinstance(cluster.commander, WithMgr)
    cluster.commander.at_disabling = begin
    purge(cluster, tmp_path)
    assert len(refused) == 1
    assert everything(cluster) == {}


def test_a_damaged_journal_does_not_keep_the_plugin_in_place(cluster: Cluster, tmp_path: Path) -> None:
    cluster.store.set("journal/00000002", "{")
    before = everything(cluster)
    assert Plugin(cluster, cluster.clock, tmp_path).uninstall() == [f"module {MODULE} disabled"]
    assert everything(cluster) == before


def test_what_is_installed_is_a_module_and_a_library_that_is_none() -> None:
    files = sources()
    assert {f"{MODULE}/__init__.py", f"{MODULE}/module.py", f"{LIBRARY}/core/measure/sampling.py"} <= set(files)
    # Ceph takes every directory with a module.py for a module
    assert [name for name in files if name.endswith("/module.py")] == [f"{MODULE}/module.py"]
    assert {Path(name).parts[0] for name in files} == {MODULE, LIBRARY}
    library = {Path(name).parts[1] for name in files if name.startswith(f"{LIBRARY}/")}
    assert library == {"__init__.py", "core", "optimise", "search"}


def test_a_copy_replaces_all_of_an_older_one(tmp_path: Path) -> None:
    (tmp_path / LIBRARY).mkdir()
    (tmp_path / LIBRARY / "gone.py").write_text("")
    (tmp_path / "balancer").mkdir()
    files: Dict[str, str] = sources()
    plugin(tmp_path).copy(files)
    assert not (tmp_path / LIBRARY / "gone.py").exists()
    assert (tmp_path / MODULE / BUILD_FILE).read_text().strip() == build_of(files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["balancer", LIBRARY, MODULE]
    found: List[str] = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.py")]
    assert sorted(found) == sorted(files)
    assert (tmp_path / MODULE / "module.py").stat().st_mode & 0o777 == 0o644


def test_whoever_holds_the_directories_open_as_a_mount_does_sees_the_new_files(tmp_path: Path) -> None:
    files = sources()
    plugin(tmp_path).copy({**files, f"{LIBRARY}/older/part.py": "", f"{MODULE}/module.py": "old"})
    (tmp_path / LIBRARY / "older" / "__pycache__").mkdir()
    (tmp_path / LIBRARY / "older" / "__pycache__" / "part.pyc").write_text("")
    mounted = [os.open(tmp_path / name, os.O_RDONLY) for name in (MODULE, LIBRARY)]
    try:
        plugin(tmp_path).copy(files)
        for name, descriptor in zip((MODULE, LIBRARY), mounted):
            assert set(os.listdir(descriptor)) == {path.name for path in (tmp_path / name).iterdir()} != set()
            assert os.path.samestat(os.fstat(descriptor), (tmp_path / name).stat())
    finally:
        for descriptor in mounted:
            os.close(descriptor)
    assert (tmp_path / MODULE / "module.py").read_text() == files[f"{MODULE}/module.py"]
    assert not (tmp_path / LIBRARY / "older").exists()


def test_a_copy_into_the_empty_directory_that_docker_makes_of_a_missing_mount_fills_it(tmp_path: Path) -> None:
    (tmp_path / MODULE).mkdir(mode=0o700)
    plugin(tmp_path).copy(sources())
    assert (tmp_path / MODULE / "module.py").is_file()
    assert (tmp_path / MODULE).stat().st_mode & 0o777 == 0o755


def test_a_copy_that_cannot_be_written_whole_leaves_the_one_before(tmp_path: Path) -> None:
    files = sources()
    plugin(tmp_path).copy(files)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UnicodeEncodeError):
        plugin(tmp_path).copy({**files, f"{LIBRARY}/core/measure/sampling.py": "new", f"{MODULE}/zone.py": "\udc80"})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_copy_that_is_stopped_halfway_is_no_module_to_a_mgr_and_has_no_build(tmp_path: Path) -> None:
    in_the_way = tmp_path / MODULE / "service.py" / "something"
    in_the_way.mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        plugin(tmp_path).copy(sources())
    assert (tmp_path / LIBRARY / "core" / "measure" / "sampling.py").is_file()
    assert not (tmp_path / MODULE / "module.py").exists()
    assert not (tmp_path / MODULE / BUILD_FILE).exists()


def test_a_link_to_somebodys_checkout_is_refused_and_the_checkout_left_alone(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "own.py").write_text("mine")
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / LIBRARY).symlink_to(checkout)
    with pytest.raises(InputError, match="symbolic link"):
        plugin(modules).copy(sources())
    assert [path.name for path in checkout.iterdir()] == ["own.py"]
    assert [path.name for path in modules.iterdir()] == [LIBRARY]


def test_a_build_names_the_very_files() -> None:
    files = sources()
    assert build_of(files) == build_of(dict(reversed(list(files.items()))))
    assert build_of(files) != build_of({**files, f"{MODULE}/module.py": "pass"})


def test_a_directory_that_cannot_be_written_is_named(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    files = sources()
    with not_root(), pytest.raises(PermissionRefused, match="root"):
        plugin(open_folder).copy(files)
