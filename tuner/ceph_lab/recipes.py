"""What the named scenarios are made of, scaled to the lab's device.

The published runs (A1, A2, B1, B4 of docs/loads.md) had NVMe drives of about 2 GB/s and 23 000 client IOPS. The lab's
devices are some 33 times slower in both, so amounts are divided by SLOWNESS and queue depths stay: rates come out
divided by it, latencies multiplied by it. Work that ends is made to last for the window's length at the drive's full
speed, because only its rate is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Sequence

from ceph_lab.loads import LabUnderLoad, Load, backfill, client, recovery, scrub, snaptrim
from ceph_lab.loads.backfill import BackfillLoad
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import FIO, LIBRBD, ClientWork
from ceph_lab.loads.drive_speed import backfilled_at_once, objects_for, slowest_drive
from ceph_lab.loads.image_recovery import ImageRecoveryLoad
from ceph_lab.loads.image_scrub import ImageScrubLoad
from ceph_lab.loads.image_snaptrim import ImageSnaptrimLoad
from ceph_lab.loads.layout import PoolLayout, layout_of
from ceph_lab.loads.pools import Tell
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.scrub import ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_tuner.core.errors import InputError

MIB = 1 << 20
SLOWNESS = 33
RANDOM, SEQUENTIAL = "random", "sequential"
PATTERNS = (RANDOM, SEQUENTIAL)
"""How clients choose offsets."""

OWN, CLIENTS = "own", "clients"
WHOSE = (OWN, CLIENTS)
"""Objects that are scrubbed or trimmed: of a pool of their own, or those that the clients write."""

MARGIN_S = 2.0
"""Loads begin before the settling does."""

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Bench:
    """What a recipe is made with."""

    lab: LabUnderLoad
    session: LabSession
    tell: Tell

    def layout(self, options: Options, replicas: int) -> PoolLayout:
        """Where a load's objects lie: as the options say, by default in so many replicas."""
        return layout_of(
            self.lab, str(options["pool"]), str(options["device_class"]), replicas, place="scenario option pool"
        )

    def moved(self, seconds: float, layout: PoolLayout, object_bytes: int) -> int:
        """So many objects that recovery or backfill lasts that long, whatever the settings."""
        drive = slowest_drive(self.session, layout.osds(self.lab))
        return objects_for(seconds, drive.moved_objects_s(layout, object_bytes))

    def misplaced(self, seconds: float, layout: PoolLayout, object_bytes: int) -> int:
        """The same of backfill, which goes on at several drives where osd_max_backfills in force lets it."""
        return self.moved(seconds * backfilled_at_once(self.session, layout.osds(self.lab)), layout, object_bytes)

    def clones(self, seconds: float, layout: PoolLayout) -> int:
        """So many clones that trimming lasts that long."""
        osds = layout.osds(self.lab)
        return slowest_drive(self.session, osds).lasting_clones(seconds, layout, len(osds))


@dataclass(frozen=True)
class ScenarioRecipe:
    """One line for people, the options with their defaults, and how to make the loads."""

    meaning: str
    options: Options
    make: Callable[[Bench, Options], List[Load]]

    def loads(self, lab: LabUnderLoad, session: LabSession, tell: Tell, options: Options) -> List[Load]:
        """Raises InputError for an option's value that makes no sense."""
        for name, value in options.items():
            default = self.options[name]
            if isinstance(default, (int, float)) and (isinstance(value, bool) or not isinstance(value, (int, float))):
                raise InputError(f"scenario option {name}", repr(value), "a number")
            if isinstance(value, (int, float)) and not (value > 0 or value == default):
                raise InputError(f"scenario option {name}", repr(value), "more than 0")
        return self.make(Bench(lab, session, tell), options)


_POOL: Dict[str, Any] = {"pool": "", "device_class": ""}
"""Of every load: `replicated:3` or `ec:2+1`, by default each load's own; OSDs of one class, by default all."""

_WORK: Dict[str, Any] = {**_POOL, "block_bytes": 4096, "read_share": 0.0, "pattern": RANDOM, "jobs": 1}
"""Of clients."""

_OPEN: Dict[str, Any] = {"rate": 250.0, **_WORK, "engine": LIBRBD, "seed": 1}
"""Clients that offer a rate."""

_CLOSED: Dict[str, Any] = {"depth": 64, **_WORK}
"""Clients that keep a queue full, as in the published runs."""

_SECONDS: Dict[str, Any] = {"seconds": 32.0}
"""For how long there is work at full speed: settling and the window."""


