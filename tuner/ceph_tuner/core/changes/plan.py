"""The ordered steps that bring settings onto a target, and the steps that take them back. No I/O.

The order is what makes it right (docs/safe-writes.md):

- The nine mClock values are written only while the OSDs are under `custom`. Under a built-in profile an OSD answers a
  change of one by removing that key from `osd` and `osd.N`, whoever wrote it, and keeps scheduling by the old values.
- So a change goes: profile `custom`, nine values, profile as wanted (when that is a built-in one), other options.
  Taking it back: other options, then the nine values while the profile is still `custom`, and the profile after them.
- On the way to a built-in profile the OSDs' shards are made to read their values again (`shard_rereading`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Collection, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, Target, covers, section_of
from ceph_tuner.core.changes.change_checks import (
    Sources,
    refuse_asleep,
    refuse_false_start,
    refuse_late,
    refuse_outranked,
    refuse_wandering,
    unset_under_custom,
)
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.changes.custom_resource import CustomResource, resource_of, stated_by_another
from ceph_tuner.core.changes.resource_steps import beside, stated_steps
from ceph_tuner.core.changes.shard_rereading import BANDWIDTHS, Key, touches
from ceph_tuner.core.changes.step import Step as Step
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, OVERRIDE, PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings, Version
from ceph_tuner.core.knobs.settings import check_settings, format_settings, same


@dataclass(frozen=True)
class ChangePlan:
    """Everything that applying will do, decided beforehand."""

    target: str
    release: str
    places: Tuple[Place, ...]
    """Of the running OSDs that the target covers."""
    steps: Tuple[Step, ...]
    expected: Mapping[str, str]
    """What every covered OSD must show afterwards."""
    warnings: Tuple[str, ...] = ()

    @property
    def osds(self) -> Tuple[int, ...]:
        """Their ids."""
        return tuple(place.osd for place in self.places)

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

    def standing(self) -> Tuple[Restore, ...]:
        """The same once every step is done: without the keys that hold again what they held before."""
        last = {step.key: step.new for step in self.steps}
        return tuple(restore for restore in self.restores() if not same(last[restore.key], restore.value))


@dataclass(frozen=True)
class Restore:
    """The value that a key had, and what we may have put there instead."""

    who: str
    name: str
    value: Optional[str]
    ours: FrozenSet[Optional[str]]
    over: int = 0
    """Number of the change whose value this is, where that is newer than the entry; else 0."""

    @property
    def key(self) -> Key:
        """What it concerns."""
        return self.who, self.name


@dataclass(frozen=True)
class SettingDrift:
    """A key that somebody changed since: left as it is."""

    who: str
    name: str
    ours: Optional[str]
    found: Optional[str]

    def __str__(self) -> str:
        if same(self.found, self.ours):
            return f"{self.who} {self.name}: {text_of(self.found)} is by now that of another change, left as it is"
        return f"{self.who} {self.name}: found {text_of(self.found)} instead of our {text_of(self.ours)}, left as it is"


@dataclass(frozen=True)
class RestorePlan:
    """The steps that take a change back, and what they leave alone."""

    steps: Tuple[Step, ...]
    restores: Tuple[Restore, ...]
    drift: Tuple[SettingDrift, ...] = ()


def plan_change(
    current: Sequence[ConfigEntry],
    target: str,
    settings: Mapping[str, object],
    release: Release,
    places: Sequence[Place],
    sources: Optional[Mapping[int, Sources]] = None,
    version: Optional[Version] = None,
    resource: Optional[CustomResource] = None,
    avoid: Collection[str] = (),
) -> ChangePlan:
    """Decide the steps. `sources` are what the covered OSDs say (None: not asked), `version` the oldest that they run.

    With a resource, what is set at the monitors is stated there too. `avoid`: options whose entries `current` leaves
    out, which are not changed for a moment either.

    Raises InputError: a target that covers no running OSD, settings that the release refuses or ignores, and anything
    that would defeat the write, because it outranks the target (a finer entry, or the OSD's own ceph.conf).
    """
    where = Target.parse(target)
    who = str(where)
    over = [place for place in places if where.covers(place)]
    places_up = [place for place in over if place.up]
    if not places_up:
        raise InputError("target", f"`{target}`, which covers no running OSD", "a target that covers one")
    values = _texts(settings, release, version)
    refuse_late(where, values)
    warnings = [f"osd.{place.osd} is down: it follows when it starts, unchecked" for place in over if not place.up]
    warnings += [f"{name} takes effect when the OSD restarts" for name in values if KNOBS[name].change == "restart"]
    now = Database(current)
    warnings += unset_under_custom(now, places_up)

    own = {entry.name: entry.value for entry in current if entry.who == who}
    removals = [name for name in MCLOCK_NINE if name in own] if values.get(PROFILE, "custom") != "custom" else []
    expected = {name: value for name, value in values.items() if KNOBS[name].change != "restart"}
    if PROFILE in values and values[PROFILE] != "custom" and release.units == "fraction" and release.sets_nine:
        expected.update(format_settings(release.profiles[values[PROFILE]], release))

    # the profile last: what stands in its way goes in the order in which it is safely removed
    decisive = {**{name: value for name, value in {**values, **expected}.items() if name != PROFILE}, **expected}
    after = _after(current, who, values, removals)
    refuse_outranked(after, where, decisive, places_up, sources or {})
    warnings += refuse_false_start(after, where, decisive, [place for place in over if not place.up])
    changes: Dict[str, Optional[str]] = {**values, **dict.fromkeys(removals)}
    steps = _forward(who, own, changes, current, places, release, avoid)
    refuse_wandering(current, [(step.who, step.name, step.new) for step in steps], places)
    sections = {step.who for step in steps if step.name == PROFILE}
    refuse_asleep(now, release, [place for place in places if any(covers(at, place) for at in sections)])
    if resource is not None:
        steps = beside(steps, stated_steps(resource, current, {(who, name): text for name, text in changes.items()}))
    return ChangePlan(
        who,
        release.name,
        tuple(places_up),
        steps,
        expected,
        tuple(warnings),
    )


def plan_rereading(
    current: Sequence[ConfigEntry], target: str, release: Release, places: Sequence[Place]
) -> ChangePlan:
    """Decide the steps that make every shard of a target's OSDs read its nine values again, and change nothing else.

    Raises InputError: a target that covers no running OSD, and values asleep under a built-in profile, which wake up.
    """
    who = str(Target.parse(target))
    over = [place for place in places if covers(who, place)]
    places_up = [place for place in over if place.up]
    if not places_up:
        raise InputError("target", f"`{target}`, which covers no running OSD", "a target that covers one")
    now = Database(current)
    refuse_asleep(now, release, over)
    touch_list = touches(now, [who], places, release)
    steps = [Step(*touch.key, touch.old, touch.new) for touch in touch_list]
    steps += _one_state([Step(*touch.key, touch.new, touch.old) for touch in touch_list])
    refuse_wandering(current, [(step.who, step.name, step.new) for step in steps], places)
    return ChangePlan(who, release.name, tuple(places_up), tuple(steps), {})


def plan_restore(
    current: Sequence[ConfigEntry],
    restores: Sequence[Restore],
    places: Sequence[Place],
    release: Release,
    doubtful: Iterable[Key] = (),
    repair: bool = False,
    avoid: Collection[str] = (),
) -> RestorePlan:
    """Decide the steps back. `doubtful` keys are written even if they look right: a late write may be under way.

    `avoid` is as in `plan_change`.

    Where somebody put OSDs under a built-in profile meanwhile, that profile is held at `custom` for as long as the nine
    values are taken back, and then put back as it was found. With `repair` this is done even if all nine values are
    gone already: who removed them by hand, profile first, left the schedulers with them.
    """
    values: Dict[Key, Optional[str]] = {(entry.who, entry.name): entry.value for entry in current}
    doubtful = set(doubtful)
    own_restores, drift = [], []
    others: List[Restore] = []
    others_rows = {
        (resource_address[1], entry.name): entry.value
        for entry in current
        if stated_by_another(entry.value) is not None and (resource_address := resource_of(entry.who)) is not None
    }
    for restore in restores:
        now = values.get(restore.key)
        ours, row = any(same(now, value) for value in restore.ours), others_rows.get(restore.key)
        if ours and row is not None and same(stated_by_another(row), now) and not same(now, restore.value):
            # whoever set it last, an operator sets it again
            now, ours = row, False
        if ours or same(now, restore.value):
            own_restores.append(restore)
        else:
            others.append(restore)
            drift.append(SettingDrift(restore.who, restore.name, _one(restore.ours), now))
    in_resource = [item for item in own_restores if resource_of(item.who) is not None]
    # an operator may set ours once more over what another has set there: it is looked at again
    again = {
        (resource_address[1], item.name)
        for item in in_resource
        if (resource_address := resource_of(item.who)) is not None
    }
    recheck = [item for item in others if item.key in again]

    def writes(items: Iterable[Restore]) -> List[Step]:
        changes = [item for item in items if not same(values.get(item.key), item.value) or item.key in doubtful]
        return [Step(*item.key, values.get(item.key), item.value) for item in changes]

    resource_steps = list(reversed(writes(in_resource)))
    own_restores = [item for item in own_restores if resource_of(item.who) is None]
    nine = [item for item in own_restores if item.name in MCLOCK_NINE]
    nine_steps = list(reversed(writes(nine)))
    holds = _holds(current, {item.who for item in (nine if repair else nine_steps)}, places)
    apart = {PROFILE, OVERRIDE, *MCLOCK_NINE, *BANDWIDTHS}
    steps = writes(reversed([item for item in own_restores if item.name not in apart]))
    steps += _one_state(writes(item for item in own_restores if item.name == OVERRIDE))
    for key, value in holds.items():
        steps.append(Step(*key, value, "custom"))
        values[key] = "custom"
    steps += nine_steps
    profiles = {item.key: item for item in own_restores if item.name == PROFILE}
    for key, value in holds.items():
        # a profile that is ours goes back to what it was before us, another's to what it was just now
        own = profiles.get(key)
        profiles[key] = own or Restore(*key, value, frozenset({"custom"}))
    let_go = writes(profiles.values())
    capacities = {item.key: item for item in own_restores if item.name in BANDWIDTHS}
    bandwidth_keys = {key for key, item in capacities.items() if not same(values.get(key), item.value)}
    built_in = [step.who for step in let_go if step.new != "custom"]
    for touch in touches(Database(current), built_in, places, release, avoid, bandwidth_keys):
        steps.append(Step(*touch.key, touch.old, touch.new))
        values[touch.key] = touch.new
        own = capacities.get(touch.key)
        capacities[touch.key] = own or Restore(*touch.key, touch.old, frozenset({touch.new}))
    steps += _one_state(let_go)
    steps += _one_state(writes(capacities.values()))
    last = {**profiles, **capacities}
    rest = [item for item in own_restores if item.key not in last]
    return RestorePlan(beside(steps, resource_steps), (*last.values(), *rest, *in_resource, *recheck), tuple(drift))


def _texts(settings: Mapping[str, object], release: Release, version: Optional[Version]) -> Dict[str, str]:
    """Texts as the monitors keep them, complete, in the order to write them."""
    valid: Settings = check_settings(settings, release, version=version)
    if not valid:
        raise InputError("settings", "nothing to set", "at least one knob")
    for name in valid:
        scope = KNOBS[name].scope
        if scope != "osd" or KNOBS[name].change == "moves data":
            kind = "a property of pools" if scope == "pool" else f"an option of {scope}"
            raise InputError(name, kind, "a knob of the OSDs alone; set this one by hand")
    if any(name in valid for name in MCLOCK_NINE):
        valid[PROFILE] = "custom"
    elif valid.get(PROFILE) == "custom":
        raise InputError(
            PROFILE, "custom alone", "the nine mClock values beside it (unset ones become 0/1/0 at a restart)"
        )
    texts = format_settings(valid, release)
    first = [PROFILE, *MCLOCK_NINE, OVERRIDE]
    return {name: texts[name] for name in [*first, *(name for name in texts if name not in first)] if name in texts}


def _forward(
    who: str,
    own: Mapping[str, str],
    changes: Mapping[str, Optional[str]],
    current: Sequence[ConfigEntry],
    places: Sequence[Place],
    release: Release,
    avoid: Collection[str],
) -> Tuple[Step, ...]:
    """Custom, nine values, the profile as wanted, the rest. Keys that hold their value already are left out."""
    now: Dict[Key, Optional[str]] = {(who, name): value for name, value in own.items()}

    def writes(values: Mapping[Key, Optional[str]]) -> List[Step]:
        steps = [Step(*key, now.get(key), value) for key, value in values.items() if not same(now.get(key), value)]
        now.update(values)
        return steps

    nine: Dict[Key, Optional[str]] = {(who, name): changes[name] for name in MCLOCK_NINE if name in changes}
    holds = _holds(current, {who}, places) if any(not same(now.get(key), nine[key]) for key in nine) else {}
    now.update(holds)
    custom_steps, nine_steps = writes(dict.fromkeys(holds, "custom")), writes(nine)
    profile = {(who, PROFILE): changes[PROFILE]} if PROFILE in changes else {}
    # a finer section's profile was only held; the target's own is as wanted by now
    let_go = writes({**profile, **{key: value for key, value in holds.items() if key[0] != who}})
    built_in = [step.who for step in let_go if step.new != "custom"]
    touch_list = touches(Database(current), built_in, places, release, avoid=[*changes, *avoid])
    steps = [*custom_steps, *nine_steps, *writes({touch.key: touch.new for touch in touch_list})]
    steps += _one_state(let_go) if nine_steps else let_go
    steps += _one_state(writes({touch.key: touch.old for touch in touch_list}))
    steps += writes({(who, name): text for name, text in changes.items() if name not in (PROFILE, *MCLOCK_NINE)})
    return tuple(steps)


def _one_state(steps: Sequence[Step]) -> List[Step]:
    """Steps that end one state together: the OSDs are waited for before the first, not for each other."""
    return [replace(step, settled=not at) for at, step in enumerate(steps)]


def _after(current: Sequence[ConfigEntry], who: str, values: Mapping[str, str], removals: Sequence[str]) -> Database:
    """The database as it will be."""
    others = [entry for entry in current if entry.who != who or entry.name not in {*values, *removals}]
    return Database([*others, *(ConfigEntry(who, name, value) for name, value in values.items())])


def _holds(
    current: Sequence[ConfigEntry], sections: Iterable[str], places: Sequence[Place]
) -> Dict[Key, Optional[str]]:
    """Where `custom` has to stand, so that every OSD under these sections is under it: key -> value found there.

    Also those that are down: one that started meanwhile under a built-in profile would have keys removed at `osd`.
    """
    profiles = {(entry.who, entry.name): entry.value for entry in current if entry.name == PROFILE}
    database = Database(current)
    holds: Dict[Key, Optional[str]] = {}
    for who in sorted(sections):
        section = section_of(who)
        if section is None:
            continue
        for place in places:
            if not section.covers(place) or database.profile(place) == "custom":
                continue
            decides = database.winner(PROFILE, place)
            finer = section_of(decides.who) if decides is not None else None
            # a wider entry is outranked by one in our own section, which touches no other OSD
            at = decides.who if decides is not None and finer is not None and finer.rank >= section.rank else who
            key = (at, PROFILE)
            holds[key] = profiles.get(key)
            database.put(ConfigEntry(*key, "custom"))
    return holds


def _one(values: Iterable[Optional[str]]) -> Optional[str]:
    """Of several values that were ours, the one to name."""
    return next((value for value in values if value not in (None, "custom")), next(iter(values), None))


def text_of(value: Optional[str]) -> str:
    """A value of the configuration database for people."""
    return "no entry" if value is None else value
