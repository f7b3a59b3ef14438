"""Objectives by hour, weekday and date: what is wanted at a moment follows from a calendar of policies.

    objectives: [client.p95_ms <= 20 ms, recovery.bytes_s >= 8 MB/s]
    calendar:
      zone: Europe/Berlin
      policies:
        - name: office
          hours: mon-fri 08:00-20:00
          objectives: [client.p95_ms <= 8 ms]
          boosts: [scrub]
        - name: freeze
          hours: 2026-12-24..2026-12-26
          without: [recovery.bytes_s]
          boosts: []

A policy's objectives replace those of the base about the same metric; the others of the base hold as well. Outside of
all policies the base holds, so there is no gap. `boosts` names those that may run; without it all may. Times with dates
outrank those of the week; apart from that no two policies may overlap. `Slo` is what is wanted at one moment, and all
that judge take that: `SloCalendar.at` gives it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Objective, Slo, parse_objective, parse_slo, slo_place
from ceph_tuner.core.hours import (
    DAY_S,
    DAYS,
    FARTHEST_S,
    UTC,
    WEEK_S,
    Hours,
    clock_second,
    first_moment,
    parse_hours,
    zone_of,
)
from ceph_tuner.core.knobs.settings import Place
from ceph_tuner.core.measure.metrics import Scope
from ceph_tuner.core.measure.timeline import POLICY_NAME
from ceph_tuner.core.moments import stamp, utc_minute

BASE = "base"
"""Stands for the objectives that hold outside of all policies."""
MOST_POLICIES = 20
BOOSTS = ("recovery", "backfill", "scrub", "snaptrim")
"""Kinds of work that can be boosted (`core/boost/`)."""

_KEYS = ("name", "hours", "objectives", "without", "boosts")

ClockSpell = Tuple[int, int, str]
"""A time on the zone's clock under one policy: the begin, the end, and the policy's name."""


@dataclass(frozen=True)
class SloPolicy:
    """What is wanted otherwise at some times."""

    name: str
    text: str
    """Its times as they were written."""
    hours: Hours
    objectives: Tuple[Objective, ...] = ()
    without: Tuple[str, ...] = ()
    """Metrics of the base that nothing is wanted of."""
    boosts: Optional[Tuple[str, ...]] = None
    """Kinds of boosts that may run meanwhile; None: all."""

    def over(self, base: Slo) -> Slo:
        """What is wanted while it holds. Raises ValueError where that is nothing."""
        own = {objective.metric for objective in self.objectives} | set(self.without)
        rest = tuple(objective for objective in base.objectives if objective.metric not in own)
        return Slo(base.name, (*rest, *self.objectives), base.goal)

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form that `parse_slo_calendar` reads."""
        return {
            "name": self.name,
            "hours": self.text,
            "objectives": [objective.to_dict() for objective in self.objectives],
            "without": list(self.without),
            **({} if self.boosts is None else {"boosts": list(self.boosts)}),
        }


@dataclass(frozen=True)
class PolicySpell:
    """A time in which one policy holds."""

    start: int
    end: int
    policy: str


