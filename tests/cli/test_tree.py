from __future__ import annotations

import subprocess
import sys
from typing import Any, Mapping, Tuple

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
