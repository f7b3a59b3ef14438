"""Runs Ceph's own checks on what `lay_out_upstream.py` wrote: flake8, mypy, pytest, by Ceph's tox.ini.

`python upstream/run_checks.py CEPH UPSTREAM`: what the checks need of the checkout is copied, and tox runs in the copy.
It installs what tox.ini names for each environment from the package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOX = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--python", sys.executable, "tox"]
PARTS = ("src/pybind", "src/python-common", "src/mypy.ini", "src/mypy-constrains.txt")
FRONTEND = shutil.ignore_patterns("frontend", "node_modules", "__pycache__", ".tox")

ENVIRONMENTS = {
    # its other commands count names of registries in cephadm, by git
    "flake8": ["-x", "testenv:flake8.commands=flake8 --config=tox.ini tuner"],
    # it names stubs that the index no longer has (types-pkg_resources); the module needs none of them
    "mypy": [
        *("-x", "testenv:mypy.deps=mypy"),
        *("-x", "testenv:mypy.commands=mypy --config-file=../../mypy.ini -m tuner"),
    ],
    "py3": [],
}
"""Of tox.ini, narrowed to the module."""


def check(ceph: Path, upstream: Path, tree: Path) -> int:
    """Exit code of the first that fails."""
    for part in PARTS:
        if (ceph / part).is_dir():
            shutil.copytree(ceph / part, tree / part, ignore=FRONTEND, symlinks=True)
        elif (ceph / part).is_file():
            shutil.copy(ceph / part, tree / part)
        else:
            # not every release has each
            (tree / part).write_text("", encoding="utf-8")
    shutil.copytree(upstream / "src", tree / "src", dirs_exist_ok=True)
    # this project's own paths would lead the checks astray
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    for name, narrowed in ENVIRONMENTS.items():
        tox = [*TOX, "run", "-e", name, *narrowed]
        arguments = ["--", "tuner"] if name == "py3" else []
        done = subprocess.run([*tox, *arguments], cwd=tree / "src/pybind/mgr", env=environment, check=False)
        if done.returncode:
            return done.returncode
    return 0


def main() -> int:
    """Exit code."""
    ceph, upstream = (Path(each).resolve() for each in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        return check(ceph, upstream, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
