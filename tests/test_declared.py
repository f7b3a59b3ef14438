"""What the program imports is what setup.py asks for: nothing comes along by chance with something else."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Set

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = {"ceph_tuner", "ceph_tuner_cli", "ceph_tuner_profiles", "tuner"}
CEPHS = {"mgr_module", "rados", "rbd"}
"""Where Ceph runs they are there."""
DISTRIBUTION = {"ruamel": "ruamel.yaml", "sklearn": "scikit-learn", "skopt": "scikit-optimize"}
"""Of modules that are called otherwise."""


def imported(folder: Path) -> Set[str]:
    found: Set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(name.name.split(".")[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.split(".")[0])
    return found


def declared() -> Set[str]:
    names = re.findall(r"""["']([A-Za-z][A-Za-z0-9._-]*)(?:\[[a-z]+\])?>=""", (ROOT / "setup.py").read_text())
    return {name.lower() for name in names}


@pytest.mark.skipif(sys.version_info < (3, 10), reason="does not know the standard library's names")
def test_every_import_is_declared() -> None:
    known = set(sys.stdlib_module_names) | OURS | CEPHS
    asked = set().union(*(imported(ROOT / folder) for folder in ("tuner", "cli", "profiles", "mgr_module"))) - known
    assert {"requests", "numpy"} <= asked
    assert {DISTRIBUTION.get(name, name).lower() for name in asked} - declared() == set()
