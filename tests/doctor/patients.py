"""A cluster without faults, to plant them in one by one."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import REEF
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.doctor.facts import Facts, OsdFacts, PgFacts, PoolFacts

TIB = 2.0**40
DAY = 86_400.0

OPTIONS = {
    "osd_op_queue": "mclock_scheduler",
    PROFILE: "balanced",
    **format_settings(dict(REEF.profiles["balanced"]), REEF),
    "osd_mclock_max_capacity_iops_ssd": "30000.000000",
    "osd_mclock_max_sequential_bandwidth_ssd": "2000000000",
    "bluestore_throttle_bytes": "262144",
    "bluestore_throttle_cost_per_io": "0",
    "bluestore_throttle_cost_per_io_ssd": "4000",
    "osd_max_scrubs": "3",
    "osd_deep_scrub_interval": "604800.000000",
    "osd_mclock_override_recovery_settings": "false",
}
OSDS = 6


def place(osd: int) -> Place:
    return Place(osd, "ssd", {"host": f"h{osd // 2}", "root": "default"})


def osd_facts(osd: int, options: Dict[str, str] = {}, **given: Any) -> OsdFacts:  # noqa: B006 - never changed
    own = {"mclock_queues": True, "used_bytes": TIB, **given}
    return OsdFacts(place(osd), "ssd", options={**OPTIONS, **options}, **own)


def capacities() -> Tuple[ConfigEntry, ...]:
    return tuple(ConfigEntry(f"osd.{osd}", "osd_mclock_max_capacity_iops_ssd", "30000.000000") for osd in range(OSDS))


def pgs(counts: Iterable[Tuple[Tuple[int, ...], int]], **given: Any) -> Tuple[PgFacts, ...]:
    return tuple(PgFacts(1, acting, **given) for acting, count in counts for _ in range(count))


def healthy(**given: Any) -> Facts:
    """Six OSDs on three hosts, a pool of 200 PGs of two copies, evenly spread."""
    known: Dict[str, Any] = {
        "osds": tuple(osd_facts(osd) for osd in range(OSDS)),
        "entries": capacities(),
        "places": tuple(place(osd) for osd in range(OSDS)),
        "pools": (PoolFacts(1, "rbd", 256, 2, raw_bytes=OSDS * TIB, operations=1e6),),
        "pgs": pgs((((osd, (osd + 2) % OSDS), 42) for osd in range(OSDS)), nbytes=2.0**33, objects=2048),
        "weights": dict.fromkeys(range(OSDS), 1.0),
        "pg_states": {"active+clean": 252},
    }
    return Facts(REEF, REEF.newest, **{**known, **given})


def set_to(*rows: Tuple[str, str, str]) -> Dict[str, Any]:
    """Entries beside the capacities."""
    return {"entries": (*capacities(), *(ConfigEntry(*row) for row in rows))}


def nine(who: str) -> Tuple[Tuple[str, str, str], ...]:
    return tuple((who, name, "1" if name.endswith("wgt") else "0.3") for name in MCLOCK_NINE)
