"""The tree of commands: each is imported when it is called, and all understand the same switches.

`ceph-tuner --help` and completion name every command; only the one that runs waits for what it imports.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import typer
from typer.core import TyperGroup

from ceph_tuner_cli import prefix_option
from ceph_tuner_cli.render import be_colourless, be_quiet

DEBUG = "CEPH_TUNER_DEBUG"
"""Set: an unexpected error shows its traceback."""

EPILOG = "Exit codes other than 0 and 1 mean the same for every command: docs/exit-codes.md."


def _debug(wanted: bool) -> None:
    if wanted:
        os.environ[DEBUG] = "1"


_PANEL = "Options of every command"

_carrier = typer.Typer(add_completion=False)


@_carrier.command()
def _switches(
    quiet: bool = typer.Option(
        False,
        "--quiet",
        "-q",
        callback=be_quiet,
        expose_value=False,
        help="Neither notes nor progress.",
        rich_help_panel=_PANEL,
    ),
    no_color: bool = typer.Option(
        False,
        "--no-color",
        callback=be_colourless,
        is_eager=True,
        expose_value=False,
        help="No colours; NO_COLOR=1 does the same.",
        rich_help_panel=_PANEL,
    ),
    debug: bool = typer.Option(
        False,
        "--debug",
        callback=_debug,
        is_eager=True,
        expose_value=False,
        help=f"Show where an unexpected error comes from; {DEBUG}=1 does the same.",
        rich_help_panel=_PANEL,
    ),
) -> None:
    """Carry the switches, so that typer makes options of them."""


SWITCHES: List[Any] = list(typer.main.get_command(_carrier).params)
"""What every command understands, before its name and after it."""


class Loaded(Mapping[str, Any]):
    """Commands by name, imported when somebody asks for one: name -> (module, attribute)."""

    def __init__(self, places: Mapping[str, Tuple[str, str]]) -> None:
        """Import nothing yet."""
        self._places, self._known = places, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            module, attribute = self._places[name]
            found = getattr(import_module(f"ceph_tuner_cli.{module}"), attribute)
            self._known[name] = _switched(_command(name, found))
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _command(name: str, found: Any) -> Any:
    """Make a command of a function, or of a group."""
    outer = typer.Typer(add_completion=False)
    outer.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        outer.add_typer(found, name=name)
    else:
        outer.command(name)(found)
    made: Any = typer.main.get_command(outer)
    return made.commands[name]


def _switched(command: Any) -> Any:
    """Give a command the switches, and all below it; a group whose commands are loaded later does so itself.

    One that takes a cluster is also given the ways to reach it.
    """
    inner = getattr(command, "commands", {})
    if not isinstance(inner, Loaded):
        if any("--cluster" in parameter.opts for parameter in command.params):
            command.params += prefix_option.OPTIONS
        command.params += SWITCHES
        command.epilog = EPILOG
        for each in inner.values():
            _switched(each)
    return command


def group_of(table: Mapping[str, Tuple[str, str, str]]) -> type[TyperGroup]:
    """Give the class of a group whose commands are name -> (module, attribute, a line that says what it is for)."""

    class Later(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.params += SWITCHES
            self.epilog = EPILOG
            self.commands: Any = Loaded({name: (module, attribute) for name, (module, attribute, _) in table.items()})
            self._lines: Dict[str, Any] = {
                name: typer.main.get_command(_line(name, text)) for name, (_, _, text) in table.items()
            }

        def list_commands(self, ctx: Any) -> List[str]:
            return list(table)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """Give what stands for a command in lists; nothing is imported for them."""
            return self._lines.get(cmd_name)

        def resolve_command(self, ctx: Any, args: List[str]) -> Tuple[Any, Any, List[str]]:
            name, found, rest = super().resolve_command(ctx, args)
            return name, found and self.commands[name], rest

    return Later


def _line(name: str, text: str) -> typer.Typer:
    made = typer.Typer(add_completion=False)
    made.command(name, help=text)(lambda: None)
    return made
