"""Writes a page for every command, out of the program and the plugin themselves (`make reference`).

What stands between the marks of a page is generated; the rest of it (what to know beyond the help, an example) is
written by hand and stays.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import typer

from ceph_tuner_cli.main import app

DOCS = Path(__file__).parent
INDEX = DOCS / "commands.md"
PAGES = DOCS / "commands"
MODULE = DOCS.parent / "mgr_module" / "tuner" / "module.py"
BEGIN, END = "<!-- generated, by docs/write_commands.py -->\n", "<!-- end of what is generated -->\n"
UNWRITTEN = "\n(An example is missing: write one here.)\n"

INTRODUCTION = """# Commands

A page for each command, with an example. The program says the same: `ceph-tuner COMMAND --help`, `ceph tuner -h`.
Exit codes mean the same everywhere: [exit codes](exit-codes.md).

"""
OF_THE_MGR = """
## ceph tuner

What [the plugin](plugin.md) adds to the `ceph` program. Those marked *r* need no more than `mon 'allow r'` and
`mgr 'allow module tuner r'` ([security](security.md)); the others take `mgr 'allow module tuner rw'`.

"""


@dataclass(frozen=True)
class Command:
    """One command, whichever program it belongs to."""

    name: str
    """Whole: `ceph-tuner lab up`, `ceph tuner slo set`."""
    paragraphs: Tuple[str, ...]
    usage: str
    rows: Tuple[Tuple[str, str, str], ...]
    """What can be given, its default, what it means."""
    writes: bool = True
    """Of the plugin's: whether it takes more than capabilities to read."""

    @property
    def stem(self) -> str:
        """Name of its page; `ceph-tuner` itself is left out of it."""
        own = self.name.split()[1:]
        return "-".join(own) if self.name.startswith("ceph-tuner ") else "-".join(["ceph", *own])


def commands(command: Any, path: Tuple[str, ...] = ("ceph-tuner",)) -> Iterator[Tuple[str, Any]]:
    """Every command of the program that does something, with its whole name."""
    nested = getattr(command, "commands", None)
    if nested is None:
        yield " ".join(path), command
        return
    for name, inner in nested.items():
        yield from commands(inner, (*path, name))


def of_the_program() -> List[Command]:
    """The commands of `ceph-tuner`."""
    found = []
    for name, command in commands(typer.main.get_command(app)):
        rows = tuple(
            (_names(each), _default(each.default), _one_line(getattr(each, "help", "") or ""))
            for each in command.params
        )
        found.append(Command(name, _paragraphs(command.help or ""), _usage(name, command), rows))
    return found


