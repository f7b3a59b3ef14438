"""The library between a program and its device, in a lab: what goes through it takes the drive's time, and is done."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from ceph_lab import devices
from ceph_lab.cluster import Lab
from ceph_lab.drives import preload
from ceph_lab.processes import host_environment
from ceph_tuner.core.errors import CommandFailed

SIZE = 64 << 20
WORDS = (
    "kind=flash read_s=0.05 write_s=0.1 read_iops=20 write_iops=10 read_bytes_s=1e6 write_bytes_s=1e7 "
    "flush_s=0.2 jitter=0 seed=1"
)

_PROGRAM = r"""
import ctypes, json, mmap, os, sys, time

device, plain = sys.argv[1:3]

def timed(call):
    began = time.monotonic()
    result = call()
    return [time.monotonic() - began, result]

direct = os.open(device, os.O_RDWR | os.O_DIRECT)
buffered = os.open(device, os.O_RDWR)
block = mmap.mmap(-1, 4096)
block.write(b"x" * 4096)
told = {}
place = ctypes.addressof(ctypes.c_char.from_buffer(block))
first = ctypes.CDLL(None)
where = (ctypes.c_void_p(place), ctypes.c_size_t(4096), ctypes.c_int64(8192))

class Part(ctypes.Structure):
    _fields_ = [("place", ctypes.c_void_p), ("size", ctypes.c_size_t)]

parts = (Part * 2)(Part(place, 2048), Part(place + 2048, 2048))
told["write"] = timed(lambda: first.pwrite64(direct, *where))
told["write_parts"] = timed(lambda: first.pwritev64(direct, parts, 2, where[2]))
told["read"] = timed(lambda: first.pread64(direct, *where))
told["flush"] = timed(lambda: os.fdatasync(direct))
told["content"] = bytes(block[:4]).decode()
told["cold"] = timed(lambda: len(os.pread(buffered, 4096, 32 << 20)))
told["cached"] = timed(lambda: len(os.pread(buffered, 4096, 32 << 20)))
large = 1 << 20
told["ahead"] = timed(lambda: [os.pread(buffered, 4096, (40 << 20) + number * large) for number in range(4)] and 4)
os.posix_fadvise(buffered, 0, 0, os.POSIX_FADV_RANDOM)
told["random"] = timed(lambda: [os.pread(buffered, 4096, (44 << 20) + number * large) for number in range(4)] and 4)
other = os.open(plain, os.O_RDWR | os.O_CREAT)
told["plain"] = timed(lambda: os.pwrite(other, b"y" * 4096, 0))
told["plain_flush"] = timed(lambda: os.fsync(other))

# asked for by its name, libaio would give its own functions
libaio = ctypes.CDLL("libaio.so.1t64", mode=ctypes.RTLD_GLOBAL)

class Iocb(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("opcode", ctypes.c_uint16), ("priority", ctypes.c_int16), ("descriptor", ctypes.c_uint32),
                ("buffer", ctypes.c_uint64), ("size", ctypes.c_uint64), ("offset", ctypes.c_int64),
                ("reserved", ctypes.c_uint64 * 2)]

class Event(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("iocb", ctypes.c_uint64), ("result", ctypes.c_int64),
                ("second", ctypes.c_int64)]

class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

context = ctypes.c_void_p()
assert libaio.io_setup(16, ctypes.byref(context)) == 0
iocbs = [Iocb(data=number, opcode=1, descriptor=direct, buffer=place, size=4096, offset=4096 * number)
         for number in range(4)]
wrong = Iocb(data=9, opcode=1, descriptor=999, buffer=place, size=4096)
began = time.monotonic()
pointers = (ctypes.POINTER(Iocb) * 5)(*map(ctypes.pointer, [*iocbs, wrong]))
# the kernel takes those before the one that it refuses
told["taken"] = first.io_submit(context, 5, pointers)
told["refused"] = first.io_submit(context, 1, (ctypes.POINTER(Iocb) * 1)(ctypes.pointer(wrong)))
events = (Event * 8)()
count = told["early"] = first.io_getevents(context, 1, 8, events, ctypes.byref(Timespec(0, 20_000_000)))
told["seen"] = [[event.data, event.result, time.monotonic() - began] for event in events[:count]]
while len(told["seen"]) < 4:
    count = first.io_getevents(context, 1, 8, events, ctypes.byref(Timespec(2, 0)))
    assert count > 0, count
    told["seen"] += [[event.data, event.result, time.monotonic() - began] for event in events[:count]]
