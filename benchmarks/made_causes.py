"""Causes of slow work, made on a lab one by one, each with the name that `ceph-tuner why` is to give it first."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Sequence

from ceph_lab.cluster import Lab
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE

POOL, PGS = "why", 16
AWAY = 2
"""The OSD that misses writes, so that others recover it."""
KIB, MIB = 1 << 10, 1 << 20
LITTLE = 0.02
"""A limit as a share of the capacity."""
SETTLE_S = 5.0

_OVERWRITE = f"""
import rados
with rados.Rados(conffile="/lab/ceph.conf", name="client.admin") as cluster:
    with cluster.open_ioctx("{POOL}") as pool:
        waiting = []
        for number in range({{count}}):
            waiting.append(pool.aio_write_full(f"trimmed-{{{{number}}}}", bytes(4096)))
            if len(waiting) >= 64:
                waiting.pop(0).wait_for_complete()
        for each in waiting:
            each.wait_for_complete()
"""
"""Writes the same objects each time: those of `rados bench` have the process in their names."""
CLONES = 40_000
_PARTS = """
import random, time
import rados
LENGTH, PART, OBJECTS, AT_ONCE = 1 << 20, 512, 256, 64
with rados.Rados(conffile="/lab/ceph.conf", name="client.admin") as cluster:
    with cluster.open_ioctx("{pool}") as pool:
        if not {seconds}:
            for number in range(OBJECTS):
                pool.write_full(f"parts-{{number}}", bytes(LENGTH))
        waiting, end = [], time.monotonic() + {seconds}
        while time.monotonic() < end:
            name, place = f"parts-{{random.randrange(OBJECTS)}}", random.randrange(LENGTH // 4096) * 4096 + PART
            waiting.append(pool.aio_write(name, bytes(PART), place))
            if len(waiting) >= AT_ONCE:
                waiting.pop(0).wait_for_complete()
"""
"""Writes parts of blocks that no cache holds: BlueStore reads the rest of each, and its thread waits."""

Making = Callable[[Lab, ExitStack], None]


ON_COMMON_LAB: Mapping[str, Any] = {"osds": "3xnvme"}
"""Options of the lab on which most causes are made."""

NARROW: Mapping[str, Any] = {**ON_COMMON_LAB, "shards": 1, "threads": 1}
"""The same with OSDs that do one operation at a time."""


class MadeCause(NamedTuple):
    """One of them."""

    name: str
    work: str
    make: Making
    lab: Mapping[str, Any] = ON_COMMON_LAB
    """Options of the lab that it is made on."""


def ceph(lab: Lab, *words: str) -> str:
    return lab.run(["ceph", *words], timeout=120)


def option(lab: Lab, held: ExitStack, name: str, value: str, who: str = "osd") -> None:
    """Set until the end; a value of the lab's own comes back."""
    rows = [row for row in lab.json(["ceph", "config", "dump"]) if not row.get("mask")]
    before = next((row["value"] for row in rows if row["section"] == who and row["name"] == name), None)
    ceph(lab, "config", "set", who, name, value)
    back = ("config", "rm", who, name) if before is None else ("config", "set", who, name, before)
    held.callback(ceph, lab, *back)


def flag(lab: Lab, held: ExitStack, name: str) -> None:
    ceph(lab, "osd", "set", name)
    held.callback(ceph, lab, "osd", "unset", name)


def unflag(lab: Lab, held: ExitStack, name: str) -> None:
    ceph(lab, "osd", "unset", name)
    held.callback(ceph, lab, "osd", "set", name)


def write(lab: Lab, seconds: int, nbytes: int, name: str = "base", threads: int = 16) -> None:
    """Fill the pool, with drives that take no time."""
    words = f"rados -p {POOL} bench {seconds} write -b {nbytes} -t {threads} --no-cleanup --run-name {name}"
    lab.run(words.split(), timeout=seconds + 60)


@contextmanager
def clients(lab: Lab, nbytes: int, threads: int, pool: str = POOL, kind: str = "write") -> Iterator[None]:
    words = f"rados -p {pool} bench 600 {kind} -t {threads} --no-cleanup"
    words += f" -b {nbytes} --run-name load-{threads}" if kind == "write" else " --run-name base"
    with under_way(lab, words.split()):
        yield


@contextmanager
def under_way(lab: Lab, command: Sequence[str]) -> Iterator[None]:
    """A command inside the lab runs until the end."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(lab.argv(command), env=lab.environment, stdout=quiet, stderr=quiet) as load:
        try:
            yield
        finally:
            load.terminate()


def states(lab: Lab) -> List[str]:
    answer = lab.json(["ceph", "pg", "ls"])
    return [row["state"] for row in answer["pg_stats"]]


def until(true: Callable[[], bool], words: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s until {words}")
        time.sleep(1)


def degraded(lab: Lab, held: ExitStack, seconds: int = 12) -> None:
    """Objects that an OSD missed; their recovery begins when norecover goes."""
    flag(lab, held, "noout")
    ceph(lab, "osd", "set", "norecover")
    held.callback(ceph, lab, "osd", "unset", "norecover")
    lab.stop_osd(AWAY)
    lab.wait_osd(AWAY, up=False)
    with lab.in_haste():
        write(lab, seconds, 256 * KIB, "missed", 8)
    lab.start_osd(AWAY)
    lab.wait_osd(AWAY, up=True)
    until(lambda: any("degraded" in state for state in states(lab)), "PGs are degraded")
    until(lambda: not any("peering" in state or "down" in state for state in states(lab)), "PGs have peered")


def recovers(lab: Lab) -> None:
    ceph(lab, "osd", "unset", "norecover")
    until(lambda: any("recovering" in state for state in states(lab)), "a PG recovers")


def late(lab: Lab, held: ExitStack) -> None:
    """PGs whose deep scrubs are past their date, with something to read."""
    with lab.in_haste():
        write(lab, 8, MIB)
    held.callback(flags_back, lab)
    for name, seconds in (("deep_scrub_interval", 4), ("scrub_min_interval", 2), ("scrub_max_interval", 4)):
        ceph(lab, "osd", "pool", "set", POOL, name, str(seconds))
    time.sleep(6)


def flags_back(lab: Lab) -> None:
    for name in ("noscrub", "nodeep-scrub"):
        ceph(lab, "osd", "set", name)


def scrubs(lab: Lab, held: ExitStack) -> None:
    for name in ("noscrub", "nodeep-scrub"):
        unflag(lab, held, name)


def custom(lab: Lab, **own: str) -> None:
    """All nine values, so that nothing but the named ones differs from no limit at all."""
    values = dict.fromkeys(MCLOCK_NINE, "")
    for name in MCLOCK_NINE:
        part = name.rpartition("_")[2]
        values[name] = {"res": "0.3", "wgt": "1", "lim": "0"}[part]
    ceph(lab, "config", "set", "osd", PROFILE, "custom")
    for name, value in {**values, **{f"osd_mclock_scheduler_{key}": value for key, value in own.items()}}.items():
        ceph(lab, "config", "set", "osd", name, value)


def taken_back(lab: Lab) -> None:
    """The nine while the profile is still custom, then the profile: the order that every shard learns."""
    for name in (*MCLOCK_NINE, PROFILE):
        ceph(lab, "config", "rm", "osd", name)


def limit(lab: Lab, held: ExitStack) -> None:
    held.callback(taken_back, lab)
    custom(lab, background_recovery_lim=str(LITTLE), background_recovery_res="0.01")
    degraded(lab, held)
    recovers(lab)


def stale(lab: Lab, held: ExitStack) -> None:
    """The profile first and the values after: the order that Ceph's documentation gives."""
    custom(lab, background_recovery_lim=str(LITTLE), background_recovery_res="0.01")
    time.sleep(3)
    for name in (PROFILE, *MCLOCK_NINE):
        ceph(lab, "config", "rm", "osd", name)

    def cured() -> None:
        ceph(lab, "config", "set", "osd", PROFILE, "custom")
        time.sleep(2)
        ceph(lab, "config", "rm", "osd", PROFILE)

    held.callback(cured)
    degraded(lab, held)
    recovers(lab)


def slots(lab: Lab, held: ExitStack) -> None:
    degraded(lab, held, 40)
    recovers(lab)


def norecover(lab: Lab, held: ExitStack) -> None:
    degraded(lab, held, 5)


def nodeep_scrub(lab: Lab, held: ExitStack) -> None:
    late(lab, held)


def scrub_slots(lab: Lab, held: ExitStack) -> None:
    option(lab, held, "osd_max_scrubs", "1")
    late(lab, held)
    scrubs(lab, held)
    until(lambda: any("scrubbing" in state for state in states(lab)), "a PG is scrubbed")


def scrub_hours(lab: Lab, held: ExitStack) -> None:
    hour = datetime.now(timezone.utc).hour
    option(lab, held, "osd_scrub_begin_hour", str((hour + 4) % 24))
    option(lab, held, "osd_scrub_end_hour", str((hour + 6) % 24))
    late(lab, held)
    scrubs(lab, held)


def capacity(lab: Lab, held: ExitStack) -> None:
    """A hundredth of what the drives can do; best effort's limit is a share of it."""
    for osd in lab.osds:
        option(lab, held, "osd_mclock_max_capacity_iops_ssd", "40", f"osd.{osd}")
    late(lab, held)
    scrubs(lab, held)
    until(lambda: any("scrubbing" in state for state in states(lab)), "a PG is scrubbed")


def throttle(lab: Lab, held: ExitStack) -> None:
    option(lab, held, "bluestore_throttle_bytes", "9000")
    held.enter_context(clients(lab, 4 * KIB, 32))


def saturated(lab: Lab, held: ExitStack) -> None:
    held.enter_context(clients(lab, 64 * KIB, 96))


def slow_drive(lab: Lab, held: ExitStack) -> None:
    held.enter_context(clients(lab, 4 * KIB, 4))


def snaptrim(lab: Lab, held: ExitStack) -> None:
    option(lab, held, "osd_max_trimming_pgs", "1")
    with lab.in_haste():
        overwrite = ["python3", "-c", _OVERWRITE.format(count=CLONES)]
        lab.run(overwrite, timeout=120)
        lab.run(["rados", "-p", POOL, "mksnap", "s1"])
        time.sleep(3)
        lab.run(overwrite, timeout=120)
    lab.run(["rados", "-p", POOL, "rmsnap", "s1"])
    until(lambda: any("snaptrim" in state for state in states(lab)), "a PG is trimmed", 30)


def strict(lab: Lab, held: ExitStack) -> None:
    """Replicas of one pool fill an OSD's strict queue, while it is the primary of another pool's reads.

    Each writes a part of a block, so that the OSD's one thread waits for the drive, which has room for more. The two
    primaries have half of that to do each.
    """
    busy = "why-busy"
    ceph(lab, "osd", "pool", "create", busy, str(PGS), str(PGS), "--size=2", "--autoscale-mode=off")
    held.callback(ceph, lab, "osd", "pool", "delete", busy, busy, "--yes-i-really-really-mean-it")
    number = {row["pool_name"]: row["pool"] for row in lab.json(["ceph", "osd", "dump"])["pools"]}
    for pg in range(PGS):
        first, second = (0, 1) if pg % 2 else (1, 0)
        ceph(lab, "osd", "pg-upmap", f"{number[busy]}.{pg:x}", str(first), str(AWAY))
        ceph(lab, "osd", "pg-upmap", f"{number[POOL]}.{pg:x}", str(AWAY), str(first), str(second))
    with lab.in_haste():
        write(lab, 8, 4 * KIB, "base", 64)
        lab.run(["python3", "-c", _PARTS.format(pool=busy, seconds=0)], timeout=120)
    held.enter_context(under_way(lab, ["python3", "-c", _PARTS.format(pool=busy, seconds=600)]))
    held.enter_context(clients(lab, 4 * KIB, 64, kind="rand"))


def busy_threads(lab: Lab, held: ExitStack) -> None:
    """An OSD's one thread waits for each read, though the drive has channels for many."""
    with lab.in_haste():
        write(lab, 8, 4 * KIB, "base", 64)
    held.enter_context(clients(lab, 4 * KIB, 64, kind="rand"))


def idle(lab: Lab, held: ExitStack) -> None:
    """Nothing."""


def light(lab: Lab, held: ExitStack) -> None:
    held.enter_context(clients(lab, 4 * KIB, 1))


MADE = {
    "limit": MadeCause("limit", "recovery", limit),
    "reservation-slots": MadeCause("reservation-slots", "recovery", slots),
    "flag-norecover": MadeCause("flag-norecover", "recovery", norecover),
    "flag-nodeep-scrub": MadeCause("flag-nodeep-scrub", "scrub", nodeep_scrub),
    "scrub-slots": MadeCause("scrub-slots", "scrub", scrub_slots),
    "scrub-hours": MadeCause("scrub-hours", "scrub", scrub_hours),
    "capacity": MadeCause("capacity", "scrub", capacity),
    "stale-shards": MadeCause("stale-shards", "recovery", stale),
    "throttle": MadeCause("throttle", "client", throttle),
    "drive-saturated": MadeCause("drive-saturated", "client", saturated),
    "snaptrim-slots": MadeCause("snaptrim-slots", "snaptrim", snaptrim),
    "strict-queue": MadeCause("strict-queue", "client", strict, NARROW),
    "op-threads": MadeCause("op-threads", "client", busy_threads, NARROW),
    "slow-drive": MadeCause("slow-drive", "client", slow_drive, {"osds": "2xnvme:flash,1xhdd:flash"}),
}
HEALTHY = {"idle": MadeCause("", "", idle), "light": MadeCause("", "", light)}
"""Clusters of which nothing is to be said."""


@contextmanager
def made(lab: Lab, cause: MadeCause) -> Iterator[None]:
    """The cause holds until the end; then the lab is as before, with nothing left to do."""
    with ExitStack() as held:
        ceph(lab, "osd", "pool", "create", POOL, str(PGS), str(PGS), "--autoscale-mode=off")
        held.callback(quiet, lab)
        held.callback(ceph, lab, "osd", "pool", "delete", POOL, POOL, "--yes-i-really-really-mean-it")
        until(lambda: all("active" in state for state in states(lab)), "all PGs are active")
        cause.make(lab, held)
        time.sleep(SETTLE_S)
        yield


def quiet(lab: Lab) -> None:
    """All PGs are clean, and what was deleted is gone."""
    until(lambda: all(state == "active+clean" for state in states(lab)), "all PGs are clean", 180)

    def removed() -> bool:
        """Deleted PGs are worked off in the best-effort class."""
        dumps = [lab.json(["ceph", "tell", f"osd.{osd}", "perf", "dump", "osd", "numpg_removing"]) for osd in lab.osds]
        return not any(dump["osd"]["numpg_removing"] for dump in dumps)

    # under other profiles a limit holds them for minutes
    ceph(lab, "config", "set", "osd", PROFILE, "high_recovery_ops")
    try:
        until(removed, "deleted PGs are gone", 300)
    finally:
        ceph(lab, "config", "rm", "osd", PROFILE)
