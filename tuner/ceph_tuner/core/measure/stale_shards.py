"""Shards that schedule by other values than their OSD shows (docs/safe-writes.md, "Every shard reads again")."""

from __future__ import annotations

import math
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from ceph_tuner.core.measure.queue_dump import ServedClass
from ceph_tuner.core.wording import named

CURE = "stale-shards"
"""What `ceph-tuner doctor --cure` calls it."""


class ShardLook(NamedTuple):
    """What one OSD's shards served between two looks, and its options before the first and after the last."""

    served: Tuple[ServedClass, ...]
    before: Mapping[str, str]
    after: Optional[Mapping[str, str]] = None
    """None where they were not read again."""


def seems_stale(look: ShardLook) -> bool:
    """Whether a shard served a class by other values than the options that were read first."""
    return bool(_differing_classes(look))


def read_again(
    looks: Mapping[int, ShardLook],
    dumped: Mapping[int, float],
    options: Callable[[List[int]], Mapping[int, Tuple[float, Mapping[str, str]]]],
) -> Dict[int, ShardLook]:
    """The looks, with options that were read anew where shards seem stale; `dumped`: when the last look was.

    `options` gives OSDs' options, with when each was read. A file may have no later answer than the first: that tells
    nothing of what stood meanwhile.
    """
    again = options([osd for osd, look in looks.items() if seems_stale(look)])
    return {
        osd: look._replace(after=again[osd][1]) if osd in again and again[osd][0] >= dumped[osd] else look
        for osd, look in looks.items()
    }


def unsettled(looks: Mapping[int, ShardLook], on_trial: bool) -> Dict[int, FrozenSet[str]]:
    """OSD -> classes of which nobody can tell whether a shard is stale or the settings were others for a while.

    Settings on trial take turns. Else options that are the same after the last look stood meanwhile. Where they were
    read once alone, a class's stood if some shard of the same options served it by them.
    """
    doubts = {}
    for osd, look in looks.items():
        classes = _differing_classes(look)
        if not on_trial and look.after is None:
            classes -= {name for name in classes if _is_attested(name, look.before, looks.values())}
        elif not on_trial:
            classes = {name for name in classes if _values(name, look.before) != _values(name, look.after or {})}
        if classes:
            doubts[osd] = frozenset(classes)
    return doubts


def unsettled_note(doubts: Mapping[int, FrozenSet[str]], looks: Mapping[int, ShardLook], on_trial: bool) -> str:
    """Why that was not judged."""
    if on_trial:
        why = "settings are on trial, and take turns"
    elif all(looks[osd].after is None for osd in doubts):
        why = "their options were read once alone; a file by the present `gather` has them twice"
    else:
        why = "their options changed meanwhile"
    return f"shards of {named(doubts)} go by other values than were read: not judged ({why})"


def settled(served: Iterable[ServedClass], doubts: FrozenSet[str]) -> Tuple[ServedClass, ...]:
    """What is judged of it."""
    return tuple(item for item in served if item.service_class not in doubts)


def _differing_classes(look: ShardLook) -> Set[str]:
    return {item.service_class for item in look.served if _differs(item, look.before)}


def _differs(item: ServedClass, options: Mapping[str, str]) -> bool:
    return bool(differing((item,), lambda name: _number(options.get(name, "0"))))


def _is_attested(service_class: str, options: Mapping[str, str], looks: Iterable[ShardLook]) -> bool:
    """Whether a shard of an OSD with these options served the class by them."""
    return any(
        item.service_class == service_class
        and _values(service_class, look.before) == _values(service_class, options)
        and not _differs(item, look.before)
        for look in looks
        for item in look.served
    )


def _values(service_class: str, options: Mapping[str, str]) -> Tuple[float, float]:
    reservation, limit = (
        _number(options.get(f"osd_mclock_scheduler_{service_class}_{part}", "0")) for part in ("res", "lim")
    )
    return reservation, limit


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0


def differing(served: Iterable[ServedClass], number: Callable[[str], float]) -> List[str]:
    """In words, where shards served a class by other clocks than the OSD's options say; `number` gives an option."""
    texts = []
    for item in served:
        prefix = f"osd_mclock_scheduler_{item.service_class}"
        for part, there in (("res", item.by_reservation), ("lim", item.by_limit)):
            option_value = number(f"{prefix}_{part}")
            word = "reservation" if part == "res" else "limit"
            if (option_value > 0) != there:
                how = (
                    f"without the {word} of {option_value:g}"
                    if option_value > 0
                    else f"with a {word}, where the OSD shows none"
                )
                texts.append(f"shard {item.shard} serves {item.service_class.replace('_', ' ')} {how}")
    return list(dict.fromkeys(texts))
