"""`ceph config dump` of a lab, to show that nothing in it is changed."""

from __future__ import annotations

from typing import Tuple

from ceph_lab.cluster import Lab

Dump = Tuple[str, str]


def config_dump(lab: Lab) -> Dump:
    """Byte for byte, plain and in JSON. Two `ceph` would take seven times the processor's time."""
    plain, document = lab.mon_commands([{"prefix": "config dump"}, {"prefix": "config dump", "format": "json"}])
    return plain, document
