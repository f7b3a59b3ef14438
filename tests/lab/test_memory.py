from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ceph_lab.drives.presets import PRESETS
from ceph_lab.loads.drive_speed import DriveSpeed, objects_for
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.loads.room import NEARLY_FULL
from ceph_lab.memory import (
    DISK_BYTES,
    DISK_DEVICE,
    MONITOR_BYTES,
    OSD_BYTES,
    RAM_DEVICE,
    SPARE_BYTES,
    Need,
    memory_need,
    placed,
    ram_devices,
)
from ceph_lab.options import GIB, MIB, LabOptions
from ceph_lab.places import LabPlaces
from ceph_lab.recipes import options_for_window
from ceph_lab.state import STARTING, UP, LabState
from ceph_tuner.core.errors import InputError
from ceph_tuner.tune.measurement import Timing

DISK = 1024 * GIB
NEED = 3 * (RAM_DEVICE + OSD_BYTES) + MONITOR_BYTES + SPARE_BYTES


def meminfo(directory: Path, available: int) -> Path:
    path = directory / "meminfo"
    path.write_text(f"MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: {available // 1024} kB\n", encoding="ascii")
    return path


def need(options: LabOptions, directory: Path, available: int) -> Need:
    return memory_need(options, directory / "labs", meminfo(directory, available))


@pytest.mark.parametrize(("more", "storage", "size"), [(0, "ram", RAM_DEVICE), (-1024, "disk", DISK_DEVICE)])
def test_devices_lie_in_memory_where_it_fits_to_the_last_page(
    tmp_path: Path, more: int, storage: str, size: int
) -> None:
    chosen = placed(LabOptions(), need(LabOptions(), tmp_path, NEED + more), DISK)
    assert (chosen.storage, chosen.device_size) == (storage, size)


@pytest.mark.parametrize(("osds", "large"), [("3xhdd", 6), ("3xhybrid", 8), ("3xnvme,3xhdd", 6), ("3xnvme", 5)])
def test_hard_disks_have_larger_devices_where_memory_suffices(tmp_path: Path, osds: str, large: int) -> None:
    options = LabOptions.from_dict({"osds": osds})
    usual = options.osds * (RAM_DEVICE + OSD_BYTES) + MONITOR_BYTES + SPARE_BYTES
    more = options.osds * (large * GIB - RAM_DEVICE)
    for available, size in ((usual + more, large * GIB), (usual + more - 1024, RAM_DEVICE if more else DISK_DEVICE)):
        chosen = placed(options, need(options, tmp_path, available), DISK)
        assert chosen.device_size == size
    stated = replace(options, device_size=4 * GIB)
    assert placed(stated, need(stated, tmp_path, 10 * usual), DISK).device_size == 4 * GIB


@pytest.mark.parametrize("drive", ["hdd", "hybrid"])
@pytest.mark.parametrize("name", ["client-recovery", "client-backfill"])
def test_half_a_minute_of_recovery_and_the_clients_image_fit_on_the_data_s_device(drive: str, name: str) -> None:
    preset = PRESETS[drive]
    speed = DriveSpeed.of(preset.data.sequential_bandwidth, preset.bench_iops["tentacle"], drive == "hybrid")
    layout = PoolLayout(2)
    # settling, a window of `tune`, and the margin
    seconds = options_for_window(name, {}, Timing.settle + Timing.window)["seconds"]
    objects = objects_for(seconds, speed.moved_objects_s(layout, MIB))
    # backfill leaves the copies that were moved, on three OSDs
    share = 1.0 if name == "client-recovery" else (1 + 1 / 2) * 2 / 3
    size = ram_devices(LabOptions.from_dict({"osds": f"3x{drive}"}))[0]
    data_bytes = size if drive == "hdd" else size * 3 // 4
    assert objects * MIB * share + GIB <= NEARLY_FULL * data_bytes


def test_memory_that_is_asked_for_and_short_is_refused_with_what_it_takes(tmp_path: Path) -> None:
    needed = r"15\.0 GiB for devices, 0\.5 GiB for monitors and 2\.9 GiB for OSDs; 8\.0 GiB available"
    with pytest.raises(InputError, match=needed):
        placed(LabOptions(storage="ram"), need(LabOptions(), tmp_path, 8 * GIB), DISK)
    small = LabOptions(storage="ram", device_size=3 * GIB)
    smaller = placed(small, need(small, tmp_path, 14 * GIB), DISK)
    assert (smaller.storage, smaller.device_size) == ("ram", 3 * GIB)


def test_disk_is_taken_where_it_is_asked_for_and_for_the_kernel_s_throttle(tmp_path: Path) -> None:
    plenty = need(LabOptions(), tmp_path, 1024 * GIB)
    assert placed(LabOptions(storage="disk"), plenty, DISK).storage == "disk"
    throttled = LabOptions.from_dict({"drive": "throttle"})
    assert placed(throttled, plenty, DISK).storage == "disk"
    with pytest.raises(InputError, match="throttles no device that lies in memory"):
        placed(LabOptions.from_dict({"drive": "throttle", "storage": "ram"}), plenty, DISK)


def test_a_disk_that_is_nearly_full_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    least = 3 * DISK_BYTES
    plenty, on_disk = need(LabOptions(), tmp_path, 1024 * GIB), LabOptions(storage="disk")
    assert placed(on_disk, plenty, least).storage == "disk"
    with pytest.raises(InputError, match=r"3\.0 GiB free for 3 OSDs, expected 1GiB for each"):
        placed(on_disk, plenty, least - 1)
    # in memory it writes next to nothing there
    assert placed(LabOptions(), plenty, 0).storage == "ram"


def other_lab(labs: Path, phase: str) -> None:
    places = LabPlaces("other", labs)
    places.devices.mkdir(parents=True)
    options = LabOptions(storage="ram", device_size=4 * GIB)
    LabState("other", options, phase, port=16790, fsid="f", chroot="/c", created=0.0).write(places)


def test_what_other_labs_may_still_write_is_not_given_away_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labs = tmp_path / "labs"
    other_lab(labs, UP)
    monkeypatch.setattr("os.path.ismount", lambda path: True)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 2 * GIB}))
    # of its devices, and of its monitor
    assert memory_need(LabOptions(), labs, meminfo(tmp_path, 20 * GIB)).available == 16 * GIB


def test_a_lab_that_has_only_begun_has_all_of_its_memory_before_it(tmp_path: Path) -> None:
    labs = tmp_path / "labs"
    other_lab(labs, STARTING)
    expected = 20 * GIB - 3 * 4 * GIB - 3 * OSD_BYTES - MONITOR_BYTES
    assert memory_need(LabOptions(), labs, meminfo(tmp_path, 20 * GIB)).available == expected
