"""What happens where a call is carried out: the same in a process of this machine and in a worker of a Dask cluster."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import ceph_tuner
from ceph_tuner.core.errors import TunerError
from ceph_tuner.twin.compiled import available, functions
from ceph_tuner.workers import Argument, Call, Tell

_ALONE = threading.Lock()
"""Calls take turns within a process: its linear algebra has one number of threads for all of them."""


_PARTS = ("core", "optimise", "processes", "recommend", "search", "twin", "workers")
"""Beside the library's root."""


@dataclass(frozen=True)
class Refusal:
    """In place of an answer: why there is none."""

    reason: str


@dataclass(frozen=True)
class WorkerCondition:
    """What a worker is like."""

    edition: str
    """Which ceph-tuner it has; the same edition gives the same answers."""
    compiled: bool
    """Whether it has numba; without it simulations take many times as long."""
    cached: bool
    """Whether what numba compiles can be kept, for its next start and for others on its machine."""


def call_outcome(call: Call[Argument], argument: Argument, tell: Tell) -> Any:
    """Its answer, or `Refusal` where it raised something."""
    try:
        # one thread for linear algebra: quicker for small matrices, and the last digits are the same everywhere
        with _ALONE, threadpool_limits(1):
            return call(argument, tell)
    except TunerError as error:
        return Refusal(str(error))
    except Exception as error:  # one call's fault must not end the others
        return Refusal(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")


@lru_cache(maxsize=1)
def condition() -> WorkerCondition:
    """What this process is like."""
    compiled = available()
    return WorkerCondition(EDITION, compiled, compiled and functions().cached)


def _edition() -> str:
    digest = hashlib.sha256()
    root = Path(ceph_tuner.__file__).parent
    for path in sorted(path for part in _PARTS for path in (root / part).rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return f"{ceph_tuner.__version__} ({digest.hexdigest()[:12]})"


# once and at the beginning: of what this process has loaded
EDITION = _edition()
"""The version, and a digest of the sources that an answer depends on."""
