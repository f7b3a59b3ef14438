"""What docs/exit-codes.md says, held against the program."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Type

import pytest
import typer

from ceph_tuner.cluster import dashboard
from ceph_tuner.core import errors
from ceph_tuner.core.errors import TunerError
from ceph_tuner.workers import WorkersGone
from ceph_tuner_cli import main

DOCS = Path(__file__).resolve().parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import write_commands  # noqa: E402 - it lies beside the pages

PAGE = (DOCS / "exit-codes.md").read_text(encoding="utf-8")


def rows(heading: str) -> List[List[str]]:
    """Cells of the table with this heading in its first column."""
    table = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def kinds(kind: Type[TunerError] = TunerError) -> Iterator[Type[TunerError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from kinds(inner)


WITH_ERRORS_OF_THEIR_OWN = (dashboard.NotByRest, WorkersGone)
KINDS = [kind for kind in kinds() if kind.__module__ == errors.__name__]
TOLD = {name: int(row[0]) for row in rows("code") for name in re.findall(r"`(\w+)`", row[2])}


COMMANDS: Dict[str, Any] = dict(write_commands.commands(typer.main.get_command(main.app)))


def ended(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def fail(**_: Any) -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as stopped:
        main.main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_the_code_of_the_page_and_the_program_ends_with_it(
    kind: Type[TunerError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {errors.InputError: ("--a", "b", "c"), errors.CommandFailed: ("x", -5, "y")}
    error = kind(*next((words for base, words in given.items() if issubclass(kind, base)), ("why",)))
    assert ended(monkeypatch, error) == kind.exit_code == TOLD[kind.__name__]
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {error.advised}\n"


def test_the_page_names_no_error_that_is_not_there() -> None:
    assert set(TOLD) == {kind.__name__ for kind in KINDS}


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_every_error_ends_with_a_next_step_or_with_what_was_expected(kind: Type[TunerError]) -> None:
    assert set(WITH_ERRORS_OF_THEIR_OWN) <= set(kinds())
    assert kind.next_step or issubclass(kind, errors.InputError)


def test_what_nobody_thought_of_is_one_line_and_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, ZeroDivisionError("by\nnothing")) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: unexpected ZeroDivisionError: by nothing. ")
    for words in ("`ceph-tuner history`", "--debug", "report"):
        assert words in line
    monkeypatch.setenv("CEPH_TUNER_DEBUG", "1")
    assert ended(monkeypatch, ZeroDivisionError("by nothing")) == 70
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_the_help_of_exactly_the_listed_commands_says_when_they_end_with_1() -> None:
    listed = {row[0].strip("`") for row in rows("command")}
    assert {name for name, command in COMMANDS.items() if "xit code 1" in (command.help or "")} == listed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_leads_to_the_page_and_every_command_has_the_switches(name: str) -> None:
    for code in ("2 the input", "3 try again", "4 stopped", "130 interrupted"):
        assert code in COMMANDS[name].epilog
    options = {word for parameter in COMMANDS[name].params for word in parameter.opts}
    assert {"--quiet", "-q", "--no-color", "--debug"} <= options


def test_the_document_of_every_command_with_a_format_is_described() -> None:
    table = PAGE.partition("| command | document |")[2]
    described = set(re.findall(r"^\| `(ceph-tuner [\w -]+)` \| \S", table, re.MULTILINE))
    with_format = {
        name for name, command in COMMANDS.items() if any("--format" in each.opts for each in command.params)
    }
    assert described == with_format
    assert set(COMMANDS) - with_format == {"ceph-tuner lab exec", "ceph-tuner controller", "ceph-tuner guardian"}
