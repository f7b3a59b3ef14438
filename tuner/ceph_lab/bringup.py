"""Brings a lab up: chroot, devices, namespace, monitor, mgr, OSDs, pool."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_lab import devices, memory
from ceph_lab.capacity import measured_capacities
from ceph_lab.chroot import MIRROR, check_host, ensure_chroot, recipe_for
from ceph_lab.cluster import Lab
from ceph_lab.configuration import ceph_conf, database, monitor_addresses
from ceph_lab.drives import preload
from ceph_lab.drives.build import library
from ceph_lab.loads.layout import creation
from ceph_lab.namespace import start_keeper
from ceph_lab.options import GIB, RAM, LabOptions
from ceph_lab.places import LABS, LabPlaces
from ceph_lab.processes import MARK, host_environment, kill_all
from ceph_lab.state import STARTING, UP, LabState, lab_names, locked, readable_state
from ceph_lab.teardown import clear, remains
from ceph_lab.throttle import Limit, Throttle, host_throttle
from ceph_tuner.core.errors import InputError, LabFailed, TunerError

Report = Callable[[str], None]

Blocks = Mapping[str, str]
"""Part of an OSD's store -> its block device."""

_LINKS = {"data": "block", "database": "block.db"}

_FIRST_PORT, _LAST_PORT, _PORTS_PER_LAB = 16790, 18790, 10

_PREPARE = r"""
set -eu
exec >/dev/null
cd /lab
mkdir -p run log osd mgr mgr-modules
for id in $mgrs; do mkdir -p mgr/$id; done
ceph-authtool keyring --create-keyring --gen-key --name=mon. --cap mon 'allow *'
ceph-authtool keyring --gen-key --name=client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mds 'allow *' \
    --cap mgr 'allow *'
for id in $mgrs; do
    ceph-authtool keyring --gen-key --name=mgr.$id --cap mon 'allow profile mgr' --cap osd 'allow *' --cap mds 'allow *'
done
for id in $osds; do
    ceph-authtool keyring --gen-key --name=osd.$id --cap mon 'allow profile osd' --cap mgr 'allow profile osd' \
        --cap osd 'allow *'
done
ln -s /usr/share/ceph/mgr/* mgr-modules/
monmaptool --create --clobber --fsid $fsid monmap
for mon in $mons; do
    monmaptool --addv ${mon%%=*} "[${mon#*=}]" monmap
done
for mon in $mons; do
    ceph-mon --mkfs -i ${mon%%=*} --monmap monmap --keyring keyring
done
"""


def up(name: str, request: Mapping[str, Any], report: Report, mirror: str = MIRROR, labs: Path = LABS) -> Lab:
    """Bring a lab up, or return the running one; `request` holds the options that were explicitly asked for.

    Raises InputError where a lab of that name runs with other options. A failure or an interruption leaves nothing.
    """
    check_host()
    places = LabPlaces(name, labs)
    with locked(places.lock, f"another command is at work on lab {name}"):
        state = readable_state(places)
        if state is not None and state.phase == UP:
            options = state.options
            other = options.differences(request)
            if other:
                own, wishes = (", ".join(f"{key} {pair[side]}" for key, pair in other.items()) for side in (0, 1))
                raise InputError(f"lab {name}", f"it running with {own}", f"{wishes}; `lab down` it first")
            lab = Lab(places, state)
            if lab.alive:
                return _revive(lab, report)
        if remains(places):
            report(f"lab {name} was left behind by a crash or a reboot: starting anew")
        clear(places, report)
        try:
            return _build(places, LabOptions.from_dict(request), mirror, report)
        except BaseException:
            clear(places, report)
            raise


def _revive(lab: Lab, report: Report) -> Lab:
    """A lab that is up, with the daemons that died in the meantime started again."""
    pids = lab.daemons()
    dead = [daemon for daemon in lab.daemon_names if daemon not in pids]
    report(f"lab {lab.name} is up already" + (f": starting {', '.join(dead)} again" if dead else ""))
    for daemon in dead:
        lab.start_daemon(daemon)
    lab.wait_osds(lab.osds, up=True)
    return lab


