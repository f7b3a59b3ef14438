"""The pages of the plugin hold what the plugin has: its options, commands and health checks."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import List

import pytest

from ceph_tuner.core.autopilot.policy import Policy, option_name, options

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import write_options  # noqa: E402 - it lies beside the pages that it writes


def text(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(write_options.PAGES))
def test_the_options_on_a_page_are_the_plugins_own(page: str) -> None:
    assert text(page) == write_options.page(page), "run `make reference`"


def test_every_option_is_on_one_page_with_its_default() -> None:
    rows = [
        line for page in write_options.PAGES for line in text(page).splitlines() if re.match(r"\| `[a-z_]+` \|", line)
    ]
    names = [row.split("`")[1] for row in rows]
    for row in write_options._options():
        assert names.count(row.name) == 1, row.name


@pytest.mark.parametrize("name", [option_name(item) for item in options()])
def test_each_threshold_of_the_automatic_mode_is_an_option_with_that_default(name: str) -> None:
    (row,) = [row for row in write_options._options() if row.name == name]
    item = next(item for item in options() if option_name(item) == name)
    assert row.default == getattr(Policy(), item.name)
    assert row.meaning


def test_an_option_that_a_page_names_is_there() -> None:
    known = {row.name for row in write_options._options()}
    for page in ("automatic.md", "plugin.md", "health-checks.md", "metrics.md"):
        named = set(re.findall(r"`((?:auto|guard|worker|history|metrics)_[a-z_]+)`", text(page)))
        assert named <= known, f"{page}: {named - known}"


def commands() -> List[str]:
    """Every command of the module, from its source: the module itself runs inside a ceph-mgr only."""
    tree = ast.parse((ROOT / "mgr_module" / "tuner" / "module.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [
        str(call.args[0].value)
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id in ("read_command", "write_command")
        and isinstance(call.args[0], ast.Constant)
    ]


def test_the_commands_are_found() -> None:
    assert "tuner auto on" in commands()
    assert len(commands()) > 20


@pytest.mark.parametrize("command", commands())
def test_every_command_is_on_the_plugins_page(command: str) -> None:
    words = command.split()
    # `… rm all` and `profile show NAME` stand beside their neighbours in one row
    assert re.search(rf"`(?:ceph tuner )?{' '.join(words[1:])}\b", text("plugin.md")), command


@pytest.mark.parametrize("page", ["plugin.md", "automatic.md"])
def test_no_page_names_a_command_that_is_not_there(page: str) -> None:
    known = set(commands())
    for words in re.findall(r"`ceph (tuner [a-z ]+)", text(page)):
        parts = words.split()
        assert any(" ".join(parts[:length]) in known for length in range(2, len(parts) + 1)), words


def test_the_plugins_page_leads_to_the_automatic_mode_and_the_health_checks() -> None:
    for page in ("automatic.md", "health-checks.md"):
        assert f"]({page})" in text("plugin.md")
