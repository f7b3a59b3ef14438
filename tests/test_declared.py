"""What the program imports is what setup.py asks for: nothing comes along by chance with something else."""

from __future__ import annotations

from pathlib import Path
from typing import Set, Tuple

import pytest
from packaging.utils import canonicalize_name

import pins
import standard_library
from imports import imported

ROOT = Path(__file__).resolve().parents[1]
OURS = {"ceph_lab", "ceph_tuner", "ceph_tuner_cli", "ceph_tuner_profiles", "tuner"}
PEERS = {"botorch", "gpytorch", "torch"}
"""Of benchmarks/search.py, which leaves out those that are not installed."""
CEPHS = {"mgr_module", "rados", "rbd", "tests"}
"""Where Ceph runs they are there."""
PROGRAM = ("tuner", "cli", "profiles", "mgr_module")
TOOLS = ("tests", "benchmarks", "dashboards", "docs", "packages", "requirements", "upstream")
DISTRIBUTION = {
    "cocoex": "coco-experiment",
    "cyclonedx": "cyclonedx-python-lib",
    "markdown_it": "markdown-it-py",
    "ruamel": "ruamel.yaml",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
}
"""Of modules that are called otherwise."""


def declared(*extras: str) -> Set[str]:
    return {canonicalize_name(each.name) for extra in extras for each in pins.declared()[extra]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folders", "extras"),
    [(PROGRAM, ("", "dask", "keyring")), (TOOLS, tuple(pins.declared()))],
    ids=["program", "tools"],
)
def test_every_import_is_declared(folders: Tuple[str, ...], extras: Tuple[str, ...]) -> None:
    imports = set().union(*(imported(path) for folder in folders for path in (ROOT / folder).rglob("*.py")))
    outside = imports - standard_library.modules() - OURS - CEPHS
    if folders == TOOLS:
        modules = [path for folder in TOOLS for path in (ROOT / folder).rglob("*.py")]
        outside -= PEERS | {path.parent.name if path.stem == "__init__" else path.stem for path in modules}
    assert {"requests", "numpy"} <= outside
    assert {canonicalize_name(DISTRIBUTION.get(name, name)) for name in outside} - declared(*extras) == set()
