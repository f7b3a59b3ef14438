"""SLOs as YAML files (docs/slo.md).

schema: 1
name: recovery
objectives:
  - client.p95_ms <= 80 ms                # hard, priority 1
  - objective: recovery.bytes_s >= 8 MB/s
    hard: false
    priority: 2
lab:                                      # optional: the load that `ceph-tuner tune` starts on a lab
  scenario: client-recovery
  options: {rate: 250}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Union

from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.files import schema, yaml_document

SCHEMA_VERSION = 1

SLO_SCHEMA: Dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "ceph-tuner SLO",
    "type": "object",
    "properties": {
        "schema": {"type": "integer"},
        "name": {"type": "string"},
        "description": {"type": "string"},
        # an item's own form is checked by the core, whose words are clearer than "not valid under any schema"
        "objectives": {"type": "array"},
        "lab": {
            "type": "object",
            "properties": {"scenario": {"type": "string"}, "options": {"type": "object"}},
            "required": ["scenario"],
            "additionalProperties": False,
        },
    },
    "required": ["schema", "objectives"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class SloFile:
    """What a file holds: the SLO, and the load under which a lab is to be measured."""

    slo: Slo
    description: str = ""
    scenario: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def read(path: Union[str, Path]) -> SloFile:
    """Read and check an SLO file. Raises InputError with the file, the line and the key."""
    return _from(yaml_document.load(path), Path(path).stem)


def from_text(text: str, name: str = "slo.yaml") -> SloFile:
    """Read an SLO from the text of the named file."""
    return _from(yaml_document.parse(text, name), Path(name).stem)


def _from(document: yaml_document.YamlDocument, name: str) -> SloFile:
    schema.check(document, SLO_SCHEMA, SCHEMA_VERSION)
    data = document.data
    # a file's name need not be a name of ours: an SLO without one is called by what the file allows
    slo = parse_slo(data, _named(name), document.place)
    lab = data.get("lab", {})
    return SloFile(slo, data.get("description", "").strip(), lab.get("scenario", ""), lab.get("options", {}))


def _named(stem: str) -> str:
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in stem)
    return kept.lower().strip("._-")[:64].strip("._-") or "slo"
