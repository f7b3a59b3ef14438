"""A lab as the twin is told of it: its drives, its queues, and the work of a scenario."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_lab.configuration import throttle_bytes
from ceph_lab.drives import Drive, DriveSet, Flash
from ceph_lab.drives.presets import THROTTLE
from ceph_lab.flash_device import flash_device
from ceph_lab.loads import backfill as backfill_load
from ceph_lab.loads import client as client_load
from ceph_lab.loads import recovery as recovery_load
from ceph_lab.loads import scrub as scrub_load
from ceph_lab.loads import snaptrim as snaptrim_load
from ceph_lab.loads.client_work import FIO, ClientWork
from ceph_lab.loads.drive_speed import DriveSpeed, objects_for
from ceph_lab.loads.image_recovery import degraded_objects
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.memory import ram_devices
from ceph_lab.options import LabOptions
from ceph_lab.recipes import CLIENTS, RECIPES, image_object_bytes
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release, Version
from ceph_tuner.twin.model import (
    KIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)

KNOWN = ("osd.device.iops", "osd.device.bandwidth_bytes_s")
"""Parameters that a lab states: its devices are limited to them."""

_BOTH = "client-snaptrim-recovery"
SCENARIOS = ("client", "client-recovery", "client-backfill", "client-scrub", "client-snaptrim", _BOTH, "mixed")
"""The scenarios whose loads the twin knows how to be told of."""

THREADS = {"ssd": 2, "hdd": 5}
"""osd_op_num_threads_per_shard_* of both releases of the lab, where it states none."""

NETWORK_S, THROTTLED_NETWORK_S = 3.5e-4, 1.5e-4
"""A message's way on two cores that all daemons share: with it a write alone takes the 4.0 to 12.3 ms that it does on
drives from 1 to 6 times slower than the lab's own. A fit on the throttle had some of that elsewhere."""

UNSHARED_NETWORK_S = 2.8e-4
"""The same without what a message waits for a processor: where processors are described, these waits are simulated."""

CLIENT_CPU_S = 1e-4
"""Processor time of an operation at its client, which is on the lab's machine: a fifth of one at 2 000 a second."""

OPEN_DEPTH = 256
"""Operations that an open-loop client lets wait at most."""

LOG_AT = 0.2
"""Share of a lab's disk before the place where BlueFS has put RocksDB's log: at 1.3 of 6 GiB."""


