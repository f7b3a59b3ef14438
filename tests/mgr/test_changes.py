from __future__ import annotations

from dataclasses import replace

from ceph_tuner.core.knobs.releases import QUINCY_EARLY, TENTACLE
from ceph_tuner.core.profiles.profile import Profile
from tuner.changes import Changes
from twins import DISK, archive_twin


def test_a_profile_is_translated_by_the_drives_kind_whatever_their_class() -> None:
    twin = archive_twin(release=QUINCY_EARLY)
    changes = Changes(twin.commander, twin.store, QUINCY_EARLY, twin.version, "the test")
    night = Profile.make("night", TENTACLE, TENTACLE.profiles["balanced"])
    # half of 380 IOPS, on one shard
    assert changes.translated(night, "osd").settings["osd_mclock_scheduler_client_res"] == 190
    assert changes.in_force("osd", "x").hardware == replace(DISK.hardware, device_class="archive")
