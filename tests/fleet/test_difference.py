from __future__ import annotations

from typing import Dict, List

from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, TENTACLE
from ceph_tuner.fleet.difference import MIXED, NAMES, NOWHERE, Difference, KnobValues, differences, values_by_knob

PLACES = [Place(osd, "ssd", {"host": f"h{osd}"}) for osd in range(3)]
RESERVATION = "osd_mclock_scheduler_client_res"


def test_a_built_in_profile_decides_the_nine_whatever_stands_in_the_database() -> None:
    entries = [ConfigEntry("osd", PROFILE, "high_recovery_ops"), ConfigEntry("osd", RESERVATION, "0.9")]
    found = values_by_knob(entries, PLACES, REEF, "18.2.7")
    assert (found[PROFILE], found[RESERVATION]) == ("high_recovery_ops", "0.300000")
    entries[0] = ConfigEntry("osd", PROFILE, "custom")
    assert values_by_knob(entries, PLACES, REEF, "18.2.7")[RESERVATION] == "0.900000"


def test_osds_that_differ_and_options_that_are_not_there_are_said() -> None:
    entries = [ConfigEntry("osd/host:h1", "osd_max_scrubs", "7")]
    assert values_by_knob(entries, PLACES, TENTACLE, "20.2.4")["osd_max_scrubs"] == MIXED
    assert values_by_knob([], PLACES, TENTACLE, "20.2.4")["osd_max_scrubs"] == "3"
    assert values_by_knob([], PLACES, QUINCY_EARLY, "17.2.5")["osd_scrub_event_cost"] == NOWHERE
    assert values_by_knob([], [], REEF, "18.2.7") == {}


def test_one_value_in_two_notations_is_no_difference() -> None:
    custom = [ConfigEntry("osd", PROFILE, "custom")]
    one, other = (
        KnobValues(values_by_knob([*custom, ConfigEntry("osd", RESERVATION, text)], PLACES, REEF, "18.2.7"))
        for text in ("0.5", "0.500000")
    )
    assert differences({"paris": one, "berlin": other}) == []


def test_the_value_of_most_comes_first_with_its_clusters() -> None:
    clusters = {name: KnobValues({"osd_max_scrubs": value}) for name, value in zip("abc", "313")}
    assert differences(clusters) == [Difference("osd_max_scrubs", (("3", ("a", "c")), ("1", ("b",))))]


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from("xyz")), min_size=1, max_size=5))
def test_what_differs_is_every_knob_that_not_all_have_alike(settings: List[Dict[str, str]]) -> None:
    clusters = {f"c{index}": KnobValues(values) for index, values in enumerate(settings)}
    found = differences(clusters)
    assert {entry.knob for entry in found} == {
        name for name in NAMES if len({values.get(name, NOWHERE) for values in settings}) > 1
    }
    for entry in found:
        assert sorted(name for _, names in entry.values for name in names) == sorted(clusters)
    assert differences({"one": KnobValues(settings[0])}) == []
