"""The package ceph-mgr-tuner: what it holds, and how it comes into a real mgr, is upgraded, and leaves no trace."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Iterator, Set

import built_once
import pytest

import build_debian
import ceph_tuner
import debian_packages
import python_distributions
from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.plugin import LIBRARY, MODULE, Plugin, build_of, sources
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import InputError, TunerError
from waiting import until

pytestmark = pytest.mark.long_on_reef

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = "/usr/share/ceph/mgr"
NEWER = "9.8.7"


def built(sdist: Path, folder: Path) -> Path:
    debian_packages.install(["debhelper", "python3-venv"])
    (package,) = build_debian.build(sdist, folder, python_distributions.epoch(ROOT))
    return package


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests of it are in several processes: those with a lab, and the others."""
    source = built_once.sdist(tmp_path_factory)
    return built_once.file_of(tmp_path_factory, "mgr-package", lambda folder: built(source, folder))


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the next release: other files, another version."""
    folder = tmp_path_factory.mktemp("newer")
    tree = folder / "tree"
    python_distributions.export(ROOT, tree)
    init = tree / "tuner/ceph_tuner/__init__.py"
    init.write_text(init.read_text("utf-8").replace(ceph_tuner.__version__, NEWER), encoding="utf-8")
    (tree / "mgr_module/tuner/new_part.py").write_text('"""Comes with it."""\n', encoding="utf-8")
    committer = ["-c", "user.name=t", "-c", "user.email=t@t.invalid"]
    for words in (["init", "-q"], ["add", "-A"], [*committer, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", "-C", str(tree), *words], check=True)
    return built(python_distributions.build_sdist(tree, folder / "sdist"), folder)


@pytest.mark.slow
def test_it_holds_what_mgr_install_copies_and_whose_it_is(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", str(package), str(tmp_path)], check=True)
    modules = tmp_path / MODULES.lstrip("/")
    files = {str(path.relative_to(modules)): path.read_text("utf-8") for path in modules.rglob("*") if path.is_file()}
    assert files.pop(f"{MODULE}/package.txt") == "ceph-mgr-tuner\n"
    assert files.pop(f"{MODULE}/build.txt") == build_of(sources()) + "\n"
    assert files == sources()
    assert {path.name for path in modules.iterdir()} == {MODULE, LIBRARY}


@pytest.mark.slow
def test_it_fits_every_architecture_and_needs_a_mgr(package: Path) -> None:
    said = subprocess.run(["dpkg-deb", "-f", str(package)], capture_output=True, text=True, check=True).stdout
    fields = dict(line.split(": ", 1) for line in said.splitlines() if not line.startswith(" "))
    assert (fields["Package"], fields["Version"]) == ("ceph-mgr-tuner", f"{ceph_tuner.__version__}-1")
    assert fields["Architecture"] == "all"
    assert "ceph-mgr (>= 17.2)" in fields["Depends"]


@pytest.mark.long
def test_it_is_the_same_bytes_when_it_is_built_again(package: Path, tmp_path: Path) -> None:
    again = python_distributions.build_sdist(ROOT, tmp_path / "sdist")
    assert built(again, tmp_path).read_bytes() == package.read_bytes()


@pytest.fixture
def modules_of(any_lab: Lab) -> Iterator[Lab]:
    """The lab's mgrs see the packages' directories as they see those of Ceph's own modules: by links."""
    links = [f"/lab/mgr-modules/{name}" for name in (MODULE, LIBRARY)]
    any_lab.run(["sh", "-c", f"ln -s {MODULES}/{MODULE} {MODULES}/{LIBRARY} /lab/mgr-modules/"])
    yield any_lab
    any_lab.run(["rm", "-f", *links])
    # nothing where the test came to its end
    any_lab.run(["dpkg", "--purge", "ceph-mgr-tuner"], timeout=300)


