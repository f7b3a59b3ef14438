"""Carries change plans out, so that they can always be taken back (docs/safe-writes.md).

Every public method works under the cluster's lock and first takes back what an interrupted run left half done.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.core.ceph.ports import Clock, ConfigEntry, Store
from ceph_tuner.core.changes.configuration import Configuration
from ceph_tuner.core.changes.custom_resource import resource_of
from ceph_tuner.core.changes.effect_check import EffectCheck
from ceph_tuner.core.changes.journal import APPLIED, APPLYING, UNDOING, UNDONE, Entry, Journal, SetAside, refuse_large
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.osd_poll import EFFECT_S, OsdPoll, Progress, silent, unhindered
from ceph_tuner.core.changes.overlay import after_undo, covered
from ceph_tuner.core.changes.plan import ChangePlan, Restore, SettingDrift, Step, plan_restore
from ceph_tuner.core.changes.planner import Planner
from ceph_tuner.core.changes.resource_steps import InResource
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.changes.step import doubtful_keys
from ceph_tuner.core.errors import (
    InputError,
    Locked,
    RetryLater,
    Stopped,
    TunerError,
    UnknownOption,
)
from ceph_tuner.core.knobs.releases import Release

_ROUNDS = 3
_NOTE_MAX = 4000
"""Characters of an entry's note: the monitors keep 64 KiB of it all, and a cluster may have thousands of drifts."""


@dataclass(frozen=True)
class Undone:
    """One change that was taken back."""

    entry: Entry
    drift: Tuple[SettingDrift, ...] = ()
    """What somebody else changed since, and was left."""
    unseen: Tuple[str, ...] = ()
    """OSDs that do not show it yet, and options that none can show: an upgrade has retired them."""

    @property
    def remarks(self) -> Tuple[str, ...]:
        """What is not as it was before, and where, in words."""
        return (*map(str, self.drift), *self.unseen)


