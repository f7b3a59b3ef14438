"""Inputs made of sound ones: by seed, so that each can be made again by its number alone."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, Iterator, List, Sequence, Tuple, Union

NUMBERS = [
    "0",
    "-1",
    "1e300",
    "-1e300",
    "1e999",
    "NaN",
    "-Infinity",
    "1e-320",
    "9" * 400,
    "18446744073709551616",
    "4.0",
]
PIECES = [
    *NUMBERS, "null", "true", '""', "{}", "[]", "[" * 90, '{"a":' * 90, "]" * 9, ",", ":", '"', "\\", "\\ud800",
    "\x00", "\x1b[2J", "\n", "\r\n", "\u202e", "\u2028", "\ufeff", " " * 300, "a" * 3000, "*x", "&x ", "!!python/x ",
    "%YAML 1.1\n---\n", "- ", "? ", "|\n", "../../etc/passwd", "--out-file=/tmp/x", "$(id)", "osd.0-999999999",
]  # fmt: skip
VALUES: List[Any] = [
    None, True, False, 0, -1, 1, 4.0, 0.1, 1e300, -1e300, 1e18, 2**63, 2**64, float("nan"), float("inf"), "", "x", "0",
    "1e999", "\x1b[31m", "a\nb", "\u202e", "\ud800", "a" * 300, "--force", "osd", "osd.0", "osd.999999999",
    [], {}, [[]], {"": None}, [None], {"a": {"b": 1}}, [0] * 300, "18.2.7", "client.p95_ms <= 80 ms", "none",
]  # fmt: skip

Text = Union[str, bytes]


class Mutation:
    """Makes one input from a sound one."""

    def __init__(self, randomness: random.Random) -> None:
        self.random = randomness

    def text(self, sound: str) -> str:
        """With some pieces taken out, put in, doubled or swapped; or, where it is JSON, a tree with others in it."""
        if self.random.random() < 0.5:
            try:
                return self.tree(json.loads(sound))
            except ValueError:
                pass
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 8))):
            sound = self._piece(sound)
        return sound

    def content(self, sound: str) -> bytes:
        """The same, as bytes that need be no text."""
        content = bytearray(self.text(sound).encode("utf-8", "surrogatepass"))
        if content and self.random.random() < 0.3:
            content[self.random.randrange(len(content))] = self.random.randrange(256)
        return bytes(content)

    def tree(self, document: Any) -> str:
        """JSON of a document of which some parts are others."""
        document = copy.deepcopy(document)
        for _ in range(self.random.choice((1, 1, 2, 4))):
            document = self._branch(document)
        return json.dumps(document, ensure_ascii=self.random.random() < 0.8)

    def value(self) -> Any:
        """Anything that JSON has."""
        return copy.deepcopy(self.random.choice(VALUES))

    def _piece(self, text: str) -> str:
        pick = self.random
        start = pick.randrange(len(text) + 1)
        end = min(len(text), start + pick.choice((0, 1, 2, 5, 20)))
        kind = pick.randrange(6)
        if kind == 0:
            return text[:start] + text[end:]
        if kind == 1:
            return text[:end] + text[start:end] * pick.choice((1, 2, 50)) + text[end:]
        if kind == 2:
            return text[:start]
        if kind == 3:
            other = pick.randrange(len(text) + 1)
            return text[:start] + text[other : other + 20] + text[start:]
        return text[:start] + pick.choice(PIECES) + text[end:]

    def _branch(self, document: Any) -> Any:
        places = list(_places(document))
        if not places or self.random.random() < 0.03:
            return self.value()
        holder, key = self.random.choice(places)
        kind = self.random.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[str(self.value())[:50]] = holder.pop(key)
        elif kind == 1:
            holder.extend([holder[key]] * 3)
        elif kind == 2 and isinstance(holder[key], (int, float, str)) and not isinstance(holder[key], bool):
            holder[key] = str(holder[key]) if self.random.random() < 0.5 else [holder[key]]
        else:
            holder[key] = self.value()
        return document


def _places(document: Any) -> Iterator[Tuple[Any, Any]]:
    waiting: List[Any] = [document]
    while waiting:
        holder = waiting.pop()
        keys: Sequence[Any] = ()
        if isinstance(holder, dict):
            keys = list(holder)
        elif isinstance(holder, list):
            keys = range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])
