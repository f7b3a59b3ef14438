"""Text of PromQL. Whoever only checks a label of a fleet file waits for no HTTP library."""

from __future__ import annotations

import json
import re
from typing import Mapping

LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quoted(text: str) -> str:
    """As a string of PromQL."""
    # its escapes are a superset of JSON's, as long as what JSON writes in two surrogates is left as it is
    return json.dumps(text, ensure_ascii=False)


def matchers(selector: Mapping[str, str]) -> str:
    """`cluster="berlin",`, to be put between the braces of every selector of a query."""
    for label in selector:
        if not LABEL.match(label):
            raise ValueError(f"a label (={label!r}) has a name of a-z, A-Z, 0-9 and _")
    return "".join(f"{label}={quoted(value)}," for label, value in selector.items())


def promql_duration(seconds: float) -> str:
    """As PromQL writes it, at least a millisecond."""
    return f"{max(1, round(seconds * 1000))}ms"
