"""SLOs as YAML files (docs/slo.md).

schema: 1
name: recovery
objectives:
  - client.p95_ms <= 80 ms                # hard, priority 1
  - objective: recovery.bytes_s >= 8 MB/s
    hard: false
    priority: 2
calendar:                                 # optional: what is wanted otherwise, and when
  zone: Europe/Berlin
  policies:
    - name: office
      hours: mon-fri 08:00-20:00
      objectives: [client.p95_ms <= 40 ms]
      boosts: [scrub]                   # optional: boosts that may run meanwhile; without it all may
minimise: recovery.finish_s             # optional: where the spare is to go; or maximise
lab:                                      # optional: the load that `ceph-tuner tune` starts on a lab
  scenario: client-recovery
  options: {rate: 250}
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Union

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Objective, Slo, parse_objective
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.files import schema, yaml_document

SCHEMA_VERSION = 1

SLO_SCHEMA = schema.of_file(
    "SLO",
    {
        "schema": {"type": "integer"},
        "name": {"type": "string"},
        "description": {"type": "string"},
        # an item's own form is checked by the core, whose words are clearer than "not valid under any schema"
        "objectives": {"type": "array"},
        "calendar": {"type": "object"},
        "minimise": {"type": "string"},
        "maximise": {"type": "string"},
        "lab": schema.mapping({"scenario": {"type": "string"}, "options": {"type": "object"}}, "scenario"),
    },
    "schema",
    "objectives",
)


@dataclass(frozen=True)
class SloFile:
    """What a file holds: the SLO, and the load under which a lab is to be measured."""

    slo: Slo
    """What is wanted now: what its calendar says for the moment at which it was read."""
    description: str = ""
    scenario: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    calendar: Optional[SloCalendar] = None
    """What is wanted at other times, for whoever goes on for longer."""

    @property
    def at_all_times(self) -> SloCalendar:
        """What is wanted, and when: also of a file without a calendar."""
        return self.calendar or SloCalendar(self.slo)

    def at(self, moment: float) -> Slo:
        """What is wanted at a moment, in seconds since the epoch."""
        return self.at_all_times.at(moment)

    @property
    def policy(self) -> str:
        """Name of the calendar's policy that `slo` is; empty for a file without a calendar."""
        if self.calendar is None:
            return ""
        return next((name for name, slo in self.calendar.by_policy.items() if slo is self.slo), "")


def read(path: Union[str, Path], now: Callable[[], float] = time.time) -> SloFile:
    """Read and check an SLO file. Raises InputError with the file, the line and the key."""
    return _from(yaml_document.load(path), Path(path).stem, now())


def faults(path: Union[str, Path]) -> List[InputError]:
    """Give every fault of an SLO file, in the order of its lines. Raises InputError for a file that is no YAML."""
    document = yaml_document.load(path)
    of_schema = schema.faults(document, SLO_SCHEMA, SCHEMA_VERSION)
    readable = not any(not fault.keys or fault.keys[0] in ("schema", "objectives") for fault in of_schema)
    count = len(document.data["objectives"]) if readable else 0
    of_objectives = [_fault(partial(_objective, document, index)) for index in range(count)]
    errors = [fault.error for fault in of_schema] + [error for error in of_objectives if error is not None]
    whole = None if errors else _fault(lambda: _from(document, Path(path).stem, 0.0))
    return errors if whole is None else [whole]


def _fault(read: Callable[[], object]) -> Optional[InputError]:
    try:
        read()
    except InputError as error:
        return error
    return None


def _objective(document: yaml_document.YamlDocument, at: int) -> Objective:
    return parse_objective(document.data["objectives"][at], lambda *keys: document.place("objectives", at, *keys))


def from_text(text: str, name: str = "slo.yaml", now: Callable[[], float] = time.time) -> SloFile:
    """Read an SLO from the text of the named file."""
    return _from(yaml_document.parse(text, name), Path(name).stem, now())


def _from(document: yaml_document.YamlDocument, name: str, at: float) -> SloFile:
    schema.check(document, SLO_SCHEMA, SCHEMA_VERSION)
    return from_checked(document, name, at)


def from_checked(document: yaml_document.YamlDocument, name: str, at: float) -> SloFile:
    """Read a document whose structure was checked already; `at` is the moment, in seconds since the epoch.

    Raises InputError with the document's places.
    """
    data = document.data
    # a file's name need not be a name of ours: an SLO without one is called by what the file allows
    calendar = parse_slo_calendar(data, _name_of(name), document.place)
    lab = data.get("lab", {})
    return SloFile(
        calendar.at(at),
        data.get("description", "").strip(),
        lab.get("scenario", ""),
        lab.get("options", {}),
        calendar if calendar.policies else None,
    )


def _name_of(stem: str) -> str:
    letters = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in stem)
    return letters.lower().strip("._-")[:64].strip("._-") or "slo"
