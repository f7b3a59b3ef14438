"""Shards that schedule by other values than their OSD shows (docs/safe-writes.md, "Every shard reads again")."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ceph_tuner.doctor.facts import Facts, OsdFacts, ServedClass, grouped
from ceph_tuner.doctor.finding import MISLEADING, Finding, named, some

CURE = "stale-shards"

_CLASSES = {0: "background_recovery", 1: "background_best_effort", 3: "client"}
"""`op_scheduler_class` of OpSchedulerItem.h; immediate (2) is not scheduled."""
_NUMBER = r"(-?[0-9.]{1,40})"
_RECORD = re.compile(
    rf"client:\{{ class_id: (\d)([^}}]{{0,200}})\}} prev_tag:\{{[^}}]{{0,60}}? r:{_NUMBER} p:{_NUMBER} l:{_NUMBER}"
)


class Tags(NamedTuple):
    """Of the last request of one client in one shard: what each clock of dmClock stands at."""

    reservation: float
    weight: float
    limit: float


Dump = Dict[Tuple[int, str, str], Tags]
"""(shard, class, client) -> tags."""


def read_tags(answer: Mapping[str, Any]) -> Dump:
    """Read `ceph tell osd.N dump_op_pq_state`."""
    dump: Dump = {}
    for name, shard in answer.items():
        text = str(shard.get("mClockClients", {}).get("clients", "")) if isinstance(shard, Mapping) else ""
        number = name.rpartition(":")[2]
        for record in _RECORD.finditer(text):
            service_class = _CLASSES.get(int(record[1]))
            if service_class is not None and number.isdigit():
                dump[int(number), service_class, record[2]] = Tags(*map(float, record.group(3, 4, 5)))
    return dump


def served(before: Dump, after: Dump) -> Tuple[ServedClass, ...]:
    """What was served between two dumps, and by which clocks: a class without a reservation has none that moves."""
    return tuple(
        ServedClass(shard, name, now.reservation != then.reservation, now.limit != then.limit)
        for (shard, name, client), now in sorted(after.items())
        if (then := before.get((shard, name, client))) is not None and now.weight != then.weight
    )


def stale(facts: Facts) -> List[Finding]:
    """Shards that serve a class without the reservation or limit that the OSD shows for it, or with one more."""
    lines = [(words, osd.place.osd) for osd in facts.looked_at for words in _differing(osd)]
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
            share=len(osds) / len(facts.looked_at),
            commands=(f"ceph-tuner doctor --cluster NAME --cure {CURE} --yes",),
        )
    ]


def _differing(osd: OsdFacts) -> List[str]:
    texts = []
    for item in osd.served:
        prefix = f"osd_mclock_scheduler_{item.service_class}"
        for part, there in (("res", item.by_reservation), ("lim", item.by_limit)):
            shown = osd.number(f"{prefix}_{part}")
            word = "reservation" if part == "res" else "limit"
            if (shown > 0) != there:
                how = f"without the {word} of {shown:g}" if shown > 0 else f"with a {word}, where the OSD shows none"
                texts.append(f"shard {item.shard} serves {item.service_class.replace('_', ' ')} {how}")
    return list(dict.fromkeys(texts))
