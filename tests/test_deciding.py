from __future__ import annotations

from typing import List

from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.deciding import Database, winner
from ceph_tuner.ports import ConfigEntry
from ceph_tuner.target import Place

SECTIONS = ("global", "osd", "osd.0", "osd.1", "osd/host:h0", "osd/class:ssd", "osd.0/class:ssd", "osd/rack:r1", "mgr")
ENTRIES = st.lists(
    st.builds(ConfigEntry, st.sampled_from(SECTIONS), st.sampled_from("ab"), st.sampled_from("123")),
    unique_by=lambda entry: entry[:2],
)
PLACES = [Place(osd, "ssd" if osd else "hdd", {"host": f"h{osd}", "rack": "r1"}) for osd in range(3)]


@given(ENTRIES)
def test_it_decides_as_the_whole_list_does(entries: List[ConfigEntry]) -> None:
    database = Database(entries)
    for place in PLACES:
        for name in "abc":
            assert database.winner(name, place) == winner(entries, name, place)
