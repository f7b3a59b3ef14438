"""What a lab is made of, checked before anything is touched."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Dict, Mapping

from ceph_tuner.errors import InputError

MIB = 1 << 20
GIB = 1 << 30

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(iB|B)?|B)?", re.ASCII)
_POWERS = "KMGT"


def parse_size(place: str, text: str) -> int:
    """Bytes of `62914560`, `60MiB`, `60M` (both binary, as Ceph reads them) or `60MB` (decimal)."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise InputError(place, repr(text), "bytes such as 62914560, 60MiB or 60MB")
    number, prefix, suffix = match.groups()
    base = 1000 if suffix == "B" else 1024
    size = float(number) * (base ** (_POWERS.index(prefix) + 1) if prefix else 1)
    if size != int(size):
        raise InputError(place, repr(text), "a whole number of bytes")
    return int(size)


def format_size(size: int) -> str:
    """The shortest exact way to write a number of bytes."""
    for power in range(len(_POWERS), 0, -1):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{_POWERS[power - 1]}iB"
    return str(size)


@dataclass(frozen=True)
class LabOptions:
    """A lab's hardware and layout. The limits hold per OSD, reads and writes each."""

    release: str = "tentacle"
    osds: int = 3
    iops: int = 1075
    bandwidth: int = 60 * MIB
    mgrs: int = 1
    size: int = 3
    device_size: int = 16 * GIB

    def __post_init__(self) -> None:
        if self.release not in RELEASES:
            raise InputError("--release", repr(self.release), " or ".join(RELEASES))
        _within("--osds", self.osds, 1, 16)
        _within("--iops", self.iops, 50, 100_000)
        _within("--bandwidth", self.bandwidth, MIB, 10 * GIB)
        _within("--mgrs", self.mgrs, 1, 3)
        _within("--size", self.size, 1, 10)
        if self.size > self.osds:
            # every OSD is a CRUSH host of its own, so each replica needs one
            raise InputError("--size", str(self.size), f"at most the number of OSDs, {self.osds}")
        _within("--device-size", self.device_size, 4 * GIB, 1024 * GIB)

    def to_dict(self) -> Dict[str, Any]:
        """Plain values for the state file."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> LabOptions:
        """Options that some file or user stated; what is absent has its default, and fewer OSDs fewer replicas."""
        known = {field.name: values[field.name] for field in fields(LabOptions) if field.name in values}
        if "osds" in known:
            known.setdefault("size", max(1, min(LabOptions.size, known["osds"])))
        return LabOptions(**known)

    def differences(self, wanted: Mapping[str, Any]) -> Dict[str, Any]:
        """Those of these values that differ from what was explicitly wanted."""
        return {name: value for name, value in self.to_dict().items() if name in wanted and wanted[name] != value}


RELEASES = ("tentacle", "reef")
"""The releases that a lab can run: those that Debian packages today."""


def default_name(release: str) -> str:
    """A lab's name where none is given."""
    return "lab" if release == "tentacle" else f"lab-{release}"


def _within(place: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(place, str(value), f"{least} to {most}")
