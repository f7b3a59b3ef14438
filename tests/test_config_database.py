from __future__ import annotations

from typing import List, Optional, Tuple

from hypothesis import example, given
from hypothesis import strategies as st

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import LOCATION_TYPES, Place, section_of
from ceph_tuner.core.changes.config_database import Database, winner

SECTIONS = ("global", "osd", "osd.0", "osd.1", "osd/host:h0", "osd/class:ssd", "osd.0/class:ssd", "osd/rack:r1", "mgr")
MASKED = (*SECTIONS, "global/host:h1", "global/class:hdd", "osd.0/host:h0", "osd/host:h0/class:hdd")
ENTRIES = st.lists(
    st.builds(ConfigEntry, st.sampled_from(MASKED), st.sampled_from("abc"), st.sampled_from("123")),
    unique_by=lambda entry: entry[:2],
)
PLACES = [Place(osd, "ssd" if osd else "hdd", {"host": f"h{osd}", "rack": "r1"}) for osd in range(3)]


def precision(who: str) -> int:
    """`MaskedOption::get_precision`: 0 is the most precise."""
    section = section_of(who)
    assert section is not None
    if section.location_type:
        return LOCATION_TYPES.index(section.location_type)
    return len(LOCATION_TYPES) if section.device_class else len(LOCATION_TYPES) + 1


def in_the_monitors_order(entries: List[ConfigEntry]) -> List[ConfigEntry]:
    """By section, then by option; those of one option by their keys, which begin with the section and its mask."""
    order = {"global": 0, "osd": 1}
    return sorted(entries, key=lambda entry: (order.get(entry.who.split("/")[0], 2), entry.name, f"{entry.who}/"))


def as_ceph_does(entries: List[ConfigEntry], name: str, place: Place) -> Optional[ConfigEntry]:
    """`ConfigMap::generate_entity_map` of 20.2.4, line by line."""
    found = {}
    previous: Optional[ConfigEntry] = None
    for wanted in ("global", "osd", f"osd.{place.osd}"):
        for entry in entries:
            section = section_of(entry.who)
            if section is None or section.section != wanted or not section.covers(place):
                continue
            if previous is not None and previous.name != entry.name:
                previous = None
            if previous is not None and precision(previous.who) < precision(entry.who):
                continue
            found[entry.name] = entry
            previous = entry
    return found.get(name)


@given(ENTRIES)
@example([ConfigEntry("osd/host:h0", "b", "1"), ConfigEntry("osd.0", "b", "2")])
@example([ConfigEntry("osd/host:h0", "b", "1"), ConfigEntry("osd.0", "b", "2"), ConfigEntry("osd.0", "a", "3")])
@example([ConfigEntry("osd/host:h0", "b", "1"), ConfigEntry("osd", "c", "1"), ConfigEntry("osd.0", "b", "2")])
@example([ConfigEntry("global/class:hdd", "b", "1"), ConfigEntry("osd.0", "b", "2")])
def test_it_decides_as_the_monitors_do(entries: List[ConfigEntry]) -> None:
    entries = in_the_monitors_order(entries)
    database = Database(entries)
    for place in PLACES:
        for name in "abcd":
            assert database.winner(name, place) == winner(entries, name, place) == as_ceph_does(entries, name, place)


def test_a_mask_that_is_the_last_of_its_section_outranks_the_osds_own_entry_that_is_its_first() -> None:
    mask, own = ConfigEntry("osd/host:h0", "osd_max_scrubs", "2"), ConfigEntry("osd.0", "osd_max_scrubs", "4")
    assert winner([mask, own], "osd_max_scrubs", PLACES[0]) == mask
    assert winner([mask, own], "osd_max_scrubs", PLACES[1]) is None
    # anything between the two, for this OSD, and its own decides
    for between in (ConfigEntry("osd", "osd_scrub_sleep", "0.1"), ConfigEntry("osd.0", "bluestore_cache_size", "1")):
        assert winner(in_the_monitors_order([mask, between, own]), "osd_max_scrubs", PLACES[0]) == own
    elsewhere = ConfigEntry("osd/host:h1", "osd_scrub_sleep", "0.1")
    assert winner([mask, elsewhere, own], "osd_max_scrubs", PLACES[0]) == mask


@given(ENTRIES, st.lists(st.tuples(st.sampled_from(MASKED), st.sampled_from("abc"), st.sampled_from(["1", "2", None]))))
def test_what_is_written_afterwards_decides_as_what_was_there_before(
    entries: List[ConfigEntry], writes: List[Tuple[str, str, Optional[str]]]
) -> None:
    database = Database(sorted(entries))
    table = {(entry.who, entry.name): entry.value for entry in entries}
    for who, name, value in writes:
        database.write(who, name, value)
        table.pop((who, name), None)
        table.update({(who, name): value} if value is not None else {})
    anew = Database(ConfigEntry(*key, value) for key, value in sorted(table.items()))
    for place in PLACES:
        for name in "abc":
            assert database.winner(name, place) == anew.winner(name, place)
        assert database.contested(place) == anew.contested(place)
