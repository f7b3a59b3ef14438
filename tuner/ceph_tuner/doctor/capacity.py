"""Is what mClock takes for an OSD's capacity what the OSD can do: every reservation and limit is a share of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Optional

from ceph_tuner.core.autopilot.capacity import BELIEVED, Stored
from ceph_tuner.core.autopilot.capacity import CapacityDoubt as Doubt
from ceph_tuner.core.autopilot.capacity import findings as doubts
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import ENTRIES, Facts, OsdFacts, decider
from ceph_tuner.doctor.finding import MISLEADING, POINTLESS, Finding

VOID_FACTOR = 4.0
"""Beyond it no limit above a quarter, and no difference between the built-in profiles, is left of the settings."""

_TITLES = {
    "unmeasured": "The capacity was never measured: it is Ceph's default",
    "bench": "The OSD's own bench gave another capacity than mClock reckons with",
    "peers": "The capacity is far from that of OSDs of the same class",
    "served": "The OSD serves more than its capacity says",
}


def capacity(facts: Facts) -> List[Finding]:
    """Capacities that are not believable, rule by rule."""
    capacities: Dict[int, Stored] = {}
    doubtful: Dict[int, Stored] = {}
    for osd in facts.looked_at:
        iops = osd.number(f"osd_mclock_max_capacity_iops_{osd.kind}")
        if osd.queue == "mclock_scheduler" and iops > 0:
            number, place = osd.place.osd, osd.place
            source = _source(facts, osd)
            capacities[number] = Stored(number, osd.kind, iops, source, place.device_class)
            if number in facts.benches:
                with_bench = replace(capacities[number], bench=facts.benches[number])
                (capacities if _credible(with_bench) else doubtful)[number] = with_bench
    all_doubts = doubts(capacities.values())
    vain = [
        doubt
        for doubt in doubts(doubtful.values())
        if doubt.rule == "bench" and not _is_credible_measurement(capacities[doubt.osd])
    ]
    # what its own bench said tells more than that nobody believed it
    osds_with_bench = {doubt.osd for doubt in (*all_doubts, *vain) if doubt.rule == "bench"}
    all_doubts = [doubt for doubt in all_doubts if doubt.rule != "unmeasured" or doubt.osd not in osds_with_bench]
    if ENTRIES in facts.unseen:
        # somebody may have measured what no entry shows
        all_doubts = [doubt for doubt in all_doubts if doubt.rule != "unmeasured"]
    rules = [
        _finding(rule, [doubt for doubt in all_doubts if doubt.rule == rule], capacities)
        for rule in _TITLES
        if any(doubt.rule == rule for doubt in all_doubts)
    ]
    return rules + ([_bench_finding(vain, capacities)] if vain else [])


def bandwidth(facts: Facts) -> List[Finding]:
    """Sequential bandwidths at Ceph's default: nothing ever measures them."""
    if facts.release.units != "fraction":
        return []
    osds_by_option: Dict[str, List[int]] = {}
    for osd in facts.looked_at:
        name = f"osd_mclock_max_sequential_bandwidth_{osd.kind}"
        if osd.queue == "mclock_scheduler" and osd.number(name) == KNOBS[name].default(facts.release, facts.version):
            osds_by_option.setdefault(name, []).append(osd.place.osd)
    if not osds_by_option:
        return []
    evidence = [
        f"{named(osds)}: {name} is {facts.default(name) / 2**20:g} MiB/s, Ceph's default"
        for name, osds in osds_by_option.items()
    ]
    return [
        Finding(
            "bandwidth-unmeasured",
            MISLEADING,
            "The sequential bandwidth is Ceph's assumption; Ceph never measures it",
            some(evidence),
            "bandwidth / IOPS is what a small operation costs, so large ones (recovery, scrub) are charged wrongly by "
            "as much as the assumption is wrong",
            "Measure large writes, and store the bytes per second.",
            commands=tuple(
                command
                for name, osds in osds_by_option.items()
                for command in (
                    f"ceph tell osd.{osds[0]} bench 1073741824 4194304",
                    f"ceph config set osd/class:CLASS {name} BYTES",
                )
            ),
        )
    ]


def _source(facts: Facts, osd: OsdFacts) -> str:
    return decider(facts, osd, f"osd_mclock_max_capacity_iops_{osd.kind}")


def _finding(rule: str, own: List[Doubt], capacities: Dict[int, Stored]) -> Finding:
    osds = [doubt.osd for doubt in own]
    factors = [factor for factor in (_factor(capacities[doubt.osd], doubt.better) for doubt in own) if factor]
    share = max((1 - 1 / factor for factor in factors), default=None)
    void = rule == "bench" and bool(factors) and max(factors) >= VOID_FACTOR
    if factors:
        most = max(factors)
        cost = (
            f"settings mean up to {most:.3g} times what they say: no limit above {1 / most:.2g} holds anything back, "
            "and reservations promise what is not there"
            if any(capacities[doubt.osd].iops > (doubt.better or 0) for doubt in own)
            else f"limits hold the OSD to as little as {1 / most:.0%} of what it can do"
        )
    else:
        cost = "reservations and limits are off by as much as the capacity is, in either direction"
    first = osds[0]
    option = f"osd_mclock_max_capacity_iops_{capacities[first].kind}"
    better = next((doubt.better for doubt in own if doubt.osd == first), None)
    return Finding(
        f"capacity-{rule}",
        POINTLESS if void else MISLEADING,
        _TITLES[rule],
        some(doubt.words for doubt in own),
        f"{named(osds)}: {cost}" if factors else cost,
        "Measure it on an idle OSD (the plugin: `ceph tuner capacity measure OSD`), and store what it gives.",
        share=share,
        commands=(
            f"ceph tell osd.{first} cache drop",
            f"ceph tell osd.{first} bench 12288000 4096 4194304 100",
            f"ceph config set osd.{first} {option} {f'{better:.0f}' if better else 'IOPS'}",
        ),
    )


def _bench_finding(own: List[Doubt], capacities: Dict[int, Stored]) -> Finding:
    """Benches that say nothing of the device, such as one that a hard disk's write cache answered."""
    options = {capacities[doubt.osd].kind: doubt.osd for doubt in reversed(own)}
    return Finding(
        "capacity-bench-refused",
        MISLEADING,
        "The OSD's own bench gave what Ceph does not believe, and the capacity is no measured one",
        some(doubt.words for doubt in own),
        f"{named(doubt.osd for doubt in own)}: reservations and limits are off by as much as the capacity is, "
        "in either direction",
        "Measure 4 KiB random writes with fio, on a device of the same model that holds no data, and store what it "
        "gives: what the bench gave would make limits void.",
        commands=tuple(
            f"ceph config set osd.{osd} osd_mclock_max_capacity_iops_{kind} IOPS" for kind, osd in options.items()
        ),
    )


def _credible(entry: Stored) -> bool:
    """Whether what its bench gave may be the device's.

    Of benches at boot the log has only those that Ceph refused. An SSD below the least that Ceph believes may be as
    slow as that, and is not what Ceph's default says.
    """
    low, high = BELIEVED[entry.kind]
    bench = entry.bench or 0.0
    return low <= bench <= high or (entry.kind == "ssd" and bench < low and not entry.measured)


def _is_credible_measurement(entry: Stored) -> bool:
    """Whether somebody measured what is stored, and it may be true."""
    low, high = BELIEVED[entry.kind]
    return entry.measured and low <= entry.iops <= high


def _factor(entry: Stored, better: Optional[float]) -> Optional[float]:
    """How far the stored capacity is from what was measured, always at least 1."""
    return max(entry.iops / better, better / entry.iops) if better else None
