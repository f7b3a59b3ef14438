from __future__ import annotations

from typing import Iterator, List

import pytest
import runs_file


def test_shares_of_the_processors_are_of_the_time_since(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: Iterator[List[int]] = iter([[5, 0, 0, 10, 0, 0, 0, 1], [25, 10, 5, 60, 10, 3, 2, 6]])
    monkeypatch.setattr(runs_file.Processors, "_ticks", staticmethod(lambda: next(ticks)))
    # of 105 ticks 40 were work, and 5 were taken away
    assert runs_file.Processors().percent() == {"busy": 38.1, "stolen": 4.8}


def test_the_machines_own_figures_can_be_read() -> None:
    shares = runs_file.Processors().percent()
    assert set(shares) == {"busy", "stolen"}
    assert all(0 <= share <= 100 for share in shares.values())
