"""Writes docs/commands.md from the program's own help, so that it cannot be out of date (`make reference`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator, List, Tuple

import typer

from ceph_tuner_cli.main import app

PAGE = Path(__file__).parent / "commands.md"
INTRODUCTION = """# Commands

Every command of `ceph-tuner`, from its own help. Guides: [the lab](lab.md), [loads](loads.md), [tuning](tune.md),
[SLOs](slo.md), [profiles](profiles.md), [safe writes](safe-writes.md) and [the plugin](plugin.md), with the commands
that it adds to `ceph`.

Exit codes: 0 done, 1 a negative result, 2 something given cannot be used,
3 try again later, 4 stopped to protect the cluster, 130 interrupted.
"""


def commands(command: Any, path: Tuple[str, ...] = ("ceph-tuner",)) -> Iterator[Tuple[str, Any]]:
    """Every command that does something, with its whole name."""
    nested = getattr(command, "commands", None)
    if nested is None:
        yield " ".join(path), command
        return
    for name, inner in nested.items():
        yield from commands(inner, (*path, name))


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _rows(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            names = f"`{(parameter.metavar or parameter.name).upper()}`"
        else:
            names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        yield f"| {names} | {_one_line(getattr(parameter, 'help', '') or '')} |"


def page() -> str:
    """The whole page."""
    parts: List[str] = [INTRODUCTION]
    for name, command in commands(typer.main.get_command(app)):
        paragraphs = [_one_line(part) for part in (command.help or "").split("\n\n") if part.strip()]
        rows = list(_rows(command))
        table = ["| given | means |", "| --- | --- |", *rows] if rows else []
        parts.append("\n".join([f"## {name}", "", "\n\n".join(paragraphs), "", *table]))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
