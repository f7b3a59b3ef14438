from __future__ import annotations

import pytest

from ceph_tuner.sample import NEVER_S
from tuner import render


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "-"),
        (3.4e6, "B/s", "3.40 MB/s"),
        (0.0, "B/s", "0 B/s"),
        (12345.0, "1", "12.3 k"),
        (200.2, "1/s", "200/s"),
        (1234.5, "ms", "1234 ms"),
        (0.25, "ms", "0.25 ms"),
        (90.0, "s", "1.5 min"),
        (NEVER_S, "s", "never"),
    ],
)
def test_numbers_are_short_and_carry_their_unit(value: float, unit: str, text: str) -> None:
    assert render.number(value, unit) == text


def test_columns_line_up() -> None:
    assert render.table(["A", "B"], [["long", "x"], ["s", "y"]]) == "A     B\nlong  x\ns     y"


def test_a_plan_says_that_nothing_is_written_without_yes() -> None:
    change = {"who": "osd", "name": "n", "old": None, "new": "1", "command": "ceph config set osd n 1"}
    found = {"profile": "p", "target": "osd", "osds": [0], "changes": [change], "warnings": ["w"], "applied": False}
    text = render.plan({**found, "change": None})
    assert "nothing is written without --yes" in text
    assert "ceph config set osd n 1" in text
    assert "rollback" in render.plan({**found, "applied": True, "change": 7})
    assert "nothing to write" in render.plan({**found, "changes": [], "change": None})


def test_what_was_learnt_is_said_in_lines_of_a_terminal() -> None:
    importance = {
        "client.p95_ms": [{"knob": "osd_max_scrubs", "share": 0.61}, {"knob": "osd_scrub_chunk_max", "share": 0.2}],
        "client.iops": [],
    }
    nearest = [
        {"objective": "client.p95_ms <= 20 ms", "instead": "client.p95_ms <= 26 ms", "bound": 26.0, "share": 0.3}
    ]
    way = {"conflicts": [["client.p95_ms <= 20 ms", "scrub.bytes_s >= 9 MB/s"], ["x <= 1"]], "nearest": nearest}
    lines = render.learnt({"importance": importance, "in_the_way": way})
    assert "client.p95_ms  osd_max_scrubs 61 %, osd_scrub_chunk_max 20 %" in lines[0]
    assert "client.iops    hardly any knob" in lines[0]
    assert lines[1].endswith("client.p95_ms <= 20 ms and scrub.bytes_s >= 9 MB/s cannot be met together")
    assert lines[2].endswith("x <= 1 is out of reach by itself")
    assert lines[3] == "nearest that can be: client.p95_ms <= 26 ms"
    assert len(render.learnt({"importance": importance, "in_the_way": {"conflicts": [], "nearest": nearest}})) == 2
    assert render.learnt(None) == []
