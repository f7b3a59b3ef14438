"""Every Python that is started imports nothing of the directory that the caller happens to be in."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PATH = [str(ROOT / part) for part in ("tuner", "cli", "profiles", "mgr_module", "tests/mgr")]

PLANTED = (
    "json",
    "shlex",
    "rados",
    "runpy",
    "selectors",
    "pickle",
    "struct",
    "socket",
    "queue",
    "pip",
    "ceph_tuner",
    "numpy",
)
PLANT = """
import os
with open({note!r}, "a") as note:
    note.write(__name__ + "\\n")
raise SystemExit(7)
"""

# place -> what a caller does there
STARTS: Dict[str, str] = {
    "tuner/ceph_tuner/cluster/session.py": """
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.errors import TunerError
from ceph_tuner.cluster.session import NoLibradosError
try:
    Session(conf="/nonexistent/ceph.conf", timeout=2)
except NoLibradosError as error:
    assert "before it was ready" not in str(error), error
except TunerError:
    pass
""",
    "tuner/ceph_tuner/processes/worker_process.py": """
from ceph_tuner.processes.process_pool import ProcessPool
with ProcessPool(2) as pool:
    assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]
""",
    "tuner/ceph_tuner/workers/process_workers.py": """
from ceph_tuner.workers import CallResult
from ceph_tuner.workers.process_workers import ProcessWorkers
from planted_call import call
with ProcessWorkers(1) as workers:
    workers.start("a", call, 3)
    events = list(workers.events())
    assert isinstance(events[-1], CallResult), events
""",
    "mgr_module/tuner/worker.py": """
import mgr_stand_in, os
os.environ["PYTHONPATH"] = sys.path[0] + "::."
from tuner.worker import WorkerError, ask_worker
try:
    ask_worker({"version": 1}, sys.executable, 30)
except WorkerError as error:
    assert "cannot answer (request)" in str(error), error
    found = str(error)
assert found
""",
    "tuner/ceph_lab/chroot.py": """
from ceph_lab.chroot import _pip
import subprocess
assert subprocess.run([*_pip(), "--version"], capture_output=True).stdout.startswith(b"pip ")
""",
}
# these run at the root of a lab's chroot, whatever directory their caller is in
IN_A_CHROOT = {
    "tuner/ceph_lab/cluster.py",
    "tuner/ceph_lab/loads/client_process.py",
    "tuner/ceph_lab/loads/session.py",
}
A_DEFAULT = {"mgr_module/tuner/options.py"}
SPELT_OUT = "tuner/ceph_tuner/core/ceph/interpreter.py"
ALONE = {"tuner/ceph_lab/supervision.py"}
"""Run by its path under -I and -S, with the standard library alone (tests/lab/test_supervision.py)."""

A_SWITCH = re.compile(r"[\"']-[mc][\"']")
MAY_START = re.compile(rf"executable|[\"']python3?[\"']|multiprocessing|interpreter|{A_SWITCH.pattern}")
"""What files are looked at more closely for: to take each apart would take longer than all else here."""


@pytest.mark.parametrize("place", STARTS)
def test_what_lies_in_the_current_directory_is_not_imported(place: str, tmp_path: Path) -> None:
    hostile, note, calls = tmp_path / "here", tmp_path / "note", tmp_path / "calls"
    hostile.mkdir()
    calls.mkdir()
    for name in PLANTED:
        (hostile / f"{name}.py").write_text(PLANT.format(note=str(note)))
    (calls / "planted_call.py").write_text("def call(given, tell):\n    return given\n")
    caller = calls / "caller.py"
    # as an installed program: the first entry of its path is its own directory
    caller.write_text(f"import sys\nsys.path[:0] = {PATH!r}\nif __name__ == '__main__':\n" + indented(STARTS[place]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, str(caller)],
        cwd=hostile,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not note.exists(), f"imported from the current directory: {note.read_text().split()}"
    assert done.returncode == 0, done.stderr


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def product() -> Iterator[Path]:
    for part in PATH[:4]:
        yield from sorted(Path(part).rglob("*.py"))


def words(node: ast.List) -> List[object]:
    return [item.value if isinstance(item, ast.Constant) else None for item in node.elts]


def starts_python(path: Path) -> bool:
    """Whether it names a Python to run, or has `multiprocessing` start one."""
    text = path.read_text(encoding="utf-8")
    if not MAY_START.search(text):
        return False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable":
            return True
        if isinstance(node, ast.Constant) and node.value in ("python", "python3"):
            return True
        if isinstance(node, ast.Import) and any(name.name.startswith("multiprocessing") for name in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            ("multiprocessing", "ceph_tuner.core.ceph.interpreter")
        ):
            return True
        if (
            isinstance(node, ast.List)
            and any(word in ("-m", "-c") for word in words(node)[1:])
            and "sh" not in words(node)
        ):
            return True
    return False


def test_every_place_that_starts_a_python_is_tried_above() -> None:
    found = {str(path.relative_to(ROOT)) for path in product() if starts_python(path)}
    assert found == set(STARTS) | IN_A_CHROOT | A_DEFAULT | ALONE | {SPELT_OUT}


def test_one_place_spells_out_how_a_python_is_started() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in product()}
    lists = [
        (place, words(node))
        for place, text in texts.items()
        if A_SWITCH.search(text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.List)
    ]
    found = {place for place, given in lists if {"-m", "-c"} & set(given[1:]) and "sh" not in given}
    assert found <= IN_A_CHROOT


def test_what_builds_starts_no_python_in_the_directory_of_its_caller() -> None:
    places = [path for part in ("packages", "requirements", "upstream") for path in (ROOT / part).glob("*.py")]
    starts = [
        (path.name, node)
        for path in places
        if starts_python(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "subprocess.run"
        # ssh-keygen
        and not ast.unparse(node.args[0]).startswith("[*check")
    ]
    assert len(starts) >= 4
    loose = [
        f"{name}:{node.lineno}"
        for name, node in starts
        if not any(given.arg == "cwd" for given in node.keywords) and "'-I'" not in ast.unparse(node)
    ]
    assert loose == []
