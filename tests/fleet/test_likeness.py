from __future__ import annotations

from dataclasses import replace

from ceph_tuner.fleet.likeness import here_and_now
from twins import DISK, archive_twin


def test_the_hardware_here_is_that_of_the_drives_whatever_their_class() -> None:
    here, seen = here_and_now(archive_twin(), "osd")
    assert here.hardware == replace(DISK.hardware, device_class="archive")
    assert (here.osds, seen) == (4, {})
