from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import OSDS, healthy, nine, osd_facts, place, set_to

from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.core.knobs.releases import REEF, RELEASES, TENTACLE
from ceph_tuner.doctor.facts import OsdFacts
from ceph_tuner.doctor.finding import COSTLY, MISLEADING, POINTLESS
from ceph_tuner.doctor.settings import asleep, ignored, leftovers, overbooked

CLASSES = ("client", "background_recovery", "background_best_effort")
LIMIT = "osd_mclock_scheduler_background_best_effort_lim"
RESERVATIONS = [f"osd_mclock_scheduler_{name}_res" for name in CLASSES]


def test_a_cluster_as_ceph_ships_it_has_no_finding() -> None:
    for check in (ignored, leftovers, asleep, overbooked):
        assert check(healthy()) == []


def test_a_knob_that_does_nothing_is_named_with_the_reason_and_what_does_its_job() -> None:
    (found,) = ignored(healthy(**set_to(("osd", "osd_scrub_cost", "1048576"))))
    assert found.evidence[0].startswith("osd osd_scrub_cost 1048576: read only when osd_op_queue is wpq")
    assert "osd_scrub_chunk_max" in found.cure
    assert found.commands == ("ceph config rm osd osd_scrub_cost",)


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
def test_every_knob_is_reported_exactly_where_the_release_does_not_honour_it(release: object) -> None:
    for knob in KNOBS.values():
        effect = knob.effective(release)
        if effect.needs:
            continue
        facts = replace(healthy(**set_to(("osd", knob.name, "1"))), release=release, version=release.newest)
        assert bool(ignored(facts)) == (not effect.works), knob.name


def test_backfills_without_their_switch_do_nothing_and_with_it_work() -> None:
    rows = set_to(("osd", "osd_max_backfills", "4"))
    (found,) = ignored(healthy(**rows))
    assert "osd_mclock_override_recovery_settings=true beside it" in found.cure
    switched = tuple(osd_facts(osd, {"osd_mclock_override_recovery_settings": "true"}) for osd in range(OSDS))
    assert ignored(healthy(**rows, osds=switched)) == []


def test_under_wpq_the_same_knob_works() -> None:
    wpq = tuple(osd_facts(osd, {"osd_op_queue": "wpq"}, mclock_queues=False) for osd in range(OSDS))
    assert ignored(healthy(osds=wpq, **set_to(("osd", "osd_scrub_cost", "1048576")))) == []


def test_of_a_large_cluster_under_wpq_the_osds_that_were_not_asked_say_nothing() -> None:
    wpq = tuple(osd_facts(osd, {"osd_op_queue": "wpq"}, mclock_queues=False) for osd in range(2))
    silent = tuple(OsdFacts(place(osd)) for osd in range(2, OSDS))
    rows = (("osd", "osd_scrub_cost", "1048576"), ("osd.4", "osd_scrub_sleep", "0.1"))
    assert ignored(healthy(osds=(*wpq, *silent), **set_to(*rows))) == []


@pytest.mark.parametrize("asked", [True, False])
def test_a_knob_that_an_osd_under_wpq_goes_by_is_named_and_not_removed(asked: bool) -> None:
    wpq = osd_facts(5, {"osd_op_queue": "wpq"}, mclock_queues=False) if asked else OsdFacts(place(5))
    rows = (("osd.5", "osd_op_queue", "wpq"), ("osd", "osd_scrub_cost", "1048576"), ("osd.1", "osd_scrub_sleep", "0.1"))
    (found,) = ignored(healthy(osds=(*(osd_facts(osd) for osd in range(5)), wpq), **set_to(*rows)))
    assert found.commands == ("ceph config rm osd.1 osd_scrub_sleep",)
    assert found.evidence[0].endswith("; osd.5, under another queue, may go by it")
    assert "but not what an OSD under another queue goes by" in found.cure


def test_a_sleep_in_ceph_conf_is_found_and_what_mclock_itself_overrides_is_not() -> None:
    own = osd_facts(1, sources={"osd_scrub_sleep": {"file": "0.1"}, "osd_delete_sleep": {"override": "0"}})
    (found,) = ignored(healthy(osds=(osd_facts(0), own)))
    assert len(found.evidence) == 1
    assert found.evidence[0].startswith("osd.1: osd_scrub_sleep 0.1 (file)")


