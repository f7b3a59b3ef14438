"""What tests of packages in several processes look at, and none changes, is built by the first of them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Callable

import pytest

import python_distributions

ROOT = Path(__file__).resolve().parent.parent.parent


def file_of(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], Path]) -> Path:
    """The one file that `build` puts into a folder of this name; `build` is called once in a run of the tests."""
    own = factory.getbasetemp()
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder, note = run / name, run / f"{name}.built"
    with note.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        path = file.read()
        if not path:
            folder.mkdir(exist_ok=True)
            path = str(build(folder))
            file.write(path)
        return Path(path)


def sdist(factory: pytest.TempPathFactory) -> Path:
    """This tree's source distribution."""
    return file_of(factory, "sdist", lambda folder: python_distributions.build_sdist(ROOT, folder))