def lab_model(
    options: LabOptions,
    hardware: Hardware,
    scenario: str,
    release: Release,
    version: Optional[Version] = None,
    work: Optional[Mapping[str, Any]] = None,
    processors: int = 0,
) -> ClusterModel:
    """The model of a lab under a scenario; `work` are the scenario's options where they are not its defaults.

    `processors`: of the machine, which all daemons and the clients share; 0: nobody waits for one.

    Of a lab of several device classes, the OSDs of the class that the options name. Raises InputError for OSDs on
    different drives: the twin's are all alike.
    """
    if scenario not in SCENARIOS:
        raise InputError("--scenario", repr(scenario), f"one of {', '.join(SCENARIOS)}")
    work_options: Dict[str, Any] = {**RECIPES[scenario].options, **(work or {})}
    osds, drives = osds_under(options, work_options), drives_under(options, work_options)
    if len(drives) > 1:
        raise InputError("lab", f"OSDs on {' and '.join(drives)}", "a scenario on one device class (device_class=…)")
    first, size = osds[0], min(3, len(osds))
    speed = _speed(hardware, options.drive_of(first))

    def pool(name: str, pgs: int, replicas: int) -> Pool:
        layout = _layout(work_options, min(replicas, len(osds)))
        # a load's pool lies where the lab puts it, and not where CRUSH would
        acting = tuple(tuple(layout.placement(range(len(osds)), pg)) for pg in range(pgs))
        return Pool(name, pgs, layout.size, layout.chunks[0] if layout.chunks else 0, acting)

    # two that every lab has and nobody uses, but their PGs' leases wake the OSDs
    pools = [pool("client", client_load.PGS, size), Pool("rbd", 32, size), Pool(".mgr", 1, size)]
    recovery: Tuple[RecoveryWork, ...] = ()
    scrub: Tuple[ScrubWork, ...] = ()
    snaptrim: Tuple[SnaptrimWork, ...] = ()
    share = float(work_options.get("degraded_share", 0.0))
    image = ClientWork(object_bytes=image_object_bytes(work_options))
    if share:
        # of the image's objects the OSD that was away misses so many
        recovery = (
            RecoveryWork(
                "client", degraded_objects(image, share), image.object_bytes, target=len(osds) - 1, among=image.objects
            ),
        )
    elif scenario in ("client-recovery", _BOTH, "mixed"):
        objects, object_bytes = _moved(work_options, speed, recovery_load.REPLICAS)
        pgs = recovery_load.pgs_for(objects, len(osds), _layout(work_options, recovery_load.REPLICAS).size)
        pools.append(pool("recovery", pgs, recovery_load.REPLICAS))
        # the OSD that was away misses every object
        recovery = (RecoveryWork("recovery", objects, object_bytes, target=len(osds) - 1),)
    if scenario == "client-backfill":
        pools.append(pool("backfill", len(osds), backfill_load.REPLICAS))
        objects, object_bytes = _moved(work_options, speed, backfill_load.REPLICAS)
        recovery = (RecoveryWork("backfill", objects, object_bytes, degraded=False),)
    if work_options.get("scrubbed") == CLIENTS:
        scrub = (ScrubWork("client", image.objects, image.object_bytes, in_turn=True),)
    elif scenario in ("client-scrub", "mixed"):
        pools.append(pool("scrub", scrub_load.PGS, size))
        objects, size_bytes = int(work_options["scrub_objects"]), int(work_options["scrub_object_bytes"])
        scrub = (ScrubWork("scrub", objects, size_bytes, in_turn=True),)
    if scenario in ("client-snaptrim", _BOTH, "mixed"):
        trimmed, heads = "snaptrim", int(work_options["clones"])
        if work_options.get("trimmed") == CLIENTS:
            trimmed, heads = "client", image.objects
        else:
            pools.append(pool(trimmed, snaptrim_load.PGS, size))
        clones = _clones(work_options, speed, len(osds), size)
        snaptrim = (SnaptrimWork(trimmed, clones, int(work_options["clone_bytes"]), clone_bytes=4 * KIB, heads=heads),)
    client = ClientStream(
        "client",
        rate=float(work_options["rate"]) if "rate" in work_options else None,
        depth=int(work_options.get("depth", OPEN_DEPTH)),
        read_share=float(work_options["read_share"]),
        block_bytes=int(work_options["block_bytes"]),
        latency_s=3e-4,
        cpu_s=CLIENT_CPU_S,
        # fio's own way to keep a rate
        drains="rate" in work_options and work_options.get("engine", FIO) == FIO,
    )
    stored = {
        **{work.pool: work.objects * work.object_bytes for work in recovery},
        **{work.pool: work.objects * work.object_bytes for work in scrub},
        "client": image.image_bytes,
    }
    raw_bytes = sum(stored.get(each.name, 0) * each.size / (each.k or 1) for each in pools)
    return ClusterModel(
        len(osds), _osd(options, first, hardware, raw_bytes / len(osds)), tuple(pools), (client,),
        release=release, version=version, network_s=_network_s(drives, processors),
        # a lab's scrubs begin without chance (configuration.py)
        recovery=recovery, scrub=scrub, snaptrim=snaptrim, scrub_backoff_ratio=0.0,
        # one machine, on which each OSD is a failure domain all the same
        hosts=1 if processors else 0, processors=processors,
    )  # fmt: skip


def _network_s(drives: Sequence[str], processors: int) -> float:
    if THROTTLE in drives:
        return THROTTLED_NETWORK_S
    return UNSHARED_NETWORK_S if processors else NETWORK_S


def osds_under(options: LabOptions, work: Mapping[str, Any]) -> List[int]:
    """Give the OSDs that a scenario's loads lie on. Raises InputError for a device class that the lab has not."""
    device_class = str(work.get("device_class", ""))
    if device_class and device_class not in options.classes:
        raise InputError(
            "scenario option device_class", repr(device_class), f"one of {', '.join(sorted(options.classes))}"
        )
    return options.classes[device_class] if device_class else list(range(options.osds))


