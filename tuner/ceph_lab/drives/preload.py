"""Puts the emulated drives between a lab's daemons and their devices."""

from __future__ import annotations

import os
import shutil
import struct
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, Mapping, Sequence

from ceph_lab.drives import Drive
from ceph_lab.places import LabPlaces

LIBRARY, HASTE = "drive.so", "haste"
HASTE_S = 8.0
"""Seconds for which it holds without being asked for again."""

_INSIDE = Path("/lab/drives")
_DOUBLE = struct.Struct("=d")


def install(places: LabPlaces, library: Path) -> None:
    """Give the lab a copy of the library that is its own: what is kept beside Ceph's tree may be cleared away."""
    directory = _directory(places)
    directory.mkdir()
    shutil.copyfile(library, directory / LIBRARY)
    _until(_haste(places), 0.0)


def describe(
    places: LabPlaces, osd: int, devices: Sequence[str], drives: Sequence[Drive], sizes: Sequence[int]
) -> None:
    """Write down the drives of an OSD's devices (`major:minor`), for the library to read when the OSD starts."""
    lines = [
        # each drive has its own chance, and the same in every lab
        f"{number} {drive.words(seed=1000 * osd + place + 1, size=size)}\n"
        for place, (number, drive, size) in enumerate(zip(devices, drives, sizes))
    ]
    (_directory(places) / f"osd.{osd}").write_text("".join(lines), encoding="ascii")
    _until(_haste(places, f"osd.{osd}"), 0.0)


def environment(places: LabPlaces, daemon: str) -> List[str]:
    """`NAME=value` for a daemon that is to start; none where it has nothing emulated."""
    kind = daemon.partition(".")[0]
    # a lab of an earlier version has none of its OSDs' own
    hastes = [path for path in (_haste(places), _haste(places, daemon)) if path.exists()]
    values: Mapping[str, str] = {
        "osd": {
            "CEPH_TUNER_DRIVES": str(_INSIDE / daemon),
            "CEPH_TUNER_HASTE": ":".join(str(_INSIDE / path.name) for path in hastes),
        },
        "mon": {"CEPH_TUNER_SYNC_DELAY": str(_INSIDE / daemon)},
    }.get(kind, {})
    is_emulated = kind == "mon" or (_directory(places) / daemon).exists()
    if not values or not is_emulated or not (_directory(places) / LIBRARY).exists():
        return []
    return [f"LD_PRELOAD={_INSIDE / LIBRARY}", *(f"{name}={value}" for name, value in values.items())]


@contextmanager
def in_haste(places: LabPlaces, osd: str = "") -> Iterator[None]:
    """Meanwhile a lab's emulated drives take no time, or those of one OSD (`osd.0`).

    Ends by itself soon after the program that asked for it does.
    """
    path = _haste(places, osd)
    if not path.exists():
        yield
        return
    over = threading.Event()

    def go_on() -> None:
        while True:
            _until(path, time.clock_gettime(time.CLOCK_MONOTONIC) + HASTE_S)
            if over.wait(HASTE_S / 4):
                return

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _until(path, 0.0)


def _until(path: Path, second: float) -> None:
    # in place, for it is mapped; eight aligned bytes are never seen in half
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(_DOUBLE.pack(second))


def slow_down(places: LabPlaces, mon: str, seconds: float) -> None:
    """Have a monitor's disk take so much longer for each write that must last; 0: as fast as it is. At once."""
    path = _directory(places) / f"mon.{mon}"
    temporary = path.with_suffix(".new")
    temporary.write_text(f"{seconds:g}\n", encoding="ascii")
    os.replace(temporary, path)


def _haste(places: LabPlaces, osd: str = "") -> Path:
    return _directory(places) / (f"{HASTE}.{osd}" if osd else HASTE)


def _directory(places: LabPlaces) -> Path:
    return places.shared / "drives"
