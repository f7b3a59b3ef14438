"""Results as JSON, for what comes back from elsewhere: reading it makes values of this program and runs nothing.

null, true, 1, 0.5, "text", [list], {"key": value}      as JSON has them
{"!tuple": […]}  {"!set": […]}  {"!dict": [[key, value], …]}  {"!release": "reef"}
{"!": "ceph_tuner.core.profiles.profile:Profile", "of": {field: value, …}}
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields, is_dataclass
from typing import Any, Mapping

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.knobs.releases import Release, release_named

LARGEST = 64 << 20
"""Bytes of a result: a search's explanation with its curves has some hundred KiB."""

_PACKAGE = "ceph_tuner."


def to_text(value: Any) -> str:
    """As JSON. Raises TypeError for what is no plain value, nor a dataclass of this program's."""
    return json.dumps(_plain(value), separators=(",", ":"))


def from_text(text: Any) -> Any:
    """The same value. Raises Malformed, or another ValueError or TypeError, for what is none."""
    if not isinstance(text, str):
        raise TypeError(f"a {type(text).__name__} in place of JSON")
    # infinities stand for what never ends
    return _value(read_json(text, "a worker's result", LARGEST, constants=True))


def _plain(value: Any) -> Any:
    if isinstance(value, Release):
        return {"!release": value.name}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        if not kind.__module__.startswith(_PACKAGE):
            raise TypeError(f"a {kind.__name__} of {kind.__module__}")
        own = {field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.init}
        return {"!": f"{kind.__module__}:{kind.__qualname__}", "of": own}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("!") for key in value):
            return {key: _plain(item) for key, item in value.items()}
        return {"!dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"!tuple": [_plain(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"!set": [_plain(item) for item in value]}
    if hasattr(value, "tolist"):
        # numpy's numbers and arrays
        return _plain(value.tolist())
    raise TypeError(f"a {type(value).__name__}")


def _value(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_value(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    mark = next((key for key in stored if key.startswith("!")), "")
    if mark == "":
        return {key: _value(item) for key, item in stored.items()}
    if mark == "!":
        return _kind(stored["!"])(**{key: _value(item) for key, item in stored["of"].items()})
    if mark == "!release":
        return release_named(str(stored[mark]), "a worker's result")
    if mark == "!dict":
        return {_value(key): _value(item) for key, item in stored[mark]}
    return {"!tuple": tuple, "!set": frozenset}[mark](_value(item) for item in stored[mark])


def _kind(name: Any) -> Any:
    """A dataclass of this program that is loaded already: nothing is imported for a result."""
    module, _, qualified = str(name).partition(":")
    kind = getattr(sys.modules.get(module), qualified, None) if module.startswith(_PACKAGE) else None
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise TypeError(f"a value of {str(name)[:100]!r}")
    return kind
