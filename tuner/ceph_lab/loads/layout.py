"""How a load's pool keeps its objects: replicas or erasure code, on the OSDs of which device class."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_lab.loads import LabUnderLoad
from ceph_tuner.core.errors import InputError, LoadFailed

EXPECTED = "replicated:N or ec:K+M, such as replicated:3 or ec:2+1"
_TEXT = re.compile(r"replicated:(?P<replicas>\d+)|ec:(?P<data>\d+)\+(?P<coding>\d+)", re.ASCII)
_CLASS = re.compile(r"[a-z0-9]{1,20}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", re.ASCII)
MOST = 16


@dataclass(frozen=True)
class PoolLayout:
    """Replicated, or erasure-coded where `chunks` (data, coding) are given. No class: every OSD."""

    replicas: int = 3
    chunks: Optional[Tuple[int, int]] = None
    device_class: Optional[str] = None
    pgs: int = 32

    def __post_init__(self) -> None:
        if not 1 <= self.replicas <= MOST:
            raise InputError("pool layout", f"{self.replicas} replicas", f"1 to {MOST}")
        if self.chunks is not None and (self.chunks[0] < 2 or self.chunks[1] < 1 or sum(self.chunks) > MOST):
            raise InputError("pool layout", str(self), f"at least 2 data chunks and 1 coding chunk, {MOST} in all")
        if self.device_class is not None and not _CLASS.fullmatch(self.device_class):
            raise InputError("device class", repr(self.device_class), "lower-case letters and digits, such as ssd")
        if not 1 <= self.pgs <= 1024:
            raise InputError("pool layout", f"{self.pgs} PGs", "1 to 1024")

    @staticmethod
    def parse(place: str, text: str, device_class: str = "") -> PoolLayout:
        """Of `replicated:3` or `ec:2+1`. Raises InputError that names the place."""
        match = _TEXT.fullmatch(text.strip())
        if not match:
            raise InputError(place, repr(text), EXPECTED)
        chunks = (int(match["data"]), int(match["coding"])) if match["data"] else None
        try:
            return PoolLayout(int(match["replicas"] or 1), chunks, device_class or None)
        except InputError as error:
            raise InputError(place, error.found, error.expected) from error

    def __str__(self) -> str:
        """As `parse` takes it."""
        return f"ec:{self.chunks[0]}+{self.chunks[1]}" if self.chunks else f"replicated:{self.replicas}"

    @property
    def name(self) -> str:
        """Part of the pool's name: layouts that differ in more than the number of PGs have different names."""
        return f"{re.sub('[:+]', '-', str(self))}{f'-{self.device_class}' if self.device_class else ''}"

    @property
    def size(self) -> int:
        """OSDs of a PG."""
        return sum(self.chunks) if self.chunks else self.replicas

    @property
    def min_size(self) -> int:
        """OSDs with which a PG still takes writes: one may be away."""
        return max(1, self.size - 1)

    @property
    def erasure_coded(self) -> bool:
        """Whether it has chunks in the place of replicas."""
        return self.chunks is not None

    @property
    def stored_share(self) -> float:
        """Bytes that one OSD of a PG keeps for each byte of an object."""
        return 1 / self.chunks[0] if self.chunks else 1.0

    def with_pgs(self, pgs: int) -> PoolLayout:
        """The same with another number of PGs."""
        return replace(self, pgs=pgs)

    def placement(self, osds: Sequence[int], pg: int) -> List[int]:
        """OSDs of that PG, the primary first: each OSD in turn, then those that follow it, from another one each round.

        So each OSD has its share of PGs and of primaries, as a cluster's balancer brings about, and every lab the same.
        """
        turn, first = divmod(pg, len(osds))
        ids = sorted(osds)
        others = [*ids[first + 1 :], *ids[:first]]
        return [ids[first], *(others[(turn + place) % len(others)] for place in range(self.size - 1))]

    def osds(self, lab: LabUnderLoad) -> List[int]:
        """Ids of the OSDs that it may use. Raises LoadFailed where the lab has too few of them."""
        if self.device_class is None:
            ids = list(lab.osds)
        elif self.device_class in lab.classes:
            ids = sorted(lab.classes[self.device_class])
        else:
            classes = ", ".join(sorted(lab.classes))
            raise LoadFailed(f"the lab {lab.name!r} has no OSD of class {self.device_class} (it has {classes})", "")
        if len(ids) < self.size:
            of = f" of class {self.device_class}" if self.device_class else ""
            raise LoadFailed(
                f"{self} needs at least {self.size} OSDs{of}, the lab {lab.name!r} has {len(ids)}",
                "take one with more --osds",
            )
        return ids


@dataclass(frozen=True)
class NamedPool:
    """A pool that a lab is made with."""

    name: str
    layout: PoolLayout

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name.startswith("load-"):
            raise InputError(
                "pool's name", repr(self.name), "letters, digits, dots, hyphens and underscores, not load-…"
            )

    def __str__(self) -> str:
        """For people."""
        on = f" on {self.layout.device_class}" if self.layout.device_class else ""
        return f"{self.name} ({self.layout}{on}, {self.layout.pgs} PGs)"

    def to_dict(self) -> Dict[str, Any]:
        """Plain values; `from_dict` takes them."""
        plain = {"name": self.name, "layout": str(self.layout), "pgs": self.layout.pgs}
        return {**plain, **({"device_class": self.layout.device_class} if self.layout.device_class else {})}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> NamedPool:
        """Raises InputError."""
        layout = PoolLayout.parse("layout", str(values["layout"]), str(values.get("device_class", "")))
        return NamedPool(str(values["name"]), layout.with_pgs(int(values.get("pgs", layout.pgs))))


def creation(name: str, layout: PoolLayout) -> List[Dict[str, Any]]:
    """Monitor commands that make the pool, with a rule or a profile of its own name where it needs one."""
    pool: Dict[str, Any] = {"prefix": "osd pool create", "pool": name, "pg_num": layout.pgs, "pgp_num": layout.pgs}
    pool["autoscale_mode"] = "off"
    enable = {"prefix": "osd pool application enable", "pool": name, "app": "rbd"}
    if layout.chunks is not None:
        data, coding_chunks = layout.chunks
        # every OSD of a lab is a CRUSH host of its own
        profile = [f"k={data}", f"m={coding_chunks}", "crush-failure-domain=host"]
        if layout.device_class is not None:
            profile.append(f"crush-device-class={layout.device_class}")
        pool.update(pool_type="erasure", erasure_code_profile=name)
        return [
            {"prefix": "osd erasure-code-profile set", "name": name, "profile": profile},
            pool,
            {"prefix": "osd pool set", "pool": name, "var": "allow_ec_overwrites", "val": "true"},
            enable,
        ]
    pool.update(pool_type="replicated", size=layout.size)
    if layout.device_class is None:
        return [pool, enable]
    rule = {"prefix": "osd crush rule create-replicated", "name": name, "root": "default", "type": "host"}
    return [{**rule, "class": layout.device_class}, {**pool, "rule": name}, enable]


def layout_of(lab: LabUnderLoad, pool: str, device_class: str, replicas: int, place: str = "pool") -> PoolLayout:
    """What a load uses: `pool` as text; where that is empty, replicas, no more than there are OSDs of the class."""
    if pool:
        return PoolLayout.parse(place, pool, device_class)
    alone = PoolLayout(1, device_class=device_class or None)
    return PoolLayout(max(1, min(replicas, len(alone.osds(lab)))), device_class=device_class or None)
