"""The optimiser stands alone: the contract in pyproject.toml names all that it may not import."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    # pytest brings it there
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = ROOT / "tuner" / "ceph_tuner"


def test_the_import_contract_forbids_every_other_part() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in document["tool"]["importlinter"]["contracts"] if c["id"] == "optimise"]
    others = {f"ceph_tuner.{path.parent.name}" for path in LIBRARY.glob("*/__init__.py")} - {"ceph_tuner.optimise"}
    assert contract["source_modules"] == ["ceph_tuner.optimise"]
    assert set(contract["forbidden_modules"]) == others | {"ceph_lab", "ceph_tuner_cli", "ceph_tuner_profiles", "tuner"}