def _build(places: LabPlaces, options: LabOptions, mirror: str, report: Report) -> Lab:
    throttle = host_throttle() if options.throttled else None
    _need_tools()
    marks = {MARK: str(places.directory)}
    # before Ceph's tree is fetched, which takes minutes
    _placed(places, options)
    chroot = ensure_chroot(recipe_for(options.release, mirror), marks, report)
    began = time.monotonic()
    state = _reserve(places, options, chroot, report)
    options = state.options
    places.shared.mkdir()
    preload.install(places, library(chroot, host_environment(marks)))
    blocks = _devices(places, options, throttle)
    (places.shared / "ceph.conf").write_text(ceph_conf(options, state.fsid, state.port), encoding="utf-8")
    state = state.with_changes(keeper=start_keeper(places, chroot))
    state.write(places)
    lab = Lab(places, state)
    report("monitor and mgr")
    _prepare(lab)
    _start_daemons(lab, blocks, report)
    lab.wait_osds(lab.osds, up=True)
    _set_classes(lab)
    report("pools")
    _make_pools(lab)
    _wait_serving(lab)
    capacities = measured_capacities(lab, report)
    _store_capacities(lab, {drive: found.iops for drive, found in capacities.items()})
    version = lab.run(["ceph-osd", "--version"]).split()[2]
    state = state.with_changes(
        phase=UP,
        ceph_version=version,
        capacities={drive: found.iops for drive, found in capacities.items()},
        doubts={drive: found.doubt for drive, found in capacities.items() if found.doubt},
    )
    state.write(places)
    report(f"lab {places.name} is up: Ceph {version} ({time.monotonic() - began:.0f} s)")
    return Lab(places, state)


def _start_daemons(lab: Lab, blocks: Mapping[int, Blocks], report: Report) -> None:
    identities = {osd: str(uuid.uuid4()) for osd in lab.osds}
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2)) as workers:
        try:
            # the OSDs' stores are made while the monitor starts: neither needs the other
            stores = [workers.submit(_make_store, lab, osd, blocks[osd], identities[osd]) for osd in lab.osds]
            for mon in lab.mons:
                lab.start_daemon(f"mon.{mon}")
            _first_commands(lab, identities)
            for mgr in lab.mgrs:
                lab.start_daemon(f"mgr.{mgr}")
            report("OSDs")
            for store in stores:
                store.result()
            for start in [workers.submit(lab.start_daemon, f"osd.{osd}") for osd in lab.osds]:
                start.result()
        except BaseException:
            # the workers are waited for: without this, Ctrl-C would take as long as what they do
            workers.shutdown(wait=False, cancel_futures=True)
            kill_all(lab.places.directory)
            raise


def _need_tools() -> None:
    absent = [tool for tool in ("unshare", "nsenter", "losetup") if not _which(tool)]
    if absent:
        raise InputError("ceph-tuner lab", f"no {', '.join(absent)}", "the packages util-linux and mount")


def _which(tool: str) -> bool:
    return any((Path(folder) / tool).exists() for folder in os.environ.get("PATH", "").split(os.pathsep))


def _reserve(places: LabPlaces, options: LabOptions, chroot: Path, report: Report) -> LabState:
    """Write down that the lab exists, with ports and memory that no other lab has, before anything else is made."""
    with locked(places.labs / ".ports.lock", "ports are being given out", wait=30):
        options, need, disk_free = _placed(places, options)
        report(f"devices: {_devices_words(options, need, disk_free)}")
        state = LabState(
            name=places.name,
            options=options,
            phase=STARTING,
            port=_free_port(places),
            fsid=str(uuid.uuid4()),
            chroot=str(chroot),
            created=time.time(),
        )
        places.directory.mkdir(mode=0o755)
        state.write(places)
    return state


def _placed(places: LabPlaces, options: LabOptions) -> Tuple[LabOptions, memory.Need, int]:
    """With storage and device size, what is needed for it, and bytes free on disk. Raises InputError where short."""
    places.labs.mkdir(parents=True, exist_ok=True)
    need, disk_free = memory.memory_need(options, places.labs), shutil.disk_usage(places.labs).free
    return memory.placed(options, need, disk_free), need, disk_free


def _free_port(places: LabPlaces) -> int:
    states = [readable_state(LabPlaces(name, places.labs)) for name in lab_names(places.labs)]
    ports = {state.port for state in states if state is not None}
    for port in range(_FIRST_PORT, _LAST_PORT, _PORTS_PER_LAB):
        # the monitor's, and those of the dashboard and of prometheus on each mgr
        if port not in ports and all(_bindable(port + offset) for offset in range(_PORTS_PER_LAB)):
            return port
    raise LabFailed(
        f"no ten free ports in a row on 127.0.0.1 between {_FIRST_PORT} and {_LAST_PORT}", "take a lab down"
    )


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _devices_words(options: LabOptions, need: memory.Need, disk_free: int) -> str:
    if options.throttled:
        return f"{options.osds} x {options.iops} IOPS, {options.bandwidth >> 20} MiB/s, by the kernel's throttle"
    groups = " and ".join(f"{group.count} x {group.drive}" for group in options.groups)
    if options.storage == RAM:
        return f"{groups}, emulated, in memory: up to {need}"
    on_disk = f"up to {options.osds * options.device_size / GIB:.1f} GiB of the {disk_free / GIB:.1f} GiB free on disk"
    return f"{groups}, emulated, {on_disk}; in memory they would take {need}"


