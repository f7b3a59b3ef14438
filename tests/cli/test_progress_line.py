"""What long work says where nobody looks at a terminal, as under systemd."""

from __future__ import annotations

from typing import List, Tuple

import pytest

from ceph_tuner_cli.progress_line import SAID_EVERY_S, progress_line

NOW = 1_795_200_000.0


def said(capsys: pytest.CaptureFixture[str], *looks: Tuple[float, str]) -> List[str]:
    """The words of those looks that are said: `look 0` and so on."""
    with progress_line("a", "moving") as show:
        for number, (after_s, waits_for) in enumerate(looks):
            show(f"look {number}", NOW + after_s, 0, 9, waits_for, "")
    return [line.split("UTC ")[1] for line in capsys.readouterr().err.splitlines() if "UTC " in line]


def test_it_is_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, (0, ""), (5, ""), (SAID_EVERY_S, "")) == ["look 0", "look 2"]


def test_another_reason_to_wait_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    balancer, down = "the balancer to be off", "1 OSDs down, 0 before"
    looks = ((0, ""), (5, balancer), (10, balancer), (15, down), (20, down), (25, ""), (30, ""))
    assert said(capsys, *looks) == ["look 0", "look 1", "look 3", "look 5"]


def test_a_number_that_changes_in_a_reason_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    rest = [(5.0 * number, f"a rest of {60 - 5 * number} s: one PG at a time was too much") for number in range(6)]
    assert said(capsys, *rest) == ["look 0"]
    missed = [(0.0, "client.p95_ms at 21.5, to be <= 20"), (5.0, "client.p95_ms at 90, to be <= 20")]
    assert said(capsys, *missed) == ["look 0"]
