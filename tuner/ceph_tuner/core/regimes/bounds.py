"""The names and bounds by which regimes are told, as they are by default and as an operator states them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError, Malformed
from ceph_tuner.core.measure.metrics import METRICS, parted
from ceph_tuner.core.measure.timeline import POLICY_NAME

IDLE = "idle"
"""The regime in which no marker is on."""
VERSION = 1
MOST_MARKERS = 12
LONGEST_S = 86400.0
BOUNDS_KEY = "book/regimes"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,23}")
_KEYS = ("name", "metric", "enter", "leave", "hold_s", "of_capacity")
_POLICY_KEYS = ("name", "policy")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name == IDLE:
        raise ValueError(f"name (={name!r}) must be 1 to 24 of a-z, 0-9, '-', and not {IDLE}")


@dataclass(frozen=True)
class Marker:
    """On from `hold_s` at `enter` or above until `hold_s` at `leave` or below; in between it stays as it is."""

    name: str
    metric: str
    enter: float
    leave: float
    hold_s: float = 15.0
    of_capacity: bool = False
    """Whether the bounds are shares of what the OSDs can do, in operations per second."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.metric not in METRICS or parted(self.metric)[1] is not None:
            raise ValueError(f"metric (={self.metric!r}) must be one of a whole cluster (`ceph-tuner slo metrics`)")
        if self.of_capacity and not self.metric.endswith("iops"):
            raise ValueError(f"of_capacity is for operations per second, and not for {self.metric}")
        if not (math.isfinite(self.enter) and math.isfinite(self.leave) and 0 <= self.leave < self.enter):
            raise ValueError(f"leave (={self.leave}) must be at least 0 and less than enter (={self.enter})")
        if not 0 <= self.hold_s <= LONGEST_S:
            raise ValueError(f"hold_s (={self.hold_s}) must be 0 to {LONGEST_S:g}")

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, which `parse_bounds` reads."""
        return {name: getattr(self, name) for name in _KEYS}

    def __str__(self) -> str:
        of = " of capacity" if self.of_capacity else ""
        return f"{self.name}: {self.metric} {self.enter:g} to {self.leave:g}{of} for {self.hold_s:g} s"


@dataclass(frozen=True)
class PolicyMarker:
    """On while a policy of the objectives' calendar holds."""

    name: str
    policy: str

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not POLICY_NAME.fullmatch(self.policy):
            raise ValueError(f"policy (={self.policy[:60]!r}) must be the name of one of the calendar, or base")

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, which `parse_bounds` reads."""
        return {"name": self.name, "policy": self.policy}

    def __str__(self) -> str:
        return f"{self.name}: while the policy {self.policy} holds"


AnyMarker = Union[Marker, PolicyMarker]


@dataclass(frozen=True)
class RegimeBounds:
    """Every marker, in the order in which a regime names them, and the least time between two changes of regime."""

    markers: Tuple[AnyMarker, ...]
    dwell_s: float = 60.0
    """The calendar's changes of regime are no part of this."""

    def __post_init__(self) -> None:
        names = [marker.name for marker in self.markers]
        if not 0 < len(names) <= MOST_MARKERS or len(set(names)) < len(names):
            raise ValueError(f"markers (={', '.join(names)}) must be 1 to {MOST_MARKERS} of different names")
        policies = [marker.policy for marker in self.of_policies]
        if len(set(policies)) < len(policies):
            raise ValueError(f"policies (={', '.join(policies)}) must have one marker each")
        if not 0 <= self.dwell_s <= LONGEST_S:
            raise ValueError(f"dwell_s (={self.dwell_s}) must be 0 to {LONGEST_S:g}")

    @property
    def of_metrics(self) -> Tuple[Marker, ...]:
        """Markers that are told by a metric."""
        return tuple(marker for marker in self.markers if isinstance(marker, Marker))

    @property
    def of_policies(self) -> Tuple[PolicyMarker, ...]:
        """Markers that are told by the calendar."""
        return tuple(marker for marker in self.markers if isinstance(marker, PolicyMarker))

    def tells(self, regime: str, policies: Collection[str] = ()) -> bool:
        """Whether a regime of this name can be told: each of its markers is one of these, and in their order.

        One policy holds at a time. `policies`: those of the calendar (`SloCalendar.policy_names`), where known.
        """
        wanted = regime.split("+")
        if regime != IDLE and wanted != [marker.name for marker in self.markers if marker.name in wanted]:
            return False
        named = len(self._policies_in(wanted))
        return named == 1 or (named == 0 and not self.mark_all(policies))

    def mark_all(self, policies: Collection[str]) -> bool:
        """Whether each policy of a calendar has a marker: as one always holds, each regime then names one."""
        return bool(policies) and set(policies) <= {marker.policy for marker in self.of_policies}

    def policy_of(self, regime: str) -> Optional[str]:
        """The policy that has to hold for a regime that can be told; None where it names none."""
        return next(iter(self._policies_in(regime.split("+"))), None)

    def _policies_in(self, names: Sequence[str]) -> List[str]:
        return [marker.policy for marker in self.of_policies if marker.name in names]

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, which `parse_bounds` reads."""
        markers = [marker.to_dict() for marker in self.markers]
        return {"version": VERSION, "dwell_s": self.dwell_s, "markers": markers}


DEFAULT = RegimeBounds(
    (
        Marker("busy", "client.iops", 0.1, 0.05, 60.0, of_capacity=True),
        Marker("recovering", "recovery.objects_left", 1, 0),
        Marker("backfilling", "backfill.objects_left", 1, 0),
        Marker("scrub-late", "scrub.pgs_late", 1, 0, 60.0),
        Marker("trimming", "snaptrim.queue", 1, 0),
    )
)


def changes_in_words(old: RegimeBounds, new: RegimeBounds) -> List[str]:
    """What is other with the new bounds, marker by marker; empty where nothing is."""
    before, after = ({marker.name: marker for marker in each.markers} for each in (old, new))
    lines = [f"without {marker}" for name, marker in before.items() if name not in after]
    for name, marker in after.items():
        if name not in before:
            lines.append(f"with {marker}")
        elif before[name] != marker:
            lines.append(f"{marker} (before: {before[name]})")
    if not lines and list(before) != list(after):
        lines.append(f"in the order {', '.join(after)} (before: {', '.join(before)})")
    if old.dwell_s != new.dwell_s:
        lines.append(f"dwell_s {new.dwell_s:g} (before: {old.dwell_s:g})")
    return lines


def regime_of(name: str, bounds: RegimeBounds, place: str = "--regime", policies: Collection[str] = ()) -> str:
    """The name as the plugin writes it, its markers in order. Raises InputError for what is never told.

    `policies`: as for `RegimeBounds.tells`.
    """
    wanted = [part.strip() for part in name.split("+")]
    known = [marker.name for marker in bounds.markers]
    unknown = [part for part in wanted if part not in (*known, IDLE)]
    if unknown or (IDLE in wanted and len(wanted) > 1):
        raise InputError(place, repr(name[:60]), f"{IDLE}, or with + between them: {', '.join(known)}")
    regime = "+".join(marker for marker in known if marker in wanted) or IDLE
    if not bounds.tells(regime):
        raise InputError(place, repr(name[:60]), "one policy of the calendar at a time")
    if not bounds.tells(regime, policies):
        names = ", ".join(marker.name for marker in bounds.of_policies)
        raise InputError(place, repr(name[:60]), f"one of {names} in it: each policy of the calendar has a marker")
    return regime


def parse_bounds(document: Any, place: str = "regimes") -> RegimeBounds:
    """Inverse of `to_dict`. Raises InputError that names the place."""
    if not isinstance(document, Mapping):
        raise InputError(place, type(document).__name__, "a mapping with `markers`")
    _refuse_others(document, ("version", "dwell_s", "markers"), place)
    if document.get("version", VERSION) != VERSION:
        raise InputError(f"{place}.version", repr(document["version"])[:20], str(VERSION))
    items = document.get("markers")
    if not isinstance(items, (list, tuple)):
        raise InputError(f"{place}.markers", type(items).__name__, "a list of markers")
    markers = tuple(_marker(item, f"{place}.markers.{index}") for index, item in enumerate(items[: MOST_MARKERS + 1]))
    dwell_s = _number(document.get("dwell_s", 60.0), f"{place}.dwell_s")
    try:
        return RegimeBounds(markers, dwell_s)
    except ValueError as error:
        raise InputError(place, str(error), "other markers") from error


def stored_bounds(store: Store) -> RegimeBounds:
    """Those of a cluster, else the default ones. Raises InputError where they cannot be read."""
    text = store.get(BOUNDS_KEY)
    if not text:
        return DEFAULT
    try:
        return parse_bounds(read_json(text, BOUNDS_KEY), "the stored regimes")
    except Malformed as fault:
        raise InputError("the stored regimes", fault.found, "`ceph tuner book bounds --default`") from None


def _marker(item: Any, place: str) -> AnyMarker:
    if not isinstance(item, Mapping):
        raise InputError(place, type(item).__name__, f"a mapping with {', '.join(_KEYS)}; or {', '.join(_POLICY_KEYS)}")
    kind = "policy" if "policy" in item else "metric"
    _refuse_others(item, _POLICY_KEYS if kind == "policy" else _KEYS, place)
    texts: List[str] = []
    for name in ("name", kind):
        if not isinstance(item.get(name), str):
            raise InputError(f"{place}.{name}", repr(item.get(name))[:40], "text")
        texts.append(item[name])
    try:
        return PolicyMarker(*texts) if kind == "policy" else _of_metric(item, texts, place)
    except ValueError as error:
        raise InputError(place, str(error), "another marker") from error


def _of_metric(item: Mapping[Any, Any], texts: Sequence[str], place: str) -> Marker:
    """Raises InputError, and ValueError as `Marker`."""
    enter, leave, hold_s = (
        _number(item.get(name, 15.0 if name == "hold_s" else None), f"{place}.{name}")
        for name in ("enter", "leave", "hold_s")
    )
    of_capacity = item.get("of_capacity", False)
    if not isinstance(of_capacity, bool):
        raise InputError(f"{place}.of_capacity", repr(of_capacity)[:40], "true or false")
    return Marker(texts[0], texts[1], enter, leave, hold_s, of_capacity)


def _number(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(place, repr(value)[:40], "a finite number")
    return float(value)


def _refuse_others(mapping: Mapping[Any, Any], names: Tuple[str, ...], place: str) -> None:
    unknown = sorted(str(key)[:40] for key in mapping if key not in names)
    if unknown:
        raise InputError(f"{place}.{unknown[0]}", f"unknown key {unknown[0]!r}", f"one of {', '.join(names)}")
