"""Writes the tables of the plugin's options into the pages that explain them, out of the plugin itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Callable, Dict, List

HERE = Path(__file__).parent
BEGIN, END = "<!-- options -->\n", "<!-- end of options -->\n"


def _options() -> List[Any]:
    """The plugin's own list. By its path: the package around it can be imported inside a ceph-mgr only."""
    spec = importlib.util.spec_from_file_location("plugin_options", HERE.parent / "mgr_module" / "tuner" / "options.py")
    if spec is None or spec.loader is None:
        raise ImportError("mgr_module/tuner/options.py is not there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.OPTIONS)


def automatic(name: str) -> bool:
    """Whether an option is about the automatic mode."""
    return name.startswith(("auto_", "guard_"))


PAGES: Dict[str, Callable[[str], bool]] = {"automatic.md": automatic, "plugin.md": lambda name: not automatic(name)}
"""Page -> the options on it."""


def table(rows: List[Any]) -> str:
    """Options as Markdown."""
    lines = ["| option | default | range | meaning |", "| --- | --- | --- | --- |"]
    for row in rows:
        default = f"`{row.default}`" if row.default != "" and isinstance(row.default, str) else _number(row.default)
        given = "" if row.low is None else f"{_number(row.low)} to {_number(row.high)}"
        lines.append(f"| `{row.name}` | {default} | {given} | {row.meaning[:1].upper()}{row.meaning[1:]} |")
    return "\n".join(lines) + "\n"


def _number(value: Any) -> str:
    return "" if value == "" else str(value) if isinstance(value, int) else f"{value:.15g}"


def page(name: str) -> str:
    """A page as it should be."""
    text = (HERE / name).read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{name} has no {BEGIN.strip()} and {END.strip()}")
    return f"{head}{BEGIN}{table([row for row in _options() if PAGES[name](row.name)])}{END}{tail}"


if __name__ == "__main__":
    for name in PAGES:
        (HERE / name).write_text(page(name), encoding="utf-8")