@dataclass(frozen=True)
class SloCalendar:
    """What is wanted, and when. Without policies it is one SLO at all times."""

    base: Slo
    zone: str = UTC
    policies: Tuple[SloPolicy, ...] = ()

    @property
    def name(self) -> str:
        """The SLO's name."""
        return self.base.name

    @cached_property
    def by_policy(self) -> Mapping[str, Slo]:
        """What is wanted under each policy, and under the base."""
        return {BASE: self.base, **{policy.name: policy.over(self.base) for policy in self.policies}}

    @property
    def policy_names(self) -> Tuple[str, ...]:
        """The policies of which one holds at each moment, the base's first; none without policies."""
        return tuple(self.by_policy) if self.policies else ()

    def policy_at(self, at: float) -> str:
        """Name of the policy that holds at a moment (seconds since the epoch)."""
        moment = math.floor(at)
        return next(self._spells(moment, moment + 1)).policy

    def at(self, at: float) -> Slo:
        """What is wanted at a moment."""
        return self.by_policy[self.policy_at(at)]

    def ends(self, at: float) -> Optional[int]:
        """When another policy takes over from the one that holds; None where that is more than a year ahead."""
        return self.turns(self.policy_at(at), at)

    def turns(self, policy: str, at: float) -> Optional[int]:
        """When a policy begins, or ends where it holds; None where that is more than a year ahead."""
        holds = self.policy_at(at) == policy
        return self._first_edge(at, lambda name: (name == policy) != holds)

    @cached_property
    def boosts_by_policy(self) -> Mapping[str, Tuple[str, ...]]:
        """Kinds of boosts that may run under each policy, and under the base."""
        stated = {policy.name: policy.boosts for policy in self.policies}
        return {BASE: BOOSTS, **{name: BOOSTS if kinds is None else kinds for name, kinds in stated.items()}}

    def boosts_at(self, at: float) -> Tuple[str, ...]:
        """Kinds of boosts that may run at a moment."""
        return self.boosts_by_policy[self.policy_at(at)]

    def boost_again(self, kind: str, at: float) -> Optional[int]:
        """When a boost of this kind may run that may not now; None where that is more than a year ahead."""
        return self._first_edge(at, lambda name: kind in self.boosts_by_policy[name])

    def boost_ends(self, kind: str, at: float) -> Optional[int]:
        """When a boost of this kind may run no more that may now; None where that is more than a year ahead."""
        return self._first_edge(at, lambda name: kind not in self.boosts_by_policy[name])

    def _first_edge(self, at: float, fits: Callable[[str], bool]) -> Optional[int]:
        """When the first policy begins whose name fits."""
        start = math.floor(at)
        spells = self._spells(start, start + FARTHEST_S, fits)
        return next((spell.start for spell in spells if spell.start > start), None)

    def spells(self, start: float, end: float) -> Tuple[PolicySpell, ...]:
        """Which policy holds when in that time, in order and without a gap."""
        policy_spells: List[PolicySpell] = []
        for spell in self._spells(int(start), int(end)):
            if policy_spells and policy_spells[-1].policy == spell.policy:
                policy_spells[-1] = PolicySpell(policy_spells[-1].start, spell.end, spell.policy)
            else:
                policy_spells.append(spell)
        return tuple(policy_spells)

    def _spells(self, start: int, end: int, fits: Optional[Callable[[str], bool]] = None) -> Iterator[PolicySpell]:
        """Times of policies whose names fit, in order; one that goes on past a week's end is in two parts."""
        zone = zone_of(self.zone)
        # a clock that is set back shows less than it has shown
        for begin, finish, name in self._on_the_clock(clock_second(start, zone), clock_second(end, zone) + DAY_S, fits):
            first, last = max(first_moment(begin, zone), start), min(first_moment(finish, zone), end)
            if first >= end:
                return
            # else it is over, or the clock is set past it
            if first < last:
                yield PolicySpell(first, last, name)

    def _on_the_clock(self, start: int, end: int, fits: Optional[Callable[[str], bool]]) -> Iterator[ClockSpell]:
        """The same on the zone's clock, from `start` on and beyond `end`; a week is gone through only as far as asked.

        What does not fit is passed over at once: of a year there may be thousands.
        """
        weekly = [spell for spell in self._weekly if fits is None or fits(spell[2])]
        for begin, finish, name in (*self._dated[_index_at(self._dated, start) :], (end, end, "")):
            yield from _each_week(weekly, start, begin)
            if name and (fits is None or fits(name)):
                yield max(begin, start), finish, name
            start = finish

    @cached_property
    def _weekly(self) -> Tuple[ClockSpell, ...]:
        """Which policy holds when on the clock of a week without dates: in order and without a gap."""
        spells: List[ClockSpell] = []
        before = 0
        for begin, end, index in (*_on_the_clock(self.policies, dated=False), (WEEK_S, WEEK_S, 0)):
            if before < begin:
                spells.append((before, begin, BASE))
            if begin < end:
                spells.append((begin, end, self.policies[index].name))
            before = end
        return tuple(spells)

    @cached_property
    def _dated(self) -> Tuple[ClockSpell, ...]:
        """When policies hold by their dates, on the clock, in order."""
        return tuple(
            (begin, end, self.policies[index].name) for begin, end, index in _on_the_clock(self.policies, True)
        )

    @property
    def scopes(self) -> Tuple[Scope, ...]:
        """The device classes and pools that objectives of any policy are about, each once."""
        return tuple(dict.fromkeys(scope for slo in self.by_policy.values() for scope in slo.scopes))

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form that `parse_slo_calendar` reads; without policies it is that of an `Slo`."""
        document = self.base.to_dict()
        if self.policies:
            policies = [policy.to_dict() for policy in self.policies]
            document["calendar"] = {"zone": self.zone, "policies": policies}
        return document


def parse_slo_calendar(data: Any, name: str = "slo", place: Place = slo_place) -> SloCalendar:
    """Read what `parse_slo` reads, and a `calendar` beside it. Raises InputError that names the place."""
    base = parse_slo(data, name, place)
    calendar = data.get("calendar")
    if calendar is None:
        return SloCalendar(base)
    if not isinstance(calendar, Mapping):
        raise InputError(place("calendar"), type(calendar).__name__, "a mapping with `policies`")
    _refuse_others(calendar, ("zone", "policies"), lambda *keys: place("calendar", *keys))
    zone, items = calendar.get("zone", UTC), calendar.get("policies")
    if not isinstance(zone, str) or not zone:
        raise InputError(place("calendar", "zone"), repr(zone)[:60], "a time zone, such as Europe/Berlin")
    zone_of(zone, place("calendar", "zone"))
    if not isinstance(items, (list, tuple)) or not 0 < len(items) <= MOST_POLICIES:
        value_text = f"{len(items)} policies" if isinstance(items, (list, tuple)) else type(items).__name__
        raise InputError(place("calendar", "policies"), value_text, f"a list of 1 to {MOST_POLICIES} policies")
    policies = tuple(
        _policy(item, base, zone, lambda *keys, index=index: place("calendar", "policies", index, *keys))
        for index, item in enumerate(items)
    )
    _check_names(policies, place)
    _check_overlaps(policies, place)
    return SloCalendar(base, zone, policies)


def _policy(item: Any, base: Slo, zone: str, where: Place) -> SloPolicy:
    if not isinstance(item, Mapping):
        raise InputError(where(), type(item).__name__, f"a mapping with {', '.join(_KEYS)}")
    _refuse_others(item, _KEYS, where)
    name, text = item.get("name"), item.get("hours")
    if not isinstance(name, str) or not POLICY_NAME.fullmatch(name) or name == BASE:
        raise InputError(where("name"), repr(name)[:60], f"1 to 32 of a-z, 0-9, '.', '_', '-', other than {BASE}")
    if not isinstance(text, str) or not text.strip():
        raise InputError(where("hours"), repr(text)[:60], "times such as `mon-fri 08:00-20:00`, or dates in quotes")
    items, without = item.get("objectives", []), item.get("without", [])
    if not isinstance(items, (list, tuple)):
        raise InputError(where("objectives"), type(items).__name__, "a list of objectives")
    metrics = [objective.metric for objective in base.objectives]
    if not isinstance(without, (list, tuple)) or any(metric not in metrics for metric in without):
        expected = f"a list of metrics that the base has an objective on ({', '.join(dict.fromkeys(metrics))})"
        raise InputError(where("without"), str(without)[:60], expected)
    objectives = tuple(
        parse_objective(each, lambda *keys, index=index: where("objectives", index, *keys))
        for index, each in enumerate(items)
    )
    boosts = _boosts(item["boosts"], where) if "boosts" in item else None
    policy = SloPolicy(name, text, parse_hours(text, where("hours"), zone), objectives, tuple(without), boosts)
    try:
        policy.over(base)
    except ValueError as error:
        expected = "at least one objective, with one hard and one soft bound per metric"
        raise InputError(where("objectives"), str(error), expected) from error
    return policy


def _boosts(kinds: Any, where: Place) -> Tuple[str, ...]:
    if not isinstance(kinds, (list, tuple)) or any(kind not in BOOSTS for kind in kinds):
        raise InputError(where("boosts"), str(kinds)[:60], f"a list of {', '.join(BOOSTS)}; an empty one for none")
    return tuple(kind for kind in BOOSTS if kind in kinds)


def policy_in_words(name: str, until: Optional[float]) -> str:
    """Which policy holds, and until when, for people."""
    return f"{name}, {'for more than a year' if until is None else f'until {utc_minute(until)}'}"


def boosts_in_words(kinds: Sequence[str]) -> str:
    """Which boosts may run, for people; empty where all may."""
    if set(kinds) == set(BOOSTS):
        return ""
    return f"boosts that may run: {', '.join(kinds)}" if kinds else "no boost may run"


def _refuse_others(mapping: Mapping[Any, Any], names: Tuple[str, ...], where: Place) -> None:
    unknown = sorted(str(key)[:60] for key in mapping if key not in names)
    if unknown:
        raise InputError(where(unknown[0]), f"unknown key {unknown[0]!r}", f"one of {', '.join(names)}")


def _check_names(policies: Tuple[SloPolicy, ...], where: Place) -> None:
    names = [policy.name for policy in policies]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(where("calendar", "policies", index, "name"), f"{name} twice", "a name of its own")


def _check_overlaps(policies: Tuple[SloPolicy, ...], where: Place) -> None:
    """Refuse two policies for the same time: by the clock, as they are all in one zone."""
    for dated in (False, True):
        times = _on_the_clock(policies, dated)
        for (_, end, one), (begin, _, other) in zip(times, times[1:]):
            if begin < end:
                first, second = sorted((one, other))
                both = f"{policies[first].name} and {policies[second].name} both at {_clock_in_words(begin, dated)}"
                place = where("calendar", "policies", second, "hours")
                raise InputError(place, both, "one policy at a time (times with dates outrank those of the week)")


def _on_the_clock(policies: Tuple[SloPolicy, ...], dated: bool) -> List[Tuple[int, int, int]]:
    """Times of policies on the clock, with dates or those of a week, in order: begin, end and the policy's place."""
    return sorted(
        (*stretch, index)
        for index, policy in enumerate(policies)
        for stretch in (policy.hours.of_dates if dated else policy.hours.of_the_week).on_the_clock()
    )


def _each_week(weekly: Sequence[ClockSpell], start: int, end: int) -> Iterator[ClockSpell]:
    """Times of a week in each week from `start` to `end` on the clock. The year 1 began on a Monday."""
    if not weekly:
        return
    monday = start - (start - DAY_S) % WEEK_S
    first = _index_at(weekly, start - monday)
    while True:
        for begin, finish, name in weekly[first:]:
            if monday + begin >= end:
                return
            yield max(monday + begin, start), min(monday + finish, end), name
        monday, first = monday + WEEK_S, 0


def _index_at(spells: Sequence[ClockSpell], second: int) -> int:
    """Place of the first that ends after that second, of some in order that do not overlap."""
    after = bisect_left(spells, (second + 1, 0, ""))
    return after - 1 if after and spells[after - 1][1] > second else after


def _clock_in_words(second: int, dated: bool) -> str:
    if dated:
        # seconds since the year 1, in those since 1970
        return stamp(float(second - 719163 * DAY_S))[:16]
    clock = stamp(float(second % DAY_S))[11:16]
    return f"{DAYS[second // DAY_S]} {clock}"
