"""The optimiser stands alone: the contract in pyproject.toml names all that it may not import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = ROOT / "tuner" / "ceph_tuner"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads pyproject.toml with tomllib")
def test_the_import_contract_forbids_every_other_part() -> None:
    import tomllib

    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in document["tool"]["importlinter"]["contracts"] if c["id"] == "bayesian"]
    parts = {path.stem for path in LIBRARY.glob("*.py")} | {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    others = {f"ceph_tuner.{part}" for part in parts - {"__init__", "bayesian"}}
    assert contract["source_modules"] == ["ceph_tuner.bayesian"]
    assert set(contract["forbidden_modules"]) == others | {"ceph_tuner_cli", "ceph_tuner_profiles", "tuner"}
