"""The program as people run it: its arguments in, its exit code and what it wrote out."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Callable, List, Tuple
from unittest import mock

import pytest

from ceph_tuner.recommend import SearchEffort
from ceph_tuner_cli.main import main

Run = Callable[..., Tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def running(*arguments: object) -> Tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ceph-tuner", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return running


LITTLE = SearchEffort(seeds=2, fresh=4, events=1e5, shortest_s=1.0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is said and not of how well it was found: commands search in few and short runs."""
    for command in ("recommend", "book_predict", "boost_predict", "slo_week", "compare_queues"):
        monkeypatch.setattr(f"ceph_tuner_cli.{command}.SearchEffort", lambda: LITTLE)
    monkeypatch.setattr("ceph_tuner.recommend.write_forecast.EFFORT", SearchEffort(shortest_s=4.0, longest_s=8.0))


def in_this_process(words: List[str]) -> Tuple[int, str]:
    """Exit code and all that a reader sees: starting Python and numpy for each line would take longer than the line."""
    said = io.StringIO()
    with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    raise AssertionError("main() always exits")
