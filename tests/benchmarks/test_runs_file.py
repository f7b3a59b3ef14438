from __future__ import annotations

import argparse
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
import runs_file

from ceph_tuner.core.errors import LabFailed


def test_shares_of_the_processors_are_of_the_time_since(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: Iterator[List[int]] = iter([[5, 0, 0, 10, 0, 0, 0, 1], [25, 10, 5, 60, 10, 3, 2, 6]])
    monkeypatch.setattr(runs_file.Processors, "_ticks", staticmethod(lambda: next(ticks)))
    # of 105 ticks 40 were work, and 5 were taken away
    assert runs_file.Processors().percent() == {"busy": 38.1, "stolen": 4.8}


def test_the_machines_own_figures_can_be_read() -> None:
    shares = runs_file.Processors().percent()
    assert set(shares) == {"busy", "stolen"}
    assert all(0 <= share <= 100 for share in shares.values())


def test_a_time_of_day_that_is_over_is_tomorrow_s() -> None:
    now = datetime.now()
    soon, before = now + timedelta(minutes=2), now - timedelta(minutes=2)
    assert runs_file.next_at(f"{soon:%H:%M}") == soon.replace(second=0, microsecond=0)
    assert runs_file.next_at(f"{before:%H:%M}") == before.replace(second=0, microsecond=0) + timedelta(days=1)


@pytest.mark.parametrize("text", ["25:00", "noon", "12"])
def test_what_is_no_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="match"):
        runs_file.next_at(text)


@pytest.mark.parametrize(("ahead", "over"), [(timedelta(minutes=1), False), (timedelta(minutes=-1), True)])
def test_a_benchmark_begins_nothing_after_its_time(ahead: timedelta, over: bool) -> None:
    assert runs_file.over(argparse.Namespace(until=datetime.now() + ahead)) is over
    assert not runs_file.over(argparse.Namespace(until=None))


def test_each_run_is_one_line_and_what_is_there_or_failed_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs.jsonl"
    arguments = argparse.Namespace(repeats=2, only=None, output=output, until=None)
    runs: List[str] = []

    def run(name: str) -> Dict[str, Any]:
        runs.append(name)
        if name == "broken":
            raise LabFailed("no lab", "another")
        return {"seconds": 3.0}

    for _ in range(2):
        runs_file.measure_each(arguments, ("one", "broken"), run, lambda line: f"{line['seconds']:g} s")
    assert runs == ["one", "broken"] * 2 + ["broken"] * 2
    lines = runs_file.lines_of(output)
    assert [(line["name"], line["repeat"], line["seconds"]) for line in lines] == [("one", 1, 3.0), ("one", 2, 3.0)]
    assert set(lines[0]) == {"name", "repeat", "seconds", "date", "machine", "processors"}
    shown = capsys.readouterr()
    assert shown.out.startswith("one 1: 3 s, 0 s in all")
    assert "broken: " in shown.err
