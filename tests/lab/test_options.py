from __future__ import annotations

import json
from dataclasses import replace
from typing import Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_lab.drives.presets import PRESETS
from ceph_lab.options import (
    GIB,
    MIB,
    STORAGES,
    LabOptions,
    OsdGroup,
    default_name,
    format_size,
    parse_size,
)
from ceph_tuner.core.errors import InputError


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
        ({"mons": 2}, "--mons"),
        ({"shards": 65}, "--shards"),
        ({"threads": -1}, "--threads"),
        ({"storage": "tape"}, "--storage"),
        ({"drive": "floppy"}, "--drive"),
        ({"osds": "3xfloppy"}, "--drive"),
        ({"osds": "3nvme"}, "--osds"),
        ({"osds": "0xnvme,3xhdd"}, "--osds"),
        ({"osds": "9xnvme,9xhdd"}, "--osds"),
        ({"osds": "2xnvme,1xthrottle"}, "--osds"),
        ({"drive": "nvme", "iops": 700}, "--iops"),
        ({"slower": 0.5}, "--slower"),
        ({"slower": 32.0}, "slow_motion"),  # flash is slowed 32 times already, and 1000 is the most
        ({"drive": "throttle", "slower": 2.0}, "--slower"),
    ],
)
def test_options_out_of_range_are_refused_by_name(values: Dict[str, object], place: str) -> None:
    with pytest.raises(InputError, match=place):
        LabOptions.from_dict(values)


_GROUPS = st.lists(
    st.builds(OsdGroup, st.integers(1, 4), st.sampled_from([*PRESETS, "mine"]), st.sampled_from(["", "fast"])),
    min_size=1,
    max_size=4,
)


@given(_GROUPS, st.integers(0, 64), st.sampled_from(["tentacle", "reef"]), st.sampled_from(STORAGES), st.floats(1, 30))
def test_options_survive_the_state_file(
    groups: List[OsdGroup], shards: int, release: str, storage: str, slower: float
) -> None:
    mine = {"mine": PRESETS["hybrid"]}
    options = LabOptions(
        release=release, groups=tuple(groups), drives=mine, shards=shards, storage=storage, size=1, slower=slower
    )
    written = json.loads(json.dumps(options.to_dict()))
    assert LabOptions.from_dict(written) == options


def test_only_what_was_asked_for_can_differ() -> None:
    running = LabOptions.from_dict({"iops": 700})
    assert running.differences({}) == {}
    assert running.differences({"iops": 700, "osds": 3}) == {}
    assert running.differences({"iops": 1075}) == {"iops": (700, 1075)}
    assert running.differences({"drive": "nvme"}) == {"drive": ("throttle", "nvme")}
    assert running.differences({"osds": "4"}) == {"osds": (3, 4)}
    assert LabOptions().differences({"iops": 900}) == {"drive": ("nvme", "throttle"), "iops": (1075, 900)}
    two = LabOptions.from_dict({"osds": "2xnvme,1xhdd"})
    assert two.differences({"osds": "2xnvme,1xhdd"}) == {}
    assert two.differences({"osds": "1xnvme,2xhdd"}) == {"drive": ("2xnvme,1xhdd", "1xnvme,2xhdd")}


def test_where_the_bytes_lie_differs_only_where_a_place_was_asked_for() -> None:
    running = LabOptions(storage="ram", device_size=5 * GIB)
    assert running.differences({"storage": "auto"}) == {}
    assert running.differences({"storage": "disk"}) == {"storage": ("ram", "disk")}


def test_osds_are_numbered_group_by_group_and_have_a_class_each() -> None:
    options = LabOptions.from_dict({"osds": "2xnvme,1xsata-ssd:slow,2xhdd,1xhybrid"})
    assert options.osds == 6
    assert [options.group_of(osd).drive for osd in range(6)] == ["nvme", "nvme", "sata-ssd", "hdd", "hdd", "hybrid"]
    assert options.classes == {"ssd": [0, 1], "slow": [2], "hdd": [3, 4, 5]}


def test_a_slower_lab_has_the_same_drives_in_slower_motion_and_states_no_bench_of_them() -> None:
    options = LabOptions.from_dict({"osds": "1xnvme,1xhybrid", "slower": 6})
    assert options.differences({"slower": 4}) == {"slower": (6, 4.0)}
    for osd, name in enumerate(("nvme", "hybrid")):
        slower, usual = options.drive_of(osd), PRESETS[name]
        assert slower is not None
        for part, drive in usual.parts.items():
            assert slower.parts[part] == replace(drive, slow_motion=6 * drive.slow_motion)
        assert not slower.bench_iops
    assert 6 * options.bandwidth_of(0) == pytest.approx(LabOptions().bandwidth_of(0), abs=6)


def test_a_lab_that_was_limited_by_iops_alone_is_a_throttled_one() -> None:
    older = LabOptions.from_dict({"release": "tentacle", "osds": 3, "iops": 1075, "bandwidth": 60 * MIB, "size": 3})
    assert (older.throttled, older.shards, older.threads) == (True, 1, 5)
    assert (older.bandwidth_of(0), older.media_of(2)) == (60 * MIB, "ssd")


def test_labs_are_called_lab_and_by_their_release() -> None:
    assert [default_name(release) for release in ("tentacle", "reef")] == ["lab", "lab-reef"]


def test_a_lab_of_two_osds_has_two_replicas_unless_told_otherwise() -> None:
    assert LabOptions.from_dict({"osds": 2}).size == 2
    assert LabOptions.from_dict({"osds": 2, "size": 1}).size == 1
    assert LabOptions.from_dict({"osds": 5}).size == 3
