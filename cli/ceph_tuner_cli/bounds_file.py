"""A file of the markers by which regimes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Tuple

from ceph_tuner.core.bounded import read_file, read_json
from ceph_tuner.core.regimes.bounds import RegimeBounds, parse_bounds


def read_bounds(file: Path) -> Tuple[str, RegimeBounds]:
    """The file as it is written, and what it says. Raises InputError that names the place in it."""
    text = read_file(file, "the markers of regimes, as JSON").decode("utf-8", "replace")
    return text, parse_bounds(read_json(text, str(file)), str(file))