told["none_left"] = first.io_getevents(context, 1, 8, events, ctypes.byref(Timespec(0, 10_000_000)))
told["destroyed"] = first.io_destroy(context)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def device(tentacle_lab: Lab) -> Iterator[str]:
    """A device of its own beside the lab's OSDs."""
    directory = Path(tentacle_lab.places.shared) / "spare"
    directory.mkdir()
    environment = host_environment({})
    try:
        yield devices.attach(directory / "spare.img", SIZE, environment, host_cache=True)
    finally:
        devices.detach_all(directory, environment)
        shutil.rmtree(directory)


@pytest.fixture
def description(tentacle_lab: Lab) -> Iterator[Path]:
    path = tentacle_lab.host_path("/lab/spare.drives")
    yield path
    path.unlink(missing_ok=True)


def ran(lab: Lab, device: str, *values: str) -> Dict[str, Any]:
    environment = ["LD_PRELOAD=/lab/drives/drive.so", "CEPH_TUNER_DRIVES=/lab/spare.drives", *values]
    answer = lab.run(["env", *environment, "python3", "-c", _PROGRAM, device, "/lab/plain"], timeout=120)
    found: Dict[str, Any] = json.loads(answer)
    return found


def test_every_way_to_the_device_takes_the_drive_s_time_and_does_what_it_says(
    tentacle_lab: Lab, device: str, description: Path
) -> None:
    description.write_text(f"{devices.number(device)} {WORDS}\n")
    told = ran(tentacle_lab, device)
    assert (told["write"][1], told["read"][1], told["content"]) == (4096, 4096, "xxxx")
    assert told["write"][0] >= 0.1
    assert (told["write_parts"][0] >= 0.1, told["write_parts"][1]) == (True, 4096)
    assert told["read"][0] >= 0.05
    assert told["flush"][0] >= 0.2
    # what the host's page cache lacks is read ahead by the drive, what it holds costs nothing
    assert told["cold"][0] >= 0.05
    assert told["cached"] == [pytest.approx(0, abs=0.04), 4096]
    # 128 KiB each, at 1 MB a second; and where the kernel is told to read nothing ahead, 4 KiB
    assert told["ahead"][0] >= 4 * 0.13
    assert told["random"][0] < 4 * 0.13
    # files are none of its business
    assert told["plain"][0] + told["plain_flush"][0] < 0.5
    assert (told["taken"], told["refused"]) == (4, -9)
    assert told["early"] == 0
    assert [(number, result) for number, result, _ in told["seen"]] == [(number, 4096) for number in range(4)]
    # ten a second, one after the other
    for number, (_, _, seconds) in enumerate(told["seen"], start=1):
        assert seconds >= 0.1 * number - 1e-3
    assert (told["none_left"], told["destroyed"]) == (0, 0)


def test_in_haste_it_takes_none(tentacle_lab: Lab, device: str, description: Path) -> None:
    description.write_text(f"{devices.number(device)} {WORDS}\n")
    with tentacle_lab.in_haste():
        told = ran(tentacle_lab, device, "CEPH_TUNER_HASTE=/lab/drives/haste")
    assert told["seen"][-1][2] < 0.3
    assert told["write"][0] < 0.1
    assert ran(tentacle_lab, device, "CEPH_TUNER_HASTE=/lab/drives/haste")["write"][0] >= 0.1


def test_one_of_several_files_for_haste_is_enough(tentacle_lab: Lab, device: str, description: Path) -> None:
    description.write_text(f"{devices.number(device)} {WORDS}\n")
    files = "CEPH_TUNER_HASTE=/lab/drives/haste:/lab/drives/haste.osd.0"
    with preload.in_haste(tentacle_lab.places, "osd.0"):
        assert ran(tentacle_lab, device, files)["write"][0] < 0.1
        # another OSD's
        assert ran(tentacle_lab, device, "CEPH_TUNER_HASTE=/lab/drives/haste")["write"][0] >= 0.1
    assert ran(tentacle_lab, device, files)["write"][0] >= 0.1


@pytest.mark.parametrize("text", ["7:1 kind=tape\n", "nonsense\n", f"7:1 {WORDS} more=1\n", f"x:1 {WORDS}\n"])
def test_a_description_that_cannot_be_read_ends_the_program_before_it_writes(
    tentacle_lab: Lab, device: str, description: Path, text: str
) -> None:
    description.write_text(text)
    with pytest.raises(CommandFailed, match=r"(?s)failed with 64: drive: cannot read"):
        ran(tentacle_lab, device)


def test_a_file_for_haste_that_is_too_short_is_no_haste(tentacle_lab: Lab, device: str, description: Path) -> None:
    description.write_text(f"{devices.number(device)} {WORDS}\n")
    short = tentacle_lab.host_path("/lab/short")
    short.write_bytes(os.urandom(7))
    assert ran(tentacle_lab, device, "CEPH_TUNER_HASTE=/lab/short")["write"][0] >= 0.1
