"""The standard library's modules, on each Python that the tests run on."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import FrozenSet


def modules() -> FrozenSet[str]:
    """Their names, those of C included."""
    if sys.version_info >= (3, 10):
        return sys.stdlib_module_names
    folder = Path(sysconfig.get_path("stdlib"))
    files = [path for where in (folder, folder / "lib-dynload") for path in where.iterdir() if path.name[0] != "."]
    names = {path.name.partition(".")[0] for path in files if path.suffix in ("", ".py", ".so")}
    # what came later is imported only there
    return frozenset(names | set(sys.builtin_module_names) | {"tomllib"})
