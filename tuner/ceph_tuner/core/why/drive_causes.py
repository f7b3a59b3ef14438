"""Work that is held behind the queue: by BlueStore's throttle, by one slow drive, by drives that clients saturate."""

from __future__ import annotations

from statistics import median
from typing import Dict, List, Optional, Sequence, Set, Tuple

from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.client_wait import all_in_flight
from ceph_tuner.core.why.facts import CLIENT, WORKS, OsdNow, WhyFacts
from ceph_tuner.core.why.work import part_on, running
from ceph_tuner.core.wording import named

LEAST_TRANSACTIONS = 30
"""With fewer between the looks a mean says little."""
SATURATED_TIMES = 2.0
"""A drive's time for a write, in times of 1 / capacity, from which requests wait inside it."""
SATURATED_USE = 0.75
"""Share of what the drive can do by mClock's figures, writes and bytes together, from which it has no more to give."""
SEVERAL = 2.0
"""Writes under way on a drive, in the mean, from which a commit is of more than one."""
SLOW_TIMES = 3.0
"""Beside the median of its class."""
BUSY_TIMES = 2.0
"""Writes or bytes beside the median of its class, from which a drive's time tells of its load, not of the drive."""
LEAST_PEERS = 3
LEAST_IN_FLIGHT = 4.0
"""Clients' operations on all OSDs, in the mean: with fewer nobody waits in line."""
THROTTLE_DEFAULT = 64 << 20
"""`bluestore_throttle_bytes` of every release. An I/O counts 670 000 of them on a hard disk, 4000 on flash."""
THROTTLED = 0.4
"""Share of a transaction's time before the throttle lets it pass."""


def drive_s(osd: OsdNow) -> Optional[float]:
    """Mean time of a write on the drive: its data, and the commit of RocksDB. None: too few."""
    if osd.rises.get("bluestore.txc_commit_lat.count", 0.0) < LEAST_TRANSACTIONS:
        return None
    data, commit = osd.mean_s("bluestore.state_aio_wait_lat"), osd.mean_s("bluestore.kv_commit_lat")
    return max(data or 0.0, commit or 0.0)


def throttle(facts: WhyFacts) -> List[Cause]:
    """Transactions wait for BlueStore's throttle, while the drive has room."""
    shares = {
        osd.id: part for osd in facts.osds if not is_saturated(osd) and (part := _throttle_share(osd)) >= THROTTLED
    }
    total = all_in_flight(facts.osds)
    if not shares or total < 1:
        return []
    worst = max(shares, key=lambda osd: shares[osd])
    osd = facts.osd(worst)
    own = [pg for pg in facts.pgs if pg.osds & set(shares)]
    held_share = max(shares.values()) * part_on(facts, shares)
    waits = osd.rate("bluestore.txc_throttle_lat.sum") if osd else 0.0
    limit_bytes = osd.number("bluestore_throttle_bytes") if osd else 0.0
    drive = (drive_s(osd) or 0.0) if osd else 0.0
    return [
        Cause(
            "throttle",
            CLIENT,
            facts.pool_names(own),
            f"BlueStore's throttle holds writes on {named(shares)}: bluestore_throttle_bytes is {limit_bytes:g}",
            held_share,
            held_share * total,
            "operations",
            (
                Evidence(
                    f"osd.{worst}: {shares[worst]:.0%} of a transaction's time passes before the throttle, {waits:.2g} "
                    "wait there in the mean",
                    f"ceph tell osd.{worst} perf dump bluestore",
                ),
                Evidence(f"osd.{worst}: a write takes {1000 * drive:.2g} ms on the drive, which has room",
                         f"ceph tell osd.{worst} perf dump bluestore"),
            ),
            "Raise the throttle until the drive is busy; `ceph-tuner doctor` proposes a value.",
            (
                *(("ceph config rm osd bluestore_throttle_bytes",) if 0 < limit_bytes < THROTTLE_DEFAULT else ()),
                "ceph-tuner doctor --cluster NAME",
            ),
            tuple(sorted(shares)),
        )
    ]  # fmt: skip


