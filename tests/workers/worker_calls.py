"""What the tests have carried out elsewhere: found there by its name."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.workers import Tell


def double(given: int, tell: Tell) -> int:
    tell({"half": given})
    return 2 * given


def drawn(seed: int, tell: Tell) -> float:
    """Depends on the last digits of linear algebra."""
    matrix = np.random.default_rng(seed).random((120, 120))
    return float(np.linalg.slogdet(matrix @ matrix.T + np.eye(120))[1])


def refuses(given: Any, tell: Tell) -> None:
    raise InputError("slo.yaml:4", f"{given}", "something else")


def breaks(given: Any, tell: Tell) -> None:
    raise KeyError(given)


def cannot_be_sent(given: Any, tell: Tell) -> Any:
    return threading.Lock()


def kills_its_worker(given: Any, tell: Tell) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kills_its_first_worker(mark: str, tell: Tell) -> int:
    """As if somebody else had done it: `mark` remembers that it was so."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def waits(given: str, tell: Tell) -> None:
    """Says who it is, until it is stopped."""
    for _ in range(600):
        tell({"pid": os.getpid()})
        time.sleep(0.1)


def waits_for(mark: str, tell: Tell) -> int:
    """Until the file is there."""
    for _ in range(600):
        if Path(mark).exists():
            break
        time.sleep(0.1)
    return 0


def is_known_by_identity(given: Any, tell: Tell) -> bool:
    return given is TENTACLE
