"""Emulated drives: real ones in slow motion, so that a small machine's processors are not what is measured.

One factor, `slow_motion`, divides a drive's IOPS and bandwidth and multiplies its times. How many requests it serves at
once, how its latency grows with its load, and the relations that mClock's arithmetic is made of stay the drive's own:
seen with a clock that is as much slower, it is that drive. The processors, the network and Ceph's own time-outs are not
slowed, so the larger the factor, the more does the drive decide.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Dict, Mapping, Optional, Union

from ceph_tuner.core.errors import InputError


@dataclass(frozen=True)
class Flash:
    """A flash drive by its data sheet. Everything passes one back end at its rate and takes a latency on top."""

    kind: ClassVar[str] = "flash"
    rotational: ClassVar[bool] = False

    read_iops: float
    """Random reads of 4 KiB a second, with many under way."""
    write_iops: float
    read_bandwidth: float
    """Bytes a second of sequential reads."""
    write_bandwidth: float
    read_latency_us: float
    """Microseconds of one read of 4 KiB at a time."""
    write_latency_us: float
    flush_us: float = 0.0
    """Microseconds of a flush; none with power-loss protection."""
    jitter: float = 0.2
    """Standard deviation of the latency's logarithm: with 0.2, one of a thousand takes 1.8 times the mean."""
    slow_motion: float = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("read_iops", "write_iops", "read_bandwidth", "write_bandwidth"):
            _within(name, getattr(self, name), 1e-3, 1e13)
        for name in ("read_latency_us", "write_latency_us", "flush_us"):
            _within(name, getattr(self, name), 0, 1e8)
        _within("jitter", self.jitter, 0, 2)
        _within("slow_motion", self.slow_motion, 1, 1000)

    @property
    def sequential_bandwidth(self) -> float:
        """Bytes a second in slow motion, of the slower direction: what mClock is told."""
        return min(self.read_bandwidth, self.write_bandwidth) / self.slow_motion

    def words(self, seed: int, size: int) -> str:
        """What `drive_new` of model.h reads."""
        second, factor = 1e-6 * self.slow_motion, self.slow_motion
        return _words(
            kind=self.kind,
            read_s=self.read_latency_us * second,
            write_s=self.write_latency_us * second,
            read_iops=self.read_iops / factor,
            write_iops=self.write_iops / factor,
            read_bytes_s=self.read_bandwidth / factor,
            write_bytes_s=self.write_bandwidth / factor,
            flush_s=self.flush_us * second,
            jitter=self.jitter,
            seed=seed,
        )


MEAN_ROOT_DISTANCE = 8 / 15
"""Of two random places, the whole stroke being 1: a seek goes by the root of the distance."""
SHORTER_WAY = 0.28
"""The shortest of n ways of a disk's head is shorter than one at random by this power of n: the model's own."""


@dataclass(frozen=True)
class Disk:
    """A hard disk: one head that seeks, waits for the platter and transfers; its queue goes by the shortest way.

    Its write cache is off, as Ceph's hardware recommendations want it, so a flush has nothing to do. The device stands
    for the whole stroke, whatever its size.
    """

    kind: ClassVar[str] = "disk"
    rotational: ClassVar[bool] = True

    rpm: float
    average_seek_ms: float
    track_seek_ms: float
    bandwidth: float
    """Bytes a second that pass under the head."""
    queue: int = 32
    """Requests that the drive itself orders (NCQ, TCQ); further ones wait in the host."""
    readahead: int = 2 << 20
    """Bytes that are read on while nothing is asked for."""
    patience_ms: float = 1000.0
    """Milliseconds after which the oldest request comes first, however far away."""
    slow_motion: float = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        _within("rpm", self.rpm, 100, 50_000)
        _within("track_seek_ms", self.track_seek_ms, 0, self.average_seek_ms)
        _within("average_seek_ms", self.average_seek_ms, 0, 1000)
        _within("bandwidth", self.bandwidth, 1e5, 1e11)
        _within("queue", self.queue, 1, 1024)
        _within("readahead", self.readahead, 0, 1 << 30)
        _within("patience_ms", self.patience_ms, 0, 1e6)
        _within("slow_motion", self.slow_motion, 1, 1000)

    @property
    def sequential_bandwidth(self) -> float:
        """Bytes a second in slow motion: what mClock is told."""
        return self.bandwidth / self.slow_motion

    def position_s(self, full: float = 1.0) -> float:
        """Mean time to a random place in slow motion, within that part of the stroke: a seek and half a turn."""
        return self._way_s(MEAN_ROOT_DISTANCE * math.sqrt(full))

    def apart_s(self, begin: float, end: float, to: float) -> float:
        """Mean time in slow motion from a random place between two parts of the stroke to one at a third."""
        farther, nearer = (math.copysign(abs(place - to) ** 1.5, place - to) for place in (end, begin))
        return self._way_s((farther - nearer) * 2 / 3 / (end - begin))

    def _way_s(self, root_distance: float) -> float:
        reach_ms = (self.average_seek_ms - self.track_seek_ms) * root_distance / MEAN_ROOT_DISTANCE
        return (1e-3 * (self.track_seek_ms + reach_ms) + 30 / self.rpm) * self.slow_motion

    def queued_iops(self, full: float = 1.0) -> float:
        """Small requests a second in slow motion while its queue is full, within that part of the stroke."""
        return float(self.queue**SHORTER_WAY) / self.position_s(full)

    def words(self, seed: int, size: int) -> str:
        """What `drive_new` of model.h reads."""
        second, factor = 1e-3 * self.slow_motion, self.slow_motion
        return _words(
            kind=self.kind,
            track_seek_s=self.track_seek_ms * second,
            average_seek_s=self.average_seek_ms * second,
            rotation_s=60 / self.rpm * factor,
            bytes_s=self.bandwidth / factor,
            size=size,
            queue=self.queue,
            patience_s=self.patience_ms * second,
            readahead=self.readahead,
            flush_s=0,
            seed=seed,
        )


