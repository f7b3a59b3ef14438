"""The kernel's functions as numba compiles them, or as they are where numba is not installed or switched off.

The kernel itself imports no numba. Here its functions are taken once more, each bound to compiled versions of those
that it calls. Nothing counts references to the tables, and what is called often is inlined by LLVM: both together are
the difference between one and fifty million requests a second (inlining by numba itself is as quick, but takes minutes
to compile). The machine code is kept (`kernel_cache.py`).

CEPH_TUNER_NUMBA=0 runs the plain functions, which give the same results bit for bit.
"""

from __future__ import annotations

import os
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence

from ceph_tuner.twin.kernel import (
    background,
    bluestore,
    clients,
    commits,
    deletion,
    dmclock,
    drive,
    events,
    loop,
    recovery,
    scrub,
    snaptrim,
    threads,
)
from ceph_tuner.twin.kernel_cache import digest_of, folder_for

MODULES = (
    dmclock, events, drive, bluestore, recovery, scrub, snaptrim, deletion, background, clients, threads, commits,
    loop,
)  # fmt: skip
"""Each calls only those before it."""

ENTRIES = ("run", "run_queues")
"""What Python calls."""

SELDOM = frozenset(
    {
        (dmclock, "clean"),
        (drive, "in_slices"),
        (threads, "choose_wpq"),
        (commits, "trims_applied"),
        (loop, "rare_event"),
        (loop, "_clean_queue"),
        (loop, "_renew_leases"),
        *(
            (module, name)
            for module in (recovery, scrub, snaptrim, deletion, background)
            for name, function in vars(module).items()
            if isinstance(function, FunctionType) and function.__module__ == module.__name__
        ),
    }
)
"""Functions that are called, not inlined."""


class Functions(NamedTuple):
    """The kernel's entries, and whether they are compiled (then they take arrays, else objects are quicker)."""

    compiled: bool
    run: Callable[..., None]
    run_queues: Callable[..., float]
    cached: bool = False
    """Whether the machine code can be kept."""


def available() -> bool:
    """Whether numba is there and wanted."""
    return os.environ.get("CEPH_TUNER_NUMBA", "1") != "0" and find_spec("numba") is not None


def is_kept() -> bool:
    """Whether the machine code of the kernel's loop is there, so that nobody has to compile it."""
    folder = _folder() if available() else None
    return folder is not None and any(folder.rglob("loop.run-*.nbi"))


@lru_cache(maxsize=1)
def _folder() -> Optional[Path]:
    package = Path(loop.__file__).parent
    return folder_for(digest_of([*package.glob("*.py"), Path(__file__)]), package)


@lru_cache(maxsize=2)
def functions(compile_them: bool = True) -> Functions:
    """`run` and `run_queues`, compiled (at their first call) where that is wanted and possible."""
    if not compile_them or not available():
        return Functions(False, loop.run, dmclock.run_queues)
    # seconds to import, and not everywhere installed
    import numba

    # numba's type information lacks what turns reference counting off
    njit: Any = numba.njit
    folder = _folder()
    compiled: Dict[Any, Any] = {}
    # nor does it have what numba makes of the environment
    config: Any = numba.config
    elsewhere = config.CACHE_DIR
    try:
        # a function takes its folder when it is made
        config.CACHE_DIR = str(folder or "")
        for module in MODULES:
            bound = {name: compiled.get(_key(value), value) for name, value in vars(module).items()}
            for name, function in vars(module).items():
                if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                    own = FunctionType(function.__code__, bound, name, function.__defaults__)
                    own.__module__ = module.__name__
                    entry = name in ENTRIES
                    inlined = not entry and (module, name) not in SELDOM
                    made = njit(
                        own,
                        cache=entry and folder is not None,
                        error_model="numpy",
                        _nrt=False,
                        forceinline=inlined,
                        # nobody but the kernel calls it
                        no_cpython_wrapper=not entry,
                        no_cfunc_wrapper=True,
                    )
                    made.get_call_template = partial(_for_any_number, made.get_call_template)
                    bound[name] = compiled[function] = made
    finally:
        config.CACHE_DIR = elsewhere
    return Functions(True, compiled[loop.run], compiled[dmclock.run_queues], folder is not None)


def _for_any_number(template: Callable[..., Any], arguments: Sequence[Any], names: Any) -> Any:
    """The compiled version of a function for a call; numba would make another for each number that a call gives.

    Where it is inlined the number reaches all of it anyway; a third more functions would be compiled.
    """
    from numba.core.types import unliteral

    return template(tuple(map(unliteral, arguments)), names)


def _key(value: Any) -> Any:
    return value if isinstance(value, FunctionType) else None