def _one_of(options: Options, name: str, values: Sequence[str]) -> str:
    """Give an option that has one of so many values. Raises InputError for another."""
    if options[name] not in values:
        raise InputError(f"scenario option {name}", repr(options[name]), " or ".join(values))
    return str(options[name])


def _client(bench: Bench, options: Options) -> ClientLoad:
    work = ClientWork(
        rate=float(options["rate"]) if "rate" in options else None,
        depth=int(options["depth"]) if "depth" in options else None,
        block_bytes=int(options["block_bytes"]),
        read_share=float(options["read_share"]),
        jobs=int(options["jobs"]),
        sequential=_one_of(options, "pattern", PATTERNS) == SEQUENTIAL,
        engine=str(options.get("engine", FIO)),
        seed=int(options.get("seed", 1)),
        object_bytes=image_object_bytes(options),
    )
    return ClientLoad(bench.lab, bench.session, work, bench.tell, bench.layout(options, client.REPLICAS))


def _recovery(bench: Bench, options: Options) -> Load:
    size = int(options["object_bytes"])
    layout = bench.layout(options, recovery.REPLICAS)
    objects = bench.moved(float(options["seconds"]), layout, size)
    return RecoveryLoad(bench.lab, bench.session, objects, size, tell=bench.tell, layout=layout)


def image_object_bytes(options: Options) -> int:
    """Of the clients' image, by a scenario's options: what is worked on are its own objects, or others."""
    if options.get("degraded_share"):
        return int(options["object_bytes"])
    if options.get("trimmed") == CLIENTS:
        return int(options["clone_bytes"])
    return int(options["scrub_object_bytes"]) if options.get("scrubbed") == CLIENTS else ClientWork.object_bytes


def _client_and_recovery(bench: Bench, options: Options) -> List[Load]:
    """Objects of a pool of their own are recovered, or a share of those that the clients write."""
    clients, share = _client(bench, options), float(options["degraded_share"])
    if not 0 <= share <= 1:
        raise InputError("scenario option degraded_share", f"{share:g}", "0 to 1")
    recovered: Load = ImageRecoveryLoad(clients, share, bench.tell) if share else _recovery(bench, options)
    return [clients, recovered]


def _client_and_scrub(bench: Bench, options: Options) -> List[Load]:
    """Objects of a pool of their own are scrubbed, or those that the clients write."""
    clients = _client(bench, options)
    if _one_of(options, "scrubbed", WHOSE) == CLIENTS:
        return [clients, ImageScrubLoad(clients, str(options["scrub_kind"]), bench.tell)]
    return [clients, _scrub(bench, options)]


def _client_and_snaptrim(bench: Bench, options: Options) -> List[Load]:
    """Clones of objects of a pool of their own are trimmed, or of those that the clients write."""
    clients = _client(bench, options)
    if _one_of(options, "trimmed", WHOSE) == CLIENTS:
        return [clients, ImageSnaptrimLoad(clients, _clones(bench, options, clients.pool.layout), bench.tell)]
    return [clients, _snaptrim(bench, options)]


def _scrub(bench: Bench, options: Options) -> Load:
    return ScrubLoad(
        bench.lab,
        bench.session,
        kind=str(options.get("scrub_kind", "periodic")),
        objects=int(options["scrub_objects"]),
        object_bytes=int(options["scrub_object_bytes"]),
        tell=bench.tell,
        layout=bench.layout(options, scrub.REPLICAS),
    )


def _snaptrim(bench: Bench, options: Options) -> Load:
    layout = bench.layout(options, snaptrim.REPLICAS)
    return SnaptrimLoad(
        bench.lab,
        bench.session,
        objects=int(options["clones"]),
        object_bytes=int(options["clone_bytes"]),
        tell=bench.tell,
        layout=layout,
        clones=_clones(bench, options, layout),
    )


def _clones(bench: Bench, options: Options, layout: PoolLayout) -> int:
    return max(int(options["clones"]), bench.clones(float(options["seconds"]), layout))


def _backfill(bench: Bench, options: Options) -> Load:
    size = int(options["object_bytes"])
    layout = bench.layout(options, backfill.REPLICAS)
    objects = max(int(options["objects"]), bench.misplaced(float(options["seconds"]), layout, size))
    return BackfillLoad(bench.lab, bench.session, objects, size, bench.tell, layout)