Drive = Union[Flash, Disk]
BENCH_BYTES = 100 << 20
"""Ceph's bench writes within so much, as the lab has it run."""

KINDS: Mapping[str, type] = {"flash": Flash, "disk": Disk}


@dataclass(frozen=True)
class DriveSet:
    """What one OSD stands on: a drive for its data, and one for RocksDB and its log where that is another."""

    data: Drive
    database: Optional[Drive] = None
    bench_iops: Mapping[str, float] = field(default_factory=dict)
    """Release -> 4 KiB writes a second of an OSD on it, by Ceph's bench on an idle machine, in slow motion."""

    @property
    def rotational(self) -> bool:
        """Whether Ceph takes its options for hard disks."""
        return self.data.rotational

    @property
    def media(self) -> str:
        """The suffix of the options that the OSD goes by, and its device class where no other is asked for."""
        return "hdd" if self.rotational else "ssd"

    @property
    def parts(self) -> Dict[str, Drive]:
        """Its drives by what they hold: `data`, and `database` where that has a drive of its own."""
        return {"data": self.data} if self.database is None else {"data": self.data, "database": self.database}

    def small_writes_s(self, data_bytes: float) -> float:
        """Of 4 KiB a second, many under way, within BENCH_BYTES of a device of that size: by the data's drive alone."""
        if isinstance(self.data, Flash):
            return self.data.write_iops / self.data.slow_motion
        return self.data.queued_iops(min(1.0, BENCH_BYTES / data_bytes))

    def slowed(self, times: float) -> DriveSet:
        """The same in slower motion, of which no bench is known. Raises InputError where that is too slow."""
        if times == 1:
            return self
        slower = {part: replace(drive, slow_motion=drive.slow_motion * times) for part, drive in self.parts.items()}
        return DriveSet(slower["data"], slower.get("database"))

    def to_dict(self) -> Dict[str, Any]:
        """Plain values; `from_dict` reads them."""
        parts = {part: {"kind": drive.kind, **asdict(drive)} for part, drive in self.parts.items()}
        return {**parts, "bench_iops": dict(self.bench_iops)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> DriveSet:
        """Raises InputError that names the key."""
        database = values.get("database")
        return DriveSet(
            drive_from(values.get("data", {}), "data"),
            None if database is None else drive_from(database, "database"),
            {str(release): float(iops) for release, iops in values.get("bench_iops", {}).items()},
        )


def drive_from(values: Mapping[str, Any], place: str) -> Drive:
    """A drive of plain values: `kind` and that kind's own. Raises InputError."""
    kind = KINDS.get(str(values.get("kind")))
    if kind is None:
        raise InputError(f"{place}.kind", repr(values.get("kind")), " or ".join(KINDS))
    own = {field.name: field for field in fields(kind)}
    parameters = {name: value for name, value in values.items() if name != "kind"}
    unknown = sorted(set(parameters) - set(own))
    if unknown:
        raise InputError(f"{place}.{unknown[0]}", "an unknown key", f"one of {', '.join(own)}")
    for name, value in parameters.items():
        types = (str,) if name == "source" else (int, float)
        if isinstance(value, bool) or not isinstance(value, types):
            raise InputError(f"{place}.{name}", repr(value), "text" if name == "source" else "a number")
    mandatory = [name for name, one in own.items() if one.default is MISSING]
    absent = [name for name in mandatory if name not in parameters]
    if absent:
        raise InputError(place, f"no {', '.join(absent)}", f"all of {', '.join(mandatory)}")
    try:
        return kind(**parameters)  # type: ignore[no-any-return]
    except InputError as error:
        raise InputError(f"{place}.{error.place}", error.found, error.expected) from None


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InputError(name, f"{value:g}", f"{least:g} to {most:g}")


def _words(kind: str, **values: float) -> str:
    return " ".join([f"kind={kind}", *(f"{name}={value:.17g}" for name, value in values.items())])
