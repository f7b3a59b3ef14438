"""How what a resource states comes to the cluster, stays there, and is taken back: by values and records. No I/O.

A value at the cluster has a key, such as the SLO, or the mode of a device class. Before one is written, the resource
notes what was there (`Hold`). Who comes later, after a restart or another leader, sees from that note and the cluster
alone what is still to do. A value that somebody else has set is left alone: it is drift, until the resource's `spec` is
changed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.controller.resource import record_part
from ceph_tuner.core.errors import Malformed
from ceph_tuner.core.knobs.settings import same

_MOST_EARLIER = 8
"""Changes of a resource in a row of whose writes nothing is known."""

Value = Any
"""A plain document; None for nothing there."""


@dataclass(frozen=True)
class Hold:
    """What a resource has at the cluster under one key."""

    before: Value
    """What was there when the resource came."""
    value: Value
    """What it states."""
    earlier: Tuple[Value, ...] = ()
    """What it stated before that and may have at the cluster, as long as `is_confirmed` is false."""
    is_confirmed: bool = False
    """Whether the cluster was seen to have `value`."""
    generation: int = 0
    """Of the resource that stated `value`."""

    @property
    def own(self) -> Tuple[Value, ...]:
        """Values that stand at the cluster by us, and nobody else."""
        return (self.value,) if self.is_confirmed else (self.before, *self.earlier, self.value)

    def with_value(self, value: Value, generation: int) -> Hold:
        """The same with another value, of which nothing is written yet."""
        earlier = (self.value,) if self.is_confirmed else (*self.earlier, self.value)
        return replace(self, value=value, earlier=earlier[-_MOST_EARLIER:], is_confirmed=False, generation=generation)

    @property
    def after_write(self) -> Hold:
        """The same once the cluster has the value."""
        return replace(self, is_confirmed=True, earlier=())


def holds_from(record: Mapping[str, Any]) -> Dict[str, Hold]:
    """Read a resource's record. Raises Malformed for what is none."""
    try:
        return {str(key): _hold(**part) for key, part in record_part(record, "holds").items()}
    except Malformed:
        raise
    except (TypeError, ValueError) as fault:
        raise Malformed("the resource's record", str(fault)[:100], "what the controller wrote") from None


def _hold(earlier: Any = (), **rest: Any) -> Hold:
    if not isinstance(earlier, (list, tuple)):
        raise TypeError(f"earlier is {earlier!r:.60}")
    return Hold(earlier=tuple(earlier), **rest)


def record_of(holds: Mapping[str, Hold]) -> Dict[str, Any]:
    """Inverse of `holds_from`."""
    return {"holds": {key: {**asdict(part), "earlier": list(part.earlier)} for key, part in sorted(holds.items())}}


def is_same(one: Value, other: Value) -> bool:
    """Whether two values are the same to the cluster: options may be written otherwise, as 30 and 30.0."""
    return bool(one == other) or (isinstance(one, str) and isinstance(other, str) and same(one, other))


@dataclass(frozen=True)
class LevelStep:
    """One write: the record says `hold` before it, and `after` once the cluster shows the value."""

    key: str
    value: Value
    hold: Hold
    after: Optional[Hold]
    """None where the key is taken back."""


@dataclass(frozen=True)
class LevelCourse:
    """What is to be done."""

    holds: Mapping[str, Hold]
    """The record before the first write."""
    steps: Tuple[LevelStep, ...]
    drift: Mapping[str, Value]
    """Key -> what somebody else has set there."""
    obsolete: Tuple[str, ...] = ()
    """Keys whose record goes, as there is nothing of ours."""

    @property
    def holds_after(self) -> Dict[str, Hold]:
        """The record when all is done."""
        after = {key: part for key, part in self.holds.items() if key not in self.obsolete}
        for step in self.steps:
            if step.after is None:
                after.pop(step.key, None)
            else:
                after[step.key] = step.after
        return after


def course(
    holds: Mapping[str, Hold], values: Mapping[str, Value], now: Mapping[str, Value], generation: int
) -> LevelCourse:
    """What brings the cluster from `now` to these `values`; none takes all back.

    `now` has every key of `holds` and of `values`.
    """
    record, steps, drift, obsolete = dict(holds), list[LevelStep](), dict[str, Value](), list[str]()
    # what is taken back goes first: another key may be refused as long as it is there
    for key in sorted(holds.keys() - values.keys()):
        part = holds[key]
        if any(is_same(now[key], own) for own in part.own) and not is_same(now[key], part.before):
            steps.append(LevelStep(key, part.before, part, None))
        else:
            obsolete.append(key)
    for key, value in values.items():
        _add_value(record, steps, drift, key, value, now[key], generation)
    return LevelCourse(record, tuple(steps), drift, tuple(obsolete))


def _add_value(
    record: Dict[str, Hold],
    steps: List[LevelStep],
    drift: Dict[str, Value],
    key: str,
    value: Value,
    now: Value,
    generation: int,
) -> None:
    part = record.get(key)
    if part is None:
        part = Hold(now, value, generation=generation)
    elif not is_same(part.value, value):
        part = part.with_value(value, generation)
        if not any(is_same(now, own) for own in part.own):
            # somebody set another one; the resource was changed after that, so this is its turn
            part = Hold(now, value, generation=generation)
    elif generation != part.generation and not any(is_same(now, own) for own in part.own):
        part = Hold(now, value, generation=generation)
    if is_same(now, value):
        record[key] = replace(part.after_write, generation=generation)
        return
    record[key] = part
    if any(is_same(now, own) for own in part.own):
        steps.append(LevelStep(key, value, part, part.after_write))
    else:
        drift[key] = now
