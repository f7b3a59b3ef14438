"""How what a resource states comes to the cluster, stays there, and is taken back: by values and records. No I/O.

A value at the cluster has a key, such as the SLO, or the mode of a device class. Before one is written, the resource
notes what was there (`Held`). Who comes later, after a restart or another leader, sees from that note and the cluster
alone what is still to do. A value that somebody else has set is left alone: it is drift, until the resource's `spec` is
changed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.controller.resource import noted
from ceph_tuner.core.errors import Malformed
from ceph_tuner.core.knobs.settings import same

_MOST_EARLIER = 8
"""Changes of a resource in a row of whose writes nothing is known."""

Value = Any
"""A plain document; None for nothing there."""


@dataclass(frozen=True)
class Held:
    """What a resource has at the cluster under one key."""

    before: Value
    """What was there when the resource came."""
    value: Value
    """What it states."""
    earlier: Tuple[Value, ...] = ()
    """What it stated before that and may have at the cluster, as long as `written` is false."""
    written: bool = False
    """Whether the cluster was seen to have `value`."""
    generation: int = 0
    """Of the resource that stated `value`."""

    @property
    def own(self) -> Tuple[Value, ...]:
        """Values that stand at the cluster by us, and nobody else."""
        return (self.value,) if self.written else (self.before, *self.earlier, self.value)

    def restated(self, value: Value, generation: int) -> Held:
        """The same with another value, of which nothing is written yet."""
        earlier = (self.value,) if self.written else (*self.earlier, self.value)
        return replace(self, value=value, earlier=earlier[-_MOST_EARLIER:], written=False, generation=generation)

    @property
    def seen(self) -> Held:
        """The same once the cluster has the value."""
        return replace(self, written=True, earlier=())


def held_from(record: Mapping[str, Any]) -> Dict[str, Held]:
    """Read a resource's record. Raises Malformed for what is none."""
    try:
        return {str(key): _held(**part) for key, part in noted(record, "held").items()}
    except Malformed:
        raise
    except (TypeError, ValueError) as fault:
        raise Malformed("the resource's record", str(fault)[:100], "what the controller wrote") from None


def _held(earlier: Any = (), **rest: Any) -> Held:
    if not isinstance(earlier, (list, tuple)):
        raise TypeError(f"earlier is {earlier!r:.60}")
    return Held(earlier=tuple(earlier), **rest)


def record_of(held: Mapping[str, Held]) -> Dict[str, Any]:
    """Inverse of `held_from`."""
    return {"held": {key: {**asdict(part), "earlier": list(part.earlier)} for key, part in sorted(held.items())}}


def is_same(one: Value, other: Value) -> bool:
    """Whether two values are the same to the cluster: options may be written otherwise, as 30 and 30.0."""
    return bool(one == other) or (isinstance(one, str) and isinstance(other, str) and same(one, other))


@dataclass(frozen=True)
class Step:
    """One write: the record says `held` before it, and `after` once the cluster shows the value."""

    key: str
    value: Value
    held: Held
    after: Optional[Held]
    """None where the key is taken back."""


@dataclass(frozen=True)
class Course:
    """What is to be done."""

    held: Mapping[str, Held]
    """The record before the first write."""
    steps: Tuple[Step, ...]
    drift: Mapping[str, Value]
    """Key -> what somebody else has set there."""
    released: Tuple[str, ...] = ()
    """Keys whose record goes, as there is nothing of ours."""

    @property
    def held_after(self) -> Dict[str, Held]:
        """The record when all is done."""
        after = {key: part for key, part in self.held.items() if key not in self.released}
        for step in self.steps:
            if step.after is None:
                after.pop(step.key, None)
            else:
                after[step.key] = step.after
        return after


def course(held: Mapping[str, Held], stated: Mapping[str, Value], now: Mapping[str, Value], generation: int) -> Course:
    """What brings the cluster from `now` to what is `stated`; nothing stated takes all back.

    `now` has every key of `held` and of `stated`.
    """
    record, steps, drift, released = dict(held), list[Step](), dict[str, Value](), list[str]()
    # what is taken back goes first: another key may be refused as long as it is there
    for key in sorted(held.keys() - stated.keys()):
        part = held[key]
        if any(is_same(now[key], own) for own in part.own) and not is_same(now[key], part.before):
            steps.append(Step(key, part.before, part, None))
        else:
            released.append(key)
    for key, value in stated.items():
        _state(record, steps, drift, key, value, now[key], generation)
    return Course(record, tuple(steps), drift, tuple(released))


def _state(
    record: Dict[str, Held],
    steps: List[Step],
    drift: Dict[str, Value],
    key: str,
    value: Value,
    now: Value,
    generation: int,
) -> None:
    part = record.get(key)
    if part is None:
        part = Held(now, value, generation=generation)
    elif not is_same(part.value, value):
        part = part.restated(value, generation)
        if not any(is_same(now, own) for own in part.own):
            # somebody set another one; the resource was changed after that, so this is its turn
            part = Held(now, value, generation=generation)
    elif generation != part.generation and not any(is_same(now, own) for own in part.own):
        part = Held(now, value, generation=generation)
    if is_same(now, value):
        record[key] = replace(part.seen, generation=generation)
        return
    record[key] = part
    if any(is_same(now, own) for own in part.own):
        steps.append(Step(key, value, part, part.seen))
    else:
        drift[key] = now
