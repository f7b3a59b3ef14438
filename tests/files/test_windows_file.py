from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from ceph_lab import windows_file
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import TENTACLE

WINDOW: Dict[str, Any] = {
    "mix": "client-recovery",
    "label": "fit-1",
    "settings": {},
    "options": {"seconds": 32.0},
    "measures": {"client.iops": [249.0, 8.0, 5], "recovery.bytes_s": [9.5e6, 2e6, 5], "colour.red": [1, 0, 1]},
    "failed": None,
    "notes": [],
}
DOCUMENT: Dict[str, Any] = {
    "ceph": "20.2.4",
    "lab": {"release": "tentacle", "osds": 3, "iops": 1075, "bandwidth": 62914560, "size": 3},
    "hardware": {"capacity_iops": 811.7, "bandwidth_bytes_s": 62914560.0, "shards": 1, "device_class": "ssd"},
    "in_force": {**TENTACLE.profiles["balanced"], "bluestore_throttle_bytes": 262144},
    "window_s": 25.0,
    "settle_s": 5.0,
    "windows": [WINDOW],
}


def read(window: Any = None, **changes: Any) -> windows_file.Windows:
    whole = {**DOCUMENT, **({"windows": [{**WINDOW, **window}]} if window is not None else {}), **changes}
    return windows_file.from_text(json.dumps(whole))


def test_a_labs_windows_bring_the_labs_description_along() -> None:
    found = read()
    (window,) = found.observations
    assert (window.scenario, window.label, window.seconds, window.settle) == ("client-recovery", "fit-1", 25.0, 5.0)
    assert set(window.measures) == {"client.iops", "recovery.bytes_s"}
    model = found.models["client-recovery"]
    assert (model.osds, model.osd.device.iops, model.osd.capacity_iops) == (3, 1075, 811.7)
    assert (model.clients[0].rate, model.recovery[0].target, model.version) == (250.0, 2, (20, 2, 4))
    assert not model.scrub


def test_empty_settings_are_those_in_force_and_partial_ones_lie_over_them() -> None:
    whole = read().observations[0].settings
    assert whole == TENTACLE.profiles["balanced"]
    changed = read({"settings": {"osd_max_scrubs": 7}}).observations[0].settings
    assert changed == {**TENTACLE.profiles["balanced"], "osd_max_scrubs": 7}


def test_a_window_whose_work_ran_out_is_as_long_as_its_remark_says() -> None:
    remark = {"notes": ["snaptrim ran out of work after 12 s of 25 s"]}
    assert read(remark).observations[0].seconds == 12.0
    assert read({"window_s": 12.0, "settle_s": 2.0}).observations[0].settle == 2.0


def test_failed_and_empty_windows_are_left_out_and_named() -> None:
    rows = [WINDOW, {**WINDOW, "failed": "an OSD went down"}, {**WINDOW, "measures": {"ops.slow": [0, 0, 1]}}]
    found = read(windows=rows)
    assert len(found.observations) == 1
    assert [reason.split(": ")[1] for reason in found.skipped] == [
        "an OSD went down",
        "no metric that the twin predicts",
    ]


def test_a_bare_list_needs_the_release_from_elsewhere() -> None:
    rows = json.dumps([{**WINDOW, "settings": TENTACLE.profiles["balanced"]}])
    found = windows_file.from_text(rows, release=TENTACLE)
    assert found.models == {}
    assert len(found.observations) == 1
    with pytest.raises(InputError, match="found no release"):
        windows_file.from_text(rows)


@pytest.mark.parametrize(
    ("window", "fault"),
    [
        ({"measures": {"client.iops": [249.0]}}, r"windows.json: windows.0.measures.client.iops: found \[249.0\]"),
        ({"measures": {"client.iops": [-1, 0, 5]}}, r"measures.client.iops: .*none of them negative"),
        ({"measures": {"client.iops": ["much", 0, 5]}}, r"measures.client.iops"),
        ({"measures": 3}, r"windows.0.measures: found 3, expected a mapping"),
        ({"settings": {"osd_max_scrub": 3}}, r"windows.0.settings.osd_max_scrub"),
        ({"settings": {"osd_max_scrubs": -3}}, r"windows.0.settings.osd_max_scrubs"),
        ({"window_s": "long"}, r"windows.0.window_s: found 'long', expected seconds"),
        ({"mix": "a1"}, r"--scenario: found 'a1', expected one of client,"),
    ],
)
def test_a_damaged_window_is_refused_with_the_place(window: Dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read(window)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"windows": None}, r"windows.json: windows: found nothing, expected a list"),
        ({"windows": []}, r"found no window that was measured"),
        ({"windows": [7]}, r"windows.0: found 7, expected a mapping"),
        ({"ceph": "new"}, r"windows.json: ceph: found 'new', expected a version"),
        ({"hardware": {"speed": 1}}, r"windows.json: hardware: .*speed"),
        ({"in_force": {}}, r"windows.0.settings: found no settings, expected them, or in_force"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(changes: Dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read(**changes)


def test_what_is_no_json_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"windows.json: found Expecting value at line 2"):
        windows_file.from_text('{"windows":\n nothing}')
    with pytest.raises(InputError, match="no such file"):
        windows_file.read(tmp_path / "none.json")
    with pytest.raises(InputError, match="a directory"):
        windows_file.read(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"lab": {**DOCUMENT["lab"], "iops": []}},
        {"lab": {**DOCUMENT["lab"], "size": "x"}},
        {"lab": {**DOCUMENT["lab"], "drives": 5}},
        {"windows": [{**WINDOW, "notes": 5}]},
        {"windows": [{**WINDOW, "options": {"seconds": []}}]},
        {"windows": [{**WINDOW, "options": {"seconds": 1e308}}]},
    ],
)
def test_parts_of_another_kind_are_an_error_of_the_file(changes: Dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"windows\.json: found|--iops|--size"):
        read(**changes)
