"""A change that stands while its settings are replaced: taking it back always gives what was before the first of them.

One entry of the journal covers all of it. A replacement begins with a write of that entry: it then takes back the old
settings, the new ones and whatever lies between, to the values of before the change. So a process that dies anywhere
leaves what any other change leaves, and what recovers it knows nothing of replacements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, Sequence, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import APPLIED, APPLYING, Entry
from ceph_tuner.core.changes.osd_poll import unhindered
from ceph_tuner.core.changes.overlay import marked
from ceph_tuner.core.changes.plan import ChangePlan, Restore, Step, plan_restore
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.errors import RetryLater
from ceph_tuner.core.knobs.settings import same


@dataclass(frozen=True)
class Replacement:
    """The steps from a change's settings to other ones."""

    plan: ChangePlan
    gone: FrozenSet[Key]
    """Keys that get back what they had before the change."""


class StandingApplier(Applier):
    """An applier that can also replace the settings of a change in force."""

    def plan_replacement(self, entry: Entry, target: str, settings: Mapping[str, object]) -> Replacement:
        """Decide the fewest steps. Writes nothing. Raises InputError as `plan`, RetryLater where others wrote."""
        current = self._config.dump()
        before = _after(current, _steps_to_before(entry, current))
        # what the settings would change had there been no change before them
        wanted = {step.key for step in self.plan(target, settings, before).steps}
        leaving = [restore for restore in entry.restores if restore.key not in wanted]
        places = self._config.places()
        back = plan_restore(current, leaving, places, self._release)
        drift = [*back.drift, *plan_restore(current, entry.restores, places, self._release).drift]
        if drift:
            raise RetryLater(f"somebody changed what is to be replaced: {drift[0]}", "")
        plan = self.plan(target, settings, _after(current, back.steps))
        return Replacement(
            replace(plan, steps=(*back.steps, *plan.steps)), frozenset(restore.key for restore in leaving)
        )

    def replace(
        self,
        entry: Entry,
        target: str,
        settings: Mapping[str, object],
        why: str = "",
        check: Callable[[], None] = unhindered,
    ) -> Entry:
        """Put other settings in place of a change's, as a trial; `keep` makes it permanent again.

        What fails takes back the whole change. Gives the entry, UNDONE where these settings are those of before it.
        Raises RetryLater where the change is not in force, and as `apply`.
        """
        with self._lock:
            self.recover()
            self._refuse_leftover()
            self._journal.read().check_whole()
            stored = self._entry(entry.number)
            if stored.state != APPLIED:
                raise RetryLater(f"change {stored.number} cannot be replaced: it is {stored.state}", "")
            replacement = self.plan_replacement(stored, target, settings)
            plan = replacement.plan
            newer = [change for change in self._journal.entries() if change.number > stored.number]
            written = marked(plan.restores(), newer)
            restores = merged(stored.restores, written)
            before = {restore.key: restore.over for restore in stored.restores}
            risen = frozenset(item.key for item in written if item.over > before.get(item.key, item.over))
            moving = replace(
                stored,
                state=APPLYING,
                changed=self._clock.now(),
                who=self._who,
                why=why,
                release=plan.release,
                target=plan.target,
                steps=plan.steps,
                restores=restores,
                trial=True,
                note="",
            )
            stands = standing([item for item in restores if item.key not in replacement.gone], written, plan)
            return self._carry_out(plan, moving, stands, check, replacement.gone, risen)


def merged(older: Sequence[Restore], newer: Sequence[Restore]) -> Tuple[Restore, ...]:
    """What takes both back at once, at whatever point between them."""
    restores: Dict[Key, Restore] = {restore.key: restore for restore in older}
    for restore in newer:
        first = restores.get(restore.key)
        restores[restore.key] = (
            restore if first is None else replace(first, ours=first.ours | restore.ours | {restore.value})
        )
    return tuple(restores.values())


def standing(restores: Sequence[Restore], written: Sequence[Restore], plan: ChangePlan) -> Tuple[Restore, ...]:
    """What takes the change back once the plan is carried out, without keys that have again what they had before."""
    last = {step.key: step.new for step in plan.steps}
    latest = {item.key: item for item in written}
    stands = []
    for restore in restores:
        item = latest.get(restore.key)
        if item is not None:
            # over a newer change that it did not lie over: the value before is that one's
            restore = item if item.over > restore.over else replace(restore, ours=item.ours)
        if item is None or not same(last[restore.key], restore.value):
            stands.append(restore)
    return tuple(stands)


def _steps_to_before(entry: Entry, current: Sequence[ConfigEntry]) -> List[Step]:
    values = {(row.who, row.name): row.value for row in current}
    return [Step(*restore.key, values.get(restore.key), restore.value) for restore in entry.restores]


def _after(current: Sequence[ConfigEntry], steps: Iterable[Step]) -> List[ConfigEntry]:
    """The database once these steps are done."""
    values = {(row.who, row.name): row.value for row in current}
    for step in steps:
        values.pop(step.key, None)
        if step.new is not None:
            values[step.key] = step.new
    return [ConfigEntry(*key, value) for key, value in values.items()]
