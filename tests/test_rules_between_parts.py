"""The design's rules that import-linter cannot state by itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import python39
import standard_library
from imports import imported

if sys.version_info >= (3, 11):
    import tomllib
else:
    # pytest brings it there
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "tuner" / "ceph_tuner"
CORE = sorted((LIBRARY / "core").rglob("*.py"))
PLUGIN = sorted((ROOT / "mgr_module" / "tuner").glob("*.py"))
OF_CEPH = {"mgr_module", "mgr_util", "ceph_module", "rados", "object_format"}


def layers(contract: str) -> set:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (named,) = [each for each in document["tool"]["importlinter"]["contracts"] if each["id"] == contract]
    return {module.strip() for layer in named["layers"] for module in layer.split("|")}


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_a_core_file_imports_the_standard_library_alone(path: Path) -> None:
    assert imported(path) - standard_library.modules() <= {"ceph_tuner"}


@pytest.mark.parametrize("path", PLUGIN, ids=lambda path: path.stem)
def test_a_plugin_file_imports_the_standard_library_the_core_and_ceph_alone(path: Path) -> None:
    assert imported(path) - standard_library.modules() <= {"ceph_tuner", "tuner"} | OF_CEPH


def test_the_architecture_names_every_contract() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    contracts = [contract["id"] for contract in document["tool"]["importlinter"]["contracts"]]
    assert re.findall(r"^   - \*([\w-]+)\*: ", page, re.MULTILINE) == contracts


@pytest.mark.parametrize(("contract", "package"), [("layers", LIBRARY), ("core-layers", LIBRARY / "core")])
def test_every_package_has_its_layer(contract: str, package: Path) -> None:
    name = ".".join(package.relative_to(LIBRARY.parent).parts)
    assert layers(contract) == {f"{name}.{path.parent.name}" for path in package.glob("*/__init__.py")}


def test_no_module_lies_loose_in_the_library() -> None:
    assert [path.name for path in LIBRARY.glob("*.py")] == ["__init__.py"]


def test_the_core_imports_on_python_3_9() -> None:
    modules = [
        ".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts) for path in CORE if path.stem != "__init__"
    ]
    statements = "; ".join(f"import {module}" for module in modules)
    done = python39.run(f"sys.path.insert(0, {str(ROOT / 'tuner')!r}); {statements}")
    assert done.returncode == 0, done.stderr


def test_the_plugin_compiles_on_python_3_9() -> None:
    compiles = "[compile(open(name, encoding='utf-8').read(), name, 'exec') for name in sys.argv[1:]]"
    done = python39.run(compiles, *PLUGIN)
    assert done.returncode == 0, done.stderr