def test_what_outranks_is_named_with_what_it_outranks() -> None:
    rows = (("osd", "osd_max_scrubs", "2"), ("osd/host:h1", "osd_max_scrubs", "1"), ("osd.0", PROFILE, "custom"))
    (found,) = leftovers(healthy(**set_to(*rows)))
    assert found.severity == MISLEADING
    assert found.share == pytest.approx(3 / OSDS)
    assert found.evidence[0] == "osd/host:h1 osd_max_scrubs 1 over 2 of osd: osd.2, osd.3"
    assert found.commands[-1] == f"ceph config rm osd.0 {PROFILE}"


@pytest.mark.parametrize(
    "row",
    [
        ("osd/class:ssd", "osd_max_scrubs", "1"),
        ("osd.1", "osd_mclock_max_capacity_iops_ssd", "30000"),
        ("osd/host:h1", "debug_osd", "5"),
        ("mgr", "mgr/balancer/active", "true"),
    ],
    ids=lambda row: row[1],
)
def test_what_belongs_there_is_no_leftover(row: tuple) -> None:
    assert leftovers(healthy(**set_to(row))) == []


def test_the_same_value_under_a_mask_outranks_nothing() -> None:
    rows = (("osd", "osd_scrub_sleep", "0.1"), ("osd/host:h1", "osd_scrub_sleep", "0.100000"))
    assert leftovers(healthy(**set_to(*rows))) == []


def test_a_host_may_have_what_the_operator_alone_sets() -> None:
    rows = (("osd/host:h0", "osd_scrub_begin_hour", "22"), ("osd.1", "bluestore_throttle_cost_per_io", "9000"))
    assert leftovers(healthy(**set_to(*rows))) == []


def test_leftovers_on_every_osd_make_a_profile_for_all_pointless() -> None:
    rows = [(f"osd/host:h{host}", PROFILE, "high_recovery_ops") for host in range(3)]
    (found,) = leftovers(healthy(**set_to(*rows)))
    assert (found.severity, found.share) == (POINTLESS, 1.0)
    # another knob there leaves the profile its effect
    rows = [(f"osd/host:h{host}", "osd_max_scrubs", "1") for host in range(3)]
    (found,) = leftovers(healthy(**set_to(*rows)))
    assert (found.severity, found.share) == (MISLEADING, 1.0)


def test_what_ceph_tuner_itself_has_on_trial_is_no_leftover() -> None:
    facts = healthy(**set_to(("osd/host:h1", "osd_max_scrubs", "1"), ("osd.0", "osd_max_scrubs", "1")))
    (found,) = leftovers(replace(facts, on_trial=frozenset({("osd/host:h1", "osd_max_scrubs")})))
    assert found.evidence == ("osd.0 osd_max_scrubs 1: osd.0",)


def test_a_mask_of_a_host_that_is_gone_is_found_too() -> None:
    (found,) = leftovers(healthy(**set_to(("osd/host:gone", "osd_max_scrubs", "1"))))
    assert found.evidence[0].endswith("no running OSD now")


def test_nine_values_under_a_built_in_profile_sleep() -> None:
    (found,) = asleep(healthy(**set_to(*nine("osd/host:h0"))))
    assert (found.check, found.share) == ("nine-under-built-in", pytest.approx(2 / OSDS))
    assert found.evidence == ("osd.0, osd.1: 9 of the nine values are set under balanced",)


