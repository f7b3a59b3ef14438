from __future__ import annotations

from pathlib import Path

import pytest

from ceph_lab import scenarios
from ceph_tuner.core.errors import InputError
from ceph_tuner.files import slo_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

GOOD = """\
schema: 1
name: recovery
objectives:
  - client.p95_ms <= 80 ms
  - objective: recovery.bytes_s >= 8 MB/s
    hard: false
    priority: 2
lab:
  scenario: client-recovery
  options: {rate: 250}
"""


def test_a_file_gives_its_slo_and_the_load_for_a_lab() -> None:
    found = slo_file.from_text(GOOD)
    assert found.slo.name == "recovery"
    assert [(o.metric, o.hard, o.priority) for o in found.slo.objectives] == [
        ("client.p95_ms", True, 1.0),
        ("recovery.bytes_s", False, 2.0),
    ]
    assert (found.scenario, found.options) == ("client-recovery", {"rate": 250})


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("80 ms", "80 parsec", "some.yaml:4 objectives.0: found"),
        ("recovery.bytes_s >=", "recovery.bytes_s <=", "some.yaml:5 objectives.1"),
        ("hard: false", "hard: maybe", "some.yaml:6 objectives.1.hard"),
        ("priority: 2", "priority: -2", "some.yaml:7 objectives.1.priority"),
        ("schema: 1", "schema: 7", "some.yaml:1 schema"),
        ("schema: 1\n", "", "some.yaml:1"),
        ("  options", "  choices", "some.yaml:10 lab.choices"),
        ("name: recovery", "nam: recovery", "some.yaml:2 nam"),
        ("name: recovery", "name: Recovery!", "some.yaml:2 name"),
    ],
)
def test_a_fault_is_told_with_its_line(old: str, new: str, place: str) -> None:
    with pytest.raises(InputError) as refusal:
        slo_file.from_text(GOOD.replace(old, new), "some.yaml")
    assert str(refusal.value).startswith(place)


def test_an_slo_without_a_name_is_called_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "Night shift.yaml"
    path.write_text("schema: 1\nobjectives: [client.p95_ms <= 80 ms]\n")
    assert slo_file.read(path).slo.name == "night-shift"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("slo-*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_right(path: Path) -> None:
    found = slo_file.read(path)
    # without a scenario it is for `ceph-tuner recommend`, which needs no lab
    assert found.scenario in ("", *scenarios.NAMES)
    # of a calendar, what holds where no policy says otherwise: the present one depends on the hour
    wanted = found.slo if found.calendar is None else found.calendar.base
    assert {"client"} < wanted.work


@pytest.mark.parametrize("text", ["hunter2", "5", "true", "'hunter2'"])
def test_a_file_that_is_one_value_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(InputError, match="found one value, expected a mapping") as refusal:
        slo_file.from_text(text)
    assert text.strip("'") not in str(refusal.value).replace("slo.yaml:1", "")