def traces(lab: Lab) -> Set[str]:
    """The lab's whole system: each file with its size and age, each folder, what dpkg knows of packages.

    Byte code, logs, and what daemons write come and go (each start of a mgr leaves reports of crashes of Ceph's own
    modules); what dpkg and apt keep about themselves is none of a package.
    """
    left_out = [
        *("./proc", "./sys", "./dev", "./lab", "./tmp", "./run", "./var/log", "./var/cache", "./var/lib/apt"),
        *("./var/lib/dpkg", "./var/lib/ceph"),
    ]
    pruned = " -o ".join([*(f"-path {path}" for path in left_out), "-name __pycache__"])
    script = (
        f"cd / && find . \\( {pruned} \\) -prune -o -type d -printf '%p\\n' -o -printf '%p %s %T@ %l\\n'; "
        "ls /var/lib/dpkg/info; cat /var/lib/dpkg/status"
    )
    return set(lab.run(["sh", "-c", script], timeout=120).splitlines())


def put(lab: Lab, package: Path) -> None:
    """Install a package of the host inside of the lab, with apt."""
    (lab.places.shared / package.name).write_bytes(package.read_bytes())
    lab.run(["apt-get", "install", "-y", "-q", f"/lab/{package.name}"], timeout=300)
    (lab.places.shared / package.name).unlink()


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_apt_installs_it_and_a_mgr_loads_upgrades_and_loses_it(modules_of: Lab, package: Path, newer: Path) -> None:
    lab = modules_of
    before = traces(lab)
    with closing(open_cluster(lab.name)) as cluster:
        plugin = Plugin(cluster, SystemClock(), lab.host_path(MODULES))
        put(lab, package)
        lab.run(["ceph", "mgr", "module", "enable", "tuner", "--force"])
        until(lambda: plugin.status().running == build_of(sources()), 90, pause=1)
        # the program sees whose files they are, and leaves them alone
        assert plugin.install().running == build_of(sources())
        put(lab, newer)
        with pytest.raises(InputError, match="ceph-mgr-tuner"):
            plugin.install()
        # in production systemd starts every mgr anew; here nothing of that runs. One that was active starts itself
        for _ in lab.mgrs:
            until(lambda: lab.json(["ceph", "mgr", "stat"])["available"], 90, pause=1)
            lab.run(["ceph", "mgr", "fail"])
        until(lambda: str(plugin.status().running).startswith(f"{NEWER}+"), 90, pause=1)
        assert lab.host_path(f"{MODULES}/{MODULE}/new_part.py").is_file()
        removed = plugin.uninstall(purge=True)
        assert removed[0] == "module tuner disabled"
        assert lab.host_path(f"{MODULES}/{MODULE}/module.py").is_file()
        # a mgr that starts reads every module, enabled or not; the lab's run as root, and write byte code meanwhile
        until(lambda: len(plugin.status().standbys) == len(lab.mgrs) - 1, 90, pause=1)
        until(lambda: lab.json(["ceph", "mgr", "stat"])["available"], 90, pause=1)
        lab.run(["apt-get", "remove", "-y", "-q", "ceph-mgr-tuner"], timeout=300)
        with pytest.raises(TunerError):
            cluster.commander.mon("tuner status", {})
        assert cluster.store.keys("") == []
    assert sorted(traces(lab) ^ before) == []


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_it_takes_the_place_of_files_that_were_copied(any_lab: Lab, package: Path) -> None:
    modules = any_lab.host_path(MODULES)
    any_lab.run(["mkdir", f"{MODULES}/{MODULE}", f"{MODULES}/{LIBRARY}"])
    for name in ("build.txt", "module.py", "of_an_older_version.py"):
        (modules / MODULE / name).write_text("old\n", encoding="utf-8")
    (modules / LIBRARY / "gone.py").write_text("old\n", encoding="utf-8")
    try:
        put(any_lab, package)
        found = {
            str(path.relative_to(modules)) for name in (MODULE, LIBRARY) for path in (modules / name).rglob("*.py")
        }
        assert found == set(sources())
    finally:
        any_lab.run(["dpkg", "--purge", "ceph-mgr-tuner"], timeout=300)
    assert not (modules / MODULE).exists()
    assert not (modules / LIBRARY).exists()