def drives_under(options: LabOptions, work: Mapping[str, Any]) -> List[str]:
    """Give the kinds of drives of these OSDs. Raises InputError as `osds_under` does."""
    return sorted({options.group_of(osd).drive for osd in osds_under(options, work)})


def _layout(work: Mapping[str, Any], replicas: int) -> PoolLayout:
    text = str(work.get("pool", ""))
    return PoolLayout.parse("scenario option pool", text) if text else PoolLayout(max(1, replicas))


def _moved(work: Mapping[str, Any], speed: DriveSpeed, replicas: int) -> Tuple[int, int]:
    """Give objects and their bytes: as many as the lab makes, for recovery or backfill to last."""
    object_bytes = int(work["object_bytes"])
    lasting = objects_for(float(work["seconds"]), speed.moved_objects_s(_layout(work, replicas), object_bytes))
    return max(int(work.get("objects", 0)), lasting), object_bytes


def _clones(work: Mapping[str, Any], speed: DriveSpeed, osds: int, replicas: int) -> int:
    """As many as the lab makes, for trimming to last."""
    return max(int(work["clones"]), speed.lasting_clones(float(work["seconds"]), _layout(work, replicas), osds))


def _speed(hardware: Hardware, drive: Optional[DriveSet]) -> DriveSpeed:
    log_on_flash = drive is not None and drive.rotational and drive.database is not None
    return DriveSpeed.of(hardware.bandwidth_bytes_s, hardware.capacity_iops, log_on_flash)


def _osd(options: LabOptions, osd: int, hardware: Hardware, stored_bytes: float) -> OsdModel:
    media, drive = options.media_of(osd), options.drive_of(osd)
    device = _device(drive.data if drive else None, options, stored_bytes)
    # a commit is one write of BlueFS (its counters); behind the kernel's throttle it is split
    kv_ios = 2.9 if drive is None else 1
    # flash takes a latency beside the write; elsewhere it is a flush, as found on the throttle
    kv_latency_s = 3e-4 + device.latency_s if drive is not None and media == "ssd" else 5.8e-4
    # what a fit begins from: found by a search over the windows of four settings, on two cores that the daemons share
    return OsdModel(
        device, capacity_iops=hardware.capacity_iops,
        bandwidth_bytes_s=hardware.bandwidth_bytes_s,
        shards=hardware.shards, threads_per_shard=options.threads or THREADS[media], device_class=hardware.device_class,
        write_cpu_s=1.7e-4, read_cpu_s=1e-4, reply_cpu_s=6e-5, cpu_s_per_byte=2e-10, scan_cpu_s=2e-4, trim_cpu_s=1.5e-4,
        kv_ios=kv_ios, kv_bytes=6 * KIB, kv_latency_s=kv_latency_s, trim_ios=0.02, trim_bytes=2819,
        throttle_bytes=throttle_bytes(options, osd),
        db=_device(drive.database, options, 0) if drive and drive.database else None,
    )  # fmt: skip


def _device(drive: Optional[Drive], options: LabOptions, stored_bytes: float) -> Device:
    if drive is None:
        return Device(
            options.iops, options.bandwidth, shared=False, slice_s=0.1, latency_s=3.5e-4, read_latency_s=3e-4,
            spread=0.5,
            # BlueStore's blobs are of 64 KiB; on a device whose free space is scattered they are written in pieces
            request_bytes=40 * KIB,
        )  # fmt: skip
    if isinstance(drive, Flash):
        return flash_device(drive)
    full = min(1.0, stored_bytes / ram_devices(options)[0])
    way_s = drive.position_s(full)
    return Device(
        drive.queued_iops(full),
        drive.bandwidth / drive.slow_motion,
        latency_s=way_s,
        read_latency_s=way_s,
        turn_s=60 / drive.rpm * drive.slow_motion,
        log_way_s=drive.apart_s(0.0, full, LOG_AT),
    )
