"""The one place that turns results into text: tables for people, JSON and YAML for programs."""

from __future__ import annotations

import json
import sys
from enum import Enum
from typing import Any, Callable, Optional

import typer
from rich.console import Console, RenderableType
from ruamel.yaml import YAML


class Format(str, Enum):
    """How a result is printed."""

    table = "table"
    json = "json"
    yaml = "yaml"


FormatOption = typer.Option(Format.table, "--format", "-f", help="table for people, json or yaml for programs.")

console = Console(highlight=False)
"""Results go here (standard output)."""

messages = Console(stderr=True, highlight=False)
"""Progress, notes and errors go here (standard error), so that results can be piped."""


def emit(document: Any, form: Format, table: Optional[Callable[[], RenderableType]] = None) -> None:
    """Print a result: the document itself for programs, or what `table` draws of it for people."""
    if form is Format.json:
        json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    elif form is Format.yaml or table is None:
        YAML(typ="safe", pure=True).dump(document, sys.stdout)
    else:
        console.print(table())
