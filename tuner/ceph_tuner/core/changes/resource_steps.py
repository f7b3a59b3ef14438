"""The steps of a change in a Kubernetes resource, placed among those at the monitors. No I/O.

Rook sets what the resource states, again and again, and never unsets what is taken out of it. So a value goes to the
monitors first and into the resource after it. On the way back it leaves the resource first.
"""

from __future__ import annotations

from collections import defaultdict
from typing import DefaultDict, Iterable, List, Mapping, Optional, Protocol, Sequence, Tuple, runtime_checkable

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.custom_resource import CustomResource, resource_of, stated_by_another
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.knobs.settings import same


@runtime_checkable
class BesideOperator(Protocol):
    """A configuration database that an operator of Kubernetes may write to as well."""

    def rehearse(self, steps: Sequence[Step]) -> None:
        """See whether these steps would stay, and be taken. Writes nothing. Raises InputError, which says why not."""


@runtime_checkable
class InResource(BesideOperator, Protocol):
    """One whose rows are in that operator's resource too."""

    @property
    def resource(self) -> CustomResource:
        """Which."""

    def settle(self) -> str:
        """Wait until the operator has done what the resource says by now; words for why it has not, or none."""


def stated_steps(
    resource: CustomResource, current: Sequence[ConfigEntry], values: Mapping[Key, Optional[str]]
) -> List[Step]:
    """The steps after which a resource states these values, and none of those that are None."""
    now = {(row.who, row.name): row.value for row in current}
    steps = []
    for (section, name), value in values.items():
        who = resource.who(section)
        steps.append(Step(who, name, now.get((who, name)), value))
    # what another states just so is as it should be, and stays another's
    return [step for step in steps if not same(stated_by_another(step.old) or step.old, step.new)]


def beside(steps: Sequence[Step], resource_steps: Sequence[Step]) -> Tuple[Step, ...]:
    """Place a resource's steps among the monitors': a value is stated after it is set, and no more before it goes."""
    removals = _by_key(step for step in resource_steps if step.new is None)
    values = _by_key(step for step in resource_steps if step.new is not None)
    last = {step.key: at for at, step in enumerate(steps)}
    sequence: List[Step] = []
    for at, step in enumerate(steps):
        sequence += removals.pop(step.key, [])
        sequence.append(step)
        if last[step.key] == at:
            sequence += values.pop(step.key, [])
    rest = [step for group in removals.values() for step in group]
    return (*rest, *sequence, *(step for group in values.values() for step in group))


def _by_key(steps: Iterable[Step]) -> DefaultDict[Key, List[Step]]:
    """A resource's steps by the monitors' key that they go with."""
    groups: DefaultDict[Key, List[Step]] = defaultdict(list)
    for step in steps:
        resource_address = resource_of(step.who)
        groups[step.who if resource_address is None else resource_address[1], step.name].append(step)
    return groups
