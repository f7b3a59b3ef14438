"""Which OSDs get new settings first, which keep the old ones meanwhile, and how it goes on from there.

The canary is made of whole CRUSH subtrees where there are enough of them: a rack or host is mostly the failure domain,
so that a placement group has one replica at most on it, and one mask covers it. Each next stage is about twice as
large; the last is the target itself. The control is as large as the stage on large clusters (as in Netflix's Kayenta),
else everything that is left, because pooling few OSDs is noisy.
"""

from __future__ import annotations

import math
from typing import Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

from ceph_tuner.core.autopilot.contract import Rollout, Stage
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.ceph.target import LOCATION_TYPES, Place, Target, covered
from ceph_tuner.core.errors import InputError

ALTERNATE, OSD = "alternate", "osd"

LEAST_OF = {"rack": 4, "host": 3, OSD: 3}
"""How many of a kind `auto` wants before it takes it, widest first: fewer leave no control worth the name."""

SECTIONS = 64
"""Sections written by one stage at most: each is a dozen commands to the monitor, and as many to take it back."""

CONTROL_LEAST = 32
"""OSDs that are compared with, where there are as many, however small the stage is."""

CANARY_MOST = 64
"""OSDs that come first at most: more of them make the verdict little surer, and put more at risk."""

CONTROL_MOST = 256

GROWTH = 2.5
"""Largest factor that a stage is planned to grow by; what it comes to depends on the subtrees' sizes."""


class _Unit(NamedTuple):
    """OSDs that get the settings together, and the sections that it takes."""

    name: str
    osds: Tuple[int, ...]
    sections: Tuple[str, ...]
    whole: bool
    """Whether all its OSDs run, and its mask covers no others."""


def rollout(places: Sequence[Place], device_class: str, target: str, policy: Policy, replicas: int = 1) -> Rollout:
    """Plan how settings come onto the running OSDs that `target` covers, those of `device_class` (empty: any) first.

    `replicas`: OSDs that a placement group of the largest size has. Every write of the canary waits for as many; with
    fewer than twice as many subtrees canary and control serve the same writes, and there is nothing to compare.
    Raises InputError where the target is none, or covers no running OSD of the class.
    """
    Target.parse(target)
    everyone = covered(target, places)
    whole = Stage((target,), tuple(everyone))
    members = _in_crush_order(places, everyone, device_class)
    if not members:
        kind = f"OSD of class {device_class}" if device_class else "OSD"
        raise InputError("target", f"`{target}`, which covers no running {kind}", f"one that covers a running {kind}")
    units = {kind: _units(kind, places, members, device_class, target) for kind in LEAST_OF}
    kind, reasons = _kind(units, len(members), policy, replicas)
    if kind == ALTERNATE:
        why = "; ".join([*reasons, "old and new settings take turns on all OSDs"])
        return Rollout(target, (whole,), alternating=True, why=why)

    canary = _pick(units[kind], _room(len(members), policy))
    stages = [_stage(canary, (), members)]
    kinds = list(LEAST_OF)
    wider = [units[name] for name in reversed(kinds[: kinds.index(kind) + 1])]
    for stages_ahead in range(_steps(_size(canary), len(members)), 1, -1):
        had = frozenset(stages[-1].osds)
        growth = (len(members) / len(had)) ** (1.0 / stages_ahead)
        # a quarter more, as a subtree is taken as a whole; one OSD is left as the control
        room = min(math.ceil(len(had) * growth * 1.25), len(members) - 1) - len(had)
        picks = [_pick([unit for unit in choice if had.isdisjoint(unit.osds)], room) for choice in wider]
        addition = max(picks, key=_size)  # the finest of those of one size
        if addition:
            stages.append(_stage(addition, had, members))
    share, others = _size(canary) / len(members), len(stages[0].control)
    reasons.append(
        f"{_names(canary)} first, {_size(canary)} of {len(members)} OSDs ({share:.0%}), compared with {others} others"
    )
    jump = len(members) / len(stages[-1].osds)
    if jump > 2 * GROWTH:
        reasons.append(f"the last stage is {jump:.0f} times as large as the one before, at {SECTIONS} sections a stage")
    return Rollout(target, (*stages, whole), why="; ".join(reasons))


