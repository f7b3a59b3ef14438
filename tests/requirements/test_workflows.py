"""The hosted CI: what it runs is there, and what `make test` leaves out runs at night. CONTRIBUTING says it all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

import pytest
from test_hooks import document

import pins

ROOT = pins.FOLDER.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def jobs(path: Path) -> List[Dict[str, Any]]:
    return list(document(path)["jobs"].values())


def calls(path: Path, key: str) -> Iterator[str]:
    """What the steps of a workflow run, or use."""
    return (step[key] for job in jobs(path) for step in job["steps"] if key in step)


def targets(path: Path) -> Set[str]:
    """Of the Makefile, that a workflow makes by itself."""
    return {call.split()[1] for call in calls(path, "run") if call.startswith("make ")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_makes_what_the_makefile_has_with_actions_that_cannot_change(path: Path) -> None:
    assert targets(path) <= set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert [use for use in calls(path, "uses") if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", use)] == []
    assert all(job["timeout-minutes"] <= 360 for job in jobs(path))
    assert document(path)["permissions"] == {"contents": "read"}


def test_the_tests_that_make_test_leaves_out_run_every_night_where_none_is_skipped() -> None:
    (left_out,) = re.findall(r"^test: .*\n\t.*-m '([^']+)' \$\(TESTS\)", MAKEFILE, re.MULTILINE)
    assert left_out == "not quiet and not long"
    nightly, ci = (ROOT / ".github" / "workflows" / f"{name}.yml" for name in ("nightly", "ci"))
    assert "long" in targets(nightly)
    # YAML 1.2, by which `on` is a text
    assert document(nightly)["on"]["schedule"]
    assert jobs(nightly)
    for job in jobs(nightly):
        assert job["container"] == document(ci)["jobs"]["everything"]["container"]
        assert "--privileged" in job["container"]["options"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_contributing_says_what_a_workflow_runs(path: Path) -> None:
    (row,) = (line for line in CONTRIBUTING.splitlines() if line.startswith("|") and f"`{path.name}`" in line)
    for target in targets(path) - {"compiled"}:
        assert f"`make {target}`" in row
    assert ".ci/run" not in calls(path, "run") or "`.ci/run`" in row
