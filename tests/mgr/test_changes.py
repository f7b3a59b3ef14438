from __future__ import annotations

from dataclasses import replace

from ceph_tuner.core.changes.guardian import Guardian
from ceph_tuner.core.changes.lock import Holder
from ceph_tuner.core.changes.lock_owner import this_process
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, TENTACLE
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.profiles.profile import Profile
from tuner import render
from tuner.changes import Changes
from twins import DISK, archive_twin, small_twin, trial_of


def test_a_profile_is_translated_by_the_drives_kind_whatever_their_class() -> None:
    twin = archive_twin(release=QUINCY_EARLY)
    changes = Changes(twin.commander, twin.store, QUINCY_EARLY, twin.version, "the test")
    night = Profile.make("night", TENTACLE, TENTACLE.profiles["balanced"])
    # half of 380 IOPS, on one shard
    assert changes.translated(night, "osd").settings["osd_mclock_scheduler_client_res"] == 190
    assert changes.in_force("osd", "x").hardware == replace(DISK.hardware, device_class="archive")


def test_the_history_says_who_took_back_what_was_left_behind() -> None:
    twin = small_twin()
    trial_of(twin, Holder("mgr.x", this_process().host, "999999999:1"))
    Guardian(twin.commander, twin.clock, who="guardian@h1").look()
    (change,) = Changes(twin.commander, twin.store, twin.release, twin.version, "the test").journal(History(twin.store))
    assert change["note"] == "left behind, and taken back by guardian@h1"
    assert "guardian@h1" in render.history({"windows": [], "trials": [], "changes": [change]})


def test_a_profile_is_applied_over_what_a_dead_tuner_left_once_that_is_taken_back() -> None:
    twin = small_twin()
    trial_of(twin, Holder("mgr.x", this_process().host, "999999999:1"))
    changes = Changes(twin.commander, twin.store, twin.release, twin.version, "the test")
    scrubs = Profile.make("scrubs", TENTACLE, {"osd_max_scrubs": 4})
    document = changes.apply(scrubs, "osd/host:h0", True)
    assert (document["applied"], document["change"]) == (True, 2)
    assert [row["old"] for row in document["changes"] if row["name"] == "osd_max_scrubs"] == [None]
    assert changes.set("osd/host:h0", {"osd_max_scrubs": 5}, "more") == 3
