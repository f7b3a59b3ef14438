"""Tests of what only root may do, run as root or not."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator

NOBODY = 65534


@contextmanager
def not_root() -> Iterator[None]:
    """The block runs without root's rights, on whatever is open to everybody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
