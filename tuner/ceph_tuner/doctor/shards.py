"""Shards that schedule by other values than their OSD shows (docs/safe-writes.md, "Every shard reads again")."""

from __future__ import annotations

from typing import Callable, Iterable, List

from ceph_tuner.core.measure.queue_dump import ServedClass
from ceph_tuner.doctor.facts import Facts, grouped
from ceph_tuner.doctor.finding import MISLEADING, Finding, named, some

CURE = "stale-shards"


def stale(facts: Facts) -> List[Finding]:
    """Shards that serve a class without the reservation or limit that the OSD shows for it, or with one more."""
    lines = [(words, osd.place.osd) for osd in facts.with_options for words in differing(osd.served, osd.number)]
    if not lines:
        return []
    osds = {osd for _, osd in lines}
    return [
        Finding(
            CURE,
            MISLEADING,
            "Shards of OSDs schedule by other values than the OSD shows",
            some(f"{named(each)}: {words}" for words, each in grouped(lines).items()),
            "part of the PGs of these OSDs is served without what the profile promises, until the OSD restarts",
            "Make every shard read its values again; no setting changes. Only what was served just now was seen.",
            share=len(osds) / len(facts.with_options),
            commands=(f"ceph-tuner doctor --cluster NAME --cure {CURE} --yes",),
        )
    ]


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
