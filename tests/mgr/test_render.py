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
