"""The reference of the commands is what the program says of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from ceph_tuner_cli.main import app
from documented import blocks

DOCS = Path(__file__).resolve().parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import write_commands  # noqa: E402 - it lies beside the page that it writes


@pytest.mark.parametrize("path", sorted(write_commands.pages()), ids=lambda path: path.stem)
def test_the_reference_of_the_commands_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == write_commands.pages()[path], "run `make reference`"


def test_there_is_no_page_without_its_command() -> None:
    assert set(write_commands.PAGES.glob("*.md")) == set(write_commands.pages()) - {write_commands.INDEX}


@pytest.mark.parametrize("path", sorted(write_commands.PAGES.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_of_a_command_has_an_example_of_it(path: Path) -> None:
    name = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    commands = [command.text for block in blocks(path) if block.language == "console" for command in block.commands]
    assert any(text.startswith(name) for text in commands), "write one below what is generated"


@pytest.mark.parametrize("command", write_commands.of_the_plugin(), ids=lambda command: command.stem)
def test_every_argument_of_the_plugins_commands_is_explained(command: write_commands.Command) -> None:
    assert command.paragraphs
    assert [names for names, _, means in command.rows if not means] == []


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
    for page in (DOCS.parent / "benchmarks" / "results").glob("*.md"):
        assert f"\n../benchmarks/results/{page.stem}\n" in index, page.name
