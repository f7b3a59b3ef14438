"""What a lab is made of, checked before anything is touched."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_lab.drives import DriveSet
from ceph_lab.drives.presets import NAMES, PRESETS, THROTTLE, preset
from ceph_lab.loads.layout import NamedPool, PoolLayout
from ceph_tuner.core.errors import InputError

MIB = 1 << 20
GIB = 1 << 30

RELEASES = ("tentacle", "reef")
"""The releases that a lab can run: those that Debian packages today."""

AUTO, RAM, DISK = "auto", "ram", "disk"
STORAGES = (AUTO, RAM, DISK)
"""Where the bytes of emulated drives lie."""

MOST_OSDS = 16

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(iB|B)?|B)?", re.ASCII)
_POWERS = "KMGT"
_GROUP = re.compile(r"(\d{1,3})x([a-z0-9][a-z0-9-]{0,39})(?::([a-z0-9][a-z0-9-]{0,39}))?", re.ASCII)


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
class OsdGroup:
    """So many OSDs on drives of one kind."""

    count: int
    drive: str
    device_class: str = ""
    """Empty: the one that Ceph gives by itself, `ssd` or `hdd`."""

    def __str__(self) -> str:
        """As `--osds` takes it."""
        return f"{self.count}x{self.drive}" + (f":{self.device_class}" if self.device_class else "")


def parse_osds(text: str, drive: str) -> Tuple[OsdGroup, ...]:
    """Groups of `3`, or of `3xnvme,3xhdd:archive`: count, drive, and device class where it is not Ceph's own."""
    if re.fullmatch(r"\d{1,3}", text):
        return (OsdGroup(int(text), drive),)
    groups = []
    for part in text.split(","):
        match = _GROUP.fullmatch(part.strip())
        if not match:
            raise InputError("--osds", repr(text), "a number, or groups such as 3xnvme,3xhdd or 2xnvme:fast,4xhdd")
        groups.append(OsdGroup(int(match[1]), match[2], match[3] or ""))
    return tuple(groups)


