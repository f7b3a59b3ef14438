"""Reads a YAML file into plain data, and knows the line of every key.

Its errors show keys, not values: what is in the place of a value may be a password.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, DocumentStartEvent, ScalarEvent
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode
from ruamel.yaml.parser import Parser

from ceph_tuner.core.bounded import decoded, read_file
from ceph_tuner.core.errors import InputError

MAX_BYTES = 2**20
MAX_DEPTH = 40
MAX_EVENTS = 50_000
"""Values, beginnings and ends of a file: each costs some 30 µs."""

_TWICE = re.compile(r'found duplicate key "(.*?)"(?: with value "|\Z)')
# reading one takes a time that grows with the square of its digits
_LONG_NUMBER = re.compile(r"[-+.:_0-9a-fA-FxXoO]{100,}")
_TAG = re.compile(r"\b(tag|tag handle) ['\"].*")


@dataclass(frozen=True)
class YamlDocument:
    """A file's data, and where each part of it stands."""

    name: str
    """The file as the operator named it."""
    data: Any
    root: Optional[Node] = None

    def line(self, *keys: object) -> int:
        """Line of the key, or of the nearest one above it that is in the file."""
        node, line = self.root, 1 if self.root is None else self.root.start_mark.line + 1
        for key in keys:
            below = _below(node, key)
            if below is None:
                break
            node, line = below
        return line

    def place(self, *keys: object) -> str:
        """`file.yaml:12 settings.osd_max_scrubs`; the file and its first line where there are no keys."""
        path = ".".join(str(key) for key in keys)
        return f"{self.name}:{self.line(*keys)} {path}".rstrip()


def load(path: Union[str, Path]) -> YamlDocument:
    """Read a file. Raises InputError: no file, unreadable, too big, not UTF-8, not YAML, a key twice, an alias."""
    return parse(text_of(path), str(path))


def text_of(path: Union[str, Path]) -> str:
    """A file's text, for who needs it beside the document. Raises InputError as `load`."""
    return decoded(read_file(path, "a YAML file", MAX_BYTES), str(path))


def parse(text: str, name: str) -> YamlDocument:
    """Read a text that came from the named file."""
    reader: Any = YAML(typ="safe", pure=True)
    reader.Parser = _wary(name)
    try:
        root = reader.compose(text)
        data = None if root is None else reader.constructor.construct_document(root)
    except DuplicateKeyError as error:
        raise InputError(_at(name, error), f"a key twice{_key_alone(error)}", "each key once") from None
    except MarkedYAMLError as error:
        raise InputError(_at(name, error), _problem(error), "YAML") from None
    except YAMLError as error:
        raise InputError(name, " ".join(str(error).split())[:200], "YAML") from None
    except TypeError:
        # such as {a: 1} for a key, which no mapping of Python's can have
        raise InputError(name, "a mapping or a list for a key", "keys that are texts") from None
    except (ValueError, OverflowError) as error:
        # a date such as 2026-13-45, or a number of more digits than Python reads
        raise InputError(name, str(error)[:200], "YAML with plain values") from None
    document = YamlDocument(name, data, root)
    _check_plain(document, data, ())
    return document


def _wary(name: str) -> type:
    """Parser that stops at an alias, which may stand for more than fits a machine, and at endless depth."""

    class Wary(Parser):
        depth = count = 0

        def get_event(self) -> Any:
            event = super().get_event()
            line = event.start_mark.line + 1
            self.count += 1
            if self.count > MAX_EVENTS:
                raise InputError(f"{name}:{line}", "more values than can be read", "a smaller file")
            if isinstance(event, AliasEvent):
                # not its name: it may be a password that begins with *
                raise InputError(f"{name}:{line}", "an alias", "the values written out")
            if isinstance(event, DocumentStartEvent) and (event.version or event.tags):
                # an older YAML would read `yes` and `1:30` as something else
                raise InputError(f"{name}:{line}", "a directive (%)", "YAML without directives")
            if isinstance(event, ScalarEvent) and event.implicit[0] and _LONG_NUMBER.fullmatch(event.value):
                content = f"a number of {len(event.value)} characters"
                raise InputError(f"{name}:{line}", content, "numbers of at most 64 bits, texts of digits in quotes")
            self.depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if self.depth > MAX_DEPTH:
                raise InputError(f"{name}:{line}", f"more than {MAX_DEPTH} levels", "less nesting")
            return event

    return Wary


def _check_plain(document: YamlDocument, data: Any, keys: Tuple[object, ...]) -> None:
    """Refuse what JSON has no word for (dates, binary, keys that are no text), and numbers or depths beyond reason."""
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                raise InputError(document.place(*keys, key), f"the key {key!r}", "a key of text")
            _check_text(document, key, keys)
            _check_plain(document, value, (*keys, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            _check_plain(document, value, (*keys, index))
    elif isinstance(data, int) and abs(data) >= 2**64:
        raise InputError(document.place(*keys), f"a number of {data.bit_length()} bits", "at most 64 bits")
    elif isinstance(data, float) and not math.isfinite(data):
        raise InputError(document.place(*keys), f"the number {data}", "a finite number")
    elif isinstance(data, str):
        _check_text(document, data, keys)
    elif not (data is None or isinstance(data, (bool, int, float))):
        content = f"a value of type {type(data).__name__}"
        raise InputError(
            document.place(*keys), content, "text (in quotes), a number, true or false, a list or a mapping"
        )


def _check_text(document: YamlDocument, text: str, keys: Tuple[object, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        # nothing can print or store it
        content = "half a character (a lone surrogate)"
        raise InputError(document.place(*keys), content, "text in UTF-8") from None


def _below(node: Optional[Node], key: object) -> Optional[Any]:
    """Node under a key and the line that names it."""
    if isinstance(node, MappingNode):
        for name, value in node.value:
            if name.value == str(key):
                return value, name.start_mark.line + 1
    if isinstance(node, SequenceNode) and isinstance(key, int) and 0 <= key < len(node.value):
        item = node.value[key]
        return item, item.start_mark.line + 1
    return None


def _at(name: str, error: MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return name if mark is None else f"{name}:{mark.line + 1}"


def _problem(error: MarkedYAMLError) -> str:
    # ruamel's texts go on for several lines with advice for programmers
    parts: List[str] = str(error.problem or error.context or "a fault").strip().splitlines()
    # a tag's name may be a password that begins with !
    return _TAG.sub(r"\1", " ".join(parts[0].split()))[:200]


def _key_alone(error: DuplicateKeyError) -> str:
    """The key's name, without the two values that ruamel shows: they may be passwords."""
    match = _TWICE.match(_problem(error))
    return f" ({match[1]})" if match else ""
