from __future__ import annotations

import re
import subprocess
import sys
from typing import Any, Iterator, Mapping, Tuple

import pytest
import typer

from ceph_tuner_cli import fleet_commands, main
from ceph_tuner_cli.tree import SWITCHES, Loaded

TABLES = {"ceph-tuner": main.COMMANDS, "ceph-tuner fleet": fleet_commands.COMMANDS}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_name_leads_to_a_command_and_its_line_fits_the_list(table: Mapping[str, Tuple[str, str, str]]) -> None:
    commands = Loaded({name: (module, attribute) for name, (module, attribute, _) in table.items()})
    assert list(commands) == list(table)
    for name, (_, _, line) in table.items():
        assert commands[name].name == name
        # beside the longest name, within the frame
        assert len(line) + max(map(len, table)) + 6 <= 80, line


def test_switches_are_there_once_on_every_level() -> None:
    def levels(command: Any) -> None:
        own = [parameter for parameter in command.params if parameter in SWITCHES]
        assert own == SWITCHES, command.name
        for inner in getattr(command, "commands", {}).values():
            levels(inner)

    levels(typer.main.get_command(main.app))


def commands(command: Any, words: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], Any]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


EVERY = dict(commands(typer.main.get_command(main.app)))


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_fits_80_columns_cuts_no_name_and_points_to_no_file_of_a_checkout(
    words: Tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = EVERY[words]
    out = command.get_help(command.context_class(command, info_name=" ".join(("ceph-tuner", *words))))
    assert max(map(len, out.splitlines())) <= 80
    assert not re.search(r"\b(?:docs|benchmarks|examples|tests)/", out)
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    assert [name for option in options for name in option.opts if name not in out] == []
    for name in getattr(command, "commands", {}):
        assert f"\n  {name}" in out


@pytest.mark.parametrize(
    ("words", "imported"),
    [
        (["--version"], set()),
        (["knobs", "osd_max_scrubs"], {"knobs"}),
        (["fleet", "--help"], {"fleet_commands"}),
        (["fleet", "status", "--fleet", "/nosuch"], {"fleet_commands", "fleet"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_only_what_is_called_is_imported(words: list, imported: set) -> None:
    script = f"""
import sys
sys.argv = ["ceph-tuner", *{words!r}]
from ceph_tuner_cli.main import COMMANDS, main
from ceph_tuner_cli import fleet_commands
del sys.modules["ceph_tuner_cli.fleet_commands"]
own = {{module for module, _, _ in (*COMMANDS.values(), *fleet_commands.COMMANDS.values())}}
try:
    main()
except SystemExit:
    pass
print("\\n" + " ".join(name for name in sorted(own) if "ceph_tuner_cli." + name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()[-1].split()) == imported
