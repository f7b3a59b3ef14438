"""Drives of one's own as YAML files, for `ceph-tuner lab up --drive FILE` (docs/lab.md).

schema: 1
name: my-nvme
data:
  kind: flash
  read_iops: 500000
  write_iops: 80000
  read_bandwidth: 3 GB/s
  write_bandwidth: 2 GB/s
  read_latency_us: 90
  write_latency_us: 25
  slow_motion: 40
database: {…}                             # optional: the drive for RocksDB and its log
bench_iops: {tentacle: 1000}              # optional: what Ceph's bench gives on an idle machine
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, Tuple, Union

from ceph_lab.drives import DriveSet
from ceph_lab.options import RELEASES, checked_drive_name
from ceph_tuner.core.errors import InputError
from ceph_tuner.files import schema, yaml_document
from ceph_tuner.files.quantities import quantity

SCHEMA_VERSION = 1

_DRIVE: Dict[str, Any] = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}

DRIVE_SCHEMA = schema.of_file(
    "drive",
    {
        "schema": {"type": "integer"},
        "name": {"type": "string"},
        "data": _DRIVE,
        "database": _DRIVE,
        "bench_iops": schema.mapping({release: {"type": "number", "exclusiveMinimum": 0} for release in RELEASES}),
    },
    "schema",
    "data",
)


def read(path: Union[str, Path]) -> Tuple[str, DriveSet]:
    """The name and the drive of a file. Raises InputError with the file, the line and the key."""
    document = yaml_document.load(path)
    schema.check(document, DRIVE_SCHEMA, SCHEMA_VERSION)
    data = document.data
    parts = {part: _plain(document, part) for part in ("data", "database") if part in data}
    try:
        name = checked_drive_name(str(data.get("name", Path(path).stem)))
        return name, DriveSet.from_dict({**parts, "bench_iops": dict(data.get("bench_iops", {}))})
    except InputError as error:
        keys = error.place.split(".")
        raise InputError(document.place(*keys), error.found, error.expected) from None


def _plain(document: yaml_document.YamlDocument, part: str) -> Mapping[str, Any]:
    """Rates may have units."""
    texts: Dict[str, Any] = {}
    for name, value in document.data[part].items():
        if name.endswith("bandwidth") and isinstance(value, str):
            value = quantity(value, "bandwidth", document.place(part, name))
        texts[name] = value
    return texts
