"""Is `osd_mclock_max_capacity_iops_*` believable: every reservation and limit is a fraction of it.

An OSD measures itself once, at its first boot, and keeps the result only within bounds (`BELIEVED`); otherwise Ceph's
default stays, whatever the device. Nothing checks it later.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Container, Dict, Iterable, List, Mapping, Optional, Sequence

from ceph_tuner.core.autopilot.permits import unsteady
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.wording import first_of

BELIEVED = {"ssd": (1_000.0, 80_000.0), "hdd": (50.0, 500.0)}
"""IOPS that 18.2.7 and 20.2.4 take from a bench at boot: osd_mclock_iops_capacity_low_threshold_* and …_threshold_*."""
DEFAULTS = {kind: float(KNOBS[f"osd_mclock_max_capacity_iops_{kind}"].history[-1].default or 0) for kind in BELIEVED}

SERVED_FACTOR = 1.1
"""Rates of windows scatter by 10%."""
PEERS_FACTOR = 2.0
LEAST_PEERS = 4
"""Of a class, measured: with fewer the median is one or two OSDs' word."""
BENCH_FACTOR = 1.25
"""A bench repeats to 1% on an idle OSD, and alike devices differ by some 10%; other work takes away the rest."""
IDLE_SHARE = 0.02
"""Of the least capacity that is believed of its kind: an OSD that serves less is idle."""

RULES = {
    "unmeasured": "reckons with Ceph's default capacity",
    "served": "served more than its capacity says",
    "peers": "is far from its peers",
    "bench": "was measured anew, and differs",
}

_OWN_SOURCES = ("file", "env", "cmdline", "override")


@dataclass(frozen=True)
class Stored:
    """What one OSD reckons with, and what is known of it otherwise. All rates are IOPS."""

    osd: int
    kind: str
    """`ssd` or `hdd`, as Ceph chooses the option; an NVMe is an ssd."""
    iops: float
    source: str
    """`default`, a section (`osd.3`, where its own bench writes, too; `osd/class:ssd`), or `file` and the like."""
    device_class: str = ""
    served: Optional[float] = None
    """The most client writes that it was seen to serve; reads may come from memory and say nothing."""
    bench: Optional[float] = None
    """A fresh `osd bench` in 4 KiB."""

    def __post_init__(self) -> None:
        if self.kind not in BELIEVED or not self.iops > 0:
            raise ValueError(f"kind (={self.kind!r}) must be ssd or hdd, iops (={self.iops}) above 0")

    @property
    def measured(self) -> bool:
        """Whether somebody ever measured it: no bench gives exactly the default."""
        return self.source != "default" and self.iops != DEFAULTS[self.kind]


@dataclass(frozen=True)
class CapacityDoubt:
    """Why a capacity is not believed."""

    osd: int
    rule: str
    words: str
    better: Optional[float] = None
    """IOPS to set instead, where it was measured."""


def findings(capacities: Iterable[Stored]) -> List[CapacityDoubt]:
    """Hold each capacity against its source, its work, its peers and its bench; OSD by OSD."""
    osds = sorted(capacities, key=lambda entry: entry.osd)
    medians = _medians(osds)
    return [finding for entry in osds for finding in _of_one(entry, medians.get(_group(entry)))]


def summary(doubts: Sequence[CapacityDoubt], most: int = 5) -> List[str]:
    """One line for each rule, with the first OSDs by name."""
    lines = []
    for rule, words in RULES.items():
        osds = [f"osd.{finding.osd}" for finding in doubts if finding.rule == rule]
        if osds:
            lines.append(f"{words}: {first_of(osds, most)}")
    return lines


def reason_not_to_bench(
    entry: Stored,
    on_request: bool,
    canary: Container[int],
    iops: Optional[float],
    work: Sequence[str],
    sight: Sight,
    on_trial: bool = False,
    benches: Sequence[int] = (),
) -> Optional[str]:
    """Say why an OSD must not be measured now; None where it may.

    `iops`: client operations per second that it serves; `work`: kinds of background work on its PGs; `benches`: OSDs
    whose bench is under way. A bench writes as fast as the device can, so it needs somebody who asked for it and an
    OSD that nobody waits for, or one of the canary, whose part it is to suffer first.
    """
    shaky = unsteady(sight)
    degraded = sight.values.get("recovery.objects_left", 0.0)
    if not on_request:
        return "nobody asked for a bench"
    if shaky:
        return f"the cluster is not steady: {shaky}"
    if degraded > 0:
        return f"{degraded:g} objects are degraded: their other copies come first"
    if on_trial:
        return "settings are on trial, and a bench would be taken for their effect"
    if benches:
        return f"osd.{benches[0]} is being measured: one at a time"
    if entry.osd in canary:
        return None
    if iops is None:
        return f"it is not known what osd.{entry.osd} serves, and it is not in the canary"
    idle = IDLE_SHARE * BELIEVED[entry.kind][0]
    if iops > idle:
        return f"osd.{entry.osd} serves {iops:.4g} operations/s (idle: up to {idle:g}), and is not in the canary"
    if work:
        return f"{' and '.join(work)} under way on osd.{entry.osd}, which is not in the canary"
    return None


def _of_one(entry: Stored, median: Optional[float]) -> List[CapacityDoubt]:
    doubts = []
    name, has = f"osd.{entry.osd}", f"{entry.iops:.6g} IOPS{_precedence(entry.source)}"
    low, high = BELIEVED[entry.kind]
    if not entry.measured:
        why = f"its bench at boot was skipped, or not within {low:g} to {high:g}"
        where = "" if entry.source == "default" else f", set at {entry.source}"
        words = f"{name} has Ceph's default for {entry.kind}, {has}{where}: {why}"
        doubts.append(CapacityDoubt(entry.osd, "unmeasured", words, entry.bench))
    if entry.served is not None and entry.served > entry.iops * SERVED_FACTOR:
        words = f"{name} has {has} and was seen to serve {entry.served:.6g} writes/s: it can do more than it says"
        doubts.append(CapacityDoubt(entry.osd, "served", words, entry.bench))
    if entry.measured and median is not None and not 1 / PEERS_FACTOR <= entry.iops / median <= PEERS_FACTOR:
        words = f"{name} has {has}, its peers of class {_group(entry)} a median of {median:.6g}"
        doubts.append(CapacityDoubt(entry.osd, "peers", words, entry.bench))
    if entry.bench is not None and not 1 / BENCH_FACTOR <= entry.bench / entry.iops <= BENCH_FACTOR:
        words = f"{name} has {has}, its bench gave {entry.bench:.6g}"
        if not low <= entry.bench <= high:
            words += f", which Ceph itself would not believe ({low:g} to {high:g}): measure with fio"
        doubts.append(CapacityDoubt(entry.osd, "bench", words, entry.bench))
    return doubts


def _medians(osds: Iterable[Stored]) -> Mapping[str, float]:
    groups: Dict[str, List[float]] = {}
    for entry in osds:
        if entry.measured:
            groups.setdefault(_group(entry), []).append(entry.iops)
    return {name: statistics.median(rates) for name, rates in groups.items() if len(rates) >= LEAST_PEERS}


def _group(entry: Stored) -> str:
    return entry.device_class or entry.kind


def _precedence(source: str) -> str:
    return f" ({source} of the OSD itself, which outranks the monitors)" if source in _OWN_SOURCES else ""
