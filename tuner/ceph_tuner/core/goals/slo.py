"""Service-level objectives: what an operator wants. `judge.py` holds measurements against them.

An objective is one line, `METRIC <= BOUND` or `METRIC >= BOUND`:

    client.p95_ms <= 80 ms                  absolute, in a unit that fits the metric
    client.p95_ms <= 1.2 * baseline         relative to what the settings in force gave
    recovery.bytes_s >= 10 MB/s
    client.p95_ms{class=nvme} <= 2 ms       of one device class
    client.p95_ms{pool=volumes} <= 5 ms     of one pool

Strings and dictionaries in, no files: this runs inside ceph-mgr. Files are read at the edge (`files/slo_file.py`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Collection, Dict, FrozenSet, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.goal import Goal, can_be_wanted, nearest, parse_goal
from ceph_tuner.core.knobs.settings import Place, dotted
from ceph_tuner.core.measure.metrics import CLASS, METRICS, POOL, Scope, parted, work_of
from ceph_tuner.core.moments import TIME_UNITS, TIME_WORDS

slo_place: Place = partial(dotted, "slo")
"""Of an SLO that came from nowhere in particular."""

MAX_PRIORITY = 1000.0

_UNITS: Dict[str, Dict[str, float]] = {
    "ms": {"ms": 1.0, "us": 1e-3, "s": 1e3},
    "s": TIME_UNITS,
    "1/s": {"/s": 1.0, "1/s": 1.0, "IOPS": 1.0, "iops": 1.0, "op/s": 1.0, "objects/s": 1.0, "kIOPS": 1e3},
    "B/s": {
        "B/s": 1.0,
        "kB/s": 1e3,
        "MB/s": 1e6,
        "GB/s": 1e9,
        "KiB/s": 2.0**10,
        "MiB/s": 2.0**20,
        "GiB/s": 2.0**30,
    },
    "1": {},
}
_LARGEST = {"ms": 1e9, "s": 1e10, "1/s": 1e12, "B/s": 1e16, "1": 1e12}
"""Bounds by unit beyond which an objective is a mistake: ten days of latency, 300 years, ten petabytes a second."""
_LARGEST_FACTOR = 1e6
# the units that bounds are written back in, the largest first
_WRITTEN = {
    "ms": ["ms"],
    "s": ["d", "h", "min", "s"],
    "1/s": ["/s"],
    "B/s": ["GB/s", "MB/s", "kB/s", "B/s"],
    "1": [],
}

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
# each is matched in a time that grows as the text does, whatever the text is: no two parts of one can match the same
_OBJECTIVE = re.compile(r"([A-Za-z0-9_.]+(?:\{[^{}]*\})?)\s*(<=|>=|≤|≥|<|>|==|=)(.+)", re.DOTALL)
_FACTOR_FIRST = re.compile(rf"({_NUMBER})\s*[*×]\s*baseline")
_FACTOR_LAST = re.compile(rf"baseline\s*[*×]\s*({_NUMBER})")
_ABSOLUTE = re.compile(rf"({_NUMBER})\s*((?:1/)?[A-Za-z/]*)")
LONGEST_LINE, MOST_OBJECTIVES = 200, 100
"""Characters of an objective, and objectives of an SLO."""
OBJECTIVE_FIELDS = ("objective", "hard", "priority")


def units_of(metric: str) -> List[str]:
    """Units that a bound of this metric can be given in; the first is meant where there is none."""
    return list(_UNITS[METRICS[metric].unit])


@dataclass(frozen=True)
class Bound:
    """A number in the metric's own unit, or a factor on the baseline's measurement."""

    value: float
    relative: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or self.value < 0 or (self.relative and self.value == 0):
            raise ValueError(f"a bound (={self.value}) must be a finite number, at least 0 (a factor above 0)")

    def resolve(self, baseline: Optional[float]) -> Optional[float]:
        """Give the bound in the metric's unit; None where it is relative and there is no baseline yet."""
        if not self.relative:
            return self.value
        return None if baseline is None else self.value * baseline


