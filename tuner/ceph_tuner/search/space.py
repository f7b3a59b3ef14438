"""What is searched: settings as points of the unit cube, valid by construction.

Symbols
    u        a point, one number in [0, 1] for each free value
    RES, LIM reservation and limit in hundredths of the OSD's capacity (integers, so that encodings round-trip exactly)

Reservations break a stick: the first class takes a share of 1, the next a share of what is left, and so on; so their
sum is at most 1, which Ceph itself does not check. A limit is a share of what lies above the class's reservation,
with "no limit" at the upper end, next to 1.0. Weights and counts are integers on a log scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, OVERRIDE, searchable
from ceph_tuner.core.knobs.releases import CLASSES, MCLOCK_NINE, Release, Settings, Value
from ceph_tuner.optimise.contract import Array

STEPS = 100
WEIGHT_MAX = 64
LIMIT_MIN = 2
"""Hundredths. A limit of 0 would mean none; one hundredth of a small OSD is less than one scrub chunk a second."""

_NO_LIMIT_FROM, _LIMIT_SPAN = 0.95, 0.9

Point = List[float]


@dataclass(frozen=True)
class Count:
    """A whole-number knob, on the scale that its table entry names. Its values are multiples of `step`."""

    name: str
    low: int
    high: int
    log_scale: bool = True
    step: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(f"{self.name}: low (={self.low}) must be above 0 and below high (={self.high})")
        if self.step < 1 or self.low % self.step or self.high % self.step:
            raise ValueError(f"{self.name}: low (={self.low}) and high (={self.high}) must be multiples of {self.step}")

    def decode(self, u: Array) -> Array:
        """Shares of the range -> whole values, shape (n,)."""
        values = self.low * (self.high / self.low) ** u if self.log_scale else self.low + (self.high - self.low) * u
        whole: Array = np.rint(values / self.step) * self.step
        return whole

    def encode(self, values: Array) -> Array:
        """Values -> shares of the range, shape (n,); values beyond the range go to its ends."""
        inside = np.clip(values, self.low, self.high)
        shares: Array = (
            np.log(inside / self.low) / math.log(self.high / self.low)
            if self.log_scale
            else (inside - self.low) / (self.high - self.low)
        )
        return shares


WORK_OF: Dict[str, Tuple[str, ...]] = {
    "scrub": ("osd_max_scrubs", "osd_scrub_chunk_max", "osd_scrub_cost"),
    "snaptrim": ("osd_pg_max_concurrent_snap_trims", "osd_max_trimming_pgs", "osd_snap_trim_cost"),
}
"""Kind of work -> knobs searched for it beside the nine, where the release honours them, unless others are chosen."""

CHUNK = "osd_recovery_max_chunk"

WORK_ON_SHARDS: Dict[str, Tuple[str, ...]] = {"recovery": (CHUNK,), "backfill": (CHUNK,)}
"""The same for OSDs with several shards. A limit is divided among the shards, and a pull costs a whole chunk of it: one
of the default size holds a shard back for seconds, so that the chunk does what the limit does with one shard."""

DEFERRED = "bluestore_deferred_batch_ops_hdd"

WORK_ON_DISKS: Dict[str, Tuple[str, ...]] = {"client": (DEFERRED,)}
"""The same for OSDs with their data on a hard disk. Clients wait longest there for the batches of deferred writes, and
no share, weight or limit of mClock shortens these."""

CLIENT_LIMIT = "osd_mclock_scheduler_client_lim"


@dataclass(frozen=True)
class KnobSpace:
    """The free knobs; what is not free keeps its value of `origin`, the settings in force."""

    free: Tuple[str, ...]
    origin: Mapping[str, float]
    counts: Mapping[str, Count] = field(default_factory=dict)
    always: Mapping[str, Value] = field(default_factory=dict)
    """Values that a free knob needs beside it to work."""
    shards: int = 1
    """Of an OSD."""

    def __post_init__(self) -> None:
        if not self.free:
            raise ValueError("a space has at least one free knob")
        for name in self.free:
            if name not in MCLOCK_NINE and name not in self.counts:
                raise ValueError(f"{name} cannot be searched")
        if any(name in MCLOCK_NINE for name in self.free):
            absent = [name for name in MCLOCK_NINE if name not in self.free and name not in self.origin]
            if absent:
                raise ValueError(f"the settings in force lack {absent[0]}")

    @property
    def size(self) -> int:
        """Dimensions of a point."""
        return len(self.free)

    @property
    def left_alone(self) -> Tuple[str, ...]:
        """Those of the nine that are of a class of which nothing is free, where others of the nine are."""
        if not any(name in MCLOCK_NINE for name in self.free):
            return ()
        classes = (_names(service_class) for service_class in CLASSES)
        return tuple(name for names in classes if not set(names) & set(self.free) for name in names)

    def decode(self, point: Sequence[float]) -> Settings:
        """Give the settings of a point: every free knob, and all nine mClock values where one of them is free."""
        return self.decode_all(np.asarray([point], dtype=float))[0]

    def decode_all(self, points: Array) -> List[Settings]:
        """Give the settings of each point, shape (n, size)."""
        columns = {
            name: (values.astype(int) if name in self.counts or name.endswith("_wgt") else values).tolist()
            for name, values in self.columns(points).items()
        }
        return [{**self.always, **dict(zip(columns, row))} for row in zip(*columns.values())]

    def columns(self, points: Array) -> Dict[str, Array]:
        """Give the settings of many points, shape (n, size) -> knob -> shape (n,), without `always`."""
        if points.shape[1] != self.size:
            raise ValueError(f"a point has {self.size} numbers (={points.shape[1]})")
        u = dict(zip(self.free, np.clip(points, 0.0, 1.0).T))
        columns: Dict[str, Array] = {}
        if any(name in MCLOCK_NINE for name in self.free):
            # a fixed value is passed on untouched, also where it has more digits than our steps
            columns = {name: np.full(len(points), self.origin[name]) for name in MCLOCK_NINE}
            remainder: Array = np.full(len(points), self._free_stick(self.origin), dtype=float)
            for service_class in CLASSES:
                res, wgt, lim = _names(service_class)
                shares = np.full(len(points), float(_whole_hundredths(self.origin[res])))
                if res in u:
                    shares = np.rint(u[res] * self._cap(service_class, remainder, self.origin))
                    remainder = remainder - shares
                    columns[res] = shares / STEPS
                if wgt in u:
                    columns[wgt] = _weight().decode(u[wgt])
                if lim in u:
                    columns[lim] = _decode_limit(u[lim], shares)
        columns.update({name: self.counts[name].decode(u[name]) for name in self.free if name in self.counts})
        return columns

    def encode(self, settings: Mapping[str, object]) -> Point:
        """Give the nearest point; inverse of `decode` for whatever that gives. Knobs not free are as in `origin`."""
        point: Point = self.encode_all([settings])[0].tolist()
        return point

    def encode_all(self, settings: Sequence[Mapping[str, object]]) -> Array:
        """Give the nearest point of each, shape (n, size); all of them have the same names."""
        names = [name for name in self.free if name in settings[0]]
        columns = {name: np.array([_number(each[name]) for each in settings]) for name in names}
        return self._points(columns, len(settings))

    def rounded(self, points: Array) -> Array:
        """Move points to where the settings are that they stand for, shape (n, size)."""
        return self._points(self.columns(points), len(points))

    def _points(self, columns: Mapping[str, Array], count: int) -> Array:
        """The other way than `columns`; knobs that are not among them are as in `origin`."""
        fixed = {name: np.full(count, value) for name, value in self.origin.items()}
        values = {**fixed, **{name: columns[name] for name in self.free if name in columns}}
        u: Dict[str, Array] = {}
        nothing = np.zeros(count)
        remainder: Array = np.full(count, float(self._free_stick(self.origin)))
        for service_class in CLASSES:
            res, wgt, lim = _names(service_class)
            reservation = _hundredths(values.get(res, nothing))
            if res in self.free:
                cap = self._cap(service_class, remainder, self.origin)
                reservation = np.minimum(reservation, cap)
                u[res] = np.divide(reservation, cap, out=np.zeros(count), where=cap > 0)
                remainder = remainder - reservation
            if wgt in self.free:
                u[wgt] = _weight().encode(values.get(wgt, nothing + 1.0))
            if lim in self.free:
                u[lim] = _encode_limit(values.get(lim, nothing), reservation)
        u.update({name: self.counts[name].encode(values[name]) for name in self.counts if name in values})
        return np.clip(np.column_stack([u.get(name, nothing + 0.5) for name in self.free]), 0.0, 1.0)

    def nearest(self, settings: Mapping[str, object]) -> Settings:
        """Give the settings of the space that are closest to these."""
        return self.decode(self.encode(settings))

    def standing_for(self, settings: Mapping[str, object]) -> Optional[Settings]:
        """Give the settings of the space that stand for these; None where knobs differ that are not searched."""
        own = {name: value for name, value in settings.items() if name in self.origin}
        return None if self.unsearched(own) else self.nearest(own)

    def unsearched(self, settings: Mapping[str, object]) -> List[str]:
        """Give the knobs by which settings differ from all of this space, so that none of it can stand for them.

        Values of `left_alone` are no such difference: the work that is meant is not in their class.
        """
        same = {*self.free, *self.left_alone}
        return [name for name, value in settings.items() if name not in same and self.origin.get(name) != value]

    def _free_stick(self, values: Mapping[str, float]) -> int:
        """Hundredths that fixed reservations leave."""
        names = [_names(service_class)[0] for service_class in CLASSES if _names(service_class)[0] not in self.free]
        return max(0, STEPS - sum(_whole_hundredths(values.get(name, 0.0)) for name in names))

    def _cap(self, service_class: str, remainder: Array, values: Mapping[str, float]) -> Array:
        """Give the highest reservations: what is left of the stick, and no more than a limit that stays as it is."""
        lim = _names(service_class)[2]
        limit = 0 if lim in self.free else _whole_hundredths(values.get(lim, 0.0))
        return np.minimum(remainder, limit) if limit else remainder


def space_for(
    release: Release,
    work: Iterable[str],
    in_force: Mapping[str, Value],
    knobs: Optional[Sequence[str]] = None,
    shards: int = 1,
    kind: str = "ssd",
) -> KnobSpace:
    """Give the space for the kinds of work that the objectives are about, or of the `knobs` knobs.

    `in_force` holds at least the nine values; knobs that it lacks have the release's default. `shards`: of an OSD; of
    the one with the fewest where they differ. `kind`: of their drives, `ssd` or `hdd`.
    Raises InputError for a chosen knob that the release ignores, or that may not be tried on a live cluster.
    """
    # the recovery knobs work only with the override, so choosing one chooses that too
    possible = [entry.name for entry in searchable(release, {**in_force, OVERRIDE: True})]
    on_shards, on_disks = WORK_ON_SHARDS if shards > 1 else {}, WORK_ON_DISKS if kind == "hdd" else {}
    kinds, tables = sorted(work), (WORK_OF, on_shards, on_disks)
    of_work = [
        *_shares(release, kinds, in_force),
        *(name for each in kinds for table in tables for name in table.get(each, ())),
    ]
    for name in knobs or ():
        if name in KNOBS and not KNOBS[name].effective(release).works:
            effect = KNOBS[name].effective(release)
            instead = f"{' or '.join(effect.instead)} instead" if effect.instead else "it left out"
            raise InputError("knobs", f"{name}, which does nothing on {release.title} ({effect.because})", instead)
        if name not in possible:
            raise InputError("knobs", repr(name), "one of " + ", ".join(possible))
    free = tuple(name for name in dict.fromkeys(knobs or of_work) if name in possible)
    counts = {name: _count(name, release, in_force) for name in free if name not in MCLOCK_NINE}
    origin = {name: _number(in_force[name]) for name in MCLOCK_NINE if name in in_force}
    for name in counts:
        value = in_force.get(name, KNOBS[name].default(release))
        origin[name] = counts[name].low if value is None else _number(value)
    needs = {need: value for name in counts for need, value in KNOBS[name].effective(release).needs}
    return KnobSpace(free, origin, counts, needs, shards)


def _shares(release: Release, kinds: Sequence[str], in_force: Mapping[str, Value]) -> Sequence[str]:
    """Those of the nine that are about the clients and this work; of all classes where no background work is meant.

    What serves other work stays as it is in force: no objective would show that recovery takes a day now, until a disk
    fails. A limit on clients only takes from them, so that one is searched where it is in force and may be lifted.
    """
    background = {release.service_classes[kind] for kind in kinds if kind in release.service_classes} - {"client"}
    classes = [each for each in CLASSES if each == "client" or each in (background or CLASSES)]
    names = [name for each in classes for name in _names(each)]
    limited = _number(in_force.get(CLIENT_LIMIT, 0.0)) > 0
    return [name for name in names if name != CLIENT_LIMIT or limited]


def _count(name: str, release: Release, in_force: Mapping[str, Value]) -> Count:
    low, high = KNOBS[name].search_bounds
    if name == "osd_scrub_chunk_max":
        # a chunk never gets smaller than osd_scrub_chunk_min, so a smaller maximum would do nothing
        smallest = in_force.get("osd_scrub_chunk_min", KNOBS["osd_scrub_chunk_min"].default(release))
        low = max(low, _number(smallest))
    return Count(name, max(1, round(low)), round(high), KNOBS[name].log_scale, KNOBS[name].search_step)


def _names(service_class: str) -> Tuple[str, str, str]:
    stem = f"osd_mclock_scheduler_{service_class}_"
    return stem + "res", stem + "wgt", stem + "lim"


def _weight() -> Count:
    return Count("weight", 1, WEIGHT_MAX)


def _decode_limit(u: Array, reservation: Array) -> Array:
    low = np.maximum(reservation, LIMIT_MIN)
    limit = (low + np.rint(np.minimum(1.0, u / _LIMIT_SPAN) * (STEPS - low))) / STEPS
    return np.where(u > _NO_LIMIT_FROM, 0.0, limit)


def _encode_limit(limit: Array, reservation: Array) -> Array:
    low = np.maximum(reservation, LIMIT_MIN)
    above = np.maximum(_hundredths(limit), low) - low
    shares = _LIMIT_SPAN * np.divide(above, STEPS - low, out=np.zeros_like(low), where=low < STEPS)
    return np.where((limit <= 0) | (limit > 1), 1.0, shares)


def _whole_hundredths(fraction: float) -> int:
    # as `_hundredths`: of one number, Python's own takes a tenth of the time
    return round(min(max(fraction * STEPS, 0.0), STEPS))


def _hundredths(fractions: Array) -> Array:
    hundredths: Array = np.clip(np.rint(fractions * STEPS), 0, STEPS)
    return hundredths


def _number(value: object) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    raise ValueError(f"a searched knob's value (={value!r}) must be a number")