def slow_drive(facts: WhyFacts) -> List[Cause]:
    """A drive that takes much longer than its peers for the same work."""
    groups: Dict[Tuple[str, bool], Dict[int, float]] = {}
    busy_osds = _at_background_work(facts)
    for osd in facts.osds:
        time = drive_s(osd)
        if time is not None:
            groups.setdefault((osd.place.device_class, osd.id in busy_osds), {})[osd.id] = time
    causes = []
    total = all_in_flight(facts.osds)
    for times in groups.values():
        usual, peers = median(times.values()), [osd for osd in facts.osds if osd.id in times]
        busy = _busy(peers)
        slow = {
            osd: time for osd, time in times.items() if usual > 0 and time >= SLOW_TIMES * usual and osd not in busy
        }
        if len(times) < LEAST_PEERS or not slow or total <= 0:
            continue
        worst = max(slow, key=lambda osd: slow[osd])
        own = [pg for pg in facts.pgs if pg.osds & set(slow)]
        held_share = _share_of_time(facts, part_on(facts, slow), slow[worst] - usual)
        words = (
            f"a write takes {1000 * slow[worst]:.3g} ms on its drive, {1000 * usual:.3g} ms in the median of its class"
        )
        causes.append(
            Cause(
                "slow-drive",
                CLIENT,
                facts.pool_names(own),
                f"The drive of {named(slow)} is slow: writes of its PGs wait for it",
                held_share,
                held_share * total,
                "operations",
                (
                    Evidence(f"osd.{worst}: {words}", f"ceph tell osd.{worst} perf dump bluestore"),
                    Evidence(f"{len(own)} of {len(facts.pgs)} PGs lie on it", f"ceph pg ls-by-osd osd.{worst}"),
                ),
                "Look at the drive: SMART, its controller, its place. Let the OSD out where it does not recover.",
                ("ceph osd perf", f"ceph osd out {worst}"),
                tuple(sorted(slow)),
            )
        )
    return causes


def _at_background_work(facts: WhyFacts) -> Set[int]:
    """OSDs that recover, scrub, trim or delete: their drives take longer for a write than those that do not."""
    pgs = [pg for work in WORKS if work != CLIENT for pg in running(facts, work)]
    return {osd for pg in pgs for osd in pg.osds} | {osd.id for osd in facts.osds if osd.removing}


def _busy(peers: Sequence[OsdNow]) -> Set[int]:
    """Those that write much more than their peers."""
    busy: Set[int] = set()
    for rate in (_drive_rate, _written_s):
        usual = median(map(rate, peers))
        busy |= {osd.id for osd in peers if rate(osd) > BUSY_TIMES * usual}
    return busy


def _share_of_time(facts: WhyFacts, part: float, longer_s: float) -> float:
    """Share of the time of clients' operations, where of their writes this part takes so much longer."""
    count, writes = (
        sum(osd.rate(f"osd.{name}") for osd in facts.osds for name in names) for names in (("op",), ("op_w", "op_rw"))
    )
    if count <= 0:
        return part
    mean_s = all_in_flight(facts.osds) / count
    return min(1.0, part * writes / count * longer_s / mean_s)


