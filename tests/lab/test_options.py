from __future__ import annotations

from typing import Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.errors import InputError
from ceph_tuner.lab.options import GIB, MIB, LabOptions, default_name, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("62914560", 62914560), ("60MiB", 60 * MIB), ("60M", 60 * MIB), ("60 MB", 60_000_000), ("1.5GiB", 3 * GIB // 2)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size("--bandwidth", text) == size


@pytest.mark.parametrize("text", ["", "fast", "-1", "60 XiB", "0.3", "1e9", "60MiB/s"])
def test_a_size_that_is_none_is_refused_with_the_option_and_the_text(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_size("--bandwidth", text)
    assert str(caught.value).startswith("--bandwidth: found ")
    assert repr(text) in str(caught.value)


@given(st.integers(min_value=0, max_value=1 << 50))
def test_writing_a_size_and_reading_it_gives_the_same(size: int) -> None:
    assert parse_size("here", format_size(size)) == size


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"release": "pacific"}, "--release"),
        ({"osds": 0}, "--osds"),
        ({"osds": 17}, "--osds"),
        ({"iops": 1}, "--iops"),
        ({"bandwidth": 1000}, "--bandwidth"),
        ({"mgrs": 0}, "--mgrs"),
        ({"osds": 2, "size": 3}, "--size"),
        ({"device_size": GIB}, "--device-size"),
    ],
)
def test_options_out_of_range_are_refused_by_name(values: Dict[str, object], place: str) -> None:
    with pytest.raises(InputError, match=place):
        LabOptions.from_dict(values)


@given(st.integers(1, 16), st.integers(50, 100_000), st.sampled_from(["tentacle", "reef"]))
def test_options_survive_the_state_file(osds: int, iops: int, release: str) -> None:
    options = LabOptions(release=release, osds=osds, iops=iops, size=1)
    assert LabOptions.from_dict(options.to_dict()) == options


def test_only_what_was_asked_for_can_differ() -> None:
    running = LabOptions(iops=700)
    assert running.differences({}) == {}
    assert running.differences({"iops": 700, "osds": 3}) == {}
    assert running.differences({"iops": 1075}) == {"iops": 700}


def test_labs_are_called_lab_and_by_their_release() -> None:
    assert [default_name(release) for release in ("tentacle", "reef")] == ["lab", "lab-reef"]


def test_a_lab_of_two_osds_has_two_replicas_unless_told_otherwise() -> None:
    assert LabOptions.from_dict({"osds": 2}).size == 2
    assert LabOptions.from_dict({"osds": 2, "size": 1}).size == 1
    assert LabOptions.from_dict({"osds": 5}).size == 3
