"""Does mClock decide at all: another queue, or a BlueStore throttle behind which its order is lost."""

from __future__ import annotations

import math
from typing import Dict, List

from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts, OsdFacts, grouped
from ceph_tuner.doctor.finding import MISLEADING, POINTLESS, RESTARTING, Finding, restarts

HIDDEN_S, ALL_HIDDEN_S = 0.05, 1.0
"""Time that small writes may wait in BlueStore, where no class goes before another: worth a word; nothing is left."""

GOOD_THROTTLE = 262_144
"""Bytes at the least; gave mClock the most effect on an NVMe in Ceph's documentation."""

_SMALL = 4096.0
_THROTTLE = "bluestore_throttle_bytes"


def other_queue(facts: Facts) -> List[Finding]:
    """OSDs that run another queue than mClock, or will after their next restart."""
    osds_seen = facts.looked_at
    # where other OSDs count items of mClock queues, one that does not was started under another queue
    has_counts = any(osd.mclock_queues for osd in osds_seen)
    now = [
        (
            f"osd_op_queue is {osd.queue}"
            if osd.queue != "mclock_scheduler"
            else "no mClock queue runs: osd_op_queue was another at its start",
            osd.place.osd,
        )
        for osd in osds_seen
        if osd.queue != "mclock_scheduler" or (has_counts and not osd.mclock_queues)
    ]
    findings = []
    if now:
        osds = [osd for _, osd in now]
        findings.append(
            Finding(
                "other-queue",
                POINTLESS,
                "OSDs do not run mClock: profiles, reservations and limits do nothing there",
                some(f"{named(group)}: {words}" for words, group in grouped(now).items()),
                f"{len(osds)} of {len(osds_seen)} OSDs ignore every setting",
                f"Remove the option, then restart these OSDs one by one: {RESTARTING}.",
                share=len(osds) / len(osds_seen),
                commands=(*_removals(facts), *restarts(osds)),
            )
        )
    at_restart = [
        (osd.options["osd_op_queue"], osd.place.osd)
        for osd in osds_seen
        if osd.mclock_queues and osd.options.get("osd_op_queue", "mclock_scheduler") != "mclock_scheduler"
    ]
    if at_restart:
        osds = [osd for _, osd in at_restart]
        findings.append(
            Finding(
                "other-queue-at-restart",
                MISLEADING,
                "OSDs run mClock now, and will run another queue after their next restart",
                some(f"{named(group)}: osd_op_queue is {queue}" for queue, group in grouped(at_restart).items()),
                f"{len(osds)} of {len(osds_seen)} OSDs drop every setting when they restart",
                "Remove the option before an OSD restarts.",
                share=len(osds) / len(osds_seen),
                commands=_removals(facts),
            )
        )
    return findings


def throttle(facts: Facts) -> List[Finding]:
    """OSDs whose BlueStore takes in so much that nothing is left for mClock to order."""
    deep = [
        (osd, hidden_s(osd))
        for osd in facts.looked_at
        if osd.queue == "mclock_scheduler" and osd.number(_THROTTLE) > good_throttle(osd)
    ]
    if not deep:
        return []
    worst, seconds = max(deep, key=lambda pair: pair[1])
    lines = [
        (f"{_THROTTLE} {osd.number(_THROTTLE):.0f}, capacity {_iops(osd):g} IOPS: {wait:.2g} s", osd.place.osd)
        for osd, wait in deep
    ]
    starts = _starts(facts, [osd for osd, _ in deep])
    first = " or ".join(f"{nbytes}" for nbytes in sorted(set(starts.values())))
    return [
        Finding(
            "throttle",
            POINTLESS if seconds >= ALL_HIDDEN_S else MISLEADING,
            "BlueStore takes in more writes than mClock should let it: what waits there has no class any more",
            some(f"{named(osds)}: {words}" for words, osds in grouped(lines).items()),
            f"up to {_writes(worst):.0f} small writes wait {seconds:.2g} s inside BlueStore, whatever their class; "
            "with fewer in flight mClock orders nothing",
            f"Start at {first} bytes, and double it for as long as the clients' throughput rises.",
            commands=tuple(
                Step(who, name, None, str(nbytes)).command
                for who, nbytes in starts.items()
                for name in (_THROTTLE, "bluestore_throttle_deferred_bytes")
            ),
        )
    ]


def good_throttle(osd: OsdFacts) -> int:
    """Bytes of a throttle that leaves the order to mClock: small writes of HIDDEN_S, and GOOD_THROTTLE at the least.

    A hard disk's transaction alone counts 670 000 bytes: a throttle below that admits one at a time.
    """
    return max(GOOD_THROTTLE, math.ceil(HIDDEN_S * _iops(osd)) * math.ceil(_write_bytes(osd)))


def _starts(facts: Facts, osds: List[OsdFacts]) -> Dict[str, int]:
    """Section -> throttle to start with: that of the slowest OSD; of two kinds under one class, the larger."""
    alone = len({place.device_class for place in facts.places}) == 1
    kinds: Dict[str, Dict[str, int]] = {}
    for osd in osds:
        device_class = osd.place.device_class
        section = f"osd/class:{device_class}" if device_class else f"osd.{osd.place.osd}"
        slowest = kinds.setdefault("osd" if alone else section, {})
        slowest[osd.kind] = min(good_throttle(osd), slowest.get(osd.kind, good_throttle(osd)))
    return {who: max(slowest.values()) for who, slowest in kinds.items()}


def hidden_s(osd: OsdFacts) -> float:
    """Seconds that the small writes which BlueStore's throttle admits take the device."""
    return _writes(osd) / max(1.0, _iops(osd))


def _writes(osd: OsdFacts) -> float:
    return osd.number(_THROTTLE) / _write_bytes(osd)


def _write_bytes(osd: OsdFacts) -> float:
    """A transaction counts its bytes and a price per device I/O (`BlueStore::_txc_calc_cost`); one I/O at least."""
    price = osd.number("bluestore_throttle_cost_per_io") or osd.number(
        f"bluestore_throttle_cost_per_io_{osd.kind}", 670_000 if osd.kind == "hdd" else 4000
    )
    return _SMALL + price


def _iops(osd: OsdFacts) -> float:
    return osd.number(f"osd_mclock_max_capacity_iops_{osd.kind}", 1.0)


def _removals(facts: Facts) -> tuple[str, ...]:
    return tuple(
        Step(entry.who, entry.name, entry.value, None).command
        for entry in facts.entries
        if entry.name == "osd_op_queue"
    )
