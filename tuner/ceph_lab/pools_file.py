"""Pools of a lab as YAML files, for `ceph-tuner lab up --pools FILE` (docs/lab.md).

schema: 1
pools:
- name: volumes
  layout: replicated:3
  device_class: ssd           # optional: on OSDs of that class alone
  pgs: 64                     # optional: 32
- name: archive
  layout: ec:4+2
"""

from __future__ import annotations

from pathlib import Path
from typing import Tuple, Union

from ceph_lab.loads.layout import NamedPool
from ceph_tuner.core.errors import InputError
from ceph_tuner.files import schema, yaml_document

SCHEMA_VERSION = 1

_POOL = schema.mapping(
    {
        "name": {"type": "string"},
        "layout": {"type": "string"},
        "device_class": {"type": "string"},
        "pgs": {"type": "integer", "minimum": 1, "maximum": 1024},
    },
    "name",
    "layout",
)

POOLS_SCHEMA = schema.of_file(
    "pools",
    {
        "schema": {"type": "integer"},
        "pools": {"type": "array", "items": _POOL, "minItems": 1, "maxItems": 32},
    },
    "schema",
    "pools",
)


def read(path: Union[str, Path]) -> Tuple[NamedPool, ...]:
    """The pools of a file. Raises InputError with the file, the line and the key."""
    document = yaml_document.load(path)
    schema.check(document, POOLS_SCHEMA, SCHEMA_VERSION)
    pools = []
    for number, entry in enumerate(document.data["pools"]):
        try:
            pools.append(NamedPool.from_dict(entry))
        except InputError as error:  # noqa: PERF203 - the place is of this entry
            raise InputError(document.place("pools", number), error.found, error.expected) from None
    return tuple(pools)
