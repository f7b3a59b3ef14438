"""The kernel's functions as numba compiles them, or as they are where numba is not installed or switched off.

`kernel.py` itself imports no numba. Here its functions are taken once more, each bound to compiled versions of those
that it calls. Nothing counts references to the arrays, and what is called often is inlined by LLVM: both together are
the difference between one and fifty million requests a second (inlining by numba itself is as quick, but takes minutes
to compile). The machine code is kept (`kernel_cache.py`).

CEPH_TUNER_NUMBA=0 runs the plain functions, which give the same results bit for bit.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, Callable, Dict, NamedTuple

from ceph_tuner.twin import kernel
from ceph_tuner.twin.kernel_cache import digest_of, folder_for

ENTRIES = ("run", "drive")
"""What Python calls."""

SELDOM = frozenset(
    {
        "clean",
        "_background_committed",
        "_background_ends",
        "_background_operation_done",
        "_choose_wpq",
        "_clean",
        "_delete_some",
        "_ec_reads",
        "_finish_task",
        "_in_slices",
        "_pump",
        "_pull",
        "_push",
        "_rare",
        "_recovered",
        "_scrub_allowed",
        "_scrub_on",
        "_scrub_chunk_begins",
        "_scrub_chunk_cost",
        "_scrub_read",
        "_scrub_step_cost",
        "_next_object",
        "_trim_clone",
        "_trims_go_on",
        "_renew_leases",
        "_wait_for_snaps",
        "_start_tasks",
        "_trim_some",
    }
)
"""Functions that are called, not inlined."""


class Functions(NamedTuple):
    """The kernel's entries, and whether they are compiled (then they take arrays, else lists are quicker)."""

    compiled: bool
    run: Callable[..., None]
    drive: Callable[..., float]
    cached: bool = False
    """Whether the machine code can be kept."""


def available() -> bool:
    """Whether numba is there and wanted."""
    return os.environ.get("CEPH_TUNER_NUMBA", "1") != "0" and find_spec("numba") is not None


@lru_cache(maxsize=2)
def functions(compile_them: bool = True) -> Functions:
    """`run` and `drive`, compiled (at their first call) where that is wanted and possible."""
    if not compile_them or not available():
        return Functions(False, kernel.run, kernel.drive)
    # seconds to import, and not everywhere installed
    import numba

    # numba's type information lacks what turns reference counting off
    njit: Any = numba.njit
    source = Path(kernel.__file__)
    folder = folder_for(digest_of([source, Path(__file__)]), source.parent)
    bound: Dict[str, Any] = dict(vars(kernel))
    # nor does it have what numba makes of the environment
    config: Any = numba.config
    elsewhere = config.CACHE_DIR
    try:
        # a function takes its folder when it is made
        config.CACHE_DIR = str(folder or "")
        for name, function in vars(kernel).items():
            if isinstance(function, FunctionType) and function.__module__ == kernel.__name__:
                own = FunctionType(function.__code__, bound, name, function.__defaults__)
                own.__module__ = kernel.__name__
                entry = name in ENTRIES
                inlined = not entry and name not in SELDOM
                options = {"error_model": "numpy", "_nrt": False, "forceinline": inlined}
                bound[name] = njit(own, cache=entry and folder is not None, **options)
    finally:
        config.CACHE_DIR = elsewhere
    return Functions(True, bound["run"], bound["drive"], folder is not None)
