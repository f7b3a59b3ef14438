"""A Python 3.9 for the tests: ceph-mgr of the older releases runs the core on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, Tuple

import debian_packages
from ceph_lab.places import cache_directory

Interpreter = Tuple[Path, Dict[str, str]]
"""The program, and its environment."""


def run(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program's text on it."""
    python, environment = _interpreter()
    version = "import sys; assert sys.version_info[:2] == (3, 9), sys.version; "
    return subprocess.run(
        [python, "-I", "-B", "-c", version + program, *map(str, words)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def _interpreter() -> Interpreter:
    installed = next((python for python in _candidates() if python.exists() and _runs(python)), None)
    if installed is not None:
        return installed, dict(os.environ)
    return _of_debian() if shutil.which("apt-get") else _of_uv()


def _candidates() -> Iterator[Path]:
    if sys.version_info[:2] == (3, 9):
        yield Path(sys.executable)
    for directory in os.environ["PATH"].split(":"):
        yield Path(directory) / "python3.9"
    yield from sorted(Path.home().glob(".pyenv/versions/3.9*/bin/python3.9"))


def _runs(python: Path) -> bool:
    """A shim of pyenv stands in the PATH even where no 3.9 is chosen."""
    return subprocess.call([python, "-c", ""], stderr=subprocess.DEVNULL) == 0


def _of_debian() -> Interpreter:
    # bookworm's PyPy is the last one of 3.9
    tree = debian_packages.unpacked(("pypy3", "pypy3-lib"), suite="bookworm")
    libraries = next((tree / "usr/lib").glob("*/libpypy3*.so")).parent
    return tree / "usr/bin/pypy3", {**os.environ, "LD_LIBRARY_PATH": str(libraries)}


def _of_uv() -> Interpreter:
    """CPython, fetched into the cache and not installed."""
    folder = cache_directory() / "python3.9"
    command = [Path(sys.executable).parent / "uv", "python", "install", "--quiet", "--no-bin", "3.9"]
    subprocess.run(command, check=True, env={**os.environ, "UV_PYTHON_INSTALL_DIR": str(folder)})
    return next(folder.glob("*/bin/python3.9")), dict(os.environ)
