"""Fits of the twin as files: JSON, which is YAML too, so that faults are told with their line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Union

from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.files import schema, yaml_document
from ceph_tuner.twin.fit import Fit

_OBJECT: Dict[str, Any] = {"type": "object"}
_OBJECTS: Dict[str, Any] = {"type": "array", "items": _OBJECT}

FIT: Dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "ceph-tuner twin fit",
    "type": "object",
    "properties": {
        "schema": {"type": "integer"},
        "what": {"enum": ["twin fit"]},
        "cluster": _OBJECT,
        "scenarios": {"type": "object", "additionalProperties": _OBJECT},
        "settings": _OBJECT,
        "parameters": _OBJECTS,
        "covariance": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "discrepancy": {
            "type": "object",
            "properties": {
                "chi_square": {"type": "number"},
                "settings": {"type": "integer"},
                "metrics": {"type": "object", "additionalProperties": _OBJECT},
            },
            "required": ["chi_square", "settings", "metrics"],
        },
        "notes": {"type": "array", "items": {"type": "string"}},
        "evidence": _OBJECTS,
    },
    "required": ["schema", "what", "cluster", "scenarios", "parameters", "covariance", "discrepancy"],
}
"""A fit file; what else it has is for people."""


def read(path: Union[str, Path]) -> Fit:
    """Read and check a fit. Raises InputError with the file, the line and the key."""
    return _from(yaml_document.load(path))


def from_text(text: str, name: str = "fit.json") -> Fit:
    """Read a fit from the text of the named file."""
    return _from(yaml_document.parse(text, name))


def _from(document: yaml_document.YamlDocument) -> Fit:
    schema.check(document, FIT)
    return Fit.from_dict(document.data, document.place)


def to_text(fit: Fit) -> str:
    """Write a fit; `from_text` is the inverse."""
    return json.dumps(fit.to_dict(), indent=1, allow_nan=False) + "\n"


def write(path: Union[str, Path], fit: Fit, force: bool = False) -> None:
    """Write a fit, whole or not at all. Raises InputError where the file exists and `force` is not given."""
    write_text(path, to_text(fit), force)