def test_the_nine_that_other_osds_go_by_stay_where_a_stray_one_sleeps() -> None:
    # the first four OSDs are ssd under custom, the last two hdd under balanced
    disks = {4, 5}
    places = tuple(replace(place(osd), device_class="hdd" if osd in disks else "ssd") for osd in range(OSDS))
    osds = tuple(
        replace(osd_facts(osd, {} if osd in disks else {PROFILE: "custom"}), place=places[osd]) for osd in range(OSDS)
    )
    rows = (("osd/class:ssd", PROFILE, "custom"), *nine("osd/class:ssd"))
    stray = ("osd/class:hdd", LIMIT, "0.2")
    (found,) = asleep(healthy(osds=osds, places=places, **set_to(*rows, stray)))
    assert found.commands == (f"ceph config rm osd/class:hdd {LIMIT}",)
    assert found.evidence == ("osd.4, osd.5: 1 of the nine values are set under balanced",)
    # one that both go by
    rows = (("osd/class:ssd", PROFILE, "custom"), *nine("osd"))
    (found,) = asleep(healthy(osds=osds, places=places, **set_to(*rows, stray)))
    assert found.commands == (f"ceph config rm osd/class:hdd {LIMIT}",)
    assert found.evidence[-1] == (
        "osd: 9 of the nine also set for osd.0, osd.1, osd.2, osd.3, under custom, and not to be removed"
    )
    # one that others have a finer value over
    (found,) = asleep(healthy(osds=osds, places=places, **set_to(*rows, *nine("osd/class:ssd"))))
    assert len(found.commands) == 9
    assert all(command.startswith("ceph config rm osd osd_mclock") for command in found.commands)


def test_what_an_osd_that_is_down_goes_by_stays() -> None:
    osds = tuple(osd_facts(osd) for osd in range(5))
    places = (*(place(osd) for osd in range(5)), replace(place(5), up=False))
    rows = set_to(("osd.5", PROFILE, "custom"), *nine("osd/class:ssd"))
    (found,) = asleep(healthy(osds=osds, places=places, **rows))
    assert found.commands == ()


def test_nine_values_on_trial_are_not_taken_for_sleepers_nor_removed() -> None:
    facts = healthy(**set_to(*nine("osd/host:h0"), ("osd.2", LIMIT, "0.2")))
    on_trial = frozenset((who, name) for who, name, _ in nine("osd/host:h0"))
    (found,) = asleep(replace(facts, on_trial=on_trial))
    assert found.evidence == ("osd.2: 1 of the nine values are set under balanced",)
    assert found.commands == (f"ceph config rm osd.2 {LIMIT}",)
    # what a trial outranks for a while is gone by again after it
    custom = tuple(osd_facts(osd, {PROFILE: "custom"} if osd < 2 else {}) for osd in range(OSDS))
    facts = healthy(osds=custom, **set_to(*nine("osd/host:h0"), ("osd", LIMIT, "0.2")))
    (found,) = asleep(replace(facts, on_trial=on_trial))
    assert found.commands == ()


def test_custom_without_all_nine_is_incomplete_and_with_them_is_not() -> None:
    custom = tuple(osd_facts(osd, {PROFILE: "custom"}) for osd in range(OSDS))
    rows = (("osd", PROFILE, "custom"), *nine("osd"))
    assert asleep(healthy(osds=custom, **set_to(*rows))) == []
    (found,) = asleep(healthy(osds=custom, **set_to(*rows[:-1])))
    assert found.check == "nine-incomplete"
    assert "without background_best_effort_lim" in found.evidence[0]


@given(st.lists(st.integers(0, 100), min_size=3, max_size=3))
def test_reservations_are_overbooked_exactly_above_one(hundredths: list) -> None:
    given = {name: f"{part / 100:.6f}" for name, part in zip(RESERVATIONS, hundredths)}
    found = overbooked(healthy(osds=(osd_facts(0, {PROFILE: "custom", **given}),)))
    assert bool(found) == (sum(hundredths) > 100)
    assert all(one.share == pytest.approx(1 - 100 / sum(hundredths)) for one in found)


def test_what_tentacle_ships_overbooked_is_costly_alone() -> None:
    options = {name: str(TENTACLE.profiles["balanced"][name]) for name in RESERVATIONS}
    facts = replace(healthy(osds=(osd_facts(0, options),)), release=TENTACLE, version=TENTACLE.newest)
    (found,) = overbooked(facts)
    assert (found.severity, found.share) == (COSTLY, pytest.approx(1 - 1 / 1.05))
    assert REEF.profiles["balanced"] != TENTACLE.profiles["balanced"]


def test_places_of_osds_that_are_down_count_for_nothing() -> None:
    places = (*(place(osd) for osd in range(5)), replace(place(5), up=False))
    rows = [(f"osd.{osd}", PROFILE, "balanced") for osd in range(5)]
    (found,) = leftovers(healthy(places=places, **set_to(*rows)))
    assert found.share == 1.0
