"""A book of another release: what is refused, and what is said of it."""

from __future__ import annotations

import pytest

from ceph_tuner.core.book.page import IMPORT, UNVALIDATED, Page
from ceph_tuner.core.book.page_check import check_origin
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings, nine

SHARES = nine((0.5, 4, 0), (0.3, 1, 0.6), (0.1, 1, 0.3))
PLAIN: Settings = {"osd_max_scrubs": 3}


def page(settings: Settings) -> Page:
    return Page(1, "busy", settings, UNVALIDATED, IMPORT, 1.0)


@pytest.mark.parametrize(("there", "here"), [("17.2.5", "20.2.4"), ("18.2.7", "17.2.5")])
def test_shares_in_another_unit_are_refused_whatever_the_numbers_are(there: str, here: str) -> None:
    # 1 is the whole capacity on the one, and no reservation on the other
    for shares in (SHARES, nine((1, 4, 0), (0, 1, 0), (0, 1, 0))):
        with pytest.raises(InputError, match="IOPS per shard") as refusal:
            check_origin(there, [page(PLAIN), page(shares)], here)
        assert "book import --profile" in str(refusal.value)
    (note,) = check_origin(there, [page(PLAIN)], here)
    assert note.startswith("the pages are of ")


def test_pages_of_reef_go_to_tentacle_and_that_is_said() -> None:
    (note,) = check_origin("18.2.7", [page(SHARES)], "20.2.4")
    assert note == "the pages are of Reef: this is Tentacle from 20.2.3, which may do otherwise by them"
    (note,) = check_origin("18.2.4", [page({"osd_scrub_event_cost": 50_000})], "20.2.4")
    assert note.endswith(", and differs in osd_scrub_event_cost")


def test_nothing_is_said_of_the_same_release() -> None:
    assert check_origin("20.2.3", [page(SHARES)], "20.2.4") == []
    assert check_origin("18.2.7", [], "20.2.4") == []


def test_a_version_that_is_none_is_refused_by_its_place() -> None:
    with pytest.raises(InputError, match="the book's version of Ceph"):
        check_origin("tea", [page(PLAIN)], "20.2.4")
