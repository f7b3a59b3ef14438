"""What a description of a cluster may say: bounds beyond which the twin's answer means nothing, and what is unlikely.

All in SI units, by the name of the key. Beyond `low` and `high` a value is refused with the reason; outside of `likely`
it is taken, and told: most often it is a unit that was forgotten.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.errors import InputError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class QuantityBound(NamedTuple):
    """What a quantity may be, why no more, and between what it mostly is."""

    low: float
    high: float
    why: str
    likely: Optional[Tuple[float, float]] = None


def _each(names: str, bound: QuantityBound) -> Iterator[Tuple[str, QuantityBound]]:
    return ((name, bound) for name in names.split())


_LATENCY = "what takes longer than a minute is an outage"

BOUNDS: Dict[str, QuantityBound] = dict(
    [
        ("osds", QuantityBound(1, 100_000, "Ceph has been run with some ten thousand OSDs", (1, 20_000))),
        ("hosts", QuantityBound(0, 100_000, "failure domains hold an OSD each at least")),
        ("processors", QuantityBound(1, 4096, "a host has some, and its OSDs share them", (1, 1024))),
        ("simulate_osds", QuantityBound(1, 1000, "some dozen stand for thousands, and each has queues of its own")),
        *_each("shards threads_per_shard", QuantityBound(1, 64, "an OSD has some, and each is a queue or a thread")),
        ("pgs", QuantityBound(1, 65_536, "mon_max_pool_pg_num is 65536")),
        ("upmap_max_deviation", QuantityBound(0, 65_536, "no OSD has more PGs of a pool than it has", (0, 100))),
        ("size", QuantityBound(1, 10, "Ceph takes 1 to 10 copies")),
        ("k", QuantityBound(2, 128, "data and coding chunks each lie on an OSD of their own")),
        ("m", QuantityBound(1, 128, "data and coding chunks each lie on an OSD of their own")),
        ("depth", QuantityBound(1, 1_000_000, "operations under way at a time")),
        *_each("iops read_iops", QuantityBound(1, 1e7, "a drive's operations a second", (20, 5e6))),
        ("capacity_iops", QuantityBound(1, 1e7, "a drive's operations a second", (20, 5e6))),
        *_each("bandwidth read_bandwidth", QuantityBound(10_000, 1e12, "a drive's bytes a second", (5e6, 50e9))),
        *_each("latency read_latency slice network", QuantityBound(0, 60, _LATENCY, (0, 1))),
        *_each(
            "write_cpu read_cpu message_cpu commit_cpu mib_cpu cpu commit_latency",
            QuantityBound(0, 60, _LATENCY, (0, 0.1)),
        ),
        ("request", QuantityBound(512, GIB, "a drive's block has 512 bytes at least", (4 * KIB, 16 * MIB))),
        ("throttle", QuantityBound(0, 1 << 40, "bytes that wait for a commit are held in memory", (0, 4 * GIB))),
        ("rate", QuantityBound(1e-6, 1e9, "operations a second of one stream of clients", (1e-3, 1e8))),
        ("block", QuantityBound(1, 128 * MIB, "an operation is not larger than an object (osd_max_object_size)")),
        ("object_size", QuantityBound(1, 4 * GIB, "the length of an object has 32 bits", (1, 128 * MIB))),
        *_each("objects among clones", QuantityBound(1, 1e13, "more than any cluster holds")),
        ("rounds", QuantityBound(1, 1000, "work that lasts a minute is enough for every run")),
        ("times", QuantityBound(1, 1e13, "there is not less than one object")),
        ("stored", QuantityBound(0, 1e20, "more than any cluster holds", (0, 1e19))),
    ]
)

MOST_ENTRIES = 1000
"""Pools, streams of clients, or works of one kind: the twin goes through them at every step."""


class QuantityBounds:
    """Holds values against their bounds, and keeps what is unlikely."""

    def __init__(self) -> None:
        self.unlikely: List[str] = []

    def check(self, name: str, value: float, place: str) -> None:
        """Raise InputError beyond the bounds of `name`, with the reason."""
        bound = BOUNDS[name]
        if not bound.low <= value <= bound.high:
            raise InputError(place, f"{value:g}", f"{bound.low:g} to {bound.high:g}: {bound.why}")
        if bound.likely is not None and not bound.likely[0] <= value <= bound.likely[1]:
            low, high = bound.likely
            self.unlikely.append(f"{place}: {value:g} is unlikely, {low:g} to {high:g} is usual (in SI units)")

    def check_count(self, entries: object, place: str) -> None:
        """Raise InputError for a list that is too long."""
        if isinstance(entries, (list, Mapping)) and len(entries) > MOST_ENTRIES:
            raise InputError(place, f"{len(entries)} entries", f"at most {MOST_ENTRIES}")