class Applier:
    """Applies plans and takes changes back."""

    def __init__(
        self,
        config: Configuration,
        store: Store,
        clock: Clock,
        lock: Lock,
        release: Release,
        who: str,
        effect_s: float = EFFECT_S,
        progress: Progress = silent,
    ) -> None:
        self._config, self._clock, self._lock = config, clock, lock
        self._release, self._who = release, who
        poll = OsdPoll(config.places, clock, effect_s, progress)
        self._planner, self._effects = Planner(config, poll, release), EffectCheck(config, poll)
        self._journal = Journal(store, osds=lambda: 1 + max((place.osd for place in config.places()), default=0))
        self._trials: Set[int] = set()

    def plan(
        self, target: str, settings: Mapping[str, object], current: Optional[Sequence[ConfigEntry]] = None
    ) -> ChangePlan:
        """Read what the decision needs, and decide. Writes nothing. Raises InputError.

        `current`: the database as it will be by then, where that is not as it is now.
        """
        return self._planner.plan(target, settings, current)

    def plan_rereading(self, target: str) -> ChangePlan:
        """Decide how every shard of a target's OSDs reads its values again. Writes nothing. Raises InputError."""
        return self._planner.plan_rereading(target)

    def apply(
        self,
        plan: ChangePlan,
        why: str = "",
        trial: bool = False,
        check: Callable[[], None] = unhindered,
        forecast: Mapping[str, Any] = MappingProxyType({}),
    ) -> Optional[Entry]:
        """Write the plan and see its effect, or leave everything as it was. None where nothing had to be written.

        A trial is taken back by the next run if this one dies; `keep` makes it permanent. `check` is called before each
        write and at each answer of an OSD: what it raises ends the change. `forecast`: what a model said before.
        Raises Locked, RetryLater (the database is no longer as planned upon), EffectNotSeen, CommandFailed.
        """
        with self._lock:
            self.recover()
            self._refuse_leftover()
            self._journal.read().check_whole()
            self._refuse_stale(plan)
            if not plan.steps:
                self._effects.await_effect(plan)
                return None
            # now: what fails between the last write and the return would leave a change that its owner knows nothing of
            self._journal.trim(room=1)
            now = self._clock.now()
            entry = Entry(
                self._journal.next_number(),
                APPLYING,
                now,
                now,
                self._who,
                why,
                plan.release,
                plan.target,
                plan.steps,
                plan.restores(),
                trial,
                forecast=dict(forecast),
            )
            return self._carry_out(plan, entry, plan.standing(), check)

    def plan_and_apply(
        self,
        target: str,
        settings: Mapping[str, object],
        why: str = "",
        trial: bool = False,
        check: Callable[[], None] = unhindered,
        forecast: Mapping[str, Any] = MappingProxyType({}),
    ) -> Tuple[ChangePlan, Optional[Entry]]:
        """Plan upon what is there once interrupted runs are taken back, and apply that. Raises as both."""
        with self._lock:
            self.recover()
            plan = self.plan(target, settings)
            return plan, self.apply(plan, why, trial, check, forecast)

    def _carry_out(
        self,
        plan: ChangePlan,
        entry: Entry,
        standing: Tuple[Restore, ...],
        check: Callable[[], None],
        gone: FrozenSet[Key] = frozenset(),
        risen: FrozenSet[Key] = frozenset(),
    ) -> Entry:
        """Store the entry, write the plan's steps and see their effect.

        `gone`: keys that the change gives up; `risen`: those that it writes anew, over what lay over them.
        """
        refuse_large(entry)
        if entry.trial:
            self._trials.add(entry.number)
        self._record(entry)
        doubtful: Set[Key] = set()
        try:
            for step in plan.steps:
                self._effects.await_state(step, plan.steps, check).check()
                check()
                doubtful = {step.key}
                self._write(step)
            doubtful = set()
            late = self._effects.settle()
            problems = [*self._effects.await_effect(plan, check), *late]
            if gone:
                self._effects.await_sources(set(gone), check=check).check()
            if gone or risen:
                self._lay_bare(replace(entry, restores=tuple(r for r in entry.restores if r.key in gone | risen)))
            # what was only held or touched meanwhile is as before: not ours any more
            entry = replace(entry, restores=standing, note="; ".join(problems)[:_NOTE_MAX])
            return self._transition(entry, APPLIED if standing else UNDONE)
        except Locked:
            # whoever has the lock now takes the change back; two at once would be worse
            raise
        except BaseException as error:
            self._take_back_after(error, entry, doubtful)
            raise

    def keep(self, entry: Entry) -> Entry:
        """Make a trial permanent."""
        with self._lock:
            current = self._entry(entry.number)
            if current.state != APPLIED:
                raise RetryLater(
                    f"change {current.number} cannot be kept: it is {current.state}", "see `ceph-tuner history`"
                )
            self._trials.discard(current.number)
            permanent = replace(current, trial=False)
            self._record(permanent)
            return permanent

    def recover(self) -> List[Undone]:
        """Take back what interrupted runs left: half-done changes, half-done undos, and trials whose owner is gone."""
        with self._lock:
            note = f"left behind, and taken back by {self._who}"
            return [self._take_back(entry, self._doubtful(entry), entry.note or note) for entry in self.leftover()]

    def leftover(self) -> List[Entry]:
        """What `recover` would take back, newest first. Reads only."""
        entries = reversed(self._journal.entries())
        return [entry for entry in entries if entry.is_open and (entry.unfinished or entry.number not in self._trials)]

    def undo(self, to: Optional[int] = None, everything: bool = False) -> List[Undone]:
        """Take back the newest change (what a crash left is newest); all changes after number `to`; or all.

        Raises InputError where there is nothing to take back.
        """
        with self._lock:
            entries = self.undoable(to, everything)
            undos = self.recover()
            if not entries and not undos:
                raise InputError("journal", "no change in force", "a change that was applied by ceph-tuner")
            for entry in entries:
                # as it is by now: what was taken back before it may have lain beneath it
                undos.append(self.undo_entry(entry))
            with suppress(TunerError):
                # what is taken back is, whether old entries go now or with the next change
                self._journal.trim()
            return undos

    def _lay_bare(self, entry: Entry) -> Entry:
        """What lies over this change goes back to what was before it. Done again, it changes nothing more."""
        under = {restore.key: restore for restore in entry.restores}
        leftover = {change.number for change in self.leftover() if change.number > entry.number}
        entries = self._journal.entries()
        for above in (change for change in entries if change.number != entry.number):
            restores = above.restores
            if above.number in leftover:
                restores = tuple(replace(item, value=under.get(item.key, item).value) for item in restores)
            elif above.state == APPLIED:
                restores = after_undo(above, entry, entries)
            if restores != above.restores:
                if not entry.is_open:
                    # who dies from here on leaves what the next run takes back; UNDOING has other restores already
                    entry = replace(entry, trial=True)
                    self._record(entry)
                self._record(replace(above, restores=restores))
        return entry

    def undoable(self, to: Optional[int] = None, everything: bool = False) -> List[Entry]:
        """Changes that `undo` would take back, newest first, beside those of `leftover`. Reads only."""
        leftover = {entry.number for entry in self.leftover()}
        entries = self._journal.entries()
        in_force = [entry for entry in reversed(entries) if entry.state == APPLIED and entry.number not in leftover]
        if everything:
            return in_force
        if to is None:
            return [] if leftover else in_force[:1]
        if to != 0 and to not in {entry.number for entry in entries}:
            numbers = ", ".join(str(entry.number) for entry in reversed(in_force)) or "none"
            raise InputError(
                "--to", str(to), f"the number of a change (in force: {numbers}), or 0 for before the first"
            )
        return [entry for entry in in_force if entry.number > to]

    def undo_entry(self, entry: Entry) -> Undone:
        """Take back one change of one's own, such as a trial. Later changes of the same keys stay: they are drift.

        Where that is done already, whoever has set the same values since keeps them.
        """
        with self._lock:
            current = self._entry(entry.number)
            if current.state == UNDONE:
                self._trials.discard(current.number)
                return Undone(current)
            return self._take_back(current)

    def history(self) -> List[Entry]:
        """Every change that is remembered, oldest first."""
        return self._journal.entries()

    def set_aside(self) -> List[SetAside]:
        """What lies in the journal and cannot be read: it stops new changes, and nothing from being taken back."""
        return self._journal.read().set_aside

    def preview_undo(self, entry: Entry) -> Tuple[Sequence[Step], Sequence[SettingDrift]]:
        """Return the steps that taking a change back would write now, and what it would leave."""
        self._refuse_out_of_reach(entry)
        repair = entry.state != APPLYING
        entry, left = (entry, ()) if entry.state == UNDOING else self._uncovered(entry)
        places = self._config.places()
        plan = plan_restore(self._config.dump(), entry.restores, places, self._release, self._doubtful(entry), repair)
        return plan.steps, (*left, *plan.drift)

    def _uncovered(self, entry: Entry) -> Tuple[Entry, Tuple[SettingDrift, ...]]:
        """The change without keys that hold a later one's value, and these: that value may be ours as well."""
        values = {(row.who, row.name): row.value for row in self._config.dump()}
        others = covered(entry, self._journal.entries(), values)
        left = tuple(SettingDrift(*key, values.get(key), values.get(key)) for key in sorted(others))
        return replace(entry, restores=tuple(item for item in entry.restores if item.key not in others)), left

    def _take_back_after(self, error: BaseException, entry: Entry, doubtful: Iterable[Key]) -> None:
        reason = str(error) or type(error).__name__
        try:
            # who presses Ctrl-C again is impatient, and still wants the cluster as it was: begin again, it is safe to
            for _ in range(_ROUNDS - 1):
                with suppress(KeyboardInterrupt):
                    self._take_back(entry, doubtful, note=f"not applied: {reason}")
                    return
            self._take_back(entry, doubtful, note=f"not applied: {reason}")
        except Exception as exc:
            raise Stopped(
                f"{reason}; and taking it back failed as well ({exc}). "
                "The journal has it: `ceph-tuner rollback` finishes when the cluster answers",
                "",
            ) from error

    def _take_back(self, entry: Entry, doubtful: Iterable[Key] = (), note: str = "") -> Undone:
        """Steps back until the database is as before, then the OSDs are asked."""
        self._refuse_out_of_reach(entry)
        drift: Dict[Key, SettingDrift] = {}
        if entry.state != UNDOING:
            entry, left = self._uncovered(self._lay_bare(entry))
            drift.update({(item.who, item.name): item for item in left})
        late: Dict[str, None] = {}
        losses: Dict[str, str] = {}
        doubtful, repair = set(doubtful), entry.state != APPLYING
        # also where nothing is to be written: for what was begun before, and to give up what others state as well
        waits = in_resource = any(resource_of(restore.who) is not None for restore in entry.restores)
        resource_faults: List[str] = []
        if entry.state == UNDOING:
            # who wrote the profile before may be gone: what makes shards read again must come after they have seen it
            late.update(dict.fromkeys(self._effects.await_sources({restore.key for restore in entry.restores}).words))
        for _ in range(_ROUNDS):
            places = self._config.places()
            plan = plan_restore(self._config.dump(), entry.restores, places, self._release, doubtful, repair)
            drift.update({(item.who, item.name): item for item in plan.drift})
            # the plan's own list, since it knows what it holds at custom meanwhile
            entry = self._transition(replace(entry, restores=plan.restores), UNDOING)
            if not plan.steps and not waits:
                break
            for step in plan.steps:
                # it goes on: to stop half-way would be worse, and it is told
                steps = [item for item in plan.steps if item is step or item.name not in losses]
                late.update(dict.fromkeys(self._effects.await_state(step, steps).words))
                losses.update(self._write_back(step))
            doubtful, repair = set(), False
            # what an operator had begun before it saw the resource without our values comes again now, or never
            waits, resource_faults = False, self._effects.settle()
        late.update(dict.fromkeys(resource_faults))
        remainder = plan_restore(self._config.dump(), entry.restores, self._config.places(), self._release)
        if remainder.steps:
            raise Stopped(
                f"change {entry.number}: {remainder.steps[0].who} {remainder.steps[0].name} does not stay as it was; "
                "something else keeps writing it",
                "stop what writes it, then `ceph-tuner rollback`",
            )
        drift.update({(item.who, item.name): item for item in remainder.drift})
        for key in {item.key for item in remainder.restores} - {(item.who, item.name) for item in remainder.drift}:
            # an operator has set ours over it, and that is taken back
            drift.pop(key, None)
        keys = {key for key in {restore.key for restore in entry.restores} | set(drift) if key[1] not in losses}
        late.update(dict.fromkeys(self._effects.await_sources(keys, last=True).words))
        doubts = (*losses.values(), *late)
        words = "; ".join([part for part in (note or entry.note, *losses.values(), *map(str, drift.values())) if part])
        # what an operator may still set over it is looked at again by the next run
        state = UNDOING if in_resource and resource_faults else UNDONE
        entry = self._transition(replace(entry, trial=False, note=words[:_NOTE_MAX]), state)
        self._trials.discard(entry.number)
        return Undone(entry, tuple(drift.values()), doubts)

    def _doubtful(self, entry: Entry) -> Set[Key]:
        return doubtful_keys(entry.steps, self._config.dump()) if entry.state == APPLYING else set()

    def _refuse_leftover(self) -> None:
        """Nothing goes on top of a change that an operator may set once more."""
        for entry in self.leftover():
            raise RetryLater(
                f"change {entry.number} is taken back, and may come again: {'; '.join(self._effects.settle())}",
                "`ceph-tuner rollback` when that is over",
            )

    def _refuse_out_of_reach(self, entry: Entry) -> None:
        """A change in a resource is taken back where that resource is reached: its operator would set it again."""
        here = self._config.resource if isinstance(self._config, InResource) else None
        for restore in entry.restores:
            resource_address = resource_of(restore.who)
            if resource_address is not None and resource_address[0] != here:
                raise InputError(
                    f"change {entry.number}",
                    f"values in the CephCluster {resource_address[0]}",
                    f"`--rook {resource_address[0]}` to reach it",
                )

    def _write(self, step: Step) -> None:
        self._lock.check()
        if step.new is None:
            self._config.remove(step.who, step.name)
        else:
            self._config.set(step.who, step.name, step.new)

    def _write_back(self, step: Step) -> Dict[str, str]:
        """Write one step of the way back; give options that the release does not have, with words about each.

        An upgrade may have retired one since. Its entry comes back all the same, for a release that has it again.
        """
        try:
            self._write(step)
        except UnknownOption:
            if step.new is None:
                raise
            self._lock.check()
            self._config.set_unknown(step.who, step.name, step.new)
            return {step.name: f"{step.who} {step.name}: {step.new} as before; the release has no such option"}
        return {}

    def _refuse_stale(self, plan: ChangePlan) -> None:
        now = {(row.who, row.name): row.value for row in self._config.dump()}
        for restore in plan.restores():
            if now.get(restore.key) != restore.value:
                raise RetryLater(f"{restore.who} {restore.name} has changed since the plan was made: plan again", "")

    def _entry(self, number: int) -> Entry:
        for entry in self._journal.entries():
            if entry.number == number:
                return entry
        raise InputError("journal", f"no change {number}", "a change of this cluster")

    def _transition(self, entry: Entry, state: str) -> Entry:
        successor = replace(entry, state=state, changed=self._clock.now())
        self._record(successor)
        return successor

    def _record(self, entry: Entry) -> None:
        self._lock.check()
        self._journal.write(replace(entry, generation=self._lock.generation))
