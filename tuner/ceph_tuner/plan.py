"""The ordered steps that bring settings onto a target, and the steps that take them back. No I/O.

The order is what makes it right (docs/safe-writes.md):

- The nine mClock values are written only while the OSDs are under `custom`. Under a built-in profile an OSD answers a
  change of one by removing that key from `osd` and `osd.N`, whoever wrote it, and keeps scheduling by the old values.
- So a change goes: profile `custom`, nine values, profile as wanted (when that is a built-in one), other options.
  Taking it back: other options, then the nine values while the profile is still `custom`, and the profile last.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.deciding import Database, same
from ceph_tuner.errors import InputError
from ceph_tuner.knobs import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.ports import ConfigEntry
from ceph_tuner.refusing import (
    Sources,
    refuse_asleep,
    refuse_false_start,
    refuse_late,
    refuse_outranked,
    unset_under_custom,
)
from ceph_tuner.releases import Release, Settings
from ceph_tuner.settings import check_settings, format_settings
from ceph_tuner.target import Place, Target, covers, section_of

OVERRIDE = "osd_mclock_override_recovery_settings"
"""Opens the recovery and backfill options: while it is false, OSDs remove those keys as they do the nine."""

Key = Tuple[str, str]
"""(section with its mask, option)."""


@dataclass(frozen=True)
class Step:
    """One write. None stands for no entry."""

    who: str
    name: str
    old: Optional[str]
    new: Optional[str]
    settled: bool = False
    """Whether the OSDs must show the earlier steps before this one: it ends the state that those needed."""

    @property
    def key(self) -> Key:
        """What it writes to."""
        return self.who, self.name

    @property
    def command(self) -> str:
        """The command that an operator would type."""
        words = ["ceph", "config", "rm", self.who, self.name]
        if self.new is not None:
            words = ["ceph", "config", "set", self.who, self.name, self.new]
        return " ".join(shlex.quote(word) for word in words)


@dataclass(frozen=True)
class ChangePlan:
    """Everything that applying will do, decided beforehand."""

    target: str
    release: str
    osds: Tuple[int, ...]
    """Running OSDs that the target covers."""
    steps: Tuple[Step, ...]
    expected: Mapping[str, str]
    """What every covered OSD must show afterwards."""
    warnings: Tuple[str, ...] = ()

    @property
    def commands(self) -> List[str]:
        """The exact commands, in order."""
        return [step.command for step in self.steps]

    def restores(self) -> Tuple[Restore, ...]:
        """What takes it back: per key the value before, and the values that are ours to replace."""
        before: Dict[Key, Optional[str]] = {}
        ours: Dict[Key, List[Optional[str]]] = {}
        for step in self.steps:
            before.setdefault(step.key, step.old)
            ours.setdefault(step.key, []).append(step.new)
        return tuple(Restore(*key, before[key], frozenset(ours[key])) for key in before)


@dataclass(frozen=True)
class Restore:
    """The value that a key had, and what we may have put there instead."""

    who: str
    name: str
    value: Optional[str]
    ours: FrozenSet[Optional[str]]

    @property
    def key(self) -> Key:
        """What it concerns."""
        return self.who, self.name


@dataclass(frozen=True)
class Drift:
    """A key that somebody changed since: left as it is."""

    who: str
    name: str
    ours: Optional[str]
    found: Optional[str]

    def __str__(self) -> str:
        return f"{self.who} {self.name}: found {_shown(self.found)} instead of our {_shown(self.ours)}, left as it is"


@dataclass(frozen=True)
class RestorePlan:
    """The steps that take a change back, and what they leave alone."""

    steps: Tuple[Step, ...]
    restores: Tuple[Restore, ...]
    drift: Tuple[Drift, ...] = ()


def plan_change(
    current: Sequence[ConfigEntry],
    target: str,
    settings: Mapping[str, object],
    release: Release,
    places: Sequence[Place],
    sources: Optional[Mapping[int, Sources]] = None,
) -> ChangePlan:
    """Decide the steps. `sources` are what the covered OSDs say (None: not asked).

    Raises InputError: a target that covers no running OSD, settings that the release refuses or ignores, and anything
    that would defeat the write, because it outranks the target (a finer entry, or the OSD's own ceph.conf).
    """
    where = Target.parse(target)
    who = str(where)
    over = [place for place in places if where.covers(place)]
    running = [place for place in over if place.up]
    if not running:
        raise InputError("target", f"`{target}`, which covers no running OSD", "a target that covers one")
    wanted = _wanted(settings, release)
    refuse_late(where, wanted)
    # of 10 000 OSDs with a capacity each, few entries concern these knobs
    current = _about(current, {*MCLOCK_NINE, PROFILE, *wanted})
    warnings = [f"osd.{place.osd} is down: it follows when it starts, unchecked" for place in over if not place.up]
    warnings += [f"{name} takes effect when the OSD restarts" for name in wanted if KNOBS[name].change == "restart"]
    now = Database(current)
    warnings += unset_under_custom(now, running)

    own = {entry.name: entry.value for entry in current if entry.who == who}
    dropped = [name for name in MCLOCK_NINE if name in own] if wanted.get(PROFILE, "custom") != "custom" else []
    expected = {name: value for name, value in wanted.items() if KNOBS[name].change != "restart"}
    if PROFILE in wanted and wanted[PROFILE] != "custom" and release.units == "fraction":
        expected.update(format_settings(release.profiles[wanted[PROFILE]], release))

    # the profile last: what stands in its way goes in the order in which it is safely removed
    decided = {**{name: value for name, value in {**wanted, **expected}.items() if name != PROFILE}, **expected}
    after = _after(current, who, wanted, dropped)
    refuse_outranked(after, where, decided, running, sources or {})
    warnings += refuse_false_start(after, where, decided, [place for place in over if not place.up])
    changes: Dict[str, Optional[str]] = {**wanted, **dict.fromkeys(dropped)}
    steps = _forward(who, own, changes, current, over)
    touched = {step.who for step in steps if step.name == PROFILE}
    refuse_asleep(now, release, [place for place in places if any(covers(at, place) for at in touched)])
    return ChangePlan(
        who,
        release.name,
        tuple(place.osd for place in running),
        steps,
        expected,
        tuple(warnings),
    )


def plan_restore(
    current: Sequence[ConfigEntry],
    restores: Sequence[Restore],
    places: Sequence[Place],
    doubtful: Iterable[Key] = (),
    repair: bool = False,
) -> RestorePlan:
    """Decide the steps back. `doubtful` keys are written even if they look right: a late write may be under way.

    Where somebody put OSDs under a built-in profile meanwhile, that profile is held at `custom` for as long as the nine
    values are taken back, and then put back as it was found. With `repair` this is done even if all nine values are
    gone already: who removed them by hand, profile first, left the schedulers with them.
    """
    current = _about(current, {PROFILE, *(restore.name for restore in restores)})
    found: Dict[Key, Optional[str]] = {(entry.who, entry.name): entry.value for entry in current}
    doubtful = set(doubtful)
    kept, drift = [], []
    for restore in restores:
        now = found.get(restore.key)
        ours = any(same(now, value) for value in restore.ours)
        if ours or same(now, restore.value):
            kept.append(restore)
        else:
            drift.append(Drift(restore.who, restore.name, _one(restore.ours), now))
    steps: List[Step] = []

    def write(restore: Restore, settled: bool = False) -> None:
        now = found.get(restore.key)
        if not same(now, restore.value) or restore.key in doubtful:
            steps.append(Step(*restore.key, now, restore.value, settled))

    nine = [item for item in kept if item.name in MCLOCK_NINE]
    changing = [item for item in nine if not same(found.get(item.key), item.value) or item.key in doubtful]
    holds = _holds(current, {item.who for item in (nine if repair else changing)}, places)
    others = [item for item in kept if item.name not in MCLOCK_NINE and item.name != PROFILE]
    for item in reversed([item for item in others if item.name != OVERRIDE]):
        write(item)
    for item in (item for item in others if item.name == OVERRIDE):
        write(item, settled=True)
    for key, value in holds.items():
        steps.append(Step(*key, value, "custom"))
        found[key] = "custom"
    steps += [Step(*item.key, found.get(item.key), item.value) for item in reversed(changing)]
    profiles = {item.key: item for item in kept if item.name == PROFILE}
    for key, value in holds.items():
        # a profile that is ours goes back to what it was before us, another's to what it was just now
        own = profiles.get(key)
        profiles[key] = own or Restore(*key, value, frozenset({"custom"}))
    for item in profiles.values():
        write(item, settled=True)
    rest = [item for item in kept if item.key not in profiles]
    return RestorePlan(tuple(_settled_once(steps)), (*profiles.values(), *rest), tuple(drift))


def _about(entries: Iterable[ConfigEntry], names: Set[str]) -> List[ConfigEntry]:
    return [entry for entry in entries if entry.name in names]


def _wanted(settings: Mapping[str, object], release: Release) -> Dict[str, str]:
    """Texts as the monitors keep them, complete, in the order to write them."""
    checked: Settings = check_settings(settings, release)
    if not checked:
        raise InputError("settings", "nothing to set", "at least one knob")
    for name in checked:
        if KNOBS[name].scope != "osd" or KNOBS[name].change == "moves data":
            raise InputError(name, "an option of pools that moves data", "a knob of the OSDs; set this one by hand")
    if any(name in checked for name in MCLOCK_NINE):
        checked[PROFILE] = "custom"
    elif checked.get(PROFILE) == "custom":
        raise InputError(
            PROFILE, "custom alone", "the nine mClock values beside it (unset ones become 0/1/0 at a restart)"
        )
    texts = format_settings(checked, release)
    first = [PROFILE, *MCLOCK_NINE, OVERRIDE]
    return {name: texts[name] for name in [*first, *(name for name in texts if name not in first)] if name in texts}


def _forward(
    who: str,
    own: Mapping[str, str],
    changes: Mapping[str, Optional[str]],
    current: Sequence[ConfigEntry],
    over: Sequence[Place],
) -> Tuple[Step, ...]:
    """Custom, nine values, the profile as wanted, the rest. Keys that hold their value already are left out."""
    now: Dict[Key, Optional[str]] = {(who, name): value for name, value in own.items()}
    steps: List[Step] = []

    def write(key: Key, value: Optional[str], settled: bool = False) -> None:
        if not same(now.get(key), value):
            steps.append(Step(*key, now.get(key), value, settled))
            now[key] = value

    nine = [name for name in MCLOCK_NINE if name in changes and not same(own.get(name), changes[name])]
    holds = _holds(current, {who}, over) if nine else {}
    now.update(holds)
    for key in holds:
        write(key, "custom")
    for name in nine:
        write((who, name), changes[name])
    if PROFILE in changes:
        write((who, PROFILE), changes[PROFILE], settled=bool(nine))
    for key, value in holds.items():
        # a finer section's profile was only held; the target's own is as wanted by now
        if key[0] != who:
            write(key, value, settled=True)
    for name, value in changes.items():
        if name != PROFILE and name not in MCLOCK_NINE:
            write((who, name), value)
    return tuple(_settled_once(steps))


def _settled_once(steps: Iterable[Step]) -> Iterator[Step]:
    """Profiles that are let go one after the other: the OSDs are waited for before the first, not for each other."""
    waited = False
    for step in steps:
        yield replace(step, settled=False) if waited and step.name == PROFILE else step
        waited |= step.settled and step.name == PROFILE


def _after(current: Sequence[ConfigEntry], who: str, wanted: Mapping[str, str], dropped: Sequence[str]) -> Database:
    """The database as it will be."""
    others = [entry for entry in current if entry.who != who or entry.name not in {*wanted, *dropped}]
    return Database([*others, *(ConfigEntry(who, name, value) for name, value in wanted.items())])


def _holds(
    current: Sequence[ConfigEntry], sections: Iterable[str], places: Sequence[Place]
) -> Dict[Key, Optional[str]]:
    """Where `custom` has to stand, so that every OSD under these sections is under it: key -> value found there.

    Also those that are down: one that started meanwhile under a built-in profile would have keys removed at `osd`.
    """
    found = {(entry.who, entry.name): entry.value for entry in current if entry.name == PROFILE}
    held = Database(current)
    holds: Dict[Key, Optional[str]] = {}
    for who in sorted(sections):
        section = section_of(who)
        if section is None:
            continue
        for place in places:
            if not section.covers(place) or held.profile(place) == "custom":
                continue
            decides = held.winner(PROFILE, place)
            finer = section_of(decides.who) if decides is not None else None
            # a wider entry is outranked by one in our own section, which touches no other OSD
            at = decides.who if decides is not None and finer is not None and finer.rank >= section.rank else who
            key = (at, PROFILE)
            holds[key] = found.get(key)
            held.put(ConfigEntry(*key, "custom"))
    return holds


def _one(values: Iterable[Optional[str]]) -> Optional[str]:
    """Of several values that were ours, the one to name."""
    return next((value for value in values if value not in (None, "custom")), next(iter(values), None))


def _shown(value: Optional[str]) -> str:
    return "no entry" if value is None else value
