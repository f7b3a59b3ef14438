"""How a Python of its own is started: nothing of the current directory is imported.

`python -c` and `python -m` look for modules in the current directory first. A `json.py` that somebody left there would
run with the rights of whoever calls the tuner.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import List, Sequence

# isolated: no current directory, no PYTHON* variables, no packages of the user's; -B stands for one of those variables
_ISOLATED = ("-I", "-B", "-u", "-c")
_MODULE = (
    "import os, runpy, sys; module, path = sys.argv[1:3]; del sys.argv[1:3]; "
    "sys.path[:0] = path.split(os.pathsep) if path else []; "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)


def running_text(python: str, program: str, *arguments: str) -> List[str]:
    """Command that runs a program handed over as text."""
    return [python, *_ISOLATED, program, *arguments]


def running_module(python: str, module: str, path: Sequence[str] = ()) -> List[str]:
    """Command that runs a module; folders of PYTHONPATH and of `path` come first. Relative ones are left out."""
    folders = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *path]
    return [python, *_ISOLATED, _MODULE, module, os.pathsep.join(filter(os.path.isabs, folders))]


def isolate_multiprocessing() -> None:
    """Have `multiprocessing` start its processes so, and all that those start. They get this process' own path."""
    os.environ["PYTHONSAFEPATH"] = "1"
    if sys.version_info < (3, 11):
        # these do not know the variable, and will not change any more; no flag but this one leaves the directory out
        from multiprocessing import util

        flags: List[str] = [*subprocess._args_from_interpreter_flags(), "-I"]  # type: ignore[attr-defined]
        util._args_from_interpreter_flags = lambda: flags  # type: ignore[attr-defined]
