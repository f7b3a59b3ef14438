from __future__ import annotations

import pytest

from ceph_tuner.core.ceph.target import Place, Target, covered, reach, running, section_of
from ceph_tuner.core.errors import InputError

HERE = Place(3, "ssd", {"host": "h0", "rack": "r1", "root": "default"})


@pytest.mark.parametrize("text", ["osd", "osd.3", "osd/class:ssd", "osd/host:h0", "osd/rack:r1", "osd/root:default"])
def test_a_target_is_written_as_it_was_read_and_covers_the_osd(text: str) -> None:
    assert str(Target.parse(text)) == text
    assert Target.parse(text).covers(HERE)


@pytest.mark.parametrize("text", ["osd.4", "osd/class:hdd", "osd/host:h1", "osd/rack:h0"])
def test_a_target_does_not_cover_an_osd_elsewhere(text: str) -> None:
    assert not Target.parse(text).covers(HERE)


@pytest.mark.parametrize(
    "text",
    ["", "mon", "global", "osd.", "osd.x", "osd/", "osd/host", "osd/host:", "osd.3/host:h0", "osd/class:a/class:b",
     "osd/host:h0/class:ssd", "osd/host:h 0", "osd/host:h0; rm", "client.x"],
)  # fmt: skip
def test_what_is_no_target_is_refused_with_what_was_found(text: str) -> None:
    with pytest.raises(InputError, match="target: found"):
        Target.parse(text)


def test_the_finer_section_outranks_the_wider() -> None:
    order = ["global", "global/class:ssd", "osd", "osd/class:ssd", "osd/root:default", "osd/rack:r1", "osd/host:h0"]
    order += ["osd.3", "osd.3/class:ssd"]
    ranks = [section.rank for section in map(section_of, order) if section is not None]
    assert len(ranks) == len(order)
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_a_mask_as_the_monitors_print_it_is_understood() -> None:
    both = section_of("osd/host:h0/class:ssd")
    assert both is not None
    assert both.covers(HERE)
    assert not both.covers(Place(3, "hdd", {"host": "h0"}))


def test_only_running_osds_are_counted() -> None:
    places = [HERE, Place(1, "ssd", {"host": "h0"}, up=False), Place(0, "ssd", {"host": "h0"})]
    assert covered("osd/host:h0", places) == [0, 3]
    assert covered("mon", places) == []


def test_where_the_running_osds_of_a_target_are_is_told_in_the_order_of_their_ids() -> None:
    other = Place(0, "ssd", {"host": "h0"})
    places = [HERE, Place(1, "ssd", {"host": "h0"}, up=False), other]
    assert running("osd/host:h0", places) == [other, HERE]
    for nobody in ("osd/host:h9", "osd.1", "mon"):
        with pytest.raises(InputError, match=f"target: found '{nobody}', which covers no running OSD"):
            running(nobody, places)


def test_how_far_a_change_reaches_is_told_with_the_classes() -> None:
    assert reach([Place(0, "ssd")]) == "1 OSD"
    assert reach([Place(osd, "ssd") for osd in range(3)]) == "3 OSDs"
    both = [Place(osd, "hdd" if osd < 600 else "ssd") for osd in range(940)]
    assert reach(both) == "940 OSDs of 2 classes (600 hdd, 340 ssd)"
    assert reach([Place(0, "ssd"), Place(1)]) == "2 OSDs of 2 classes (1 without one, 1 ssd)"
