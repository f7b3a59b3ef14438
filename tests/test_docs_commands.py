"""The reference of the commands is what the program says of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from ceph_tuner_cli.main import app

DOCS = Path(__file__).resolve().parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import write_commands  # noqa: E402 - it lies beside the page that it writes


def test_the_reference_of_the_commands_is_up_to_date() -> None:
    assert write_commands.PAGE.read_text(encoding="utf-8") == write_commands.page(), "run `make reference`"


@pytest.mark.parametrize(
    ("name", "command"), list(write_commands.commands(typer.main.get_command(app))), ids=lambda value: str(value)
)
def test_every_command_and_each_of_its_options_explains_itself(name: str, command: object) -> None:
    assert getattr(command, "help", None), name
    for parameter in command.params:  # type: ignore[attr-defined]
        assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_every_page_is_reached_from_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or f"\n{page.stem}\n" in index, page.name
    for page in (DOCS / "results").glob("*.md"):
        assert f"results/{page.stem}" in index or "results/*" in index, page.name