@dataclass(frozen=True)
class LabOptions:
    """A lab's hardware and layout."""

    release: str = "tentacle"
    groups: Tuple[OsdGroup, ...] = (OsdGroup(3, "nvme"),)
    drives: Mapping[str, DriveSet] = field(default_factory=dict)
    """Drives of one's own, by the name that `groups` call them by."""
    slower: float = 1.0
    """So many times slower than they say are all emulated drives."""
    iops: int = 1075
    """With `throttle`: what each device does per second, reads and writes each."""
    bandwidth: int = 60 * MIB
    mons: int = 1
    mgrs: int = 1
    size: int = 3
    device_size: int = 0
    """Bytes; 0 where it follows from where the bytes lie (`memory.py`)."""
    storage: str = AUTO
    shards: int = 0
    """osd_op_num_shards; 0: what Ceph has for the media."""
    threads: int = 0
    """osd_op_num_threads_per_shard; 0: what Ceph has for the media."""
    pools: Tuple[NamedPool, ...] = ()
    """None: see `made_pools`."""

    def __post_init__(self) -> None:
        if self.release not in RELEASES:
            raise InputError("--release", repr(self.release), " or ".join(RELEASES))
        if self.storage not in STORAGES:
            raise InputError("--storage", repr(self.storage), " or ".join(STORAGES))
        _within("--osds", self.osds, 1, MOST_OSDS)
        for group in self.groups:
            _within("--osds", group.count, 1, MOST_OSDS)
            if group.drive != THROTTLE and group.drive not in self.drives:
                preset(group.drive)
        if self.throttled and any(group.drive != THROTTLE for group in self.groups):
            raise InputError("--osds", ",".join(map(str, self.groups)), f"{THROTTLE} alone, or emulated drives alone")
        _within("--slower", self.slower, 1, 1000)
        if self.throttled and self.slower != 1:
            raise InputError("--slower", f"with --drive {THROTTLE}", "--iops and --bandwidth there")
        for osd in range(self.osds):
            self.drive_of(osd)
        _within("--iops", self.iops, 50, 100_000)
        _within("--bandwidth", self.bandwidth, MIB, 10 * GIB)
        if self.mons not in (1, 3):
            raise InputError("--mons", str(self.mons), "1 or 3")
        _within("--mgrs", self.mgrs, 1, 3)
        _within("--size", self.size, 1, 10)
        if self.size > self.osds:
            # every OSD is a CRUSH host of its own, so each replica needs one
            raise InputError("--size", str(self.size), f"at most the number of OSDs, {self.osds}")
        if self.device_size:
            _within("--device-size", self.device_size, 2 * GIB, 1024 * GIB)
        _within("--shards", self.shards, 0, 64)
        _within("--threads", self.threads, 0, 16)
        for pool in self.pools:
            self._check(pool)

    @property
    def osds(self) -> int:
        """How many there are."""
        return sum(group.count for group in self.groups)

    def _check(self, pool: NamedPool) -> None:
        place, layout = f"pool {pool.name}", pool.layout
        if sum(pool.name == other.name for other in self.pools) > 1:
            raise InputError(place, "it twice", "a name of its own for each pool")
        if layout.device_class is not None and layout.device_class not in self.classes:
            raise InputError(place, f"device class {layout.device_class}", f"one of {', '.join(sorted(self.classes))}")
        there = self.osds if layout.device_class is None else len(self.classes[layout.device_class])
        if layout.size > there:
            raise InputError(place, f"{layout} on {there} OSDs", f"at least {layout.size} OSDs: --osds")

    @property
    def made_pools(self) -> Tuple[NamedPool, ...]:
        """Those of `pools`; else `rbd`, or in a lab of several device classes `rbd-CLASS` on each."""
        if self.pools:
            return self.pools
        if len(self.classes) == 1:
            return (NamedPool("rbd", PoolLayout(self.size)),)
        return tuple(
            NamedPool(f"rbd-{name}", PoolLayout(min(self.size, len(osds)), device_class=name))
            for name, osds in self.classes.items()
        )

    @property
    def throttled(self) -> bool:
        """Whether the kernel's cgroup is the drive."""
        return any(group.drive == THROTTLE for group in self.groups)

    def group_of(self, osd: int) -> OsdGroup:
        """OSDs are numbered group by group."""
        first = 0
        for group in self.groups:
            first += group.count
            if osd < first:
                return group
        raise InputError("osd", str(osd), f"0 to {self.osds - 1}")

    def drive_of(self, osd: int) -> Optional[DriveSet]:
        """What an OSD stands on; None where it is the kernel's throttle."""
        name = self.group_of(osd).drive
        return None if name == THROTTLE else (self.drives.get(name) or PRESETS[name]).slowed(self.slower)

    def media_of(self, osd: int) -> str:
        """`ssd` or `hdd`: whose options the OSD goes by."""
        drive = self.drive_of(osd)
        return "ssd" if drive is None else drive.media

    def bandwidth_of(self, osd: int) -> int:
        """Bytes a second that mClock is told of."""
        drive = self.drive_of(osd)
        return self.bandwidth if drive is None else round(drive.data.sequential_bandwidth)

    @property
    def classes(self) -> Dict[str, List[int]]:
        """Device class -> the ids of its OSDs."""
        osds_of: Dict[str, List[int]] = {}
        for osd in range(self.osds):
            osds_of.setdefault(self.group_of(osd).device_class or self.media_of(osd), []).append(osd)
        return osds_of

    def to_dict(self) -> Dict[str, Any]:
        """Plain values for the state file."""
        drives = {name: drive.to_dict() for name, drive in self.drives.items()}
        pools = [pool.to_dict() for pool in self.pools]
        groups = ",".join(map(str, self.groups))
        return {**asdict(self), "groups": groups, "osds": self.osds, "drives": drives, "pools": pools}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> LabOptions:
        """Options that some file or user stated; what is absent has its default, and fewer OSDs fewer replicas.

        `osds` and `drive` may stand for `groups`. A device limited to `iops`, with no drive named, is a throttled one.
        """
        own = {name: values[name] for name in (one.name for one in fields(LabOptions)) if name in values}
        throttle = "drive" not in values and "groups" not in values and ("iops" in values or "bandwidth" in values)
        drive = str(values.get("drive", THROTTLE if throttle else LabOptions.groups[0].drive))
        if "groups" in own:
            own["groups"] = parse_osds(str(own["groups"]), drive)
        else:
            own["groups"] = parse_osds(str(values.get("osds", LabOptions.groups[0].count)), drive)
        own["drives"] = {
            name: one if isinstance(one, DriveSet) else DriveSet.from_dict(one)
            for name, one in dict(own.get("drives", {})).items()
        }
        own["pools"] = tuple(
            one if isinstance(one, NamedPool) else NamedPool.from_dict(one) for one in own.get("pools", ())
        )
        if any(group.drive == THROTTLE for group in own["groups"]):
            # one queue: with more, each holds a part of the few operations that a small device serves
            own.setdefault("shards", 1)
            own.setdefault("threads", 5)
        elif ("iops" in values or "bandwidth" in values) and "groups" not in values:
            raise InputError("--iops, --bandwidth", f"with --drive {drive}", f"--drive {THROTTLE}")
        own.setdefault("size", max(1, min(LabOptions.size, sum(group.count for group in own["groups"]))))
        return LabOptions(**own)

    def differences(self, request: Mapping[str, Any]) -> Dict[str, Tuple[Any, Any]]:
        """Those of these values that differ from what was explicitly wanted, each with what that was."""
        wishes, own = (options._comparable() for options in (LabOptions.from_dict(request), self))
        names = {"drive" if name == "groups" else name for name in request if name != "drives"}
        if {"iops", "bandwidth"} & names:
            names.add("drive")
        if "osds" in names and not str(request["osds"]).isdigit():
            names = (names - {"osds"}) | {"drive"}
        if request.get("storage") == AUTO:
            names.discard("storage")
        return {name: (own[name], wishes[name]) for name in own if name in names and own[name] != wishes[name]}

    def _comparable(self) -> Dict[str, Any]:
        """The values as people ask for them: how many OSDs, and on what."""
        drives = {group.drive for group in self.groups}
        whole = {name: value for name, value in self.to_dict().items() if name not in ("groups", "drives")}
        # one kind of drive is the same whatever the number of OSDs
        whole["pools"] = ", ".join(map(str, self.made_pools))
        return {**whole, "drive": drives.pop() if len(drives) == 1 else ",".join(map(str, self.groups))}


def default_name(release: str) -> str:
    """A lab's name where none is given."""
    return "lab" if release == "tentacle" else f"lab-{release}"


def checked_drive_name(name: str) -> str:
    """A name for a drive of one's own. Raises InputError where it cannot stand in `--osds`, or is a preset's."""
    if name in NAMES or not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        raise InputError(
            "drive's file", repr(name), f"another name than {', '.join(NAMES)}: lower-case letters, digits and hyphens"
        )
    return name


def _within(place: str, value: float, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(place, str(value), f"{least} to {most}")
