"""The design's rules that import-linter cannot state by itself."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import debian_packages

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


def imported_roots(path: Path) -> set:
    roots = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            roots.add(node.module.split(".")[0])
    return roots


def layers(contract: str) -> set:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (named,) = [each for each in document["tool"]["importlinter"]["contracts"] if each["id"] == contract]
    return {module.strip() for layer in named["layers"] for module in layer.split("|")}


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_a_core_file_imports_the_standard_library_alone(path: Path) -> None:
    of_ceph = {"rados"} if path.stem == "guardian" else set()
    assert imported_roots(path) - set(sys.stdlib_module_names) <= {"ceph_tuner"} | of_ceph


@pytest.mark.parametrize("path", PLUGIN, ids=lambda path: path.stem)
def test_a_plugin_file_imports_the_standard_library_the_core_and_ceph_alone(path: Path) -> None:
    assert imported_roots(path) - set(sys.stdlib_module_names) <= {"ceph_tuner", "tuner"} | OF_CEPH


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


def on_python39(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    """The machine's own one, else Debian's PyPy of that version."""
    candidates = [Path(directory) / "python3.9" for directory in os.environ["PATH"].split(":")]
    candidates += sorted(Path.home().glob(".pyenv/versions/3.9*/bin/python3.9"))
    environment = dict(os.environ)
    # a pyenv shim stands in the PATH even where no 3.9 is chosen
    found = next(
        (each for each in candidates if each.exists() and not subprocess.call([each, "-c", ""], stderr=-3)), None
    )
    if found is None:
        # bookworm's is the last one of 3.9
        tree = debian_packages.unpacked(("pypy3", "pypy3-lib"), suite="bookworm")
        found = tree / "usr/bin/pypy3"
        environment["LD_LIBRARY_PATH"] = str(next((tree / "usr/lib").glob("*/libpypy3*.so")).parent)
    version = "import sys; assert sys.version_info[:2] == (3, 9), sys.version; "
    return subprocess.run(
        [found, "-I", "-B", "-c", version + program, *map(str, words)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def test_the_core_imports_on_python_3_9() -> None:
    modules = [
        ".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts) for path in CORE if path.stem != "__init__"
    ]
    statements = "; ".join(f"import {module}" for module in modules)
    done = on_python39(f"sys.path.insert(0, {str(ROOT / 'tuner')!r}); {statements}")
    assert done.returncode == 0, done.stderr


def test_the_plugin_compiles_on_python_3_9() -> None:
    done = on_python39("[compile(open(name, encoding='utf-8').read(), name, 'exec') for name in sys.argv[1:]]", *PLUGIN)
    assert done.returncode == 0, done.stderr
