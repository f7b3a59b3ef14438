"""Before a commit and on the hosted CI runs what `make check` and `.ci/run` run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest
from ruamel.yaml import YAML

import debian_packages
import pins

ROOT = pins.FOLDER.parent
TOOLS = Path(sys.executable).parent
HOOKS = ROOT / ".pre-commit-config.yaml"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
FILES = {".", ".github/workflows/*.yml", ".pre-commit-config.yaml"}
"""What `make check` names; pre-commit names the files of a commit."""


def document(path: Path) -> Dict[str, Any]:
    read: Dict[str, Any] = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return read


def hooks() -> List[Dict[str, Any]]:
    (repository,) = document(HOOKS)["repos"]
    assert repository["repo"] == "local"
    of_it: List[Dict[str, Any]] = repository["hooks"]
    return of_it


def command(line: str) -> Tuple[str, ...]:
    """Without what sets its environment, and without the files."""
    words = line[line.index(".venv/bin/") :].split()
    return tuple(word for word in words if word not in FILES | {"--force-exclude"} and not word.startswith("tests/"))


def commands_of_make_check() -> Set[Tuple[str, ...]]:
    said = subprocess.run(["make", "-n", "check"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = [line for line in said.splitlines() if line.startswith(".venv/bin/")]
    return {command(line) for line in lines if not line.startswith(".venv/bin/pip ")}


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: str(hook["id"]))
def test_a_hook_names_a_tool_of_the_environment(hook: Dict[str, Any]) -> None:
    tool, *words = command(hook["entry"])
    assert os.access(TOOLS / Path(tool).name, os.X_OK)
    assert [word for word in words if word.endswith(".py") and not (ROOT / word).is_file()] == []


def test_the_hooks_are_what_make_check_runs() -> None:
    assert {command(hook["entry"]) for hook in hooks()} == commands_of_make_check()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One with the project's hooks and tools, where nothing can be fetched."""
    if not shutil.which("git"):
        debian_packages.install(["git"])
    shutil.copy(HOOKS, tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(TOOLS.parent)
    (tmp_path / ".gitignore").write_text(".venv\nstate\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def committed(repository: Path, name: str, text: str) -> Tuple[int, str]:
    """What the hooks say of a file that is about to be committed."""
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    subprocess.run(["git", "add", "--all"], cwd=repository, check=True)
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **nowhere, "PRE_COMMIT_HOME": str(repository / "state"), "NO_COLOR": "1"}
    done = subprocess.run(
        [TOOLS / "pre-commit", "run", "--files", name],
        cwd=repository, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "hook", "complaint"),
    [
        ("tests/test_it.py", "import os\n", "ruff check", "F401"),
        ("tests/test_it.py", "x = {  }\n", "ruff format", "reformatted"),
        (".github/workflows/ci.yml", "on: push\njobs:\n  one:\n    steps: []\n", "workflows by their schema", "one"),
        (".pre-commit-config.yaml", "repos: 3\n", "", "expected"),
    ],
)
def test_a_file_that_make_check_would_refuse_is_not_committed(
    repository: Path, name: str, text: str, hook: str, complaint: str
) -> None:
    code, said = committed(repository, name, text)
    assert code != 0
    assert complaint.lower() in said.lower()
    failed = re.findall(r"^(.+?)\.{3,}.*Failed$", said, re.MULTILINE)
    assert failed == ([hook] if hook else [])


@pytest.mark.parametrize("name", ["tests/test_it.py", "README.md"])
def test_a_file_without_fault_is_committed(repository: Path, name: str) -> None:
    code, said = committed(repository, name, "x = 1\n")
    assert code == 0, said
    assert "Failed" not in said


def steps(job: str) -> List[Dict[str, Any]]:
    of_job: List[Dict[str, Any]] = document(WORKFLOW)["jobs"][job]["steps"]
    return of_job


def test_the_hosted_ci_runs_what_the_own_one_runs() -> None:
    assert steps("everything")[-1] == {"run": ".ci/run"}


def test_the_hosted_ci_runs_the_unit_tests_on_the_lowest_python_that_setup_py_allows() -> None:
    (python,) = [step["with"]["python-version"] for step in steps("python39") if "with" in step]
    assert f'python_requires=">={python}"' in (ROOT / "setup.py").read_text(encoding="utf-8")
    assert steps("python39")[-1] == {"run": "make test-unit"}


def test_actions_are_named_by_their_commit() -> None:
    named = [step["uses"] for job in ("everything", "python39") for step in steps(job) if "uses" in step]
    assert len(named) == 3
    assert [each for each in named if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each)] == []