# small objects: a chunk of them is one item of the queue, and a window of some seconds has to hold many
_SCRUB: Dict[str, Any] = {"scrub_objects": 4800, "scrub_object_bytes": MIB // 4, "scrub_kind": "periodic"}
_CLONES: Dict[str, Any] = {"clones": 80_000 // SLOWNESS, "clone_bytes": MIB // 4, **_SECONDS}
"""One clone of each of so many objects, and more of them where trimming would not last for the seconds."""

RECIPES: Dict[str, ScenarioRecipe] = {
    "client": ScenarioRecipe("clients alone: the baseline", _OPEN, lambda bench, options: [_client(bench, options)]),
    "client-recovery": ScenarioRecipe(
        "clients offering a rate, while degraded objects are recovered",
        {**_OPEN, "object_bytes": MIB, "degraded_share": 0.0, **_SECONDS},
        _client_and_recovery,
    ),
    "client-backfill": ScenarioRecipe(
        "clients offering a rate, while misplaced objects are backfilled",
        {**_OPEN, "object_bytes": MIB, "objects": 1200, **_SECONDS},
        lambda bench, options: [_client(bench, options), _backfill(bench, options)],
    ),
    "client-scrub": ScenarioRecipe(
        "clients offering a rate, while PGs are deep-scrubbed over and over",
        {**_OPEN, **_SCRUB, "scrubbed": OWN},
        _client_and_scrub,
    ),
    "client-snaptrim": ScenarioRecipe(
        "clients offering a rate, while clones are trimmed",
        {**_OPEN, **_CLONES, "trimmed": OWN},
        _client_and_snaptrim,
    ),
    "client-snaptrim-recovery": ScenarioRecipe(
        "clients offering a rate, while clones are trimmed and degraded objects are recovered",
        {**_OPEN, **_CLONES, "object_bytes": MIB, **_SECONDS},
        lambda bench, options: [_client(bench, options), _snaptrim(bench, options), _recovery(bench, options)],
    ),
    "a1": ScenarioRecipe(
        "published run A1: clients with a full queue, and snaptrim of 80 000 clones (scaled)",
        {**_CLOSED, **_CLONES},
        lambda bench, options: [_client(bench, options), _snaptrim(bench, options)],
    ),
    "a2": ScenarioRecipe(
        "published run A2: as A1 with 70 000 clones, and backfill of 18 000 misplaced objects of 4 MiB (scaled)",
        {
            **_CLOSED,
            **_CLONES,
            "clones": 70_000 // SLOWNESS,
            "object_bytes": 4 * MIB,
            "objects": 18_000 // SLOWNESS,
        },
        lambda bench, options: [_client(bench, options), _backfill(bench, options), _snaptrim(bench, options)],
    ),
    "b1": ScenarioRecipe(
        "published run B1: clients with a full queue, and deep scrub of many objects of 32 KiB (scaled)",
        {**_CLOSED, **_SCRUB, "scrub_objects": 6000, "scrub_object_bytes": MIB // 32},
        lambda bench, options: [_client(bench, options), _scrub(bench, options)],
    ),
    "b4": ScenarioRecipe(
        "published run B4: clients with a full queue, deep scrub and recovery of objects of 4 MiB (scaled)",
        {
            **_CLOSED,
            **_SCRUB,
            "scrub_objects": 300,
            "scrub_object_bytes": 4 * MIB,
            "object_bytes": 4 * MIB,
            **_SECONDS,
        },
        lambda bench, options: [_client(bench, options), _scrub(bench, options), _recovery(bench, options)],
    ),
    "mixed": ScenarioRecipe(
        "clients offering a rate, with recovery, deep scrub and snaptrim at once",
        # fewer objects to scrub, so that the default OSD has room for all four
        {**_OPEN, **_SCRUB, "scrub_objects": 1200, **_CLONES, "object_bytes": MIB, **_SECONDS},
        lambda bench, options: [
            _client(bench, options),
            _scrub(bench, options),
            _snaptrim(bench, options),
            _recovery(bench, options),
        ],
    ),
}
"""By name. Recovery comes last: it is prepared last, because it takes an OSD away for a while."""


def options_for_window(name: str, options: Options, seconds: float) -> Dict[str, Any]:
    """The options, with as much work as a window of that length (settling included) needs where none is stated.

    No more than that: it has to be written first.
    """
    takes_seconds = name in RECIPES and "seconds" in RECIPES[name].options
    return {**({"seconds": seconds + MARGIN_S} if takes_seconds else {}), **options}
