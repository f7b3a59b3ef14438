"""Data moved at the clients' pace: an OSD or a host emptied, a CRUSH weight changed, a pool's PGs split or merged.

    view = read_map(cluster)                       # PGs, pools, OSDs, rules, upmap entries, flags
    plan = DrainPlan(frozenset({3}))               # what is left to move, and the next writes: pure
    Mover(cluster, task, plan, record, lock).run() # some PGs at a time, as fast as objectives allow

The plans (`drain_plan`, `reweight_plan`, `pgs_plan`) and `placement`, `forecast` are functions over the values here.
`under_way` has what was written and has not arrived. `map_view`, `switches`, `record`, `weights` and `mover` reach out.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import AbstractSet, Dict, FrozenSet, List, Mapping, Optional, Protocol, Tuple

from ceph_tuner.core.measure.pg_counts import HARD_RATIO, MOST_PGS

Pairs = Tuple[Tuple[int, int], ...]
"""The pairs of a pg_upmap_items entry: from which OSD to which."""

Steps = Tuple[Tuple[int, float, float], ...]
"""Of a move, each with the PGs and bytes that it moved, and the seconds that it took, waits for clients included."""
LAST_STEPS = 20
"""So many of the last steps tell the rate: clients and drives of hours ago say little."""

NONE = 2**31 - 1
"""CRUSH_ITEM_NONE: a place of an erasure-coded PG that no OSD fills."""


@dataclass(frozen=True)
class MovePg:
    """One PG: where it is to be, and where it is."""

    pgid: str
    pool: int
    up: Tuple[int, ...]
    acting: Tuple[int, ...]
    copy_bytes: float
    """On each of its OSDs."""
    state: FrozenSet[str]
    told_epoch: int = -1
    """Of the OSD map by which it told this."""

    @property
    def settled(self) -> bool:
        """Whether all of it is where it is to be."""
        return {"active", "clean"} <= self.state and self.up == self.acting and "remapped" not in self.state

    @property
    def moves(self) -> bool:
        """Whether data of it is to be copied: `remapped` alone may stay so for ever, as where CRUSH finds no OSD."""
        return "clean" not in self.state

    @property
    def degraded(self) -> bool:
        """Whether copies of it are missing."""
        return bool(self.state & {"degraded", "undersized"})


@dataclass(frozen=True)
class MovePool:
    """One pool; targets are what Ceph steps to by itself."""

    number: int
    name: str
    erasure: bool
    rule: int
    pg_num: int
    pg_num_target: int
    pgp_num: int
    pgp_num_target: int
    autoscale: str
    """on, warn or off."""


@dataclass(frozen=True)
class MoveOsd:
    """One OSD with its place and its room."""

    number: int
    alive: bool
    """Up, and in."""
    weight: float
    """In the CRUSH map."""
    device_class: str
    places: Mapping[str, str]
    """CRUSH type -> name of the bucket above it; `osd` is itself."""
    size_bytes: float
    used_bytes: float
    pgs: int = 0


@dataclass(frozen=True)
class CrushRule:
    """What a rule asks of a PG's OSDs."""

    takes: Tuple[Tuple[str, str], ...]
    """Roots, each with its device class or none."""
    levels: Tuple[str, ...]
    """Types of the choose steps, the widest first; of the first take."""
    alike: bool = True
    """Whether every take has the same choose steps."""


@dataclass(frozen=True)
class MapView:
    """A cluster at one moment."""

    at: float
    pgs: Tuple[MovePg, ...]
    pools: Mapping[int, MovePool]
    osds: Mapping[int, MoveOsd]
    rules: Mapping[int, CrushRule]
    upmaps: Mapping[str, Pairs] = field(default_factory=dict)
    whole_upmaps: FrozenSet[str] = frozenset()
    """PGs with a pg_upmap entry, which says all of their OSDs."""
    flags: FrozenSet[str] = frozenset()
    backfillfull_ratio: float = 0.9
    most_pgs: float = MOST_PGS.default
    """Per OSD, of all pools; the monitors call more too many."""
    hard_most_pgs: float = MOST_PGS.default * HARD_RATIO.default
    """Per OSD; it leaves a PG beyond that inactive."""
    min_compat_client: str = "luminous"
    epoch: int = 0
    """Of the OSD map."""

    def pool(self, name: str) -> Optional[MovePool]:
        """The pool of that name; None where there is none."""
        return next((pool for pool in self.pools.values() if pool.name == name), None)


class ArrivalCheck(Protocol):
    """When a write has had its whole effect."""

    def arrived(self, view: MapView) -> bool:
        """Whether all data is where the write wants it."""

    def refused(self, view: MapView) -> bool:
        """Whether the cluster has dropped what was written."""


Command = Tuple[str, Mapping[str, str]]
"""A monitor command: prefix and arguments."""


def command_text(command: Command) -> str:
    """As an operator would paste it into a shell: pools' names, and what is stored, are anybody's."""
    prefix, arguments = command
    words = [word for name, value in arguments.items() for word in (value.split() if name == "id" else [value])]
    return shlex.join(["ceph", *prefix.split(), *words])


@dataclass(frozen=True)
class MapWrite:
    """One write to the maps, with its inverse."""

    key: str
    """What it is about: a PG, an OSD, a pool."""
    command: Command
    undo: Command
    moved_bytes: float
    arrival: ArrivalCheck
    follows: bool = False
    """Whether the write before it must not stay without it."""
    moved_pgs: int = 1


class MovePlan(Protocol):
    """What is to be moved: pure, asked again at each look."""

    @property
    def weights_first(self) -> Mapping[int, float]:
        """CRUSH weights that are written before anything moves, all PGs being held where they are."""

    @property
    def weights_last(self) -> Mapping[int, float]:
        """The same, once nothing is left to move."""

    def left(self, view: MapView, passed_over: FrozenSet[str]) -> Dict[str, float]:
        """What is still to be moved -> its bytes."""

    def on_its_way(self, view: MapView) -> FrozenSet[str]:
        """PGs of it whose data moves now, for whatever reason."""

    def writes(
        self, view: MapView, places: int, passed_over: FrozenSet[str], begun: AbstractSet[str] = frozenset()
    ) -> List[MapWrite]:
        """The next ones, for so many PGs; none where nothing can be moved now.

        `begun`: keys of writes whose data is on its way. Their PGs may tell in seconds alone that they have been moved.
        """


def total_bytes(bytes_by_key: Mapping[str, float]) -> float:
    """All that is left."""
    return sum(bytes_by_key.values())