@dataclass(frozen=True)
class Objective:
    """One wish: a metric, the side of the bound it shall stay on, and how much it counts."""

    metric: str
    comparison: str
    bound: Bound
    hard: bool = True
    priority: float = 1.0

    def __post_init__(self) -> None:
        if not can_be_wanted(self.metric):
            raise ValueError(f"no objective can be about {self.metric!r}")
        if self.comparison != self._right_comparison(self.metric):
            raise ValueError(f"{self.metric} is bounded by {self._right_comparison(self.metric)} (={self.comparison})")
        if not 0 < self.priority <= MAX_PRIORITY:
            raise ValueError(f"a priority (={self.priority}) must be above 0 and at most {MAX_PRIORITY:g}")

    @staticmethod
    def _right_comparison(metric: str) -> str:
        return "<=" if METRICS[metric].lower_is_better else ">="

    @property
    def text(self) -> str:
        """The objective as its author would write it; parses back to the same."""
        return f"{self.metric} {self.comparison} {_format_bound(self.bound, METRICS[self.metric].unit)}"

    def margin(self, value: float, bound: float) -> float:
        """How far inside (positive) or outside (negative) the bound, as a share of the bound.

        At most 1 for an upper bound; a bound of 0 (no slow operation) counts in the metric's own unit.
        """
        inside = bound - value if self.comparison == "<=" else value - bound
        return inside / bound if bound > 0 else inside

    @property
    def scope(self) -> Optional[Scope]:
        """The device class or pool that it is about; None: the whole cluster."""
        return parted(self.metric)[1]

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form that `parse_objective` reads."""
        return {"objective": self.text, "hard": self.hard, "priority": self.priority}


@dataclass(frozen=True)
class Slo:
    """A named set of objectives."""

    name: str
    objectives: Tuple[Objective, ...]
    goal: Optional[Goal] = None
    """What to better where all of them hold; None: each of them alike."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?", self.name):
            raise ValueError(
                f"a name (={self.name!r}) is 1 to 64 of a-z, 0-9, '.', '_', '-', without these at its ends"
            )
        if not self.objectives:
            raise ValueError("an SLO has at least one objective")
        sides = [(objective.metric, objective.hard) for objective in self.objectives]
        for side in sides:
            if sides.count(side) > 1:
                raise ValueError(f"{side[0]} has two {'hard' if side[1] else 'soft'} objectives")

    @property
    def work(self) -> FrozenSet[str]:
        """The kinds of work the objectives are about: client, recovery, backfill, scrub, snaptrim."""
        return frozenset(work_of(metric) for metric in self.metrics)

    @property
    def metrics(self) -> Tuple[str, ...]:
        """The metrics that it is about, each once, the goal's last."""
        goal = [self.goal.metric] if self.goal is not None else []
        return tuple(dict.fromkeys([*(objective.metric for objective in self.objectives), *goal]))

    @property
    def scopes(self) -> Tuple[Scope, ...]:
        """The device classes and pools that objectives are about, each once."""
        return tuple(dict.fromkeys(scope for scope in (parted(name)[1] for name in self.metrics) if scope is not None))

    def of_class(self, device_class: str, pools: Collection[str] = ()) -> Optional[Slo]:
        """What is wanted of one device class, as if it was a cluster of its own; None where nothing is.

        Its objectives lose their scope. Those of `pools`, which lie on it, keep theirs.
        """
        own = []
        for objective in self.objectives:
            plain, scope = parted(objective.metric)
            if scope == Scope(CLASS, device_class):
                own.append(replace(objective, metric=plain))
            elif scope is not None and scope.kind == POOL and scope.name in pools:
                own.append(objective)
        plain, scope = parted(self.goal.metric) if self.goal is not None else ("", None)
        goal = Goal(plain) if scope == Scope(CLASS, device_class) else None
        return replace(self, objectives=tuple(own), goal=goal) if own else None

    @property
    def needs_baseline(self) -> bool:
        """Whether a bound is relative."""
        return any(objective.bound.relative for objective in self.objectives)

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form that `parse_slo` reads."""
        goal = {self.goal.verb: self.goal.metric} if self.goal is not None else {}
        return {"name": self.name, "objectives": [objective.to_dict() for objective in self.objectives], **goal}


def wanted_of(slo: Slo, device_class: str) -> Slo:
    """What is wanted where OSDs of one class (empty: all OSDs) are tuned, under the names of a whole cluster.

    Its own objectives, and those of the whole cluster where it has none about the same. Raises InputError where
    objectives are about something that is not tuned then.
    """
    if not slo.scopes:
        return slo
    pools = [scope.name for scope in slo.scopes if scope.kind == POOL]
    if pools:
        expected = "objectives of the cluster or of a device class; those of pools are for the mgr's automatic mode"
        raise InputError("the SLO", f"an objective of the pool {pools[0]}", expected)
    classes = [scope.name for scope in slo.scopes]
    if not device_class:
        raise InputError("the SLO", f"an objective of the class {classes[0]}", f"--target osd/class:{classes[0]}")
    own = slo.of_class(device_class)
    own_metrics = {each.metric for each in own.objectives} if own is not None else set()
    of_all = tuple(each for each in slo.objectives if each.scope is None and each.metric not in own_metrics)
    if own is None and not of_all:
        raise InputError("the SLO", f"no objective of the class {device_class}", f"one; it has {', '.join(classes)}")
    goal = own.goal if own is not None else None
    if goal is None and slo.goal is not None and slo.goal.scope is None:
        goal = slo.goal
    return replace(slo, objectives=(*(own.objectives if own is not None else ()), *of_all), goal=goal)


def parse_slo(data: Any, name: str = "slo", place: Place = slo_place) -> Slo:
    """Read `{"name": …, "objectives": [line or {"objective": line, "hard": …, "priority": …}, …]}`.

    One of `minimise` and `maximise` may name a metric beside them. Raises InputError that names the place. Other keys
    are the caller's (a file has a `scenario`).
    """
    if not isinstance(data, Mapping):
        raise InputError(place(), _kind(data), "a mapping with `objectives`")
    items = data.get("objectives")
    if not isinstance(items, (list, tuple)) or not items:
        raise InputError(place("objectives"), _kind(items), "a list with at least one objective")
    if len(items) > MOST_OBJECTIVES:
        raise InputError(place("objectives"), f"{len(items)} objectives", f"at most {MOST_OBJECTIVES}")
    objectives = tuple(
        parse_objective(item, lambda *keys, index=index: place("objectives", index, *keys))
        for index, item in enumerate(items)
    )
    given_name = data.get("name", name)
    if not isinstance(given_name, str):
        raise InputError(place("name"), _kind(given_name), "a name")
    goal = parse_goal(data, place)
    try:
        return Slo(given_name, objectives, goal)
    except ValueError as error:
        at_fault = place("name") if str(error).startswith("a name") else place("objectives")
        raise InputError(at_fault, str(error), "one name, and one hard and one soft bound per metric") from error


def parse_objective(item: Any, place: Optional[Place] = None) -> Objective:
    """Read an objective's line, or a mapping with the line, `hard` (true) and `priority` (1)."""
    where = place or (lambda *keys: " ".join(["objective", *map(str, keys)]))
    if isinstance(item, str):
        return _parse_line(item, True, 1.0, where)
    if not isinstance(item, Mapping):
        raise InputError(where(), _kind(item), "a line such as `client.p95_ms <= 80 ms`, or a mapping with `objective`")
    unknown = sorted(str(key) for key in item if key not in OBJECTIVE_FIELDS)
    if unknown:
        raise InputError(where(unknown[0][:60]), f"unknown key {unknown[0][:60]!r}", "objective, hard or priority")
    line, hard, priority = item.get("objective"), item.get("hard", True), item.get("priority", 1.0)
    if not isinstance(line, str):
        raise InputError(where("objective"), _kind(line), "a line such as `client.p95_ms <= 80 ms`")
    if not isinstance(hard, bool):
        raise InputError(where("hard"), repr(hard), "true or false")
    if isinstance(priority, bool) or not isinstance(priority, (int, float)) or not 0 < priority <= MAX_PRIORITY:
        raise InputError(where("priority"), repr(priority), f"a number above 0 and at most {MAX_PRIORITY:g}")
    return _parse_line(line, hard, float(priority), where)


