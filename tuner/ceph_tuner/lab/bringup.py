"""Brings a lab up: chroot, devices, namespace, monitor, mgr, OSDs, pool."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

from ceph_tuner.errors import InputError, LabFailed, TunerError
from ceph_tuner.lab import devices
from ceph_tuner.lab.capacity import capacity_iops
from ceph_tuner.lab.chroot import MIRROR, check_host, ensure_chroot, recipe_for
from ceph_tuner.lab.cluster import Lab
from ceph_tuner.lab.configuration import ceph_conf, database
from ceph_tuner.lab.namespace import start_keeper
from ceph_tuner.lab.options import LabOptions
from ceph_tuner.lab.places import LABS, LabPlaces
from ceph_tuner.lab.processes import MARK, host_environment, kill_all
from ceph_tuner.lab.state import STARTING, UP, LabState, lab_names, locked, read_state
from ceph_tuner.lab.teardown import clear, remains
from ceph_tuner.lab.throttle import Limit, Throttle, host_throttle

Report = Callable[[str], None]

_FIRST_PORT, _LAST_PORT, _PORTS_PER_LAB = 16790, 18790, 10

_PREPARE = r"""
set -eu
exec >/dev/null
cd /lab
mkdir -p mon run log osd mgr mgr-modules
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
monmaptool --create --clobber --fsid $fsid --addv a "[v2:127.0.0.1:$port]" monmap
ceph-mon --mkfs -i a --monmap monmap --keyring keyring
"""


def up(name: str, wanted: Mapping[str, Any], report: Report, mirror: str = MIRROR, labs: Path = LABS) -> Lab:
    """Bring a lab up, or return the running one; `wanted` holds the options that were explicitly asked for.

    Raises InputError where a lab of that name runs with other options. A failure or an interruption leaves nothing.
    """
    check_host()
    places = LabPlaces(name, labs)
    with locked(places.lock, f"another command is at work on lab {name}"):
        state = _state_if_readable(places)
        if state is not None and state.phase == UP:
            options = state.options
            other = options.differences(wanted)
            if other:
                asked = ", ".join(f"{key} {wanted[key]}" for key in other)
                running = ", ".join(f"{key} {value}" for key, value in other.items())
                raise InputError(f"lab {name}", f"it running with {running}", f"{asked}; `lab down` it first")
            lab = Lab(places, state)
            if lab.alive:
                return _revive(lab, report)
        if remains(places):
            report(f"lab {name} was left behind by a crash or a reboot: starting anew")
        clear(places, report)
        try:
            return _build(places, LabOptions.from_dict(wanted), mirror, report)
        except BaseException:
            clear(places, report)
            raise


def _state_if_readable(places: LabPlaces) -> Optional[LabState]:
    try:
        return read_state(places)
    except LabFailed:
        return None


def _revive(lab: Lab, report: Report) -> Lab:
    """A lab that is up, with the daemons that died in the meantime started again."""
    running = lab.daemons()
    expected = ["mon.a", *(f"mgr.{mgr}" for mgr in lab.mgrs), *(f"osd.{osd}" for osd in lab.osds)]
    missing = [daemon for daemon in expected if daemon not in running]
    report(f"lab {lab.name} is up already" + (f": starting {', '.join(missing)} again" if missing else ""))
    for daemon in missing:
        lab.start_daemon(daemon)
    lab.wait_osds(lab.osds, up=True)
    return lab


def _build(places: LabPlaces, options: LabOptions, mirror: str, report: Report) -> Lab:
    throttle = host_throttle()
    _need_tools()
    marks = {MARK: str(places.directory)}
    chroot = ensure_chroot(recipe_for(options.release, mirror), marks, report)
    began = time.monotonic()
    state = _reserve(places, options, chroot)
    report(f"devices: {options.osds} x {options.iops} IOPS, {options.bandwidth >> 20} MiB/s")
    blocks = _devices(places, options, throttle)
    places.shared.mkdir()
    (places.shared / "ceph.conf").write_text(ceph_conf(options, state.fsid, state.port), encoding="utf-8")
    state = state.with_changes(keeper=start_keeper(places, chroot))
    state.write(places)
    lab = Lab(places, state)
    report("monitor and mgr")
    _prepare(lab)
    _start_daemons(lab, blocks, report)
    lab.wait_osds(lab.osds, up=True)
    report("pool")
    _make_pool(lab)
    _wait_serving(lab)
    capacity = capacity_iops(lab, report)
    _store_capacity(lab, capacity)
    version = lab.run(["ceph-osd", "--version"]).split()[2]
    state = state.with_changes(phase=UP, ceph_version=version, capacity_iops=capacity)
    state.write(places)
    report(f"lab {places.name} is up: Ceph {version} ({time.monotonic() - began:.0f} s)")
    return Lab(places, state)


def _start_daemons(lab: Lab, blocks: Mapping[int, str], report: Report) -> None:
    identities = {osd: str(uuid.uuid4()) for osd in lab.osds}
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2)) as workers:
        try:
            # the OSDs' stores are made while the monitor starts: neither needs the other
            stores = [workers.submit(_make_store, lab, osd, blocks[osd], identities[osd]) for osd in lab.osds]
            lab.start_daemon("mon.a")
            _first_commands(lab, identities)
            for mgr in lab.mgrs:
                lab.start_daemon(f"mgr.{mgr}")
            report("OSDs")
            for store in stores:
                store.result()
            for started in [workers.submit(lab.start_daemon, f"osd.{osd}") for osd in lab.osds]:
                started.result()
        except BaseException:
            # the workers are waited for: without this, Ctrl-C would take as long as what they do
            workers.shutdown(wait=False, cancel_futures=True)
            kill_all(lab.places.directory)
            raise


def _need_tools() -> None:
    missing = [tool for tool in ("unshare", "nsenter", "losetup") if not _which(tool)]
    if missing:
        raise InputError("ceph-tuner lab", f"no {', '.join(missing)}", "the packages util-linux and mount")


def _which(tool: str) -> bool:
    return any((Path(folder) / tool).exists() for folder in os.environ.get("PATH", "").split(os.pathsep))


def _reserve(places: LabPlaces, options: LabOptions, chroot: Path) -> LabState:
    """Write down that the lab exists, with a port that no other lab has, before anything else is made."""
    with locked(places.labs / ".ports.lock", "ports are being given out", wait=30):
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


def _free_port(places: LabPlaces) -> int:
    states = [_state_if_readable(LabPlaces(name, places.labs)) for name in lab_names(places.labs)]
    taken = {state.port for state in states if state is not None}
    for port in range(_FIRST_PORT, _LAST_PORT, _PORTS_PER_LAB):
        # the monitor's, and those of the dashboard and of prometheus on each mgr
        if port not in taken and all(_bindable(port + offset) for offset in range(_PORTS_PER_LAB)):
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


def _devices(places: LabPlaces, options: LabOptions, throttle: Throttle) -> Dict[int, str]:
    places.devices.mkdir()
    blocks = {}
    for osd in range(options.osds):
        image = places.devices / f"osd.{osd}.img"
        blocks[osd] = devices.attach(image, options.device_size, host_environment({MARK: str(places.directory)}))
        throttle.limit(places.name, osd, devices.number(blocks[osd]), Limit(options.iops, options.bandwidth))
    return blocks


def _prepare(lab: Lab) -> None:
    values = [
        f"fsid={lab.state.fsid}",
        f"port={lab.state.port}",
        f"mgrs={' '.join(lab.mgrs)}",
        f"osds={' '.join(map(str, lab.osds))}",
    ]
    _step(lab, "monitor's store", ["env", *values, "sh", "-c", _PREPARE])


def _make_store(lab: Lab, osd: int, device: str, identity: str) -> None:
    folder = lab.places.shared / "osd" / str(osd)
    folder.mkdir()
    (folder / "block").symlink_to(device)
    # not in the OSD's cgroup: what is written once need not take long
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


def _make_pool(lab: Lab) -> None:
    pool = {"prefix": "osd pool create", "pool": "rbd", "pg_num": 32, "pgp_num": 32, "pool_type": "replicated"}
    lab.mon_commands([pool, {"prefix": "osd pool application enable", "pool": "rbd", "app": "rbd"}])


def _wait_serving(lab: Lab, seconds: float = 60) -> None:
    """Until the mgr reports and every PG is active and clean."""
    deadline = time.monotonic() + seconds
    while True:
        (answer,) = lab.mon_commands([{"prefix": "status", "format": "json"}])
        status = json.loads(answer)
        groups = status["pgmap"].get("pgs_by_state", [])
        clean = sum(group["count"] for group in groups if group["state_name"] == "active+clean")
        if status["mgrmap"]["available"] and clean >= 32 and clean == status["pgmap"]["num_pgs"]:
            return
        if time.monotonic() > deadline:
            seen = ", ".join(f"{group['count']} {group['state_name']}" for group in groups) or "none"
            mgr = "active" if status["mgrmap"]["available"] else "not active"
            raise LabFailed(f"lab {lab.name} does not serve after {seconds:.0f} s: mgr {mgr}, PGs {seen}")
        time.sleep(0.2)


def _store_capacity(lab: Lab, iops: float) -> None:
    """At `osd.N`, where an OSD's own bench at boot would have put it."""
    name = "osd_mclock_max_capacity_iops_ssd"
    lab.mon_commands(
        [{"prefix": "config set", "who": f"osd.{osd}", "name": name, "value": f"{iops:.6f}"} for osd in lab.osds]
    )


def _step(lab: Lab, what: str, command: List[str]) -> None:
    try:
        lab.run(command, timeout=180)
    except (TunerError, subprocess.SubprocessError) as error:
        raise LabFailed(f"lab {lab.name}: {what} cannot be made: {error}") from error
