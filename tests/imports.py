"""What a file imports, also within its functions."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import List, Set


def imported(path: Path) -> Set[str]:
    """Names before the first dot; relative imports are left out."""
    names: Set[str] = set()
    left: List[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
        # imports are statements, and only these hold statements: all else is most of a file
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            left += getattr(node, part, ())
    return names