def saturated_drives(facts: WhyFacts) -> List[Cause]:
    """Drives with no more to give: what is offered is more than they can do."""
    slow = {osd for cause in slow_drive(facts) for osd in cause.osds}
    osds = [osd for osd in facts.osds if is_saturated(osd) and osd.id not in slow]
    total = all_in_flight(facts.osds)
    if not osds or total < LEAST_IN_FLIGHT:
        return []
    own = [pg for pg in facts.pgs if pg.osds & {osd.id for osd in osds}]
    held_share = part_on(facts, [osd.id for osd in osds])
    worst = max(osds, key=lambda osd: drive_s(osd) or 0.0)
    own_rate = worst.rate("osd.op_w") + worst.rate("osd.subop_w")
    rates = f"{own_rate:.3g} writes/s of clients, {worst.rate('osd.recovery_ops'):.3g} objects/s of recovery"
    time = drive_s(worst) or 0.0
    return [
        Cause(
            "drive-saturated",
            CLIENT,
            facts.pool_names(own),
            f"The drives are at their end: {named(osd.id for osd in osds)}",
            held_share,
            held_share * total,
            "operations",
            (
                Evidence(
                    f"osd.{worst.id}: {_drive_rate(worst):.3g} writes/s, {_written_s(worst) / 1e6:.3g} MB/s: "
                    f"{drive_use(worst):.0%} of what it can do; a write takes {1000 * time:.3g} ms there",
                    f"ceph tell osd.{worst.id} perf dump bluestore",
                ),
                Evidence(f"osd.{worst.id}: {rates}", f"ceph tell osd.{worst.id} perf dump osd"),
                Evidence(
                    f"{total:.3g} operations of clients are under way in the mean",
                    f"ceph tell osd.{worst.id} dump_ops_in_flight",
                ),
            ),
            "mClock only divides what the drives give. Offer less, spread it, or add drives; `recommend` says what "
            "settings give whom.",
            ("ceph-tuner watch --cluster NAME",),
            tuple(osd.id for osd in osds),
        )
    ]  # fmt: skip


def is_saturated(osd: OsdNow) -> bool:
    """Whether requests wait inside the drive, and it does about what it can."""
    time = drive_s(osd)
    if time is None or osd.capacity <= 0:
        return False
    # what passes a throttle of Ceph's own size is more than any drive has under way
    full = _throttle_share(osd) >= THROTTLED and osd.number("bluestore_throttle_bytes") >= THROTTLE_DEFAULT
    return time * osd.capacity >= SATURATED_TIMES and (full or drive_use(osd) >= SATURATED_USE)


def drive_use(osd: OsdNow) -> float:
    """Writes and commits by the capacity, and written bytes by the bandwidth: both take the drive's time.

    One write after the other, as a throttle may let them pass, has a commit of its own, which then is no work that
    the drive must have: Ceph's bench, which the capacity is of, has many under way, of which several are committed
    at once.
    """
    bandwidth = osd.number(f"osd_mclock_max_sequential_bandwidth_{osd.kind}")
    part = _written_s(osd) / bandwidth if bandwidth > 0 else 0.0
    several = _writes(osd) * (drive_s(osd) or 0.0) >= SEVERAL
    rate = _drive_rate(osd) if several else _writes(osd)
    return part + (rate / osd.capacity if osd.capacity > 0 else 0.0)


def _written_s(osd: OsdNow) -> float:
    """Bytes that it writes a second: by BlueStore, since a primary on erasure code is sent k times what it writes."""
    own = ("bluestore.write_big_bytes", "bluestore.write_small_bytes")
    if all(name in osd.rises for name in own):
        return sum(map(osd.rate, own))
    names = ("op_w_in_bytes", "op_rw_in_bytes", "subop_in_bytes", "subop_push_in_bytes")
    return sum(osd.rate(f"osd.{name}") for name in names)


def _drive_rate(osd: OsdNow) -> float:
    return _writes(osd) + osd.rate("bluestore.kv_commit_lat.count")


def _writes(osd: OsdNow) -> float:
    return osd.rate("bluestore.state_aio_wait_lat.count")


def _throttle_share(osd: OsdNow) -> float:
    """Share of transactions' time before the throttle; 0 of too few, or where nothing waits."""
    if osd.rises.get("bluestore.txc_commit_lat.count", 0.0) < LEAST_TRANSACTIONS:
        return 0.0
    whole = osd.rises.get("bluestore.txc_commit_lat.sum", 0.0)
    own = osd.rises.get("bluestore.txc_throttle_lat.sum", 0.0)
    if whole <= 0 or osd.rate("bluestore.txc_throttle_lat.sum") < 0.5:
        return 0.0
    return min(1.0, own / whole)