def _parse_line(line: str, hard: bool, priority: float, where: Place) -> Objective:
    if len(line) > LONGEST_LINE:
        raise InputError(where(), f"{len(line)} characters", f"at most {LONGEST_LINE}")
    parts = _OBJECTIVE.fullmatch(line.strip())
    if parts is None:
        raise InputError(where(), repr(line), "METRIC <= BOUND or METRIC >= BOUND")
    metric, comparison, bound_text = parts[1].replace(" ", ""), parts[2], parts[3].strip()
    if not can_be_wanted(metric):
        raise InputError(where(), f"metric {metric!r}", nearest(metric))
    comparison = {"≤": "<=", "≥": ">="}.get(comparison, comparison)
    right = "<=" if METRICS[metric].lower_is_better else ">="
    if comparison != right:
        better = "less" if right == "<=" else "more"
        raise InputError(where(), f"{metric} {comparison}", f"{metric} {right} ({better} of it is better)")
    bound = _parse_bound(bound_text, METRICS[metric].unit, where)
    return Objective(metric, comparison, bound, hard, priority)


def _parse_bound(text: str, unit: str, where: Place) -> Bound:
    factor = _FACTOR_FIRST.fullmatch(text) or _FACTOR_LAST.fullmatch(text)
    if text == "baseline" or factor:
        value = float(factor.group(1)) if factor else 1.0
        if not 0 < value <= _LARGEST_FACTOR:
            raise InputError(where(), f"the factor {text!r}", f"a factor above 0, at most {_LARGEST_FACTOR:g}")
        return Bound(value, relative=True)
    number = _ABSOLUTE.fullmatch(text)
    units = _UNITS[unit]
    expected = f"a number{' with a unit out of ' + ', '.join(units) if units else ''}, or `FACTOR * baseline`"
    known = {**units, **TIME_WORDS} if unit == "s" else units
    if number is None or (number.group(2) and number.group(2) not in known):
        raise InputError(where(), f"the bound {text!r}", expected)
    value = float(number.group(1)) * known.get(number.group(2), 1.0)
    if not 0 <= value <= _LARGEST[unit]:
        raise InputError(
            where(), f"the bound {text!r}", f"0 to {_LARGEST[unit]:g} {unit if unit != '1' else ''}".rstrip()
        )
    return Bound(value + 0.0)


def _format_bound(bound: Bound, unit: str) -> str:
    if bound.relative:
        return f"{_short(bound.value)} * baseline"
    for name in _WRITTEN[unit]:
        amount = bound.value / _UNITS[unit][name]
        # a larger unit is used only where it loses no digit on the way back
        if amount >= 1 and float(_short(amount)) * _UNITS[unit][name] == bound.value and len(_short(amount)) <= 8:
            return f"{_short(amount)} {name}"
    base = _WRITTEN[unit][-1] if _WRITTEN[unit] else ""
    return f"{_short(bound.value)} {base}".strip()


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) and value < 1e15 else repr(value)


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"
