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

EPILOG = (
    "Exit codes other than 0 and 1 mean the same for every command: 2 the input cannot be used or no monitor answers, "
    "3 try again later, 4 stopped to protect the cluster, 130 interrupted."
)


def _debug(wanted: bool) -> None:
    if wanted:
        os.environ[DEBUG] = "1"


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
    ),
    no_color: bool = typer.Option(
        False,
        "--no-color",
        callback=be_colourless,
        is_eager=True,
        expose_value=False,
        help="No colours; NO_COLOR=1 does the same.",
    ),
    debug: bool = typer.Option(
        False,
        "--debug",
        callback=_debug,
        is_eager=True,
        expose_value=False,
        help=f"Show where an unexpected error comes from; {DEBUG}=1 does the same.",
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
            target = getattr(import_module(f"ceph_tuner_cli.{module}"), attribute)
            self._known[name] = _with_switches(_command(name, target))
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _command(name: str, target: Any) -> Any:
    """Make a command of a function, or of a group."""
    outer = typer.Typer(add_completion=False)
    outer.callback()(lambda: None)
    if isinstance(target, typer.Typer):
        outer.add_typer(target, name=name)
    else:
        outer.command(name)(target)
    command: Any = typer.main.get_command(outer)
    return command.commands[name]


def _with_switches(command: Any) -> Any:
    """Give a command the switches, and all below it; a group whose commands are loaded later does so itself.

    One that takes a cluster is also given the ways to reach it.
    """
    inner = getattr(command, "commands", {})
    if not isinstance(inner, Loaded):
        if any("--cluster" in parameter.opts for parameter in command.params):
            command.params += prefix_option.OPTIONS
        command.params += SWITCHES
        command.epilog = EPILOG
        # rich would cut the names of options at 80 columns
        command.rich_markup_mode = None
        for each in inner.values():
            # whole in lists: click cuts what it takes out of the text
            each.short_help = each.short_help or " ".join((each.help or "").partition("\n\n")[0].split())
            _with_switches(each)
    return command


def group_of(table: Mapping[str, Tuple[str, str, str]]) -> type[TyperGroup]:
    """Give the class of a group whose commands are name -> (module, attribute, a line that says what it is for)."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.params += SWITCHES
            self.epilog = EPILOG
            self.rich_markup_mode = None
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
            name, command, rest = super().resolve_command(ctx, args)
            return name, command and self.commands[name], rest

    return LazyGroup


def _line(name: str, text: str) -> typer.Typer:
    line = typer.Typer(add_completion=False)
    line.command(name, help=text, short_help=text)(lambda: None)
    return line