def of_the_plugin() -> List[Command]:
    """The commands that the module declares, from its source: it can be imported inside a ceph-mgr only."""
    found = []
    for function in ast.walk(ast.parse(MODULE.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for mark in function.decorator_list:
            if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") in ("read_command", "write_command"):
                name, writes = str(ast.literal_eval(mark.args[0])), getattr(mark.func, "id", "") == "write_command"
                found.append(_declared(f"ceph {name}", function, writes))
    return found


def generated(command: Command) -> str:
    """What a page says by itself."""
    lines = ["\n\n".join(command.paragraphs), "", "```text", command.usage, "```"]
    if command.rows:
        lines += ["", "| given | default | means |", "| --- | --- | --- |"]
        lines += [f"| {names} | {default} | {means} |" for names, default, means in command.rows]
    elsewhere = "[all commands](../commands.md)"
    if command.name.startswith("ceph-tuner "):
        lines += ["", f"[Exit codes](../exit-codes.md) · {elsewhere}"]
    else:
        mgr = f"allow module {MODULE.parent.name} {'rw' if command.writes else 'r'}"
        lines += ["", f"[Capabilities](../security.md): `mon 'allow r'` and `mgr '{mgr}'` · {elsewhere}"]
    return "\n".join(lines) + "\n"


def page(command: Command) -> str:
    """A page as it should be: what is written by hand is kept."""
    path = PAGES / f"{command.stem}.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    tail = text.partition(END)[2] or UNWRITTEN
    return f"# {command.name}\n\n{BEGIN}{generated(command)}{END}{tail}"


def index() -> str:
    """The page that leads to all of them."""
    groups: Dict[str, List[Command]] = {}
    for command in of_the_program():
        groups.setdefault(" ".join(command.name.split()[:-1]), []).append(command)
    parts = [INTRODUCTION, _table(groups.pop("ceph-tuner"))]
    parts += [f"\n## {group}\n\n{_table(members)}" for group, members in groups.items()]
    parts += [OF_THE_MGR, _table(of_the_plugin())]
    return "".join(parts) + "\n```{toctree}\n:hidden:\n:glob:\n\ncommands/*\n```\n"


@cache
def pages() -> Mapping[Path, str]:
    """Every page of the reference as it should be."""
    return {
        INDEX: index(),
        **{PAGES / f"{each.stem}.md": page(each) for each in (*of_the_program(), *of_the_plugin())},
    }


def _table(members: List[Command]) -> str:
    lines = ["| command | does |", "| --- | --- |"]
    for each in members:
        readable = " *r*" if not each.writes else ""
        lines.append(f"| [`{each.name}`](commands/{each.stem}.md){readable} | {each.paragraphs[0]} |")
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _paragraphs(text: str) -> Tuple[str, ...]:
    return tuple(_one_line(part) for part in text.split("\n\n") if part.strip())


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_placeholder(parameter)}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _placeholder(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper().strip("[].")


def _default(value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None or value is False or value == "" or value == () or value == [] or callable(value):
        return ""
    return "yes" if value is True else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _usage(name: str, command: Any) -> str:
    parts = [name]
    for each in sorted(command.params, key=lambda each: each.param_type_name == "argument"):
        if each.param_type_name == "argument":
            word = _placeholder(each) + (" ..." if each.nargs != 1 else "")
            parts.append(word if each.required else f"[{word}]")
        elif each.required:
            longest = max(each.opts, key=len)
            parts.append(f"{longest} {longest.strip('-').upper().replace('-', '_')}")
    parts.insert(1, "[OPTIONS]")
    return " ".join(parts)


def _declared(name: str, function: ast.FunctionDef, writes: bool) -> Command:
    given = function.args.args[1:]
    defaults = [None] * (len(given) - len(function.args.defaults)) + list(function.args.defaults)
    usage, rows = [name], []
    for argument, default in zip(given, defaults):
        kind = ast.unparse(argument.annotation) if argument.annotation is not None else "str"
        value = "" if default is None else ast.literal_eval(default)
        if argument.arg == "inbuf":
            usage.append("[-i FILE]")
            rows.append(("`-i FILE`", "", "A file that the `ceph` program sends along."))
        elif argument.arg == "format":
            usage.append("[--format plain|json|json-pretty]")
            rows.append(("`--format`", "`plain`", "Tables for people, or JSON for programs."))
        elif "bool" in kind:
            flag = f"--{argument.arg.replace('_', '-')}"
            usage.append(f"[{flag}]")
            rows.append((f"`{flag}`", "", _MEANS.get(argument.arg, "")))
        else:
            word = argument.arg.upper()
            usage.append(word if default is None else f"[{word}]")
            shown = "" if value in ("", -1) else _default(value)
            rows.append((f"`{word}`", shown, _MEANS.get(argument.arg, "")))
    return Command(name, _paragraphs(ast.get_docstring(function) or ""), " ".join(usage), tuple(rows), writes)


_MEANS = {
    "all": "Every change in force.",
    "at_most": "It ends after this time, whatever is left: `90min`, `6h`, `2d`. `--at-most 6h` works too.",
    "default": "The default ones again.",
    "hard": "It must hold; so it is unless `--soft` is given.",
    "hours": "Windows of an hour instead of a minute.",
    "keep": "[Objectives](../slo.md) that end it when they are missed, with `;` between them; `--keep …` works too.",
    "kind": "`recovery`, `backfill`, `scrub` or `snaptrim`.",
    "limit": "How many of each.",
    "metric": "A metric of [an objective](../slo.md), or `all`.",
    "mode": "`auto`, `approve` or `dry-run`.",
    "name": "Name of a profile.",
    "objective": "`METRIC<=BOUND` or `METRIC>=BOUND`, in the metric's own unit.",
    "osd": "Its number.",
    "page": "Number of the page, as `ceph tuner book show` has it.",
    "pool": "The name of a pool; `--pool rbd` works too.",
    "priority": "Multiplies its weight where not all objectives can hold.",
    "regime": "Another one than the page's, such as busy+recovering.",
    "seconds": "Seconds between the two looks, 2 to 600; `--seconds 5` works too.",
    "soft": "It may be missed.",
    "to": "Number of the change that stays, with all before it.",
    "until": "Only `clean`: until nothing of it is left.",
    "who": "`osd`, `osd/class:…`, `osd/host:…`, `osd/rack:…` or `osd.N`.",
    "why": "A word for the audit trail.",
    "device_class": "A device class such as `hdd`; `--device-class hdd` works too. Where it may be left out, the "
    "command is for all that it makes sense for then.",
    "yes": "Do it; without, it is only shown.",
}
"""What an argument of the plugin's commands means; their declarations have no place for it."""


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    for path in set(PAGES.glob("*.md")) - set(pages()):
        path.unlink()