def _devices(places: LabPlaces, options: LabOptions, throttle: Optional[Throttle]) -> Dict[int, Blocks]:
    environment = host_environment({MARK: str(places.directory)})
    memory.mount(places, options, environment)
    blocks: Dict[int, Blocks] = {}
    for osd in range(options.osds):
        drives = options.drive_of(osd)
        drive_parts = {} if drives is None else drives.parts
        sizes = {"data": options.device_size}
        if "database" in drive_parts:
            sizes = {"data": options.device_size * 3 // 4, "database": options.device_size // 4}
        devices_by_part: Dict[str, str] = {}
        for part, size in sizes.items():
            image = places.devices / (f"osd.{osd}.img" if part == "data" else f"osd.{osd}.{part}.img")
            rotational = part in drive_parts and drive_parts[part].rotational
            devices_by_part[part] = devices.attach(image, size, environment, rotational, host_cache=part in drive_parts)
        numbers = [devices.number(block) for block in devices_by_part.values()]
        blocks[osd] = devices_by_part
        if drive_parts:
            preload.describe(places, osd, numbers, list(drive_parts.values()), list(sizes.values()))
        elif throttle is not None:
            throttle.limit(places.name, osd, numbers[0], Limit(options.iops, options.bandwidth))
    return blocks


def _prepare(lab: Lab) -> None:
    addresses = monitor_addresses(lab.state.options, lab.state.port)
    values = [
        f"fsid={lab.state.fsid}",
        f"mons={' '.join(f'{mon}={address}' for mon, address in addresses.items())}",
        f"mgrs={' '.join(lab.mgrs)}",
        f"osds={' '.join(map(str, lab.osds))}",
    ]
    _step(lab, "monitor's store", ["env", *values, "sh", "-c", _PREPARE])


def _make_store(lab: Lab, osd: int, blocks: Blocks, identity: str) -> None:
    folder = lab.places.shared / "osd" / str(osd)
    folder.mkdir()
    for part, device in blocks.items():
        (folder / _LINKS[part]).symlink_to(device)
    # neither on its emulated drive nor in its cgroup: what is written once need not take long
    _step(lab, f"osd.{osd}'s store", ["ceph-osd", "-i", str(osd), "--mkfs", "--osd-uuid", identity])


def _first_commands(lab: Lab, identities: Mapping[int, str]) -> None:
    """Before any OSD starts: its queue is made once, with the options that it finds then."""
    lab.mon_commands(
        [
            *database(lab.state.options, lab.state.port),
            # scrubs would begin at random; loads and users take the flags away when they want some
            {"prefix": "osd set", "key": "noscrub"},
            {"prefix": "osd set", "key": "nodeep-scrub"},
            *({"prefix": "osd new", "uuid": identity, "id": osd} for osd, identity in identities.items()),
        ]
    )


def _set_classes(lab: Lab) -> None:
    """Device classes that are not the ones which the OSDs gave themselves when they started."""
    class_of = [(osd, lab.state.options.group_of(osd).device_class) for osd in lab.osds]
    for osd, device_class in class_of:
        if device_class:
            lab.mon_commands(
                [
                    {"prefix": "osd crush rm-device-class", "ids": [str(osd)]},
                    {"prefix": "osd crush set-device-class", "class": device_class, "ids": [str(osd)]},
                ]
            )


def _make_pools(lab: Lab) -> None:
    for pool in lab.state.options.made_pools:
        lab.mon_commands(creation(pool.name, pool.layout))


def _wait_serving(lab: Lab, seconds: float = 60) -> None:
    """Until the mgr reports and every PG is active and clean."""
    deadline = time.monotonic() + seconds
    while True:
        (answer,) = lab.mon_commands([{"prefix": "status", "format": "json"}])
        status = json.loads(answer)
        groups = status["pgmap"].get("pgs_by_state", [])
        clean = sum(group["count"] for group in groups if group["state_name"] == "active+clean")
        pg_count = sum(pool.layout.pgs for pool in lab.state.options.made_pools)
        if status["mgrmap"]["available"] and clean >= pg_count and clean == status["pgmap"]["num_pgs"]:
            return
        if time.monotonic() > deadline:
            states = ", ".join(f"{group['count']} {group['state_name']}" for group in groups) or "none"
            mgr = "active" if status["mgrmap"]["available"] else "not active"
            raise LabFailed(f"lab {lab.name} does not serve after {seconds:.0f} s: mgr {mgr}, PGs {states}")
        time.sleep(0.2)


def _store_capacities(lab: Lab, capacities: Mapping[str, float]) -> None:
    """At `osd.N`, where an OSD's own bench at boot would have put it."""
    options = lab.state.options
    lab.mon_commands(
        [
            {
                "prefix": "config set",
                "who": f"osd.{osd}",
                "name": f"osd_mclock_max_capacity_iops_{options.media_of(osd)}",
                "value": f"{capacities[options.group_of(osd).drive]:.6f}",
            }
            for osd in lab.osds
        ]
    )


def _step(lab: Lab, what: str, command: List[str]) -> None:
    try:
        lab.run(command, timeout=180)
    except (TunerError, subprocess.SubprocessError) as error:
        raise LabFailed(f"lab {lab.name}: {what} cannot be made: {error}") from error