def _in_crush_order(places: Sequence[Place], osds: Sequence[int], device_class: str) -> List[int]:
    """Neighbours in the tree are neighbours in the list."""
    ids = set(osds)
    members = [p for p in places if p.osd in ids and device_class in ("", p.device_class)]
    levels_there = {level for place in members for level in place.locations}
    levels = [level for level in reversed(LOCATION_TYPES) if level in levels_there]
    members.sort(key=lambda p: ([p.locations.get(level, "") for level in levels], p.osd))
    return [place.osd for place in members]


def _units(kind: str, places: Sequence[Place], members: Sequence[int], device_class: str, target: str) -> List[_Unit]:
    if kind == OSD:
        return [_Unit(f"osd.{osd}", (osd,), (f"osd.{osd}",), True) for osd in members]
    by_osd = {place.osd: place for place in places}
    inside: Dict[str, List[int]] = {}
    for osd in members:
        if kind in by_osd[osd].locations:
            inside.setdefault(by_osd[osd].locations[kind], []).append(osd)
    section = Target.parse(target)
    shared_names: Set[str] = set()
    names_with_down: Set[str] = set()
    for place in places:
        name = place.locations.get(kind, "")
        if device_class not in ("", place.device_class) or not section.covers(place):
            shared_names.add(name)
        elif not place.up:
            names_with_down.add(name)
    return [
        _Unit(
            f"{kind} {name}",
            tuple(osds),
            # the mask would cover what is of another class as well
            tuple(f"osd.{osd}" for osd in osds) if name in shared_names else (f"osd/{kind}:{name}",),
            name not in shared_names and name not in names_with_down,
        )
        for name, osds in inside.items()
    ]


def _kind(units: Dict[str, List[_Unit]], count: int, policy: Policy, replicas: int) -> Tuple[str, List[str]]:
    """The widest kind that the policy permits and the cluster has, and why not a wider one."""
    few: List[str] = []
    large: List[str] = []
    if policy.canary == ALTERNATE:
        return ALTERNATE, ["the policy asks for no control"]
    kinds = list(LEAST_OF)
    room = _room(count, policy)
    for kind in kinds if policy.canary == "auto" else kinds[kinds.index(policy.canary) :]:
        least = 2 if kind == policy.canary else max(LEAST_OF[kind], 2 * replicas)
        if len(units[kind]) < least:
            few.append(f"{len(units[kind])} of {least} {kind}s")
        elif kind == OSD and policy.canary == "auto" and 1 < len(units["host"]) < 2 * replicas:
            # a placement group has one OSD a host: the hosts are what canary and control would share
            few.append(f"{len(units['host'])} of {2 * replicas} hosts under the OSDs")
        elif not _pick(units[kind], room):
            large.append(f"no {kind} is within {policy.canary_share:.0%} of the OSDs and {SECTIONS} sections")
        else:
            return kind, large
    return ALTERNATE, [*large, *([f"too few for a control ({', '.join(few)})"] if few else [])]


def _room(count: int, policy: Policy) -> int:
    """OSDs that the canary may have."""
    return max(1, min(CANARY_MOST, int(policy.canary_share * count + 1e-9)))


def _steps(first: int, count: int) -> int:
    """Stages after the canary."""
    return max(1, math.ceil(math.log(count / first) / math.log(GROWTH)))


def _pick(units: Sequence[_Unit], room: int) -> List[_Unit]:
    """Take units up to `room` OSDs, large ones first; those in poor order only where no others fit."""
    for whole in (True, False):
        picks: List[_Unit] = []
        osds = sections = 0
        # sorting is stable: what is alike stays in the order of the tree
        for unit in sorted((unit for unit in units if unit.whole is whole), key=lambda unit: -len(unit.osds)):
            if osds + len(unit.osds) <= room and sections + len(unit.sections) <= SECTIONS:
                picks.append(unit)
                osds += len(unit.osds)
                sections += len(unit.sections)
        if picks:
            return picks
    return []


def _size(units: Sequence[_Unit]) -> int:
    return sum(len(unit.osds) for unit in units)


def _stage(addition: Sequence[_Unit], had: Iterable[int], members: Sequence[int]) -> Stage:
    osds = set(had).union(*(unit.osds for unit in addition))
    others = [osd for osd in members if osd not in osds]
    size = min(len(others), max(len(osds), CONTROL_LEAST), CONTROL_MOST)
    control = [others[index * len(others) // size] for index in range(size)]
    return Stage(
        tuple(section for unit in addition for section in unit.sections), tuple(sorted(osds)), tuple(sorted(control))
    )


def _names(units: Sequence[_Unit]) -> str:
    names = [unit.name for unit in units]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
