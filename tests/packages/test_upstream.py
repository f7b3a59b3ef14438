"""What a pull request to Ceph consists of. Ceph's own checks run on it in `make upstream`, which needs a checkout."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, Set

import pytest

import lay_out_upstream
import python39

pytestmark = pytest.mark.slow

STAND_INS: Dict[str, str] = {
    "src/pybind/mgr/CMakeLists.txt": "set(mgr_modules\n  test_orchestrator\n  volumes)\n",
    "src/pybind/mgr/tox.ini": "           -m stats \\\n           -m volumes \n\n    rgw \\\n    smb\ncommands =\n",
    "ceph.spec.in": "%package mgr-rook\nSummary: Rook\n\n%files mgr-rook\n",
    "doc/mgr/index.rst": "    SMB module <smb>\n    Progress Module <progress>\n",
    "debian/control": "Package: ceph-mgr-rook\n",
    "PendingReleaseNotes": "* RGW: a note.\n",
}
"""The lines of Ceph's files that ours are put beside."""


MODULES = lay_out_upstream.MODULES
STAND_IN = Path(__file__).resolve().parents[1] / "mgr"


def in_a_mgr(laid_out: Path) -> str:
    """Statements after which the module is found, as by a mgr: with Ceph's framework beside it."""
    return f"sys.path[:0] = [{str(laid_out / MODULES)!r}, {str(STAND_IN)!r}]; import mgr_stand_in"


@pytest.fixture(scope="module")
def ceph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("ceph")
    for name, text in STAND_INS.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    return tree


@pytest.fixture(scope="module")
def laid_out(ceph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("upstream")
    assert lay_out_upstream.lay_out(ceph, output) == []
    return output


def test_files_of_ceph_keep_every_line_and_get_ours(ceph: Path, laid_out: Path) -> None:
    for name, text in STAND_INS.items():
        changed = (laid_out / name).read_text("utf-8")
        assert "tuner" in changed, name
        lines = iter(changed.splitlines())
        assert all(line in lines for line in text.splitlines()), name


def test_a_file_whose_place_is_gone_is_refused() -> None:
    with pytest.raises(ValueError, match="expected '  volumes"):
        lay_out_upstream.changed("src/pybind/mgr/CMakeLists.txt", "set(mgr_modules)\n")


def test_a_file_that_the_checkout_lacks_is_named(tmp_path: Path) -> None:
    assert set(lay_out_upstream.lay_out(tmp_path / "nothing", tmp_path / "output")) == set(STAND_INS)


def test_it_is_one_package_that_imports_itself_and_the_standard_library(laid_out: Path) -> None:
    imported: Set[str] = set()
    module = laid_out / MODULES / "tuner"
    for path in module.rglob("*.py"):
        if "tests" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    imported.add(str(node.module).partition(".")[0])
    # `tests`: Ceph's, where its unit tests run
    assert imported - set(getattr(sys, "stdlib_module_names", imported)) <= {"tuner", "tests"}
    assert "ceph_tuner" not in imported


def test_a_mgr_imports_it_on_python_3_9(laid_out: Path) -> None:
    done = python39.run(f"{in_a_mgr(laid_out)}; import tuner; print(tuner.Module.__module__)")
    assert (done.returncode, done.stdout) == (0, "tuner.module\n"), done.stderr


def test_where_there_is_no_mgr_it_says_so(laid_out: Path) -> None:
    done = python39.run(f"sys.path.insert(0, {str(laid_out / MODULES)!r}); import tuner")
    assert done.returncode != 0
    assert "No module named 'mgr_module'" in done.stderr


def test_the_optimiser_is_the_installed_package(laid_out: Path) -> None:
    script = (
        f"import sys; {in_a_mgr(laid_out)}\n"
        "import json, tuner.worker\n"
        "request = json.loads(sys.stdin.read())\n"
        "print(json.dumps(tuner.worker.ask_worker(request, sys.executable, 120)))\n"
    )
    request = {
        "version": 1,
        "release": "20.2.4",
        "slo": {"name": "some", "objectives": ["client.p95_ms <= 80 ms"]},
        "in_force": {"osd_mclock_profile": "balanced"},
        "baseline": {"client.p95_ms": 98.0},
        "told": [{"profile": "balanced", "values": {"client.p95_ms": 98.0}}],
        "seed": 1,
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        env={name: value for name, value in os.environ.items() if name != "UNITTEST"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["proposals"][0]["settings"]


def test_slices_are_closed_up_and_mean_the_same() -> None:
    text = "a = b[c :]\nd = {e : f[len(g) : h], 'i : [j :]': lambda k : l[:m]}\nn = o[\n    p :\n]\n"
    changed = lay_out_upstream.closed_up(text)
    assert "b[c:]" in changed
    assert "f[len(g): h]" in changed
    assert "'i : [j :]'" in changed
    assert ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text))


def test_every_source_of_the_module_means_the_same(laid_out: Path) -> None:
    for path, text in lay_out_upstream.sources().items():
        assert ast.dump(ast.parse(lay_out_upstream.closed_up(text))) == ast.dump(ast.parse(text)), path
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("UNITTEST", None)
    said = subprocess.run(
        [sys.executable, "-c", f"import sys; {in_a_mgr(laid_out)}; import tuner.core; print(tuner.core.__version__)"],
        env=environment, cwd="/", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == lay_out_upstream.ceph_tuner.__version__
