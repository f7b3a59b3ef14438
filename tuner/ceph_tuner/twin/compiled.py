"""The kernel's functions compiled, or as they are where numba is not installed or switched off.

The kernel itself imports no numba. `kernel_compiler.py` takes its functions once more, each bound to compiled versions
of those that it calls. Nothing counts references to the tables, and what is called often is inlined by LLVM: both
together are the difference between one and fifty million requests a second. The machine code is kept
(`kernel_cache.py`), and loaded without numba (`machine_code.py`).

CEPH_TUNER_NUMBA=0 runs the plain functions, which give the same results bit for bit.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, Callable, NamedTuple, Optional

from ceph_tuner.core.errors import TunerError
from ceph_tuner.twin.kernel import (
    background,
    bluestore,
    clients,
    commits,
    degraded,
    deletion,
    dmclock,
    drive,
    events,
    loop,
    processors,
    recovery,
    scrub,
    snaptrim,
    threads,
)
from ceph_tuner.twin.kernel_cache import digest_of, folder_for
from ceph_tuner.twin.machine_code import Entry, MachineCode, keep, kept, loaded, made_for

MODULES = (
    dmclock, processors, events, drive, bluestore, degraded, recovery, scrub, snaptrim, deletion, background, clients,
    threads, commits, loop,
)  # fmt: skip
"""Each calls only those before it."""

SELDOM = frozenset(
    {
        (dmclock, "clean"),
        (processors, "waits_for_processor"),
        (processors, "message_waits"),
        (processors, "thread_waits"),
        (drive, "in_slices"),
        (threads, "choose_wpq"),
        (commits, "trims_applied"),
        (loop, "rare_event"),
        (loop, "_clean_queue"),
        (loop, "_renew_leases"),
        *(
            (module, name)
            for module in (degraded, recovery, scrub, snaptrim, deletion, background)
            for name, function in vars(module).items()
            if isinstance(function, FunctionType) and function.__module__ == module.__name__
        ),
    }
)
"""Functions that are called, not inlined."""

RUN = Entry("run", (int, float), None)
RUN_QUEUES = Entry("run_queues", (int, int, int, int, int, int), float)

SOURCES = ("compiled", "kernel_compiler", "kernel_entries", "kernel_types", "machine_code")
"""Modules beside the kernel that machine code depends on."""


class Functions(NamedTuple):
    """The kernel's entries, and whether they are compiled (then they take addresses, else objects are quicker)."""

    compiled: bool
    run: Callable[..., None]
    run_queues: Callable[..., float]
    cached: bool = False
    """Whether the machine code can be kept."""


def available() -> bool:
    """Whether numba is there and wanted."""
    return os.environ.get("CEPH_TUNER_NUMBA", "1") != "0" and find_spec("numba") is not None


@lru_cache(maxsize=2)
def functions(compile_them: bool = True) -> Functions:
    """`run` and `run_queues`, compiled (at their first call) where that is wanted and possible."""
    if not compile_them or not available():
        return Functions(False, loop.run, dmclock.run_queues)
    package = Path(loop.__file__).parent
    beside = (package.parent / f"{name}.py" for name in SOURCES)
    folder = folder_for(digest_of([*package.glob("*.py"), *beside], made_for()), package)
    return Functions(True, partial(_call, RUN, folder), partial(_call, RUN_QUEUES, folder), folder is not None)


def _call(entry: Entry, folder: Optional[Path], *arguments: Any) -> Any:
    return _function(entry, folder)(*arguments)


@cache
def _function(entry: Entry, folder: Optional[Path]) -> Callable[..., Any]:
    return loaded(code_of(entry, folder), entry)


def code_of(entry: Entry, folder: Optional[Path]) -> MachineCode:
    """An entry's machine code from a folder, or made anew and kept there where there is one."""
    file = folder and folder / f"{entry.name}.code"
    code = kept(file) if file else None
    if code is None:
        # a second to import, and not everywhere installed
        from ceph_tuner.twin.kernel_compiler import machine_code

        code = machine_code(entry)
        # where the disk is full, or another process has removed the folder, the next process makes it again
        with suppress(TunerError):
            if file:
                keep(file, code)
    return code
