from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest

from ceph_lab import drive_file
from ceph_lab.drives import DriveSet, drive_from
from ceph_lab.drives.presets import NAMES, PRESETS, preset
from ceph_lab.options import RELEASES
from ceph_tuner.core.errors import InputError

FILE = """\
schema: 1
name: mine
data:
  kind: flash
  read_iops: 500000
  write_iops: 80000
  read_bandwidth: 3 GB/s
  write_bandwidth: 2 GB/s
  read_latency_us: 90
  write_latency_us: 25
  slow_motion: 40
database: {kind: disk, rpm: 7200, average_seek_ms: 8, track_seek_ms: 1, bandwidth: 200 MB/s}
bench_iops: {tentacle: 1000}
"""


def written(directory: Path, text: str) -> Path:
    path = directory / "drive.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_drive_of_one_s_own_is_read_with_its_units(tmp_path: Path) -> None:
    name, drive = drive_file.read(written(tmp_path, FILE))
    assert name == "mine"
    assert drive.data.sequential_bandwidth == 2e9 / 40
    assert (drive.media, drive.bench_iops) == ("ssd", {"tentacle": 1000.0})
    assert drive.database is not None
    assert drive.database.rotational


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema: 1", "schema: 2", "drive.yaml:1 schema: found 2"),
        ("kind: flash", "kind: tape", "drive.yaml:4 data.kind: found 'tape', expected flash or disk"),
        ("  write_iops: 80000\n", "", "drive.yaml:3 data: found no write_iops"),
        ("  write_iops: 80000", "  write_iops: fast", "drive.yaml:6 data.write_iops: found 'fast', expected a number"),
        ("  slow_motion: 40", "  slow_motion: 0.5", "drive.yaml:11 data.slow_motion: found 0.5, expected 1 to 1000"),
        ("  slow_motion: 40", "  slow: 40", "drive.yaml:11 data.slow: found an unknown key"),
        ("2 GB/s", "2 GiB/h", "drive.yaml:8 data.write_bandwidth: found '2 GiB/h'"),
        ("name: mine", "name: nvme", "found 'nvme', expected another name"),
        ("tentacle: 1000", "tentacle: 0", "bench_iops.tentacle: found 0"),
        ("tentacle: 1000", "pacific: 9", "unknown key 'pacific'"),
        ("rpm: 7200", "rpm: .nan", "database.rpm: found the number nan"),
    ],
)
def test_a_file_that_describes_no_drive_is_refused_with_the_line_and_the_key(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in FILE
    with pytest.raises(InputError) as refused:
        drive_file.read(written(tmp_path, FILE.replace(old, new)))
    assert said in str(refused.value)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_name_their_source_survive_a_file_and_state_what_they_do(name: str) -> None:
    drive = preset(name)
    assert drive.data.source
    assert DriveSet.from_dict(drive.to_dict()) == drive
    assert set(drive.bench_iops) == set(RELEASES)


def test_a_preset_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="nvme, sata-ssd, hdd, hybrid, throttle, or a file"):
        preset("floppy")
    assert len(NAMES) == 5


@pytest.mark.parametrize("value", [True, None, "much", [1]])
def test_a_value_of_another_type_is_refused(value: Any) -> None:
    values: Dict[str, Any] = {**PRESETS["hdd"].to_dict()["data"], "rpm": value}
    with pytest.raises(InputError, match=r"data\.rpm"):
        drive_from(values, "data")
